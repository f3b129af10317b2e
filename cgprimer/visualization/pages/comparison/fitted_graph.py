"""The graph of a comparison, with as much in it as can be read in the room that there is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cgprimer.analysis.comparison import Comparison
from cgprimer.expressions import parse_element
from cgprimer.visualization.diagrams.diagram import Diagram, Edge, Node
from cgprimer.visualization.diagrams.diagram_figure import paint as paint_diagram
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
from cgprimer.visualization.diagrams.layer_summary import is_readable, summarize
from cgprimer.visualization.diagrams.slide_layout import SlideLayout, slide_layout
from cgprimer.visualization.diagrams.slide_pen import Legend, Pen, sheet
from cgprimer.visualization.diagrams.theme import DETAIL_SIZE, LABEL_SIZE, READABLE_SIZE, roles_in

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LARGEST_SCALE = 1.2
_MARGIN = 3.0
_LEGEND_WIDTH = 600.0
_WIDEST = 1250.0  # on a page, whose graph shrinks to the width of the window


@dataclass(frozen=True, slots=True)
class FittedGraph:
    """A graph that fits: what is drawn, where, how large, and what had to be left out.

    Attributes:
        diagram: what is drawn.
        layout: where.
        scale: points per unit of the layout.
        note: what was left out; empty where nothing was.
    """

    diagram: Diagram
    layout: SlideLayout
    scale: float
    note: str

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in points."""
        graph = self.layout.layout
        return (self.scale * graph.width + 2 * _MARGIN, self.scale * graph.height + 2 * _MARGIN)


def whole_graph(found: Comparison) -> Diagram:
    """Every vertex of the graph, with the values that the comparison knows.

    >>> from cgprimer import compare, parse
    >>> found = compare(parse("xw = k*xa; xv = m*xa"), {"xa": 1, "k": 2}, of="xw")
    >>> [(node.label, node.detail) for node in whole_graph(found).nodes]
    [('xa', ('= 1',)), ('xw', ('k*xa', '= 2')), ('xv', ('m*xa',))]
    """
    diagram = graph_diagram(found.graph, at=found.at, everything=True)
    needed = {parse_element(found.of)[0]}
    for name in reversed(found.graph.variables):
        if name in needed:
            needed.update(found.graph.depends_on.get(name, ()))
            needed.update(found.graph.parameters_of.get(name, ()))
    nodes = tuple(n if n.key in needed else _said(n, value=False) for n in diagram.nodes)
    # A parameter on the edge to a vertex that was not computed may have no value of its own.
    return Diagram(nodes, tuple(e if e.head in needed else _named(e) for e in diagram.edges))


def fitted(
    found: Comparison, width: float = _WIDEST, height: float = math.inf
) -> FittedGraph | None:
    """The graph in so much room, with as much said about it as leaves its text readable.

    Values on edges go first, then expressions, then what stands on edges, then all values; a
    graph that is still too large is summarised by layers. None where even that is too large.

    >>> from cgprimer import compare, parse
    >>> found = compare(parse("xx = xa^2; xw = k*xx"), {"xa": 1, "k": 2})
    >>> fitted(found, 900, 400).note, fitted(found, 260, 60).note
    ('', 'too little room for expressions and values')
    """
    for diagram, smallest, note in _shorter(whole_graph(found)):
        graph = scaled(diagram, width, height, smallest, note)
        if graph is not None:
            return graph
    return None


def scaled(
    diagram: Diagram, width: float, height: float, smallest: float, note: str = ""
) -> FittedGraph | None:
    """A diagram at the scale at which it fits; None if its text gets too small or meets other."""
    layout = slide_layout(diagram)
    if layout.labels.touching:
        return None
    graph = layout.layout
    room = (width - 2 * _MARGIN, height - 2 * _MARGIN)
    scale = min(room[0] / graph.width, room[1] / graph.height, _LARGEST_SCALE)
    return FittedGraph(diagram, layout, scale, note) if scale >= smallest else None


def paint(pen: Pen, graph: FittedGraph, middle: float, top: float) -> None:
    """Draw a graph, the middle of its upper border at a point of the slide."""
    inner = pen.part(middle - graph.size[0] / 2, top, *graph.size, scale=graph.scale)
    whole, margin = graph.layout.layout, _MARGIN / graph.scale
    inner.axes.set_xlim(-margin, whole.width + margin)
    inner.axes.set_ylim(whole.height + margin, -margin)
    paint_diagram(inner, graph.diagram, graph.layout)


def standing_alone(graph: FittedGraph) -> Figure:
    """A graph with its legend in a figure just large enough."""
    graph = replace(graph, scale=1.0)
    width, height = max(graph.size[0], _LEGEND_WIDTH), graph.size[1] + 10.0
    legend = Legend(roles_in(graph.diagram), width)
    figure, pen = sheet(width, height + legend.height)
    paint(pen, graph, width / 2, 0.0)
    legend.draw(pen, width / 2, height)
    return figure


def _shorter(diagram: Diagram) -> Iterator[tuple[Diagram, float, str]]:
    """A diagram, then with less and less in it; the smallest scale; what was left out."""
    usual, large = READABLE_SIZE / DETAIL_SIZE, READABLE_SIZE / LABEL_SIZE
    if is_readable(diagram):
        nodes, edges = diagram.nodes, diagram.edges
        values = tuple(_said(node, value=True) for node in nodes)
        named = tuple(map(_named, edges))
        steps = (
            (nodes, edges, usual, ""),
            (nodes, named, usual, "values on edges"),
            (values, edges, usual, "expressions"),
            (values, named, usual, "expressions and for values on edges"),
            (values, _bare(edges), usual, "expressions and for what stands on edges"),
            (_silent(nodes), _bare(edges), large, "expressions and values"),
        )
        before = None
        for said, written, smallest, missing in steps:
            if (said, written) != before:
                note = f"too little room for {missing}" if missing else ""
                yield Diagram(said, written), smallest, note
            before = (said, written)
    summary = summarize(diagram, 0)
    (note,) = summary.notes
    yield replace(summary, notes=()), usual, note
    yield Diagram(_silent(summary.nodes), _bare(summary.edges)), large, note.partition(";")[0]


def _said(node: Node, *, value: bool) -> Node:
    """Of what is said the value, which comes last and may have several lines, or what is before."""
    shown = [k for k, text in enumerate(node.detail) if text.startswith(("= ", "≈ "))]
    begin = min(shown, default=len(node.detail))
    return replace(node, detail=node.detail[begin:] if value else node.detail[:begin])


def _silent(nodes: Iterable[Node]) -> tuple[Node, ...]:
    return tuple(replace(node, detail=()) for node in nodes)


def _named(edge: Edge) -> Edge:
    """The parameters on an edge without their values."""
    names = (part.partition("=")[0] for part in edge.label.split(", "))
    return replace(edge, label=", ".join(names))


def _bare(edges: Iterable[Edge]) -> tuple[Edge, ...]:
    return tuple(replace(edge, label="") for edge in edges)
