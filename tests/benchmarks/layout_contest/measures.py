"""What a drawing is judged by; all lengths in points, all lines as they are drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from cgprimer.visualization.diagrams.geometry import (
    Box,
    Point,
    compute_line_length,
    overlap_length,
    sample_line,
)
from cgprimer.visualization.diagrams.vertex_shapes import contains_point
from tests.pictures.drawing_graphs import overlaps

from .problems import Problem

SLIDE = (13.33 * 72, 7.5 * 72)
_SMALLEST_TEXT = 16.0  # points, of the pictures that are measured
_TRIM = 12.0  # points left out at both ends of a line: the heads of arrows lie there
_STEP = 3.0  # points between the places where a line is looked at
_INSET = 1.0  # how far inside a vertex counts as through it


@dataclass(frozen=True, slots=True)
class Drawing:
    """Boxes by node key, one polyline per edge; `lines` are drawn ones, corners rounded."""

    boxes: Mapping[str, Box]
    lines: tuple[tuple[Point, ...], ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """One layout of one graph.

    Attributes:
        crossings: points where two edges cross.
        through: pairs of an edge and a vertex that is not its end but lies under it.
        overlaps: pairs of vertices whose boxes overlap.
        close: length over which edges run too close to each other to be told apart.
        backward: edges whose head does not lie to the right of their tail.
        width, height: of all boxes and lines.
        text: size in points of the smallest text when the picture is fitted to a slide; 16 where
            it needs no shrinking.
        ink: total length of all edges.
    """

    crossings: int
    through: int
    overlaps: int
    close: float
    backward: int
    width: float
    height: float
    text: float
    ink: float


def measured(problem: Problem, drawing: Drawing) -> Measured:
    edges = problem.diagram.edges
    boxes = drawing.boxes
    width, height = _extent(drawing)
    scale = min(SLIDE[0] / width, SLIDE[1] / height, 1.0)
    return Measured(
        crossings=crossings(drawing.lines),
        through=sum(
            _through(line, {edge.tail, edge.head}, problem, boxes)
            for edge, line in zip(edges, drawing.lines, strict=True)
        ),
        overlaps=sum(overlaps(a, b, -0.5) for a, b in combinations(boxes.values(), 2)),
        close=overlap_length(edges, drawing.lines),
        backward=sum(boxes[e.head].x <= boxes[e.tail].x for e in edges),
        width=width,
        height=height,
        text=_SMALLEST_TEXT * scale,
        ink=sum(map(compute_line_length, drawing.lines)),
    )


def crossings(lines: Sequence[Sequence[Point]]) -> int:
    """How often the lines cross; meeting at an end is no crossing.

    >>> crossings([[(0, 0), (10, 10)], [(0, 10), (10, 0)]])
    1
    >>> crossings([[(0, 0), (10, 10)], [(0, 0), (10, -10)], [(0, 5), (1, 40), (2, 50)]])
    0
    """
    pieces = [_segments(_trimmed(line)) for line in lines]
    every = np.concatenate(pieces) if pieces else np.zeros((0, 4))
    owner = np.repeat(np.arange(len(pieces)), [len(piece) for piece in pieces])
    low = np.minimum(every[:, :2], every[:, 2:])
    high = np.maximum(every[:, :2], every[:, 2:])
    count = 0
    for edge, mine in enumerate(pieces):
        if not len(mine):
            continue
        lowest = np.minimum(mine[:, :2], mine[:, 2:]).min(axis=0)
        highest = np.maximum(mine[:, :2], mine[:, 2:]).max(axis=0)
        near = (owner > edge) & (low <= highest).all(axis=1) & (high >= lowest).all(axis=1)
        count += _crossed(mine, every[near])
    return count


def _crossed(some: np.ndarray, others: np.ndarray) -> int:
    """Pairs of segments that cross. A point exactly on a line counts as being left of it."""

    def left(line: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        x1, y1, x2, y2 = (line[..., k] for k in range(4))
        return (x2 - x1) * (y - y1) - (y2 - y1) * (x - x1) >= 0

    a, b = some[:, None, :], others[None, :, :]
    apart = left(a, b[..., 0], b[..., 1]) != left(a, b[..., 2], b[..., 3])
    return int((apart & (left(b, a[..., 0], a[..., 1]) != left(b, a[..., 2], a[..., 3]))).sum())


def _segments(line: Sequence[Point]) -> np.ndarray:
    points = np.asarray(line, dtype=float).reshape(-1, 2)
    return np.hstack([points[:-1], points[1:]])


def _trimmed(line: Sequence[Point]) -> list[Point]:
    """The line without its first and last `_TRIM` points, of a short one less."""
    trim = min(_TRIM, compute_line_length(line) / 4)
    return _cut(_cut(list(line), trim)[::-1], trim)


def _cut(line: list[Point], left: float) -> list[Point]:
    for index, (a, b) in enumerate(pairwise(line)):
        step = math.dist(a, b)
        if step > left:
            share = left / step
            first = (a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1]))
            return [first, *line[index + 1 :]]
        left -= step
    return line[-1:]


def _through(
    line: Sequence[Point], ends: set[str], problem: Problem, boxes: Mapping[str, Box]
) -> int:
    points = np.asarray(sample_line(line, _STEP))
    low, high = points.min(axis=0), points.max(axis=0)
    count = 0
    for key, box in boxes.items():
        across, along = box.width / 2 - _INSET, box.height / 2 - _INSET
        if key in ends or box.x + across < low[0] or box.x - across > high[0]:
            continue
        if box.y + along < low[1] or box.y - along > high[1]:
            continue
        near = points[
            (np.abs(points[:, 0] - box.x) < across) & (np.abs(points[:, 1] - box.y) < along)
        ]
        smaller = Box(box.x, box.y, 2 * across, 2 * along)
        count += any(contains_point(problem.shapes[key], smaller, (x, y)) for x, y in near)
    return count


def _extent(drawing: Drawing) -> tuple[float, float]:
    sides = [
        (box.x + s * box.width / 2, box.y + s * box.height / 2)
        for box in drawing.boxes.values()
        for s in (-1, 1)
    ]
    points = np.asarray([*sides, *(point for line in drawing.lines for point in line)])
    width, height = points.max(axis=0) - points.min(axis=0)
    return float(width), float(height)
