"""The graph of a comparison, arranged so that it can be read in the room that there is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cgprimer.analysis.comparison import Comparison
from cgprimer.errors import plural
from cgprimer.pictures.arranging import Picture, arrange
from cgprimer.pictures.diagram import Diagram, Edge, Node
from cgprimer.pictures.diagrams import graph_diagram
from cgprimer.pictures.graph_picture import paint
from cgprimer.pictures.legend import ROW_HEIGHT, draw_row, legend_rows
from cgprimer.pictures.summary import is_readable, summarised
from cgprimer.pictures.theme import DETAIL_SIZE, LABEL_SIZE, READABLE_SIZE, roles_in, theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LARGEST_SCALE = 1.2
_MARGIN = 3.0
_LEGEND_WIDTH = 600.0
_WIDEST = 1250.0  # on a page, whose graph shrinks to the width of the window


@dataclass(frozen=True, slots=True)
class Panel:
    """A graph that fits: what is drawn, where, how large, and what had to be left out.

    Attributes:
        diagram: what is drawn; without a vertex where nothing could be.
        picture: its arrangement; None where nothing could be drawn.
        scale: points per unit of the arrangement.
        note: what was left out; empty where nothing was.
    """

    diagram: Diagram
    picture: Picture | None
    scale: float
    note: str

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in points."""
        if self.picture is None:
            return (0.0, 0.0)
        frame = self.picture.frame
        return (
            self.scale * frame.width + 2 * _MARGIN,
            self.scale * frame.height + 2 * _MARGIN,
        )


def whole_graph(found: Comparison) -> Diagram:
    """Every vertex of the graph, with the values that the comparison knows.

    >>> from cgprimer.core.graph import parse
    >>> from cgprimer.analysis.comparison import compare
    >>> found = compare(parse("xw = k*xa; xv = m*xa"), {"xa": 1, "k": 2}, of="xw")
    >>> [(node.label, node.detail) for node in whole_graph(found).nodes]
    [('xa', ('= 1',)), ('xw', ('k*xa', '= 2')), ('xv', ('m*xa',))]
    """
    diagram = graph_diagram(found.graph, at=found.at, everything=True)
    needed = _ancestors(diagram, found.of)
    nodes = tuple(n if n.key in needed else _without_value(n) for n in diagram.nodes)
    # A parameter on the edge to a vertex that was not computed may have no value of its own.
    edges = tuple(e if e.head in needed else replace(e, label=_names(e)) for e in diagram.edges)
    return Diagram(nodes, edges)


def fitted(found: Comparison, width: float, height: float) -> Panel:
    """The graph in so much room, with as much said about it as leaves its text readable.

    Values on edges go first, then expressions, then what stands on edges, then all values; a
    graph that is still too large is summarised by layers.

    >>> from cgprimer.core.graph import parse
    >>> from cgprimer.analysis.comparison import compare
    >>> found = compare(parse("xx = xa^2; xw = k*xx"), {"xa": 1, "k": 2})
    >>> fitted(found, 900, 400).note, fitted(found, 260, 60).note
    ('', 'too little room for expressions and values')
    """
    for diagram, smallest, note in _shorter(whole_graph(found)):
        panel = scaled(diagram, width, height, smallest, note)
        if panel is not None:
            return panel
    counts = plural(len(found.graph.variables), "variable")
    return Panel(
        Diagram((), ()), None, 1.0, f"a graph of {counts}, too large for a picture on a slide"
    )


def scaled(
    diagram: Diagram, width: float, height: float, smallest: float, note: str = ""
) -> Panel | None:
    """A diagram at the scale at which it fits; None if its text gets too small or meets other."""
    picture = arrange(diagram)
    if picture.conflicts:
        return None
    frame = picture.frame
    room = (width - 2 * _MARGIN, height - 2 * _MARGIN)
    scale = min(room[0] / frame.width, room[1] / frame.height, _LARGEST_SCALE)
    return Panel(diagram, picture, scale, note) if scale >= smallest else None


