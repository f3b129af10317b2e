"""The pen that draws slides: text, lines, tables, legends.

Lengths are in points; y increases downwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from cgprimer.errors import UsageError
from cgprimer.visualization.diagrams.diagram import Role
from cgprimer.visualization.diagrams.geometry import Box, Point, Size
from cgprimer.visualization.diagrams.text_layout import (
    list_font_families,
    measure_block,
    measure_text,
    wrap_words,
)
from cgprimer.visualization.diagrams.theme import (
    DETAIL_SIZE,
    DROPPED,
    READABLE_SIZE,
    SLIDE_HEIGHT,
    SLIDE_WIDTH,
    Theme,
    fade_color,
    mix,
    theme,
)
from cgprimer.visualization.diagrams.vertex_shapes import build_shape_patches

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Entry: TypeAlias = Role | Literal["path", "step", "dropped"]  # an entry of a legend

TEXT = READABLE_SIZE
LINE = 18.0  #: height of a line of text
ROW = 23.0  #: height of a row of a table
_GAP, _NEAR = 18.0, 8.0  # between columns of a table, and between the parts of a cell or entry
_MIN_BAR = 40.0  # minimum length of the longest bar
_FEW = 4  # number of columns by which the spare width of a narrow table is divided
_HATCHES = ("", "///", "...", "\\\\\\", "xx", "--", "oo")
_SWATCH: Size = (34.0, 22.0)
_LEGEND_ROW = _SWATCH[1] + 10.0
_ENTRY_GAP = 26.0  # between entries of a legend
# Both themes have the same labels.
_LABELS: dict[Entry, str] = {"path": "highlighted path", "step": "this step", "dropped": "dropped"}
_LABELS |= {role: style.label for role, style in theme(dark=False).roles.items()}


class Pen:
    """A pen that draws on one set of axes with one theme; all texts are literal, without markup."""

    def __init__(self, axes: Axes, look: Theme, scale: float = 1.0) -> None:
        self.axes, self.look, self.scale = axes, look, scale
        self.lit = look.curves[1]
        self.faint = mix(look.ink, look.background, 0.74)  # for secondary text

    def part(self, left: float, top: float, width: float, height: float, scale: float = 1.0) -> Pen:
        """Return a pen that draws, scaled and clipped, in a rectangle of the slide."""
        figure: Any = self.axes.figure
        wide, high = (72 * float(side) for side in figure.get_size_inches())
        corner = (left / wide, 1 - (top + height) / high)
        rectangle = (*corner, width / wide, height / high)
        axes = _add_axes(figure, rectangle, width / scale, height / scale)
        return Pen(axes, self.look, scale)

    def write(
        self, x: float, y: float, text: str, size: float = TEXT, *, align: str = "left", **more: Any
    ) -> None:
        """Write one line of text, vertically centered at `y`."""
        if not text:
            return
        style: dict[str, Any] = {"color": self.look.ink, "zorder": 5, "clip_on": True, **more}
        # `$`, `_` and `^` are literal characters of the user, not markup.
        style |= {"parse_math": False, "usetex": False, "family": list(list_font_families())}
        style |= {"horizontalalignment": align, "verticalalignment": "center_baseline"}
        self.axes.text(x, y, text, fontsize=self.scale * size, **style)

    def lines(
        self, x: float, y: float, lines: Sequence[str], size: float = TEXT, **more: Any
    ) -> float:
        """Write lines of text below each other; return the y position below the last line."""
        height = max(LINE, 1.25 * size)
        for line in lines:
            self.write(x, y + height / 2, line, size, **more)
            y += height
        return y

    def line(self, points: Sequence[Point], color: str, width: float, **more: Any) -> None:
        """Draw a polyline."""
        from matplotlib.lines import Line2D

        x, y = zip(*points, strict=True)
        # `plot` would check units and limits, which takes longer than drawing the line.
        self.axes.add_artist(Line2D(x, y, color=color, linewidth=self.scale * width, **more))

    def polygon(self, points: Sequence[Point], color: str, **more: Any) -> None:
        """Draw a filled polygon."""
        from matplotlib.patches import Polygon

        style = {"facecolor": color, "linewidth": 0.0, **more}
        self.axes.add_patch(Polygon(points, closed=True, **style))

    def flag(
        self, x: float, y: float, *, down: bool = False, small: bool = False, **more: Any
    ) -> None:
        """Draw the triangle that marks the current step; its tip is at the given point."""
        a, b = (9.0, 6.0) if small else (10.0, 7.0)
        corners = [(x, y), (x - b, y - a), (x + b, y - a)]
        self.polygon(
            corners if down else [(x, y), (x - a, y - b), (x - a, y + b)], self.lit, **more
        )

    def band(
        self, left: float, right: float, y: float, height: float, *, first: bool = True
    ) -> None:
        """Highlight a line of text with a colored background; a triangle marks the first line."""
        a, b = y - height / 2, y + height / 2
        glow = mix(self.lit, self.look.background, 0.2)
        self.polygon([(left, a), (right + 4, a), (right + 4, b), (left, b)], glow, zorder=0)
        if first:
            self.flag(left + 11, y, small=True)

    def rule(self, left: float, right: float, y: float, *, strong: bool = False) -> None:
        """Draw a horizontal rule across a table."""
        color, width = (self.look.edge, 1.4) if strong else (self.look.grid, 0.8)
        self.line([(left, y), (right, y)], color, width)

    def bar(self, x: float, y: float, length: float, height: float, series: int) -> None:
        """Draw a horizontal bar in the color and hatch of a data series."""
        from matplotlib.patches import Rectangle

        color = self.look.curves[series % len(self.look.curves)]
        bar = Rectangle((x, y - height / 2), max(length, 1.5), height, zorder=3)
        bar.set(facecolor=mix(color, self.look.background, 0.45), edgecolor=color, linewidth=1.2)
        bar.set_hatch(_HATCHES[series % len(_HATCHES)])
        bar.set_label("bar")
        self.axes.add_patch(bar)


def check_matplotlib() -> None:
    """Raise UsageError if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UsageError(
            "figures require the package matplotlib",
            hint="run pip install matplotlib, or run cgprimer draw -o NAME.tex (.dot, .mmd)",
        ) from None


