"""The built-in layout: layers, barycenter sweeps and straightened coordinates, in plain Python.

It is used if graphlay is not installed. A long edge passes through an invisible vertex, a *bend*,
in each layer between its ends. All steps use layers from left to right; other requests are
transposed.

Source: Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system
structures", IEEE Trans. SMC 11 (1981); Gansner et al., "A technique for drawing directed graphs",
IEEE Trans. Software Engineering 19 (1993).
"""

from __future__ import annotations

from bisect import bisect, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from cgprimer.visualization.diagrams.geometry import Box, Point
from cgprimer.visualization.diagrams.layout_requests import (
    LayoutAnswer,
    LayoutEngine,
    LayoutRequest,
)

_SWEEPS = 24
_ROUNDS = 12  # of the coordinates
_MAIN, _BEND = 1000.0, 8.0  # weights of the vertices of the main path and of bends; others have 1
_PORT_GAP = 12.0  # between the ends of two edges at a vertex
_PORT_FRACTION = 0.5  # of a vertex's height, to which the ends of its edges are limited
_MAX_SLOPE = 0.02  # of an edge that is nearly horizontal and ends at the middle of a vertex


@dataclass(frozen=True)
class _Layers:
    """The vertices and bends of a layered graph; bends have indices after those of the vertices.

    Attributes:
        ranks: the layer of each vertex and bend.
        orders: the vertices and bends of each layer, from top to bottom.
        before: the neighbors of each vertex and bend in the layer before it.
        after: the neighbors of each vertex and bend in the layer after it.
        bends: the bends of each edge.
        heights: the height of each vertex and bend; a bend in the middle of its edge has a label.
    """

    ranks: list[int]
    orders: list[list[int]]
    before: list[list[int]]
    after: list[list[int]]
    bends: list[list[int]]
    heights: list[float]


def lay_out_layers(request: LayoutRequest) -> LayoutAnswer:
    """Lay out a graph in layers; equal graphs have equal layouts.

    >>> request = LayoutRequest(((40, 20),) * 3, ((0, 1), (1, 2), (0, 2)), (None,) * 3)
    >>> answer = lay_out_layers(request)
    >>> answer.ranks, [x for x, _ in answer.centers], len(answer.routes[0])
    ((0, 1, 2), [20.0, 96.0, 172.0], 2)
    """
    if request.down:
        return transpose_layout(lay_out_layers, request)
    layers = _build_layers(request)
    _reduce_crossings(layers)
    ys = _compute_heights(layers, request)
    xs = _compute_columns(layers, request)
    n = len(request.sizes)
    centers = tuple((xs[rank], y) for rank, y in zip(layers.ranks, ys[:n], strict=False))
    bends = [[(xs[layers.ranks[bend]], ys[bend]) for bend in chain] for chain in layers.bends]
    ranks = tuple(layers.ranks[:n])
    return LayoutAnswer(ranks, centers, route_edges(request, ranks, centers, bends))


def transpose_layout(engine: LayoutEngine, request: LayoutRequest) -> LayoutAnswer:
    """Lay out layers from top to bottom with an engine for layers from left to right."""
    answer = engine(
        replace(
            request,
            sizes=tuple((height, width) for width, height in request.sizes),
            label_sizes=tuple(size and (size[1], size[0]) for size in request.label_sizes),
            down=False,
        )
    )
    centers = tuple((x, y) for y, x in answer.centers)
    routes = tuple([(x, y) for y, x in route] for route in answer.routes)
    return LayoutAnswer(answer.ranks, centers, routes)


