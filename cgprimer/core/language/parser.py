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
    indexed     = atom { "[" entry { "," entry } "]" } ;
    entry       = INTEGER | [ INTEGER ] ":" [ INTEGER ] [ ":" [ INTEGER ] ] ;
    atom        = NUMBER | NAME | NAME "(" expression { "," expression } ")" | "(" expression ")" ;

Error messages for invalid texts are in ``syntax_errors.py``, which is loaded only when needed.

Source of the method: Dijkstra's shunting yard (1961), in the form with an explicit "operand
expected" state that also handles signs and function calls.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from cgprimer.core.language.syntax_tree import (
    Apply,
    Declaration,
    Definition,
    Expression,
    Functions,
    Index,
    Name,
    Number,
    Program,
)
from cgprimer.core.language.token_reader import TokenReader
from cgprimer.core.language.tokens import ENDS, ROLES, function_name, is_number
from cgprimer.errors import Source

# Primitive, its precedence, and the precedence from which pending operators are applied before it:
# powers are right-associative, all other operators are left-associative.
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
_OPEN = ("", 0, 0)  # an opening parenthesis, or the start of an expression


def parse_program(text: str, functions: Functions, source_name: str = "<expressions>") -> Program:
    """Parse the statements of a source text.

    Args:
        text: the source text.
        functions: the functions that expressions may call.
        source_name: name of the source in error messages.

    Raises:
        ExpressionSyntaxError: the text does not follow the grammar.
        UnknownFunctionError: a call of an unknown function, or with a wrong number of arguments.

    >>> from cgprimer.core.operations.primitive_registry import FUNCTIONS
    >>> len(parse_program("input a = 1; xw = a^2 + b", FUNCTIONS).statements)
    2
    """
    source = Source(source_name, text.replace("\r\n", "\n").replace("\r", "\n"))
    return _Parser(source, functions).parse_statements()


def parse_expression(text: str, functions: Functions, source_name: str) -> Expression:
    """Parse a single expression, such as a partial derivative in the primitive table."""
    parser = _Parser(Source(source_name, text), functions)
    expression, _ = parser.parse_expression("expected an expression")
    if parser.tokens[parser.index]:
        parser.raise_error("syntax_error", parser.index, "expected a single expression")
    return expression


