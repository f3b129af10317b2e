"""Which part of a picture a slide shows: all of it, or whole vertices around what is lit.

A graph that would have letters under 14 points is cut, but no vertex is: one that does not fit is
left out, and the sides say how many there are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cgprimer.pages.stepping.graph_places import FLAG, LABEL, LETTER, RING, Placed
from cgprimer.pictures.geometry import Box, Point, Size, frame, length, point_at, sampled
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
    more: tuple[int, ...]
    inner: tuple[float, float, float, float]

    def to(self, point: Point) -> Point:
        """From the picture's units to points on the slide."""
        return (point[0] - self.left) * self.scale, (point[1] - self.top) * self.scale


def window(place: Placed, room: Size, lit: Iterable[int] = (), near: Iterable[int] = ()) -> Window:
    """Choose what to show in a room of so many points.

    A window shows as many as it can of the vertices ``lit``, then of those ``near``, then of the
    others. Steps with the same ``lit`` and ``near`` get the same window.

    >>> boxes = tuple(Box(150.0 * k + 100, 50, 130, 70) for k in range(9))
    >>> chosen = window(Placed(boxes, (), (), (), 1400, 100), (400, 400), lit=[4])
    >>> chosen.shown.index(True), sum(chosen.shown), chosen.more
    (3, 2, (3, 4, 0, 0))
    """
    whole = extent(place)
    middle, size = (whole.x, whole.y), (whole.width, whole.height)
    fits = min(room[0] / size[0], room[1] / size[1])
    if fits >= READABLE:
        scale = min(fits, LARGEST)
        left, top = (m - r / scale / 2 for m, r in zip(middle, room, strict=True))
        shown = (True,) * len(place.boxes)
        return Window(left, top, scale, shown, (0, 0, 0, 0), (0.0, 0.0, *room))
    sides = [MARK if s * READABLE > r else 0.0 for s, r in zip(size, room, strict=True)]
    rooms = [(r - 2 * side) / READABLE for r, side in zip(room, sides, strict=True)]
    weights = np.ones(len(place.boxes))
    for which in (near, lit):  # one of a better kind is worth more than all others
        weights[list(which)] = weights.sum() + 1
    spans, starts, inside = [], [], []
    for axis, space in enumerate(rooms):
        span = _spans(place, axis)
        wide = span[:, 1] - span[:, 0] > space  # fills the window: better in part than not at all
        span[wide] = span[wide].mean(axis=1, keepdims=True) + np.array([-space / 2, space / 2])
        start = np.array([middle[axis] - space / 2])
        if space < size[axis]:  # a window may begin at a vertex, or so that it ends at one
            start = np.unique(np.round(np.concatenate([span[:, 0], span[:, 1] - space]), 3))
        begun = start[:, None]
        inside.append((span[:, 0] >= begun - _CLOSE) & (span[:, 1] <= begun + space + _CLOSE))
        spans.append(span)
        starts.append(start)
    score = (inside[0] * weights) @ inside[1].T.astype(float)
    best = np.unravel_index(int(np.argmax(score)), score.shape)
    kept = inside[0][best[0]] & inside[1][best[1]]
    corner, beyond = [0.0, 0.0], []
    for axis, (span, space) in enumerate(zip(spans, rooms, strict=True)):
        at = float(starts[axis][best[axis]])
        if space < size[axis]:
            at = float(span[kept, 0].min() + span[kept, 1].max() - space) / 2
        beyond += [at - span[:, 0], span[:, 1] - at - space]
        corner[axis] = at - sides[axis] / READABLE
    more = np.bincount(np.argmax(beyond, axis=0)[~kept], minlength=4)
    inner = (sides[0], sides[1], room[0] - sides[0], room[1] - sides[1])
    shown, left_out = tuple(kept.tolist()), tuple(more.tolist())
    return Window(corner[0], corner[1], READABLE, shown, left_out, inner)


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
        done += math.dist(a, b)
        if done > reach or not (left <= b[0] <= right and top <= b[1] <= bottom):
            break
        kept.append(b)
    return kept


def dashes(line: Sequence[Point], dash: float, gap: float) -> list[list[Point]]:
    """Cut a line into pieces of one length.

    >>> dashes([(0, 0), (30, 0)], 10, 5)
    [[(0.0, 0.0), (10.0, 0.0)], [(15.0, 0.0), (25.0, 0.0)]]
    """
    starts = np.arange(0.0, length(line) - dash + 1e-9, dash + gap).tolist()
    return [[point_at(line, at), point_at(line, at + dash)] for at in starts]


def extent(place: Placed) -> Box:
    """What is drawn, in all: vertices with rings and flags, edges and their numbers.

    >>> extent(Placed((Box(100, 100, 80, 40),), (), (), (), 200, 200))
    Box(x=92.0, y=100.0, width=112.0, height=56.0)
    """
    corners = np.stack([_spans(place, 0), _spans(place, 1)], axis=-1).reshape(-1, 2).tolist()
    points = [(x, y) for x, y in corners] + [point for line in place.lines for point in line]
    return frame((Box(*middle, *LABEL) for middle in place.labels), points)


def _spans(place: Placed, axis: int) -> NDArray[np.float64]:
    """From where to where a vertex goes along an axis, with its ring and its flag."""
    middles = np.array([(b.x, b.y)[axis] for b in place.boxes])
    halves = np.array([(b.width, b.height)[axis] / 2 for b in place.boxes])
    before = FLAG if axis == int(place.across) else _AROUND
    return np.stack([middles - halves - before, middles + halves + _AROUND], axis=1)
