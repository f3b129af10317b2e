"""Declarations: the parser of ``input``, ``parameter`` and ``output`` statements.

The grammar is in ``parser.py``, which loads this module when a text declares a name.
"""

from __future__ import annotations

import math
from typing import Any

from cgprimer.core.language.initializers import (
    INITIALIZERS,
    MATRIX_INITIALIZERS,
    Initializer,
    initializer_arguments_error,
    initializer_shape_error,
)
from cgprimer.core.language.input_domains import (
    ONE_HOT,
    Domain,
    domain_contains,
    domain_shape_error,
    domain_values_error,
)
from cgprimer.core.language.syntax_tree import MAX_ELEMENTS, Declaration
from cgprimer.core.language.token_reader import TokenReader
from cgprimer.core.language.tokens import ENDS, function_name, is_number


def parse_declarations(reader: TokenReader, role: str) -> list[Declaration]:
    """Parse an ``input``, ``parameter`` or ``output`` statement after its keyword."""
    tokens = reader.tokens
    declared: list[Declaration] = []
    while not declared or tokens[reader.index] == ",":
        at = reader.index + 1
        name, value = tokens[at], None
        shape: list[int] = []
        if not name.isidentifier():
            reader.raise_error("unexpected_token", at, f"a name after '{role}'")
        reader.index = at + 1
        while tokens[reader.index] == ("," if shape else "["):
            shape.append(reader.parse_integer(reader.index + 1))
            if shape[-1] < 1 or (tokens[reader.index] not in (",", "]")):
                invalid = reader.index - (shape[-1] < 1) - (shape[-1] < 0)
                reader.raise_error(
                    "unexpected_token", invalid, f"the sizes of {name!r}, as in {name}[8,4]"
                )
        if math.prod(shape) > MAX_ELEMENTS:
            reader.raise_error("oversized_array", at)
        reader.index += bool(shape)
        equals = reader.index
        if tokens[equals] == "=":
            reader.index += 1
            first = function_name(tokens[reader.index]) or tokens[reader.index]
            if first.isidentifier():
                value = _parse_initializer(reader, role, name, tuple(shape))
            else:
                value = _parse_value(reader, name, tuple(shape))
        declared.append(Declaration(role, name, value, at, tuple(shape)))
        if "in" in (tokens[reader.index], function_name(tokens[reader.index])):
            declared[-1].domain = _parse_domain(reader, declared[-1], equals + 1)
    if tokens[reader.index] not in ENDS:
        reader.raise_error("invalid_end_of_declaration", reader.index, value is not None)
    return declared


def _parse_value(reader: TokenReader, name: str, shape: tuple[int, ...]) -> Any:
    """Parse a declared value: a number, or nested lists of numbers in the declared shape."""
    tokens, begin = reader.tokens, reader.index
    if shape and tokens[begin] == "[":
        rows: list[Any] = []
        while tokens[reader.index] == ("," if rows else "["):
            reader.index += 1
            while tokens[reader.index] == "\n":
                reader.index += 1
            if len(shape) > 1 and tokens[reader.index] != "[":
                reader.raise_error(
                    "unexpected_token", reader.index, f"'[': {name!r} has {len(shape)} more axes"
                )
            rows.append(_parse_value(reader, name, shape[1:]))
            while tokens[reader.index] == "\n":
                reader.index += 1
        if tokens[reader.index] != "]":
            reader.raise_error(
                "unexpected_token", reader.index, f"',' or ']' in the value of {name!r}"
            )
        if len(rows) != shape[0]:
            expected = f"expected {shape[0]} values of {name!r}"
            reader.raise_error("syntax_error", begin, f"{expected}, got {len(rows)}")
        reader.index += 1
        return tuple(rows)
    sign = tokens[begin]
    reader.index += sign in ("-", "+")
    if not is_number(tokens[reader.index]):
        example = f" (for an array, declare its shape: {name}[2] = [1, 2])"
        example *= tokens[reader.index] == "["
        reader.raise_error(
            "unexpected_token", reader.index, f"a number as the value of {name!r}{example}"
        )
    reader.index += 1
    return reader.parse_number(reader.index - 1) * (-1.0 if sign == "-" else 1.0)


