"""Places for edge labels: on their own line, clear of vertices and of each other.

Greedy: the labels with the shortest lines, which have the fewest places, choose first; each
takes the cheapest of a fixed list of places along its line. Deterministic; lengths in points.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from cgprimer.drawing.layout import Box, Point, Size
from cgprimer.drawing.routes import length, point_at, sampled

CLEARANCE = 2.0
_ARROW_ROOM = 14.0  # a label keeps this far from the head end of its line
_BESIDE = 2.0  # less than the penalty for lying over another line
_CELL = 120.0
_ROUNDS, _MANY = 8, 150  # rounds of choosing places, and edges beyond which there is one
_STEP = 8.0
_SHARES = tuple(0.5 + sign * k / 40 for k in range(17) for sign in (1, -1) if k or sign > 0)


@dataclass(slots=True)
class _Shelf:
    """Things by the square cells they touch, so that only neighbours are compared."""

    boxes: dict[tuple[int, int], list[Box]] = field(default_factory=lambda: defaultdict(list))
    points: dict[tuple[int, int], list[tuple[Point, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def add_box(self, box: Box) -> None:
        for cell in _cells(box):
            self.boxes[cell].append(box)

    def add_line(self, line: Sequence[Point], edge: int) -> None:
        for point in sampled(line, _STEP):
            cell = (math.floor(point[0] / _CELL), math.floor(point[1] / _CELL))
            self.points[cell].append((point, edge))

    def hits(self, box: Box) -> int:
        near = {id(b): b for cell in _cells(box) for b in self.boxes.get(cell, ())}
        return sum(box.overlaps(other, CLEARANCE) for other in near.values())

    def lines_under(self, box: Box, edge: int) -> int:
        near = (item for cell in _cells(box) for item in self.points.get(cell, ()))
        return len({other for point, other in near if other != edge and box.contains(point)})


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
    Box(x=50.0, y=0.0, width=20, height=10)
    """
    vertices = tuple(boxes)
    order = sorted(range(len(lines)), key=lambda e: (length(lines[e]), e))
    best = _round(lines, sizes, vertices, order)
    latest = best
    for _ in range(_ROUNDS if len(lines) <= _MANY else 0):
        if not best.conflicts:
            break
        first = [edge for edge in order if edge in set(latest.conflicts)]
        order = [*first, *(edge for edge in order if edge not in set(first))]
        latest = _round(lines, sizes, vertices, order)
        if len(latest.conflicts) < len(best.conflicts):
            best = latest
    return best


def _round(
    lines: Sequence[Sequence[Point]],
    sizes: Sequence[Size | None],
    boxes: tuple[Box, ...],
    order: Sequence[int],
) -> Placement:
    shelf = _Shelf()
    for box in boxes:
        shelf.add_box(box)
    for edge, line in enumerate(lines):
        shelf.add_line(line, edge)
    found: list[Box | None] = [None] * len(lines)
    conflicts: list[int] = []
    covered = 0
    for edge in order:
        size = sizes[edge]
        if size is None:
            continue
        best: tuple[float, Box] | None = None
        for penalty, box in _places(lines[edge], size):
            if best is not None and penalty >= best[0]:
                continue
            cost = penalty + 1000.0 * shelf.hits(box)
            if best is None or cost < best[0]:
                cost += 3.0 * shelf.lines_under(box, edge)
                if best is None or cost < best[0]:
                    best = (cost, box)
        assert best is not None  # _SHARES is not empty
        if best[0] >= 1000.0:
            conflicts.append(edge)
        covered += shelf.lines_under(best[1], edge) > 0
        found[edge] = best[1]
        shelf.add_box(best[1])
    return Placement(tuple(found), tuple(conflicts), covered)


def _places(line: Sequence[Point], size: Size) -> Iterator[tuple[float, Box]]:
    """Yield places along the line with a penalty: the middle is free, the arrow head dear.

    Where there is no good place on the line, a label touches it from above or below.
    """
    whole = length(line)
    for share in _SHARES:
        x, y = point_at(line, share * whole)
        for side in (0, 1, -1):
            box = Box(x, y + side * (size[1] / 2 + 2.0), *size)
            on_head = Box(*line[-1], 2 * _ARROW_ROOM, 2 * _ARROW_ROOM).overlaps(box)
            penalty = 4.0 * abs(share - 0.5) + (10.0 if on_head else 0.0)
            yield penalty + (_BESIDE if side else 0.0), box


def _cells(box: Box) -> Iterator[tuple[int, int]]:
    half_width, half_height = box.width / 2 + CLEARANCE, box.height / 2 + CLEARANCE
    for i in range(
        math.floor((box.x - half_width) / _CELL), math.floor((box.x + half_width) / _CELL) + 1
    ):
        for j in range(
            math.floor((box.y - half_height) / _CELL), math.floor((box.y + half_height) / _CELL) + 1
        ):
            yield (i, j)
