"""Boxes and polylines: corners, lengths, samples and overlaps.

Lengths are in points; x increases to the right, y downwards, as on a page.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TypeAlias

Point: TypeAlias = tuple[float, float]
Size: TypeAlias = tuple[float, float]

_CORNER_STEPS = 8
_MIN_DISTANCE = 7.0  # points between two lines that are seen as two
_STEP = 5.0
_CROSSING = 20.0  # length over which two lines that cross at a steep angle are close
_NEAR_END = 26.0  # lines with a common vertex may be close up to this distance from it


@dataclass(frozen=True, slots=True)
class Box:
    """An axis-parallel rectangle, given by its center and its size in points."""

    x: float
    y: float
    width: float
    height: float

    def translate(self, x: float, y: float) -> Box:
        """Return the box shifted by `x` to the right and by `y` down."""
        return Box(self.x + x, self.y + y, self.width, self.height)


def bounding_box(boxes: Iterable[Box], points: Iterable[Point] = ()) -> Box:
    """Return the smallest box that contains all given boxes and points.

    >>> bounding_box([Box(0, 0, 10, 10)], [(25, 0)])
    Box(x=10.0, y=0.0, width=30.0, height=10.0)
    """
    corners = [(b.x + k * b.width, b.y + k * b.height) for b in boxes for k in (-0.5, 0.5)]
    xs, ys = zip(*corners, *points, strict=True)
    left, right, top, bottom = min(xs), max(xs), min(ys), max(ys)
    return Box((left + right) / 2, (top + bottom) / 2, right - left, bottom - top)


def round_corners(points: Sequence[Point], radius: float) -> tuple[Point, ...]:
    """Replace each corner of a polyline by points of a quadratic Bezier curve.

    The curve starts at most `radius` before the corner and not before the middle of a segment, so
    it stays inside the corner and the ends keep their directions.

    >>> len(round_corners([(0, 0), (50, 0), (50, 50)], 10)), round_corners([(0, 0), (9, 0)], 10)
    (11, ((0, 0), (9, 0)))
    """
    if len(points) < 3:
        return tuple(points)
    line = [points[0]]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        start = _move_toward(corner, before, min(radius, math.dist(before, corner) / 2))
        end = _move_toward(corner, after, min(radius, math.dist(after, corner) / 2))
        for step in range(_CORNER_STEPS + 1):  # de Casteljau's construction
            t = step / _CORNER_STEPS
            line.append(
                _interpolate(_interpolate(start, corner, t), _interpolate(corner, end, t), t)
            )
    line.append(points[-1])
    return tuple(line)


def compute_line_length(line: Sequence[Point]) -> float:
    """Return the length of a polyline.

    >>> compute_line_length([(0, 0), (3, 4), (3, 5)])
    6.0
    """
    return sum(math.dist(a, b) for a, b in pairwise(line))


def find_point_at(line: Sequence[Point], distance: float) -> Point:
    """Return the point at a given distance along a polyline, clamped to the ends of the line.

    >>> find_point_at([(0, 0), (10, 0), (10, 10)], 12)
    (10.0, 2.0)
    """
    left = max(distance, 0.0)
    for a, b in pairwise(line):
        step = math.dist(a, b)
        if step > 0 and left <= step:
            return _move_toward(a, b, left)
        left -= step
    return line[-1]


def shorten_line(line: Sequence[Point], cut: float) -> tuple[Point, ...]:
    """Shorten a polyline at its end by `cut` points, but to no less than half of its length.

    >>> shorten_line([(0, 0), (10, 0), (10, 10)], 4)
    ((0, 0), (10, 0), (10.0, 6.0))
    """
    end = max(compute_line_length(line) - cut, compute_line_length(line) / 2)
    distances = accumulate(math.dist(a, b) for a, b in pairwise(line))
    inner = (point for point, distance in zip(line[1:], distances, strict=True) if distance < end)
    return (line[0], *inner, find_point_at(line, end))


def sample_line(line: Sequence[Point], step: float) -> tuple[Point, ...]:
    """Return points along a polyline, equally spaced by about `step`, including both ends.

    >>> sample_line([(0, 0), (10, 0)], 5)
    ((0.0, 0.0), (5.0, 0.0), (10.0, 0.0))
    """
    points: list[Point] = []
    for a, b in pairwise(line):
        parts = max(1, math.ceil(math.dist(a, b) / step))
        points.extend(_interpolate(a, b, k / parts) for k in range(parts))
    return (*points, (float(line[-1][0]), float(line[-1][1])))


def overlap_length(edges: Sequence[tuple[str, str]], lines: Sequence[Sequence[Point]]) -> float:
    """Return the total length, in points, over which lines run too close to be told apart.

    Lines with a common start or end may be close near it, and any two lines may cross once at a
    steep angle.

    >>> edges = [("a", "b"), ("c", "d")]
    >>> overlap_length(edges, [[(0, 0), (100, 0)], [(0, 3), (100, 3)]])
    85.0
    >>> overlap_length(edges, [[(0, 0), (100, 0)], [(50, 50), (50, -50)]])
    0.0
    """
    samples = [sample_line(line, _STEP) for line in lines]
    cells: dict[tuple[int, int], list[tuple[int, float, float]]] = defaultdict(list)
    for number, points in enumerate(samples):
        for x, y in points:
            cells[int(x // _MIN_DISTANCE), int(y // _MIN_DISTANCE)].append((number, x, y))
    close: dict[tuple[int, int], set[Point]] = defaultdict(set)  # points of the first line
    for (column, row), members in cells.items():
        neighbors = (cells[key] for key in _list_neighbors(column, row) if key in cells)
        near = [entry for entries in neighbors for entry in entries]
        for number, x, y in members:
            for other, other_x, other_y in near:
                across, along = other_x - x, other_y - y  # math.hypot would take half of the time
                if number < other and across * across + along * along < _MIN_DISTANCE**2:
                    close[number, other].add((x, y))
    total = 0.0
    for (number, other), near_points in close.items():
        ends = [
            samples[number][-side] for side in (0, 1) if edges[number][side] == edges[other][side]
        ]
        distant = sum(all(math.dist(p, end) >= _NEAR_END for end in ends) for p in near_points)
        total += max(0.0, distant * _STEP - _CROSSING)
    return total


def _list_neighbors(column: int, row: int) -> list[tuple[int, int]]:
    """Return the positions of a grid cell and of the eight cells around it."""
    return [(column + i, row + j) for i in (-1, 0, 1) for j in (-1, 0, 1)]


def _move_toward(start: Point, goal: Point, distance: float) -> Point:
    """Return the point at a given distance from `start` on the line to `goal`."""
    total = math.dist(start, goal)
    return _interpolate(start, goal, distance / total if total > 0 else 0.0)


def _interpolate(start: Point, goal: Point, fraction: float) -> Point:
    """Return the point at a given fraction of the line from `start` to `goal`."""
    x, y = start
    return (x + (goal[0] - x) * fraction, y + (goal[1] - y) * fraction)
