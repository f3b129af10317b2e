"""A comparison as one page without network, server or anything beside it, and in notebooks.

Every text of a user goes through `escape`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from cgprimer.analysis.comparison import Comparison, MethodResult
from cgprimer.analysis.trace import Trace, trace
from cgprimer.errors import CgprimerError, pluralize
from cgprimer.support.number_format import mark_rounding
from cgprimer.visualization.diagrams.diagram import Diagram
from cgprimer.visualization.diagrams.figure_files import figure_bytes
from cgprimer.visualization.diagrams.slide_pen import Cell, Table
from cgprimer.visualization.diagrams.theme import theme
from cgprimer.visualization.pages import page_markup
from cgprimer.visualization.pages.comparison import sentences
from cgprimer.visualization.pages.comparison.fitted_graph import fitted, standing_alone, whole_graph

_FEW_VERTICES = 40  # beyond which the description for screen readers counts them
_MOST_DERIVATIVES = 100
_MOST_OPERATIONS = 24  # rows of a trace beyond which it has a row per variable
_MOST_ROWS = 30
_LONGEST = 120  # characters of an expression in a trace
_TRACE_DIGITS = 6  # three traces stand side by side
_PIXELS = 96  # per inch


def comparison_page(found: Comparison, *, dark: bool = False, title: str | None = None) -> str:
    """A comparison as a page: graph, derivatives, costs, and a section per method with its trace.

    The page follows the light or dark colours of its reader's system unless it is to be ``dark``,
    and has a switch. The other arguments are those of ``draw_comparison``.

    >>> from cgprimer import compare, parse
    >>> found = compare(parse("xw = k*xa"), {"xa": 1, "k": 2})
    >>> page = comparison_page(found, title="a < b")
    >>> page.splitlines()[0], "<h1>a &lt; b</h1>" in page
    ('<!doctype html>', True)
    """
    fills = {
        "SUBTITLE": escape(sentences.subheading(found)),
        "GRAPH": _graph_section(found),
        "TABLES": _tables(found),
        "METHODS": "\n".join(_article(found, result) for result in found.results),
        "OF": escape(found.of),
    }
    heading = sentences.heading(found) if title is None else title
    return page_markup.page("comparison", heading, fills, dark=dark)


def notebook_html(found: Comparison) -> str:
    """What a notebook shows of a comparison: the graph and both tables, on a light ground."""
    ground = "background: var(--background); color: var(--ink); padding: 0.8em;"
    return (
        f'<div class="comparison" style="{escape(page_markup.colour_variables(False))} {ground}">'
        f"<style>{page_markup.part('comparison/tables.css')}</style>"
        f"<p>{escape(sentences.subheading(found))}</p>{_graph_section(found)}{_tables(found)}</div>"
    )


def _graph_section(found: Comparison) -> str:
    """The graph as SVG that takes its colours from the style sheet, with a description."""
    graph = fitted(found)
    if graph is None:
        return ""
    figure = standing_alone(graph)
    picture = figure_bytes(figure, "svg").decode()
    picture = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", picture, flags=re.DOTALL)
    picture = picture[picture.index("<svg") :]
    label, width = escape(described(whole_graph(found))), figure.get_size_inches()[0] * _PIXELS
    opening = f'<svg role="img" aria-label="{label}" style="width: {width:.0f}px" '
    picture = re.sub(r' (?:width|height)="[^"]*pt"', "", picture, count=2)
    picture = _themed(picture.replace("<svg ", opening, 1))
    caption = f"<figcaption>{escape(graph.note)}</figcaption>" if graph.note else ""
    return (
        f'<section><h2>The graph</h2><figure tabindex="0" aria-label="the graph">{picture}'
        f"{caption}</figure></section>"
    )


def described(diagram: Diagram) -> str:
    """A graph in words, for readers who cannot see it.

    >>> from cgprimer.visualization.diagrams.diagram import Edge, Node
    >>> nodes = (Node("xa", "xa", "input", ("= 1",)), Node("xw", "xw", "output", ("2*xa", "= 2")))
    >>> described(Diagram(nodes, (Edge("xa", "xw"),)))
    'graph of 2 vertices and 1 edge: input xa = 1; output xw = 2*xa = 2'
    """
    vertices = pluralize(len(diagram.nodes), "vertex", "vertices")
    count = f"graph of {vertices} and {pluralize(len(diagram.edges), 'edge')}"
    if len(diagram.nodes) > _FEW_VERTICES:
        return count
    said = []
    for node in diagram.nodes:
        texts = [text if text[:2] in ("= ", "≈ ") else f"= {text}" for text in node.detail]
        said.append(" ".join([node.role, node.label, *texts]))
    return f"{count}: {'; '.join(said)}"


def _themed(picture: str) -> str:
    """A light picture whose colours are those of the style sheet, light or dark."""
    look = theme(False)
    names = {look.ink: "ink", look.edge: "edge", look.grid: "grid"}
    for role, style in look.roles.items():
        names |= {style.outline: role, style.fill: f"{role}-fill"}
    names[look.background] = "background"  # also the fill of a dotted outline
    variables = {colour: f"var(--{name})" for colour, name in names.items()}
    return re.sub(r"#[0-9a-f]{6}\b", lambda mark: variables.get(mark[0], mark[0]), picture)


def _tables(found: Comparison) -> str:
    """Derivatives and costs, each with what a reader must know."""
    derivatives, made = sentences.derivative_table(found, _MOST_DERIVATIVES), ""
    if derivatives is not None:
        caption = "each derivative by each method, and its relative error"
        notes = [note for note in (derivatives.note, *sentences.remarks(found)) if note]
        made = _section("Derivatives", caption, derivatives, notes) + "\n"
    own = pluralize(found.primal_operations, "operation")
    caption = f"what the whole gradient costs; the graph alone takes {own}"
    notes = [f"{'; '.join(sentences.NOTES)}."]
    return made + _section("Costs", caption, sentences.cost_table(found), notes)


def _section(title: str, caption: str, table: Table, notes: Sequence[str]) -> str:
    series = (-1, *(table.series or [-1] * len(table.bars)))
    header = [_key(k) + escape(text) for k, text in zip(series, table.header, strict=True)]
    rows = []
    for row in table.rows:
        cells = "".join(_cell(cell, row.series) for cell in row.cells)
        if row.instead:
            cells = f'<td colspan="{len(table.bars)}" class="refused">{escape(row.instead)}</td>'
        rows.append(f'<tr><th scope="row">{_key(row.series)}{escape(row.title)}</th>{cells}</tr>')
    below = "".join(f'<p class="note">{escape(note)}</p>' for note in notes)
    made = _html_table(title.lower(), caption, header, rows)
    return f"<section><h2>{title}</h2>{made}{below}</section>"


def _html_table(kind: str, caption: str, header: Sequence[str], rows: Sequence[str]) -> str:
    """A table in a box of its own, so that one that is too wide does not widen the page."""
    titles = "".join(f'<th scope="col">{title}</th>' for title in header)
    return (
        f'<div class="box" tabindex="0"><table class="{kind}"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{titles}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(cell: Cell, series: int) -> str:
    more = f' <span class="more">{escape(cell.more)}</span>' if cell.more else ""
    bar = ""
    if cell.share is not None:
        inner = f'<span class="m{series}" style="width: {100 * cell.share:.1f}%"></span>'
        bar = f'<span class="bar" aria-hidden="true">{inner}</span>'
    return f'<td><span class="value">{escape(cell.text)}</span>{more}{bar}</td>'


def _key(series: int) -> str:
    """The colour and pattern of a method."""
    return f'<span class="key m{series}" aria-hidden="true"></span>' if series >= 0 else ""


def _article(found: Comparison, result: MethodResult) -> str:
    """What a method does here, and its trace."""
    name = escape(result.method)
    return (
        f'<article aria-label="{name}"><h3>{_key(sentences.place_of(result.method))}{name}</h3>'
        f"<p>{escape(sentences.sentence(found, result))}</p>{_trace_table(found, result)}</article>"
    )


def trace_of(found: Comparison, result: MethodResult) -> Trace:
    """The trace of a method at the point of the comparison.

    Reverse mode has the adjoint of every value; the others tangents, seeded with the first name.

    Raises:
        CgprimerError: the method refuses; also one that gives the gradient may refuse the
            derivative of every row.
    """
    wrt = None if result.method == "reverse" else found.wrt[0]
    given = len(found.graph.inputs) + len(found.graph.parameters)
    small = given + found.primal_operations <= _MOST_OPERATIONS
    level = "operations" if small else "variables"
    return trace(found.graph, found.at, of=found.of, wrt=wrt, method=result.method, level=level)


def _trace_table(found: Comparison, result: MethodResult) -> str:
    if result.refused:
        return ""
    try:
        made = trace_of(found, result)
    except CgprimerError as error:
        return f'<p class="note">no trace: {escape(error.message)}</p>'
    body = [
        f'<tr><th scope="row">{escape(row.name)}</th><td class="expression">'
        f"{_breakable(row.expression)}</td><td>{mark_rounding(row.value, _TRACE_DIGITS)}</td>"
        f"<td>{mark_rounding(row.derivative, _TRACE_DIGITS)}</td></tr>"
        for row in made.rows
    ]
    left_out, half = len(body) - _MOST_ROWS, _MOST_ROWS // 2
    if left_out > 0:
        gap = f'<tr><td colspan="4" class="refused">{pluralize(left_out, "row")} left out</td></tr>'
        body = [*body[:half], gap, *body[-half:]]
    header = [escape(text) for text in ("name", "expression", "value", made.heading)]
    return _html_table("trace", sentences.trace_caption(found, result), header, body)


def _breakable(expression: str) -> str:
    """An expression that a browser may break at operators, not within names.

    >>> _breakable("sin(a)*b + 1")
    'sin(<wbr>a)<wbr>*b + 1'
    """
    if len(expression) > _LONGEST:
        expression = f"{expression[:_LONGEST].rpartition(' ')[0] or expression[:_LONGEST]} …"
    return re.sub(r"(?<=\S)(?=[*/])|(?<=\()", "<wbr>", escape(expression))
