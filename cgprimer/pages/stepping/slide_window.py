"""Which part of a picture a slide shows: all of it, or whole vertices around what is lit.

A graph that would have letters under 14 points is cut, but no vertex is: one that does not fit is
left out, and the sides say how many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cgprimer.pages.stepping.graph_places import FLAG, LABEL, LETTER, RING, Placed
from cgprimer.pictures.geometry import Point, Size, length, point_at, sampled
from cgprimer.pictures.theme import READABLE_SIZE

READABLE = READABLE_SIZE / LETTER  #: the smallest scale of a picture, text at 14 points
LARGEST = 1.2
MARK = 24.0  # points at a side where there is more
_CLOSE = 0.01  # units
_AROUND = RING + 3.0  # the ring of a vertex that is lit


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a picture, drawn ``scale`` times as large.

    Attributes:
        left, top: the picture's point that comes to (0, 0); in the picture's units.
        scale: points per unit.
        shown: for each vertex, if it is shown; whole or not at all.
        more: how many vertices are left out to the left, to the right, above and below.
        inner: where vertices may stand: left, top, right and bottom; in points.
    """

    left: float
    top: float
    scale: float
    shown: tuple[bool, ...]
    more: tuple[int, int, int, int]
    inner: tuple[float, float, float, float]

    def to(self, point: Point) -> Point:
        """From the picture's units to points on the slide."""
        return (point[0] - self.left) * self.scale, (point[1] - self.top) * self.scale


def window(place: Placed, room: Size, lit: Iterable[int] = (), near: Iterable[int] = ()) -> Window:
    """Choose what to show in a room of so many points.

    A window shows as many as it can of the vertices ``lit``, then of those ``near``, then of the
    others. Steps with the same ``lit`` and ``near`` get the same window.

    >>> from cgprimer.pictures.geometry import Box
    >>> boxes = tuple(Box(150.0 * k + 100, 50, 130, 70) for k in range(9))
    >>> chosen = window(Placed(boxes, (), (), (), 1400, 100), (400, 400), lit=[4])
    >>> chosen.shown.index(True), sum(chosen.shown), chosen.more
    (3, 2, (3, 4, 0, 0))
    """
    low, high = extent(place)
    size = (high[0] - low[0], high[1] - low[1])
    fits = min(room[0] / size[0], room[1] / size[1])
    if fits >= READABLE:
        scale = min(fits, LARGEST)
        left, top = ((a + b - r / scale) / 2 for a, b, r in zip(low, high, room, strict=True))
        whole = (True,) * len(place.boxes)
        return Window(left, top, scale, whole, (0, 0, 0, 0), (0.0, 0.0, *room))
    sides = [MARK if s * READABLE > r else 0.0 for s, r in zip(size, room, strict=True)]
    rooms = [(r - 2 * side) / READABLE for r, side in zip(room, sides, strict=True)]
    spans = [_narrowed(_spans(place, axis), rooms[axis]) for axis in (0, 1)]
    weights = np.ones(len(place.boxes))
    for which in (near, lit):  # one of a better kind is worth more than all others
        weights[list(which)] = weights.sum() + 1
    starts, inside = [], []
    for span, space, ends in zip(spans, rooms, zip(low, high, strict=True), strict=True):
        start = _starts(span, space, ends)
        starts.append(start)
        before, after = span[:, 0][None, :], span[:, 1][None, :]
        begun = start[:, None]
        inside.append((before >= begun - _CLOSE) & (after <= begun + space + _CLOSE))
    score = (inside[0] * weights) @ inside[1].T.astype(float)
    a, b = np.unravel_index(int(np.argmax(score)), score.shape)
    shown = inside[0][a] & inside[1][b]
    corner = []
    for span, start, space, whole_size in zip(
        spans, (starts[0][a], starts[1][b]), rooms, size, strict=True
    ):
        middle = (span[shown, 0].min() + span[shown, 1].max() - space) / 2 if shown.any() else 0.0
        corner.append(float(middle if space < whole_size and shown.any() else start))
    more = [0, 0, 0, 0]
    for k in np.flatnonzero(~shown):
        beyond = [
            corner[0] - spans[0][k, 0],
            spans[0][k, 1] - corner[0] - rooms[0],
            corner[1] - spans[1][k, 0],
            spans[1][k, 1] - corner[1] - rooms[1],
        ]
        more[int(np.argmax(beyond))] += 1
    return Window(
        corner[0] - sides[0] / READABLE,
        corner[1] - sides[1] / READABLE,
        READABLE,
        tuple(bool(s) for s in shown),
        (more[0], more[1], more[2], more[3]),
        (sides[0], sides[1], room[0] - sides[0], room[1] - sides[1]),
    )


