"""Where vertices and edges go: a layered layout from inputs (left) to outputs (right).

The layers, the order inside them, the coordinates and the routes of long edges around other
vertices come from graphlay, a deterministic layout engine that knows the size of every box and
needs no Graphviz binary. This module states what is asked of it and turns its answer (pixels, y
downwards) into points with y upwards. Lengths are in points.

Source: Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system
structures", IEEE Trans. SMC 11 (1981); https://github.com/aarkue/graphlay
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from cgprimer.pictures.diagram import Diagram
from cgprimer.pictures.theme import SLIDE_ASPECT

Point: TypeAlias = tuple[float, float]
Size: TypeAlias = tuple[float, float]

CLEARANCE = 8.0  # points that an edge keeps off the vertices that it passes
_WIDEST_GAP = 320.0
_SIDES = ("width", "height")
_WRAP_BEYOND = 3.0  # width over height from which a layout is folded into rows to fit a slide
_WRAP_LAYERS = 8
_MOST_ROWS = 12


@dataclass(frozen=True, slots=True)
class Box:
    """An upright rectangle by its centre and size, in points."""

    x: float
    y: float
    width: float
    height: float

    def overlaps(self, other: Box, gap: float = 0.0) -> bool:
        """Tell whether the two rectangles come closer than `gap` points.

        >>> left = Box(0, 0, 10, 10)
        >>> left.overlaps(Box(10.5, 0, 10, 10)), left.overlaps(Box(5, 5, 9, 9))
        (False, True)
        """
        across = abs(self.x - other.x) * 2 < self.width + other.width + 2 * gap
        return across and abs(self.y - other.y) * 2 < self.height + other.height + 2 * gap

    def contains(self, point: Point) -> bool:
        """Tell whether `point` lies strictly inside."""
        x, y = point
        return abs(x - self.x) * 2 < self.width and abs(y - self.y) * 2 < self.height


@dataclass(frozen=True, slots=True)
class Gaps:
    """The room that a layout leaves, in points.

    Attributes:
        layer: between the layers, `CLEARANCE` off the vertices.
        node: between the vertices of a layer, `CLEARANCE` off them.
        label: on either side of a label along its edge: a piece of line and an arrow head.
        spread: times the distance between edges that run side by side.
        square: edges are level and upright, and a layout of many layers may be folded into rows;
            otherwise edges go straight to their vertices, and only a very long layout is folded.
    """

    layer: float = 36.0
    node: float = 14.0
    label: float = 30.0
    spread: float = 1.0
    square: bool = False

    def times(self, stretch: float) -> Gaps:
        """Wider gaps between layers and vertices, and around labels.

        >>> Gaps(layer=20, node=10).times(1.5).layer
        30.0
        """
        layer, node, label = (gap * stretch for gap in (self.layer, self.node, self.label))
        return replace(self, layer=layer, node=node, label=label)


COMFORTABLE = Gaps()


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a diagram; all coordinates lie in (0..width, 0..height).

    `boxes` has one box per node key, `routes` one polyline per edge in the diagram's order,
    which begins and ends `CLEARANCE` points off the boxes: whoever draws leads it on to a shape.
    """

    boxes: Mapping[str, Box]
    routes: tuple[tuple[Point, ...], ...]
    width: float
    height: float


def place(
    diagram: Diagram,
    sizes: Mapping[str, Size],
    label_sizes: Sequence[Size | None],
    *,
    ellipses: AbstractSet[str] = frozenset(),
    gaps: Gaps = COMFORTABLE,
) -> Layout:
    """Lay `diagram` out, the same way at every run.

    `sizes` gives each node's width and height; `label_sizes` one entry per edge, None where it
    has no label; nodes in `ellipses` are met by their edges on an ellipse instead of a box.
    A layout that is
    much taller than a slide gets wider gaps between its layers; one that is much longer is
    folded into rows, each read from left to right.

    >>> from cgprimer.pictures.diagram import Edge, Node
    >>> nodes = (Node("a", "a", "input"), Node("b", "b", "output"))
    >>> found = place(Diagram(nodes, (Edge("a", "b"),)), {"a": (40, 20), "b": (40, 20)}, [None])
    >>> found.boxes["a"].x < found.boxes["b"].x
    True
    """
    if not diagram.nodes:
        return Layout({}, (), 0.0, 0.0)
    request = _request(diagram, sizes, label_sizes, ellipses)
    answer = _solve(request, gaps)
    layers = int(answer["layer_count"])
    if gaps.square and layers >= _WRAP_LAYERS:
        answer = _solve(request, gaps, fold=True)
    width, height = _extent(answer)
    network = _is_network(diagram, answer)
    if layers > 1 and width < SLIDE_ASPECT * height:
        # A fan of many edges in a narrow gap cannot be followed by eye: use the slide's width.
        wider = gaps.layer + (SLIDE_ASPECT * height - width) / (layers - 1)
        widest = _WIDEST_GAP * max(1.0, gaps.layer / COMFORTABLE.layer)
        roomy = replace(gaps, layer=min(wider, widest))
        answer = _solve(request, roomy, symmetric=network)
    elif not gaps.square and layers >= _WRAP_LAYERS and width > _WRAP_BEYOND * height:
        folded = _solve(request, replace(gaps, square=True), fold=True)
        if _extent(folded)[0] < 0.8 * width:
            answer = folded
    found = _layout(diagram, answer)
    return _centred(diagram, found) if network else found


