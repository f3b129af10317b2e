"""Text in pictures: its fonts, how wide it is, and where a long expression may be broken.

Text comes from a user, so nothing in it is markup, and nothing of it is ever left out.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise

from cgprimer.support.number_format import SHORT, format_number
from cgprimer.visualization.diagrams.theme import FONT, LINE_SPACING

_TOKEN = re.compile(  # an index stays with its name, a short row whole
    r"\s+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|\w*\[[-+\d.,:e… ]{1,14}\]|\w+|\*\*|.", re.DOTALL
)
_ROW = re.compile(r"(?:\w+ )?((?:[=≈] )?\[{1,2}[-+\d.,e… naif]{1,48}\]{1,2},?)")  # of a matrix
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_EQUATION = re.compile(r"(.*)([=≈]) (-?\d+\.\d+(?:e-?\d+)?)")
_FACTORS = re.compile(r"[-\d.e× ()]*")
# Lines end before these: first of all before what binds least, and in parentheses only where
# there is no other way. With each the most parentheses that may be open.
_SUMS, _PRODUCTS = frozenset("=≈+-"), frozenset("=≈+-*/×·")
_BREAKS = ((frozenset("=≈"), 0), (_SUMS, 0), (_PRODUCTS, 0), (_SUMS, 1), (_PRODUCTS, math.inf))
_LONGER = 1.35  # times the wanted length that a line may have
# Fonts of the systems in use that have Chinese, Japanese and Korean letters, and symbols.
_OTHERS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans CJK KR", "Source Han Sans",
    "WenQuanYi Zen Hei", "Hiragino Sans", "PingFang SC", "Apple SD Gothic Neo",
    "Microsoft YaHei", "Yu Gothic", "Malgun Gothic", "Arial Unicode MS", "Symbola",
)  # fmt: skip


@lru_cache(maxsize=1)
def font_families() -> tuple[str, ...]:
    """The pictures' font, and installed fonts that have letters which it has not.

    >>> font_families()[0]
    'DejaVu Sans'
    """
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    return (FONT, *(name for name in _OTHERS if name in installed))


def warn_of_missing_glyphs(texts: Iterable[str]) -> None:
    """One warning for all letters that no installed font has, not one from matplotlib for each."""
    missing = list(dict.fromkeys(c for text in texts for c in text if not c.isascii()))
    for family in font_families() if missing else ():
        from matplotlib.font_manager import findfont, get_font

        known = get_font(findfont(family)).get_charmap()
        missing = [letter for letter in missing if ord(letter) not in known]
    if missing:
        warnings.warn(
            f"no installed font has {' '.join(missing)}: boxes stand for them; a font such as"
            " Noto Sans CJK has most letters",
            stacklevel=2,
        )


@contextmanager
def ignore_missing_glyphs() -> Iterator[None]:
    """Without matplotlib's own warnings of missing letters."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from")
        yield


