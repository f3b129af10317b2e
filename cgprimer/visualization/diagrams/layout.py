"""Positions of vertices, edges and labels: layers from inputs to outputs.

A layout engine (`layout_engines.py`) computes the layers, their order, the coordinates and the
routes of long edges around other vertices. Labels are at the middle of their edges until
`edge_labels.py` moves them. Lengths are in points; y increases downwards.

Source: Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system
structures", IEEE Trans. SMC 11 (1981).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cgprimer.errors import UsageError
from cgprimer.visualization.diagrams.column_layout import lay_out_columns
from cgprimer.visualization.diagrams.geometry import (
    Box,
    Point,
    Size,
    bounding_box,
    compute_line_length,
    find_point_at,
    round_corners,
)
from cgprimer.visualization.diagrams.layout_engines import find_layout_engine
from cgprimer.visualization.diagrams.layout_requests import LayoutRequest
from cgprimer.visualization.diagrams.spine_layout import lay_out_spine
from cgprimer.visualization.diagrams.theme import Shape
from cgprimer.visualization.diagrams.vertex_order import equalize_sizes, find_natural_order
from cgprimer.visualization.diagrams.vertex_shapes import clip_to_outline

_CORNER = 36.0  # radius of the bends of edges
_MAX_CROSSED_LAYERS = 20_000  # total over all edges: 40,000 take ten seconds, and growth is steep


@dataclass(frozen=True, slots=True)
class Gaps:
    """The spacing of a layout, in points, and its style: straight, folded or along a path.

    Attributes:
        layer: gap between layers, in addition to `clear`.
        node: gap between the vertices of a layer, in addition to `clear`.
        label: gap on either side of a label along its edge, with room for an arrow head.
        square: True for horizontal and vertical edges; otherwise edges are straight.
        fold: width over height of layers folded into rows, which requires `square`; 0 for one row.
        clear: distance between an edge and other vertices.
        spine: True for a layout along the longest path.
    """

    layer: float = 36.0
    node: float = 14.0
    label: float = 30.0
    square: bool = False
    fold: float = 0.0
    clear: float = 8.0
    spine: bool = False


COMFORTABLE = Gaps()


@dataclass(frozen=True, slots=True)
class Layout:
    """The computed positions of all elements of a diagram, from (0, 0) to (width, height).

    Attributes:
        boxes: the box of each vertex.
        routes: the corners of each edge, from the outline of its tail to the outline of its head.
        lines: the routes with rounded corners.
        labels: the box of the label of each edge, before `edge_labels.py` moves it.
        layers: number of layers.
        width, height: size of the layout.
        frames: the frame of each part, from `part_frames.py`.
    """

    boxes: Mapping[str, Box]
    routes: tuple[tuple[Point, ...], ...]
    lines: tuple[tuple[Point, ...], ...]
    labels: tuple[Box | None, ...]
    layers: int
    width: float
    height: float
    frames: tuple[Box, ...] = ()


def lay_out(
    sizes: Mapping[str, Size],
    edges: Sequence[tuple[str, str]],
    label_sizes: Sequence[Size | None],
    *,
    shapes: Mapping[str, Shape] | None = None,
    gaps: Gaps = COMFORTABLE,
    down: bool = False,
) -> Layout:
    """Lay out a graph in layers with the current layout engine; equal graphs have equal layouts.

    Args:
        sizes: width and height of each vertex, in topological order.
        edges: pairs of tail and head.
        label_sizes: width and height of the label of each edge; None for an edge without a label.
        shapes: outlines of vertices, which edges meet; rectangles unless given.
        gaps: the gaps.
        down: True for a layout from top to bottom.

    >>> layout = lay_out({"a": (40, 20), "b": (40, 20)}, [("a", "b")], [(20, 10)])
    >>> layout.boxes["a"].x < layout.labels[0].x < layout.boxes["b"].x
    True
    """
    if not sizes:
        return Layout({}, (), (), (), 0, 0.0, 0.0)
    _check_size(sizes, edges)
    sizes = equalize_sizes(sizes, shapes or {}, edges)
    request = _build_request(sizes, edges, label_sizes, gaps, down)
    answer = find_layout_engine()(request)
    layer = dict(zip(sizes, answer.ranks, strict=True))
    network = not down and _is_network(layer, edges)
    if network:
        answer = find_layout_engine()(replace(request, symmetric=True))
    centers = zip(sizes, answer.centers, strict=True)
    boxes = {key: Box(*center, *sizes[key]) for key, center in centers}
    routes = [list(route) for route in answer.routes]
    if network and all(len(route) == 2 for route in routes):
        _center_layers(layer, boxes, edges, routes)
    outline = shapes or {}
    looks = {key: (sizes[key], outline.get(key)) for key in sizes}
    height = {key: box.x if down else box.y for key, box in boxes.items()}
    if slots := find_natural_order(layer, height, looks, edges):
        boxes = {key: boxes[slot] for key, slot in slots.items()}
        of_slot = dict(zip(edges, routes, strict=True))
        routes = [of_slot[slots[tail], slots[head]] for tail, head in edges]
    for (tail, head), route in zip(edges, routes, strict=True):
        route[0] = clip_to_outline(outline.get(tail, "rectangle"), boxes[tail], route[0], down=down)
        route[-1] = clip_to_outline(
            outline.get(head, "rectangle"), boxes[head], route[-1], down=down
        )
    return _build_layout(boxes, routes, label_sizes, len(set(layer.values()) - {None}))


def lay_out_straight(
    sizes: Mapping[str, Size],
    edges: Sequence[tuple[str, str]],
    label_sizes: Sequence[Size | None],
    *,
    shapes: Mapping[str, Shape] | None = None,
    gaps: Gaps = COMFORTABLE,
) -> Layout | None:
    """Lay out a network in columns, a chain in rows, or a graph along its longest path.

    With ``gaps.fold`` the graph must be a chain, with ``gaps.spine`` it is laid out along its
    longest path. Arguments are those of :func:`lay_out`. Returns None for a graph of another kind.

    >>> sizes = dict.fromkeys("abcd", (40, 20))
    >>> edges = [("a", "c"), ("a", "d"), ("b", "c"), ("b", "d")]
    >>> layout = lay_out_straight(sizes, edges, [None] * 4)
    >>> layout.boxes["a"].y == layout.boxes["c"].y, {len(route) for route in layout.routes}
    (True, {2})
    """
    outline = shapes or {}
    layer_gap, node_gap = gaps.layer + 2 * gaps.clear, gaps.node + gaps.clear
    if gaps.spine:
        columns = lay_out_spine(
            sizes,
            edges,
            label_sizes,
            outline,
            layer_gap=layer_gap,
            node_gap=node_gap,
            label_gap=gaps.label,
        )
    else:
        columns = lay_out_columns(
            sizes,
            edges,
            label_sizes,
            outline,
            layer_gap=layer_gap,
            node_gap=node_gap,
            label_gap=gaps.label,
            aspect=gaps.fold,
        )
    if columns is None:
        return None
    return _build_layout(columns.boxes, columns.routes, label_sizes, columns.layers)


def _build_layout(
    boxes: Mapping[str, Box],
    routes: Sequence[Sequence[Point]],
    label_sizes: Sequence[Size | None],
    layers: int,
) -> Layout:
    """Build a layout whose top left corner is (0, 0), with each label at the middle of its edge."""
    lines = [round_corners(route, _CORNER) for route in routes]
    # Engines reserve room for labels, but place some of them far from their edges.
    both = zip(lines, label_sizes, strict=True)
    labels = [
        size and Box(*find_point_at(line, compute_line_length(line) / 2), *size)
        for line, size in both
    ]
    shown = [*boxes.values(), *filter(None, labels)]
    bounds = bounding_box(shown, [point for line in lines for point in line])
    left, top = bounds.x - bounds.width / 2, bounds.y - bounds.height / 2

    def translate_line(line: Sequence[Point]) -> tuple[Point, ...]:
        """Translate a polyline so that the top left corner of the layout is at (0, 0)."""
        return tuple((x - left, y - top) for x, y in line)

    return Layout(
        {key: box.translate(-left, -top) for key, box in boxes.items()},
        tuple(map(translate_line, routes)),
        tuple(map(translate_line, lines)),
        tuple(box and box.translate(-left, -top) for box in labels),
        layers,
        bounds.width,
        bounds.height,
    )


def _check_size(sizes: Mapping[str, Size], edges: Sequence[tuple[str, str]]) -> None:
    """Raise UsageError if the layout of a graph would take minutes."""
    before = defaultdict(list)
    for tail, head in edges:
        before[head].append(tail)
    rank: dict[str, int] = {}
    for key in sizes:  # in topological order
        rank[key] = max((rank.get(tail, 0) + 1 for tail in before[key]), default=0)
    crossed = sum(max(rank[head] - rank[tail] - 1, 0) for tail, head in edges)
    if crossed > _MAX_CROSSED_LAYERS:
        raise UsageError(
            f"the edges of a layout must cross at most {_MAX_CROSSED_LAYERS:,} layers in total, but"
            f" the edges of this graph of {len(sizes):,} vertices cross {crossed:,}",
            hint="draw the summary (omit --all), or select part of the graph with --of NAME",
        )


def _build_request(
    sizes: Mapping[str, Size],
    edges: Sequence[tuple[str, str]],
    label_sizes: Sequence[Size | None],
    gaps: Gaps,
    down: bool,
) -> LayoutRequest:
    """Build the request of a layout engine for vertices, edges and label sizes."""
    numbers = {key: number for number, key in enumerate(sizes)}
    room = 2 * gaps.clear  # boxes are enlarged so that edges keep a distance from other vertices
    return LayoutRequest(
        tuple((width + room, height + room) for width, height in sizes.values()),
        tuple((numbers[tail], numbers[head]) for tail, head in edges),
        tuple(label_sizes),
        layer_gap=gaps.layer,
        node_gap=gaps.node,
        edge_gap=0.8 * gaps.node + gaps.clear / 2,
        label_gap=gaps.label,
        down=down,
        square=gaps.square,
        fold=gaps.fold,
    )


def _is_network(layer: Mapping[str, int | None], edges: Sequence[tuple[str, str]]) -> bool:
    """Return whether each layer is fully connected to the next layer, and to no other layer."""
    members = Counter(layer.values())
    pairs = set(edges)
    if None in members:  # a vertex without edges belongs to no layer
        return False
    full = sum(members[rank] * members[rank + 1] for rank in members if rank is not None)
    neighbors = all(layer[head] == (layer[tail] or 0) + 1 for tail, head in pairs)
    return neighbors and len(pairs) == full and max(members.values()) > 1


def _center_layers(
    layer: Mapping[str, int | None],
    boxes: dict[str, Box],
    edges: Sequence[tuple[str, str]],
    routes: Sequence[list[Point]],
) -> None:
    """Center all layers of a network, with their edges, on a common horizontal line."""
    columns: dict[int | None, list[Box]] = defaultdict(list)
    for key, box in boxes.items():
        columns[layer[key]].append(box)
    middle = {key: bounding_box(columns[rank]).y for key, rank in layer.items()}
    for (tail, head), route in zip(edges, routes, strict=True):
        (x, y), (last_x, last_y) = route
        route[:] = [(x, y - middle[tail]), (last_x, last_y - middle[head])]
    for key, up in middle.items():
        boxes[key] = boxes[key].translate(0.0, -up)
