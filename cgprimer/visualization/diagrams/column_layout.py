"""Layouts in columns with straight edges: networks of layers, and chains in several rows.

A graph has a layout in columns if every edge connects neighboring layers. The vertices of a layer
keep their order from top to bottom, unless another order has fewer crossings. Lengths are in
points; y increases downwards.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from cgprimer.visualization.diagrams.geometry import Box, Point, Size
from cgprimer.visualization.diagrams.layer_summary import assign_layers
from cgprimer.visualization.diagrams.theme import Shape
from cgprimer.visualization.diagrams.vertex_shapes import clip_to_outline

_MAX_EDGES = 400  # the time to count crossings is quadratic
_PORT, _PORTS = 18.0, 0.75  # maximum gap between edges at a side, and their fraction of the side
_PLAIN_GAP = 56.0  # maximum gap between layers whose edges do not cross
_MAX_NODE_GAP = 70.0  # between vertices of a layer that is shorter than other layers
_LANE = 24.0  # next to the rows, for an edge to the next row
_ROW_GAP = 44.0
_MAX_ROWS = 3

Edges = Sequence[tuple[str, str]]
Route = list[Point]


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """A layout of a graph in columns: vertex boxes, edge routes and the number of layers."""

    boxes: dict[str, Box]
    routes: list[Route]
    layers: int


def find_columns(keys: Sequence[str], edges: Edges) -> list[list[str]] | None:
    """Group the vertices of a graph into layers; return None if an edge skips a layer.

    >>> find_columns(["a", "b", "c"], [("a", "c"), ("b", "c")])
    [['a', 'b'], ['c']]
    >>> find_columns(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")]) is None
    True
    """
    joined = {key for edge in edges for key in edge}
    if len(joined) < len(keys) or not 0 < len(edges) <= _MAX_EDGES:
        return None
    layer = assign_layers(keys, edges)
    if any(layer[head] != layer[tail] + 1 for tail, head in edges):
        return None
    members: dict[int, list[str]] = defaultdict(list)
    for key in keys:
        members[layer[key]].append(key)
    first = min(members)
    return [members[first + number] for number in range(len(members))]


def is_network(columns: Sequence[Sequence[str]], edges: Edges) -> bool:
    """Return whether the columns look like layers of a neural network rather than a chain.

    >>> edges = [("a", "c"), ("a", "d"), ("b", "c"), ("b", "d")]
    >>> is_network([["a", "b"], ["c", "d"]], edges), is_network([["a"], ["c"]], edges[:1])
    (True, False)
    """
    tails: dict[str, set[str]] = defaultdict(set)
    for tail, head in edges:
        tails[head].add(tail)
    for column in columns:
        units = [key for key in column if key in tails]
        if len(units) > 2 or any(len(tails[a] & tails[b]) > 1 for a, b in combinations(units, 2)):
            return True
    return False


def order_columns(columns: Sequence[Sequence[str]], edges: Edges) -> list[list[str]]:
    """Reorder the vertices in each column to reduce edge crossings.

    >>> edges = [("p", "d"), ("a", "c"), ("a", "d"), ("b", "c"), ("b", "d")]
    >>> order_columns([["p", "a", "b"], ["c", "d"]], edges)
    [['a', 'b', 'p'], ['c', 'd']]
    """
    best = [list(column) for column in columns]
    fewest = _count_crossings(best, edges)
    current = [list(column) for column in columns]
    for along in (1, 0, 1, 0):  # heads first: computed vertices keep their order, operands move
        neighbors: dict[str, list[str]] = defaultdict(list)
        for edge in edges:
            neighbors[edge[1 - along]].append(edge[along])
        numbers = range(len(current) - 2, -1, -1) if along else range(1, len(current))
        for number in numbers:
            neighbor = current[number + (1 if along else -1)]
            rank = {key: position for position, key in enumerate(neighbor)}
            before = {key: position for position, key in enumerate(columns[number])}
            mean = {
                key: sum(map(rank.__getitem__, others)) / len(others)
                for key in current[number]
                if (others := neighbors[key])
            }
            middle = (len(neighbor) - 1) / 2
            current[number].sort(key=lambda key: (mean.get(key, middle), before[key]))
        if (crossings := _count_crossings(current, edges)) < fewest:
            best, fewest = [list(column) for column in current], crossings
    return best


def _count_crossings(columns: Sequence[Sequence[str]], edges: Edges) -> int:
    """Count the pairs of edges that cross each other."""
    rank = {key: position for column in columns for position, key in enumerate(column)}
    layer = {key: number for number, column in enumerate(columns) for key in column}
    by_layer: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for tail, head in edges:
        by_layer[layer[tail]].append((rank[tail], rank[head]))
    return sum(
        (a[0] - b[0]) * (a[1] - b[1]) < 0
        for pairs in by_layer.values()
        for a, b in combinations(pairs, 2)
    )


def lay_out_columns(
    sizes: Mapping[str, Size],
    edges: Edges,
    label_sizes: Sequence[Size | None],
    shapes: Mapping[str, Shape],
    *,
    layer_gap: float,
    node_gap: float,
    label_gap: float,
    aspect: float = 0.0,
) -> ColumnLayout | None:
    """Lay out a graph with straight edges: a network in columns, or a chain in several rows.

    Args:
        sizes: width and height of each vertex, in topological order.
        edges: pairs of tail and head.
        label_sizes: width and height of the label of each edge; None for an edge without a label.
        shapes: outlines of the vertices.
        layer_gap: minimum gap between neighboring columns.
        node_gap: minimum gap between vertices of a column.
        label_gap: gap on either side of a label.
        aspect: preferred width over height of a chain in several rows; 0 for a network in one row.

    Returns:
        The layout; None for a graph of another kind.
    """
    columns = find_columns(list(sizes), edges)
    if columns is None or is_network(columns, edges) == (aspect > 0):
        return None
    layer = {key: number for number, column in enumerate(columns) for key in column}
    gaps = _compute_column_gaps(columns, layer, edges, label_sizes, layer_gap, label_gap)
    if aspect:
        return _lay_out_rows(columns, sizes, edges, shapes, gaps, node_gap, aspect)
    columns = order_columns(columns, edges)
    boxes = _place_network(columns, sizes, edges, gaps, node_gap)
    routes = _route_straight_edges(boxes, edges, shapes)
    return ColumnLayout(boxes, routes, len(columns)) if routes else None


def _compute_column_gaps(
    columns: Sequence[Sequence[str]],
    layer: Mapping[str, int],
    edges: Edges,
    label_sizes: Sequence[Size | None],
    layer_gap: float,
    label_gap: float,
) -> dict[int, float]:
    """Return the width of the gap after each column, which is larger where edges cross."""
    counts = Counter(layer[tail] for tail, _ in edges)
    gaps = {}
    for number, count in counts.items():
        full = count > max(len(columns[number]), len(columns[number + 1]))
        gaps[number] = layer_gap if full else min(layer_gap, _PLAIN_GAP)
    for (tail, _), size in zip(edges, label_sizes, strict=True):
        if size:
            gaps[layer[tail]] = max(gaps[layer[tail]], size[0] + 2 * label_gap)
    return gaps


def _place_network(
    columns: Sequence[Sequence[str]],
    sizes: Mapping[str, Size],
    edges: Edges,
    gaps: Mapping[int, float],
    node_gap: float,
) -> dict[str, Box]:
    """Return the box of each vertex of a network, with all columns centered vertically."""
    heads = {head for _, head in edges}
    heights = [sum(sizes[key][1] for key in column) for column in columns]
    tallest = max(h + node_gap * (len(c) - 1) for h, c in zip(heights, columns, strict=True))
    boxes, x = {}, 0.0
    for number, (column, high) in enumerate(zip(columns, heights, strict=True)):
        across = max(sizes[key][0] for key in column)
        gap_count = max(len(column) - 1, 1)
        gap = max(node_gap, min(_MAX_NODE_GAP, (0.85 * tallest - high) / gap_count))
        y = -(high + gap * (len(column) - 1)) / 2
        for key in column:
            width, height = sizes[key]
            # Vertices without operands are at the right, near their users.
            middle = x + (across / 2 if key in heads else across - width / 2)
            boxes[key] = Box(middle, y + height / 2, width, height)
            y += height + gap
        x += across + gaps.get(number, 0.0)
    return boxes


def _route_straight_edges(
    boxes: Mapping[str, Box],
    edges: Edges,
    shapes: Mapping[str, Shape],
    level: Collection[str] = (),
) -> list[Route] | None:
    """Route each edge as a straight line; return None if a line would cross another vertex.

    Edges between vertices of `level` connect the midpoints of their sides.
    """
    leaving, arriving = (_compute_port_offsets(boxes, edges, side, level) for side in (0, 1))
    routes = []
    for number, (tail, head) in enumerate(edges):
        a, b = boxes[tail], boxes[head]
        start = (a.x + a.width / 2, a.y + leaving[number])
        end = (b.x - b.width / 2, b.y + arriving[number])
        route = [
            clip_to_outline(shapes.get(tail, "rectangle"), a, start),
            clip_to_outline(shapes.get(head, "rectangle"), b, end),
        ]
        if any(_crosses_box(route, box) for key, box in boxes.items() if key not in (tail, head)):
            return None
        routes.append(route)
    return routes


def _compute_port_offsets(
    boxes: Mapping[str, Box], edges: Edges, side: int, level: Collection[str]
) -> dict[int, float]:
    """Return each edge's vertical offset at its tail (`side` 0) or at its head (`side` 1)."""
    at: dict[str, list[int]] = defaultdict(list)
    for number, edge in enumerate(edges):
        at[edge[side]].append(number)
    offsets = {}
    for key, numbers in at.items():
        numbers.sort(key=lambda number: (boxes[edges[number][1 - side]].y, number))
        step = min(_PORT, _PORTS * boxes[key].height / len(numbers))
        main = (k for k, number in enumerate(numbers) if {*edges[number]} <= {*level})
        middle = next(main, (len(numbers) - 1) / 2)
        for position, number in enumerate(numbers):
            offsets[number] = (position - middle) * step
    return offsets


def _crosses_box(route: Route, box: Box) -> bool:
    """Return whether a straight route crosses a box, by Liang-Barsky clipping."""
    (x, y), (end_x, end_y) = route
    near, far = 0.0, 1.0
    for start, distance, middle, size in (
        (x, end_x - x, box.x, box.width),
        (y, end_y - y, box.y, box.height),
    ):
        low, high = middle - size / 2 - 2, middle + size / 2 + 2
        if abs(distance) < 1e-9:
            if not low <= start <= high:
                return False
            continue
        first, last = sorted(((low - start) / distance, (high - start) / distance))
        near, far = max(near, first), min(far, last)
    return near < far


def _lay_out_rows(
    columns: Sequence[Sequence[str]],
    sizes: Mapping[str, Size],
    edges: Edges,
    shapes: Mapping[str, Shape],
    gaps: Mapping[int, float],
    node_gap: float,
    aspect: float,
) -> ColumnLayout | None:
    """Lay out a chain in rows; the number of rows is the one that best matches the aspect ratio."""
    main = _find_main_path(columns, edges)
    heads: dict[str, list[str]] = defaultdict(list)
    for tail, head in edges:
        heads[tail].append(head)
    tails = {head for _, head in edges}

    def can_break(number: int) -> bool:
        """Return whether a new row can start after the column with the given index."""
        return all(key == main[number] or key not in tails for key in columns[number])

    candidates = [number for number in range(1, len(columns)) if can_break(number - 1)]
    best: tuple[float, list[list[list[str]]]] | None = None
    for count in range(1, _MAX_ROWS):
        for breaks in combinations(candidates, count):
            rows = _split_into_rows(columns, breaks, main)
            width = max(_compute_row_width(row, sizes, gaps, columns) for row in rows) + 2 * _LANE
            height = sum(
                map(sum, (_compute_row_height(row, sizes, main, node_gap) for row in rows))
            )
            height += _ROW_GAP * count
            size = max(width / aspect, height)
            if best is None or size < best[0]:
                best = size, rows
    if best is None:
        return None
    return _place_rows(best[1], columns, sizes, edges, shapes, gaps, node_gap, main)


def _find_main_path(columns: Sequence[Sequence[str]], edges: Edges) -> list[str]:
    """Return a path from the first column to the last, with one vertex of each column."""
    tails: dict[str, list[str]] = defaultdict(list)
    for tail, head in edges:
        tails[head].append(tail)
    depth: dict[str, int] = {}
    for column in columns:
        for key in column:
            depth[key] = max((depth[tail] + 1 for tail in tails[key]), default=0)
    path = [max(columns[-1], key=depth.__getitem__)]
    while tails[path[-1]]:
        path.append(max(tails[path[-1]], key=depth.__getitem__))
    return path[::-1]


def _split_into_rows(
    columns: Sequence[Sequence[str]], breaks: Sequence[int], main: Sequence[str]
) -> list[list[list[str]]]:
    """Split columns into rows at the given breaks; leaves before a break move to the next row."""
    rows = []
    for first, last in pairwise((0, *breaks, len(columns))):
        row = [list(column) for column in columns[first:last]]
        if last < len(columns):
            row[-1] = [key for key in row[-1] if key == main[last - 1]]
        if first and (moved := [k for k in columns[first - 1] if k != main[first - 1]]):
            row.insert(0, moved)
        rows.append(row)
    return rows


def _compute_row_width(
    row: Sequence[Sequence[str]],
    sizes: Mapping[str, Size],
    gaps: Mapping[int, float],
    columns: Sequence[Sequence[str]],
) -> float:
    """Return the width of a row of columns, including the gaps between the columns."""
    layer = {key: number for number, column in enumerate(columns) for key in column}
    across = sum(max(sizes[key][0] for key in column) for column in row)
    return across + sum(gaps.get(layer[column[0]], 0.0) for column in row[:-1])


def _compute_row_height(
    row: Sequence[Sequence[str]], sizes: Mapping[str, Size], main: Sequence[str], node_gap: float
) -> tuple[float, float]:
    """Return the extent of a row above and below its main path, in points."""
    above = max(sizes[key][1] for column in row for key in column if key in main) / 2
    below = above
    for column in row:
        high = sum(sizes[key][1] + node_gap for key in column if key not in main)
        below = max(below, above + high)
    return above, below


def _place_rows(
    rows: Sequence[Sequence[Sequence[str]]],
    columns: Sequence[Sequence[str]],
    sizes: Mapping[str, Size],
    edges: Edges,
    shapes: Mapping[str, Shape],
    gaps: Mapping[int, float],
    node_gap: float,
    main: Sequence[str],
) -> ColumnLayout | None:
    """Place the columns of each row, and route the edges from each row to the next."""
    layer = {key: number for number, column in enumerate(columns) for key in column}
    boxes: dict[str, Box] = {}
    ends, top = [], 0.0  # of the rows: left, right, and the height of the gap below
    for row in rows:
        above, below = _compute_row_height(row, sizes, main, node_gap)
        level, x = top + above, 0.0
        for column in row:
            across, y = max(sizes[key][0] for key in column), level + above + node_gap
            for key in column:
                width, height = sizes[key]
                if key in main:
                    boxes[key] = Box(x + across / 2, level, width, height)
                else:
                    boxes[key] = Box(x + across / 2, y + height / 2, width, height)
                    y += height + node_gap
            x += across + gaps.get(layer[column[0]], 0.0)
        ends.append((x - gaps.get(layer[row[-1][0]], 0.0), level + below + _ROW_GAP / 2))
        top = level + below + _ROW_GAP
    row_of = {key: number for number, row in enumerate(rows) for column in row for key in column}
    inside = [edge for edge in edges if row_of[edge[0]] == row_of[edge[1]]]
    straight = _route_straight_edges(boxes, inside, shapes, main)
    if straight is None:
        return None
    right = max(end for end, _ in ends) + _LANE
    routes, left = [], iter(straight)
    for tail, head in edges:
        if row_of[tail] == row_of[head]:
            routes.append(next(left))
            continue
        a, b, between = boxes[tail], boxes[head], ends[row_of[tail]][1]
        start = clip_to_outline(shapes.get(tail, "rectangle"), a, (a.x + a.width / 2, a.y))
        end = clip_to_outline(shapes.get(head, "rectangle"), b, (b.x - b.width / 2, b.y))
        corners = [(right, a.y), (right, between), (-_LANE, between), (-_LANE, b.y)]
        routes.append([start, *corners, end])
    return ColumnLayout(boxes, routes, len(columns))