def _parse_initializer(
    reader: TokenReader, role: str, name: str, shape: tuple[int, ...]
) -> Initializer:
    """Parse an initializer such as ``normal(0.1)`` after the equals sign of a declaration."""
    tokens, begin = reader.tokens, reader.index
    initializer = function_name(tokens[begin]) or tokens[begin]
    if initializer not in INITIALIZERS:
        reader.raise_error("unknown_initializer", begin, name)
    arguments: list[float] = []
    if "\n" in tokens[begin]:
        reader.raise_error("line_break_in_call", begin)
    if not function_name(tokens[begin]):
        reader.index += 1
    else:
        while not arguments or tokens[reader.index] == ",":
            reader.skip_line_breaks(reader.index + 1)
            arguments.append(_parse_value(reader, name, ()))
            reader.skip_line_breaks(reader.index)
        if tokens[reader.index] != ")":
            reader.raise_error(
                "unexpected_token", reader.index, f"',' or ')' in the arguments of {initializer!r}"
            )
        reader.index += 1
    if message := initializer_arguments_error(initializer, arguments):
        reader.raise_error("invalid_initializer_arguments", begin, message, initializer)
    if message := initializer_shape_error(initializer, shape):
        reader.raise_error("invalid_initializer_shape", begin, message, len(shape))
    if role == "input" and initializer in MATRIX_INITIALIZERS:
        reader.raise_error("initializer_for_input", begin, initializer)
    return Initializer(initializer, tuple(arguments))


def _parse_domain(reader: TokenReader, declared: Declaration, value_at: int) -> Domain:
    """Parse the domain of an input, such as ``in {0, 1}``, and check the declared value."""
    tokens, begin = reader.tokens, reader.index
    if declared.role != "input":
        reader.raise_error("domain_without_input", begin, declared.role, declared.name)
    domain: Domain = ONE_HOT
    if tokens[begin : begin + 4] == ["in", "one", "-", "hot"]:
        reader.index = begin + 4
    elif tokens[begin : begin + 2] == ["in", "{"]:
        domain = _parse_finite_set(reader, declared.name)
    else:
        reader.raise_error("missing_domain", begin + (tokens[begin] == "in"))
    if message := domain_shape_error(domain, declared.shape):
        reader.raise_error("syntax_error", begin + 1, message)
    if isinstance(declared.value, Initializer):
        reader.raise_error("initializer_with_domain", value_at, declared.name)
    if declared.value is not None and not domain_contains(domain, declared.value):
        reader.raise_error("value_outside_domain", value_at, declared.name, domain)
    return domain


def _parse_finite_set(reader: TokenReader, name: str) -> tuple[float, ...]:
    """Parse a finite set of numbers in braces, such as ``{0, 1}``."""
    tokens, begin = reader.tokens, reader.index + 1
    values: list[float] = []
    ends: list[int] = []
    reader.index = begin
    while tokens[reader.index] == ("," if values else "{"):
        reader.skip_line_breaks(reader.index + 1)
        if tokens[reader.index] == "}" and not values:
            break
        values.append(_parse_value(reader, name, ()))
        ends.append(reader.index - 1)
        reader.skip_line_breaks(reader.index)
    if tokens[reader.index] != "}":
        reader.raise_error(
            "unexpected_token", reader.index, f"',' or '}}' in the domain of {name!r}"
        )
    message, index = domain_values_error(values)
    if message and not values:
        reader.raise_error("empty_domain", begin, message)
    if message:
        reader.raise_error("syntax_error", ends[index], message)
    reader.index += 1
    return tuple(values)