class _Parser(TokenReader):
    """A parser that reads the tokens of a source text once. Equal leaves are stored once."""

    def __init__(self, source: Source, functions: Functions) -> None:
        super().__init__(source)
        self.functions = functions
        self.names: dict[str, Name] = {}
        self.numbers: dict[str, Number] = {}

    def parse_statements(self) -> Program:
        """Parse all statements of the source text."""
        tokens = self.tokens
        statements: list[Definition | Declaration] = []
        while first := tokens[self.index]:
            at, second = self.index, tokens[self.index + 1]
            if first in ENDS:
                self.index += 1
            elif second == "=" and first.isidentifier():
                self.index += 2
                tree, names = self.parse_expression(f"expected an expression after '{first} ='")
                statements.append(Definition(first, tree, tuple(names), at))
            elif second[:1].isidentifier() and first in ROLES:
                from cgprimer.core.language.declaration_parser import parse_declarations

                statements.extend(parse_declarations(self, first))
            else:
                self.raise_error("invalid_statement", at)
        return Program(self.source, tuple(statements))

    def parse_index(self, start: int) -> Index:
        """Parse an index such as ``[0, 1:3]``, starting at the token of its opening bracket."""
        tokens = self.tokens
        entries: list[Any] = []
        index = start
        while tokens[index] == ("," if entries else "["):
            parts: list[Any] = [None]
            self.index = index + 1
            while tokens[self.index] not in (",", "]"):
                if tokens[self.index] == "[" and parts == [None]:
                    parts[0] = self.parse_index_list()
                elif tokens[self.index] == ":" and len(parts) < 3:
                    parts.append(None)
                    self.index += 1
                elif parts[-1] is None:
                    parts[-1] = self.parse_integer(self.index)
                else:
                    self.raise_error("unexpected_token", self.index, "',', ':' or ']' in an index")
            if parts == [None]:
                self.raise_error(
                    "unexpected_token", self.index, "an index, such as 0, or a slice, such as 1:3"
                )
            entries.append(parts[0] if len(parts) == 1 else slice(*[*parts, None][:3]))
            index = self.index
        self.index = index + 1
        return Index(tuple(entries))

    def parse_index_list(self) -> tuple[int, ...]:
        """Parse a list of indices such as ``[0, 3]`` within an index."""
        indices: list[int] = []
        while self.tokens[self.index] == ("," if indices else "["):
            indices.append(self.parse_integer(self.index + 1))
        if self.tokens[self.index] != "]":
            self.raise_error("unexpected_token", self.index, "',' or ']' in a list of indices")
        self.index += 1
        return tuple(indices)

    def parse_expression(self, missing_message: str) -> tuple[Expression, dict[str, Name]]:
        """Parse an expression up to the end of its statement.

        Return the syntax tree, and its names in order of appearance. If the statement has no
        expression, raise an error with the message `missing_message`.
        """
        tokens, numbers, index = self.tokens, self.numbers, self.index
        names: dict[str, Name] = {}
        operands: list[Expression] = []
        pending = [_OPEN]
        groups: list[tuple[int, int]] = []  # index of "(", number of operands before it
        operand_expected = True
        while True:
            token = tokens[index]
            if operand_expected:
                leaf = names.get(token) or numbers.get(token) or self.create_leaf(index, names)
                if leaf is not None:
                    operands.append(leaf)
                    operand_expected = False
                elif token == "-":
                    pending.append(_SIGN)
                elif token[-1:] == "(":
                    if "\n" in token and not groups:
                        self.raise_error("line_break_in_call", index)
                    groups.append((index, len(operands)))
                    pending.append(_OPEN)
                elif token != "+" and not (token == "\n" and groups):
                    self.raise_error("missing_operand", index, groups, missing_message)
            elif token == "[":  # highest precedence
                operands[-1] = Apply(self.parse_index(index), (operands[-1],))
                index = self.index
                continue
            elif token != "\n" or not groups:
                operator = _BINARY.get(token)
                bound = operator[2] if operator else 1  # other tokens apply all pending operators
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
                        operands[before:] = [self.build_call(at, index, operands[before:])]
                elif token == "," and groups and tokens[groups[-1][0]] != "(":
                    operand_expected = True
                else:
                    break
            index += 1
        if groups or token not in ENDS:
            self.raise_error("missing_operator", index, groups, self.functions)
        self.index = index
        return operands[0], names

    def create_leaf(self, index: int, names: dict[str, Name]) -> Name | Number | None:
        """Create the leaf for a name or number; return None if the token is neither."""
        token = self.tokens[index]
        if token.isidentifier():
            leaf = self.names.get(token) or self.names.setdefault(token, Name(token))
            names[token] = leaf
            return leaf
        if is_number(token):
            return self.numbers.setdefault(token, Number(self.parse_number(index)))
        return None

    def build_call(self, start: int, end: int, arguments: list[Expression]) -> Expression:
        """Build the syntax tree of a function call.

        Args:
            start: index of the token with the name and the opening parenthesis.
            end: index of the closing parenthesis.
            arguments: the syntax trees of the arguments.
        """
        count = len(arguments)
        rows = self.functions[function_name(self.tokens[start])]
        for row in rows:
            omitted = row.arity - count
            if 0 <= omitted <= len(row.defaults):
                filled = row.defaults[len(row.defaults) - omitted :]
                filled = [value for value in filled if value is not None]
                return Apply(row.name, (*arguments, *map(Number, filled)))
        if not rows or not rows[0].associative or count < rows[0].arity:
            self.raise_error("invalid_call", start, end, count, self.functions)
        return reduce(lambda left, right: Apply(rows[0].name, (left, right)), arguments)
