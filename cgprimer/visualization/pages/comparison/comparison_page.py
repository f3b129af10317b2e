"""A comparison of methods as a self-contained HTML page, and in a notebook."""

from __future__ import annotations

import re
from typing import NamedTuple

from cgprimer.analysis.comparison import Comparison, MethodResult
from cgprimer.analysis.trace import Trace, trace
from cgprimer.errors import CgprimerError, pluralize
from cgprimer.support.number_format import mark_rounding
from cgprimer.support.templates import Markup, render_template
from cgprimer.visualization.diagrams.diagram import Diagram
from cgprimer.visualization.diagrams.figure_files import encode_figure
from cgprimer.visualization.diagrams.slide_pen import Table
from cgprimer.visualization.pages.comparison import comparison_text
from cgprimer.visualization.pages.comparison.fitted_graph import (
    build_complete_diagram,
    draw_fitted_graph,
    fit_graph,
)
from cgprimer.visualization.pages.page_rendering import collect_themes, inline_svg, render_page

_MAX_DESCRIBED_VERTICES = 40  # descriptions of larger graphs for screen readers only count them
_MAX_DERIVATIVES = 100
_MAX_OPERATIONS = 24  # traces of larger graphs have one row per variable
_MAX_ROWS = 30
_LONGEST_EXPRESSION = 120  # characters in a trace
_TRACE_DIGITS = 6  # three traces are side by side
_PIXELS_PER_INCH = 96


class GraphPicture(NamedTuple):
    """An inline SVG picture of the compared graph, with a note on omitted text."""

    picture: Markup
    note: str


class TableSection(NamedTuple):
    """A section of a comparison page: a heading, a table with its caption, and notes below it."""

    heading: str
    caption: str
    table: Table
    notes: list[str]


class TraceRow(NamedTuple):
    """A row of a trace table, or a placeholder for the omitted middle rows of a long trace.

    Attributes:
        name: the name of the value.
        expression: the expression in parts, between which a line may break.
        value: the value, formatted.
        derivative: the derivative, formatted.
        omitted: the text in place of omitted rows; empty for an ordinary row.
    """

    name: str = ""
    expression: tuple[str, ...] = ()
    value: str = ""
    derivative: str = ""
    omitted: str = ""


class TraceTable(NamedTuple):
    """The trace computed by one differentiation method, as a table with caption and header."""

    caption: str
    header: tuple[str, ...]
    rows: list[TraceRow]


class MethodSection(NamedTuple):
    """The section on one method: its description, and its trace or the reason why it has none."""

    name: str
    series: int
    description: str
    trace: TraceTable | None
    trace_error: str


def comparison_page(comparison: Comparison, *, dark: bool = False, title: str | None = None) -> str:
    """Render a comparison as an HTML page: graph, derivatives, costs, and a trace for each method.

    The page follows the light or dark colors of the reader's system unless ``dark`` is true, and
    has a switch. The other arguments are those of ``draw_comparison``.

    >>> from cgprimer import compare, parse
    >>> comparison = compare(parse("xw = k*xa"), {"xa": 1, "k": 2})
    >>> page = comparison_page(comparison, title="a < b")
    >>> page.splitlines()[0], "<h1>a &lt; b</h1>" in page
    ('<!doctype html>', True)
    """
    return render_page(
        "visualization/pages/comparison/comparison_page.html",
        comparison_text.format_default_title(comparison) if title is None else title,
        dark=dark,
        subtitle=comparison_text.format_subtitle(comparison),
        graph=_draw_graph(comparison),
        sections=_build_table_sections(comparison),
        methods=[_build_method_section(comparison, result) for result in comparison.results],
        of=comparison.of,
    )


def render_notebook_html(comparison: Comparison) -> str:
    """Render a comparison for a notebook: the graph and both tables on a light background."""
    return render_template(
        "visualization/pages/comparison/comparison_in_notebook.html",
        themes=collect_themes(),
        subtitle=comparison_text.format_subtitle(comparison),
        graph=_draw_graph(comparison),
        sections=_build_table_sections(comparison),
    )


def _draw_graph(comparison: Comparison) -> GraphPicture | None:
    """Draw the compared graph as inline SVG in the page's colors; return None if it is too big."""
    graph = fit_graph(comparison)
    if graph is None:
        return None
    figure = draw_fitted_graph(graph)
    width = figure.get_size_inches()[0] * _PIXELS_PER_INCH
    picture = inline_svg(
        encode_figure(figure, "svg"),
        role="img",
        aria_label=describe_diagram(build_complete_diagram(comparison)),
        style=f"width: {width:.0f}px",
    )
    return GraphPicture(picture, graph.note)


