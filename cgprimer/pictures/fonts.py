"""Letters that the pictures' font has not: other fonts for them, and a word where there is none."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache

from cgprimer.pictures.theme import FONT

# Fonts of the systems in use that have Chinese, Japanese and Korean letters, and symbols.
_OTHERS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans CJK KR", "Source Han Sans",
    "WenQuanYi Zen Hei", "Hiragino Sans", "PingFang SC", "Apple SD Gothic Neo",
    "Microsoft YaHei", "Yu Gothic", "Malgun Gothic", "Arial Unicode MS", "Symbola",
)  # fmt: skip


@lru_cache(maxsize=1)
def families() -> tuple[str, ...]:
    """The pictures' font, and installed fonts that have letters which it has not.

    >>> families()[0]
    'DejaVu Sans'
    """
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    return (FONT, *(name for name in _OTHERS if name in installed))


def unknown_letters(texts: Iterable[str]) -> str:
    """The letters that no installed font has, each once.

    >>> unknown_letters(["größe = α·ж", "x"])
    ''
    """
    letters = dict.fromkeys(letter for text in texts for letter in text if letter >= " ")
    if all(letter.isascii() for letter in letters):
        return ""
    known = set().union(*map(_letters_of, families()))
    return "".join(letter for letter in letters if ord(letter) not in known)


def warn_of_unknown_letters(texts: Iterable[str]) -> None:
    """One warning for all letters that no font has, instead of one from matplotlib for each."""
    if missing := unknown_letters(texts):
        warnings.warn(
            f"no installed font has {' '.join(missing)}: boxes stand for them; a font such as"
            " Noto Sans CJK has most letters",
            stacklevel=2,
        )


@contextmanager
def quiet() -> Iterator[None]:
    """Without matplotlib's own warnings of missing letters."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from")
        yield


@lru_cache(maxsize=32)
def _letters_of(family: str) -> frozenset[int]:
    from matplotlib.font_manager import findfont, get_font

    return frozenset(get_font(findfont(family)).get_charmap())
