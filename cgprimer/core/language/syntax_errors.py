"""Error messages for texts that do not follow the grammar; loaded only when needed.

Each method of :class:`SyntaxErrors` builds an error from the tokens around the invalid one: what
was expected and, if a likely correction is known, a hint. The parser raises the error.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from unicodedata import category

from cgprimer.core.language.initializers import INITIALIZERS
from cgprimer.core.language.input_domains import ONE_HOT, Domain
from cgprimer.core.language.syntax_tree import MAX_ELEMENTS, Functions
from cgprimer.core.language.tokens import (
    ENDS,
    ROLES,
    function_name,
    is_number,
    locate_tokens,
    tokenize,
)
from cgprimer.core.language.typography import ASCII_SPELLINGS, suggest_spelling
from cgprimer.errors import ExpressionSyntaxError, Source, Span, UnknownFunctionError, did_you_mean

OpenParentheses = list[
    tuple[int, int]
]  # for each open "(" its token and the number of operands before

# Functions of other languages, and how to write them in this language.
_EQUIVALENT_FUNCTIONS = {
    "lg": "log10(a)", "pow": "a^b", "power": "a^b", "if": "where(a, b, c)",
    "tg": "tan(a)", "ctg": "cot(a)",
    "sgn": "sign(a)", "logistic": "sigmoid(a)", "square": "a^2", "clip": "clamp(a, b, c)",
    "fabs": "abs(a)",
    "matmul": "a @ b", "mm": "a @ b", "mv": "a @ b", "t": "transpose(a)", "view": "reshape(a, 8)",
    "max": "largest(a, 0)", "min": "-largest(-a, 0)",  # along an axis
}  # fmt: skip

_OPERAND_HINTS = {
    "=": "use a single '=' to define a name",
    "/": "start a comment with '#'",
    "[": "use brackets for indices, x[0], or declared values, a[2] = [1,2]; group with '('",
}

_INITIALIZER_EXAMPLES = {"normal": "normal(0.1)", "uniform": "uniform(-1, 1)"}
_STATEMENT = "write a statement as: name = expression"
_SEPARATOR = "separate statements by a new line or ';'"
_OPERATORS = ("+", "-", "*", "**", "/", "^")


class _Token(NamedTuple):
    """A token with its position; the opening parenthesis of a call is a separate token."""

    text: str
    start: int

    @property
    def description(self) -> str:
        """The description of the token in error messages."""
        ends = {"": "the end of the text", "\n": "the end of the line", ";": "';'"}
        return ends.get(self.text) or repr(self.text)


class SyntaxErrors:
    """A factory of syntax errors at an invalid token, with a method for each kind of error."""

    def __init__(self, source: Source, at: int) -> None:
        self.source, self.spans, self.index = source, locate_tokens(source), at
        tokens = [_Token("", 0)]  # without line breaks inside parentheses
        depth = position = 0
        self.texts = tokenize(source.text)  # as the parser sees them
        for number, (text, span) in enumerate(zip(self.texts, self.spans, strict=True)):
            if number == at:
                position = len(tokens)
            if text[-1:] == "(":
                name = function_name(text)
                if name:
                    tokens.append(_Token(name, span.start))
                tokens.append(_Token("(", span.end - 1))
            elif text != "\n" or not depth:
                tokens.append(_Token(text, span.start))
            depth = 0 if text == ";" else max(0, depth + (text[-1:] == "(") - (text == ")"))
        self.before, self.token, self.following = [*tokens, tokens[-1]][position - 1 :][:3]

    def syntax_error(
        self, message: str, token: _Token | None = None, *, hint: str = "", since: int | None = None
    ) -> ExpressionSyntaxError:
        """Return a syntax error at a token, or the error for an invalid character in the token."""
        text, start = token or self.token
        valid = text in ENDS or text in "(),=[]:@" or text in _OPERATORS or is_number(text)
        if not valid and (text in ASCII_SPELLINGS or not text.isidentifier()):
            start += next((i for i, c in enumerate(text) if not f"a{c}".isidentifier()), 0)
            text, hint = self.source.text[start], suggest_spelling(self.source.text[start:])
            shown = f"U+{ord(text):04X}" if category(text)[0] in "CMZ" else text
            message, since = f"unexpected character {shown!r}", start
        span = Span(self.source, start if since is None else since, start + (len(text) or 1))
        return ExpressionSyntaxError(message, span, hint=hint)

    def invalid_statement(self) -> ExpressionSyntaxError:
        """Return the error for a statement that is neither a definition nor a declaration."""
        first, second = self.token, self.following
        if not first.text.isidentifier():
            hint = _OPERAND_HINTS.get(first.text * (second.text == "/"), _STATEMENT)
            return self.syntax_error(f"expected a statement, found {first.description}", hint=hint)
        message = f"expected '=' after {first.text!r}"
        if second.text.isidentifier():
            return self.syntax_error(message, second, hint=did_you_mean(first.text, ROLES))
        hint = "declare the array: parameter W[8,4]" if second.text == "[" else _STATEMENT
        return self.syntax_error(f"{message}, found {second.description}", second, hint=hint)

    def unexpected_token(self, expected: str) -> ExpressionSyntaxError:
        """Return the error for a token that is not the expected one."""
        if self.before.text in (*ROLES, ",") and self.following.text == "(":
            return self.syntax_error("expected the end of the statement, found '('", self.following)
        return self.syntax_error(f"expected {expected}, found {self.token.description}")

    def oversized_array(self) -> ExpressionSyntaxError:
        """Return the error for a declared array with too many elements."""
        message = f"{self.token.text!r} would have more than {MAX_ELEMENTS:,} elements"
        return self.syntax_error(
            message, hint="omit the axis of the samples, which is added by the data"
        )

    def missing_domain(self) -> ExpressionSyntaxError:
        """Return the error for the keyword ``in`` that is not followed by a domain."""
        token = self.following if self.token.text == "in" else self.token
        message = f"expected a domain after 'in', found {token.description}"
        if self.token.text.replace("_", "").casefold() in ("one", "onehot", "hot"):
            return self.syntax_error(message, hint="write: in one-hot")
        hint = "write a finite set in braces, in {0, 1}, or: in one-hot"
        return self.syntax_error(message, hint=hint)

    def empty_domain(self, message: str) -> ExpressionSyntaxError:
        """Return the error for a domain with empty braces."""
        return self.syntax_error(message, _Token("", self.token.start))

    def domain_without_input(self, role: str, name: str) -> ExpressionSyntaxError:
        """Return the error for a parameter or an output that is declared with a domain."""
        message = f"only an input can have a domain; {name!r} is declared as {role!r}"
        hint = f"write: input {name}" if role == "parameter" else "remove the domain"
        return self.syntax_error(message, hint=hint)

    def value_outside_domain(self, name: str, domain: Domain) -> ExpressionSyntaxError:
        """Return the error for a declared value outside the domain of its input."""
        must = "one-hot (a single 1, otherwise 0)" if domain == ONE_HOT else "in its domain"
        return self.syntax_error(f"the declared value of {name!r} must be {must}")

    def unknown_initializer(self, name: str) -> ExpressionSyntaxError:
        """Return the error for an unknown initializer in a declaration."""
        initializer = self.token.text
        hint = did_you_mean(initializer, INITIALIZERS) or f"choose one of {', '.join(INITIALIZERS)}"
        expected = f"expected a number or an initializer as the value of {name!r}"
        return self.syntax_error(f"{expected}, found {initializer!r}", hint=hint)

    def invalid_initializer_arguments(
        self, message: str, initializer: str
    ) -> ExpressionSyntaxError:
        """Return the error for an initializer with invalid arguments."""
        return self.syntax_error(
            message, hint=f"write: {_INITIALIZER_EXAMPLES.get(initializer, initializer)}"
        )

    def invalid_initializer_shape(self, message: str, axes: int) -> ExpressionSyntaxError:
        """Return the error for a matrix initializer that is applied to a scalar or a vector."""
        hint = "initialize biases with zeros" if axes else "write normal(0.1) or uniform(-1, 1)"
        return self.syntax_error(message, hint=hint)

    def initializer_for_input(self, initializer: str) -> ExpressionSyntaxError:
        """Return the error for an input that is declared with a weight initializer."""
        hint = "write normal(1) or uniform(-1, 1)"
        return self.syntax_error(
            f"initializer {initializer!r} can only be used for parameters", hint=hint
        )

    def initializer_with_domain(self, name: str) -> ExpressionSyntaxError:
        """Return the error for an input that has both an initializer and a domain."""
        message = f"an input with a domain cannot have an initializer; {name!r} has both"
        return self.syntax_error(message, hint="declare a value from the domain, or no value")

    def invalid_end_of_declaration(self, has_value: bool) -> ExpressionSyntaxError:
        """Return the error for an unexpected token after a declaration."""
        if is_number(self.token.text):
            return self.syntax_error(
                f"expected '=' between {self.before.text!r} and {self.token.text!r}"
            )
        message = f"expected the end of the statement, found {self.token.description}"
        hint = "declare a number, such as 0.5, or an initializer" if has_value else _SEPARATOR
        return self.syntax_error(message, hint=hint)

    def missing_operand(self, parentheses: OpenParentheses, message: str) -> ExpressionSyntaxError:
        """Return the error for a missing operand (a number, name or parenthesis)."""
        token, before = self.token, self.before
        if token.text in (*ENDS, "=") and parentheses:
            return self.unclosed_parenthesis(parentheses)
        if token.text == ")" and parentheses and before.text not in _OPERATORS:
            name = function_name(self.texts[parentheses[-1][0]])
            what = f"the call of {name!r}" if name else "these parentheses"
            return self.syntax_error(f"expected an expression in {what}, found ')'")
        hint = _OPERAND_HINTS.get(token.text, "")
        if before.text in _OPERATORS:
            message = f"expected a number, a name or '(' after {before.text!r}"
            if token.text == "\n":
                hint = "to continue an expression on the next line, put it in parentheses"
        return self.syntax_error(f"{message}, found {token.description}", hint=hint)

    def missing_operator(
        self, parentheses: OpenParentheses, functions: Functions
    ) -> ExpressionSyntaxError:
        """Return the error for an operand that is not followed by an operator."""
        left, right, after = self.before.text, self.token.text, self.following.text
        begins = right.isidentifier() and (after == "=" or after.isidentifier())
        if right == "=" and parentheses and left in ("axis", "axes", "dim"):
            name = function_name(self.texts[parentheses[-1][0]])
            hint = f"for axis 0 write {_EQUIVALENT_FUNCTIONS.get(name, f'{name}(a, 0)')}"
            return self.syntax_error("arguments cannot be passed by name", self.before, hint=hint)
        if parentheses and (right in (*ENDS, "=") or begins):
            return self.unclosed_parenthesis(parentheses)
        if right in (")", "]"):
            kind = "parenthesis" if right == ")" else "bracket"
            hint = "remove it, or add the opening one"
            return self.syntax_error(f"unmatched closing {kind}", hint=hint)
        if right == "," and parentheses:
            return self.syntax_error("a comma can only separate function arguments")
        if right in (",", "="):
            decimal = right == "," and is_number(left)
            hint = "write decimals with a point: 3.5" if decimal else _SEPARATOR
            return self.syntax_error(
                f"expected the end of the statement, found '{right}'", hint=hint
            )
        power = re.search(r"(\w+)\s*(?:\^|\*\*)\s*-?$", self.source.text[: self.before.start])
        if right == "(" and power and functions[power[1]]:
            hint = f"write the power after the call: {power[1]}(...)^{left}"
            hint = f"write a{power[1]}(...), or 1/{power[1]}(...)" if power[0][-1] == "-" else hint
        elif right == "(" or left == ")" or is_number(left):
            adjacent = self.before.start + len(left) == self.token.start
            hint = f"insert a multiplication sign: {f'{left}*{right}' if adjacent else '*'}"
        elif functions[left]:
            hint = f"write the operand of a function in parentheses: {left}({right})"
        else:
            hint = "add an operator such as * or +, or a line break"
        message = f"missing operator between {left!r} and {right!r}"
        return self.syntax_error(message, hint=hint, since=self.before.start)

    def unclosed_parenthesis(self, parentheses: OpenParentheses) -> ExpressionSyntaxError:
        """Return the error for a parenthesis that is never closed."""
        opening = _Token("(", self.spans[parentheses[-1][0]].end - 1)
        more = "; pass arguments by position: sum(a, 0)" * (self.token.text == "=")
        hint = f"add the missing ')'{more}"
        return self.syntax_error("the parenthesis is never closed", opening, hint=hint)

    def line_break_in_call(self) -> ExpressionSyntaxError:
        """Return the error for a line break between a function and its parenthesis."""
        name = function_name(self.texts[self.index])
        return self.syntax_error(f"the parenthesis of {name!r} must be on the same line")

    def invalid_call(
        self, end: int, count: int, functions: Functions
    ) -> ExpressionSyntaxError | UnknownFunctionError:
        """Return the error for a call to an unknown function or with too many or few arguments."""
        name, start = self.token
        rows = functions[name]
        if not rows:
            if not name.isidentifier():
                return self.syntax_error("")
            spelling = _EQUIVALENT_FUNCTIONS.get(name.casefold())
            near = f"write {spelling}" if spelling else did_you_mean(name, functions)
            other = f"for a product write {name}*( ... ); 'cgprimer primitives' lists the functions"
            span = Span(self.source, start, start + len(name))
            return UnknownFunctionError(f"unknown function {name!r}", span, hint=near or other)
        counts = {n for r in rows for n in range(r.arity - len(r.defaults), r.arity + 1)}
        texts = sorted(counts) if len(counts) < 4 else [f"{min(counts)} to {max(counts)}"]
        takes = " or ".join(map(str, texts)) + " or more" * rows[0].associative
        return UnknownFunctionError(
            f"{name!r} takes {takes} argument{'' if takes == '1' else 's'}, got {count}",
            Span(self.source, start, self.spans[end].end),
        )
