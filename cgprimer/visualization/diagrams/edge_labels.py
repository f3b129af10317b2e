"""Positions of edge labels that overlap neither vertices nor other labels and edges.

A label is at the middle of its edge if there is room; otherwise it moves along its edge, or above
or below it. Lengths are in points.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from cgprimer.visualization.diagrams.geometry import (
    Box,
    Point,
    compute_line_length,
    find_point_at,
    sample_line,
)
from cgprimer.visualization.diagrams.layout import Layout

_GAP = 4.0  # free points around a label
_STEP = 8.0  # points between samples of a line
_CELL = 48.0  # points, the size of a grid cell
_HEAD = 18.0  # points around an arrow head
_TOUCHING = 100.0  # cost of a label that touches something; a label that covers a line costs 1
_FRACTIONS = [0.5 + sign * k / 30 for k in range(13) for sign in (1, -1)]  # of the line
_QUICK = 5  # fractions per fraction that is tried if time matters
_SIDES = (0.0, 1.0, -1.0)  # on the line, below it, above it
_SIDE_COST = 0.5
_ROUNDS = 3
_Entry: TypeAlias = tuple[int, float, float, float, float]


class PlacedLabels(NamedTuple):
    """The positions of a layout's edge labels, and how many overlaps remain.

    Attributes:
        boxes: the box of the label of each edge; None for an edge without a label.
        touching: number of labels that touch a vertex or another label.
        covering: number of labels over the line of another edge or over an arrow head.
    """

    boxes: tuple[Box | None, ...]
    touching: int = 0
    covering: int = 0


def move_labels(
    layout: Layout, margin: float = 1.0, *, backward: bool = False, quick: bool = False
) -> PlacedLabels:
    """Move the edge labels of a layout to positions at which they overlap less.

    Labels may be outside of the layout by the margin. With `backward`, arrow heads are at the
    starts of lines. With `quick`, fewer positions are tried, in a tenth of the time.

    >>> lines = (((0, 30), (100, 30)), ((50, 0), (50, 60)))
    >>> labels = move_labels(Layout({}, lines, lines, (Box(50, 30, 20, 10), None), 1, 100, 60))
    >>> labels.boxes, labels.touching, labels.covering
    ((Box(x=66.6..., y=30.0, width=20, height=10), None), 0, 0)
    """
    labels, lines = list(layout.labels), layout.lines
    obstacles = [*layout.boxes.values(), *_split_frame_sides(layout.frames)]
    fixed, others = _BoxGrid(enumerate(obstacles)), _BoxGrid(enumerate(labels))
    samples = (
        (k, Box(*point, 0.0, 0.0))
        for k, line in enumerate(lines)
        for point in sample_line(line, _STEP * (_QUICK if quick else 1))
    )
    of_lines = _BoxGrid(samples)
    ends = (line[0 if backward else -1] for line in lines)
    heads = _BoxGrid((k, Box(*end, _HEAD, _HEAD)) for k, end in enumerate(ends))

    def compute_cost(number: int, box: Box, limit: float = math.inf) -> float:
        """Return the cost of a box for a label; stop counting at a cost of at least `limit`."""
        across = abs(box.x - layout.width / 2) + box.width / 2 > layout.width / 2 + margin
        along = abs(box.y - layout.height / 2) + box.height / 2 > layout.height / 2 + margin
        cost = _TOUCHING * (across or along)
        if cost < limit:  # another label can move away, a vertex cannot
            most = (limit - cost) / (2 * _TOUCHING)
            cost += 2 * _TOUCHING * fixed.count_near(box, most=most)
        if cost < limit:
            cost += _TOUCHING * others.count_near(box, number, most=(limit - cost) / _TOUCHING)
        if cost < limit:
            cost += of_lines.count_near(box, number, most=1) + heads.count_near(box, most=1)
        return cost

    costs = {k: compute_cost(k, box) for k, box in enumerate(labels) if box}
    candidates: dict[int, list[tuple[Box, float]]] = {}
    for _ in range(1 if quick else _ROUNDS):
        has_moved = False
        for number, start in costs.items():
            if not start or not (box := labels[number]):
                continue
            if number not in candidates:
                fractions = _FRACTIONS[::_QUICK] if quick else _FRACTIONS
                candidates[number] = list(_list_candidates(box, lines[number], fractions))
            best = _find_cheaper_box(candidates[number], start, partial(compute_cost, number))
            if best:
                others.move(number, box, best)
                labels[number], has_moved = best, True
        if not has_moved:
            break
        costs = {k: compute_cost(k, box) for k, box in enumerate(labels) if box}
    return PlacedLabels(
        tuple(labels),
        sum(cost >= _TOUCHING for cost in costs.values()),
        sum(cost % _TOUCHING > 0 for cost in costs.values()),
    )


def _find_cheaper_box(
    candidates: Iterable[tuple[Box, float]],
    least: float,
    compute_cost: Callable[[Box, float], float],
) -> Box | None:
    """Return the candidate with the lowest cost below `least`; None if no candidate is cheaper."""
    best = None
    for candidate, side in candidates:
        if least <= _SIDE_COST * abs(side):
            break  # later candidates cost at least as much
        cost = compute_cost(candidate, least) + _SIDE_COST * abs(side)
        if cost < least:
            best, least = candidate, cost
    return best


def _list_candidates(
    box: Box, line: Sequence[Point], fractions: Sequence[float]
) -> Iterator[tuple[Box, float]]:
    """Yield candidate boxes for a label along its edge, with the side of the edge for each box."""
    length = compute_line_length(line)
    on_line = [find_point_at(line, fraction * length) for fraction in fractions]
    for side in _SIDES:
        for x, y in on_line:
            yield Box(x, y + side * (box.height / 2 + _GAP), box.width, box.height), side


def _split_frame_sides(frames: Iterable[Box]) -> list[Box]:
    """Cover the left and right sides of frames with small boxes, which labels must avoid."""
    return [
        Box(box.x + side * box.width / 2, box.y - box.height / 2 + k * _STEP, 1.0, _STEP)
        for box in frames
        for side in (-1, 1)
        for k in range(int(box.height / _STEP) + 1)
    ]


class _BoxGrid:
    """A spatial index of boxes by the grid cells of their centers, for fast neighbor search.

    Args:
        boxes: pairs of an owner and its box; pairs without a box are omitted.
    """

    def __init__(self, boxes: Iterable[tuple[int, Box | None]]) -> None:
        present = [(owner, box) for owner, box in boxes if box]
        # Half of the largest box, with its gap: the cells of a small neighborhood contain it.
        self._across = max((box.width for _, box in present), default=0.0) / 2 + _GAP
        self._along = max((box.height for _, box in present), default=0.0) / 2 + _GAP
        self._width, self._height = max(_CELL, 2 * self._across), max(_CELL, 2 * self._along)
        self._cells: dict[tuple[int, int], list[_Entry]] = defaultdict(list)
        for owner, box in present:
            self._find_cell(box).append(_build_entry(owner, box))

    def move(self, owner: int, old: Box, new: Box) -> None:
        """Replace the box of an owner by another box of the same size."""
        self._find_cell(old).remove(_build_entry(owner, old))
        self._find_cell(new).append(_build_entry(owner, new))

    def count_near(self, box: Box, exclude: int = -1, *, most: float = math.inf) -> int:
        """Count the indexed boxes near a box, up to `most`; ignore boxes of the owner `exclude`."""
        x, y, half_width, half_height = box.x, box.y, box.width / 2, box.height / 2
        left = int((x - half_width - self._across) // self._width)
        right = int((x + half_width + self._across) // self._width)
        top = int((y - half_height - self._along) // self._height)
        bottom = int((y + half_height + self._along) // self._height)
        count = 0
        for column in range(left, right + 1):
            for row in range(top, bottom + 1):
                for owner, other_x, other_y, across, along in self._cells.get((column, row), ()):
                    if (
                        abs(other_x - x) < across + half_width
                        and abs(other_y - y) < along + half_height
                        and owner != exclude
                    ):
                        count += 1
                        if count >= most:
                            return count
        return count

    def _find_cell(self, box: Box) -> list[_Entry]:
        """Return the entries of the grid cell that contains the center of a box."""
        return self._cells[int(box.x // self._width), int(box.y // self._height)]


def _build_entry(owner: int, box: Box) -> _Entry:
    """Return the owner, the center and half the size of a box with the gap around it."""
    return owner, box.x, box.y, box.width / 2 + _GAP, box.height / 2 + _GAP
