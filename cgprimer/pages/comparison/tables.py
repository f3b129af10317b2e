"""The two tables of a slide: derivatives with their errors, and costs with bars.

Lengths are points; y grows downwards. A table is measured first and drawn when its place is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cgprimer.analysis.comparison import Comparison, MethodResult
from cgprimer.pages.comparison import words
from cgprimer.pages.comparison.columns import METHOD, Column, cost_columns, place_of
from cgprimer.pictures.legend import write
from cgprimer.pictures.lettering import text_width, wrap_words
from cgprimer.pictures.theme import Theme, mix

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TEXT = 14.0
ROW, NARROW_ROW = 23.0, 20.0
LINE = 18.0  # of running text
_FEW = 4  # columns; fewer are not pulled apart
_DIGITS = (8, 7, 6, 5, 4, 3)
_GAP = 18.0  # between columns
_NEAR = 8.0  # between a derivative and its error
_WIDEST_NAME = 260.0
_METHOD = 158.0  # width of the column of methods
_SHORTEST = 40.0  # of the longest bars
_HATCHES = ("", "///", "...", "\\\\\\", "xx", "--", "oo")


@dataclass(frozen=True, slots=True)
class Pen:
    """Axes with a theme; what is written is a user's text, never markup."""

    axes: Axes
    look: Theme

    def write(self, x: float, y: float, text: str, size: float = TEXT, **more: Any) -> None:
        """One line, by default to the right of ``x``, centred on ``y``."""
        colour = more.pop("color", self.look.ink)
        align = more.pop("align", "left")
        write(self.axes, (x, y), text, size, colour, horizontalalignment=align, **more)

    def right(self, x: float, y: float, text: str, **more: Any) -> None:
        """One line that ends at ``x``."""
        self.write(x, y, text, align="right", **more)

    def rule(self, left: float, right: float, y: float, *, strong: bool = False) -> None:
        """A line across a table."""
        colour = self.look.edge if strong else self.look.grid
        self.axes.plot((left, right), (y, y), color=colour, linewidth=1.4 if strong else 0.8)

    def bar(self, x: float, y: float, length: float, height: float, which: int) -> None:
        """A bar of a method: each has its colour and its hatching."""
        from matplotlib.patches import Rectangle

        colour = self.look.curves[which % len(self.look.curves)]
        bar = Rectangle((x, y - height / 2), max(length, 1.5), height, zorder=3)
        bar.set(facecolor=mix(colour, self.look.background, 0.45), edgecolor=colour, linewidth=1.2)
        bar.set_hatch(_HATCHES[which % len(_HATCHES)])
        bar.set_label("bar")
        self.axes.add_patch(bar)

    @property
    def faint(self) -> str:
        """For what matters less; still readable."""
        return mix(self.look.ink, self.look.background, 0.75)


def shortened(text: str, room: float, size: float = TEXT, *, bold: bool = False) -> str:
    """A text that fits: itself, or with dots in its middle.

    >>> shortened("dxw/dab", 100), shortened("d" + 40 * "x" + "/dab", 120)
    ('dxw/dab', 'dxxxxx…xx/dab')
    """
    if text_width(text, size, bold) <= room:
        return text
    for kept in range(len(text) - 1, 0, -1):
        front, back = (kept + 1) // 2, kept // 2
        shorter = text[:front] + "…" + text[len(text) - back :]
        if text_width(shorter, size, bold) <= room:
            return shorter
    return "…"


