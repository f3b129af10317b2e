"""Text in pictures: fonts, widths, and line breaks of long expressions.

Text comes from a user: it is literal, without markup, and never truncated.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from unicodedata import combining, east_asian_width

from cgprimer.support.number_format import SHORT, format_number
from cgprimer.visualization.diagrams.theme import FONT, LINE_SPACING

_TOKEN = re.compile(  # a name with its index and a short row of a matrix are single tokens
    r"\s+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|\w*\[[-+\d.,:e… ]{1,14}\]|\w+|\*\*|.", re.DOTALL
)
_ROW = re.compile(r"(?:\w+ )?((?:[=≈] )?\[{1,2}[-+\d.,e… naif]{1,48}\]{1,2},?)")  # matrix row
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_EQUATION = re.compile(r"(.*)([=≈]) (-?\d+\.\d+(?:e-?\d+)?)")
_FACTORS = re.compile(r"[-\d.e× ()]*")
# Operators before which lines can end, in order of preference: operators that bind least come
# first, and positions inside parentheses last. Each has the maximum number of open parentheses.
_SUMS, _PRODUCTS = frozenset("=≈+-"), frozenset("=≈+-*/×·")
_BREAKS = ((frozenset("=≈"), 0), (_SUMS, 0), (_PRODUCTS, 0), (_SUMS, 1), (_PRODUCTS, math.inf))
_UNITS_PER_EM = 2048  # of the widths in font_widths.json
_MAX_EXCESS = 1.35  # maximum length of a line, relative to the preferred length
# Common fonts with Chinese, Japanese and Korean letters, and symbols.
_FALLBACK_FONTS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans CJK KR", "Source Han Sans",
    "WenQuanYi Zen Hei", "Hiragino Sans", "PingFang SC", "Apple SD Gothic Neo",
    "Microsoft YaHei", "Yu Gothic", "Malgun Gothic", "Arial Unicode MS", "Symbola",
)  # fmt: skip


@lru_cache(maxsize=1)
def list_font_families() -> tuple[str, ...]:
    """Return the font of pictures, followed by installed fallback fonts for missing characters.

    >>> list_font_families()[0]
    'DejaVu Sans'
    """
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    return (FONT, *(name for name in _FALLBACK_FONTS if name in installed))


def warn_of_missing_glyphs(texts: Iterable[str]) -> None:
    """Issue a single warning that lists all characters that no installed font contains."""
    missing = list(dict.fromkeys(c for text in texts for c in text if not c.isascii()))
    for family in list_font_families() if missing else ():
        from matplotlib.font_manager import findfont, get_font

        glyphs = get_font(findfont(family)).get_charmap()
        missing = [letter for letter in missing if ord(letter) not in glyphs]
    if missing:
        warnings.warn(
            f"no installed font has the characters {' '.join(missing)}: they are drawn as boxes;"
            " install a font such as Noto Sans CJK",
            stacklevel=2,
        )


@contextmanager
def ignore_missing_glyphs() -> Iterator[None]:
    """Suppress matplotlib's warnings about missing glyphs."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from")
        yield


@lru_cache(maxsize=4096)
def measure_text(text: str, size: float, bold: bool = False) -> float:
    """Return the width of one line of text, in points, at a font size of `size` points.

    Without matplotlib, widths are estimated from a table of the common characters.
    """
    try:
        from matplotlib.font_manager import FontProperties
        from matplotlib.textpath import text_to_path
    except ImportError:
        return estimate_text_width(text, size, bold)
    weight = "bold" if bold else "normal"
    font = FontProperties(family=list(list_font_families()), size=size, weight=weight)
    with ignore_missing_glyphs():
        width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(width)


def estimate_text_width(text: str, size: float, bold: bool = False) -> float:
    """Return the sum of the widths of a text's characters in DejaVu Sans, without kerning.

    >>> [round(estimate_text_width("xa = 0.25", 20, bold), 2) for bold in (False, True)]
    [98.1, 106.43]
    >>> estimate_text_width("計算", 20)
    40.0
    """
    widths = _load_character_widths()["bold" if bold else "normal"]
    total = 0.0
    for character in text:
        if character in widths:
            total += widths[character]
        elif not combining(character):
            is_wide = east_asian_width(character) in ("W", "F")
            total += _UNITS_PER_EM if is_wide else widths["0"]
    return total / _UNITS_PER_EM * size


@cache
def _load_character_widths() -> dict[str, dict[str, int]]:
    """Return the width of each common character, in units of the font, by weight of the font."""
    text = Path(__file__).with_name("font_widths.json").read_text(encoding="utf-8")
    return {
        weight: {
            character: int(width) for width, letters in groups.items() for character in letters
        }
        for weight, groups in json.loads(text).items()
    }


def measure_block(lines: Iterable[str], size: float, bold: bool = False) -> tuple[float, float]:
    """Return width and height of a block of lines, in points; return (0, 0) for an empty block."""
    widths = [measure_text(line, size, bold) for line in lines]
    return (max(widths, default=0.0), len(widths) * size * LINE_SPACING)


