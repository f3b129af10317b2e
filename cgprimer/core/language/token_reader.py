"""A token reader with a current position, shared by the parsers of expressions and declarations."""

from __future__ import annotations

import math
from typing import Any, NoReturn

from cgprimer.core.language.tokens import tokenize
from cgprimer.errors import Source


class TokenReader:
    """The tokens of a source text, and the index of the next token to be parsed.

    Attributes:
        source: the source text.
        tokens: all tokens; the last token is an empty string.
        index: the index of the next token.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens = tokenize(source.text)
        self.index = 0

    def raise_error(self, kind: str, index: int, *details: Any) -> NoReturn:
        """Raise a syntax error at the token with the given index.

        Args:
            kind: the name of the method of ``SyntaxErrors`` that builds the error.
            index: the index of the token.
            details: arguments of the method.
        """
        from cgprimer.core.language.syntax_errors import SyntaxErrors

        raise getattr(SyntaxErrors(self.source, index), kind)(*details)

    def skip_line_breaks(self, index: int) -> None:
        """Move to the first token at or after an index that is not a line break."""
        while self.tokens[index] == "\n":
            index += 1
        self.index = index

    def parse_integer(self, index: int) -> int:
        """Parse an integer with an optional minus sign, and move to the token after it."""
        sign = self.tokens[index] == "-"
        digits = self.tokens[index + sign]
        if not digits.isdecimal() or len(digits) > 300:  # Python limits the digits of an int
            self.raise_error("unexpected_token", index + sign, "an integer")
        self.index = index + sign + 1
        return -int(digits) if sign else int(digits)

    def parse_number(self, index: int) -> float:
        """Convert the numeric literal at an index to a float."""
        value = float(self.tokens[index])
        if math.isinf(value):
            limit = "(the maximum is 1.8e308)"
            self.raise_error("syntax_error", index, f"the number is too large for a double {limit}")
        return value
