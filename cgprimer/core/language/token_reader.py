"""A cursor over the tokens of a text, shared by the parsers of statements and of declarations."""

from __future__ import annotations

import math
from typing import Any, NoReturn

from cgprimer.core.language.tokens import tokenize
from cgprimer.errors import Source


class TokenReader:
    """The tokens of a source, and the index of the next token.

    Attributes:
        source: the text.
        tokens: all tokens; the last one is empty.
        index: the index of the next token.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens = tokenize(source.text)
        self.index = 0

    def fail(self, problem: str, at: int, *details: Any) -> NoReturn:
        """Raise the error that a method of ``SyntaxErrors`` builds for the token at an index."""
        from cgprimer.core.language.syntax_errors import SyntaxErrors

        raise getattr(SyntaxErrors(self.source, at), problem)(*details)

    def skip_lines(self, index: int) -> None:
        """Move to the first token from an index on that is not a line break."""
        while self.tokens[index] == "\n":
            index += 1
        self.index = index

    def integer(self, at: int) -> int:
        """Parse an integer with an optional sign, and move behind it."""
        sign = self.tokens[at] == "-"
        digits = self.tokens[at + sign]
        if not digits.isdecimal() or len(digits) > 300:  # Python limits the digits of an int
            self.fail("expected", at + sign, "an integer")
        self.index = at + sign + 1
        return -int(digits) if sign else int(digits)

    def number(self, at: int) -> float:
        """Return the value of the literal at an index."""
        value = float(self.tokens[at])
        if math.isinf(value):
            largest = "(the largest is 1.8e308)"
            self.fail("error", at, f"the number is too large for a double {largest}")
        return value
