"""Tokens to syntax trees: operator precedence with two stacks, no recursion, no ``eval``.

    file        = { statement ( NEWLINE | ";" ) } ;
    statement   = NAME "=" expression
                | ("input" | "parameter" | "output") declared { "," declared } ;
    declared    = NAME [ shape ] [ "=" ( value | initializer ) ] [ "in" domain ] ;
    initializer = NAME [ "(" ["-"] NUMBER { "," ["-"] NUMBER } ")" ] ;
    domain      = "{" ["-"] NUMBER { "," ["-"] NUMBER } "}" | "one-hot" ;
    shape       = "[" INTEGER { "," INTEGER } "]" ;
    value       = ["-"] NUMBER | "[" value { "," value } "]" ;
    expression  = term { ("+" | "-") term } ;
    term        = signed { ("*" | "/" | "@") signed } ;
    signed      = { "+" | "-" } power ;
    power       = indexed [ ("^" | "**") signed ] ;
    indexed     = atom { "[" place { "," place } "]" } ;
    place       = INTEGER | [ INTEGER ] ":" [ INTEGER ] [ ":" [ INTEGER ] ] ;
    atom        = NUMBER | NAME | NAME "(" expression { "," expression } ")" | "(" expression ")" ;

Here stands what a right text means; what is said of a wrong one stands in ``complaints.py``.

Source of the method: Dijkstra's shunting yard (1961), in the form with an explicit "operand
expected" state that also handles signs and function calls.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any, NoReturn

from cgprimer.core.language.domains import (
    ONE_HOT,
    Domain,
    contains,
    set_problem,
    shape_problem,
)
from cgprimer.core.language.initializers import (
    INITIALIZERS,
    NEEDING_FANS,
    Initializer,
    arguments_problem,
)
from cgprimer.core.language.initializers import shape_problem as initializer_shape_problem
from cgprimer.core.language.syntax import (
    MOST_NUMBERS,
    Apply,
    Declaration,
    Definition,
    Expression,
    Functions,
    Name,
    Number,
    Program,
    Structural,
)
from cgprimer.core.language.tokens import called, is_number, tokenize
from cgprimer.errors import Source

ROLES = ("input", "parameter", "output")
ENDS = ("\n", ";", "")  # tokens that end a statement

# Primitive, how tightly it binds, and how tightly what waits must bind to be applied before it:
# a power binds to the right, everything else to the left.
_POWER = ("pow", 4, 5)
_BINARY = {
    "+": ("add", 1, 1),
    "-": ("sub", 1, 1),
    "*": ("mul", 2, 2),
    "/": ("div", 2, 2),
    "@": ("matmul", 2, 2),
    "^": _POWER,
    "**": _POWER,
}
_SIGN = ("neg", 3, 0)
_OPEN = ("", 0, 0)  # a parenthesis, and the begin: nothing is applied across it


def parse_program(text: str, functions: Functions, source_name: str = "<expressions>") -> Program:
    """Every statement of a text; ``functions`` are what may stand before a parenthesis.

    Raises:
        ExpressionSyntaxError: the text leaves the grammar.
        UnknownFunctionError: a call of what is no function, or with too few or many arguments.

    >>> from cgprimer.core.primitives.registry import FUNCTIONS
    >>> len(parse_program("input a = 1; xw = a^2 + b", FUNCTIONS).statements)
    2
    """
    source = Source(source_name, text.replace("\r\n", "\n").replace("\r", "\n"))
    return _Parser(source, functions).program()


def parse_expression(text: str, functions: Functions, source_name: str) -> Expression:
    """A single expression, as the partial derivatives of the primitive table are written."""
    parser = _Parser(Source(source_name, text), functions)
    expression, _ = parser.expression("expected an expression")
    if parser.tokens[parser.index]:
        parser.fail("error", parser.index, "expected one expression only")
    return expression


class _Parser:
    """One pass over the tokens of one source. Equal leaves of its trees are one object."""

    def __init__(self, source: Source, functions: Functions) -> None:
        self.source, self.functions = source, functions
        self.tokens = tokenize(source.text)
        self.index = 0
        self.names: dict[str, Name] = {}
        self.numbers: dict[str, Number] = {}

    def fail(self, complaint: str, at: int, *about: Any) -> NoReturn:
        """Raise what ``complaints.py`` says of a token; it is loaded only now."""
        from cgprimer.core.language.complaints import Complaints

        raise getattr(Complaints(self.source, at), complaint)(*about)

    def program(self) -> Program:
        tokens = self.tokens
        statements: list[Definition | Declaration] = []
        while first := tokens[self.index]:
            at, second = self.index, tokens[self.index + 1]
            if first in ENDS:
                self.index += 1
            elif second == "=" and first.isidentifier():
                self.index += 2
                tree, names = self.expression(f"expected an expression after '{first} ='")
                statements.append(Definition(first, tree, tuple(names), at))
            elif second[:1].isidentifier() and first in ROLES:
                statements.extend(self.declarations(first))
            else:
                self.fail("no_statement", at)
        return Program(self.source, tuple(statements))

    def declarations(self, role: str) -> list[Declaration]:
        """A statement that declares names, from the word that says what they are."""
        tokens = self.tokens
        found: list[Declaration] = []
        while not found or tokens[self.index] == ",":
            at = self.index + 1
            name, value = tokens[at], None
            shape: list[int] = []
            if not name.isidentifier():
                self.fail("expected", at, f"a name after '{role}'")
            self.index = at + 1
            while tokens[self.index] == ("," if shape else "["):
                shape.append(self.integer(self.index + 1))
                if shape[-1] < 1 or (tokens[self.index] not in (",", "]")):
                    at_fault = self.index - (shape[-1] < 1) - (shape[-1] < 0)
                    self.fail("expected", at_fault, f"the sizes of {name!r}, as in {name}[8,4]")
            if math.prod(shape) > MOST_NUMBERS:
                self.fail("too_large", at)
            self.index += bool(shape)
            equals = self.index
            if tokens[equals] == "=":
                self.index += 1
                first = called(tokens[self.index]) or tokens[self.index]
                if first.isidentifier():
                    value = self.initializer(role, name, tuple(shape))
                else:
                    value = self.value(name, tuple(shape))
            found.append(Declaration(role, name, value, at, tuple(shape)))
            if "in" in (tokens[self.index], called(tokens[self.index])):
                found[-1].domain = self.domain(found[-1], equals + 1)
        if tokens[self.index] not in ENDS:
            self.fail("after_declaration", self.index, value is not None)
        return found

    def value(self, name: str, shape: tuple[int, ...]) -> Any:
        """A number, or as many values in brackets as the first size says."""
        tokens, begin = self.tokens, self.index
        if shape and tokens[begin] == "[":
            rows: list[Any] = []
            while tokens[self.index] == ("," if rows else "["):
                self.index += 1
                while tokens[self.index] == "\n":
                    self.index += 1
                if len(shape) > 1 and tokens[self.index] != "[":
                    self.fail("expected", self.index, f"'[': {name!r} has {len(shape)} axes here")
                rows.append(self.value(name, shape[1:]))
                while tokens[self.index] == "\n":
                    self.index += 1
            if tokens[self.index] != "]":
                self.fail("expected", self.index, f"',' or ']' in the value of {name!r}")
            if len(rows) != shape[0]:
                self.fail("error", begin, f"{shape[0]} values of {name!r} belong here,"
                          f" not {len(rows)}")  # fmt: skip
            self.index += 1
            return tuple(rows)
        sign = tokens[begin]
        self.index += sign in ("-", "+")
        if not is_number(tokens[self.index]):
            deep = f", one bracket a size, as {name}[2] = [1, 2]" * (tokens[self.index] == "[")
            self.fail("expected", self.index, f"a number as the value of {name!r}{deep}")
        self.index += 1
        return self.number(self.index - 1).value * (-1.0 if sign == "-" else 1.0)

    def initializer(self, role: str, name: str, shape: tuple[int, ...]) -> Initializer:
        """The initializer of a declared name; each of its arguments is a number."""
        tokens, begin = self.tokens, self.index
        law = called(tokens[begin]) or tokens[begin]
        if law not in INITIALIZERS:
            self.fail("unknown_initializer", begin, name)
        arguments: list[float] = []
        if "\n" in tokens[begin]:
            self.fail("error", begin, f"the parenthesis after {law!r} must be on the same line")
        if not called(tokens[begin]):
            self.index += 1
        else:
            while not arguments or tokens[self.index] == ",":
                self.skip_lines(self.index + 1)
                arguments.append(self.value(name, ()))
                self.skip_lines(self.index)
            if tokens[self.index] != ")":
                self.fail("expected", self.index, f"',' or ')' in the arguments of {law!r}")
            self.index += 1
        if problem := arguments_problem(law, arguments):
            self.fail("initializer_arguments", begin, problem, law)
        if problem := initializer_shape_problem(law, shape):
            self.fail("initializer_shape", begin, problem, law, len(shape))
        if role == "input" and law in NEEDING_FANS:
            self.fail("initializer_of_input", begin, law)
        return Initializer(law, tuple(arguments))

    def domain(self, declared: Declaration, value_at: int) -> Domain:
        """The domain behind ``in``; the declared value, if there is one, must lie in it."""
        tokens, begin = self.tokens, self.index
        if declared.role != "input":
            self.fail("domain_of_no_input", begin, declared.role, declared.name)
        domain: Domain = ONE_HOT
        if tokens[begin : begin + 4] == ["in", "one", "-", "hot"]:
            self.index = begin + 4
        elif tokens[begin : begin + 2] == ["in", "{"]:
            domain = self.finite_set(declared.name)
        else:
            self.fail("no_domain", begin + (tokens[begin] == "in"))
        if problem := shape_problem(domain, declared.shape):
            self.fail("error", begin + 1, problem)
        if isinstance(declared.value, Initializer):
            self.fail("initializer_and_domain", value_at, declared.name)
        if declared.value is not None and not contains(domain, declared.value):
            self.fail("not_in_domain", value_at, declared.name, domain)
        return domain

    def finite_set(self, name: str) -> tuple[float, ...]:
        """The numbers between the braces behind ``in``."""
        tokens, begin = self.tokens, self.index + 1
        numbers: list[float] = []
        ends: list[int] = []
        self.index = begin
        while tokens[self.index] == ("," if numbers else "{"):
            self.skip_lines(self.index + 1)
            if tokens[self.index] == "}" and not numbers:
                break
            numbers.append(self.value(name, ()))
            ends.append(self.index - 1)
            self.skip_lines(self.index)
        if tokens[self.index] != "}":
            self.fail("expected", self.index, f"',' or '}}' in the domain of {name!r}")
        problem, index = set_problem(numbers)
        if problem and not numbers:
            self.fail("no_values", begin, problem)
        if problem:
            self.fail("error", ends[index], problem)
        self.index += 1
        return tuple(numbers)

    def skip_lines(self, index: int) -> None:
        """Go on reading behind the line breaks at a token."""
        while self.tokens[index] == "\n":
            index += 1
        self.index = index

    def integer(self, at: int) -> int:
        """A whole number, with a sign or without; what follows is read next."""
        sign = self.tokens[at] == "-"
        digits = self.tokens[at + sign]
        if not digits.isdecimal() or len(digits) > 300:  # more, and Python refuses
            self.fail("expected", at + sign, "a whole number")
        self.index = at + sign + 1
        return -int(digits) if sign else int(digits)

    def index_of(self, index: int) -> Structural:
        """Places between brackets, from the opening one; a slice is three numbers or None."""
        tokens = self.tokens
        places: list[Any] = []
        while tokens[index] == ("," if places else "["):
            parts: list[Any] = [None]
            self.index = index + 1
            while tokens[self.index] not in (",", "]"):
                if tokens[self.index] == "[" and parts == [None]:
                    parts[0] = self.places()
                elif tokens[self.index] == ":" and len(parts) < 3:
                    parts.append(None)
                    self.index += 1
                elif parts[-1] is None:
                    parts[-1] = self.integer(self.index)
                else:
                    self.fail("expected", self.index, "',', ':' or ']' in an index")
            if parts == [None]:
                self.fail("expected", self.index, "a place, such as 0, or a slice, such as 1:3")
            places.append(parts[0] if len(parts) == 1 else slice(*[*parts, None][:3]))
            index = self.index
        self.index = index + 1
        return Structural("index", *places)

    def places(self) -> tuple[int, ...]:
        """A list of places between brackets."""
        found: list[int] = []
        while self.tokens[self.index] == ("," if found else "["):
            found.append(self.integer(self.index + 1))
        if self.tokens[self.index] != "]":
            self.fail("expected", self.index, "',' or ']' in a list of places")
        self.index += 1
        return tuple(found)

    def number(self, at: int) -> Number:
        value = float(self.tokens[at])
        if math.isinf(value):
            largest = "(the largest is 1.8e308)"
            self.fail("error", at, f"this number is too large for a double {largest}")
        return Number(value)

    def expression(self, missing: str) -> tuple[Expression, dict[str, Name]]:
        """The tree of an expression that ends its statement, and its names in order.

        ``missing`` is said where there is none.
        """
        tokens, numbers, index = self.tokens, self.numbers, self.index
        names: dict[str, Name] = {}
        operands: list[Expression] = []
        pending = [_OPEN]
        groups: list[tuple[int, int]] = []  # token that opened it, operands there were
        operand_expected = True
        while True:
            token = tokens[index]
            if operand_expected:
                leaf = names.get(token) or numbers.get(token)
                if leaf is None and token.isidentifier():
                    leaf = self.names.get(token) or self.names.setdefault(token, Name(token))
                    names[token] = leaf
                elif leaf is None and is_number(token):
                    leaf = numbers[token] = self.number(index)
                if leaf is not None:
                    operands.append(leaf)
                    operand_expected = False
                elif token == "-":
                    pending.append(_SIGN)
                elif token[-1:] == "(":
                    if "\n" in token and not groups:
                        self.fail("error", index, "the parenthesis of a call stands on its line")
                    groups.append((index, len(operands)))
                    pending.append(_OPEN)
                elif token != "+" and not (token == "\n" and groups):
                    self.fail("no_operand", index, groups, missing)
            elif token == "[":  # binds tighter than whatever waits
                operands[-1] = Apply(self.index_of(index), (operands[-1],))
                index = self.index
                continue
            elif token != "\n" or not groups:
                operator = _BINARY.get(token)
                bound = operator[2] if operator else 1  # what ends an operand applies all that wait
                while pending[-1][1] >= bound:
                    primitive = pending.pop()[0]
                    right = operands.pop()
                    if primitive == "neg":
                        operands.append(Apply(primitive, (right,)))
                    else:
                        operands[-1] = Apply(primitive, (operands[-1], right))
                if operator:
                    pending.append(operator)
                    operand_expected = True
                elif token == ")" and groups:
                    at, before = groups.pop()
                    pending.pop()
                    if tokens[at] != "(":
                        operands[before:] = [self.call(at, index, operands[before:])]
                elif token == "," and groups and tokens[groups[-1][0]] != "(":
                    operand_expected = True
                else:
                    break
            index += 1
        if groups or token not in ENDS:
            self.fail("no_operator", index, groups, self.functions)
        self.index = index
        return operands[0], names

    def call(self, at: int, end: int, arguments: list[Expression]) -> Expression:
        """The call of a function, from its name's token to the closing parenthesis."""
        count = len(arguments)
        rows = self.functions[called(self.tokens[at])]
        for row in rows:
            omitted = row.arity - count
            if 0 <= omitted <= len(row.defaults):
                filled = row.defaults[len(row.defaults) - omitted :]
                filled = [value for value in filled if value is not None]
                return Apply(row.name, (*arguments, *map(Number, filled)))
        if not rows or not rows[0].associative or count < rows[0].arity:
            self.fail("no_call", at, end, count, self.functions)
        return reduce(lambda left, right: Apply(rows[0].name, (left, right)), arguments)
