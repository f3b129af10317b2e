"""Which problems a student can work by hand: numbers of few digits, and nothing degenerate.

The criterion, by difficulty: every number to find is exact in 3, 4 and 4 digits and at most 100,
1,000 and 1,000 in size; where a function beyond arithmetic makes that impossible, four digits are
asked for, and numbers lie between 1/1000 and 10,000 in size. In each column at most a third is 0
and the last is not, two numbers of different size are neither 0 nor 1, and of more than three half
are neither; nothing is infinite, no matrix is all zero, no operand stands at a kink, and those of
``sigmoid``, ``tanh`` and ``exp`` are at most 5 in size.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

from cgprimer.core.operations import find_primitive
from cgprimer.core.operations.notation import format_declaration, format_program
from cgprimer.course.checks.sheets.sheet_problems import Worksheet, list_numbers
from cgprimer.expressions import Apply, Declaration, ExpressionGraph, Number, postorder
from cgprimer.support.number_format import format_number
from cgprimer.tapes import Tape, reachable, values_of

ROUNDED = 4  #: digits that are asked for where numbers are not exact
_DIGITS, _LARGEST = {1: 3, 2: 4, 3: 4}, {1: 100.0, 2: 1000.0, 3: 1000.0}
_SMALLEST, _LARGEST_ROUNDED = 1e-3, 1e4
_WHOLE = (1.0, 2.0, 3.0, -1.0, -2.0, 2.0, 4.0, 5.0, -3.0, 3.0)
_SMALL = (0.5, -0.5, 1.0, -1.0)
_HALVES = (0.5, -0.5, 1.5, 2.5)
_ARITHMETIC = ("add", "sub", "mul", "neg", "pow", "copy", "relu", "max", "min", "abs", "div")
_SATURATING, _STEEP = ("sigmoid", "tanh", "exp", "erf", "softplus", "gelu"), 5.0
_FLAT = ("sum", "largest", "matmul")


def drawn_value(draw: Random, difficulty: int) -> float:
    """A number for a declaration: whole at first, then halves among them; small ones at 0.

    >>> [drawn_value(Random(seed), 1) for seed in range(4)]
    [4.0, 3.0, 1.0, -1.0]
    """
    return draw.choice((_SMALL, _WHOLE, _WHOLE + _HALVES, _WHOLE + _HALVES)[difficulty])


def with_values(graph: ExpressionGraph, values: dict[str, Any]) -> str:
    """The text of a graph that declares these values; numbers, or nested tuples of them.

    >>> from cgprimer.core.graph import parse
    >>> print(with_values(parse("parameter ab = 7; xw = ab*xa"), {"xa": 2.0, "ab": 3.0}))
    input xa = 2
    parameter ab = 3
    xw = ab*xa
    """
    lines = []
    for role, names in (("input", graph.inputs), ("parameter", graph.parameters)):
        texts = [
            format_declaration(n, values[n], graph.shapes.get(n, ()), graph.domains.get(n))
            for n in names
        ]
        lines += [f"{role} {', '.join(texts)}"] if texts else []
    given, own = ("input", "parameter"), graph.program.statements
    rest = [s for s in own if not (isinstance(s, Declaration) and s.role in given)]
    return "\n".join([*lines, format_program(replace(graph.program, statements=tuple(rest)))])


def numbers_in(made: Worksheet) -> list[float]:
    """Every number that is to be found, those of matrices one by one."""
    blanks = [blank for blank in made.blanks if blank.form in ("number", "array")]
    return [number for blank in blanks for number in list_numbers(blank.value)]


def is_exact(made: Worksheet, difficulty: int) -> bool:
    """Whether every number to find, and that is given, is short."""
    most = _DIGITS[difficulty]
    return all(
        abs(v) <= _LARGEST[difficulty] and float(format_number(v, most)) == v
        for v in numbers_in(made)
    )


def is_readable(made: Worksheet) -> bool:
    """Whether every number can be written in four digits without a power of ten."""
    return all(v == 0 or _SMALLEST <= abs(v) <= _LARGEST_ROUNDED for v in numbers_in(made))


def is_degenerate(made: Worksheet, tape: Tape, point: dict[str, Any]) -> bool:
    """Whether there is nothing to learn from it, or something that has no clear answer."""
    seeds = {b.name for b in made.blanks if isinstance(b.tree, Number)}
    if not all(abs(v) < float("inf") for v in numbers_in(made)):  # nan, too
        return True
    for column in dict.fromkeys(blank.column for blank in made.blanks):
        own = [b for b in made.blanks if (b.form, b.column) == ("number", column)]
        values = [blank.value for blank in own if blank.name not in seeds]
        if values and (not values[-1] or 3 * values.count(0.0) > len(values)):
            return True
        if len(values) > 2 and len({abs(v) for v in values} - {0.0, 1.0}) < 2:
            return True
        if len(values) > 3 and 2 * sum(abs(v) in (0.0, 1.0) for v in values) > len(values):
            return True
    empty = any(b.form == "array" and not b.value.any() for b in made.blanks)
    return empty or at_a_kink(tape, point)


def at_a_kink(tape: Tape, point: dict[str, Any]) -> bool:
    """Whether ``relu``, ``max`` and the like have no derivative there, or ``tanh`` is flat.

    >>> from cgprimer import parse, tape
    >>> at_a_kink(tape(parse("xw = relu(xa - 1)")), {"xa": 1.0})
    True
    """
    import numpy as np

    values, first = values_of(tape, point), len(tape.leaves)
    needed = reachable(tape, tape.outputs.values())
    for index, (name, operands) in enumerate(tape.instructions, first):
        if not np.all(np.isfinite(values[index])):
            return True
        if name in _SATURATING and np.any(np.abs(np.asarray(values[operands[0]])) > _STEEP):
            return True
        flat = not isinstance(name, str) or name in _FLAT or find_primitive(name).analytic
        if not needed[index] or flat:
            continue
        given = [values[o] for o in operands]
        pairs = [(given[0], 0.0)] if len(given) == 1 else list(pairwise(given))
        if any(np.any(np.abs(np.asarray(a) - b) < 1e-9) for a, b in pairs):
            return True
    return False


def has_functions(graph: ExpressionGraph) -> bool:
    """Whether a function beyond arithmetic makes numbers that no short decimal is."""
    nodes = [node for tree in graph.definitions.values() for node in postorder(tree)]
    used = [node.primitive for node in nodes if isinstance(node, Apply)]
    return any(type(name) is str and name not in (*_ARITHMETIC, *_FLAT) for name in used)