def paint_panel(
    figure: Figure, panel: Panel, corner: tuple[float, float], *, dark: bool = False
) -> Axes | None:
    """Draw a panel into a figure, its upper left corner at points from that of the figure."""
    if panel.picture is None:
        return None
    whole = [72 * float(side) for side in figure.get_size_inches()]
    width, height = panel.size
    left, bottom = corner[0] / whole[0], 1 - (corner[1] + height) / whole[1]
    axes = figure.add_axes((left, bottom, width / whole[0], height / whole[1]))
    axes.set_axis_off()
    frame = panel.picture.frame
    across, along = width / panel.scale / 2, height / panel.scale / 2
    axes.set_xlim(frame.x - across, frame.x + across)
    axes.set_ylim(frame.y - along, frame.y + along)
    paint(axes, panel.diagram, panel.picture, dark=dark, scale=panel.scale)
    return axes


def standing_alone(found: Comparison, *, dark: bool = False) -> tuple[Figure, str] | None:
    """The graph with its legend in a figure just large enough, and a note; None without a graph.

    >>> from cgprimer.core.graph import parse
    >>> from cgprimer.analysis.comparison import compare
    >>> figure, note = standing_alone(compare(parse("xw = k*xa"), {"xa": 1, "k": 2}))
    >>> float(figure.get_size_inches()[0]) < 9, note
    (True, '')
    """
    from matplotlib.figure import Figure

    panel = fitted(found, _WIDEST, math.inf)
    if panel.picture is None:
        return None
    panel = replace(panel, scale=1.0)
    diagram = panel.diagram
    look = theme(dark)
    width, height = panel.size
    width = max(width, _LEGEND_WIDTH)
    rows = legend_rows(look, roles_in(diagram, look), width)
    below = len(rows) * ROW_HEIGHT + 10.0
    figure = Figure(figsize=(width / 72, (height + below) / 72), facecolor=look.background, dpi=72)
    paint_panel(figure, panel, ((width - panel.size[0]) / 2, 0.0), dark=dark)
    axes = figure.add_axes((0.0, 0.0, 1.0, below / (height + below)))
    axes.set_axis_off()
    axes.set_xlim(0, width)
    axes.set_ylim(below, 0)
    for count, row in enumerate(rows):
        draw_row(axes, row, (width / 2, 10.0 + (count + 0.5) * ROW_HEIGHT), look)
    return figure, panel.note


def _summary(diagram: Diagram) -> tuple[Diagram, str]:
    note = (
        f"{plural(len(diagram.nodes), 'vertex', 'vertices')} and"
        f" {plural(len(diagram.edges), 'edge')}, summarised by layers: numbers on edges count them"
    )
    return replace(summarised(diagram, 0), notes=()), note


def _shorter(diagram: Diagram) -> Iterator[tuple[Diagram, float, str]]:
    """A diagram, then with less and less in it; the smallest scale; what was left out."""
    usual, large = READABLE_SIZE / DETAIL_SIZE, READABLE_SIZE / LABEL_SIZE
    if is_readable(diagram):
        yield diagram, usual, ""
        named = tuple(replace(e, label=_names(e)) for e in diagram.edges)
        if named != diagram.edges:
            yield replace(diagram, edges=named), usual, "too little room for values on edges"
        values = tuple(
            replace(n, detail=tuple(d for d in n.detail if d.startswith("= ")))
            for n in diagram.nodes
        )
        yield Diagram(values, diagram.edges), usual, "too little room for expressions"
        note = "too little room for expressions and for values on edges"
        yield Diagram(values, named), usual, note
        plain = tuple(replace(e, label="") for e in diagram.edges)
        note = "too little room for expressions and for what stands on edges"
        yield Diagram(values, plain), usual, note
        bare = tuple(replace(n, detail=()) for n in diagram.nodes)
        yield Diagram(bare, plain), large, "too little room for expressions and values"
    summary, note = _summary(diagram)
    yield summary, usual, note
    names = tuple(replace(n, detail=()) for n in summary.nodes)
    lines = tuple(replace(e, label="") for e in summary.edges)
    yield Diagram(names, lines), large, note.partition(":")[0]


def _names(edge: Edge) -> str:
    """The parameters on an edge without their values."""
    return ", ".join(part.partition("=")[0] for part in edge.label.split(", "))


def _without_value(node: Node) -> Node:
    return replace(node, detail=tuple(d for d in node.detail if not d.startswith("= ")))


def _ancestors(diagram: Diagram, of: str) -> set[str]:
    tails: dict[str, list[str]] = {}
    for edge in diagram.edges:
        tails.setdefault(edge.head, []).append(edge.tail)
    waiting, seen = [of], {of}
    while waiting:
        for tail in tails.get(waiting.pop(), ()):
            if tail not in seen:
                seen.add(tail)
                waiting.append(tail)
    return seen
