"""Frames around the parts of a graph: each part has its own range from left to right.

Lengths are in points; y goes downwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from cgprimer.visualization.diagrams.diagram import Part
from cgprimer.visualization.diagrams.geometry import (
    Box,
    Point,
    Size,
    line_length,
    point_at,
    sample_line,
)
from cgprimer.visualization.diagrams.layout import Layout
from cgprimer.visualization.diagrams.text_layout import text_width
from cgprimer.visualization.diagrams.theme import DETAIL_SIZE, LINE_SPACING

PADDING = 16.0  #: between a frame and its vertices
_HEADER = DETAIL_SIZE * LINE_SPACING  # of a line of a frame's label
_ARROW = 28.0  # of a line that is seen on either side of a label between two frames
_BARRIER = "\0barrier"  # before the number of an invisible vertex

LayOut = Callable[
    [Mapping[str, Size], Sequence[tuple[str, str]], Sequence[Size | None]], Layout | None
]


def header_lines(part: Part) -> list[str]:
    """Return the label of a part, as it is written in the frame.

    >>> header_lines(Part("GPU 0: 60 % of the work", frozenset()))
    ['GPU 0', '60 % of the work']
    """
    return part.label.split(": ", 1)


def lay_out_parts(
    parts: Sequence[Part],
    lay_out: LayOut,
    sizes: Mapping[str, Size],
    edges: Sequence[tuple[str, str]],
    label_sizes: Sequence[Size | None],
) -> Layout | None:
    """Lay out a graph with frames around its parts; None if the parts cannot be kept separate.

    Where vertices of one part would stand below those of another, invisible vertices between the
    parts keep them separate.
    """
    found = lay_out(sizes, edges, label_sizes)
    framed = found and _add_frames(found, parts, edges)
    if framed is not None or found is None:
        return framed
    order, barriers = _add_barriers(parts, sizes, edges)
    found = lay_out(order, [*edges, *barriers], [*label_sizes, *(None for _ in barriers)])
    if found is None:
        return None
    count = len(edges)
    visible = replace(
        found,
        boxes={key: found.boxes[key] for key in sizes},
        routes=found.routes[:count],
        lines=found.lines[:count],
        labels=found.labels[:count],
    )
    return _add_frames(visible, parts, edges)


def _add_barriers(
    parts: Sequence[Part], sizes: Mapping[str, Size], edges: Sequence[tuple[str, str]]
) -> tuple[dict[str, Size], list[tuple[str, str]]]:
    """Return the vertices, with a barrier between parts, and the edges to and from barriers."""
    order: dict[str, Size] = {}
    barriers: list[tuple[str, str]] = []
    for number, part in enumerate(parts):
        inside = [(tail, head) for tail, head in edges if {tail, head} <= part.keys]
        sources = part.keys - {head for _, head in inside}
        sinks = part.keys - {tail for tail, _ in inside}
        keys = [key for key in sizes if key in part.keys]
        if number:
            barriers += [(f"{_BARRIER}{number}", key) for key in keys if key in sources]
        order |= {key: sizes[key] for key in keys}
        if number < len(parts) - 1:
            barrier = f"{_BARRIER}{number + 1}"
            order[barrier] = (1.0, 1.0)
            barriers += [(key, barrier) for key in keys if key in sinks]
    return order, barriers


def _add_frames(
    found: Layout, parts: Sequence[Part], edges: Sequence[tuple[str, str]]
) -> Layout | None:
    """Return a layout with room for frames; None if the ranges of parts overlap."""
    ends = []
    for part in parts:
        boxes = [found.boxes[key] for key in part.keys]
        if not boxes:
            return None
        left = min(box.x - box.width / 2 for box in boxes)
        right = max(box.x + box.width / 2 for box in boxes)
        header = max(text_width(line, DETAIL_SIZE, True) for line in header_lines(part))
        wider = max(0.0, header + PADDING - (right - left + 2 * PADDING)) / 2
        ends.append((left, right, wider + PADDING))
    if any(after[0] <= before[1] for before, after in pairwise(ends)):
        return None
    tears: list[tuple[float, float]] = []  # where, and how far everything to the right moves
    for number, (before, after) in enumerate(pairwise(ends)):
        across = [
            label.width
            for (tail, head), label in zip(edges, found.labels, strict=True)
            if label and tail in parts[number].keys and head in parts[number + 1].keys
        ]
        needed = before[2] + after[2] + max([_ARROW, *(wide + 2 * _ARROW for wide in across)])
        tears.append(((before[1] + after[0]) / 2, max(0.0, needed - (after[0] - before[1]))))
    rows = max(len(header_lines(part)) for part in parts)
    down = rows * _HEADER + 1.5 * PADDING
    first = ends[0][2] - ends[0][0]

    def moved(x: float) -> float:
        return x + first + sum(distance for where, distance in tears if x > where)

    def points(line: Sequence[Point]) -> tuple[Point, ...]:
        return tuple((moved(x), y + down) for x, y in line)

    lines = tuple(map(points, found.lines))
    height = found.height + down + PADDING
    frames = []
    for left, right, side in ends:
        a, b = moved(left) - side, moved(right) + side
        frames.append(Box((a + b) / 2, height / 2, b - a, height))
    return replace(
        found,
        boxes={
            key: replace(box, x=moved(box.x), y=box.y + down) for key, box in found.boxes.items()
        },
        routes=tuple(map(points, found.routes)),
        lines=lines,
        labels=tuple(
            label and _place_label(label, ends_of_edge, line, parts, frames)
            for label, ends_of_edge, line in zip(found.labels, edges, lines, strict=True)
        ),
        width=frames[-1].x + frames[-1].width / 2,
        height=height,
        frames=tuple(frames),
    )


def _place_label(
    label: Box,
    edge: tuple[str, str],
    line: Sequence[Point],
    parts: Sequence[Part],
    frames: list[Box],
) -> Box:
    """Return a label on its line: between two frames if the edge leads from one to another."""
    tail, head = (next(k for k, part in enumerate(parts) if key in part.keys) for key in edge)
    if tail == head:
        x, y = point_at(line, line_length(line) / 2)
    else:
        left, right = frames[tail], frames[tail + 1]
        middle = (left.x + left.width / 2 + right.x - right.width / 2) / 2
        x, y = min(sample_line(line, 4.0), key=lambda point: abs(point[0] - middle))
    return replace(label, x=x, y=y)
