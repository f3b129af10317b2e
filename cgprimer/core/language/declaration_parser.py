"""Declarations: the parser of ``input``, ``parameter`` and ``output`` statements.

The grammar is in ``parser.py``, which loads this module when a text declares a name.
"""

from __future__ import annotations

import math
from typing import Any

from cgprimer.core.language.initializers import (
    INITIALIZERS,
    NEEDING_FANS,
    Initializer,
    arguments_problem,
)
from cgprimer.core.language.initializers import shape_problem as initializer_shape_problem
from cgprimer.core.language.input_domains import (
    ONE_HOT,
    Domain,
    contains,
    set_problem,
    shape_problem,
)
from cgprimer.core.language.syntax_tree import MAX_ELEMENTS, Declaration
from cgprimer.core.language.token_reader import TokenReader
from cgprimer.core.language.tokens import ENDS, function_name, is_number


def parse_declarations(reader: TokenReader, role: str) -> list[Declaration]:
    """Parse a statement that declares names, from its keyword on."""
    tokens = reader.tokens
    declared: list[Declaration] = []
    while not declared or tokens[reader.index] == ",":
        at = reader.index + 1
        name, value = tokens[at], None
        shape: list[int] = []
        if not name.isidentifier():
            reader.fail("expected", at, f"a name after '{role}'")
        reader.index = at + 1
        while tokens[reader.index] == ("," if shape else "["):
            shape.append(reader.integer(reader.index + 1))
            if shape[-1] < 1 or (tokens[reader.index] not in (",", "]")):
                invalid = reader.index - (shape[-1] < 1) - (shape[-1] < 0)
                reader.fail("expected", invalid, f"the sizes of {name!r}, as in {name}[8,4]")
        if math.prod(shape) > MAX_ELEMENTS:
            reader.fail("too_large", at)
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
        reader.fail("invalid_end_of_declaration", reader.index, value is not None)
    return declared


def _parse_value(reader: TokenReader, name: str, shape: tuple[int, ...]) -> Any:
    """Parse a declared value: a number, or nested brackets that match the shape."""
    tokens, begin = reader.tokens, reader.index
    if shape and tokens[begin] == "[":
        rows: list[Any] = []
        while tokens[reader.index] == ("," if rows else "["):
            reader.index += 1
            while tokens[reader.index] == "\n":
                reader.index += 1
            if len(shape) > 1 and tokens[reader.index] != "[":
                reader.fail("expected", reader.index, f"'[': {name!r} has {len(shape)} axes left")
            rows.append(_parse_value(reader, name, shape[1:]))
            while tokens[reader.index] == "\n":
                reader.index += 1
        if tokens[reader.index] != "]":
            reader.fail("expected", reader.index, f"',' or ']' in the value of {name!r}")
        if len(rows) != shape[0]:
            expected = f"expected {shape[0]} values of {name!r}"
            reader.fail("error", begin, f"{expected}, got {len(rows)}")
        reader.index += 1
        return tuple(rows)
    sign = tokens[begin]
    reader.index += sign in ("-", "+")
    if not is_number(tokens[reader.index]):
        example = f" (for an array, declare its shape: {name}[2] = [1, 2])"
        example *= tokens[reader.index] == "["
        reader.fail("expected", reader.index, f"a number as the value of {name!r}{example}")
    reader.index += 1
    return reader.number(reader.index - 1) * (-1.0 if sign == "-" else 1.0)


def _parse_initializer(
    reader: TokenReader, role: str, name: str, shape: tuple[int, ...]
) -> Initializer:
    """Parse the initializer of a declared name; its arguments are numbers."""
    tokens, begin = reader.tokens, reader.index
    law = function_name(tokens[begin]) or tokens[begin]
    if law not in INITIALIZERS:
        reader.fail("unknown_initializer", begin, name)
    arguments: list[float] = []
    if "\n" in tokens[begin]:
        reader.fail("error", begin, f"the parenthesis after {law!r} must be on the same line")
    if not function_name(tokens[begin]):
        reader.index += 1
    else:
        while not arguments or tokens[reader.index] == ",":
            reader.skip_lines(reader.index + 1)
            arguments.append(_parse_value(reader, name, ()))
            reader.skip_lines(reader.index)
        if tokens[reader.index] != ")":
            reader.fail("expected", reader.index, f"',' or ')' in the arguments of {law!r}")
        reader.index += 1
    if problem := arguments_problem(law, arguments):
        reader.fail("initializer_arguments", begin, problem, law)
    if problem := initializer_shape_problem(law, shape):
        reader.fail("initializer_shape", begin, problem, law, len(shape))
    if role == "input" and law in NEEDING_FANS:
        reader.fail("initializer_of_input", begin, law)
    return Initializer(law, tuple(arguments))


def _parse_domain(reader: TokenReader, declared: Declaration, value_at: int) -> Domain:
    """Parse the domain after ``in``; a declared value must be in the domain."""
    tokens, begin = reader.tokens, reader.index
    if declared.role != "input":
        reader.fail("domain_without_input", begin, declared.role, declared.name)
    domain: Domain = ONE_HOT
    if tokens[begin : begin + 4] == ["in", "one", "-", "hot"]:
        reader.index = begin + 4
    elif tokens[begin : begin + 2] == ["in", "{"]:
        domain = _parse_finite_set(reader, declared.name)
    else:
        reader.fail("missing_domain", begin + (tokens[begin] == "in"))
    if problem := shape_problem(domain, declared.shape):
        reader.fail("error", begin + 1, problem)
    if isinstance(declared.value, Initializer):
        reader.fail("initializer_and_domain", value_at, declared.name)
    if declared.value is not None and not contains(domain, declared.value):
        reader.fail("not_in_domain", value_at, declared.name, domain)
    return domain


def _parse_finite_set(reader: TokenReader, name: str) -> tuple[float, ...]:
    """Parse the numbers in the braces after ``in``."""
    tokens, begin = reader.tokens, reader.index + 1
    numbers: list[float] = []
    ends: list[int] = []
    reader.index = begin
    while tokens[reader.index] == ("," if numbers else "{"):
        reader.skip_lines(reader.index + 1)
        if tokens[reader.index] == "}" and not numbers:
            break
        numbers.append(_parse_value(reader, name, ()))
        ends.append(reader.index - 1)
        reader.skip_lines(reader.index)
    if tokens[reader.index] != "}":
        reader.fail("expected", reader.index, f"',' or '}}' in the domain of {name!r}")
    problem, index = set_problem(numbers)
    if problem and not numbers:
        reader.fail("empty_domain", begin, problem)
    if problem:
        reader.fail("error", ends[index], problem)
    reader.index += 1
    return tuple(numbers)
