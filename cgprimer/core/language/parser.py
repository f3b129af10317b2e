"""Tokens to syntax trees: operator precedence with two stacks, no recursion, no ``eval``.

    file        = { statement ( NEWLINE | ";" ) } ;
    statement   = NAME "=" expression
                | ("input" | "parameter" | "output") NAME [ "=" ["-"] NUMBER ] { "," ... } ;
    expression  = term { ("+" | "-") term } ;
    term        = signed { ("*" | "/") signed } ;
    signed      = { "+" | "-" } power ;
    power       = atom [ ("^" | "**") signed ] ;
    atom        = NUMBER | NAME | NAME "(" expression { "," expression } ")" | "(" expression ")" ;

Source of the method: Dijkstra's shunting yard (1961), in the form with an explicit "operand
expected" state that also handles signs and function calls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NoReturn

from cgprimer.core.garbage_collection import collector_paused
from cgprimer.core.language import hints
from cgprimer.core.language.syntax import (
    Apply,
    Declaration,
    Definition,
    Expression,
    Functions,
    Name,
    Number,
    Program,
)
from cgprimer.core.language.tokens import (
    CLOSE,
    COMMA,
    END,
    END_OF_STATEMENT,
    EQUALS,
    NAME,
    NUMBER,
    OPEN,
    OPERATOR,
    Token,
    tokenize,
)
from cgprimer.errors import ExpressionSyntaxError, Source, Span, UnknownFunctionError, did_you_mean

ROLES = ("input", "parameter", "output")

_BINARY = {
    "+": ("add", 1),
    "-": ("sub", 1),
    "*": ("mul", 2),
    "/": ("div", 2),
    "^": ("pow", 4),
    "**": ("pow", 4),
}
_SIGN_PRECEDENCE = 3
_GROUP = 0  # precedence of an open parenthesis: nothing reduces across it
_ENDS = (END, END_OF_STATEMENT)


@dataclass(slots=True)
class _Pending:
    """An operator, sign or parenthesis that still waits for its right-hand side."""

    primitive: str  # for a call: the function's name; empty for a plain parenthesis
    precedence: int
    start: int
    end: int = 0
    arguments: int = 0  # operands on the stack when the parenthesis opened
    commas: int = 0


def parse_program(
    text: str, functions: Functions, *, source_name: str = "<expressions>"
) -> Program:
    """Every statement of a text.

    Args:
        text: statements, separated by new lines or ``;``.
        functions: what may stand before a parenthesis.
        source_name: what messages call the text.

    Raises:
        ExpressionSyntaxError: the text leaves the grammar.
        UnknownFunctionError: a call of what is no function, or with too few or many arguments.

    >>> from cgprimer.core.primitives.registry import FUNCTIONS
    >>> len(parse_program("input a = 1; xw = a^2 + b", FUNCTIONS).statements)
    2
    """
    source = Source(source_name, text.replace("\r\n", "\n").replace("\r", "\n"))
    with collector_paused():
        return _Parser(source, functions).program()


def parse_expression(
    text: str, functions: Functions, *, source_name: str = "<expression>"
) -> Expression:
    """A single expression, as the partial derivatives of the primitive table are written."""
    return _Parser(Source(source_name, text), functions).lone_expression()


class _Parser:
    """One pass over the tokens of one source."""

    def __init__(self, source: Source, functions: Functions) -> None:
        self.source = source
        self.functions = functions
        self.tokens = tokenize(source)
        self.index = 0

    # --- statements ----------------------------------------------------------------------------

    def program(self) -> Program:
        statements: list[Definition | Declaration] = []
        while self.tokens[self.index].kind != END:
            if self.tokens[self.index].kind == END_OF_STATEMENT:
                self.index += 1
                continue
            statements.extend(self.statement())
        return Program(self.source, tuple(statements))

    def statement(self) -> list[Definition] | list[Declaration]:
        first, second = self.tokens[self.index], self.tokens[self.index + 1 : self.index + 2]
        if first.kind != NAME:
            self.fail(
                first,
                f"expected a statement, found {_shown(first)}",
                hint="a statement reads: name = expression",
            )
        if first.text in ROLES and second and second[0].kind == NAME:
            self.index += 1
            return self.declarations(first.text)
        if second and second[0].kind == NAME:
            close = did_you_mean(first.text, ROLES)
            self.fail(second[0], f"expected '=' after {first.text!r}", hint=close)
        if not second or second[0].kind != EQUALS:
            self.fail(
                second[0] if second else first,
                f"expected '=' after {first.text!r}, found {_shown(second[0])}",
                hint="a statement reads: name = expression",
            )
        self.index += 2
        expression = self.expression(missing=f"expected an expression after '{first.text} ='")
        self.end_of_statement()
        return [Definition(first.text, expression, first.start, first.end)]

    def declarations(self, role: str) -> list[Declaration]:
        found: list[Declaration] = []
        while True:
            name = self.take(NAME, f"expected a name after '{role}'")
            value = None
            if self.tokens[self.index].kind == EQUALS:
                self.index += 1
                value = self.declared_value(name)
            found.append(Declaration(role, name.text, value, name.start, name.end))
            if self.tokens[self.index].kind != COMMA:
                break
            self.index += 1
        following = self.tokens[self.index]
        if following.kind == NUMBER:
            before = self.tokens[self.index - 1]
            self.fail(following, f"expected '=' between {before.text!r} and {following.text!r}")
        self.end_of_statement(hints.SEPARATOR if value is None else hints.PLAIN_NUMBER)
        return found

    def declared_value(self, name: Token) -> float:
        negative = False
        if self.tokens[self.index].text in ("-", "+"):
            negative = self.tokens[self.index].text == "-"
            self.index += 1
        token = self.take(NUMBER, f"expected a number as the value of {name.text!r}")
        value = self.number(token).value
        return -value if negative else value

    def end_of_statement(self, hint: str = hints.SEPARATOR) -> None:
        token = self.tokens[self.index]
        if token.kind not in _ENDS:
            decimal = token.kind == COMMA and self.tokens[self.index - 1].kind == NUMBER
            self.fail(
                token,
                f"expected the end of the statement, found {_shown(token)}",
                hint=hints.DECIMAL_MARK if decimal else hint,
            )

    def lone_expression(self) -> Expression:
        expression = self.expression(missing="expected an expression")
        self.end_of_statement()
        if self.tokens[self.index].kind != END:
            self.fail(self.tokens[self.index], "expected one expression only")
        return expression

    # --- expressions ---------------------------------------------------------------------------

    def expression(self, *, missing: str) -> Expression:  # noqa: PLR0912 - one state machine
        """Read up to the first token that no expression can go on with."""
        tokens = self.tokens
        operands: list[Expression] = []
        pending: list[_Pending] = []
        operand_expected = True
        while True:
            token = tokens[self.index]
            kind = token.kind
            if operand_expected:
                if kind == NUMBER:
                    operands.append(self.number(token))
                    operand_expected = False
                elif kind == NAME:
                    if tokens[self.index + 1].kind == OPEN:
                        self.index += 1
                        pending.append(
                            _Pending(token.text, _GROUP, token.start, token.end, len(operands))
                        )
                    else:
                        operands.append(Name(token.text, token.start, token.end))
                        operand_expected = False
                elif kind == OPEN:
                    pending.append(_Pending("", _GROUP, token.start, token.end, len(operands)))
                elif kind == OPERATOR and token.text in "+-":
                    if token.text == "-":
                        pending.append(_Pending("neg", _SIGN_PRECEDENCE, token.start))
                else:
                    self.operand_missing(token, pending, missing)
            elif kind == OPERATOR:
                primitive, precedence = _BINARY[token.text]
                # A power binds to the right; everything else to the left.
                bound = precedence + 1 if primitive == "pow" else precedence
                while pending and pending[-1].precedence >= bound:
                    _reduce(operands, pending.pop())
                pending.append(_Pending(primitive, precedence, token.start))
                operand_expected = True
            elif kind == COMMA:
                while pending and pending[-1].precedence != _GROUP:
                    _reduce(operands, pending.pop())
                if not pending:
                    break  # the comma belongs to whoever asked for the expression
                if not pending[-1].primitive:
                    self.fail(token, "a comma stands inside parentheses that call no function")
                pending[-1].commas += 1
                operand_expected = True
            elif kind == CLOSE:
                while pending and pending[-1].precedence != _GROUP:
                    _reduce(operands, pending.pop())
                if not pending:
                    self.fail(
                        token,
                        "this parenthesis closes nothing",
                        hint="remove it, or open one before it",
                    )
                group = pending.pop()
                if group.primitive:
                    self.call(operands, group, token.end)
            else:
                self.unclosed(token, pending)
                if kind not in _ENDS and kind != EQUALS:
                    self.operator_missing(token)
                break
            self.index += 1
        while pending:
            _reduce(operands, pending.pop())
        return operands[0]

    def call(self, operands: list[Expression], group: _Pending, end: int) -> None:
        """Replace the arguments on the stack by the call of a function."""
        count = group.commas + 1
        arguments = tuple(operands[-count:])
        del operands[-count:]
        span = Span(self.source, group.start, group.end)
        rows = self.functions.spelled(group.primitive)
        if not rows:
            known = hints.KNOWN_AS.get(group.primitive.casefold())
            close = (
                f"write {known}"
                if known
                else did_you_mean(group.primitive, self.functions.function_names())
            )
            raise UnknownFunctionError(
                f"there is no function {group.primitive!r}",
                span,
                hint=close
                or f"for a product write {group.primitive}*( ... );"
                " 'cgprimer primitives' lists the functions",
            )
        for row in rows:
            if row.arity - len(row.defaults) <= count <= row.arity:
                omitted = row.defaults[len(row.defaults) - (row.arity - count) :]
                filled = arguments + tuple(Number(v, end, end) for v in omitted)
                operands.append(Apply(row.name, filled, group.start, end))
                return
        if rows[0].associative and count > rows[0].arity:
            combined = arguments[0]
            for argument in arguments[1:]:
                combined = Apply(rows[0].name, (combined, argument), group.start, end)
            operands.append(combined)
            return
        counts = {n for r in rows for n in range(r.arity - len(r.defaults), r.arity + 1)}
        takes = " or ".join(map(str, sorted(counts)))
        if rows[0].associative:
            takes += " or more"
        raise UnknownFunctionError(
            f"{group.primitive!r} takes {takes} argument{'' if takes == '1' else 's'}, not {count}",
            Span(self.source, group.start, end),
        )

    def number(self, token: Token) -> Number:
        value = float(token.text)
        if math.isinf(value):
            self.fail(token, "this number is too large for a double (the largest is 1.8e308)")
        return Number(value, token.start, token.end)

    # --- errors --------------------------------------------------------------------------------

    def take(self, kind: str, message: str) -> Token:
        token = self.tokens[self.index]
        if token.kind != kind:
            self.fail(token, f"{message}, found {_shown(token)}")
        self.index += 1
        return token

    def fail(self, token: Token, message: str, *, hint: str = "") -> NoReturn:
        end = token.end if token.kind not in _ENDS else token.start + 1
        raise ExpressionSyntaxError(message, Span(self.source, token.start, end), hint=hint)

    def operand_missing(self, token: Token, pending: list[_Pending], missing: str) -> NoReturn:
        if token.kind in (*_ENDS, EQUALS):
            self.unclosed(token, pending)
        if token.kind == CLOSE and pending and pending[-1].precedence == _GROUP:
            what = (
                f"the call of {pending[-1].primitive!r}"
                if pending[-1].primitive
                else "these parentheses"
            )
            self.fail(token, f"expected an expression in {what}, found ')'")
        if pending and pending[-1].precedence != _GROUP:
            before = self.tokens[self.index - 1]
            missing = f"expected a number, a name or '(' after {before.text!r}"
        hint = ""
        if token.kind == END_OF_STATEMENT and token.text == "\n" and pending:
            hint = "inside parentheses an expression goes on over several lines"
        elif token.kind == EQUALS:
            hint = "a single '=' defines a name"
        elif token.text == "/":
            hint = "a comment begins with '#'"
        self.fail(token, f"{missing}, found {_shown(token)}", hint=hint)

    def unclosed(self, token: Token, pending: list[_Pending]) -> None:
        """Complain about an open parenthesis if the statement ends inside it."""
        following = self.tokens[self.index + 1 : self.index + 2]
        begins = token.kind == NAME and bool(following) and following[0].kind in (EQUALS, NAME)
        if token.kind not in (*_ENDS, EQUALS) and not begins:
            return
        groups = [p for p in pending if p.precedence == _GROUP]
        if groups:
            opened = groups[-1].end - (0 if groups[-1].primitive else 1)
            opened = self.source.text.index("(", opened)
            raise ExpressionSyntaxError(
                "this parenthesis is never closed",
                Span(self.source, opened, opened + 1),
                hint="add the missing ')'",
            )

    def operator_missing(self, token: Token) -> NoReturn:
        before = self.tokens[self.index - 1]
        left, right = before.text, token.text
        if token.kind == OPEN or before.kind in (CLOSE, NUMBER):
            adjacent = before.end == token.start
            hint = (
                f"a product needs its sign: {left}*{right}"
                if adjacent
                else "a product needs its sign: *"
            )
        else:
            hint = "an operator such as * or + is missing here, or a new line"
            if self.functions.spelled(left):
                hint = f"a function takes its operands in parentheses: {left}({right})"
        at = Span(self.source, before.start, token.end)
        raise ExpressionSyntaxError(
            f"missing operator between {left!r} and {right!r}", at, hint=hint
        )


def _reduce(operands: list[Expression], operator: _Pending) -> None:
    """Apply a pending operator to the operands that wait for it."""
    right = operands.pop()
    if operator.primitive == "neg":
        operands.append(Apply("neg", (right,), operator.start, right.end))
    else:
        left = operands.pop()
        operands.append(Apply(operator.primitive, (left, right), left.start, right.end))


def _shown(token: Token) -> str:
    if token.kind == END:
        return "the end of the text"
    if token.kind == END_OF_STATEMENT:
        return "the end of the line" if token.text == "\n" else "';'"
    return repr(token.text)
