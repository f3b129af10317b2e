"""A comparison as slides of aspect 16:9: one slide if everything fits, else two."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cgprimer.analysis.comparison import Comparison, require_comparison
from cgprimer.errors import pluralize
from cgprimer.support.files import check_writable, write_atomically, write_generated_file
from cgprimer.visualization.diagrams.figure_files import check_picture_path, encode_figure
from cgprimer.visualization.diagrams.layer_summary import is_readable
from cgprimer.visualization.diagrams.slide_pen import (
    LINE,
    ROW,
    TEXT,
    Legend,
    MeasuredTable,
    Pen,
    create_canvas,
    shorten_text,
)
from cgprimer.visualization.diagrams.text_layout import measure_text, wrap_words
from cgprimer.visualization.diagrams.theme import (
    DETAIL_SIZE,
    READABLE_SIZE,
    SLIDE_HEIGHT,
    SLIDE_WIDTH,
    TITLE_SIZE,
    list_roles,
)
from cgprimer.visualization.pages.comparison import comparison_text
from cgprimer.visualization.pages.comparison.fitted_graph import (
    FittedGraph,
    build_complete_diagram,
    fit_graph,
    paint_graph,
    scale_diagram,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("html", "pdf", "png", "svg")
_EDGE = 28.0
_ROOM = SLIDE_WIDTH - 2 * _EDGE
_BOTTOM = SLIDE_HEIGHT - 10.0
_BETWEEN, _MAX_BETWEEN = 9.0, 26.0
_NARROW_ROW = 20.0
_LEAST_GRAPH = 60.0
_ABOVE_LEGEND = 8.0
_INDENT = 158.0  # of the paragraphs on methods, and the least width of their names in the table
_WIDEST_NAME = 260.0
_DIGITS = (8, 7, 6, 5, 4, 3)
_MAX_TITLE_LINES = 3
_TITLE_LINE = 1.25 * TITLE_SIZE


@dataclass(frozen=True, slots=True)
class Slide:
    """The contents of one comparison slide, from top to bottom.

    Attributes:
        graph: the graph, if the slide shows it.
        tables: the tables of derivatives and costs.
        descriptions: for each method its name and the lines of its description.
        notes: lines at the bottom.
    """

    graph: FittedGraph | None = None
    tables: tuple[MeasuredTable, ...] = ()
    descriptions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def height(self) -> float:
        """The total height of the parts below the heading, in points, without gaps."""
        graph = 0.0 if self.graph is None else self.graph.size[1]
        lines = len(self.notes) + sum(len(lines) for _, lines in self.descriptions)
        return graph + sum(table.height for table in self.tables) + lines * LINE

    @property
    def n_parts(self) -> int:
        """The number of parts (graph, tables, texts) below the heading; gaps separate the parts."""
        return (
            (self.graph is not None) + len(self.tables) + bool(self.descriptions) + bool(self.notes)
        )


def draw_comparison(
    comparison: Comparison,
    *,
    dark: bool = False,
    title: str | None = None,
    output: str | Path | None = None,
) -> Figure:
    """Draw a comparison of methods: the graph, derivatives with errors, and costs as bars.

    The figure is a slide of 13.33 by 7.5 inches, without text smaller than 14 points. If one slide
    is too small, the figure has two, one below the other; :func:`comparison_slides` returns them
    separately. If there is no room for all derivatives, the slide shows those with the largest
    errors.

    Args:
        comparison: the result of ``cgprimer.compare``.
        dark: use dark colors.
        title: the title, empty for none; by default it names the output and the methods.
        output: a file to write, as with ``cgprimer compare -o``: a page (``.html``) or slides
            (``.pdf``, ``.png``, ``.svg``). A second picture is written next to the first, such as
            ``lecture-2.png`` next to ``lecture.png``. Existing files are replaced.

    Returns:
        A matplotlib figure.

    Raises:
        UsageError: the argument is not a comparison, or the file cannot be written.

    >>> from cgprimer import compare, parse
    >>> comparison = compare(parse("xw = k*xa"), {"xa": 1, "k": 2})
    >>> [round(float(side), 2) for side in draw_comparison(comparison).get_size_inches()]
    [13.33, 7.5]
    """
    if output is not None:
        save_comparison(comparison, Path(output), dark=dark, title=title)
    slides = _lay_out_slides(require_comparison(comparison), title)
    return _draw_slides(comparison, slides, dark=dark, title=title)


def comparison_slides(
    comparison: Comparison, *, dark: bool = False, title: str | None = None
) -> tuple[Figure, ...]:
    """Draw the one or two slides of :func:`draw_comparison`, each as a figure."""
    slides = _lay_out_slides(comparison, title)
    return tuple(_draw_slides(comparison, [slide], dark=dark, title=title) for slide in slides)


def save_comparison(
    comparison: Comparison, path: Path, *, dark: bool = False, title: str | None = None
) -> tuple[Path, ...]:
    """Write a comparison as a page (``.html``) or as slides (``.pdf``, ``.png``, ``.svg``).

    Arguments and errors are those of :func:`draw_comparison`. Returns the paths of the files that
    were written; a PDF file has all slides.
    """
    require_comparison(comparison)
    kind = check_picture_path(path, FORMATS)
    if kind == "html":
        from cgprimer.visualization.pages.comparison.comparison_page import comparison_page

        write_generated_file(path, comparison_page(comparison, dark=dark, title=title))
        return (path,)
    figures = comparison_slides(comparison, dark=dark, title=title)
    if kind == "pdf":
        from matplotlib.backends.backend_pdf import PdfPages

        document = io.BytesIO()
        with PdfPages(document, metadata={"CreationDate": None}) as pages:
            for figure in figures:
                pages.savefig(figure, facecolor=figure.get_facecolor())
        write_atomically(path, document.getvalue())
        return (path,)
    contents = [encode_figure(figure, kind) for figure in figures]  # all before any is written
    next_paths = (path.with_name(f"{path.stem}-{k}{path.suffix}") for k in range(2, 9))
    written = (path, *next_paths)[: len(contents)]
    for name in written:
        check_writable(name)
    for name, content in zip(written, contents, strict=True):
        write_atomically(name, content)
    return written


def _lay_out_slides(comparison: Comparison, title: str | None) -> tuple[Slide, ...]:
    """Lay out a comparison on one slide, or on two slides (graph, tables) if one is too small."""
    room = _BOTTOM - _lay_out_heading(comparison, title).bottom
    texts = [*comparison_text.explain_missing_errors(comparison), "; ".join(comparison_text.NOTES)]
    wrapped = (line for text in texts for line in wrap_words(text, _ROOM, TEXT))
    notes = tuple(shorten_text(line, _ROOM) for line in wrapped)
    diagram = build_complete_diagram(comparison)
    for row in (ROW, _NARROW_ROW) if is_readable(diagram) else ():
        numbers = Slide(None, _build_tables(comparison, len(comparison.wrt), row), (), notes)
        left = room - numbers.height - numbers.n_parts * _BETWEEN
        if left > _LEAST_GRAPH:
            graph = scale_diagram(diagram, _ROOM, left, READABLE_SIZE / DETAIL_SIZE)
            if graph is not None:
                return (_add_descriptions(comparison, replace(numbers, graph=graph), room),)
    legend = Legend(list_roles(diagram), _ROOM)
    graph = fit_graph(comparison, _ROOM, room - legend.height - LINE - _ABOVE_LEGEND)
    if graph is None:
        counts = pluralize(len(comparison.graph.variables), "variable")
        notes = (*notes, f"the graph of {counts} is too large for a slide")
    last = Slide(None, _build_tables(comparison, len(comparison.wrt)), (), notes)
    over = last.height + 2 * _BETWEEN - room
    if over > 0:
        fewer = len(comparison.wrt) - int((over + LINE) / ROW) - 1
        last = replace(last, tables=_build_tables(comparison, max(1, fewer)))
    last = _add_descriptions(comparison, last, room)
    return (last,) if graph is None else (Slide(graph), last)


def _build_tables(
    comparison: Comparison, max_derivatives: int, row: float = ROW
) -> tuple[MeasuredTable, ...]:
    """Build the tables of derivatives and costs, showing as many digits as fit on a slide."""
    costs = MeasuredTable(
        comparison_text.build_cost_table(comparison), _ROOM, row=row, first=_INDENT - 18.0
    )
    for digits in _DIGITS:
        table = comparison_text.build_derivative_table(comparison, max_derivatives, digits)
        if table is None:
            return (costs,)
        rows = (
            r._replace(title=shorten_text(r.title, _WIDEST_NAME, bold=True)) for r in table.rows
        )
        drawn = MeasuredTable(replace(table, rows=tuple(rows)), _ROOM, row=row)
        if drawn.width <= _ROOM:
            break
    return (drawn, costs)


def _add_descriptions(comparison: Comparison, slide: Slide, room: float) -> Slide:
    """Add a sentence about each method to a slide if the slide has enough room."""
    descriptions = tuple(
        (
            result.method,
            wrap_words(comparison_text.describe_method(comparison, result), _ROOM - _INDENT, TEXT),
        )
        for result in comparison.results
        if not result.refused  # the table of costs gives the reason of a refusal
    )
    fuller = replace(slide, descriptions=descriptions)
    return fuller if fuller.height + fuller.n_parts * _BETWEEN <= room else slide


class _Heading(NamedTuple):
    """The laid-out heading of a slide: title lines, subtitle, and the y position of its end.

    Attributes:
        title: the lines of the title.
        subtitle: the subtitle, in one line.
        is_one_line: the subtitle is to the right of the title, not below it.
        bottom: the vertical position at which the other parts begin, in points.
    """

    title: tuple[str, ...]
    subtitle: str
    is_one_line: bool
    bottom: float


def _lay_out_heading(comparison: Comparison, title: str | None) -> _Heading:
    """Wrap a slide's title, and place the subtitle next to the title or below it."""
    text = comparison_text.format_default_title(comparison) if title is None else title
    wrapped = wrap_words(text, _ROOM, TITLE_SIZE, bold=True)
    if len(wrapped) > _MAX_TITLE_LINES:
        wrapped = (*wrapped[: _MAX_TITLE_LINES - 1], f"{wrapped[_MAX_TITLE_LINES - 1]} …")
    lines = tuple(shorten_text(line, _ROOM, TITLE_SIZE, bold=True) for line in wrapped)
    subtitle = shorten_text(comparison_text.format_subtitle(comparison), _ROOM, TEXT + 1)
    used = measure_text(lines[0], TITLE_SIZE, bold=True) if lines else 0.0
    is_one_line = len(lines) == 1 and used + 40 + measure_text(subtitle, TEXT + 1) <= _ROOM
    bottom = 18.0 + _TITLE_LINE * len(lines) + (0.0 if is_one_line else 22.0) + 4.0
    return _Heading(lines, subtitle, is_one_line, bottom)


