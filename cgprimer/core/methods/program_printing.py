"""Format derivative programs as readable code, with nested expressions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Any

from cgprimer.core.language.syntax_tree import Number
from cgprimer.core.operations.notation import unparse
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_printing import (
    assign_printed_names,
    build_expression_trees,
    format_value,
    labels,
)
from cgprimer.errors import pluralize
from cgprimer.support.value_names import Element, format_name


def format_code(
    tape: Tape, *, primal: Collection[str] = (), seeds: Mapping[str, float] | None = None
) -> str:
    """Format a tape as readable code, with values that are used once nested in expressions.

    Args:
        tape: the tape.
        primal: the names of the original graph; a comment marks the end of their definitions.
        seeds: the values of scalar seeds, printed as the first lines of the derivative.
    """
    scalar_seeds = {n: v for n, v in (seeds or {}).items() if not getattr(v, "shape", ())}
    names, shown = labels(tape), assign_printed_names(tape)
    trees = build_expression_trees(tape, inline=True)
    signature = (*tape.of_kind("column"), *tape.of_kind("scalar"))
    arguments = (shown[name] for name in signature if name not in scalar_seeds)
    lines = [f"# given: {', '.join(arguments)}"]
    last_primal = max((i for n, i in tape.names.items() if n in primal and i in trees), default=-1)
    others: dict[int, list[str]] = {}  # lines such as bar_xy = bar_xz, by index
    for name, index in {**tape.names, **tape.outputs}.items():
        value = format_value(tape, names, index)
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


def format_program(
    tape: Tape,
    primal: Collection[str],
    seeds: Mapping[str, Any],
    passes: Sequence[str],
    paths: Mapping[tuple[str, str], Collection[tuple[str, ...]]] | None,
) -> str:
    """Format a derivative program as readable code, followed by comments with passes or paths.

    Args:
        tape: the tape of the program.
        primal: the names of the original graph; a comment marks the end of their definitions.
        seeds: the values of seeds, printed as the first lines of the derivative.
        passes: a description of each pass; "" if there is nothing to describe.
        paths: the paths of the method path-sum from each input to each output; else None.
    """
    lines = [format_code(tape, primal=primal, seeds=seeds)]
    if paths is None:
        lines.append(f"# {pluralize(len(passes), 'pass', 'passes')}")
        if len(passes) > 1:
            lines += [f"#   {n}: {text}" for n, text in enumerate(passes, start=1) if text]
    else:
        unique = set(chain.from_iterable(paths.values()))
        by_length = sorted(unique, key=lambda path: (path[0], len(path), path))
        lines.append(f"# {pluralize(len(unique), 'path', 'paths')}:")
        lines += [f"#   {' -> '.join(path)}" for path in by_length]
    return "\n".join(lines)


def format_seeds(seeds: Mapping[str, Any]) -> str:
    """Describe a pass by the seeds, or elements of array seeds, that are set to 1.

    >>> format_seeds({"dot.xa": 1.0, "dot.xb": 0.0})
    'dot_xa = 1, the other seeds 0'
    """
    ones = []
    for seed, value in seeds.items():
        name = format_name(seed)
        if not getattr(value, "shape", ()):
            ones += [name] if value else []
        else:
            import numpy as np

            ones += [str(Element(name, tuple(index))) for index in np.argwhere(value)]
    return f"{', '.join(ones)} = 1, the other seeds 0" if ones else ""
