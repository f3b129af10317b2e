"""Where vertices, edges and their labels go: layers from inputs to outputs.

The layers, the order inside them, the coordinates and the routes of long edges around other
vertices come from graphlay, a deterministic layout engine that knows the size of every box and
needs no Graphviz binary; labels stand on the middles of their edges until `edge_labels.py` moves
them. This module states what is asked of it. Lengths are in points; y goes downwards.

Source: Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system
structures", IEEE Trans. SMC 11 (1981); https://github.com/aarkue/graphlay
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cgprimer.errors import UsageError
from cgprimer.visualization.diagrams.column_layout import lay_out_columns
from cgprimer.visualization.diagrams.geometry import (
    Box,
    Point,
    Size,
    bounding_box,
    line_length,
    point_at,
    round_corners,
)
from cgprimer.visualization.diagrams.spine_layout import lay_out_spine
from cgprimer.visualization.diagrams.theme import Shape
from cgprimer.visualization.diagrams.vertex_order import equalize_sizes, natural_order
from cgprimer.visualization.diagrams.vertex_shapes import clip_to_outline

_CORNER = 36.0  # rounding of the bends of edges
_MOST_ROWS = 12
_MOST_PASSED = 20_000  # layers that edges pass, in all: 40,000 take ten seconds, and grow steeply


@dataclass(frozen=True, slots=True)
class Gaps:
    """The room that a layout leaves, in points."""

    layer: float = 36.0  # between the layers, `clear` off the vertices
    node: float = 14.0  # between the vertices of a layer, `clear` off them
    label: float = 30.0  # on either side of a label along its edge: some line and an arrow head
    square: bool = False  # edges are level and upright; otherwise they go straight
    fold: float = 0.0  # width over height of many layers folded into rows: needs `square`; 0: none
    clear: float = 8.0  # what an edge keeps off the vertices that it passes
    spine: bool = False  # along the longest path


COMFORTABLE = Gaps()


@dataclass(frozen=True, slots=True)
class Layout:
    """Everything but texts and ink; all coordinates lie in (0..width, 0..height)."""

    boxes: Mapping[str, Box]  # one per vertex
    routes: tuple[tuple[Point, ...], ...]  # one per edge, from its tail's outline to its head's
    lines: tuple[tuple[Point, ...], ...]  # the same with rounded corners
    labels: tuple[Box | None, ...]  # one per edge; `edge_labels.py` finds better places
    layers: int
    width: float
    height: float
    frames: tuple[Box, ...] = ()  # one per part; `part_frames.py` adds them


def lay_out(
    sizes: Mapping[str, Size],
    edges: Sequence[tuple[str, str]],
    label_sizes: Sequence[Size | None],
    *,
    shapes: Mapping[str, Shape] | None = None,
    gaps: Gaps = COMFORTABLE,
    down: bool = False,
) -> Layout:
    """Lay a graph out, the same way at every run; `down`: from top to bottom.

    Vertices come after those that lead to them, `label_sizes` has None for an edge without a label,
    and `shapes` are the outlines that edges meet: rectangles unless given.

    >>> found = lay_out({"a": (40, 20), "b": (40, 20)}, [("a", "b")], [(20, 10)])
    >>> found.boxes["a"].x < found.labels[0].x < found.boxes["b"].x
    True
    """
    if not sizes:
        return Layout({}, (), (), (), 0, 0.0, 0.0)
    _check_size(sizes, edges)
    sizes = equalize_sizes(sizes, shapes or {}, edges)
    request = _build_request(sizes, edges, label_sizes, gaps.clear)
    answer = _run_graphlay(request, gaps, down, "straight_main")
    layer = {key: raw["rank"] for key, raw in zip(sizes, answer["nodes"], strict=True)}
    network = not down and _is_network(layer, edges)
    if network:
        answer = _run_graphlay(request, gaps, down, "symmetric")
    places = zip(sizes, (node["center"] for node in answer["nodes"]), strict=True)
    boxes = {key: Box(place["x"], place["y"], *sizes[key]) for key, place in places}
    routes = [[(p["x"], p["y"]) for p in raw["points"]] for raw in answer["edges"]]
    if network and all(len(route) == 2 for route in routes):
        _center_layers(layer, boxes, edges, routes)
    outline = shapes or {}
    looks = {key: (sizes[key], outline.get(key)) for key in sizes}
    height = {key: box.x if down else box.y for key, box in boxes.items()}
    if slots := natural_order(layer, height, looks, edges):
        boxes = {key: boxes[slot] for key, slot in slots.items()}
        of_slot = dict(zip(edges, routes, strict=True))
        routes = [of_slot[slots[tail], slots[head]] for tail, head in edges]
    for (tail, head), route in zip(edges, routes, strict=True):
        route[0] = clip_to_outline(outline.get(tail, "rectangle"), boxes[tail], route[0], down=down)
        route[-1] = clip_to_outline(
            outline.get(head, "rectangle"), boxes[head], route[-1], down=down
        )
    return _build_layout(boxes, routes, label_sizes, int(answer["layer_count"]))


def lay_out_straight(
    sizes: Mapping[str, Size],
    edges: Sequence[tuple[str, str]],
    label_sizes: Sequence[Size | None],
    *,
    shapes: Mapping[str, Shape] | None = None,
    gaps: Gaps = COMFORTABLE,
) -> Layout | None:
    """Lay out a network in columns, a chain over rows, or a graph along its longest path.

    With ``gaps.fold`` it is a chain over rows, with ``gaps.spine`` a graph along a path.

    Returns None for a graph of another kind; arguments are those of :func:`lay_out`.

    >>> sizes = dict.fromkeys("abcd", (40, 20))
    >>> edges = [("a", "c"), ("a", "d"), ("b", "c"), ("b", "d")]
    >>> found = lay_out_straight(sizes, edges, [None] * 4)
    >>> found.boxes["a"].y == found.boxes["c"].y, {len(route) for route in found.routes}
    (True, {2})
    """
    outline = shapes or {}
    layer_gap, node_gap = gaps.layer + 2 * gaps.clear, gaps.node + gaps.clear
    if gaps.spine:
        found = lay_out_spine(
            sizes,
            edges,
            label_sizes,
            outline,
            layer_gap=layer_gap,
            node_gap=node_gap,
            label_gap=gaps.label,
        )
    else:
        found = lay_out_columns(
            sizes,
            edges,
            label_sizes,
            outline,
            layer_gap=layer_gap,
            node_gap=node_gap,
            label_gap=gaps.label,
            aspect=gaps.fold,
        )
    if found is None:
        return None
    return _build_layout(found.boxes, found.routes, label_sizes, found.layers)


def _build_layout(
    boxes: Mapping[str, Box],
    routes: Sequence[Sequence[Point]],
    label_sizes: Sequence[Size | None],
    layers: int,
) -> Layout:
    """Return a layout whose left and upper ends are at 0, with labels on the middles of lines."""
    lines = [round_corners(route, _CORNER) for route in routes]
    # graphlay makes room for labels, but puts some of them far from their edges.
    both = zip(lines, label_sizes, strict=True)
    labels = [size and Box(*point_at(line, line_length(line) / 2), *size) for line, size in both]
    shown = [*boxes.values(), *filter(None, labels)]
    whole = bounding_box(shown, [point for line in lines for point in line])
    left, top = whole.x - whole.width / 2, whole.y - whole.height / 2

    def moved(line: Sequence[Point]) -> tuple[Point, ...]:
        return tuple((x - left, y - top) for x, y in line)

    return Layout(
        {key: box.translate(-left, -top) for key, box in boxes.items()},
        tuple(map(moved, routes)),
        tuple(map(moved, lines)),
        tuple(box and box.translate(-left, -top) for box in labels),
        layers,
        whole.width,
        whole.height,
    )


def _check_size(sizes: Mapping[str, Size], edges: Sequence[tuple[str, str]]) -> None:
    """Refuse at once what would be laid out for minutes, and fill no screen."""
    before = defaultdict(list)
    for tail, head in edges:
        before[head].append(tail)
    rank: dict[str, int] = {}
    for key in sizes:  # those that lead to it come first
        rank[key] = max((rank.get(tail, 0) + 1 for tail in before[key]), default=0)
    passed = sum(max(rank[head] - rank[tail] - 1, 0) for tail, head in edges)
    if passed > _MOST_PASSED:
        raise UsageError(
            f"the edges of {len(sizes):,} vertices pass {passed:,} layers, more than the"
            f" {_MOST_PASSED:,} that can be laid out",
            hint="draw without --all summarises a large graph; or show a part of it: --of NAME",
        )


def _build_request(
    sizes: Mapping[str, Size],
    edges: Sequence[tuple[str, str]],
    label_sizes: Sequence[Size | None],
    clear: float,
) -> Any:
    try:
        from graphlay import Graph
    except ImportError:
        raise UsageError(
            "graphs are laid out by graphlay, which is not installed",
            hint="pip install graphlay: it has wheels for Linux (x86_64, aarch64), macOS and"
            " Windows (x86_64), elsewhere it is built by Rust; -o graph.dot and .mmd need none",
        ) from None
    graph = Graph()
    # graphlay takes vertices that could stand in any order by the alphabet: x10 before x2.
    names = {key: f"{number:06}" for number, key in enumerate(sizes)}
    for key, (width, height) in sizes.items():
        # Larger than they are, so that no line touches a vertex that is not its own.
        graph.node(names[key], width=width + 2 * clear, height=height + 2 * clear)
    for (tail, head), size in zip(edges, label_sizes, strict=True):
        label: Any = {"label_size": {"width": size[0], "height": size[1]}} if size else {}
        graph.edge(names[tail], names[head], **label)
    return graph


def _run_graphlay(request: Any, gaps: Gaps, down: bool, branches: str) -> dict[str, Any]:
    from graphlay import layout

    # graphlay folds a layout into rows only with orthogonal routes.
    style = "orthogonal" if gaps.square else "diagonal"
    options = {
        "direction": "topbottom" if down else "leftright",
        "routing": {"style": style, "port_sides": "facing_only"},
        "spacing": {
            "layer_gap": gaps.layer,
            "node_gap": gaps.node,
            "dummy_gap": 0.8 * gaps.node + gaps.clear / 2,
            "edge_label_margin": gaps.label,
        },
        # A network looks best around a middle line, other graphs along a straight main path.
        "coords": {"branch_style": branches},
        "labels": {"reservation": "always"},
        "wrap": {"viewport_aspect": gaps.fold},
        "tuning": {"wrap": {"max_rows": _MOST_ROWS}, "routing": {"diagonal_clear": 0.0}},
    }
    return layout(request, preset="layered", options=options).to_dict()


def _is_network(layer: Mapping[str, int | None], edges: Sequence[tuple[str, str]]) -> bool:
    """Tell whether every layer is joined to the whole next layer, and to no other."""
    members = Counter(layer.values())
    pairs = set(edges)
    if None in members:  # a vertex without edges belongs to no layer
        return False
    full = sum(members[rank] * members[rank + 1] for rank in members if rank is not None)
    neighbours = all(layer[head] == (layer[tail] or 0) + 1 for tail, head in pairs)
    return neighbours and len(pairs) == full and max(members.values()) > 1


def _center_layers(
    layer: Mapping[str, int | None],
    boxes: dict[str, Box],
    edges: Sequence[tuple[str, str]],
    routes: Sequence[list[Point]],
) -> None:
    """Move every layer of a network, with its edges, to one middle line."""
    columns: dict[int | None, list[Box]] = defaultdict(list)
    for key, box in boxes.items():
        columns[layer[key]].append(box)
    middle = {key: bounding_box(columns[rank]).y for key, rank in layer.items()}
    for (tail, head), route in zip(edges, routes, strict=True):
        (x, y), (last_x, last_y) = route
        route[:] = [(x, y - middle[tail]), (last_x, last_y - middle[head])]
    for key, up in middle.items():
        boxes[key] = boxes[key].translate(0.0, -up)