def create_canvas(
    width: float = SLIDE_WIDTH, height: float = SLIDE_HEIGHT, *, dark: bool = False
) -> tuple[Figure, Pen]:
    """Create an empty figure, by default a 16:9 slide, and a pen that draws on the figure.

    >>> figure, pen = create_canvas()
    >>> [round(float(side), 2) for side in figure.get_size_inches()]
    [13.33, 7.5]
    """
    check_matplotlib()
    from matplotlib.figure import Figure

    look = theme(dark)
    figure = Figure(figsize=(width / 72, height / 72), facecolor=look.background)
    return figure, Pen(_add_axes(figure, (0.0, 0.0, 1.0, 1.0), width, height), look)


def _add_axes(
    figure: Figure, rectangle: tuple[float, float, float, float], width: float, height: float
) -> Axes:
    """Add axes to a figure whose coordinates are in points, with y increasing downwards."""
    axes = figure.add_axes(rectangle)
    axes.set_axis_off()
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    return axes


def shorten_text(text: str, room: float, size: float = TEXT, *, bold: bool = False) -> str:
    """Shorten a text to a maximum width by replacing its middle with an ellipsis.

    >>> shorten_text("dxw/dab", 100), shorten_text("d" + 40 * "x" + "/dab", 120)
    ('dxw/dab', 'dxxxxx…xx/dab')
    """
    if measure_text(text, size, bold) <= room:
        return text
    for length in range(len(text) - 1, 0, -1):
        front, back = (length + 1) // 2, length // 2
        shorter = text[:front] + "…" + text[len(text) - back :]
        if measure_text(shorter, size, bold) <= room:
            return shorter
    return "…"


def break_lines(text: str, width: float, size: float = TEXT, *, bold: bool = False) -> list[str]:
    """Break a text into lines of a maximum width, at spaces or, if necessary, inside words.

    A long word is broken after an operator if it has one.

    >>> break_lines("path 1: xa → xw", 60.0), break_lines("temperature*pressure", 110.0)
    (['path 1:', 'xa → xw'], ['temperature*', 'pressure'])
    """
    lines = []
    for line in wrap_words(text, width, size, bold=bold):
        rest = line
        while measure_text(rest, size, bold) > width and len(rest) > 1:
            short = (k for k in range(1, len(rest)) if measure_text(rest[:k], size, bold) <= width)
            fits = max(short, default=1)
            cut = max((k for k in range(1, fits + 1) if rest[k - 1] in "*/^(,+-_"), default=fits)
            lines.append(rest[:cut])
            rest = rest[cut:]
        lines.append(rest)
    return lines


