"""Names of a graph as identifiers of another language."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable

_LETTER = re.compile(r"(?:GREEK|CYRILLIC) (?:SMALL|CAPITAL) LETTER (\w+)$")


def identifiers(
    names: Iterable[str], *, ascii_only: bool, taken: Callable[[str], bool]
) -> dict[str, str]:
    """An identifier for each name, no two alike.

    Args:
        names: those that should stay as they are first; ``W[0,1]`` and ``bar.xz`` are no letters
            of any language and become ``W_0_1`` and ``bar_xz``.
        ascii_only: whether the language has no other letters.
        taken: whether the language, or the file, has a word already: it gets ``_`` behind.

    >>> identifiers(["W[0,1]", "lambda", "α"], ascii_only=True, taken={"lambda"}.__contains__)
    {'W[0,1]': 'W_0_1', 'lambda': 'lambda_', 'α': 'alpha'}
    """
    found: dict[str, str] = {}
    given = set[str]()
    for name in names:
        text = re.sub(r"\W+", "_", unicodedata.normalize("NFKC", name.replace("]", "")))
        if ascii_only:
            text = "".join(map(_plain, text))
        while text in given or taken(text):
            text += "_"
        given.add(text)
        found[name] = text
    return found


def _plain(letter: str) -> str:
    """A letter in ASCII: Greek ones by name, others without their accents, or by their number.

    >>> [_plain(letter) for letter in "xαéжß中"]
    ['x', 'alpha', 'e', 'zhe', 'ss', 'u4e2d']
    """
    if letter.isascii():
        return letter
    parts = unicodedata.normalize(
        "NFKD", letter if len(letter.casefold()) == 1 else letter.casefold()
    )
    bare = "".join(c for c in parts if c.isascii())
    named = _LETTER.match(unicodedata.name(letter, ""))
    if named:
        greek = named[1].lower()
        return greek.capitalize() if letter.isupper() else greek
    return bare if bare.isalnum() else f"u{ord(letter):x}"