def _draw_slides(
    comparison: Comparison, slides: Sequence[Slide], *, dark: bool, title: str | None
) -> Figure:
    """Draw several slides below each other in a single figure."""
    figure, pen = create_canvas(height=len(slides) * SLIDE_HEIGHT, dark=dark)
    heading = _lay_out_heading(comparison, title)
    for count, slide in enumerate(slides):
        top = count * SLIDE_HEIGHT
        y = top + 16.0
        y = pen.lines(_EDGE, y, heading.title, TITLE_SIZE, weight="bold")
        if heading.is_one_line:
            pen.write(SLIDE_WIDTH - _EDGE, top + 30.0, heading.subtitle, TEXT + 1, align="right")
        else:
            pen.write(_EDGE, y + 9.0, heading.subtitle, TEXT + 1)
        _draw_slide(pen, slide, top + heading.bottom, top + _BOTTOM)
    return figure


def _draw_slide(pen: Pen, slide: Slide, y: float, bottom: float) -> None:
    """Draw the contents of a slide between the vertical positions ``y`` and ``bottom``."""
    spare = bottom - y - slide.height
    gap = min(spare / max(slide.n_parts, 1), _MAX_BETWEEN)
    if slide.graph is not None and slide.n_parts == 1:
        _draw_graph_and_legend(pen, slide.graph, y, bottom)
    elif slide.graph is not None:
        paint_graph(pen, slide.graph, SLIDE_WIDTH / 2, y)
        y += slide.graph.size[1] + gap
    for table in slide.tables:
        table.draw(pen, _EDGE, y)
        y += table.height + gap
    for method, lines in slide.descriptions:
        pen.write(_EDGE, y + LINE / 2, method, weight="bold")
        y = pen.lines(_EDGE + _INDENT, y, lines)
    pen.lines(_EDGE, y + (gap if slide.descriptions else 0.0), slide.notes, color=pen.faint)


def _draw_graph_and_legend(pen: Pen, graph: FittedGraph, y: float, bottom: float) -> None:
    """Draw a graph in the middle of a slide, with the legend and the note at the bottom."""
    legend = Legend(list_roles(graph.diagram), _ROOM)
    note = wrap_words(graph.note, _ROOM, TEXT)
    below = bottom - legend.height - len(note) * LINE
    start = y + max(0.0, below - _ABOVE_LEGEND - y - graph.size[1]) / 2
    paint_graph(pen, graph, SLIDE_WIDTH / 2, start)
    legend.draw(pen, SLIDE_WIDTH / 2, below)
    end = below + legend.height
    pen.lines(SLIDE_WIDTH / 2, end, note, align="center", color=pen.faint)
