"""A layout along the longest path: horizontal edges, arcs over skipped vertices, operands below.

It requires that the longest path contains every computed vertex, and that each other vertex (a
parameter or an input) has one user. Lengths are in points; y increases downwards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

from cgprimer.visualization.diagrams.column_layout import ColumnLayout, Edges, Route
from cgprimer.visualization.diagrams.geometry import Box, Size
from cgprimer.visualization.diagrams.theme import Shape
from cgprimer.visualization.diagrams.vertex_shapes import clip_to_outline

_MAX_ARCS = 6
_LIFT = 12.0  # from the vertices to the lowest arc, in addition to half of a label
_LANE = 6.0  # between arcs, in addition to the height of a label
_STUB = 17.0  # on either side of a label on a vertical edge
_PORT = 18.0


def lay_out_spine(
    sizes: Mapping[str, Size],
    edges: Edges,
    label_sizes: Sequence[Size | None],
    shapes: Mapping[str, Shape],
    *,
    layer_gap: float,
    node_gap: float,
    label_gap: float,
) -> ColumnLayout | None:
    """Lay out a graph along its longest path; the arguments are as in `lay_out_columns`.

    Returns None for a graph of another kind.

    >>> edges = [("a", "b"), ("b", "c"), ("a", "c"), ("k", "c")]
    >>> room = {"layer_gap": 40, "node_gap": 10, "label_gap": 20}
    >>> layout = lay_out_spine(dict.fromkeys("kabc", (40, 20)), edges, [None] * 4, {}, **room)
    >>> [layout.boxes[key].y for key in "abc"], layout.boxes["k"].x == layout.boxes["c"].x
    ([0.0, 0.0, 0.0], True)
    """
    path = _find_longest_path(list(sizes), edges)
    below = _find_leaves(list(sizes), edges, path)
    along = set(pairwise(path))
    on_path = set(path)
    arcs = [n for n, edge in enumerate(edges) if edge not in along and {*edge} <= on_path]
    if below is None or len(path) < 3 or len(arcs) > _MAX_ARCS or len({*edges}) < len(edges):
        return None
    label = {edge: size or (0.0, 0.0) for edge, size in zip(edges, label_sizes, strict=True)}
    slots = {
        head: [max(sizes[key][0], label[key, head][0]) + node_gap for key in below[head]]
        for head in path
    }
    boxes, x = {}, 0.0
    for number, key in enumerate(path):
        if number:
            last = path[number - 1]
            distance = max(layer_gap, label[last, key][0] + 2 * label_gap)
            distance += (sizes[last][0] + sizes[key][0]) / 2
            x += max(distance, (sum(slots[last]) + sum(slots[key])) / 2)
        boxes[key] = Box(x, 0.0, *sizes[key])
    half = max(sizes[key][1] for key in path) / 2
    written = max((label[key, head][1] for head in path for key in below[head]), default=0.0)
    for head in path:
        left = boxes[head].x - sum(slots[head]) / 2
        for key, slot in zip(below[head], slots[head], strict=True):
            top = half + written + 2 * _STUB
            boxes[key] = Box(left + slot / 2, top + sizes[key][1] / 2, *sizes[key])
            left += slot
    return ColumnLayout(
        boxes, _route_edges(boxes, edges, arcs, path, below, label, shapes), len(path)
    )


def _find_longest_path(keys: Sequence[str], edges: Edges) -> list[str]:
    """Return the vertices of the longest path; if several paths are longest, return the first."""
    tails: dict[str, list[str]] = defaultdict(list)
    for tail, head in edges:
        tails[head].append(tail)
    depth: dict[str, int] = {}
    for key in keys:
        depth[key] = max((depth.get(tail, 0) + 1 for tail in tails[key]), default=0)
    path = [max(keys, key=depth.__getitem__)]
    while tails[path[-1]]:
        # Inputs are preferred to parameters, which come first and are drawn below.
        path.append(max(reversed(tails[path[-1]]), key=depth.__getitem__))
    return path[::-1]


def _find_leaves(
    keys: Sequence[str], edges: Edges, path: Sequence[str]
) -> dict[str, list[str]] | None:
    """Map each path vertex to its leaves; return None if another operand is computed or shared."""
    heads: dict[str, list[str]] = defaultdict(list)
    computed = {head for _, head in edges}
    for tail, head in edges:
        heads[tail].append(head)
    leaves: dict[str, list[str]] = {key: [] for key in path}
    for key in keys:
        if key in leaves:
            continue
        if key in computed or len(heads[key]) != 1 or heads[key][0] not in leaves:
            return None
        leaves[heads[key][0]].append(key)
    return leaves


def _route_edges(
    boxes: Mapping[str, Box],
    edges: Edges,
    arcs: Sequence[int],
    path: Sequence[str],
    below: Mapping[str, Sequence[str]],
    label: Mapping[tuple[str, str], Size],
    shapes: Mapping[str, Shape],
) -> list[Route]:
    """Route each edge: along the path, as an arc above the path, or up from a leaf below it."""
    place = {key: number for number, key in enumerate(path)}
    half = max(boxes[key].height for key in path) / 2
    tallest = max((label[edges[number]][1] for number in arcs), default=0.0)
    lanes = _assign_lanes(arcs, edges, place)
    at_top = _compute_arc_ports(arcs, edges, place)
    routes: list[Route] = []
    for number, (tail, head) in enumerate(edges):
        a, b = boxes[tail], boxes[head]
        first, last = shapes.get(tail, "rectangle"), shapes.get(head, "rectangle")
        if number in lanes:
            y = -half - _LIFT - tallest / 2 - lanes[number] * (tallest + _LANE)
            out, in_ = at_top[number]
            up = clip_to_outline(first, a, (a.x + out, a.y - a.height), down=True)
            down = clip_to_outline(last, b, (b.x + in_, b.y - b.height), down=True)
            routes.append([up, (up[0], y), (down[0], y), down])
        elif tail in place:
            start, end = (a.x + a.width, a.y), (b.x - b.width, b.y)
            routes.append([clip_to_outline(first, a, start), clip_to_outline(last, b, end)])
        else:
            others = below[head]
            step = min(0.7 * b.width / len(others), 2 * _PORT)
            beside = (others.index(tail) - (len(others) - 1) / 2) * step
            start, end = (a.x, a.y - a.height), (b.x + beside, b.y + b.height)
            routes.append(
                [
                    clip_to_outline(first, a, start, down=True),
                    clip_to_outline(last, b, end, down=True),
                ]
            )
    return routes


def _assign_lanes(arcs: Sequence[int], edges: Edges, place: Mapping[str, int]) -> dict[int, int]:
    """Assign each arc to a lane above the path, numbered from the bottom; long arcs are higher."""
    span = {number: tuple(place[key] for key in edges[number]) for number in arcs}
    lanes: dict[int, int] = {}
    for number in sorted(arcs, key=lambda n: (span[n][1] - span[n][0], span[n])):
        first, last = span[number]
        below = [lanes[n] for n in lanes if span[n][0] < last and first < span[n][1]]
        lanes[number] = max(below, default=-1) + 1
    return lanes


def _compute_arc_ports(
    arcs: Sequence[int], edges: Edges, place: Mapping[str, int]
) -> dict[int, tuple[float, float]]:
    """Return the horizontal offsets at which each arc leaves its tail and enters its head.

    Outgoing arcs are to the right of incoming arcs, and longer arcs are outside of shorter arcs, so
    no two arcs cross.
    """
    offset: dict[tuple[int, int], float] = {}
    for key in place:
        arriving = [number for number in arcs if edges[number][1] == key]
        leaving = [number for number in arcs if edges[number][0] == key]
        arriving.sort(key=lambda number: -place[edges[number][0]])  # the longest at the right
        leaving.sort(key=lambda number: -place[edges[number][1]])  # the longest at the left
        ends = [(number, 1) for number in arriving] + [(number, 0) for number in leaving]
        for rank, end in enumerate(ends):
            offset[end] = (rank - (len(ends) - 1) / 2) * _PORT
    return {number: (offset[number, 0], offset[number, 1]) for number in arcs}
