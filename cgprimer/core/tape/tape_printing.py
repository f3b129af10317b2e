"""Print tapes as readable code, with nested expressions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from cgprimer.core.language.syntax_tree import Number
from cgprimer.core.operations.notation import unparse
from cgprimer.core.tape.tape import Tape, expressions, labels, shown_names, value_text


def rename_as_shown(tape: Tape) -> Tape:
    """Return the tape with its values renamed as they are printed.

    >>> import cgprimer
    >>> rename_as_shown(cgprimer.tape(cgprimer.parse("xy = batchnorm(xa, g, b)"))).of_kind("scalar")
    ('g', 'b', 'mean_xy', 'variance_xy')
    """
    shown = shown_names(tape)
    leaves = tuple([leaf._replace(name=shown.get(leaf.name, leaf.name)) for leaf in tape.leaves])
    names, outputs = ({shown[n]: i for n, i in of.items()} for of in (tape.names, tape.outputs))
    return replace(tape, leaves=leaves, names=names, outputs=outputs)


def code(
    tape: Tape, *, primal: Collection[str] = (), seeds: Mapping[str, float] | None = None
) -> str:
    """Return the tape as readable code, with values that are used once nested in expressions.

    Args:
        tape: the program.
        primal: names of the original graph; a comment marks where their values end.
        seeds: values of seeds that are scalars, written as the first lines of the derivative.
    """
    scalar_seeds = {n: v for n, v in (seeds or {}).items() if not getattr(v, "shape", ())}
    names, shown = labels(tape), shown_names(tape)
    trees = expressions(tape, inline=True)
    signature = (*tape.of_kind("column"), *tape.of_kind("scalar"))
    arguments = (shown[name] for name in signature if name not in scalar_seeds)
    lines = [f"# given: {', '.join(arguments)}"]
    last_primal = max((i for n, i in tape.names.items() if n in primal and i in trees), default=-1)
    others: dict[int, list[str]] = {}  # lines such as bar_xy = bar_xz, by index
    for name, index in {**tape.names, **tape.outputs}.items():
        value = value_text(tape, names, index)
        if shown[name] != value:
            others.setdefault(index, []).append(f"{shown[name]} = {value}")
    seed_lines = [f"{shown[n]} = {unparse(Number(v))}" for n, v in scalar_seeds.items()]
    if last_primal >= 0:
        lines.append("# primal")
    else:
        lines += seed_lines
    for index, tree in trees.items():
        lines.append(f"{names[index]} = {unparse(tree)}")
        if index == last_primal:
            if others or scalar_seeds or index != max(trees):
                lines.append("# derivative")
            lines += seed_lines
            leaves = range(len(tape.leaves))  # the adjoint of the output is the constant 1
            for earlier in (*leaves, *[i for i in others if i <= last_primal]):
                lines.extend(others.pop(earlier, ()))
        elif index > last_primal:
            lines.extend(others.pop(index, ()))
    lines.extend(line for rest in others.values() for line in rest)
    lines.extend(f"# output  {shown[name]}" for name in tape.outputs)
    return "\n".join(lines)
