"""The graph of a comparison, scaled to an area, with as much text as remains readable."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cgprimer.analysis.comparison import Comparison
from cgprimer.expressions import parse_element
from cgprimer.visualization.diagrams.diagram import Diagram, Edge, Node
from cgprimer.visualization.diagrams.diagram_figure import draw_vertices_and_edges as paint_diagram
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
from cgprimer.visualization.diagrams.layer_summary import is_readable, summarize
from cgprimer.visualization.diagrams.slide_layout import SlideLayout, slide_layout
from cgprimer.visualization.diagrams.slide_pen import Legend, Pen, create_canvas
from cgprimer.visualization.diagrams.theme import DETAIL_SIZE, LABEL_SIZE, READABLE_SIZE, list_roles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LARGEST_SCALE = 1.2
_MARGIN = 3.0
_LEGEND_WIDTH = 600.0
_WIDEST = 1250.0  # points; pages shrink the graph to the width of the window


@dataclass(frozen=True, slots=True)
class FittedGraph:
    """The diagram of a graph, scaled to fit into an area; text that would be too small is omitted.

    Attributes:
        diagram: the diagram, with as much text as fits.
        layout: the positions of its vertices, edges and labels.
        scale: points per unit of the layout.
        note: a note on the text that was omitted; empty if the diagram is complete.
    """

    diagram: Diagram
    layout: SlideLayout
    scale: float
    note: str

    @property
    def size(self) -> tuple[float, float]:
        """The width and height of the scaled diagram with its margins, in points."""
        graph = self.layout.layout
        return (self.scale * graph.width + 2 * _MARGIN, self.scale * graph.height + 2 * _MARGIN)


def build_complete_diagram(comparison: Comparison) -> Diagram:
    """Build the diagram of a compared graph with all its text and all computed values.

    >>> from cgprimer import compare, parse
    >>> comparison = compare(parse("xw = k*xa; xv = m*xa"), {"xa": 1, "k": 2}, of="xw")
    >>> [(node.label, node.detail) for node in build_complete_diagram(comparison).nodes]
    [('xa', ('= 1',)), ('xw', ('k*xa', '= 2')), ('xv', ('m*xa',))]
    """
    graph = comparison.graph
    diagram = graph_diagram(graph, at=comparison.at, everything=True)
    needed = {parse_element(comparison.of)[0]}
    for name in reversed(graph.variables):
        if name in needed:
            needed.update(graph.depends_on.get(name, ()))
            needed.update(graph.parameters_of.get(name, ()))
    nodes = (n if n.key in needed else _remove_value(n) for n in diagram.nodes)
    # A parameter on the edge to a vertex that was not computed may have no value.
    edges = (e if e.head in needed else _remove_edge_values(e) for e in diagram.edges)
    return Diagram(tuple(nodes), tuple(edges))


def fit_graph(
    comparison: Comparison, width: float = _WIDEST, height: float = math.inf
) -> FittedGraph | None:
    """Fit the diagram of a compared graph into an area; omit text that would be unreadable.

    Values on edges are omitted first, then expressions, then all text on edges, then all values. A
    graph that is still too large is summarized by layers. Returns None if even the summary is too
    large.

    >>> from cgprimer import compare, parse
    >>> comparison = compare(parse("xx = xa^2; xw = k*xx"), {"xa": 1, "k": 2})
    >>> fit_graph(comparison, 900, 400).note, fit_graph(comparison, 260, 60).note
    ('', 'omitted for lack of space: expressions and values')
    """
    for diagram, smallest_scale, note in _shorten_diagram(build_complete_diagram(comparison)):
        graph = scale_diagram(diagram, width, height, smallest_scale, note)
        if graph is not None:
            return graph
    return None


def scale_diagram(
    diagram: Diagram, width: float, height: float, smallest_scale: float, note: str = ""
) -> FittedGraph | None:
    """Scale a diagram to fit an area; return None if text would be too small or labels overlap."""
    layout = slide_layout(diagram)
    if layout.labels.touching:
        return None
    graph = layout.layout
    room = (width - 2 * _MARGIN, height - 2 * _MARGIN)
    scale = min(room[0] / graph.width, room[1] / graph.height, _LARGEST_SCALE)
    return FittedGraph(diagram, layout, scale, note) if scale >= smallest_scale else None


def paint_graph(pen: Pen, graph: FittedGraph, middle: float, top: float) -> None:
    """Draw a fitted graph on a slide, centered at ``middle``, with its upper border at ``top``."""
    inner = pen.part(middle - graph.size[0] / 2, top, *graph.size, scale=graph.scale)
    layout, margin = graph.layout.layout, _MARGIN / graph.scale
    inner.axes.set_xlim(-margin, layout.width + margin)
    inner.axes.set_ylim(layout.height + margin, -margin)
    paint_diagram(inner, graph.diagram, graph.layout)


def draw_fitted_graph(graph: FittedGraph) -> Figure:
    """Draw a fitted graph and its legend in a figure of minimum size."""
    graph = replace(graph, scale=1.0)
    width, height = max(graph.size[0], _LEGEND_WIDTH), graph.size[1] + 10.0
    legend = Legend(list_roles(graph.diagram), width)
    figure, pen = create_canvas(width, height + legend.height)
    paint_graph(pen, graph, width / 2, 0.0)
    legend.draw(pen, width / 2, height)
    return figure


def _shorten_diagram(diagram: Diagram) -> Iterator[tuple[Diagram, float, str]]:
    """Yield versions of a diagram with less and less text, each with its minimum scale and note."""
    usual_scale, label_scale = READABLE_SIZE / DETAIL_SIZE, READABLE_SIZE / LABEL_SIZE
    if is_readable(diagram):
        nodes, edges = diagram.nodes, diagram.edges
        values = tuple(map(_remove_expression, nodes))
        edge_names = tuple(map(_remove_edge_values, edges))
        versions = (
            (nodes, edges, usual_scale, ""),
            (nodes, edge_names, usual_scale, "values on edges"),
            (values, edges, usual_scale, "expressions"),
            (values, edge_names, usual_scale, "expressions and values on edges"),
            (values, _remove_edge_text(edges), usual_scale, "expressions and text on edges"),
            (_remove_details(nodes), _remove_edge_text(edges), label_scale,
             "expressions and values"),
        )  # fmt: skip
        previous = None
        for some_nodes, some_edges, smallest_scale, omitted in versions:
            if (some_nodes, some_edges) != previous:
                note = f"omitted for lack of space: {omitted}" if omitted else ""
                yield Diagram(some_nodes, some_edges), smallest_scale, note
            previous = (some_nodes, some_edges)
    summary = summarize(diagram, 0)
    (note,) = summary.notes
    yield replace(summary, notes=()), usual_scale, note
    labels = Diagram(_remove_details(summary.nodes), _remove_edge_text(summary.edges))
    yield labels, label_scale, note.partition(";")[0]


def _remove_expression(node: Node) -> Node:
    """Remove the expression from a vertex, and keep its value."""
    return replace(node, detail=node.detail[_find_value_index(node) :])


def _remove_value(node: Node) -> Node:
    """Remove the value from a vertex, and keep its expression."""
    return replace(node, detail=node.detail[: _find_value_index(node)])


def _find_value_index(node: Node) -> int:
    """Return the index of the first detail line that shows the value of a vertex."""
    indices = [k for k, text in enumerate(node.detail) if text.startswith(("= ", "≈ "))]
    return min(indices, default=len(node.detail))


def _remove_details(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Remove expressions and values from vertices, and keep their labels."""
    return tuple(replace(node, detail=()) for node in nodes)


def _remove_edge_values(edge: Edge) -> Edge:
    """Remove parameter values from an edge label, and keep the parameter names."""
    names = (part.partition("=")[0] for part in edge.label.split(", "))
    return replace(edge, label=", ".join(names))


def _remove_edge_text(edges: Iterable[Edge]) -> tuple[Edge, ...]:
    """Remove the labels of all edges."""
    return tuple(replace(edge, label="") for edge in edges)
