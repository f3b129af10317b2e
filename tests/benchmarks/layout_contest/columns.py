"""Drawings out of what libraries answer that know neither sizes nor labels.

Layers become columns as wide as their widest vertex, gaps as wide as the labels in them, and
every edge gets a port of its own at its vertices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from cgprimer.visualization.diagrams.geometry import Box, Point
from cgprimer.visualization.diagrams.vertex_shapes import clip_to_outline

from .measures import Drawing
from .problems import Problem

LAYER_GAP, NODE_GAP, LABEL_MARGIN = 52.0, 30.0, 30.0  # points, for every contestant


def in_columns(
    problem: Problem, where: Mapping[str, Point], bends: Sequence[Sequence[Point]]
) -> Drawing:
    """Layers (the first coordinate) become columns, wide enough for vertices and labels."""
    layer = {key: round(place[0]) for key, place in where.items()}
    count = max(layer.values()) + 1
    widths, gaps = [0.0] * count, [LAYER_GAP] * count
    for key, index in layer.items():
        widths[index] = max(widths[index], problem.sizes[key][0])
    for edge, size in zip(problem.diagram.edges, problem.label_sizes, strict=True):
        if size and layer[edge.head] - layer[edge.tail] == 1:
            gaps[layer[edge.tail]] = max(gaps[layer[edge.tail]], size[0] + LABEL_MARGIN)
    xs = [sum(widths[:k]) + sum(gaps[:k]) + widths[k] / 2 for k in range(count)]
    centres = {key: (xs[layer[key]], where[key][1]) for key in where}
    left = [x - width / 2 for x, width in zip(xs, widths, strict=True)]
    right = [x + width / 2 for x, width in zip(xs, widths, strict=True)]
    # Lines are level within a column and turn at its sides, so that a wide vertex is not in the
    # way of what leaves a narrow one beside it.
    boxes = {key: Box(*centres[key], *problem.sizes[key]) for key in problem.sizes}
    lines = []
    ports = _ports(problem, where, bends)
    for edge, inner, (out, into) in zip(problem.diagram.edges, bends, ports, strict=True):
        tail, head = layer[edge.tail], layer[edge.head]
        line = [
            _level(problem, edge.tail, boxes[edge.tail], out, 1.0),
            (right[tail], out),
            *((x, y) for k, y in inner for x in (left[round(k)], right[round(k)])),
            (left[head], into),
            _level(problem, edge.head, boxes[edge.head], into, -1.0),
        ]
        lines.append(tuple(line))
    return Drawing(boxes, tuple(lines))


def _ports(
    problem: Problem, where: Mapping[str, Point], bends: Sequence[Sequence[Point]]
) -> list[tuple[float, float]]:
    """The heights at which edges leave and enter: spread over a side, in the order of the goals."""
    found = [[0.0, 0.0] for _ in bends]
    sides: dict[tuple[str, int], list[tuple[float, int]]] = {}
    for index, (edge, inner) in enumerate(zip(problem.diagram.edges, bends, strict=True)):
        ahead = inner[0][1] if inner else where[edge.head][1]
        behind = inner[-1][1] if inner else where[edge.tail][1]
        sides.setdefault((edge.tail, 0), []).append((ahead, index))
        sides.setdefault((edge.head, 1), []).append((behind, index))
    for (key, side), met in sides.items():
        for place, (_, index) in enumerate(sorted(met), start=1):
            share = place / (len(met) + 1) - 0.5
            found[index][side] = where[key][1] + 0.8 * share * problem.sizes[key][1]
    return [(out, into) for out, into in found]


def _level(problem: Problem, key: str, box: Box, y: float, side: float) -> Point:
    """Where a level line meets the outline from the right (`side` 1) or the left (-1)."""
    edge = box.x + side * (box.width / 2 + 1.0)
    return clip_to_outline(problem.shapes[key], box, (edge + side, y), (edge, y))


def straight(problem: Problem, centres: Mapping[str, Point]) -> Drawing:
    """Boxes around the centres, and straight lines between their outlines."""
    boxes = {key: Box(*centres[key], *problem.sizes[key]) for key in problem.sizes}
    lines = []
    for edge in problem.diagram.edges:
        tail, head = boxes[edge.tail], boxes[edge.head]
        start = _on_outline(problem, edge.tail, tail, (head.x, head.y))
        lines.append((start, _on_outline(problem, edge.head, head, (tail.x, tail.y))))
    return Drawing(boxes, tuple(lines))


def _on_outline(problem: Problem, key: str, box: Box, toward: Point) -> Point:
    """Where a line from `toward` to the middle of a vertex meets its outline."""
    return clip_to_outline(problem.shapes[key], box, toward, _near(box, toward))


def _near(box: Box, toward: Point) -> Point:
    """A point on the way from `toward` to the middle, just outside of the box."""
    x, y = toward[0] - box.x, toward[1] - box.y
    share = min(
        (box.width / 2 + 1) / abs(x) if x else math.inf,
        (box.height / 2 + 1) / abs(y) if y else math.inf,
        1.0,
    )
    return (box.x + x * share, box.y + y * share)


def least_scale(problem: Problem, centres: Mapping[str, Point]) -> float:
    """The factor from which no two boxes come closer than half the usual gap."""
    keys = list(centres)
    needed = 1.0
    for index, one in enumerate(keys):
        for other in keys[:index]:
            x, y = (abs(centres[one][k] - centres[other][k]) for k in (0, 1))
            sides = [
                (problem.sizes[one][k] + problem.sizes[other][k] + NODE_GAP) / 2 for k in (0, 1)
            ]
            wanted = min(sides[0] / x if x else math.inf, sides[1] / y if y else math.inf)
            if math.isfinite(wanted):
                needed = max(needed, wanted)
    return needed
