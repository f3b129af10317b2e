"""A comparison as slides of 16 to 9: one where everything fits, else the graph and the tables."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cgprimer.analysis.comparison import Comparison, checked_comparison
from cgprimer.errors import pluralize
from cgprimer.support.files import check_writable, write_atomically, write_generated_file
from cgprimer.visualization.diagrams.figure_files import check_picture_path, figure_bytes
from cgprimer.visualization.diagrams.layer_summary import is_readable
from cgprimer.visualization.diagrams.slide_pen import (
    LINE,
    ROW,
    TEXT,
    DrawnTable,
    Legend,
    Pen,
    sheet,
    shortened,
)
from cgprimer.visualization.diagrams.text_layout import text_width, wrap_words
from cgprimer.visualization.diagrams.theme import (
    DETAIL_SIZE,
    READABLE_SIZE,
    SLIDE_HEIGHT,
    SLIDE_WIDTH,
    TITLE_SIZE,
    roles_in,
)
from cgprimer.visualization.pages.comparison import sentences
from cgprimer.visualization.pages.comparison.fitted_graph import (
    FittedGraph,
    fitted,
    paint,
    scaled,
    whole_graph,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("html", "pdf", "png", "svg")
_EDGE = 28.0
_ROOM = SLIDE_WIDTH - 2 * _EDGE
_BOTTOM = SLIDE_HEIGHT - 10.0
_BETWEEN, _MOST_BETWEEN = 9.0, 26.0
_NARROW_ROW = 20.0
_LEAST_GRAPH = 60.0
_ABOVE_LEGEND = 8.0
_INDENT = 158.0  # of the paragraphs on methods, and the least width of their names in the table
_WIDEST_NAME = 260.0
_DIGITS = (8, 7, 6, 5, 4, 3)
_MOST_TITLE_LINES = 3
_TITLE_LINE = 1.25 * TITLE_SIZE


@dataclass(frozen=True, slots=True)
class Slide:
    """What one slide shows, from top to bottom: a graph, tables, a paragraph per method, notes."""

    graph: FittedGraph | None = None
    tables: tuple[DrawnTable, ...] = ()
    said: tuple[tuple[str, tuple[str, ...]], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def height(self) -> float:
        """Of everything under the heading, without the gaps between the parts."""
        graph = 0.0 if self.graph is None else self.graph.size[1]
        lines = len(self.notes) + sum(len(lines) for _, lines in self.said)
        return graph + sum(table.height for table in self.tables) + lines * LINE

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return (self.graph is not None) + len(self.tables) + bool(self.said) + bool(self.notes)


def draw_comparison(
    comparison: Comparison,
    *,
    dark: bool = False,
    title: str | None = None,
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
        title: the heading, empty for none; says what is compared unless given.
        output: a file to write as ``cgprimer compare -o`` does: a page (``.html``), or slides
            (``.pdf``, ``.png``, ``.svg``), of which a second picture stands beside the first, as
            ``lecture-2.png`` beside ``lecture.png``. Files of these names are replaced.

    Returns:
        A matplotlib figure.

    Raises:
        UsageError: what is given is no comparison, or the file cannot be written.

    >>> from cgprimer import compare, parse
    >>> found = compare(parse("xw = k*xa"), {"xa": 1, "k": 2})
    >>> [round(float(side), 2) for side in draw_comparison(found).get_size_inches()]
    [13.33, 7.5]
    """
    if output is not None:
        save_comparison(comparison, Path(output), dark=dark, title=title)
    shown = _slides(checked_comparison(comparison), title)
    return _figure(comparison, shown, dark=dark, title=title)


def comparison_slides(
    comparison: Comparison, *, dark: bool = False, title: str | None = None
) -> tuple[Figure, ...]:
    """The slides of :func:`draw_comparison`, a figure each: one or two."""
    shown = _slides(comparison, title)
    return tuple(_figure(comparison, [slide], dark=dark, title=title) for slide in shown)


