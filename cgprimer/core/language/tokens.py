"""Text to tokens.

One regular expression, one pass; a token is a plain tuple so that a hundred thousand
expressions stay cheap. Newlines inside parentheses are spaces; a comment runs from ``#`` to the
end of its line.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from cgprimer.core.language import hints
from cgprimer.errors import ExpressionSyntaxError, Source, Span

NUMBER, NAME, OPERATOR, OPEN, CLOSE, COMMA, EQUALS, END_OF_STATEMENT, END = (
    "number", "name", "operator", "(", ")", ",", "=", "end of statement", "end of text",
)  # fmt: skip

_PATTERN = re.compile(
    r"""
    [ \t\r\f\v\ufeff\u00a0]*(?:
        (?P<name>[^\W\d]\w*)
      | (?P<operator>\*\*|[-+*/^])
      | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<equals>=)
      | (?P<newline>\n)
      | (?P<open>\()
      | (?P<close>\))
      | (?P<comma>,)
      | (?P<semicolon>;)
      | (?P<comment>\#[^\n]*)
      | (?P<end>\Z)
      | (?P<stray>.)
    )
    """,
    re.VERBOSE | re.DOTALL,
)

_KINDS = {
    "number": NUMBER, "name": NAME, "operator": OPERATOR, "comma": COMMA, "equals": EQUALS,
}  # fmt: skip


class Token(NamedTuple):
    """A piece of the text: its kind, its characters, and where it starts."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """Offset behind the last character."""
        return self.start + len(self.text)


def tokenize(source: Source) -> list[Token]:
    """All tokens of a source, ended by one of kind ``end of text``.

    >>> [t.text for t in tokenize(Source("<text>", "xw = cd*xx  # a comment"))]
    ['xw', '=', 'cd', '*', 'xx', '']

    Raises:
        ExpressionSyntaxError: a character that no expression contains.
    """
    tokens: list[Token] = []
    append = tokens.append
    kinds = _KINDS
    new = tuple.__new__  # a third of the time of Token(...), and this runs a million times
    depth = 0
    for found in _PATTERN.finditer(source.text):
        group = found.lastgroup
        assert group is not None
        text = found[group]
        start = found.end() - len(text)
        if group in kinds:
            if group == "name" and not text.isascii() and not text.isidentifier():
                # \w also takes superscripts and the like: xa² must not become a name.
                stray = (i for i, c in enumerate(text) if not f"a{c}".isidentifier())
                raise _unexpected_character(source, start + next(stray, 0))
            append(new(Token, (kinds[group], text, start)))
        elif group == "newline":
            if depth == 0:
                append(Token(END_OF_STATEMENT, text, start))
        elif group == "open":
            depth += 1
            append(Token(OPEN, text, start))
        elif group == "close":
            depth = max(0, depth - 1)
            append(Token(CLOSE, text, start))
        elif group == "semicolon":
            depth = 0  # the parser reports the parenthesis that is still open
            append(Token(END_OF_STATEMENT, text, start))
        elif group == "stray":
            raise _unexpected_character(source, start)
    append(Token(END, "", len(source.text)))
    return tokens


def _unexpected_character(source: Source, position: int) -> ExpressionSyntaxError:
    character = source.text[position]
    shown = character if character.isprintable() else f"U+{ord(character):04X}"
    meant = hints.MEANT.get(character)
    return ExpressionSyntaxError(
        f"unexpected character {shown!r}",
        Span(source, position, position + 1),
        hint=f"write {meant!r}" if meant else hints.ADVICE.get(character, ""),
    )