def way_out(window: Window, line: Sequence[Point], most: float) -> list[Point]:
    """The part of a line, from its first point on, that stays inside; at most so many points long.

    The line is in points on the slide; what is given back ends before it comes to another vertex
    that is left out.

    >>> inner = (0.0, 0.0, 100.0, 100.0)
    >>> way_out(Window(0, 0, 1, (), (0, 0, 0, 0), inner), [(50, 50), (50, 200)], 90)[-1]
    (50.0, 100.0)
    """
    left, top, right, bottom = window.inner
    reach = min(length(line) - 14.0, most)
    kept: list[Point] = [line[0]]
    done = 0.0
    for a, b in pairwise(sampled(line, 2.0)):
        done += float(np.hypot(b[0] - a[0], b[1] - a[1]))
        if done > reach or not (left <= b[0] <= right and top <= b[1] <= bottom):
            break
        kept.append(b)
    return kept


def dashes(line: Sequence[Point], dash: float, gap: float) -> list[list[Point]]:
    """Cut a line into pieces of one length.

    >>> dashes([(0, 0), (30, 0)], 10, 5)
    [[(0.0, 0.0), (10.0, 0.0)], [(15.0, 0.0), (25.0, 0.0)]]
    """
    found, at, whole = [], 0.0, length(line)
    while at + dash <= whole + 1e-9:
        found.append([point_at(line, at), point_at(line, at + dash)])
        at += dash + gap
    return found


def extent(place: Placed) -> tuple[Point, Point]:
    """The corners of all that is drawn: vertices with rings and flags, edges and their numbers.

    >>> from cgprimer.pictures.geometry import Box
    >>> extent(Placed((Box(100, 100, 80, 40),), (), (), (), 200, 200))
    ((36.0, 72.0), (148.0, 128.0))
    """
    low, high = [], []
    for axis, half in ((0, LABEL[0] / 2), (1, LABEL[1] / 2)):
        span = _spans(place, axis)
        along = [point[axis] for line in place.lines for point in line]
        numbers = [point[axis] for point in place.labels]
        low.append(min([span[:, 0].min(), *along, *(n - half for n in numbers)]))
        high.append(max([span[:, 1].max(), *along, *(n + half for n in numbers)]))
    return (float(low[0]), float(low[1])), (float(high[0]), float(high[1]))


def _spans(place: Placed, axis: int) -> NDArray[np.float64]:
    """From where to where a vertex goes along an axis, with its ring and its flag."""
    middles = np.array([(b.x, b.y)[axis] for b in place.boxes])
    halves = np.array([(b.width, b.height)[axis] / 2 for b in place.boxes])
    before = FLAG if axis == int(place.across) else _AROUND
    return np.stack([middles - halves - before, middles + halves + _AROUND], axis=1)


def _narrowed(spans: NDArray[np.float64], space: float) -> NDArray[np.float64]:
    """What is wider than a window fills it: better in part than not at all."""
    middles = spans.mean(axis=1)
    wide = np.stack([middles - space / 2, middles + space / 2], axis=1)
    found: NDArray[np.float64] = np.where((spans[:, 1] - spans[:, 0] > space)[:, None], wide, spans)
    return found


def _starts(
    spans: NDArray[np.float64], space: float, ends: tuple[float, float]
) -> NDArray[np.float64]:
    """Where a window may begin: at a vertex, or so that it ends at one."""
    if space >= ends[1] - ends[0]:
        return np.array([(sum(ends) - space) / 2])
    return np.unique(np.round(np.concatenate([spans[:, 0], spans[:, 1] - space]), 3))
