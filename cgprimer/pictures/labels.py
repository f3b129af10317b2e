"""Places for edge labels: on their own line, clear of vertices and of each other.

Greedy: the labels with the shortest lines, which have the fewest places, choose first; each
takes the cheapest of a fixed list of places along its line. Deterministic; lengths in points.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cgprimer.pictures.layout import Box, Point, Size
from cgprimer.pictures.routes import length, point_at, sampled

Array: TypeAlias = npt.NDArray[np.float64]
Counts: TypeAlias = npt.NDArray[np.int_]

CLEARANCE = 2.0
_ARROW_ROOM = 14.0  # a label keeps this far from the head end of its line
_BESIDE = 2.0  # less than the penalty for lying over another line
_COVERING = 6.0
_NEAR = 10.0  # points to another line that make it unclear whose label it is
_TOUCHING = 1000.0
_ROUNDS, _MANY = 8, 150  # rounds of choosing places, and edges beyond which there is one
_STEP = 8.0
_SIDES = (0.0, 1.0, -1.0)  # on the line, above it, below it
_NEARBY = (1.0, 3.0, 3.0)  # for each of them
_SHARES = tuple(0.5 + sign * k / 40 for k in range(17) for sign in (1, -1) if k or sign > 0)


@dataclass(frozen=True, slots=True)
class Placement:
    """One box per edge (None where it has no label).

    `conflicts` are the edges whose labels touch a vertex or another label; `covered` counts the
    labels that lie over the line of another edge.
    """

    boxes: tuple[Box | None, ...]
    conflicts: tuple[int, ...]
    covered: int


def place_labels(
    lines: Sequence[Sequence[Point]], sizes: Sequence[Size | None], boxes: Iterable[Box]
) -> Placement:
    """Choose a place for the label of every edge.

    `lines` are the edges as drawn, `sizes` the labels' sizes (None for no label), `boxes` the
    vertices. A label lies over a vertex or another label only where none of its places is free;
    such labels choose first in the next round. Where that does not help either, they are named in
    `conflicts`, and the caller lays the diagram out with more room.

    >>> place_labels([[(0, 0), (100, 0)]], [(20, 10)], []).boxes[0]
    Box(x=50.0, y=0.0, width=20.0, height=10.0)
    """
    choices = _choices(lines, sizes, _rows(boxes))
    order = sorted(choices, key=lambda edge: (length(lines[edge]), edge))
    best = _round(len(lines), choices, order)
    latest = best
    for _ in range(_ROUNDS if len(lines) <= _MANY else 0):
        if not best.conflicts:
            break
        first = [edge for edge in order if edge in set(latest.conflicts)]
        order = [*first, *(edge for edge in order if edge not in set(first))]
        latest = _round(len(lines), choices, order)
        if len(latest.conflicts) < len(best.conflicts):
            best = latest
    return best


@dataclass(frozen=True, slots=True)
class _Choices:
    """The places for one label, one row each; what they cost does not depend on other labels.

    Attributes:
        boxes: of shape (places, 4): x, y, width and height.
        costs: of shape (places,).
        covered: of shape (places,): the lines of other edges that a place lies over.
    """

    boxes: Array
    costs: Array
    covered: Counts


def _choices(
    lines: Sequence[Sequence[Point]], sizes: Sequence[Size | None], vertices: Array
) -> dict[int, _Choices]:
    """The places of every label, by edge."""
    taken = [sampled(line, _STEP) for line in lines]
    points = np.array([point for line in taken for point in line]).reshape(-1, 2)
    owners = np.repeat(np.arange(len(lines)), [len(line) for line in taken])
    order = np.argsort(points[:, 0], kind="stable")
    points, owners = points[order], owners[order]
    room = np.array([0.0, 0.0, 2 * CLEARANCE, 2 * CLEARANCE])
    near_room = np.array([0.0, 0.0, 2 * CLEARANCE, 2 * _NEAR])
    found = {}
    for edge, size in enumerate(sizes):
        if size is not None:
            boxes, penalties = _places(lines[edge], size)
            covered = _covered(boxes + room, points, owners, edge)
            costs = penalties + _TOUCHING * _touching(boxes, vertices) + _COVERING * covered
            near = _covered(boxes + near_room, points, owners, edge) - covered
            costs += np.tile(_NEARBY, len(_SHARES)) * near
            found[edge] = _Choices(boxes, costs, covered)
    return found


def _round(count: int, choices: dict[int, _Choices], order: Sequence[int]) -> Placement:
    """Let the labels choose in that order, each the cheapest place that is left."""
    found: list[Box | None] = [None] * count
    placed = np.empty((len(order), 4))
    conflicts: list[int] = []
    covered = 0
    for number, edge in enumerate(order):
        mine = choices[edge]
        costs = mine.costs + _TOUCHING * _touching(mine.boxes, placed[:number])
        best = int(np.argmin(costs))
        if costs[best] >= _TOUCHING:
            conflicts.append(edge)
        covered += bool(mine.covered[best])
        placed[number] = mine.boxes[best]
        found[edge] = Box(*mine.boxes[best].tolist())
    return Placement(tuple(found), tuple(conflicts), covered)


def _places(line: Sequence[Point], size: Size) -> tuple[Array, Array]:
    """Places along the line with a penalty: the middle is free, the arrow head dear.

    Where there is no good place on the line, a label touches it from above or below.
    """
    whole = length(line)
    on_line = np.array([point_at(line, share * whole) for share in _SHARES])
    sides = np.array(_SIDES)
    boxes = np.empty((len(_SHARES) * len(sides), 4))
    boxes[:, 0] = np.repeat(on_line[:, 0], len(sides))
    boxes[:, 1] = (on_line[:, 1:] + sides * (size[1] / 2 + 2.0)).reshape(-1)
    boxes[:, 2:] = size
    head = np.array([[*line[-1], 2 * _ARROW_ROOM, 2 * _ARROW_ROOM]])
    aside = np.abs(np.array(_SHARES)[:, None] - 0.5)
    penalties = (4.0 * aside + _BESIDE * np.abs(sides)).reshape(-1)
    return boxes, penalties + 10.0 * _touching(boxes, head, 0.0)


def _rows(boxes: Iterable[Box]) -> Array:
    return np.array([(b.x, b.y, b.width, b.height) for b in boxes], dtype=float).reshape(-1, 4)


def _touching(boxes: Array, others: Array, gap: float = CLEARANCE) -> Counts:
    """For each box the number of others that come closer than the gap."""
    apart = 2 * np.abs(boxes[:, None, :2] - others[None, :, :2])
    room = boxes[:, None, 2:] + others[None, :, 2:] + 2 * gap
    found: Counts = (apart < room).all(axis=2).sum(axis=1)
    return found


def _covered(boxes: Array, points: Array, owners: Counts, own: int) -> Counts:
    """For each box the number of different owners, but for its own, of the points inside.

    Points are sorted by x, so that those in the column of a box stand side by side.
    """
    half = boxes[:, 2] / 2
    first = np.searchsorted(points[:, 0], boxes[:, 0] - half, side="right")
    count = np.searchsorted(points[:, 0], boxes[:, 0] + half) - first
    count = np.maximum(count, 0)
    which = np.repeat(np.arange(len(boxes)), count)
    begun = np.repeat(np.cumsum(count) - count, count)
    near = np.arange(len(which)) - begun + np.repeat(first, count)
    inside = 2 * np.abs(points[near, 1] - boxes[which, 1]) < boxes[which, 3]
    inside &= owners[near] != own
    most = int(owners.max(initial=0)) + 1
    pairs = np.unique(which[inside] * most + owners[near[inside]])
    return np.bincount(pairs // most, minlength=len(boxes))
