"""Syntax tree to text: as few parentheses as the grammar allows, and the text parses back."""

from __future__ import annotations

import math
from collections.abc import Callable

from cgprimer.core.language.syntax import Expression, Name, Number

# How tightly each operator binds, and how tightly its operands must bind to need no parentheses.
_INFIX = {
    "add": (" + ", 1, 1, 2),
    "sub": (" - ", 1, 1, 2),
    "mul": ("*", 2, 2, 3),
    "div": ("/", 2, 2, 3),
    "pow": ("^", 4, 5, 3),
}
_SIGN, _ATOM = 3, 5


def number_text(value: float) -> str:
    """The shortest text that reads back as the same double; ``2`` rather than ``2.0``.

    >>> number_text(2.0), number_text(0.1), number_text(1e300)
    ('2', '0.1', '1e+300')
    """
    if math.isfinite(value) and value == int(value) and abs(value) < 1e16:
        return f"-{-value:.0f}" if math.copysign(1.0, value) < 0 else f"{value:.0f}"
    return repr(float(value))


def unparse(expression: Expression, spelling: Callable[[str], str]) -> str:
    """The text of an expression; ``spelling`` says how a function is written.

    >>> from cgprimer.core.primitives.notation import parse_expression, unparse
    >>> unparse(parse_expression("((cd*xx)) + (xz**3)"))
    'cd*xx + xz^3'
    >>> unparse(parse_expression("(-xa)^2 - (xb - 1)"))
    '(-xa)^2 - (xb - 1)'
    """
    pieces: list[str] = []
    stack: list[str | tuple[Expression, int]] = [(expression, 0)]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            pieces.append(item)
            continue
        node, needed = item
        binding, parts = _parts(node, spelling)
        if binding < needed:
            parts = ["(", *parts, ")"]
        stack.extend(reversed(parts))
    return "".join(pieces)


def _parts(
    node: Expression, spelling: Callable[[str], str]
) -> tuple[int, list[str | tuple[Expression, int]]]:
    """How tightly a node binds, and its text in pieces, some still to be taken apart."""
    if isinstance(node, Name):
        return _ATOM, [node.name]
    if isinstance(node, Number):
        negative = math.copysign(1.0, node.value) < 0
        return _SIGN if negative else _ATOM, [number_text(node.value)]
    if node.primitive in _INFIX:
        symbol, binding, left, right = _INFIX[node.primitive]
        return binding, [(node.arguments[0], left), symbol, (node.arguments[1], right)]
    if node.primitive == "neg":
        return _SIGN, ["-", (node.arguments[0], _SIGN)]
    if node.primitive == "copy":
        return _parts(node.arguments[0], spelling)
    parts: list[str | tuple[Expression, int]] = [spelling(node.primitive), "("]
    for i, argument in enumerate(node.arguments):
        if i:
            parts.append(", ")
        parts.append((argument, 0))
    return _ATOM, [*parts, ")"]