@lru_cache(maxsize=4096)
def text_width(text: str, size: float, bold: bool = False) -> float:
    """Return the width in points of one line of `text` in the theme's font at `size` points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    weight = "bold" if bold else "normal"
    font = FontProperties(family=list(font_families()), size=size, weight=weight)
    with ignore_missing_glyphs():
        width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(width)


def block_size(lines: Iterable[str], size: float, bold: bool = False) -> tuple[float, float]:
    """Return width and height in points of lines set under each other; (0, 0) for no lines."""
    widths = [text_width(line, size, bold) for line in lines]
    return (max(widths, default=0.0), len(widths) * size * LINE_SPACING)


def wrap_expression(text: str, limit: int = 18) -> tuple[str, ...]:
    """Break an expression into lines of about `limit` characters, at operators and commas only.

    An operator begins a line, as in printed mathematics; a comma ends one. Names, numbers (also
    `1e-5`) and powers stay whole, so a line is longer than `limit` where there is no place to
    break. Very long expressions get longer lines, so that their box does not become a column.
    Joining the lines gives the text back, apart from the spaces at the breaks.

    >>> wrap_expression("cd*xx + ab*sin(xz) - exp(xy)/2")
    ('cd*xx + ab*sin(xz)', '- exp(xy)/2')
    >>> wrap_expression("= 0.25")
    ('= 0.25',)
    """
    text = " ".join(text.split())
    limit = max(limit, round(1.6 * math.sqrt(len(text))))
    for signs, depth in _BREAKS:
        lines = _fill_evenly(_split_pieces(text, signs, depth), limit)
        if max(map(len, lines)) <= _LONGER * limit:
            break
    return lines


def row_widths(texts: Iterable[str]) -> list[int]:
    """How many characters each row of a matrix has among lines of text.

    >>> row_widths(["W @ x", "adjoint = [[1, 2, 3],", "[4, 5, 6]]"])
    [13, 10]
    """
    return [len(found[1]) for found in map(_ROW.fullmatch, texts) if found]


def wrap_lines(
    texts: Sequence[str], limit: int = 18, *, whole_rows: bool = True
) -> tuple[str, ...]:
    """Break each of some lines; the row of a matrix is a line, and nothing need be narrower.

    >>> wrap_lines(["f(a, b) + f(a, c)", "adjoint = [[-1.25, 0.125, 4],", "[0, 5, 6]]"], 9)
    ('f(a, b) + f(a, c)', 'adjoint', '= [[-1.25, 0.125, 4],', '[0, 5, 6]]')
    """
    limit = max([limit, *(row_widths(texts) if whole_rows else ())])
    return tuple(line for text in texts for line in wrap_expression(text, limit))


def round_results(text: str) -> str:
    """Round what stands after the last equals sign to five digits, and the factors before it.

    Expressions stay as they are.

    >>> round_results("adjoint = 5.671875"), round_results("3.14159265*xa")
    ('adjoint ≈ 5.6719', '3.14159265*xa')
    >>> round_results("22.6875 × 0.25 = 5.671875")
    '22.688 × 0.25 ≈ 5.6719'
    """
    if not (found := _EQUATION.fullmatch(text)):
        return text
    left, sign, result = found.groups()
    if _FACTORS.fullmatch(left):
        left = _NUMBER.sub(lambda found: format_number(float(found.group()), SHORT), left)
    value = float(result)
    same = left == found.group(1) and float(format_number(value, SHORT)) == value
    return f"{left}{sign if same else '≈'} {format_number(value, SHORT)}"


def _fill_evenly(pieces: list[str], limit: int) -> tuple[str, ...]:
    lines = _fill_lines(pieces, limit)
    # The same number of lines, evenly filled, makes a narrower box than a full and a short one.
    for narrower in range(limit - 1, 0, -1):
        candidate = _fill_lines(pieces, narrower)
        if len(candidate) > len(lines):
            break
        lines = candidate
    return lines


def wrap_words(text: str, width: float, size: float, bold: bool = False) -> tuple[str, ...]:
    """Break `text` at spaces into lines at most `width` points wide; a longer word stays whole."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size, bold) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return tuple(lines)


def _split_pieces(text: str, signs: frozenset[str], depth: float) -> list[str]:
    """Cut `text` at every place where a line may end; the pieces join to `text` again."""
    pieces = [""]
    opened = 0
    previous = ""  # the last token that is not a space
    tokens = _TOKEN.findall(text)
    for token, following in pairwise([*tokens, ""]):
        # A sign has no operand before it and belongs to what follows: `(-x`, `2*-x`, `= -3`.
        binary = token in signs and bool(re.fullmatch(r"[\w.+-]*[\w.]|.*[])]", previous))
        binary = binary and following != "∂"  # one derivative, not a quotient: `∂xw/∂xa`
        if opened <= depth and (binary or (previous == "," and not token.isspace())):
            pieces.append("")
        opened += (token in "([") - (token in ")]")
        pieces[-1] += token
        previous = previous if token.isspace() else token
    return pieces


def _fill_lines(pieces: Iterable[str], limit: int) -> tuple[str, ...]:
    lines = [""]
    for piece in pieces:
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > limit:
            lines.append("")
        lines[-1] += piece
    return tuple(line.strip() for line in lines)
