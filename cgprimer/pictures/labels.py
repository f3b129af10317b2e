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

from cgprimer.pictures.geometry import Array, Box, length, point_at, sampled
from cgprimer.pictures.layout import Layout

_GAP = 2.0  # points that are free around a label
_STEP = 8.0
_HEAD = 18.0  # around an arrow head
_TOUCHING = 100.0  # a label that touches something is worse than one that covers lines
_SHARES = [0.5 + sign * k / 30 for k in range(13) for sign in (1, -1)]  # of the line's length
_SIDES = (0.0, 1.0, -1.0)  # on the line, below it, above it
_BESIDE = 0.5
_ROUNDS = 3


class Labels(NamedTuple):
    """Where labels of edges stand."""

    boxes: tuple[Box | None, ...]  # one per edge; None where it has no label
    touching: int = 0  # labels that touch a vertex or another label
    covering: int = 0  # labels over the line of another edge or over an arrow head


def free_labels(layout: Layout, margin: float = 1.0) -> Labels:
    """Move the labels of a layout that touch or cover something, if that helps.

    They may stand beyond the layout's frame as far as the margin.

    >>> lines = (((0, 30), (100, 30)), ((50, 0), (50, 60)))
    >>> free_labels(Layout({}, lines, lines, (Box(50, 30, 20, 10), None), 1, 100, 60))
    Labels(boxes=(Box(x=63.3..., y=30.0, width=20.0, height=10.0), None), touching=0, covering=0)
    """
    labels, lines = layout.labels, layout.lines
    rows, fixed = _rows(labels), _rows(layout.boxes.values())
    taken = [sampled(line, _STEP) for line in lines]
    points = np.array([point for line in taken for point in line]).reshape(-1, 2)
    owners = np.repeat(np.arange(len(lines)), [len(line) for line in taken])

    whole = np.array([layout.width / 2, layout.height / 2])  # a label stays inside
    heads = np.array([(*line[-1], _HEAD, _HEAD) for line in lines]).reshape(-1, 4)

    def costs(number: int, places: Array) -> Array:
        # Another label may move out of the way, a vertex does not.
        touched = _near(places, np.delete(rows, number, axis=0)).sum(axis=1)
        touched += 2 * _near(places, fixed).sum(axis=1)
        least, most = places[:, :2].min(axis=0), places[:, :2].max(axis=0)
        within = np.abs(points - (least + most) / 2) <= (most - least) / 2 + places[0, 2:]
        foreign = points[within.all(axis=1) & (owners != number)]
        covered = _near(places, np.pad(foreign, ((0, 0), (0, 2)))).any(axis=1)
        on_heads = _near(places, heads).any(axis=1)
        beyond = (np.abs(places[:, :2] - whole) + places[:, 2:] / 2 > whole + margin).any(axis=1)
        return np.asarray(_TOUCHING * (touched + beyond) + covered + on_heads, dtype=float)

    shown = [number for number, box in enumerate(labels) if box]
    found = {number: float(costs(number, rows[[number]])[0]) for number in shown}
    for _ in range(_ROUNDS):
        moved = False
        for number in [number for number in shown if found[number]]:
            places = np.tile(rows[number], (len(_SIDES) * len(_SHARES), 1))
            line, far = lines[number], length(lines[number])
            on_line = [point_at(line, share * far) for share in _SHARES]
            places[:, :2] = np.tile(on_line, (len(_SIDES), 1))
            aside = np.repeat(_SIDES, len(_SHARES))
            places[:, 1] += aside * (places[:, 3] / 2 + _GAP)
            cost = costs(number, places) + _BESIDE * np.abs(aside)
            best = int(np.argmin(cost))
            if cost[best] < found[number]:
                rows[number], moved = places[best], True
        if not moved:
            break
        found = {number: float(costs(number, rows[[number]])[0]) for number in shown}
    return Labels(
        tuple(Box(*row) if box else None for row, box in zip(rows.tolist(), labels, strict=True)),
        sum(cost >= _TOUCHING for cost in found.values()),
        sum(cost % _TOUCHING > 0 for cost in found.values()),
    )


def _rows(boxes: Iterable[Box | None]) -> Array:
    missing = (math.nan,) * 4  # touches nothing
    rows = [(b.x, b.y, b.width, b.height) if b else missing for b in boxes]
    return np.array(rows, dtype=float).reshape(-1, 4)


def _near(boxes: Array, others: Array) -> npt.NDArray[np.bool_]:
    """For each box and each of the others whether they come closer than the gap."""
    apart = 2 * np.abs(boxes[:, None, :2] - others[None, :, :2])
    room = boxes[:, None, 2:] + others[None, :, 2:] + 2 * _GAP
    return np.asarray((apart < room).all(axis=2))
