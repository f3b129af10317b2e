"""What is said of a text that leaves the grammar: loaded when one does.

A complaint looks at the tokens around the one where the parser gave up, says what was expected
there and, where one is likely, what was meant; the parser raises what it returns.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from unicodedata import category

from cgprimer.core.language.domains import ONE_HOT, Domain
from cgprimer.core.language.initializers import INITIALIZERS
from cgprimer.core.language.parser import ENDS, ROLES
from cgprimer.core.language.syntax import MOST_NUMBERS, Functions
from cgprimer.core.language.tokens import called, is_number, spans, tokenize
from cgprimer.errors import ExpressionSyntaxError, Source, Span, UnknownFunctionError, did_you_mean
from cgprimer.odd_characters import MEANT, advice

Groups = list[tuple[int, int]]  # the token that opened each, and operands before it

# What other languages call our functions.
_KNOWN_AS = {
    "lg": "log10(a)", "pow": "a^b", "power": "a^b", "if": "where(a, b, c)",
    "tg": "tan(a)", "ctg": "cot(a)",
    "sgn": "sign(a)", "logistic": "sigmoid(a)", "square": "a^2", "clip": "clamp(a, b, c)",
    "fabs": "abs(a)",
    "matmul": "a @ b", "mm": "a @ b", "mv": "a @ b", "t": "transpose(a)", "view": "reshape(a, 8)",
    "max": "largest(a, 0)", "min": "-largest(-a, 0)",  # along an axis
}  # fmt: skip

_NO_OPERAND = {"=": "a single '=' defines a name", "/": "a comment begins with '#'", "[":
    "brackets hold places, x[0], or declared values, a[2] = [1,2]; to group, '('"}  # fmt: skip

_INITIALIZER_EXAMPLES = {"normal": "normal(0.1)", "uniform": "uniform(-1, 1)"}
_STATEMENT = "a statement reads: name = expression"
_SEPARATOR = "statements are separated by a new line or ';'"
_OPERATORS = ("+", "-", "*", "**", "/", "^")


class _Token(NamedTuple):
    """A token and where it stands; the parenthesis of a call is one of its own."""

    text: str
    start: int

    @property
    def shown(self) -> str:
        ends = {"": "the end of the text", "\n": "the end of the line", ";": "';'"}
        return ends.get(self.text) or repr(self.text)


class Complaints:
    """What can be said of one token of a source and of those around it."""

    def __init__(self, source: Source, at: int) -> None:
        self.source, self.spans = source, spans(source)
        tokens = [_Token("", 0)]  # without new lines inside parentheses
        depth = place = 0
        self.texts = tokenize(source.text)  # as the parser sees them
        for number, (text, span) in enumerate(zip(self.texts, self.spans, strict=True)):
            if number == at:
                place = len(tokens)
            if text[-1:] == "(":
                name = called(text)
                if name:
                    tokens.append(_Token(name, span.start))
                tokens.append(_Token("(", span.end - 1))
            elif text != "\n" or not depth:
                tokens.append(_Token(text, span.start))
            depth = 0 if text == ";" else max(0, depth + (text[-1:] == "(") - (text == ")"))
        self.before, self.token, self.following = [*tokens, tokens[-1]][place - 1 : place + 2]

    def error(
        self, message: str, token: _Token | None = None, *, hint: str = "", since: int | None = None
    ) -> ExpressionSyntaxError:
        """The complaint; where the token is no token of the language, a complaint about that."""
        text, start = token or self.token
        known = text in ENDS or text in "(),=[]:@" or text in _OPERATORS or is_number(text)
        if not known and (text in MEANT or not text.isidentifier()):
            start += next((i for i, c in enumerate(text) if not f"a{c}".isidentifier()), 0)
            text, hint = self.source.text[start], advice(self.source.text[start:])
            shown = f"U+{ord(text):04X}" if category(text)[0] in "CMZ" else text
            message, since = f"unexpected character {shown!r}", start
        span = Span(self.source, start if since is None else since, start + (len(text) or 1))
        return ExpressionSyntaxError(message, span, hint=hint)

    def no_statement(self) -> ExpressionSyntaxError:
        """Neither a definition nor a declaration begins here."""
        first, second = self.token, self.following
        if not first.text.isidentifier():
            hint = _NO_OPERAND.get(first.text * (second.text == "/"), _STATEMENT)
            return self.error(f"expected a statement, found {first.shown}", hint=hint)
        message = f"expected '=' after {first.text!r}"
        if second.text.isidentifier():
            return self.error(message, second, hint=did_you_mean(first.text, ROLES))
        hint = "arrays are declared: parameter W[8,4]" if second.text == "[" else _STATEMENT
        return self.error(f"{message}, found {second.shown}", second, hint=hint)

    def expected(self, what: str) -> ExpressionSyntaxError:
        """Something else should stand here."""
        if self.before.text in (*ROLES, ",") and self.following.text == "(":
            return self.error("expected the end of the statement, found '('", self.following)
        return self.error(f"expected {what}, found {self.token.shown}")

    def too_large(self) -> ExpressionSyntaxError:
        """An array is declared whose numbers fill no ordinary memory."""
        said = f"{self.token.text!r} would have more than {MOST_NUMBERS:,} numbers"
        return self.error(said, hint="samples are no axis of a shape: they are given with the data")

    def no_domain(self) -> ExpressionSyntaxError:
        """No domain follows the word ``in``."""
        found = self.following if self.token.text == "in" else self.token
        message = f"expected a domain after 'in', found {found.shown}"
        if self.token.text.replace("_", "").casefold() in ("one", "onehot", "hot"):
            return self.error(message, hint="write: in one-hot")
        hint = "write a finite set in braces, in {0, 1}, or: in one-hot"
        return self.error(message, hint=hint)

    def no_values(self, problem: str) -> ExpressionSyntaxError:
        """The braces of a domain are empty."""
        return self.error(problem, _Token("", self.token.start))

    def domain_of_no_input(self, role: str, name: str) -> ExpressionSyntaxError:
        """A parameter or an output is declared with a domain."""
        message = f"only an input can have a domain; {name!r} is declared {role!r}"
        hint = f"write: input {name}" if role == "parameter" else "remove the domain"
        return self.error(message, hint=hint)

    def not_in_domain(self, name: str, domain: Domain) -> ExpressionSyntaxError:
        """A declared value is not one of the values of the domain."""
        must = "one-hot (a single 1, otherwise 0)" if domain == ONE_HOT else "in its domain"
        return self.error(f"the declared value of {name!r} must be {must}")

    def unknown_initializer(self, name: str) -> ExpressionSyntaxError:
        """A word that is not an initializer is the value of a declaration."""
        law = self.token.text
        hint = did_you_mean(law, INITIALIZERS) or f"initializers: {', '.join(INITIALIZERS)}"
        expected = f"expected a number or an initializer as the value of {name!r}"
        return self.error(f"{expected}, found {law!r}", hint=hint)

    def initializer_arguments(self, problem: str, law: str) -> ExpressionSyntaxError:
        """An initializer has the wrong number of arguments, or impossible ones."""
        return self.error(problem, hint=f"write: {_INITIALIZER_EXAMPLES.get(law, law)}")

    def initializer_shape(self, problem: str, law: str, axes: int) -> ExpressionSyntaxError:
        """The sizes do not give the number of inputs and outputs that an initializer needs."""
        hint = "initialize biases with zeros" if axes else "write normal(0.1) or uniform(-1, 1)"
        return self.error(problem, hint=hint)

    def initializer_of_input(self, law: str) -> ExpressionSyntaxError:
        """An initializer of weights stands at an input."""
        hint = "write normal(1) or uniform(-1, 1)"
        return self.error(f"initializer {law!r} is only for parameters", hint=hint)

    def initializer_and_domain(self, name: str) -> ExpressionSyntaxError:
        """An input has an initializer and a domain."""
        message = f"an input with a domain cannot have an initializer; {name!r} has both"
        return self.error(message, hint="declare one value of the domain, or no value")

    def after_declaration(self, has_value: bool) -> ExpressionSyntaxError:
        """A declaration goes on after a name or its value."""
        if is_number(self.token.text):
            return self.error(f"expected '=' between {self.before.text!r} and {self.token.text!r}")
        message = f"expected the end of the statement, found {self.token.shown}"
        plain = "a declared value is a plain number, such as 0.5, or an initializer"
        return self.error(message, hint=plain if has_value else _SEPARATOR)

    def no_operand(self, groups: Groups, missing: str) -> ExpressionSyntaxError:
        """A number, a name or a parenthesis is missing."""
        token, before = self.token, self.before
        if token.text in (*ENDS, "=") and groups:
            return self.unclosed(groups)
        if token.text == ")" and groups and before.text not in _OPERATORS:
            name = called(self.texts[groups[-1][0]])
            what = f"the call of {name!r}" if name else "these parentheses"
            return self.error(f"expected an expression in {what}, found ')'")
        hint = _NO_OPERAND.get(token.text, "")
        if before.text in _OPERATORS:
            missing = f"expected a number, a name or '(' after {before.text!r}"
            if token.text == "\n":
                hint = "inside parentheses an expression goes on over several lines"
        return self.error(f"{missing}, found {token.shown}", hint=hint)

    def no_operator(self, groups: Groups, functions: Functions) -> ExpressionSyntaxError:
        """What comes after an operand neither goes on with it nor ends the statement."""
        left, right, after = self.before.text, self.token.text, self.following.text
        begins = right.isidentifier() and (after == "=" or after.isidentifier())
        if right == "=" and groups and left in ("axis", "axes", "dim"):
            name = called(self.texts[groups[-1][0]])
            hint = f"along axis 0: {_KNOWN_AS.get(name, f'{name}(a, 0)')}"
            return self.error("arguments have no names here", self.before, hint=hint)
        if groups and (right in (*ENDS, "=") or begins):
            return self.unclosed(groups)
        if right in (")", "]"):
            it = "parenthesis" if right == ")" else "bracket"
            return self.error(f"this {it} closes nothing", hint="remove it, or open one before it")
        if right == "," and groups:
            return self.error("a comma stands inside parentheses that call no function")
        if right in (",", "="):
            decimal = right == "," and is_number(left)
            hint = "the decimal mark is a point: 3.5" if decimal else _SEPARATOR
            return self.error(f"expected the end of the statement, found '{right}'", hint=hint)
        power = re.search(r"(\w+)\s*(?:\^|\*\*)\s*-?$", self.source.text[: self.before.start])
        if right == "(" and power and functions[power[1]]:
            hint = f"a power stands behind the operand: {power[1]}(...)^{left}"
            hint = f"write a{power[1]}(...), or 1/{power[1]}(...)" if power[0][-1] == "-" else hint
        elif right == "(" or left == ")" or is_number(left):
            together = self.before.start + len(left) == self.token.start
            hint = f"a product needs its sign: {f'{left}*{right}' if together else '*'}"
        elif functions[left]:
            hint = f"a function takes its operands in parentheses: {left}({right})"
        else:
            hint = "an operator such as * or + is missing here, or a new line"
        message = f"missing operator between {left!r} and {right!r}"
        return self.error(message, hint=hint, since=self.before.start)

    def unclosed(self, groups: Groups) -> ExpressionSyntaxError:
        """The statement ends inside a parenthesis."""
        opening = _Token("(", self.spans[groups[-1][0]].end - 1)
        more = "; operands have no names: sum(a, 0)" * (self.token.text == "=")
        hint = f"add the missing ')'{more}"
        return self.error("this parenthesis is never closed", opening, hint=hint)

    def no_call(
        self, end: int, count: int, functions: Functions
    ) -> ExpressionSyntaxError | UnknownFunctionError:
        """What is called is no function, or takes another number of arguments."""
        name, start = self.token
        rows = functions[name]
        if not rows:
            if not name.isidentifier():
                return self.error("")
            meant = _KNOWN_AS.get(name.casefold())
            near = f"write {meant}" if meant else did_you_mean(name, functions)
            other = f"for a product write {name}*( ... ); 'cgprimer primitives' lists the functions"
            span = Span(self.source, start, start + len(name))
            return UnknownFunctionError(f"there is no function {name!r}", span, hint=near or other)
        counts = {n for r in rows for n in range(r.arity - len(r.defaults), r.arity + 1)}
        told = sorted(counts) if len(counts) < 4 else [f"{min(counts)} to {max(counts)}"]
        takes = " or ".join(map(str, told)) + " or more" * rows[0].associative
        return UnknownFunctionError(
            f"{name!r} takes {takes} argument{'' if takes == '1' else 's'}, not {count}",
            Span(self.source, start, self.spans[end].end),
        )