def _request(
    diagram: Diagram,
    sizes: Mapping[str, Size],
    label_sizes: Sequence[Size | None],
    ellipses: AbstractSet[str],
) -> Any:
    from graphlay import Graph

    graph = Graph()
    # graphlay takes vertices that could stand in any order by the alphabet: x10 before x2.
    names = {node.key: f"{number:06}" for number, node in enumerate(diagram.nodes)}
    for node in diagram.nodes:
        # Larger than they are, so that no line touches a vertex that is not its own.
        width, height = (side + 2 * CLEARANCE for side in sizes[node.key])
        shape = "ellipse" if node.key in ellipses else "box"
        graph.node(names[node.key], width=width, height=height, shape=shape)
    for edge, size in zip(diagram.edges, label_sizes, strict=True):
        fields: dict[str, Any] = (
            {} if size is None else {"label_size": {"width": size[0], "height": size[1]}}
        )
        graph.edge(names[edge.tail], names[edge.head], **fields)
    return graph


def _solve(
    request: Any, gaps: Gaps, *, symmetric: bool = False, fold: bool = False
) -> dict[str, Any]:
    from graphlay import layout

    options = {
        "direction": "leftright",
        # graphlay folds a layout into rows only with orthogonal routes.
        "routing": {
            "style": "orthogonal" if gaps.square else "diagonal",
            "port_sides": "facing_only",
        },
        "spacing": {
            "layer_gap": gaps.layer,
            "node_gap": gaps.node,
            "dummy_gap": gaps.spread * (0.8 * gaps.node + CLEARANCE / 2),
            "edge_label_margin": gaps.label,
        },
        # A network looks best around a middle line, other graphs along a straight main path.
        "coords": {"branch_style": "symmetric" if symmetric else "straight_main"},
        "labels": {"reservation": "always", "placement": "candidates"},
        "wrap": {"viewport_aspect": SLIDE_ASPECT if fold else 0.0},
        "tuning": {"wrap": {"max_rows": _MOST_ROWS}},
    }
    return layout(request, preset="layered", options=options).to_dict()


def _bounds(answer: Mapping[str, Any]) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom of boxes and routes.

    graphlay's own bounds also hold its places for labels, which `labels.py` chooses anew.
    """
    xs = [point["x"] for edge in answer["edges"] for point in edge["points"]]
    ys = [point["y"] for edge in answer["edges"] for point in edge["points"]]
    for node in answer["nodes"]:
        half_width, half_height = node["size"]["width"] / 2, node["size"]["height"] / 2
        xs += [node["center"]["x"] - half_width, node["center"]["x"] + half_width]
        ys += [node["center"]["y"] - half_height, node["center"]["y"] + half_height]
    return (min(xs), min(ys), max(xs), max(ys))


def _extent(answer: Mapping[str, Any]) -> Size:
    left, top, right, bottom = _bounds(answer)
    return (right - left, bottom - top)


def _layout(diagram: Diagram, answer: Mapping[str, Any]) -> Layout:
    left, _, _, bottom = _bounds(answer)

    def point(raw: Mapping[str, float]) -> Point:
        return (raw["x"] - left, bottom - raw["y"])

    boxes = {
        node.key: Box(*point(raw["center"]), *(raw["size"][s] - 2 * CLEARANCE for s in _SIDES))
        for node, raw in zip(diagram.nodes, answer["nodes"], strict=True)
    }
    routes = tuple(tuple(point(raw) for raw in edge["points"]) for edge in answer["edges"])
    return Layout(boxes, routes, *_extent(answer))


def _is_network(diagram: Diagram, answer: Mapping[str, Any]) -> bool:
    """Tell whether every layer is joined to the whole next layer, and to no other."""
    layer = {n.key: raw["rank"] for n, raw in zip(diagram.nodes, answer["nodes"], strict=True)}
    members = Counter(layer.values())
    pairs = {(edge.tail, edge.head) for edge in diagram.edges}
    if None in members:  # a vertex without edges belongs to no layer
        return False
    full = sum(members[rank] * members[rank + 1] for rank in members)
    neighbours = all(layer[head] == layer[tail] + 1 for tail, head in pairs)
    return neighbours and len(pairs) == full and max(members.values()) > 1


def _centred(diagram: Diagram, layout: Layout) -> Layout:
    """Move every layer of a network, edge ends included, to the same middle line."""
    columns: dict[float, list[Box]] = defaultdict(list)
    for box in layout.boxes.values():
        columns[box.x].append(box)
    shift: dict[float, float] = {}
    for x, boxes in columns.items():
        top = max(box.y + box.height / 2 for box in boxes)
        bottom = min(box.y - box.height / 2 for box in boxes)
        shift[x] = layout.height / 2 - (top + bottom) / 2
    if any(len(route) != 2 for route in layout.routes) or len(columns) == 1:
        return layout
    boxes_moved = {
        key: Box(box.x, box.y + shift[box.x], box.width, box.height)
        for key, box in layout.boxes.items()
    }
    routes = tuple(
        (
            (start[0], start[1] + shift[layout.boxes[edge.tail].x]),
            (end[0], end[1] + shift[layout.boxes[edge.head].x]),
        )
        for edge, (start, end) in zip(diagram.edges, layout.routes, strict=True)
    )
    return Layout(boxes_moved, routes, layout.width, layout.height)
