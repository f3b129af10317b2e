"""Tapes as text: one line per instruction, or folded into readable code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import count

from cgprimer.core.language.syntax import Apply, Expression, Name, Number, Structural
from cgprimer.core.primitives.notation import unparse
from cgprimer.core.tape.tape import Leaf, Tape, shape_of

_WIDEST = 48  # of a line, with its array's shape behind
_INTERNAL_LEAVES = {  # what the first part of a name that is not a user's own stands for
    "seed": "seed",
    "dot": "seed",
    "bar": "seed",
    "shift": "shift",
    "target": "target",
    "mask": "mask",
    "mean": "statistic",
    "variance": "statistic",
}


def shown_name(name: str) -> str:
    """A name as it is printed: ``bar.xz`` is shown as ``bar_xz``."""
    return name.replace(".", "_")


def labels(tape: Tape) -> list[str]:
    """What each value is called in print: its name, its number, or ``v1``, ``v2``, ..."""
    shown, found = shown_names(tape), []
    taken = set(shown.values())
    free = (name for name in map("v{}".format, count(1)) if name not in taken)
    for index in range(tape.size):
        if index < len(tape.leaves) and tape.leaves[index].kind == "constant":
            found.append("")  # printed by value, whatever names it has
        elif index in tape.labels:
            found.append(shown[tape.labels[index]])
        else:
            found.append(next(free))
    return found


def shown_names(tape: Tape) -> dict[str, str]:
    """Every name as it is printed, each once: a user's own ``bar_xw`` stays as it is.

    >>> import cgprimer
    >>> tape = cgprimer.tape(cgprimer.parse("bar_xw = k*xa; xw = bar_xw^2; output xw"))
    >>> shown = shown_names(cgprimer.differentiate(tape).tape)
    >>> shown["bar_xw"], shown["bar.xw"]
    ('bar_xw', 'bar_xw_')
    """
    names = (*tape.names, *tape.outputs)
    shown = {name: name for name in names if "." not in name}
    taken = {*shown}
    for name in names:
        if name not in shown:
            text = shown_name(name)
            while text in taken:
                text += "_"
            taken.add(text)
            shown[name] = text
    return shown


def as_shown(tape: Tape) -> Tape:
    """The same tape, in which leaves and values are called what print calls them.

    >>> import cgprimer
    >>> as_shown(cgprimer.tape(cgprimer.parse("xy = batchnorm(xa, g, b)"))).of_kind("scalar")
    ('g', 'b', 'mean_xy', 'variance_xy')
    """
    shown = shown_names(tape)
    leaves = tuple([leaf._replace(name=shown.get(leaf.name, leaf.name)) for leaf in tape.leaves])
    names, outputs = ({shown[n]: i for n, i in of.items()} for of in (tape.names, tape.outputs))
    return replace(tape, leaves=leaves, names=names, outputs=outputs)


def expressions(tape: Tape, *, inline: bool = False) -> dict[int, Expression]:
    """The right-hand side of every instruction as a syntax tree.

    ``inline`` folds unnamed values that are used just once into their user; they get no entry.
    """
    names = labels(tape)
    uses = Counter(operand for _, operands in tape.instructions for operand in operands)
    uses.update(dict.fromkeys(tape.outputs.values(), 2))
    first = len(tape.leaves)
    trees: dict[int, Expression] = {}
    folded: set[int] = set()

    def operand_tree(index: int) -> Expression:
        if index < first and tape.leaves[index].kind == "constant":
            return Number(tape.leaves[index].value)
        if index in folded:
            return trees.pop(index)
        return Name(names[index])

    for position, (primitive, operands) in enumerate(tape.instructions):
        index, name = first + position, primitive
        if isinstance(primitive, Structural) and primitive.kind in ("sum", "largest"):
            of_all = len(primitive.setting[0]) == len(shape_of(tape, operands[0]))
            name = primitive.kind if of_all else primitive
        trees[index] = Apply(name, tuple(operand_tree(o) for o in operands))
        if inline and uses[index] == 1 and index not in tape.labels:
            folded.add(index)
    return trees


def leaf_role(leaf: Leaf) -> str:
    """Return what a leaf is to a reader: an input, a parameter, a seed, a shift, a mask.

    >>> leaf_role(Leaf("column", "xa")), leaf_role(Leaf("scalar", "W1"))
    ('input', 'parameter')
    >>> leaf_role(Leaf("scalar", "dot.xa"))
    'seed'
    """
    kind, is_internal, _ = leaf.name.partition(".")
    if is_internal and (role := _INTERNAL_LEAVES.get(kind.rstrip("0123456789"))):
        return role
    return "input" if leaf.kind == "column" else "parameter"


def listing(tape: Tape) -> str:
    """Leaves, instructions and outputs, a line each; behind an array stands its shape."""
    names, shown = labels(tape), shown_names(tape)
    made = [f"{leaf_role(leaf):<10}{shown.get(leaf.name)}" for leaf in tape.leaves]
    made += [f"{names[index]} = {unparse(tree)}" for index, tree in expressions(tape).items()]
    if tape.shapes:
        wide = min(max(map(len, made)), _WIDEST)
        made = [
            f"{line:<{wide}}  # [{','.join(map(str, shape))}]" if shape else line
            for line, shape in zip(made, tape.shapes, strict=True)
        ]
    kinds = sorted(range(len(tape.leaves)), key=lambda k: tape.leaves[k].kind)
    lines = [made[k] for k in kinds if tape.leaves[k].kind != "constant"]
    lines += made[len(tape.leaves) :]
    for name, index in tape.outputs.items():
        value = _text(tape, names, index)
        lines.append(f"output    {shown[name]}" + (f" = {value}" if value != shown[name] else ""))
    return "\n".join(lines)


def code(
    tape: Tape, *, primal: Collection[str] = (), seeds: Mapping[str, float] | None = None
) -> str:
    """Return the tape as readable code, with values used once folded into their users.

    Args:
        tape: the program.
        primal: names of the original graph; a comment marks where their values end.
        seeds: values of seeds that are scalars, written as the first lines of the derivative.
    """
    scalar_seeds = {n: v for n, v in (seeds or {}).items() if not getattr(v, "shape", ())}
    names, shown = labels(tape), shown_names(tape)
    trees = expressions(tape, inline=True)
    signature = (*tape.of_kind("column"), *tape.of_kind("scalar"))
    given = (shown[name] for name in signature if name not in scalar_seeds)
    lines = [f"# given: {', '.join(given)}"]
    last_primal = max((i for n, i in tape.names.items() if n in primal and i in trees), default=-1)
    others: dict[int, list[str]] = {}  # lines such as bar_xy = bar_xz, by value
    for name, index in {**tape.names, **tape.outputs}.items():
        value = _text(tape, names, index)
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


def _text(tape: Tape, names: list[str], index: int) -> str:
    return names[index] or unparse(Number(tape.leaves[index].value))
