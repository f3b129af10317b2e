"""One pen for every slide: text, lines, tables, legends. Lengths are points, y goes downwards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from cgprimer.visualization.diagrams.diagram import Role
from cgprimer.visualization.diagrams.geometry import Box, Point, Size
from cgprimer.visualization.diagrams.text_layout import (
    block_size,
    font_families,
    text_width,
    wrap_words,
)
from cgprimer.visualization.diagrams.theme import (
    DETAIL_SIZE,
    DROPPED,
    READABLE_SIZE,
    SLIDE_HEIGHT,
    SLIDE_WIDTH,
    Theme,
    fade_colour,
    mix,
    theme,
)
from cgprimer.visualization.diagrams.vertex_shapes import shape_patches

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Entry: TypeAlias = Role | Literal["path", "step", "dropped"]  # of a legend

TEXT = READABLE_SIZE
LINE = 18.0  #: of running text
ROW = 23.0  #: of a table
_GAP, _NEAR = 18.0, 8.0  # between columns of a table, and between the parts of a cell or entry
_SHORTEST = 40.0  # of the longest bars
_FEW = 4  # columns without bars; fewer are not pulled apart
_HATCHES = ("", "///", "...", "\\\\\\", "xx", "--", "oo")
_SWATCH: Size = (34.0, 22.0)
_LEGEND_ROW = _SWATCH[1] + 10.0
_APART = 26.0  # entries of a legend
# Both themes have the same words.
_WORDS: dict[Entry, str] = {"path": "highlighted path", "step": "this step", "dropped": "dropped"}
_WORDS |= {role: style.word for role, style in theme(dark=False).roles.items()}


class Pen:
    """Writes and draws in one look on one set of axes; what it writes is a user's, never markup."""

    def __init__(self, axes: Axes, look: Theme, scale: float = 1.0) -> None:
        self.axes, self.look, self.scale = axes, look, scale
        self.lit = look.curves[1]
        self.faint = mix(look.ink, look.background, 0.74)  # for what matters less; still readable

    def part(self, left: float, top: float, width: float, height: float, scale: float = 1.0) -> Pen:
        """A pen for a part of the slide, which holds what it draws, so many times as large."""
        figure: Any = self.axes.figure
        wide, high = (72 * float(side) for side in figure.get_size_inches())
        corner = (left / wide, 1 - (top + height) / high)
        place = (*corner, width / wide, height / high)
        return Pen(_add_axes(figure, place, width / scale, height / scale), self.look, scale)

    def write(
        self, x: float, y: float, text: str, size: float = TEXT, *, align: str = "left", **more: Any
    ) -> None:
        """One line of text, vertically centred."""
        if not text:
            return
        style: dict[str, Any] = {"color": self.look.ink, "zorder": 5, "clip_on": True, **more}
        # parse_math=False and usetex=False: `$`, `_` and `^` are a user's characters, not markup.
        style |= {"parse_math": False, "usetex": False, "family": list(font_families())}
        style |= {"horizontalalignment": align, "verticalalignment": "center_baseline"}
        self.axes.text(x, y, text, fontsize=self.scale * size, **style)

    def lines(
        self, x: float, y: float, lines: Sequence[str], size: float = TEXT, **more: Any
    ) -> float:
        """Lines under each other; returns where they end."""
        height = max(LINE, 1.25 * size)
        for line in lines:
            self.write(x, y + height / 2, line, size, **more)
            y += height
        return y

    def line(self, points: Sequence[Point], colour: str, width: float, **more: Any) -> None:
        """A line through points."""
        from matplotlib.lines import Line2D

        x, y = zip(*points, strict=True)
        # Not plot: it looks for units and limits, which takes longer than to draw the line.
        self.axes.add_artist(Line2D(x, y, color=colour, linewidth=self.scale * width, **more))

    def polygon(self, points: Sequence[Point], colour: str, **more: Any) -> None:
        """A filled polygon."""
        from matplotlib.patches import Polygon

        style = {"facecolor": colour, "linewidth": 0.0, **more}
        self.axes.add_patch(Polygon(points, closed=True, **style))

    def flag(
        self, x: float, y: float, *, down: bool = False, small: bool = False, **more: Any
    ) -> None:
        """The triangle that marks a step without a colour; its tip is at the point."""
        a, b = (9.0, 6.0) if small else (10.0, 7.0)
        corners = [(x, y), (x - b, y - a), (x + b, y - a)]
        self.polygon(
            corners if down else [(x, y), (x - a, y - b), (x - a, y + b)], self.lit, **more
        )

    def band(
        self, left: float, right: float, y: float, height: float, *, first: bool = True
    ) -> None:
        """Behind a line that is lit; at its first the flag says so without colour."""
        a, b = y - height / 2, y + height / 2
        glow = mix(self.lit, self.look.background, 0.2)
        self.polygon([(left, a), (right + 4, a), (right + 4, b), (left, b)], glow, zorder=0)
        if first:
            self.flag(left + 11, y, small=True)

    def rule(self, left: float, right: float, y: float, *, strong: bool = False) -> None:
        """A line across a table."""
        colour, width = (self.look.edge, 1.4) if strong else (self.look.grid, 0.8)
        self.line([(left, y), (right, y)], colour, width)

    def bar(self, x: float, y: float, length: float, height: float, which: int) -> None:
        """A bar of a series: each has its colour and its hatching."""
        from matplotlib.patches import Rectangle

        colour = self.look.curves[which % len(self.look.curves)]
        bar = Rectangle((x, y - height / 2), max(length, 1.5), height, zorder=3)
        bar.set(facecolor=mix(colour, self.look.background, 0.45), edgecolor=colour, linewidth=1.2)
        bar.set_hatch(_HATCHES[which % len(_HATCHES)])
        bar.set_label("bar")
        self.axes.add_patch(bar)