def wrap_expression(text: str, limit: int = 18) -> tuple[str, ...]:
    """Break an expression at operators and commas into lines of about `limit` characters.

    Lines start with an operator, as in printed mathematics, or end with a comma. Names, numbers
    (such as `1e-5`) and powers are not broken, so a line can be longer than `limit`. Very long
    expressions get longer lines, so their box does not become a narrow column. The joined lines are
    the text, except for the spaces at line breaks.

    >>> wrap_expression("cd*xx + ab*sin(xz) - exp(xy)/2")
    ('cd*xx + ab*sin(xz)', '- exp(xy)/2')
    >>> wrap_expression("= 0.25")
    ('= 0.25',)
    """
    text = " ".join(text.split())
    limit = max(limit, round(1.6 * math.sqrt(len(text))))
    for signs, depth in _BREAKS:
        lines = _fill_evenly(_split_pieces(text, signs, depth), limit)
        if max(map(len, lines)) <= _MAX_EXCESS * limit:
            break
    return lines


def measure_row_widths(texts: Iterable[str]) -> list[int]:
    """Return the number of characters in each matrix row that occurs in lines of text.

    >>> measure_row_widths(["W @ x", "adjoint = [[1, 2, 3],", "[4, 5, 6]]"])
    [13, 10]
    """
    return [len(row[1]) for row in map(_ROW.fullmatch, texts) if row]


def wrap_lines(
    texts: Sequence[str], limit: int = 18, *, whole_rows: bool = True
) -> tuple[str, ...]:
    """Break long lines of text; with `whole_rows`, never break matrix rows and raise the limit.

    >>> wrap_lines(["f(a, b) + f(a, c)", "adjoint = [[-1.25, 0.125, 4],", "[0, 5, 6]]"], 9)
    ('f(a, b) + f(a, c)', 'adjoint', '= [[-1.25, 0.125, 4],', '[0, 5, 6]]')
    """
    limit = max([limit, *(measure_row_widths(texts) if whole_rows else ())])
    return tuple(line for text in texts for line in wrap_expression(text, limit))


def round_results(text: str) -> str:
    """Round the number after the last equals sign, and the factors before it, to five digits.

    Expressions are unchanged.

    >>> round_results("adjoint = 5.671875"), round_results("3.14159265*xa")
    ('adjoint ≈ 5.6719', '3.14159265*xa')
    >>> round_results("22.6875 × 0.25 = 5.671875")
    '22.688 × 0.25 ≈ 5.6719'
    """
    if not (equation := _EQUATION.fullmatch(text)):
        return text
    left, sign, result = equation.groups()
    if _FACTORS.fullmatch(left):
        left = _NUMBER.sub(lambda number: format_number(float(number.group()), SHORT), left)
    value = float(result)
    is_exact = left == equation.group(1) and float(format_number(value, SHORT)) == value
    return f"{left}{sign if is_exact else '≈'} {format_number(value, SHORT)}"


def _fill_evenly(pieces: list[str], limit: int) -> tuple[str, ...]:
    """Join pieces of text into as few lines as possible, all of similar length."""
    lines = _fill_lines(pieces, limit)
    # Lines of similar length make a narrower box than a full line and a short line.
    for narrower in range(limit - 1, 0, -1):
        candidate = _fill_lines(pieces, narrower)
        if len(candidate) > len(lines):
            break
        lines = candidate
    return lines


def wrap_words(text: str, width: float, size: float, bold: bool = False) -> tuple[str, ...]:
    """Break a text at spaces into lines of at most `width` points; long words stay whole."""
    lines: list[str] = []
    for token in text.split():
        longer = f"{lines[-1]} {token}" if lines else token
        if lines and measure_text(longer, size, bold) <= width:
            lines[-1] = longer
        else:
            lines.append(token)
    return tuple(lines)


def _split_pieces(text: str, signs: frozenset[str], depth: float) -> list[str]:
    """Split a text into pieces after which a line may end; the joined pieces are the text."""
    pieces = [""]
    opened = 0
    previous = ""  # the last token that is not a space
    tokens = _TOKEN.findall(text)
    for token, following in pairwise([*tokens, ""]):
        # A sign without an operand before it belongs to the next operand: `(-x`, `2*-x`, `= -3`.
        binary = token in signs and bool(re.fullmatch(r"[\w.+-]*[\w.]|.*[])]", previous))
        binary = binary and following != "∂"  # a derivative is not a quotient: `∂xw/∂xa`
        if opened <= depth and (binary or (previous == "," and not token.isspace())):
            pieces.append("")
        opened += (token in "([") - (token in ")]")
        pieces[-1] += token
        previous = previous if token.isspace() else token
    return pieces


def _fill_lines(pieces: Iterable[str], limit: int) -> tuple[str, ...]:
    """Join pieces of text into lines of at most `limit` characters."""
    lines = [""]
    for piece in pieces:
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > limit:
            lines.append("")
        lines[-1] += piece
    return tuple(line.strip() for line in lines)
