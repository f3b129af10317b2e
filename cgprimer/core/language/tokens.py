"""Text to tokens.

One regular expression, one pass in C; a token is nothing but its characters, so that a million of
them stay cheap. Where a token stands is asked only when something is wrong there. White space and
comments (from ``#`` to the end of the line) are no tokens; a new line is one, for the parser
knows whether it stands inside parentheses.
"""

from __future__ import annotations

import re

from cgprimer.errors import Source, Span

_SPACE = r"[ \t\r\f\v\ufeff\u00a0]"
_PATTERN = re.compile(
    rf"""
    {_SPACE}*(?:\#[^\n]*)?
    ( [^\W\dˆ][^\Wˆ]*(?:(?:{_SPACE}|\n|\#[^\n]*\n)*\()?      # a name; a call with its "("
    | \*\*|[-+*/^@(),=;:\[\]\n]
    | (?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?
    | \Z|.                                             # the end; a character that means nothing
    )
    """,
    re.VERBOSE | re.DOTALL,
)


def tokenize(text: str) -> list[str]:
    """All tokens of a text, with an empty one at the end. A name that is called ends in ``(``.

    >>> tokenize("xw = cd*sin (xx)")
    ['xw', '=', 'cd', '*', 'sin (', 'xx', ')', '']
    """
    return _PATTERN.findall(text)


def spans(source: Source) -> list[Span]:
    """Where each of the tokens stands.

    >>> [(span.start, span.end) for span in spans(Source("<text>", "xw = 2^xa"))]
    [(0, 2), (3, 4), (5, 6), (6, 7), (7, 9), (9, 9)]
    """
    return [Span(source, *found.span(1)) for found in _PATTERN.finditer(source.text)]


def called(token: str) -> str:
    """Return the name before the parenthesis of a call; empty if the token is not a call.

    >>> called("sin ("), called("("), called("sin")
    ('sin', '', '')
    """
    return token[:-1].partition("#")[0].rstrip() if token.endswith("(") else ""


def is_number(token: str) -> bool:
    """Whether a token is a number; names are what ``str.isidentifier`` says."""
    return token[:1] in "0123456789." and token not in ("", ".")