def save_comparison(
    found: Comparison, path: Path, *, dark: bool = False, title: str | None = None
) -> tuple[Path, ...]:
    """Write a comparison as a page (``.html``) or as slides (``.pdf``, ``.png``, ``.svg``).

    Arguments and errors are those of :func:`draw_comparison`; what comes back are the files that
    were written. A PDF has all slides.
    """
    checked_comparison(found)
    kind = check_picture_path(path, FORMATS)
    if kind == "html":
        from cgprimer.visualization.pages.comparison.comparison_page import comparison_page

        write_generated_file(path, comparison_page(found, dark=dark, title=title))
        return (path,)
    figures = comparison_slides(found, dark=dark, title=title)
    if kind == "pdf":
        from matplotlib.backends.backend_pdf import PdfPages

        document = io.BytesIO()
        with PdfPages(document, metadata={"CreationDate": None}) as pages:
            for figure in figures:
                pages.savefig(figure, facecolor=figure.get_facecolor())
        write_atomically(path, document.getvalue())
        return (path,)
    contents = [figure_bytes(figure, kind) for figure in figures]  # all before any is written
    beside = (path.with_name(f"{path.stem}-{k}{path.suffix}") for k in range(2, 9))
    written = (path, *beside)[: len(contents)]
    for name in written:
        check_writable(name)
    for name, content in zip(written, contents, strict=True):
        write_atomically(name, content)
    return written


def _slides(found: Comparison, title: str | None) -> tuple[Slide, ...]:
    """One slide if everything fits, else the graph on one and all numbers on the next."""
    room = _BOTTOM - _heading(found, title).below
    texts = [*sentences.remarks(found), "; ".join(sentences.NOTES)]
    wrapped = (line for text in texts for line in wrap_words(text, _ROOM, TEXT))
    notes = tuple(shortened(line, _ROOM) for line in wrapped)
    diagram = whole_graph(found)
    for row in (ROW, _NARROW_ROW) if is_readable(diagram) else ():
        numbers = Slide(None, _tables(found, len(found.wrt), row), (), notes)
        left = room - numbers.height - numbers.parts * _BETWEEN
        if left > _LEAST_GRAPH:
            graph = scaled(diagram, _ROOM, left, READABLE_SIZE / DETAIL_SIZE)
            if graph is not None:
                return (_explained(found, replace(numbers, graph=graph), room),)
    legend = Legend(roles_in(diagram), _ROOM)
    graph = fitted(found, _ROOM, room - legend.height - LINE - _ABOVE_LEGEND)
    if graph is None:
        counts = pluralize(len(found.graph.variables), "variable")
        notes = (*notes, f"a graph of {counts}, too large for a picture on a slide")
    last = Slide(None, _tables(found, len(found.wrt)), (), notes)
    over = last.height + 2 * _BETWEEN - room
    if over > 0:
        fewer = len(found.wrt) - int((over + LINE) / ROW) - 1
        last = replace(last, tables=_tables(found, max(1, fewer)))
    last = _explained(found, last, room)
    return (last,) if graph is None else (Slide(graph), last)


def _tables(found: Comparison, most: int, row: float = ROW) -> tuple[DrawnTable, ...]:
    """Derivatives, with as many digits as there is room for, and costs."""
    costs = DrawnTable(sentences.cost_table(found), _ROOM, row=row, first=_INDENT - 18.0)
    for digits in _DIGITS:
        table = sentences.derivative_table(found, most, digits)
        if table is None:
            return (costs,)
        rows = (r._replace(title=shortened(r.title, _WIDEST_NAME, bold=True)) for r in table.rows)
        drawn = DrawnTable(replace(table, rows=tuple(rows)), _ROOM, row=row)
        if drawn.width <= _ROOM:
            break
    return (drawn, costs)


