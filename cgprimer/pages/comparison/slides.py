"""A comparison as slides of 16 to 9: one where everything fits, else the graph and the tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cgprimer.analysis.comparison import Comparison, checked_comparison
from cgprimer.pages.comparison import words
from cgprimer.pages.comparison.panel import (
    Panel,
    fitted,
    paint_panel,
    scaled,
    whole_graph,
)
from cgprimer.pages.comparison.tables import (
    LINE,
    NARROW_ROW,
    ROW,
    TEXT,
    CostTable,
    DerivativeTable,
    Pen,
    cost_table,
    derivative_table,
    note_lines,
    rows_that_fit,
    shortened,
)
from cgprimer.pictures.legend import ROW_HEIGHT, draw_row, legend_rows
from cgprimer.pictures.lettering import text_width, wrap_words
from cgprimer.pictures.summary import is_readable
from cgprimer.pictures.theme import (
    DETAIL_SIZE,
    READABLE_SIZE,
    SLIDE_HEIGHT,
    SLIDE_WIDTH,
    TITLE_SIZE,
    roles_in,
    theme,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH, HEIGHT = SLIDE_WIDTH, SLIDE_HEIGHT
_EDGE = 28.0
_ROOM = WIDTH - 2 * _EDGE
_BOTTOM = HEIGHT - 10.0
_BETWEEN = 9.0
_LEAST_GRAPH = 60.0
_ABOVE_LEGEND = 8.0
_INDENT, _APART = 158.0, 2.0  # of the paragraphs on methods
_MOST_TITLE_LINES = 3


@dataclass(frozen=True, slots=True)
class Slide:
    """What one slide shows, from top to bottom; a part that is None or empty is not on it.

    ``said`` has a paragraph per method, in lines; it stands above the notes.
    """

    graph: Panel | None = None
    derivatives: DerivativeTable | None = None
    costs: CostTable | None = None
    notes: tuple[str, ...] = ()
    said: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def height(self) -> float:
        """Of everything under the heading, without the gaps between the parts."""
        parts = (self.derivatives, self.costs)
        graph = 0.0 if self.graph is None else self.graph.size[1]
        tables = sum(part.height for part in parts if part is not None)
        return graph + tables + len(self.notes) * LINE + _said_height(self.said)

    @property
    def parts(self) -> int:
        """How many parts there are."""
        shown = (self.graph, self.derivatives, self.costs, self.notes or None, self.said or None)
        return sum(part is not None for part in shown)


def draw_comparison(
    comparison: Comparison,
    *,
    dark: bool = False,
    title: str = "",
    output: str | Path | None = None,
) -> Figure:
    """A comparison as a figure: the graph with its values, derivatives with errors, costs as bars.

    The figure is a slide of 13.33 by 7.5 inches, with no text under 14 points. What does not fit
    on one slide stands on two, one under the other; :func:`comparison_slides` gives them as
    figures of their own. At most as many derivatives are shown as there is room for, those with
    the largest errors.

    Args:
        comparison: from ``cgprimer.compare``.
        dark: for dark slides.
        title: the heading; says what is compared unless given.
        output: a file to write as ``cgprimer compare -o`` does: a page (``.html``), or slides
            (``.pdf``, ``.png``, ``.svg``), of which a second picture stands beside the first, as
            ``lecture-2.png`` beside ``lecture.png``. Files of these names are replaced.

    Returns:
        A matplotlib figure.

    Raises:
        UsageError: what is given is no comparison, or the file cannot be written.

    >>> from cgprimer.core.graph import parse
    >>> from cgprimer.analysis.comparison import compare
    >>> found = compare(parse("xw = k*xa"), {"xa": 1, "k": 2})
    >>> [round(float(side), 2) for side in draw_comparison(found).get_size_inches()]
    [13.33, 7.5]
    """
    checked_comparison(comparison)
    if output is not None:
        from cgprimer.pages.comparison.output import save_comparison

        save_comparison(comparison, Path(output), dark=dark, title=title)
    return _figure(comparison, _slides(comparison, title), dark=dark, title=title)


def comparison_slides(
    comparison: Comparison, *, dark: bool = False, title: str = ""
) -> tuple[Figure, ...]:
    """The slides of :func:`draw_comparison`, a figure each: one or two.

    >>> from cgprimer.core.graph import parse
    >>> from cgprimer.analysis.comparison import compare
    >>> len(comparison_slides(compare(parse("xw = k*xa"), {"xa": 1, "k": 2})))
    1
    """
    slides = _slides(checked_comparison(comparison), title)
    return tuple(_figure(comparison, [slide], dark=dark, title=title) for slide in slides)


def _slides(found: Comparison, title: str) -> tuple[Slide, ...]:
    """One slide if everything fits, else the graph on one and all numbers on the next."""
    room = _BOTTOM - _heading(found, title).below
    notes = note_lines(found, _ROOM)
    diagram = whole_graph(found)
    for row in (ROW, NARROW_ROW) if is_readable(diagram) else ():
        everything = derivative_table(found, _ROOM, len(found.wrt), row)
        numbers = Slide(None, everything, cost_table(found, _ROOM, row), notes)
        left = room - numbers.height - numbers.parts * _BETWEEN
        graph = None
        if left > _LEAST_GRAPH:
            graph = scaled(diagram, _ROOM, left, READABLE_SIZE / DETAIL_SIZE)
        if graph is not None:
            return (_explained(found, replace(numbers, graph=graph), room),)
    costs = cost_table(found, _ROOM)
    legend = legend_rows(theme(False), roles_in(diagram, theme(False)), _ROOM)
    graph = fitted(found, _ROOM, room - len(legend) * ROW_HEIGHT - LINE - _ABOVE_LEGEND)
    if graph.picture is None:
        notes = (*notes, graph.note)
    rest = room - costs.height - len(notes) * LINE - 2 * _BETWEEN
    bounded = derivative_table(found, _ROOM, len(found.wrt))
    if bounded.height > rest:
        bounded = derivative_table(found, _ROOM, rows_that_fit(rest))
    last = _explained(found, Slide(None, bounded, costs, notes), room)
    return (last,) if graph.picture is None else (Slide(graph), last)


def _explained(found: Comparison, slide: Slide, room: float) -> Slide:
    """A slide that says what each method does, if there is room for it."""
    fuller = replace(slide, said=_said(found))
    return fuller if fuller.height + fuller.parts * _BETWEEN <= room else slide


def _said(found: Comparison) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """A paragraph per method: what it does."""
    return tuple(
        (r.method, wrap_words(words.does(found, r), _ROOM - _INDENT, TEXT))
        for r in found.results
        if not r.refused  # the table says why
    )


def _said_height(said: tuple[tuple[str, tuple[str, ...]], ...]) -> float:
    return sum(LINE * len(lines) + _APART for _, lines in said)


@dataclass(frozen=True, slots=True)
class _Heading:
    """The lines of the title and the line under it; ``below`` is where the rest begins."""

    title: tuple[str, ...]
    subtitle: str
    beside: bool  # the subtitle stands to the right of the title
    below: float


def _heading(found: Comparison, title: str) -> _Heading:
    text = title or words.heading(found)
    wrapped = wrap_words(text, _ROOM, TITLE_SIZE, bold=True)
    if len(wrapped) > _MOST_TITLE_LINES:
        wrapped = (*wrapped[: _MOST_TITLE_LINES - 1], f"{wrapped[_MOST_TITLE_LINES - 1]} …")
    lines = tuple(shortened(line, _ROOM, TITLE_SIZE, bold=True) for line in wrapped)
    subtitle = shortened(words.subheading(found), _ROOM, TEXT + 1)
    used = text_width(lines[0], TITLE_SIZE, bold=True) if lines else 0.0
    beside = len(lines) == 1 and used + 40 + text_width(subtitle, TEXT + 1) <= _ROOM
    below = 18.0 + 27.0 * len(lines) + (0.0 if beside else 22.0) + 4.0
    return _Heading(lines, subtitle, beside, below)


def _figure(found: Comparison, slides: Sequence[Slide], *, dark: bool, title: str) -> Figure:
    from matplotlib.figure import Figure

    look = theme(dark)
    height = HEIGHT * len(slides)
    figure = Figure(figsize=(WIDTH / 72, height / 72), facecolor=look.background)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_xlim(0, WIDTH)
    axes.set_ylim(height, 0)  # downwards
    pen = Pen(axes, look)
    for count, slide in enumerate(slides):
        _draw(figure, pen, found, slide, count * HEIGHT, title, dark=dark)
    return figure


def _draw(
    figure: Figure, pen: Pen, found: Comparison, slide: Slide, top: float, title: str, *, dark: bool
) -> None:
    heading = _heading(found, title)
    y = top + 30.0
    for line in heading.title:
        pen.write(_EDGE, y, line, TITLE_SIZE, weight="bold")
        y += 27.0
    if heading.beside:
        pen.right(WIDTH - _EDGE, top + 30.0, heading.subtitle, size=TEXT + 1)
    else:
        pen.write(_EDGE, y - 2.0, heading.subtitle, TEXT + 1)
    y = top + heading.below
    spare = top + _BOTTOM - y - slide.height
    gap = min(spare / max(slide.parts, 1), 26.0)
    if slide.graph is not None:
        alone = slide.parts == 1
        y = _draw_graph(figure, pen, slide.graph, y, spare if alone else gap, alone, dark=dark)
    for table in (slide.derivatives, slide.costs):
        if table is not None:
            table.draw(pen, _EDGE, WIDTH - _EDGE, y)
            y += table.height + gap
    for method, lines in slide.said:
        pen.write(_EDGE, y + LINE / 2, method, weight="bold")
        for line in lines:
            pen.write(_EDGE + _INDENT, y + LINE / 2, line)
            y += LINE
        y += _APART
    y += gap if slide.said else 0.0
    for line in slide.notes:
        pen.write(_EDGE, y + LINE / 2, line, color=pen.faint)
        y += LINE


def _draw_graph(
    figure: Figure, pen: Pen, graph: Panel, y: float, spare: float, alone: bool, *, dark: bool
) -> float:
    """Draw the graph, on a slide of its own with a legend; returns where the next part begins."""
    width, height = graph.size
    rows = legend_rows(pen.look, roles_in(graph.diagram, pen.look), _ROOM) if alone else []
    note = wrap_words(graph.note, _ROOM, TEXT)
    below = len(rows) * ROW_HEIGHT + len(note) * LINE
    start = y + (max(0.0, spare - below - _ABOVE_LEGEND) / 2 if alone else 0.0)
    paint_panel(figure, graph, ((WIDTH - width) / 2, start), dark=dark)
    if not alone:
        return start + height + spare
    end = y + height + spare - below
    for count, row in enumerate(rows):
        draw_row(pen.axes, row, (WIDTH / 2, end + (count + 0.5) * ROW_HEIGHT), pen.look)
    end += len(rows) * ROW_HEIGHT
    for line in note:
        pen.write(WIDTH / 2, end + LINE / 2, line, align="center", color=pen.faint)
        end += LINE
    return end
