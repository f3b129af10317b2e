"""Where lines of a picture cannot be told apart: they lie on top of each other."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from cgprimer.pictures.geometry import Point, sampled

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
    cells: dict[tuple[int, int], list[tuple[Point, int]]] = defaultdict(list)
    taken = [sampled(line, _STEP) for line in lines]
    for number, line in enumerate(taken):
        for point in line:
            cells[_cell(point)].append((point, number))
    close: Counter[tuple[int, int]] = Counter()
    for number, line in enumerate(taken):
        for point in line:
            x, y = _cell(point)
            near = {
                other
                for i in (-1, 0, 1)
                for j in (-1, 0, 1)
                for at, other in cells.get((x + i, y + j), ())
                if other > number and math.dist(point, at) < _APART
            }
            for other in near:
                if not _together(point, edges[number], edges[other], lines[number]):
                    close[number, other] += 1
    return sum(max(0.0, count * _STEP - _CROSSING) for count in close.values())


def _together(
    point: Point, edge: tuple[str, str], other: tuple[str, str], line: Sequence[Point]
) -> bool:
    """Tell whether the point lies close to an end that the two edges share."""
    ends = [line[0]] if edge[0] == other[0] else []
    ends += [line[-1]] if edge[1] == other[1] else []
    return any(math.dist(point, end) < _NEAR_END for end in ends)


def _cell(point: Point) -> tuple[int, int]:
    return (math.floor(point[0] / _APART), math.floor(point[1] / _APART))
