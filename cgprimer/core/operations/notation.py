"""Parsing and printing of expressions with the functions of the primitive table.

A printed expression has as few parentheses as possible and parses to the same tree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import groupby
from typing import Any, TypeAlias

from cgprimer.core.language import parser
from cgprimer.core.language.initializers import Initializer
from cgprimer.core.language.input_domains import ONE_HOT, Domain
from cgprimer.core.language.syntax_tree import (
    Apply,
    Definition,
    Expression,
    Name,
    Number,
    Operator,
    Program,
    Shape,
    operator_name,
)
from cgprimer.core.operations.primitive_registry import ARRAY_FUNCTIONS, FUNCTIONS, find_primitive

# For each operator its string, its precedence, and the minimum precedence at which the left and the
# right operand need no parentheses.
_INFIX = {
    "add": (" + ", 1, 1, 2), "sub": (" - ", 1, 1, 2),
    "mul": ("*", 2, 2, 3), "div": ("/", 2, 2, 3), "pow": ("^", 4, 5, 3),
    "matmul": (" @ ", 2, 2, 3),
}  # fmt: skip
_CONDITION, _SUM, _SIGN, _ATOM = 0, 1, 3, 5
_Pieces: TypeAlias = list[str | tuple[Expression, int]]  # strings, and nodes with a precedence


def parse_expression(text: str, source_name: str = "<expression>") -> Expression:
    """Parse an expression into a syntax tree.

    Raises:
        SourceError: the string is not a valid expression.
    """
    return parser.parse_expression(text, FUNCTIONS, source_name)


def number_text(value: float) -> str:
    """Format a float as the shortest string that parses to the same value; ``2``, not ``2.0``.

    >>> number_text(2.0), number_text(0.1), number_text(1e300)
    ('2', '0.1', '1e+300')
    """
    if math.isfinite(value) and value == int(value) and abs(value) < 1e16:
        return f"{value:.0f}"
    return repr(float(value))


def unparse(expression: Expression) -> str:
    """Format an expression as a string that parses to the same syntax tree.

    >>> unparse(parse_expression("((cd*xx)) + (xz**3)"))
    'cd*xx + xz^3'
    >>> unparse(parse_expression("(-xa)^2 - (xb - 1)"))
    '(-xa)^2 - (xb - 1)'
    """
    return _format_expression(expression, _split_node)


def readable(expression: Expression) -> str:
    """Format an expression for human readers, with conditions such as ``1 if x < 0 else 0``.

    Derivatives of ``relu`` and ``max`` have factors such as ``less(0, a)``, which is 1 or 0. The
    returned string cannot be parsed. It omits the case in which two equal operands of ``max`` or
    ``min`` share the gradient.

    >>> readable(parse_expression("bar_y*where(equal(a, b), 0.5, less(a, b))"))
    'bar_y*(1 if b > a else 0)'
    >>> readable(parse_expression("less(x, 0)*k")), readable(parse_expression("where(v1, 0.5, v2)"))
    ('(1 if x < 0 else 0)*k', '0.5 if v1 != 0 else v2')
    """
    return _format_expression(expression, _split_readable_node)


def _format_expression(
    expression: Expression, split_node: Callable[[Expression], tuple[int, _Pieces]]
) -> str:
    """Format an expression with a function that splits a node into strings and operands."""
    pieces: list[str] = []
    stack: _Pieces = [(expression, 0)]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            pieces.append(item)
            continue
        node, minimum = item
        precedence, parts = split_node(node)
        if precedence < minimum:
            parts = ["(", *parts, ")"]
        stack.extend(reversed(parts))
    return "".join(pieces)


def _split_readable_node(node: Expression) -> tuple[int, _Pieces]:
    """Split a node into strings and operands, with conditions like ``1 if x < 0 else 0``."""
    if not isinstance(node, Apply) or node.primitive not in ("less", "equal", "where"):
        return _split_node(node)
    if node.primitive != "where":
        return _CONDITION, ["1 if ", *_split_condition(node), " else 0"]
    test, yes, no = node.arguments
    if _is_tie_partial(test, yes, no):
        return _split_readable_node(no)
    return _CONDITION, [(yes, _SUM), " if ", *_split_condition(test), " else ", (no, _CONDITION)]


def _split_condition(test: Expression) -> _Pieces:
    """Split a comparison into strings and operands; constants are on the right-hand side."""
    if not (isinstance(test, Apply) and test.primitive in ("less", "equal")):
        return [(test, _SUM), " != 0"]
    left, right = ((argument, _SUM) for argument in test.arguments)
    if test.primitive == "equal":
        return [left, " == ", right]
    return [left, " < ", right] if isinstance(right[0], Number) else [right, " > ", left]


def _is_tie_partial(test: Expression, yes: Expression, no: Expression) -> bool:
    """Return whether ``where(test, yes, no)`` is a partial derivative of ``max`` or ``min``."""
    if not (isinstance(test, Apply) and isinstance(no, Apply) and isinstance(yes, Number)):
        return False
    if (test.primitive, yes.value, no.primitive) != ("equal", 0.5, "less"):
        return False
    return sorted(map(unparse, test.arguments)) == sorted(map(unparse, no.arguments))


def _split_node(node: Expression) -> tuple[int, _Pieces]:
    """Split a node into its precedence, and its strings and operands in printing order."""
    if isinstance(node, Name):
        return _ATOM, [node.name]
    if isinstance(node, Number):
        negative = math.copysign(1.0, node.value) < 0
        return _SIGN if negative else _ATOM, [number_text(node.value)]
    operator = _INFIX.get(operator_name(node.primitive))
    if operator is not None:
        symbol, precedence, left, right = operator
        return precedence, [(node.arguments[0], left), symbol, (node.arguments[1], right)]
    if node.primitive == "neg":
        return _SIGN, ["-", (node.arguments[0], _SIGN)]
    if node.primitive == "copy":
        return _split_node(node.arguments[0])
    if isinstance(node.primitive, Operator):
        return _ATOM, _split_operator(node.primitive, node)
    listed = [part for argument in node.arguments for part in (", ", (argument, 0))]
    row = ARRAY_FUNCTIONS.get(node.primitive) or find_primitive(node.primitive)
    return _ATOM, [row.spelling, "(", *listed[1:], ")"]


def _split_operator(operator: Operator, node: Apply) -> _Pieces:
    """Split an index expression or array operation into operands and settings (as strings)."""
    settings = operator.format_settings()
    if operator.is_index:
        return [(node.arguments[0], _ATOM), f"[{','.join(settings)}]"]
    listed = [part for argument in node.arguments for part in (", ", (argument, 0))]
    return [operator.spelling, "(", *listed[1:], *(f", {setting}" for setting in settings), ")"]


def format_value(value: Any) -> str:
    """Format the value of a declaration: a number, an array or an initializer.

    >>> format_value((1.0, 0.5)), format_value(Initializer("normal", (0.1,)))
    ('[1, 0.5]', 'normal(0.1)')
    """
    if isinstance(value, Initializer):
        arguments = ", ".join(map(number_text, value.arguments))
        return f"{value.name}({arguments})" if arguments else value.name
    if isinstance(value, tuple):
        return f"[{', '.join(map(format_value, value))}]"
    return number_text(value)


def format_domain(domain: Domain) -> str:
    """Format the domain of an input as in a declaration.

    >>> format_domain((-1.0, 1.0)), format_domain("one-hot")
    ('{-1, 1}', 'one-hot')
    """
    if domain == ONE_HOT:
        return ONE_HOT
    return f"{{{', '.join(number_text(float(value)) for value in domain)}}}"


def format_declaration(name: str, value: Any, shape: Shape, domain: Domain | None = None) -> str:
    """Format a declaration without its keyword ``input``, ``parameter`` or ``output``.

    >>> format_declaration("y", (0.0, 1.0), (2,), "one-hot")
    'y[2] = [0, 1] in one-hot'
    """
    sizes = f"[{','.join(map(str, shape))}]" if shape else ""
    declared = "" if value is None else f" = {format_value(value)}"
    return name + sizes + declared + ("" if domain is None else f" in {format_domain(domain)}")


def format_program(program: Program) -> str:
    """Format all statements of a program, merging consecutive declarations of one kind."""
    lines: list[str] = []
    for role, statements in groupby(program.statements, lambda s: getattr(s, "role", "")):
        parts = []
        for s in statements:
            if isinstance(s, Definition):
                parts.append(f"{s.name} = {unparse(s.expression)}")
            else:
                parts.append(format_declaration(s.name, s.value, s.shape, s.domain))
        lines += [f"{role} {', '.join(parts)}"] if role else parts
    return "\n".join(lines)
