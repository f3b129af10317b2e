"""Criteria for problems that can be solved by hand: numbers with few digits, no degenerate cases.

For the difficulties 1, 2 and 3, every answer is exact with 3, 4 and 4 significant digits, and at
most 100, 1,000 and 1,000 in absolute value. If functions beyond arithmetic make that impossible,
answers are rounded to four digits, and lie between 1/1000 and 10,000 in absolute value. In each
column, at most a third of the numbers are 0, the last number is not 0, two numbers of different
absolute value are neither 0 nor 1, and half of more than three numbers are neither 0 nor 1. All
numbers are finite, no matrix is zero, no operand is at a kink, and the operands of ``sigmoid``,
``tanh`` and ``exp`` are at most 5 in absolute value.
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

ROUNDED = 4  #: significant digits of answers that are not exact
_MAX_DIGITS, _MAX_EXACT = {1: 3, 2: 4, 3: 4}, {1: 100.0, 2: 1000.0, 3: 1000.0}
_MIN_ROUNDED, _MAX_ROUNDED = 1e-3, 1e4
_INTEGERS = (1.0, 2.0, 3.0, -1.0, -2.0, 2.0, 4.0, 5.0, -3.0, 3.0)
_SMALL = (0.5, -0.5, 1.0, -1.0)
_HALVES = (0.5, -0.5, 1.5, 2.5)
_ARITHMETIC = ("add", "sub", "mul", "neg", "pow", "copy", "relu", "max", "min", "abs", "div")
_SATURATING, _MAX_OPERAND = ("sigmoid", "tanh", "exp", "erf", "softplus", "gelu"), 5.0
_REDUCTIONS = ("sum", "largest", "matmul")


def sample_value(random: Random, difficulty: int) -> float:
    """Sample a simple number: an integer or, from difficulty 2 on, possibly a half.

    Difficulty 0 stands for small values.

    >>> [sample_value(Random(seed), 1) for seed in range(4)]
    [4.0, 3.0, 1.0, -1.0]
    """
    return random.choice((_SMALL, _INTEGERS, _INTEGERS + _HALVES, _INTEGERS + _HALVES)[difficulty])


def declare_values(graph: ExpressionGraph, values: dict[str, Any]) -> str:
    """Return the text of a graph with the given values of inputs and parameters.

    Values are scalars, or nested tuples for arrays.

    >>> from cgprimer.core.graph import parse
    >>> print(declare_values(parse("parameter ab = 7; xw = ab*xa"), {"xa": 2.0, "ab": 3.0}))
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
    statements = tuple(
        statement
        for statement in graph.program.statements
        if not (isinstance(statement, Declaration) and statement.role in ("input", "parameter"))
    )
    return "\n".join([*lines, format_program(replace(graph.program, statements=statements))])


def list_answers(worksheet: Worksheet) -> list[float]:
    """Return all numbers that a worksheet asks for, including all elements of arrays."""
    blanks = [blank for blank in worksheet.blanks if blank.form in ("number", "array")]
    return [number for blank in blanks for number in list_numbers(blank.value)]


def is_exact(worksheet: Worksheet, difficulty: int) -> bool:
    """Return whether all answers to a worksheet are exact numbers with few digits."""
    digits = _MAX_DIGITS[difficulty]
    return all(
        abs(v) <= _MAX_EXACT[difficulty] and float(format_number(v, digits)) == v
        for v in list_answers(worksheet)
    )


def is_readable(worksheet: Worksheet) -> bool:
    """Return whether no nonzero answer to a worksheet is very small or very large."""
    return all(v == 0 or _MIN_ROUNDED <= abs(v) <= _MAX_ROUNDED for v in list_answers(worksheet))


def is_degenerate(worksheet: Worksheet, tape: Tape, point: dict[str, Any]) -> bool:
    """Return whether too many answers to a worksheet are equal, or a derivative is undefined.

    Args:
        worksheet: the worksheet.
        tape: the tape of its graph.
        point: the values of the inputs and parameters.
    """
    seeds = {b.name for b in worksheet.blanks if isinstance(b.tree, Number)}
    if not all(abs(v) < float("inf") for v in list_answers(worksheet)):  # nan, too
        return True
    for column in dict.fromkeys(blank.column for blank in worksheet.blanks):
        values = [
            b.value
            for b in worksheet.blanks
            if (b.form, b.column) == ("number", column) and b.name not in seeds
        ]
        if values and (not values[-1] or 3 * values.count(0.0) > len(values)):
            return True
        if len(values) > 2 and len({abs(v) for v in values} - {0.0, 1.0}) < 2:
            return True
        if len(values) > 3 and 2 * sum(abs(v) in (0.0, 1.0) for v in values) > len(values):
            return True
    empty = any(b.form == "array" and not b.value.any() for b in worksheet.blanks)
    return empty or is_at_kink(tape, point)


def is_at_kink(tape: Tape, point: dict[str, Any]) -> bool:
    """Return whether any function on a tape is evaluated at a kink or in saturation.

    >>> from cgprimer import parse, tape
    >>> is_at_kink(tape(parse("xw = relu(xa - 1)")), {"xa": 1.0})
    True
    """
    import numpy as np

    values, first = values_of(tape, point), len(tape.leaves)
    needed = reachable(tape, tape.outputs.values())
    for index, (name, operands) in enumerate(tape.instructions, first):
        if not np.all(np.isfinite(values[index])):
            return True
        if name in _SATURATING and np.any(np.abs(np.asarray(values[operands[0]])) > _MAX_OPERAND):
            return True
        is_smooth = (
            not isinstance(name, str) or name in _REDUCTIONS or find_primitive(name).analytic
        )
        if not needed[index] or is_smooth:
            continue
        arguments = [values[o] for o in operands]
        pairs = [(arguments[0], 0.0)] if len(arguments) == 1 else list(pairwise(arguments))
        if any(np.any(np.abs(np.asarray(a) - b) < 1e-9) for a, b in pairs):
            return True
    return False


def uses_functions(graph: ExpressionGraph) -> bool:
    """Return whether a graph has functions beyond arithmetic, whose values must be rounded."""
    nodes = [node for tree in graph.definitions.values() for node in postorder(tree)]
    used = [node.primitive for node in nodes if isinstance(node, Apply)]
    return any(type(name) is str and name not in (*_ARITHMETIC, *_REDUCTIONS) for name in used)
