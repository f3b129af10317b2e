"""Boxes and lines: polylines with rounded corners, cut, measured and sampled.

Pure geometry. Lengths are in points; x goes to the right, y downwards, as on a page.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

Point: TypeAlias = tuple[float, float]
Size: TypeAlias = tuple[float, float]

_CORNER_STEPS = 8


@dataclass(frozen=True, slots=True)
class Box:
    """An upright rectangle by its centre and size, in points."""

    x: float
    y: float
    width: float
    height: float


def frame(boxes: Iterable[Box], points: Iterable[Point] = ()) -> Box:
    """The smallest rectangle around boxes and points, of which there is at least one.

    >>> frame([Box(0, 0, 10, 10)], [(25, 0)])
    Box(x=10.0, y=0.0, width=30.0, height=10.0)
    """
    xs, ys = map(list, zip(*points, strict=True)) if (points := [*points]) else ([], [])
    for box in boxes:
        xs += [box.x - box.width / 2, box.x + box.width / 2]
        ys += [box.y - box.height / 2, box.y + box.height / 2]
    left, right, top, bottom = min(xs), max(xs), min(ys), max(ys)
    return Box((left + right) / 2, (top + bottom) / 2, right - left, bottom - top)


def rounded(points: Sequence[Point], radius: float) -> tuple[Point, ...]:
    """Replace every corner of a polyline by a quadratic Bezier curve, sampled.

    The curve leaves the line at most `radius` before the corner and never before the middle of
    a segment, so it stays inside the corner and the ends keep their directions.

    >>> len(rounded([(0, 0), (50, 0), (50, 50)], 10)), rounded([(0, 0), (9, 0)], 10)
    (11, ((0, 0), (9, 0)))
    """
    if len(points) < 3:
        return tuple(points)
    line = [points[0]]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        start = _toward(corner, before, min(radius, math.dist(before, corner) / 2))
        end = _toward(corner, after, min(radius, math.dist(after, corner) / 2))
        for step in range(_CORNER_STEPS + 1):
            t = step / _CORNER_STEPS
            a, b, c = (1 - t) ** 2, 2 * t * (1 - t), t * t
            line.append(
                (
                    a * start[0] + b * corner[0] + c * end[0],
                    a * start[1] + b * corner[1] + c * end[1],
                )
            )
    line.append(points[-1])
    return tuple(line)


def length(line: Sequence[Point]) -> float:
    """Return the length of a polyline.

    >>> length([(0, 0), (3, 4), (3, 5)])
    6.0
    """
    return sum(math.dist(a, b) for a, b in pairwise(line))


def point_at(line: Sequence[Point], distance: float) -> Point:
    """Return the point `distance` along the polyline, kept between its ends.

    >>> point_at([(0, 0), (10, 0), (10, 10)], 12)
    (10.0, 2.0)
    """
    left = max(distance, 0.0)
    for a, b in pairwise(line):
        step = math.dist(a, b)
        if step > 0 and left <= step:
            return _toward(a, b, left)
        left -= step
    return line[-1]


def shortened(line: Sequence[Point], cut: float) -> tuple[Point, ...]:
    """Cut `cut` points off the end of a polyline; at least half of its length is kept.

    >>> shortened([(0, 0), (10, 0), (10, 10)], 4)
    ((0, 0), (10, 0), (10.0, 6.0))
    """
    keep = max(length(line) - cut, length(line) / 2)
    kept = [line[0]]
    covered = 0.0
    for a, b in pairwise(line):
        step = math.dist(a, b)
        if covered + step >= keep:
            break
        covered += step
        kept.append(b)
    kept.append(point_at(line, keep))
    return tuple(kept)


def sampled(line: Sequence[Point], step: float) -> tuple[Point, ...]:
    """Return points about `step` apart along the polyline, both ends included.

    >>> sampled([(0, 0), (10, 0)], 5)
    ((0.0, 0.0), (5.0, 0.0), (10.0, 0.0))
    """
    points: list[Point] = []
    for a, b in pairwise(line):
        parts = max(1, math.ceil(math.dist(a, b) / step))
        points.extend(
            (a[0] + (b[0] - a[0]) * k / parts, a[1] + (b[1] - a[1]) * k / parts)
            for k in range(parts)
        )
    return (*points, (float(line[-1][0]), float(line[-1][1])))


def _toward(start: Point, goal: Point, distance: float) -> Point:
    whole = math.dist(start, goal)
    share = distance / whole if whole > 0 else 0.0
    return (start[0] + (goal[0] - start[0]) * share, start[1] + (goal[1] - start[1]) * share)