def sheet(
    width: float = SLIDE_WIDTH, height: float = SLIDE_HEIGHT, *, dark: bool = False
) -> tuple[Figure, Pen]:
    """An empty figure, a slide of 16 to 9 unless another size is given, and a pen for it.

    >>> figure, pen = sheet()
    >>> [round(float(side), 2) for side in figure.get_size_inches()]
    [13.33, 7.5]
    """
    from matplotlib.figure import Figure

    look = theme(dark)
    figure = Figure(figsize=(width / 72, height / 72), facecolor=look.background)
    return figure, Pen(_add_axes(figure, (0.0, 0.0, 1.0, 1.0), width, height), look)


def _add_axes(
    figure: Figure, place: tuple[float, float, float, float], width: float, height: float
) -> Axes:
    axes = figure.add_axes(place)
    axes.set_axis_off()
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    return axes


def shorten_text(text: str, room: float, size: float = TEXT, *, bold: bool = False) -> str:
    """A text that fits: itself, or with dots in its middle.

    >>> shorten_text("dxw/dab", 100), shorten_text("d" + 40 * "x" + "/dab", 120)
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


def break_lines(text: str, width: float, size: float = TEXT, *, bold: bool = False) -> list[str]:
    """Break a text into lines of at most so many points: at spaces, and inside what is too long.

    A word that is too long is broken after a sign of the language, where it has one.

    >>> break_lines("path 1: xa → xw", 60.0), break_lines("temperature*pressure", 110.0)
    (['path 1:', 'xa → xw'], ['temperature*', 'pressure'])
    """
    found = []
    for line in wrap_words(text, width, size, bold=bold):
        rest = line
        while text_width(rest, size, bold) > width and len(rest) > 1:
            short = (k for k in range(1, len(rest)) if text_width(rest[:k], size, bold) <= width)
            fits = max(short, default=1)
            cut = max((k for k in range(1, fits + 1) if rest[k - 1] in "*/^(,+-_"), default=fits)
            found.append(rest[:cut])
            rest = rest[cut:]
        found.append(rest)
    return found


class Cell(NamedTuple):
    """A text, what stands behind it in faint letters, and a bar: its length over the longest's."""

    text: str
    more: str = ""
    share: float | None = None


class Row(NamedTuple):
    """A title and its cells; `instead` of them a text across all columns.

    `series` has a colour and a hatching, for bars and keys; -1 for none.
    """

    title: str
    cells: tuple[Cell, ...]
    instead: str = ""
    series: int = -1


@dataclass(frozen=True, slots=True)
class Table:
    """A table as data, for slides and for pages."""

    header: tuple[str, ...]  # titles of the columns, that of the titles of rows first
    rows: tuple[Row, ...]  # with a cell for each column but the first, or with a text instead
    bars: tuple[bool, ...]  # for each column of cells; with none, texts end at one line
    series: tuple[int, ...] = ()  # of each column of cells, -1 for none
    note: str = ""  # stands below


