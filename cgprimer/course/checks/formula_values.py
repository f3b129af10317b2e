"""Evaluate formulas of students at points with thirty digits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cgprimer.core.language.syntax_tree import Operator
from cgprimer.core.operations import float_arithmetic, symbolic_arithmetic
from cgprimer.course.checks.gradient_questions import Question
from cgprimer.course.checks.question_points import Points
from cgprimer.errors import UsageError
from cgprimer.expressions import Apply, Expression, Name, fold, names_in, unparse

Array = Any
_DIGITS = 30
_MAX_EXPONENT = 20_000  # of 2 in an intermediate result; the range of doubles ends at 1024


def evaluate_formula(question: Question, tree: Expression, points: Points) -> Array:
    """Return the values of a formula at all points, with nan where the formula is undefined.

    Raises:
        UsageError: the formula uses a variable that is computed by a graph of arrays, or uses an
            array as a scalar.
    """
    import mpmath

    graph, values = question.graph, []
    variables = names_in(tree).keys() & graph.definitions.keys()
    if variables and graph.shapes:
        raise UsageError(
            f"answers for graphs with arrays must not contain computed variables, got"
            f" {min(variables)}",
            hint="write the formula in terms of inputs and parameters",
        )
    with mpmath.workdps(_DIGITS):
        for index in range(len(points)):
            names: dict[str, Any] = {"pi": mpmath.pi(), "e": mpmath.e()}
            names |= {n: mpmath.mpf(float(v[index])) for n, v in points.arguments.items()}
            if variables:
                for name, definition in graph.definitions.items():
                    names[name] = _evaluate(definition, names)
            values.append(float(_evaluate(tree, names)))
    return np.array(values)


def _evaluate(tree: Expression, values: Mapping[str, Any]) -> Any:
    """Evaluate an expression tree with mpmath, given the values of its names."""
    import mpmath

    def evaluate_leaf(node: Any) -> Any:
        """Return the value of a name or constant; return the name of an array unchanged."""
        if isinstance(node, Name):
            return values.get(node.name, node)
        return mpmath.mpf(repr(node.value))

    def apply_operation(primitive: str | Operator, arguments: list[Any]) -> Any:
        """Apply a primitive to its arguments; an index primitive looks up an array element."""
        if not isinstance(primitive, str):
            return _find_element(primitive, arguments, values)
        try:
            return _apply_bounded(primitive, arguments)
        except UsageError:  # a primitive that a user defined: with the digits of a double
            return mpmath.mpf(float_arithmetic.float_function(primitive)(*map(float, arguments)))

    value = fold(tree, evaluate_leaf, apply_operation)
    if isinstance(value, Name):
        raise UsageError(
            f"{value.name} is an array: write one of its elements, such as {value.name}[0]"
        )
    return value


def _find_element(index: Operator, arguments: list[Any], values: Mapping[str, Any]) -> Any:
    """Look up the value of an array element, such as ``W[0,1]``."""
    if not all(isinstance(argument, Name) for argument in arguments):
        settings = ", ".join(index.format_settings())
        raise UsageError(f"cannot index a scalar with [{settings}]")
    element = unparse(Apply(index, tuple(arguments)))
    if element not in values:
        raise UsageError(f"{element} is not a scalar")
    return values[element]


def _apply_bounded(primitive: str, arguments: list[Any]) -> Any:
    """Apply a primitive to mpmath numbers; replace huge results by infinity and tiny ones by 0.

    Results far outside the range of doubles become infinite or 0, so that no power takes long.
    """
    import mpmath

    if primitive == "pow" and all(map(mpmath.isfinite, arguments)) and arguments[0]:
        base, exponent = arguments
        bits = exponent * mpmath.log(abs(base), 2)
        if abs(bits) > _MAX_EXPONENT:
            is_negative = base < 0 and exponent % 2 == 1
            limit = mpmath.inf if bits > 0 else mpmath.mpf(0)
            return mpmath.nan if base < 0 and exponent % 1 else -limit if is_negative else limit
    value = symbolic_arithmetic.mpmath_function(primitive)(*arguments)
    if not mpmath.isfinite(value) or not value:
        return value
    magnitude = mpmath.mag(value)
    if abs(magnitude) <= _MAX_EXPONENT:
        return value
    return mpmath.sign(value) * mpmath.inf if magnitude > 0 else mpmath.mpf(0)