def describe_diagram(diagram: Diagram) -> str:
    """Describe a diagram in words, as alternative text for readers who cannot see the picture.

    >>> from cgprimer.visualization.diagrams.diagram import Edge, Node
    >>> nodes = (Node("xa", "xa", "input", ("= 1",)), Node("xw", "xw", "output", ("2*xa", "= 2")))
    >>> describe_diagram(Diagram(nodes, (Edge("xa", "xw"),)))
    'graph of 2 vertices and 1 edge: input xa = 1; output xw = 2*xa = 2'
    """
    vertices = pluralize(len(diagram.nodes), "vertex", "vertices")
    counts = f"graph of {vertices} and {pluralize(len(diagram.edges), 'edge')}"
    if len(diagram.nodes) > _MAX_DESCRIBED_VERTICES:
        return counts
    descriptions = []
    for node in diagram.nodes:
        texts = [text if text[:2] in ("= ", "≈ ") else f"= {text}" for text in node.detail]
        descriptions.append(" ".join([node.role, node.label, *texts]))
    return f"{counts}: {'; '.join(descriptions)}"


def _build_table_sections(comparison: Comparison) -> list[TableSection]:
    """Build the sections with the table of derivatives and the table of costs."""
    sections = []
    derivatives = comparison_text.build_derivative_table(comparison, _MAX_DERIVATIVES)
    if derivatives is not None:
        caption = "derivatives computed by each method, with relative errors"
        remarks = comparison_text.explain_missing_errors(comparison)
        notes = [note for note in (derivatives.note, *remarks) if note]
        sections.append(TableSection("Derivatives", caption, derivatives, notes))
    operations = pluralize(comparison.primal_operations, "operation")
    caption = f"costs of the whole gradient; the graph alone takes {operations}"
    notes = [f"{'; '.join(comparison_text.NOTES)}."]
    costs = comparison_text.build_cost_table(comparison)
    return [*sections, TableSection("Costs", caption, costs, notes)]


def _build_method_section(comparison: Comparison, result: MethodResult) -> MethodSection:
    """Build the section on one method, with its trace if the method can compute one."""
    table, error = None, ""
    if not result.refused:
        try:
            table = _build_trace_table(comparison, result)
        except CgprimerError as refusal:
            error = refusal.message
    series = comparison_text.find_method_index(result.method)
    description = comparison_text.describe_method_and_costs(comparison, result)
    return MethodSection(result.method, series, description, table, error)


def trace_method(comparison: Comparison, result: MethodResult) -> Trace:
    """Compute the trace of the compared graph with the method of `result`.

    Reverse mode has the adjoint of every value; other methods have tangents, seeded with the first
    name.

    Raises:
        CgprimerError: the method refuses. A method that computes the gradient may refuse to compute
            the derivative of every row.
    """
    wrt = None if result.method == "reverse" else comparison.wrt[0]
    graph = comparison.graph
    n_leaves = len(graph.inputs) + len(graph.parameters)
    is_small = n_leaves + comparison.primal_operations <= _MAX_OPERATIONS
    level = "operations" if is_small else "variables"
    method = result.method
    return trace(graph, comparison.at, of=comparison.of, wrt=wrt, method=method, level=level)


def _build_trace_table(comparison: Comparison, result: MethodResult) -> TraceTable:
    """Build the trace table of a method; the middle rows of a long trace are omitted."""
    computed = trace_method(comparison, result)
    rows = [
        TraceRow(
            row.name,
            split_at_operators(row.expression),
            mark_rounding(row.value, _TRACE_DIGITS),
            mark_rounding(row.derivative, _TRACE_DIGITS),
        )
        for row in computed.rows
    ]
    n_omitted, half = len(rows) - _MAX_ROWS, _MAX_ROWS // 2
    if n_omitted > 0:
        gap = TraceRow(omitted=f"{pluralize(n_omitted, 'row')} omitted")
        rows = [*rows[:half], gap, *rows[-half:]]
    caption = comparison_text.describe_trace(comparison, result)
    return TraceTable(caption, ("name", "expression", "value", computed.heading), rows)


def split_at_operators(expression: str) -> tuple[str, ...]:
    """Split an expression into parts between which a browser may break lines.

    Lines break at operators, not within names.

    >>> split_at_operators("sin(a)*b + 1")
    ('sin(', 'a)', '*b + 1')
    """
    if len(expression) > _LONGEST_EXPRESSION:
        beginning = expression[:_LONGEST_EXPRESSION]
        expression = f"{beginning.rpartition(' ')[0] or beginning} …"
    return tuple(re.split(r"(?<=\S)(?=[*/])|(?<=\()", expression))
