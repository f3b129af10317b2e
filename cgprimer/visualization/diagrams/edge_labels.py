"""Labels of edges: what they touch or cover, and better places along their line for those that do.

A label stands on the middle of its edge where that is free; otherwise it slides along its line, or
stands beside it. Lengths are in points.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cgprimer.visualization.diagrams.geometry import Array, Box, line_length, point_at, sample_line
from cgprimer.visualization.diagrams.layout import Layout

_GAP = 4.0  # points that are free around a label
_STEP = 8.0
_CELL = 48.0
_HEAD = 18.0  # around an arrow head
_TOUCHING = 100.0  # a label that touches something is worse than one that covers lines
_SHARES = [0.5 + sign * k / 30 for k in range(13) for sign in (1, -1)]  # of the line's length
_SIDES = (0.0, 1.0, -1.0)  # on the line, below it, above it
_BESIDE = 0.5
_ROUNDS = 3


class PlacedLabels(NamedTuple):
    """Where labels of edges stand."""

    boxes: tuple[Box | None, ...]  # one per edge; None where it has no label
    touching: int = 0  # labels that touch a vertex or another label
    covering: int = 0  # labels over the line of another edge or over an arrow head


def move_labels(layout: Layout, margin: float = 1.0, *, backward: bool = False) -> PlacedLabels:
    """Move the labels of a layout that touch or cover something, if that helps.

    They may stand beyond the layout's frame as far as the margin. With `backward` the arrow heads
    are at the beginnings of lines.

    >>> lines = (((0, 30), (100, 30)), ((50, 0), (50, 60)))
    >>> labels = move_labels(Layout({}, lines, lines, (Box(50, 30, 20, 10), None), 1, 100, 60))
    >>> labels.boxes, labels.touching, labels.covering
    ((Box(x=66.6..., y=30.0, width=20.0, height=10.0), None), 0, 0)
    """
    labels, lines = layout.labels, layout.lines
    obstacles = [*layout.boxes.values(), *_split_frame_sides(layout.frames)]
    rows, fixed = _box_rows(labels), _BoxGrid(_box_rows(obstacles))
    taken = [sample_line(line, _STEP) for line in lines]
    points = np.array([(*point, 0.0, 0.0) for line in taken for point in line]).reshape(-1, 4)
    owners = np.repeat(np.arange(len(lines)), [len(line) for line in taken])
    others, of_lines = _BoxGrid(rows), _BoxGrid(points, owners)

    whole = np.array([layout.width / 2, layout.height / 2])  # a label stays inside
    ends = [line[0 if backward else -1] for line in lines]
    heads = _BoxGrid(np.array([(*end, _HEAD, _HEAD) for end in ends]).reshape(-1, 4))

    def costs(number: int, places: Array) -> Array:
        # Another label may move out of the way, a vertex does not.
        touched = others.count_near(places, number) + 2 * fixed.count_near(places)
        covered = (of_lines.count_near(places, number) > 0) + 1.0 * (heads.count_near(places) > 0)
        beyond = (np.abs(places[:, :2] - whole) + places[:, 2:] / 2 > whole + margin).any(axis=1)
        return np.asarray(_TOUCHING * (touched + beyond) + covered, dtype=float)

    shown = [number for number, box in enumerate(labels) if box]
    found = {number: float(costs(number, rows[[number]])[0]) for number in shown}
    for _ in range(_ROUNDS):
        moved = False
        for number in [number for number in shown if found[number]]:
            places = np.tile(rows[number], (len(_SIDES) * len(_SHARES), 1))
            line, far = lines[number], line_length(lines[number])
            on_line = [point_at(line, share * far) for share in _SHARES]
            places[:, :2] = np.tile(on_line, (len(_SIDES), 1))
            aside = np.repeat(_SIDES, len(_SHARES))
            places[:, 1] += aside * (places[:, 3] / 2 + _GAP)
            cost = costs(number, places) + _BESIDE * np.abs(aside)
            best = int(np.argmin(cost))
            if cost[best] < found[number]:
                rows[number], moved = places[best], True
                others = _BoxGrid(rows)
        if not moved:
            break
        found = {number: float(costs(number, rows[[number]])[0]) for number in shown}
    return PlacedLabels(
        tuple(Box(*row) if box else None for row, box in zip(rows.tolist(), labels, strict=True)),
        sum(cost >= _TOUCHING for cost in found.values()),
        sum(cost % _TOUCHING > 0 for cost in found.values()),
    )


def _split_frame_sides(frames: Iterable[Box]) -> list[Box]:
    """Return small boxes along the left and right sides of frames."""
    return [
        Box(box.x + side * box.width / 2, box.y - box.height / 2 + k * _STEP, 1.0, _STEP)
        for box in frames
        for side in (-1, 1)
        for k in range(int(box.height / _STEP) + 1)
    ]


def _box_rows(boxes: Iterable[Box | None]) -> Array:
    missing = (math.nan,) * 4  # touches nothing
    rows = [(b.x, b.y, b.width, b.height) if b else missing for b in boxes]
    return np.array(rows, dtype=float).reshape(-1, 4)


class _BoxGrid:
    """Boxes by the cells that their middles are in: what is near is found without asking all.

    Args:
        rows: middle, width and height of each; nan touches nothing.
        owners: whose they are; each its own unless given.
    """

    def __init__(self, rows: Array, owners: npt.NDArray[np.int_] | None = None) -> None:
        there = np.flatnonzero(~np.isnan(rows[:, 0]))
        cells = np.floor(rows[there, :2] / _CELL).astype(int)
        order = np.lexsort((cells[:, 1], cells[:, 0]))
        self.rows, self.keys = rows[there[order]], _cell_keys(*cells[order].T)
        self.owners = there[order] if owners is None else owners[there[order]]
        self.reach = self.rows[:, 2:].max(axis=0, initial=0.0) / 2 + _GAP

    def count_near(self, places: Array, exclude: int = -1) -> npt.NDArray[np.int_]:
        """For each place how many come closer to it than the gap, one owner's apart."""
        around = places[:, 2:] / 2 + self.reach
        first, last = (np.floor((places[:, :2] + s * around) / _CELL).astype(int) for s in (-1, 1))
        columns = first[:, :1] + np.arange((last - first)[:, 0].max() + 1)
        begin = np.searchsorted(self.keys, _cell_keys(columns, first[:, 1:]))
        end = np.searchsorted(self.keys, _cell_keys(columns, last[:, 1:]), side="right")
        many = np.where(columns <= last[:, :1], end - begin, 0).ravel()
        place = np.repeat(np.arange(len(places)).repeat(columns.shape[1]), many)
        one = np.arange(many.sum()) + np.repeat(begin.ravel() - many.cumsum() + many, many)
        apart = 2 * np.abs(places[place, :2] - self.rows[one, :2])
        room = places[place, 2:] + self.rows[one, 2:] + 2 * _GAP
        close = (apart < room).all(axis=1) & (self.owners[one] != exclude)
        return np.bincount(place[close], minlength=len(places))


def _cell_keys(x: npt.NDArray[np.int_], y: npt.NDArray[np.int_]) -> npt.NDArray[np.int_]:
    """Cells as numbers in the order of their columns."""
    return np.asarray(x * 2**32 + y)