def _explained(found: Comparison, slide: Slide, room: float) -> Slide:
    """A slide that says what each method does, if there is room for it."""
    able = (r for r in found.results if not r.refused)  # of the others the table says why
    wrapped = ((r, wrap_words(sentences.does(found, r), _ROOM - _INDENT, TEXT)) for r in able)
    said = tuple((result.method, lines) for result, lines in wrapped)
    fuller = replace(slide, said=said)
    return fuller if fuller.height + fuller.parts * _BETWEEN <= room else slide


class _Heading(NamedTuple):
    title: tuple[str, ...]
    subtitle: str
    beside: bool  # the subtitle stands to the right of the title
    below: float  # is where the rest begins


def _heading(found: Comparison, title: str | None) -> _Heading:
    text = sentences.heading(found) if title is None else title
    wrapped = wrap_words(text, _ROOM, TITLE_SIZE, bold=True)
    if len(wrapped) > _MOST_TITLE_LINES:
        wrapped = (*wrapped[: _MOST_TITLE_LINES - 1], f"{wrapped[_MOST_TITLE_LINES - 1]} …")
    lines = tuple(shortened(line, _ROOM, TITLE_SIZE, bold=True) for line in wrapped)
    subtitle = shortened(sentences.subheading(found), _ROOM, TEXT + 1)
    used = text_width(lines[0], TITLE_SIZE, bold=True) if lines else 0.0
    beside = len(lines) == 1 and used + 40 + text_width(subtitle, TEXT + 1) <= _ROOM
    below = 18.0 + _TITLE_LINE * len(lines) + (0.0 if beside else 22.0) + 4.0
    return _Heading(lines, subtitle, beside, below)


def _figure(found: Comparison, shown: Sequence[Slide], *, dark: bool, title: str | None) -> Figure:
    figure, pen = sheet(height=len(shown) * SLIDE_HEIGHT, dark=dark)
    heading = _heading(found, title)
    for count, slide in enumerate(shown):
        top = count * SLIDE_HEIGHT
        y = top + 16.0
        y = pen.lines(_EDGE, y, heading.title, TITLE_SIZE, weight="bold")
        if heading.beside:
            pen.write(SLIDE_WIDTH - _EDGE, top + 30.0, heading.subtitle, TEXT + 1, align="right")
        else:
            pen.write(_EDGE, y + 9.0, heading.subtitle, TEXT + 1)
        _draw(pen, slide, top + heading.below, top + _BOTTOM)
    return figure


def _draw(pen: Pen, slide: Slide, y: float, bottom: float) -> None:
    """Draw the parts of a slide between two heights."""
    spare = bottom - y - slide.height
    gap = min(spare / max(slide.parts, 1), _MOST_BETWEEN)
    if slide.graph is not None and slide.parts == 1:
        _draw_graph_alone(pen, slide.graph, y, bottom)
    elif slide.graph is not None:
        paint(pen, slide.graph, SLIDE_WIDTH / 2, y)
        y += slide.graph.size[1] + gap
    for table in slide.tables:
        table.draw(pen, _EDGE, y)
        y += table.height + gap
    for method, lines in slide.said:
        pen.write(_EDGE, y + LINE / 2, method, weight="bold")
        y = pen.lines(_EDGE + _INDENT, y, lines)
    pen.lines(_EDGE, y + (gap if slide.said else 0.0), slide.notes, color=pen.faint)


def _draw_graph_alone(pen: Pen, graph: FittedGraph, y: float, bottom: float) -> None:
    """A graph in the middle, with a legend and what was left out below."""
    legend = Legend(roles_in(graph.diagram), _ROOM)
    note = wrap_words(graph.note, _ROOM, TEXT)
    below = bottom - legend.height - len(note) * LINE
    start = y + max(0.0, below - _ABOVE_LEGEND - y - graph.size[1]) / 2
    paint(pen, graph, SLIDE_WIDTH / 2, start)
    legend.draw(pen, SLIDE_WIDTH / 2, below)
    end = below + legend.height
    pen.lines(SLIDE_WIDTH / 2, end, note, align="center", color=pen.faint)
