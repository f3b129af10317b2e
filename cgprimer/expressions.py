"""Expressions: parse text to syntax trees, evaluate them, substitute names, print them again.

A tree consists of :class:`Number`, :class:`Name` and :class:`Apply` nodes. Trees are immutable and
can share nodes. All functions are iterative, so the depth of a tree is not limited.

>>> from cgprimer import expressions
>>> tree = expressions.parse_expression("cd*xx + xz**3")
>>> expressions.unparse(expressions.substitute(tree, {"xx": expressions.Number(2.0)}))
'cd*2 + xz^3'
>>> expressions.evaluate(tree, {"cd": 3.0, "xx": 0.25, "xz": 2.0})
8.75
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cgprimer.core.graph import ExpressionGraph, parse
from cgprimer.core.language.syntax_tree import (
    Apply,
    Declaration,
    Definition,
    Expression,
    Name,
    Number,
    Program,
    Shape,
    fold,
    names_in,
    postorder,
    substitute,
)
from cgprimer.core.operations.notation import number_text, parse_expression, readable, unparse
from cgprimer.errors import MissingValueError
from cgprimer.support.array_values import Value, convert_value
from cgprimer.support.value_names import Element, element_hint, parse_element

__all__ = [
    "Apply",
    "Declaration",
    "Definition",
    "Element",
    "Expression",
    "ExpressionGraph",
    "Name",
    "Number",
    "Program",
    "Shape",
    "evaluate",
    "fold",
    "names_in",
    "number_text",
    "parse",
    "parse_element",
    "parse_expression",
    "postorder",
    "readable",
    "substitute",
    "unparse",
]


def evaluate(expression: Expression | str, values: Mapping[str, Any] | None = None) -> Value:
    """Evaluate an expression.

    Args:
        expression: a syntax tree, or the text of an expression.
        values: scalars or arrays, keyed by name.

    Returns:
        A float, or an array in the shape of the result. Functions return nan outside their domain
        and infinity at poles.

    Raises:
        MissingValueError: a name has no value.
        ShapeError: the operands of an operation have incompatible shapes.
        SourceError: the text is not a valid expression.

    >>> evaluate("sin(k)^2 + cos(k)^2", {"k": 1.0})
    1.0
    >>> evaluate("W @ x", {"W": [[1.0, 2.0], [3.0, 4.0]], "x": [1.0, 1.0]})
    array([3., 7.])
    """
    from cgprimer.core.evaluation.evaluator import values_of
    from cgprimer.core.tape.builder import Builder
    from cgprimer.core.tape.lowering import emit_vertex

    tree = parse_expression(expression) if isinstance(expression, str) else expression
    values = {name: convert_value(name, value) for name, value in (values or {}).items()}
    builder = Builder(simplify=False)
    for name in names_in(tree):
        if name not in values:
            raise MissingValueError(f"missing value for {name}", hint=element_hint(name, values))
        builder.leaf("scalar", name, shape=getattr(values[name], "shape", ()))
    result = emit_vertex(builder, "result.value", tree)
    tape = builder.finish({"result.value": result})
    computed = values_of(tape, values)[tape.outputs["result.value"]]
    return computed if getattr(computed, "shape", ()) else float(computed)
