"""Positions of edge labels that overlap neither vertices nor other labels and edges.

A label is at the middle of its edge if there is room; otherwise it moves along its edge, or above
or below it. Lengths are in points.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cgprimer.visualization.diagrams.geometry import (
    Array,
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
_SIDES = (0.0, 1.0, -1.0)  # on the line, below it, above it
_SIDE_COST = 0.5
_ROUNDS = 3


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


def move_labels(layout: Layout, margin: float = 1.0, *, backward: bool = False) -> PlacedLabels:
    """Move the edge labels of a layout to positions at which they overlap less.

    Labels may be outside of the layout by the margin. With `backward`, arrow heads are at the
    starts of lines.

    >>> lines = (((0, 30), (100, 30)), ((50, 0), (50, 60)))
    >>> labels = move_labels(Layout({}, lines, lines, (Box(50, 30, 20, 10), None), 1, 100, 60))
    >>> labels.boxes, labels.touching, labels.covering
    ((Box(x=66.6..., y=30.0, width=20.0, height=10.0), None), 0, 0)
    """
    labels, lines = layout.labels, layout.lines
    obstacles = [*layout.boxes.values(), *_split_frame_sides(layout.frames)]
    rows, fixed = _build_box_array(labels), _BoxGrid(_build_box_array(obstacles))
    samples = [sample_line(line, _STEP) for line in lines]
    points = np.array([(*point, 0.0, 0.0) for line in samples for point in line]).reshape(-1, 4)
    owners = np.repeat(np.arange(len(lines)), [len(line) for line in samples])
    others, of_lines = _BoxGrid(rows), _BoxGrid(points, owners)

    half = np.array([layout.width / 2, layout.height / 2])
    ends = [line[0 if backward else -1] for line in lines]
    heads = _BoxGrid(np.array([(*end, _HEAD, _HEAD) for end in ends]).reshape(-1, 4))

    def compute_costs(number: int, places: Array) -> Array:
        """Return the cost of each candidate box for the label with the given index."""
        # Another label can move away, a vertex cannot.
        touched = others.count_near(places, number) + 2 * fixed.count_near(places)
        covered = (of_lines.count_near(places, number) > 0) + 1.0 * (heads.count_near(places) > 0)
        outside = (np.abs(places[:, :2] - half) + places[:, 2:] / 2 > half + margin).any(axis=1)
        return np.asarray(_TOUCHING * (touched + outside) + covered, dtype=float)

    shown = [number for number, box in enumerate(labels) if box]
    costs = {number: float(compute_costs(number, rows[[number]])[0]) for number in shown}
    for _ in range(_ROUNDS):
        has_moved = False
        for number in [number for number in shown if costs[number]]:
            places, sides = _list_candidate_boxes(rows[number], lines[number])
            cost = compute_costs(number, places) + _SIDE_COST * np.abs(sides)
            best = int(np.argmin(cost))
            if cost[best] < costs[number]:
                rows[number], has_moved = places[best], True
                others = _BoxGrid(rows)
        if not has_moved:
            break
        costs = {number: float(compute_costs(number, rows[[number]])[0]) for number in shown}
    return PlacedLabels(
        tuple(Box(*row) if box else None for row, box in zip(rows.tolist(), labels, strict=True)),
        sum(cost >= _TOUCHING for cost in costs.values()),
        sum(cost % _TOUCHING > 0 for cost in costs.values()),
    )


def _list_candidate_boxes(row: Array, line: Sequence[Point]) -> tuple[Array, Array]:
    """List candidate boxes for a label along its edge, and the side of the edge for each box."""
    boxes = np.tile(row, (len(_SIDES) * len(_FRACTIONS), 1))
    length = compute_line_length(line)
    on_line = [find_point_at(line, fraction * length) for fraction in _FRACTIONS]
    boxes[:, :2] = np.tile(on_line, (len(_SIDES), 1))
    sides = np.repeat(_SIDES, len(_FRACTIONS))
    boxes[:, 1] += sides * (boxes[:, 3] / 2 + _GAP)
    return boxes, sides


def _split_frame_sides(frames: Iterable[Box]) -> list[Box]:
    """Cover the left and right sides of frames with small boxes, which labels must avoid."""
    return [
        Box(box.x + side * box.width / 2, box.y - box.height / 2 + k * _STEP, 1.0, _STEP)
        for box in frames
        for side in (-1, 1)
        for k in range(int(box.height / _STEP) + 1)
    ]


def _build_box_array(boxes: Iterable[Box | None]) -> Array:
    """Stack the centers, widths and heights of boxes into an array; a None box becomes nan."""
    missing = (math.nan,) * 4  # a box of nan touches no other box
    rows = [(b.x, b.y, b.width, b.height) if b else missing for b in boxes]
    return np.array(rows, dtype=float).reshape(-1, 4)


class _BoxGrid:
    """A spatial index of boxes by the grid cells of their centers, for fast neighbor search.

    Args:
        rows: center, width and height of each box; boxes of nan are omitted.
        owners: index of the owner of each box; the index of the box unless given.
    """

    def __init__(self, rows: Array, owners: npt.NDArray[np.int_] | None = None) -> None:
        present = np.flatnonzero(~np.isnan(rows[:, 0]))
        cells = np.floor(rows[present, :2] / _CELL).astype(int)
        order = np.lexsort((cells[:, 1], cells[:, 0]))
        self.rows, self.keys = rows[present[order]], _compute_cell_keys(*cells[order].T)
        self.owners = present[order] if owners is None else owners[present[order]]
        self.reach = self.rows[:, 2:].max(axis=0, initial=0.0) / 2 + _GAP

    def count_near(self, places: Array, exclude: int = -1) -> npt.NDArray[np.int_]:
        """Count the indexed boxes near each given box, but ignore boxes of the edge `exclude`."""
        around = places[:, 2:] / 2 + self.reach
        first, last = (np.floor((places[:, :2] + s * around) / _CELL).astype(int) for s in (-1, 1))
        columns = first[:, :1] + np.arange((last - first)[:, 0].max() + 1)
        begin = np.searchsorted(self.keys, _compute_cell_keys(columns, first[:, 1:]))
        end = np.searchsorted(self.keys, _compute_cell_keys(columns, last[:, 1:]), side="right")
        counts = np.where(columns <= last[:, :1], end - begin, 0).ravel()
        place = np.repeat(np.arange(len(places)).repeat(columns.shape[1]), counts)
        offsets = np.repeat(begin.ravel() - counts.cumsum() + counts, counts)
        neighbor = np.arange(counts.sum()) + offsets
        distance = 2 * np.abs(places[place, :2] - self.rows[neighbor, :2])
        limit = places[place, 2:] + self.rows[neighbor, 2:] + 2 * _GAP
        close = (distance < limit).all(axis=1) & (self.owners[neighbor] != exclude)
        return np.bincount(place[close], minlength=len(places))


def _compute_cell_keys(x: npt.NDArray[np.int_], y: npt.NDArray[np.int_]) -> npt.NDArray[np.int_]:
    """Encode the coordinates of grid cells as integers that sort by column, then by row."""
    return np.asarray(x * 2**32 + y)
