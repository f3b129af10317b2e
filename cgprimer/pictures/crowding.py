"""Where lines of a picture cannot be told apart: they lie on top of each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cgprimer.pictures.geometry import Point, sampled

Array: TypeAlias = npt.NDArray[np.float64]

_APART = 7.0  # points between two lines that are seen as two
_STEP = 5.0
_CROSSING = 20.0  # the length over which two lines that cross steeply are close
_NEAR_END = 26.0  # lines that share a vertex come together before it


def crowded(edges: Sequence[tuple[str, str]], lines: Sequence[Sequence[Point]]) -> float:
    """The length in points over which lines run closer together than a reader can tell.

    Lines that begin or end at the same vertex may come together there, and any two may cross
    once at a steep angle.

    >>> edges = [("a", "b"), ("c", "d")]
    >>> crowded(edges, [[(0, 0), (100, 0)], [(0, 3), (100, 3)]])
    85.0
    >>> crowded(edges, [[(0, 0), (100, 0)], [(50, 50), (50, -50)]])
    0.0
    """
    if not lines:
        return 0.0
    taken = [np.array(sampled(line, _STEP)) for line in lines]
    points = np.concatenate(taken)
    owners = np.repeat(np.arange(len(taken)), [len(line) for line in taken])
    total = 0.0
    for number, line in enumerate(taken):
        around = (points >= line.min(axis=0) - _APART) & (points <= line.max(axis=0) + _APART)
        others = np.flatnonzero(around.all(axis=1) & (owners > number))
        near = _distances(line, points[others]) < _APART
        for other in np.unique(owners[others[near.any(axis=0)]]):
            close = line[near[:, owners[others] == other].any(axis=1)]
            for side in (0, 1):
                if edges[number][side] == edges[other][side]:
                    close = close[_distances(close, line[[-side]])[:, 0] >= _NEAR_END]
            total += max(0.0, len(close) * _STEP - _CROSSING)
    return total


def _distances(points: Array, others: Array) -> Array:
    apart = points[:, None] - others
    return np.asarray(np.hypot(apart[..., 0], apart[..., 1]))