class Cell(NamedTuple):
    """A table cell: a text, a secondary text after it, and the relative length of its bar."""

    text: str
    more: str = ""
    share: float | None = None


class Row(NamedTuple):
    """A table row: a title followed by cells, or by one text across all columns (`instead`).

    `series` is the index of the color and the hatch of its bars; -1 for no bars.
    """

    title: str
    cells: tuple[Cell, ...]
    instead: str = ""
    series: int = -1


@dataclass(frozen=True, slots=True)
class Table:
    """The contents of a table without positions: header, rows, bars and a note."""

    header: tuple[str, ...]  # titles of the columns; the first column has the titles of rows
    rows: tuple[Row, ...]  # with a cell for each column except the first, or with a text
    bars: tuple[bool, ...]  # True for each column of cells with bars
    series: tuple[int, ...] = ()  # the series of each column of cells, -1 for none
    note: str = ""  # a text below the table


class MeasuredTable:
    """A table with measured widths and heights, in points, ready to be drawn at any position.

    >>> table = Table(("name", "value"), (Row("xa", (Cell("0.5"),)),), (False,))
    >>> measured = MeasuredTable(table, 300.0)
    >>> measured.height, measured.width < 300.0
    (46.0, True)
    """

    def __init__(self, table: Table, room: float, *, row: float = ROW, first: float = 0.0) -> None:
        """Measure a table for a given width; `first` is the minimum width of the titles of rows."""
        self.table, self.room, self.row = table, room, row
        cell_rows = [r.cells for r in table.rows if not r.instead]
        columns = list(zip(*cell_rows, strict=True)) if cell_rows else [()] * len(table.bars)
        self.text = [measure_block((c.text for c in cells), TEXT)[0] for cells in columns]
        more = [measure_block((c.more for c in cells), TEXT)[0] for cells in columns]
        self.more = [wide + _NEAR if wide else 0.0 for wide in more]
        titles = [measure_text(title, TEXT, bold=True) for title in table.header[1:]]
        parts = zip(titles, self.text, self.more, table.bars, strict=True)
        self.wide = [
            text + behind + _NEAR if bar else max(title, text + behind)
            for title, text, behind, bar in parts
        ]
        names = [table.header[0], *(r.title for r in table.rows)]
        self.first = max(first, measure_block(names, TEXT, bold=True)[0]) + _GAP
        rest = room - self.first
        wrapped = [wrap_words(r.instead, rest, TEXT) for r in table.rows]
        self.instead = [[shorten_text(line, rest) for line in lines] for lines in wrapped]
        self.rows = [row + LINE * max(0, len(lines) - 1) for lines in self.instead]  # heights
        # The minimum width; bars can be longer.
        self.width = self.first + sum(self.wide) + _GAP * (len(self.wide) - 1)
        self.height = row + sum(self.rows) + (LINE if table.note else 0.0)

    def draw(self, pen: Pen, left: float, top: float) -> None:
        """Draw the table with its upper left corner at (`left`, `top`)."""
        table, spare = self.table, max(0.0, self.room - self.width)
        barred = sum(table.bars)
        bar = max(_MIN_BAR, spare / barred) if barred else 0.0
        extra = 0.0 if barred else spare / max(len(self.wide), _FEW)
        starts, x = [], left + self.first
        for wide, has_bar in zip(self.wide, table.bars, strict=True):
            starts.append(x + extra)
            x += extra + wide + (bar if has_bar else 0.0) + _GAP
        right = left + self.room if barred else x - _GAP
        y = top + self.row / 2
        pen.write(left, y, table.header[0], weight="bold")
        for start, wide, title in zip(starts, self.wide, table.header[1:], strict=True):
            at, align = (start, "left") if barred else (start + wide, "right")
            pen.write(at, y, title, align=align, weight="bold")
        pen.rule(left, right, top + self.row, strong=True)
        y = top + self.row
        for row, height, lines in zip(table.rows, self.rows, self.instead, strict=True):
            if row is not table.rows[0]:
                pen.rule(left, right, y)
            pen.write(left, y + height / 2, row.title, weight="bold")
            start = y + (height - len(lines) * LINE) / 2
            pen.lines(left + self.first, start, lines, color=pen.faint, style="italic")
            for k, cell in enumerate(row.cells):
                text = self.text[k] + self.more[k]
                end = starts[k] + (text if table.bars[k] else self.wide[k])
                pen.write(end - self.more[k], y + height / 2, cell.text, align="right")
                pen.write(end, y + height / 2, cell.more, align="right", color=pen.faint)
                if table.bars[k] and cell.share is not None:
                    length = cell.share * bar
                    pen.bar(end + _NEAR, y + height / 2, length, self.row - 10, row.series)
            y += height
        if table.note:
            pen.write(left, y + LINE / 2 + 2, table.note, color=pen.faint, style="italic")