@dataclass(frozen=True, slots=True)
class DerivativeTable:
    """A row per name, a column per method that gave something.

    Attributes:
        header: names of the methods.
        rows: title, then value and error for each method.
        widths: of the column of names, then of values and of errors for each method.
        note: rows left out; empty if all are there.
        row: the height of a row.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    widths: tuple[float, tuple[tuple[float, float], ...]]
    note: str
    row: float = ROW

    @property
    def height(self) -> float:
        """In points; nothing where all methods refused."""
        if not self.header:
            return 0.0
        return self.row * (1 + len(self.rows)) + (LINE if self.note else 0.0)

    def draw(self, pen: Pen, left: float, right: float, top: float) -> None:
        """Draw it from ``top`` down."""
        if not self.header:
            return
        first, pairs = self.widths
        needed = first + sum(max(0.0, self._column(k)) + _GAP for k in range(len(pairs)))
        spare = max(0.0, right - left - needed) / max(len(pairs), _FEW)
        ends = []
        x = left + first
        for k in range(len(pairs)):
            x += self._column(k) + _GAP + spare
            ends.append(x)
        y = top + self.row / 2
        for method, end in zip(self.header, ends, strict=True):
            pen.right(end, y, method, weight="bold")
        pen.rule(left, ends[-1], top + self.row, strong=True)
        for count, (title, cells) in enumerate(self.rows):
            y += self.row
            if count:
                pen.rule(left, ends[-1], y - self.row / 2)
            pen.write(left, y, title, weight="bold")
            for (shown, mistake), (_, wide), end in zip(cells, pairs, ends, strict=True):
                pen.right(end - wide - (_NEAR if wide else 0.0), y, shown)
                pen.right(end, y, mistake, color=pen.faint)
        if self.note:
            pen.write(
                left, y + self.row / 2 + LINE / 2 + 2, self.note, color=pen.faint, style="italic"
            )

    def _column(self, which: int) -> float:
        shown, mistake = self.widths[1][which]
        title = text_width(self.header[which], TEXT, bold=True)
        return max(title, shown + mistake + (_NEAR if mistake else 0.0))


def derivative_table(
    found: Comparison, width: float, most: int, row: float = ROW
) -> DerivativeTable:
    """The derivatives with as many digits as there is room for, in at most so many rows.

    >>> from cgprimer.core.graph import parse
    >>> from cgprimer.analysis.comparison import compare
    >>> table = derivative_table(compare(parse("xw = k*xa"), {"xa": 3, "k": 2}), 900, 5)
    >>> table.rows[0][0], table.rows[0][1][1]
    ('dxw/dk', ('3', 'exact'))
    """
    able = [result for result in found.results if not result.refused]
    names = words.shown_names(found, most)
    note = words.hidden(found, names)
    titles = [shortened(words.derivative(found, n), _WIDEST_NAME, bold=True) for n in names]
    made = None
    for digits in _DIGITS:
        rows = tuple(
            (
                title,
                tuple(
                    (words.value(r.derivatives[n], digits), words.error_in_row(found, r, n))
                    for r in able
                ),
            )
            for title, n in zip(titles, names, strict=True)
        )
        widths = tuple(
            (
                max(text_width(cells[k][0], TEXT) for _, cells in rows),
                max(text_width(cells[k][1], TEXT) for _, cells in rows),
            )
            for k in range(len(able))
        )
        first = max(text_width(title, TEXT, bold=True) for title in titles)
        made = DerivativeTable(tuple(r.method for r in able), rows, (first, widths), note, row)
        needed = first + sum(made._column(k) + _GAP for k in range(len(able)))
        if needed <= width:
            break
    assert made is not None  # there are digits to try
    return made


@dataclass(frozen=True, slots=True)
class CostTable:
    """A row per method: largest error, passes, operations, live values and time, with bars.

    Attributes:
        found: what was compared.
        reasons: for each method that refused, why, in lines.
        row: the height of a row.
    """

    found: Comparison
    reasons: dict[str, tuple[str, ...]]
    row: float = ROW

    @property
    def height(self) -> float:
        """In points."""
        return self.row + sum(self._row(result) for result in self.found.results)

    def _row(self, result: MethodResult) -> float:
        lines = len(self.reasons.get(result.method, ()))
        return max(self.row, lines * LINE + self.row - LINE)

    def draw(self, pen: Pen, left: float, right: float, top: float) -> None:
        """Draw it from ``top`` down."""
        able = [result for result in self.found.results if not result.refused]
        places = _places(cost_columns(self.found), able, left + _METHOD, right)
        pen.write(left, top + self.row / 2, METHOD, weight="bold")
        for place in places:
            pen.write(place.left, top + self.row / 2, place.column.title, weight="bold")
        pen.rule(left, right, top + self.row, strong=True)
        y = top + self.row
        for count, result in enumerate(self.found.results):
            height = self._row(result)
            middle = y + height / 2
            if count:
                pen.rule(left, right, y)
            pen.write(left, middle, result.method, weight="bold")
            lines = self.reasons.get(result.method, ())
            for number, line in enumerate(lines):
                line_y = middle + (number - (len(lines) - 1) / 2) * LINE
                pen.write(left + _METHOD, line_y, line, color=pen.faint, style="italic")
            if not result.refused:
                for place in places:
                    place.draw(pen, result, middle, self.row - 10)
            y += height


def cost_table(found: Comparison, width: float, row: float = ROW) -> CostTable:
    """The costs; what a method says when it refuses is broken into lines."""
    room = width - _METHOD
    reasons = {
        r.method: tuple(
            shortened(line, room) for line in wrap_words(f"refused: {r.refused}", room, TEXT)
        )
        for r in found.results
        if r.refused
    }
    return CostTable(found, reasons, row)


@dataclass(frozen=True, slots=True)
class _Place:
    """A column, where it begins, where its two texts end, and where its bars begin and end."""

    column: Column
    left: float
    text: float
    more: float
    bars: tuple[float, float]

    def draw(self, pen: Pen, result: MethodResult, y: float, thick: float) -> None:
        """Draw the cell of a method."""
        pen.right(self.text, y, self.column.text(result))
        if self.more > self.text:
            pen.right(self.more, y, self.column.more(result), color=pen.faint)
        share = self.column.share(result)
        if self.column.bars and share is not None:
            start, end = self.bars
            pen.bar(start, y, share * (end - start), thick, place_of(result.method))


def _places(
    columns: Sequence[Column], able: Sequence[MethodResult], left: float, right: float
) -> list[_Place]:
    """Columns as wide as their texts; bars share what is left."""

    def widest(texts: Iterator[str]) -> float:
        return max((text_width(text, TEXT) for text in texts), default=0.0)

    def widths(column: Column) -> tuple[float, float, float]:
        more = widest(column.more(r) for r in able)
        title = text_width(column.title, TEXT, bold=True)
        return title, widest(column.text(r) for r in able), more + _NEAR if more else 0.0

    sizes = [widths(column) for column in columns]
    fixed = sum(
        text + more + _NEAR if column.bars else max(title, text + more)
        for column, (title, text, more) in zip(columns, sizes, strict=True)
    )
    bars = sum(column.bars for column in columns)
    room = right - left - fixed - _GAP * (len(columns) - 1)
    bar = max(_SHORTEST, room / bars)
    places = []
    for column, (title, text, more) in zip(columns, sizes, strict=True):
        if column.bars:
            start = left + text + more + _NEAR
            end = start + bar
            places.append(_Place(column, left, left + text, left + text + more, (start, end)))
        else:
            end = left + max(title, text)
            places.append(_Place(column, left, end, end, (end, end)))
        left = end + _GAP
    return places


def note_lines(found: Comparison, width: float) -> tuple[str, ...]:
    """The remarks and notes under the tables, in lines."""
    texts = [*words.remarks(found), "; ".join(words.NOTES)]
    lines = (line for text in texts for line in wrap_words(text, width, TEXT))
    return tuple(shortened(line, width) for line in lines)


def rows_that_fit(height: float) -> int:
    """How many derivatives a table of this height has room for, with a line for those left out."""
    return max(1, int((height - LINE) / ROW) - 1)