def _assign_ranks(n: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Return the layer of each vertex: the length of the longest path that leads to it.

    A vertex with more heads than tails is moved to the layer before its first head, which shortens
    its edges.
    """
    tails: list[list[int]] = [[] for _ in range(n)]
    heads: list[list[int]] = [[] for _ in range(n)]
    for tail, head in edges:
        tails[head].append(tail)
        heads[tail].append(head)
    ranks = [0] * n
    for vertex in range(n):
        ranks[vertex] = max((ranks[tail] + 1 for tail in tails[vertex]), default=0)
    for vertex in reversed(range(n)):
        if len(heads[vertex]) > len(tails[vertex]):
            ranks[vertex] = min(ranks[head] for head in heads[vertex]) - 1
    first = min(ranks)
    return [rank - first for rank in ranks]


def _build_layers(request: LayoutRequest) -> _Layers:
    """Assign vertices to layers, and insert bends into the edges that cross layers."""
    n = len(request.sizes)
    ranks = _assign_ranks(n, request.edges)
    heights = [height for _, height in request.sizes]
    chains: list[list[int]] = []
    links: list[tuple[int, int]] = []
    for (tail, head), size in zip(request.edges, request.label_sizes, strict=True):
        chain = list(range(len(ranks), len(ranks) + ranks[head] - ranks[tail] - 1))
        ranks += range(ranks[tail] + 1, ranks[head])
        heights += [0.0] * len(chain)
        if size and chain:
            heights[chain[len(chain) // 2]] = size[1]
        chains.append(chain)
        links += pairwise((tail, *chain, head))
    before: list[list[int]] = [[] for _ in ranks]
    after: list[list[int]] = [[] for _ in ranks]
    for tail, head in links:
        before[head].append(tail)
        after[tail].append(head)
    orders: list[list[int]] = [[] for _ in range(max(ranks) + 1)]
    for node, rank in enumerate(ranks):
        orders[rank].append(node)
    return _Layers(ranks, orders, before, after, chains, heights)


def _reduce_crossings(layers: _Layers) -> None:
    """Reorder the vertices and bends of each layer by the means of their neighbors' positions."""
    orders = layers.orders
    position = [0.0] * len(layers.ranks)
    for order in orders:
        for index, node in enumerate(order):
            position[node] = index
    best, fewest = [list(order) for order in orders], _count_crossings(layers)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        forward = sweep % 2 == 0
        neighbors = layers.before if forward else layers.after
        for order in orders if forward else reversed(orders):
            means = {
                node: sum(position[other] for other in neighbors[node]) / len(neighbors[node])
                if neighbors[node]
                else position[node]
                for node in order
            }
            order.sort(key=means.__getitem__)
            for index, node in enumerate(order):
                position[node] = index
        _swap_neighbors(layers, position, accept_equal=sweep % 4 >= 2)
        if (crossings := _count_crossings(layers)) < fewest:
            best, fewest = [list(order) for order in orders], crossings
    orders[:] = best


def _swap_neighbors(layers: _Layers, position: list[float], *, accept_equal: bool) -> None:
    """Swap neighbors in a layer if their edges then cross less often, or equally often."""
    for order in layers.orders:
        for index in range(len(order) - 1):
            upper, lower = order[index : index + 2]
            change = 0
            for neighbors in (layers.before, layers.after):
                for a in neighbors[upper]:
                    for b in neighbors[lower]:
                        change += (position[a] < position[b]) - (position[a] > position[b])
            if change < 0 or (accept_equal and not change):
                order[index : index + 2] = lower, upper
                position[upper], position[lower] = index + 1.0, float(index)


def _count_crossings(layers: _Layers) -> int:
    """Count the pairs of edges between neighboring layers that cross each other."""
    crossings = 0
    for order, following in pairwise(layers.orders):
        position = {node: index for index, node in enumerate(following)}
        ends: list[int] = []
        for node in order:
            heads = [position[head] for head in layers.after[node]]
            crossings += sum(len(ends) - bisect(ends, head) for head in heads)
            for head in heads:
                insort(ends, head)
    return crossings


def _find_main_path(layers: _Layers, n: int) -> set[int]:
    """Return the vertices of a longest path without bends."""
    length = [0] * n
    following = [-1] * n
    for node in sorted(range(n), key=layers.ranks.__getitem__, reverse=True):
        for head in layers.after[node]:
            if head < n and length[head] + 1 > length[node]:
                length[node], following[node] = length[head] + 1, head
    node = max(range(n), key=length.__getitem__)
    path = set()
    while node >= 0:
        path.add(node)
        node = following[node]
    return path


def _compute_heights(layers: _Layers, request: LayoutRequest) -> list[float]:
    """Return the y coordinate of each vertex and bend, near those of its neighbors."""
    n = len(request.sizes)
    straight = set() if request.symmetric else _find_main_path(layers, n)
    weights = [
        _BEND if k >= n else _MAIN if k in straight else 1.0 for k in range(len(layers.ranks))
    ]
    gaps = [
        [0.0]
        + [
            (layers.heights[a] + layers.heights[b]) / 2
            + (request.node_gap if a < n and b < n else request.edge_gap)
            for a, b in pairwise(order)
        ]
        for order in layers.orders
    ]
    ys = [0.0] * len(layers.ranks)
    ranks = range(len(layers.orders))
    for step in range(_ROUNDS):
        for rank in ranks if step % 2 == 0 else reversed(ranks):
            order = layers.orders[rank]
            sides = [layers.before, layers.after]
            if step < _ROUNDS - 2:
                sides = [sides[step % 2]]
            goals = [_find_goal(node, sides, ys, straight, n) for node in order]
            values = [ys[k] if goal is None else goal for k, goal in zip(order, goals, strict=True)]
            positions = _separate(values, [weights[node] for node in order], gaps[rank])
            for node, y in zip(order, positions, strict=True):
                ys[node] = y
    return ys


def _find_goal(
    node: int,
    sides: Sequence[list[list[int]]],
    ys: Sequence[float],
    straight: set[int],
    n: int,
) -> float | None:
    """Return the y coordinate that straightens the edges of a vertex; None if it has no edges."""
    neighbors = [other for side in sides for other in side[node]]
    path = [other for other in neighbors if other in straight] if node in straight else []
    chosen = path or ([k for k in neighbors if k >= n] if node >= n else []) or neighbors
    if not chosen:
        return None
    return median(ys[other] for other in chosen)


def _separate(
    goals: Sequence[float], weights: Sequence[float], gaps: Sequence[float]
) -> list[float]:
    """Return the positions nearest to the goals, by weighted least squares, with minimum gaps.

    Source: Best and Chakravarti, "Active set algorithms for isotonic regression", 1990.

    >>> _separate([0, 0, 50], [1, 1, 1], [0, 10, 10])
    [-5.0, 5.0, 50.0]
    """
    offset, offsets = 0.0, []
    blocks: list[tuple[float, float, int]] = []  # mean, weight and number of positions
    for goal, weight, gap in zip(goals, weights, gaps, strict=True):
        offset += gap
        offsets.append(offset)
        mean, total, count = goal - offset, weight, 1
        while blocks and blocks[-1][0] >= mean:
            other, more, others = blocks.pop()
            mean = (mean * total + other * more) / (total + more)
            total, count = total + more, count + others
        blocks.append((mean, total, count))
    means = [mean for mean, _, count in blocks for _ in range(count)]
    return [float(mean + offset) for mean, offset in zip(means, offsets, strict=True)]


def _compute_columns(layers: _Layers, request: LayoutRequest) -> list[float]:
    """Return the x coordinate of each layer, with room for labels in the layers or between them."""
    widths = [0.0] * len(layers.orders)
    gaps = [request.layer_gap] * len(layers.orders)
    for (width, _), rank in zip(request.sizes, layers.ranks, strict=False):
        widths[rank] = max(widths[rank], width)
    for (tail, _), chain, size in zip(
        request.edges, layers.bends, request.label_sizes, strict=True
    ):
        if size and chain:
            rank = layers.ranks[chain[len(chain) // 2]]
            widths[rank] = max(widths[rank], size[0])
        elif size:
            rank = layers.ranks[tail]
            gaps[rank] = max(gaps[rank], size[0] + 2 * request.label_gap)
    xs, x = [], 0.0
    for width, gap in zip(widths, gaps, strict=True):
        xs.append(x + width / 2)
        x += width + gap
    return xs


def route_edges(
    request: LayoutRequest,
    ranks: Sequence[int],
    centers: Sequence[Point],
    bends: Sequence[Sequence[Point]],
) -> tuple[list[Point], ...]:
    """Route edges around vertices; edges are horizontal next to the vertices of other layers.

    Args:
        request: a request for layers from left to right.
        ranks: the layer of each vertex.
        centers: the center of each vertex.
        bends: points between the ends of each edge, at least one in each layer that it crosses.

    Returns:
        The corners of each edge, without those that can be omitted.
    """
    boxes = [Box(*center, *size) for center, size in zip(centers, request.sizes, strict=True)]
    bands = _find_bands(boxes, ranks)
    ports = [_compute_ports(request, boxes, bends, side) for side in (0, 1)]
    routes = []
    for number, ((tail, head), points) in enumerate(zip(request.edges, bends, strict=True)):
        start = (boxes[tail].x + boxes[tail].width / 2, boxes[tail].y + ports[0][number])
        end = (boxes[head].x - boxes[head].width / 2, boxes[head].y + ports[1][number])
        inner = [corner for point in points for corner in _cross_band(point, bands)]
        corners = [
            start,
            (bands[ranks[tail]][1], start[1]),
            *inner,
            (bands[ranks[head]][0], end[1]),
            end,
        ]
        others = [
            box
            for vertex, box in enumerate(boxes)
            if vertex not in (tail, head) and ranks[tail] <= ranks[vertex] <= ranks[head]
        ]
        routes.append(_straighten(corners, others, request.edge_gap / 2))
    return tuple(routes)


def _find_bands(boxes: Sequence[Box], ranks: Sequence[int]) -> dict[int, tuple[float, float]]:
    """Return the left and the right side of each layer."""
    bands: dict[int, tuple[float, float]] = {}
    for box, rank in zip(boxes, ranks, strict=True):
        left, right = bands.get(rank, (box.x, box.x))
        bands[rank] = (min(left, box.x - box.width / 2), max(right, box.x + box.width / 2))
    return bands


def _cross_band(point: Point, bands: dict[int, tuple[float, float]]) -> Iterator[Point]:
    """Yield the points at which an edge enters and leaves a layer; keep a point between layers."""
    x, y = point
    for left, right in bands.values():
        if left <= x <= right:
            yield (left, y)
            yield (right, y)
            return
    yield point


def _compute_ports(
    request: LayoutRequest, boxes: Sequence[Box], bends: Sequence[Sequence[Point]], side: int
) -> list[float]:
    """Return the vertical offset of each edge at its tail (side 0) or at its head (side 1)."""
    numbers_of: dict[int, list[int]] = {}
    for number, edge in enumerate(request.edges):
        numbers_of.setdefault(edge[side], []).append(number)

    def find_slope(number: int) -> float:
        """Return the slope of an edge at the vertex."""
        other = boxes[request.edges[number][1 - side]]
        x, y = bends[number][-side] if bends[number] else (other.x, other.y)
        box = boxes[request.edges[number][side]]
        return (y - box.y) / max(abs(x - box.x), 1.0)

    offsets = [0.0] * len(request.edges)
    for vertex, numbers in numbers_of.items():
        numbers.sort(key=lambda number: (find_slope(number), number))
        step = min(_PORT_GAP, _PORT_FRACTION * boxes[vertex].height / len(numbers))
        level = (k for k, number in enumerate(numbers) if abs(find_slope(number)) < _MAX_SLOPE)
        middle = next(level, (len(numbers) - 1) / 2)
        for index, number in enumerate(numbers):
            offsets[number] = (index - middle) * step
    return offsets


def _straighten(corners: Sequence[Point], boxes: Sequence[Box], margin: float) -> list[Point]:
    """Omit the corners of a route that are not needed to avoid boxes."""
    route = [corners[0]]
    for corner, following in pairwise(corners[1:]):
        if any(_is_crossed(box, route[-1], following, margin) for box in boxes):
            route.append(corner)
    return [*route, corners[-1]]


def _is_crossed(box: Box, start: Point, end: Point, margin: float) -> bool:
    """Return whether a segment from left to right passes through a box or its margin."""
    left, right = box.x - box.width / 2 - margin, box.x + box.width / 2 + margin
    first, last = max(left, start[0]), min(right, end[0])
    if first > last:
        return False
    slope = (end[1] - start[1]) / (end[0] - start[0]) if end[0] > start[0] else 0.0
    ends = (start[1] + slope * (first - start[0]), start[1] + slope * (last - start[0]))
    half = box.height / 2 + margin
    return min(ends) < box.y + half and max(ends) > box.y - half
