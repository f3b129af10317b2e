"""Names of a graph as identifiers of another language."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable

_LETTER = re.compile(r"(?:GREEK|CYRILLIC) (?:SMALL|CAPITAL) LETTER (\w+)$")


def assign_identifiers(
    names: Iterable[str], *, ascii_only: bool, is_reserved: Callable[[str], bool]
) -> dict[str, str]:
    """Return a valid identifier for each name; all identifiers are distinct.

    Args:
        names: names such as ``W[0,1]`` and ``bar.xz``, which become ``W_0_1`` and ``bar_xz``. If
            identifiers collide, the first name has priority.
        ascii_only: allow only ASCII letters.
        is_reserved: tells whether a word is reserved; such a word gets ``_`` at its end.

    >>> reserved = {"lambda"}
    >>> assign_identifiers(
    ...     ["W[0,1]", "lambda", "α"], ascii_only=True, is_reserved=reserved.__contains__
    ... )
    {'W[0,1]': 'W_0_1', 'lambda': 'lambda_', 'α': 'alpha'}
    """
    result: dict[str, str] = {}
    used = set[str]()
    for name in names:
        text = re.sub(r"\W+", "_", unicodedata.normalize("NFKC", name.replace("]", "")))
        if ascii_only:
            text = "".join(map(_transliterate, text))
        while text in used or is_reserved(text):
            text += "_"
        used.add(text)
        result[name] = text
    return result


def _transliterate(letter: str) -> str:
    """Spell one letter in ASCII, such as ``alpha`` for a Greek letter or ``e`` without an accent.

    >>> [_transliterate(letter) for letter in "xαéжß中"]
    ['x', 'alpha', 'e', 'zhe', 'ss', 'u4e2d']
    """
    if letter.isascii():
        return letter
    parts = unicodedata.normalize(
        "NFKD", letter if len(letter.casefold()) == 1 else letter.casefold()
    )
    bare = "".join(c for c in parts if c.isascii())
    match = _LETTER.match(unicodedata.name(letter, ""))
    if match:
        spelling = match[1].lower()
        return spelling.capitalize() if letter.isupper() else spelling
    return bare if bare.isalnum() else f"u{ord(letter):x}"
