"""The tokenizer: one regular expression that splits a text into tokens.

A token is only its characters, so that a million of them are cheap; positions are computed when an
error message needs them. White space and comments (from ``#`` to the end of the line) are skipped.
A line break is a token: the parser ignores it inside parentheses.
"""

from __future__ import annotations

import re

from cgprimer.errors import Source, Span

ROLES = ("input", "parameter", "output")  # words that begin a declaration
ENDS = ("\n", ";", "")  # tokens that end a statement

_SPACE = r"[ \t\r\f\v\ufeff\u00a0]"
_PATTERN = re.compile(
    rf"""
    {_SPACE}*(?:\#[^\n]*)?
    ( [^\W\dˆ][^\Wˆ]*(?:(?:{_SPACE}|\n|\#[^\n]*\n)*\()?      # a name; a call with its "("
    | \*\*|[-+*/^@(),=;:\[\]\n]
    | (?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?
    | \Z|.                                             # the end; an invalid character
    )
    """,
    re.VERBOSE | re.DOTALL,
)


def tokenize(text: str) -> list[str]:
    """Split a text into tokens; the token of a function call is its name with the parenthesis.

    The last token is an empty string.

    >>> tokenize("xw = cd*sin (xx)")
    ['xw', '=', 'cd', '*', 'sin (', 'xx', ')', '']
    """
    return _PATTERN.findall(text)


def locate_tokens(source: Source) -> list[Span]:
    """Return the span of each token of a source text.

    >>> [(span.start, span.end) for span in locate_tokens(Source("<text>", "xw = 2^xa"))]
    [(0, 2), (3, 4), (5, 6), (6, 7), (7, 9), (9, 9)]
    """
    return [Span(source, *match.span(1)) for match in _PATTERN.finditer(source.text)]


def function_name(token: str) -> str:
    """Return the function name in the token of a call; an empty string for other tokens.

    >>> function_name("sin ("), function_name("("), function_name("sin")
    ('sin', '', '')
    """
    return token[:-1].partition("#")[0].rstrip() if token.endswith("(") else ""


def is_number(token: str) -> bool:
    """Return whether a token is a numeric literal."""
    return token[:1] in "0123456789." and token not in ("", ".")