class Legend:
    """A legend whose entries are arranged in rows, ready to be drawn at any position.

    >>> Legend(["input", "output"], 400).height, Legend(["input", "output"], 120).height
    (32.0, 64.0)
    """

    def __init__(
        self, entries: Iterable[Entry], room: float, *, row: float = _LEGEND_ROW, scale: float = 1.0
    ) -> None:
        """Break the entries into rows of a maximum width; `scale` enlarges them."""
        self.row, self.scale = row, scale
        self.rows: list[list[Entry]] = []
        self.width = used = 0.0
        for entry in entries:
            needed = self._measure_entry_width(entry)
            if not self.rows or used + _ENTRY_GAP + needed > room / scale:
                self.rows.append([])
                used = -_ENTRY_GAP
            self.rows[-1].append(entry)
            used += _ENTRY_GAP + needed
            self.width = max(self.width, scale * used)

    @property
    def height(self) -> float:
        """Total height of all rows, in points."""
        return len(self.rows) * self.row

    def draw(self, pen: Pen, middle: float, top: float) -> None:
        """Draw the legend below `top`, centered horizontally at `middle`."""
        for number, row in enumerate(self.rows):
            wide = self.scale * (
                sum(map(self._measure_entry_width, row)) + _ENTRY_GAP * (len(row) - 1)
            )
            x, y = middle - wide / 2, top + (number + 0.5) * self.row
            for entry in row:
                self._draw_entry(pen, entry, x, y)
                x += self.scale * (self._measure_entry_width(entry) + _ENTRY_GAP)

    def _draw_entry(self, pen: Pen, entry: Entry, x: float, y: float) -> None:
        """Draw the symbol and the label of a legend entry."""
        look, wide, high = pen.look, self.scale * _SWATCH[0], self.scale * _SWATCH[1]
        if entry == "path":
            for width, ink in ((6.0, look.path), (2.0, look.background)):
                pen.line([(x, y), (x + wide, y)], ink, width, zorder=4, solid_capstyle="butt")
        elif entry == "step":  # the triangle and the dashes of a highlighted edge
            pen.flag(x + 11, y)
            pen.line([(x + 13, y), (x + wide, y)], pen.lit, 3.6, linestyle=(0, (2.2, 1.0)))
        elif entry == "dropped":
            a, b, low, high = x, x + wide, y - high / 2, y + high / 2
            corners = [(a, low), (b, low), (b, high), (a, high), (a, low)]
            pen.line(corners, fade_color(look.edge, look), 1.8, linestyle=DROPPED)
        else:
            style = look.roles[entry]
            box = Box(x + wide / 2, y, high if style.shape == "circle" else wide, high)
            for patch in build_shape_patches(style, box, small=True):
                patch.set_zorder(4)
                pen.axes.add_patch(patch)
        pen.write(x + wide + _NEAR * self.scale, y, _LABELS[entry], self.scale * DETAIL_SIZE)

    @staticmethod
    def _measure_entry_width(entry: Entry) -> float:
        """Return the width of a legend entry, in points."""
        return _SWATCH[0] + _NEAR + measure_text(_LABELS[entry], DETAIL_SIZE)