class MeasuredTable:
    """A table that is measured, and drawn when its place is known; all in points.

    >>> table = Table(("name", "value"), (Row("xa", (Cell("0.5"),)),), (False,))
    >>> measured = MeasuredTable(table, 300.0)
    >>> measured.height, measured.width < 300.0
    (46.0, True)
    """

    def __init__(self, table: Table, room: float, *, row: float = ROW, first: float = 0.0) -> None:
        """Measure it for a room of so many points; `first` is the least width of the titles."""
        self.table, self.room, self.row = table, room, row
        able = [r.cells for r in table.rows if not r.instead]
        columns = list(zip(*able, strict=True)) if able else [()] * len(table.bars)
        self.text = [block_size((c.text for c in cells), TEXT)[0] for cells in columns]
        more = [block_size((c.more for c in cells), TEXT)[0] for cells in columns]
        self.more = [wide + _NEAR if wide else 0.0 for wide in more]
        titles = [text_width(title, TEXT, bold=True) for title in table.header[1:]]
        parts = zip(titles, self.text, self.more, table.bars, strict=True)
        self.wide = [
            text + behind + _NEAR if bar else max(title, text + behind)
            for title, text, behind, bar in parts
        ]
        names = [table.header[0], *(r.title for r in table.rows)]
        self.first = max(first, block_size(names, TEXT, bold=True)[0]) + _GAP
        beside = room - self.first
        break_lines = [wrap_words(r.instead, beside, TEXT) for r in table.rows]
        self.instead = [[shorten_text(line, beside) for line in lines] for lines in break_lines]
        self.rows = [row + LINE * max(0, len(lines) - 1) for lines in self.instead]  # heights
        # At least, bars of any length included.
        self.width = self.first + sum(self.wide) + _GAP * (len(self.wide) - 1)
        self.height = row + sum(self.rows) + (LINE if table.note else 0.0)

    def draw(self, pen: Pen, left: float, top: float) -> None:
        """Draw it from a corner on."""
        table, spare = self.table, max(0.0, self.room - self.width)
        barred = sum(table.bars)
        bar = max(_SHORTEST, spare / barred) if barred else 0.0
        apart = 0.0 if barred else spare / max(len(self.wide), _FEW)
        starts, x = [], left + self.first
        for wide, has_bar in zip(self.wide, table.bars, strict=True):
            starts.append(x + apart)
            x += apart + wide + (bar if has_bar else 0.0) + _GAP
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
    """Rows of a legend, measured when made, and drawn when their place is known.

    >>> Legend(["input", "output"], 400).height, Legend(["input", "output"], 120).height
    (32.0, 64.0)
    """

    def __init__(
        self, entries: Iterable[Entry], room: float, *, row: float = _LEGEND_ROW, scale: float = 1.0
    ) -> None:
        """Break the entries into rows of at most so many points, drawn `scale` times as large."""
        self.row, self.scale = row, scale
        self.rows: list[list[Entry]] = []
        self.width = used = 0.0
        for entry in entries:
            needed = self._wide(entry)
            if not self.rows or used + _APART + needed > room / scale:
                self.rows.append([])
                used = -_APART
            self.rows[-1].append(entry)
            used += _APART + needed
            self.width = max(self.width, scale * used)

    @property
    def height(self) -> float:
        """Of all rows."""
        return len(self.rows) * self.row

    def draw(self, pen: Pen, middle: float, top: float) -> None:
        """Draw the rows around a middle, the first one's upper end at `top`."""
        for number, row in enumerate(self.rows):
            wide = self.scale * (sum(map(self._wide, row)) + _APART * (len(row) - 1))
            x, y = middle - wide / 2, top + (number + 0.5) * self.row
            for entry in row:
                self._draw(pen, entry, x, y)
                x += self.scale * (self._wide(entry) + _APART)

    def _draw(self, pen: Pen, entry: Entry, x: float, y: float) -> None:
        look, wide, high = pen.look, self.scale * _SWATCH[0], self.scale * _SWATCH[1]
        if entry == "path":
            for width, ink in ((6.0, look.path), (2.0, look.background)):
                pen.line([(x, y), (x + wide, y)], ink, width, zorder=4, solid_capstyle="butt")
        elif entry == "step":  # the mark and the dashes of what is lit
            pen.flag(x + 11, y)
            pen.line([(x + 13, y), (x + wide, y)], pen.lit, 3.6, linestyle=(0, (2.2, 1.0)))
        elif entry == "dropped":
            a, b, low, high = x, x + wide, y - high / 2, y + high / 2
            corners = [(a, low), (b, low), (b, high), (a, high), (a, low)]
            pen.line(corners, fade_colour(look.edge, look), 1.8, linestyle=DROPPED)
        else:
            style = look.roles[entry]
            box = Box(x + wide / 2, y, high if style.shape == "circle" else wide, high)
            for patch in shape_patches(style, box, small=True):
                patch.set_zorder(4)
                pen.axes.add_patch(patch)
        pen.write(x + wide + _NEAR * self.scale, y, _WORDS[entry], self.scale * DETAIL_SIZE)

    @staticmethod
    def _wide(entry: Entry) -> float:
        return _SWATCH[0] + _NEAR + text_width(_WORDS[entry], DETAIL_SIZE)
