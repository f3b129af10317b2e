"""Read formulas in the usual notation of mathematics.

`read_formula` reads an answer. A text that follows the grammar of the language and contains only
known names is read by that grammar. Any other text is rewritten first: ``2x``, ``x e^x``,
``sin^2(x)``, ``ln x``, ``√2``, ``x²``, ``|x|``, ``a·b`` and the LaTeX commands for these. A text
with two usual readings, such as ``1/2x``, is an error whose hint shows both.

A known name is never divided: ``xy`` is a product only if ``xy`` is not a known name and if it
consists of known names in exactly one way.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NoReturn

from cgprimer.course.checks.notation_tokens import (
    CHARACTERS,
    MAX_DEPTH,
    MAX_LENGTH,
    SYMBOLS,
    Token,
    find_function_name,
    is_superscript,
    replace_latex,
    split_tokens,
)
from cgprimer.errors import ExpressionSyntaxError, Source, SourceError, Span, UnknownFunctionError
from cgprimer.expressions import Expression, names_in, parse_expression

_MAX_NAME = 40  # characters of a name that is divided into known names


def read_formula(
    text: str, names: Collection[str], source_name: str = "<answer>", *, variable: str = ""
) -> Expression:
    """Parse a formula in the expression language or in common mathematical notation.

    Args:
        text: the formula.
        names: the known names, which products without a sign may consist of.
        source_name: the name of the text in messages.
        variable: the argument of functions without one, as in ``-csch^2``; empty if such
            functions are errors.

    Raises:
        SourceError: the text cannot be read or has two usual readings.

    >>> from cgprimer.core.operations.notation import unparse
    >>> unparse(read_formula("2x e^(-x) + sin^2 x", ["x", "e"]))
    '2*x*e^-x + sin(x)^2'
    """
    try:
        tree = parse_expression(text, source_name)
    except SourceError as error:
        parse_error: SourceError | None = error
    else:
        parse_error = None
        unknown = [name for name in names_in(tree) if name not in names]
        if not any(_has_usual_meaning(name, names) for name in unknown):
            return tree
    if len(text) > MAX_LENGTH:
        if parse_error:
            raise parse_error
        return tree
    rewritten = rewrite_notation(text, names, source_name, variable=variable)
    is_unchanged = "".join(rewritten.split()) == "".join(text.split())
    if parse_error and is_unchanged:  # its positions are those of the original text
        raise parse_error
    try:
        return parse_expression(rewritten, source_name)
    except SourceError:
        if isinstance(parse_error, UnknownFunctionError):  # its hint suggests a function
            raise parse_error from None
        raise


def rewrite_notation(
    text: str, names: Collection[str], source_name: str = "<answer>", *, variable: str = ""
) -> str:
    """Translate a formula from mathematical notation to the expression language.

    >>> rewrite_notation("|x|√2 − ½x²", ["x"])
    'abs(x)*sqrt(2) - (1/2)*x^(2)'
    """
    source = Source(source_name, replace_latex(text).translate(CHARACTERS))
    return _Rewriter(source, names, variable).rewrite_formula()


def _has_usual_meaning(name: str, names: Collection[str]) -> bool:
    """Return whether an undefined name, such as ``xy`` or ``π``, has a mathematical meaning."""
    if name in SYMBOLS or any(map(is_superscript, name)):
        return True
    return bool(find_function_name(name) or _divide_name(name, names))


def _divide_name(name: str, names: Collection[str]) -> list[list[str]]:
    """Return at most two ways to split a name such as ``xy`` into known names and functions."""
    if len(name) > _MAX_NAME:
        return []
    divisions: list[list[list[str]]] = [[[]]]  # of the first 0, 1, 2, ... characters
    for end in range(1, len(name) + 1):
        divisions.append(
            [
                [*before, name[start:end]]
                for start in range(end)
                if _is_name_or_function(name[start:end], names)
                for before in divisions[start]
                if before[-1:] != [name[start:end]]  # xx is a misspelled name, not x*x
            ][:2]
        )
    return divisions[-1]


def _is_name_or_function(text: str, names: Collection[str]) -> bool:
    """Return whether a substring of a name is a known name, a symbol or a function."""
    return text in names or text in SYMBOLS or (len(text) > 1 and bool(find_function_name(text)))


class _Rewriter:
    """Rewrites a formula in mathematical notation by recursive descent of bounded depth.

    Attributes:
        source: the formula.
        names: the known names.
        variable: the argument of functions without one.
        tokens: the tokens of the formula.
        index: the index of the next token.
        depth: the number of nested operands.
        open_bar: whether a ``|`` that begins an absolute value is open.
        seen_bar: whether the formula contains an absolute value so far.
        in_exponent: whether the next token belongs to an exponent.
    """

    def __init__(self, source: Source, names: Collection[str], variable: str, depth: int = 0):
        self.source, self.names, self.variable = source, names, variable
        self.tokens = split_tokens(source.text)
        self.index, self.depth = 0, depth
        self.open_bar, self.seen_bar = False, False
        self.in_exponent = False

    # --- tokens --------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.index]

    @property
    def previous(self) -> Token:
        """The token that was consumed last."""
        return self.tokens[self.index - 1]

    def accept(self, *texts: str) -> str:
        """Consume the next token if it is one of the operators; return its text, or ``""``."""
        token = self.token
        if token.kind == "operator" and token.text in texts:
            self.index += 1
            return token.text
        return ""

    def raise_error(self, message: str, first: int, last: int, *, hint: str = "") -> NoReturn:
        """Raise a syntax error with carets under a range of tokens."""
        start, end = self.tokens[first].start, self.tokens[last].end
        raise ExpressionSyntaxError(
            message, Span(self.source, start, max(end, start + 1)), hint=hint
        )

    def raise_ambiguous(self, first: int, last: int, hint: str) -> NoReturn:
        """Raise a syntax error for a range of tokens that has two possible meanings."""
        text = self.source.text[self.tokens[first].start : self.tokens[last].end]
        self.raise_error(f"{text!r} is ambiguous", first, last, hint=hint)

    def is_at_operand(self) -> bool:
        """Return whether the next token begins an operand."""
        token = self.token
        if token.kind in ("number", "name"):
            return True
        if token.text == "|" and token.kind == "operator":
            return not self.open_bar
        return token.kind == "operator" and token.text in ("(", "√")

    # --- the grammar, from loose to tight ------------------------------------------------------

    def rewrite_formula(self) -> str:
        """Rewrite all tokens as a formula in the expression language."""
        text = self.rewrite_sum()
        if self.token.kind != "end":  # the parser of the language says what is wrong
            return text + self.source.text[self.previous.end :]
        return text

    def rewrite_sum(self) -> str:
        """Rewrite a sum of terms that are separated by plus and minus signs."""
        parts = [self.rewrite_term()]
        while sign := self.accept("+", "-"):
            parts.append(f" {sign} {self.rewrite_term()}")
        return "".join(parts)

    def rewrite_term(self) -> str:
        """Rewrite a product or quotient, in which the product sign may be omitted."""
        first = self.index
        text, divided = self.rewrite_signed_power(), 0
        while True:
            if operator := self.accept("*", "/", "@"):
                divided = self.index if operator == "/" else 0
                text += operator + self.rewrite_signed_power()
            elif self.is_at_operand():
                self.check_implicit_product(first, divided)
                text += "*" + self.rewrite_power()
            else:
                return text

    def check_implicit_product(self, first: int, divided: int) -> None:
        """Raise a syntax error if a product without ``*`` is ambiguous, as in ``1/2x``."""
        text = self.source.text
        token = self.token
        if divided:
            upper = text[self.tokens[first].start : self.tokens[divided - 2].end]
            lower = text[self.tokens[divided].start : self.previous.end]
            hint = f"write ({upper}/{lower})*{token.text} or {upper}/({lower}*{token.text})"
            self.raise_ambiguous(first, self.index, hint)
        if token.kind == "number":
            self.raise_error(
                f"missing operator between {self.previous.text!r} and {token.text!r}",
                self.index - 1,
                self.index,
                hint="write a product with *, a power with ^",
            )
        after_bar = self.previous.text == "|" and self.previous.kind == "operator"
        if token.text == "|" and self.seen_bar and not after_bar:
            self.raise_ambiguous(first, self.index, "write abs(...) instead of |...|")

    def rewrite_signed_power(self) -> str:
        """Rewrite an optionally signed power."""
        signs = ""
        while sign := self.accept("+", "-"):
            signs += sign
        return signs.replace("+", "") + self.rewrite_power()

    def rewrite_power(self) -> str:
        """Rewrite an operand, followed by any exponents."""
        first = self.index
        base = self.rewrite_operand()
        return self.append_exponent(base, first)

    def append_exponent(self, base: str, first: int) -> str:
        """Append the exponents that follow in the formula to a base."""
        if self.token.kind == "superscript":
            base += f"^({self.rewrite_superscript()})"
            if self.token.text in ("^", "**") or self.token.kind == "superscript":
                self.raise_ambiguous(first, self.index, "write the powers with parentheses")
            return base
        if not self.accept("^", "**"):
            return base
        start = self.index
        exponent = self.rewrite_exponent()
        if (base == "e" or base[:1].isdigit()) and self.tokens[start].text != "(":
            self.check_exponent(base, exponent, first)
        return f"{base}^{exponent}"

    def rewrite_exponent(self) -> str:
        """Rewrite the exponent after ``^``: an optionally signed power."""
        signs = ""
        while sign := self.accept("+", "-"):
            signs += sign
        self.enter_level()
        before, self.in_exponent = self.in_exponent, True
        text = signs.replace("+", "") + self.rewrite_power()
        self.in_exponent = before
        self.depth -= 1
        return text

    def check_exponent(self, base: str, exponent: str, first: int) -> None:
        """Raise a syntax error if the extent of an exponent is ambiguous, as in ``e^2x``."""
        token = self.token
        if token.spaced or not self.is_at_operand():
            return
        if token.text == "(" and not exponent.lstrip("-")[:1].isdigit():
            return
        hint = f"write {base}^({exponent}*...) or {base}^{exponent.strip()}*..."
        self.raise_ambiguous(first, self.index, hint)

    def rewrite_superscript(self) -> str:
        """Rewrite a superscript, such as ``²``, as a formula."""
        token = self.token
        self.index += 1
        source = Source(self.source.name, token.text)
        inner = _Rewriter(source, self.names, "", self.depth + 1)
        return inner.rewrite_formula()

    # --- operands ------------------------------------------------------------------------------

    def rewrite_operand(self) -> str:
        """Rewrite an operand at the next nesting level."""
        self.enter_level()
        text = self.rewrite_operand_at_level()
        self.depth -= 1
        return text

    def enter_level(self) -> None:
        """Enter a nesting level; raise a syntax error if the formula is nested too deeply."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.raise_error(
                f"more than {MAX_DEPTH} nested parentheses and powers",
                self.index,
                self.index,
                hint="write the formula with * between all factors",
            )

    def rewrite_operand_at_level(self) -> str:
        """Rewrite an operand: a number, name, call, root, or formula in parentheses or bars."""
        token, at = self.token, self.index
        if token.kind == "number":
            self.index += 1
            self.check_mixed_number(at)
            return token.text
        if token.kind == "name":
            return self.rewrite_name()
        if self.accept("("):
            return f"({self.rewrite_arguments(')')})"
        if self.accept("|"):
            self.seen_bar, before, self.open_bar = True, self.open_bar, True
            text = self.rewrite_sum()
            if not self.accept("|"):
                self.raise_error("unmatched |", at, at, hint="write abs(...)")
            self.open_bar = before
            return f"abs({text})"
        if self.accept("√"):
            return self.rewrite_root(at)
        if token.kind == "superscript":
            self.raise_error("missing base of an exponent", at, at)
        self.index += token.kind != "end"  # the parser of the language says what is wrong
        return token.text

    def check_mixed_number(self, at: int) -> None:
        """Raise a syntax error for an ambiguous mixed number, such as ``2½``."""
        token, other = self.tokens[at], self.token
        if other.kind == "number" and not other.spaced and "(" in token.text + other.text:
            hint = "write 2.5 or 2*(1/2)"
            self.raise_ambiguous(at, self.index, hint)

    def rewrite_arguments(self, close: str) -> str:
        """Rewrite comma-separated arguments up to the closing parenthesis."""
        bar, self.open_bar = self.open_bar, False
        exponent, self.in_exponent = self.in_exponent, False
        parts = [self.rewrite_sum()]
        while self.accept(","):
            parts.append(self.rewrite_sum())
        self.open_bar, self.in_exponent = bar, exponent
        if not self.accept(close) and self.token.kind != "end":
            self.raise_error(
                f"expected {close!r}, found {self.token.text!r}", self.index, self.index
            )
        if self.previous.text != close:
            self.raise_error(
                "the parenthesis is never closed",
                self.index - 1,
                self.index - 1,
                hint="add the missing ')'",
            )
        return ", ".join(parts)

    def rewrite_root(self, at: int) -> str:
        """Rewrite the operand of a root sign as a call to ``sqrt``."""
        if self.token.text == "(":
            return f"sqrt{self.rewrite_operand()}"
        argument = self.rewrite_operand()
        token = self.token
        joined = self.is_at_operand() and not token.spaced and token.text != "√"
        if joined or token.kind == "superscript" or token.text in ("^", "**"):
            self.raise_ambiguous(at, self.index, "write √(...) with parentheses")
        return f"sqrt({argument})"

    def rewrite_name(self) -> str:
        """Rewrite a name, a call, or a name such as ``xy`` that is a product of known names."""
        token, at = self.token, self.index
        is_call = self.tokens[at + 1].text == "(" and self.tokens[at + 1].kind == "operator"
        function = find_function_name(token.text)
        if not function and is_call:  # such as Sin(x)
            function = find_function_name(token.text.lower())
        if token.text in self.names:
            self.index += 1
            if is_call and function:
                hint = f"{token.text} is a known name: write {token.text}*(...) or {function}(...)"
                self.raise_ambiguous(at, at + 1, hint)
            return token.text + self.copy_index()
        if function:
            self.index += 1
            return self.rewrite_call(function, at)
        if token.text in SYMBOLS and SYMBOLS[token.text] in (*self.names, "pi", "e"):
            self.index += 1
            return SYMBOLS[token.text]
        products = _divide_name(token.text, self.names)
        if not products:
            self.index += 1
            return token.text + self.copy_index()
        if len(products) > 1:
            readings = " or ".join("*".join(product) for product in products)
            self.raise_ambiguous(at, at, f"write {readings}")
        factors = products[0]
        if self.in_exponent:
            hint = f"write ^({'*'.join(factors)}) or ^{factors[0]}*..."
            self.raise_ambiguous(at - 1, at, hint)
        self.tokens[at : at + 1] = _divide_token(token, factors)
        return self.rewrite_name()

    def copy_index(self) -> str:
        """Copy the index in brackets, such as ``[0,1]``, that follows an array name."""
        text = ""
        while self.token.text == "[" and self.token.kind == "operator":
            start = self.token.start
            while self.token.kind != "end" and not self.accept("]"):
                self.index += 1
            text += self.source.text[start : self.previous.end]
        return text

    def rewrite_call(self, function: str, at: int) -> str:
        """Rewrite the exponent and the argument that follow a function name."""
        exponent = ""
        if self.token.kind == "superscript":
            exponent = self.rewrite_superscript()
        elif self.accept("^", "**"):
            exponent = self.rewrite_exponent()
        if re.fullmatch(r"\(?-.*", exponent):
            inverse = find_function_name(f"a{function}")
            hint = f"write 1/{function}(...)" + (f" or {inverse}(...)" if inverse else "")
            self.raise_ambiguous(at, self.index - 1, hint)
        if self.token.text == "(" and self.token.kind == "operator":
            self.index += 1
            argument = self.rewrite_arguments(")")
        elif self.is_at_operand() and not (self.variable and self.is_at_function()):
            argument = self.rewrite_bare_argument(function, at)
        elif self.variable:
            argument = self.variable
        else:
            self.raise_error(f"missing argument of {function}", at, at, hint=f"write {function}(x)")
        if not exponent:
            return f"{function}({argument})"
        if self.token.text in ("^", "**") or self.token.kind == "superscript":
            self.raise_ambiguous(at, self.index, f"write ({function}(...)^{exponent})^...")
        return f"{function}({argument})^({exponent})"

    def rewrite_bare_argument(self, function: str, at: int) -> str:
        """Rewrite a function argument without parentheses, such as ``2x`` in ``sin 2x``."""
        hint = f"write the argument in parentheses: {function}(...)"
        if self.in_exponent:
            self.raise_ambiguous(at, self.index, hint)
        numeric = self.token.kind == "number"
        text = self.rewrite_power()
        while self.is_at_operand() and not self.is_at_function():
            token = self.token
            if token.kind == "number" or token.text in ("(", "|") or (token.spaced and not numeric):
                self.raise_ambiguous(at, self.index, hint)
            text += "*" + self.rewrite_power()
        follows = self.tokens[min(self.index + 1, len(self.tokens) - 1)]
        tight = self.token.text in ("*", "/") and not self.token.spaced
        if tight and not (follows.kind == "name" and self.is_function(follows.text)):
            self.raise_ambiguous(at, self.index, hint)
        return text

    def is_at_function(self) -> bool:
        """Return whether the next token is a function name."""
        return self.token.kind == "name" and self.is_function(self.token.text)

    def is_function(self, name: str) -> bool:
        """Return whether a name refers to a function rather than to a known variable."""
        return name not in self.names and bool(find_function_name(name))


def _divide_token(token: Token, pieces: list[str]) -> list[Token]:
    """Split a name token into one token per given piece."""
    start, tokens = token.start, []
    for piece in pieces:
        spaced = token.spaced and start == token.start
        tokens.append(Token("name", piece, start, start + len(piece), spaced))
        start += len(piece)
    return tokens
