"""Frames around the parts of a graph, next to each other from left to right.

Lengths are in points; y increases downwards.
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
    compute_line_length,
    find_point_at,
    sample_line,
)
from cgprimer.visualization.diagrams.layout import Layout
from cgprimer.visualization.diagrams.text_layout import measure_text
from cgprimer.visualization.diagrams.theme import DETAIL_SIZE, LINE_SPACING

PADDING = 16.0  #: between a frame and its vertices
_HEADER = DETAIL_SIZE * LINE_SPACING  # height of a line of the label of a frame
_ARROW = 28.0  # visible length of a line on either side of a label between two frames
_BARRIER = "\0barrier"  # prefix of the keys of invisible vertices

LayOut = Callable[
    [Mapping[str, Size], Sequence[tuple[str, str]], Sequence[Size | None]], Layout | None
]


def format_header_lines(part: Part) -> list[str]:
    """Split the label of a part into the text lines at the top of the part's frame.

    >>> format_header_lines(Part("GPU 0: 60 % of the work", frozenset()))
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
    """Lay out a graph with frames around its parts; return None if the frames would overlap.

    Invisible vertices between the parts separate them if vertices of one part would be below
    vertices of another part.
    """
    layout = lay_out(sizes, edges, label_sizes)
    framed = layout and _add_frames(layout, parts, edges)
    if framed is not None or layout is None:
        return framed
    order, barriers = _add_barriers(parts, sizes, edges)
    layout = lay_out(order, [*edges, *barriers], [*label_sizes, *(None for _ in barriers)])
    if layout is None:
        return None
    count = len(edges)
    visible = replace(
        layout,
        boxes={key: layout.boxes[key] for key in sizes},
        routes=layout.routes[:count],
        lines=layout.lines[:count],
        labels=layout.labels[:count],
    )
    return _add_frames(visible, parts, edges)


def _add_barriers(
    parts: Sequence[Part], sizes: Mapping[str, Size], edges: Sequence[tuple[str, str]]
) -> tuple[dict[str, Size], list[tuple[str, str]]]:
    """Insert invisible vertices between parts; return all vertices and the new edges."""
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
    layout: Layout, parts: Sequence[Part], edges: Sequence[tuple[str, str]]
) -> Layout | None:
    """Add a frame around each part of a layout; return None if parts overlap horizontally."""
    ends = []
    for part in parts:
        boxes = [layout.boxes[key] for key in part.keys]
        if not boxes:
            return None
        left = min(box.x - box.width / 2 for box in boxes)
        right = max(box.x + box.width / 2 for box in boxes)
        header = max(measure_text(line, DETAIL_SIZE, True) for line in format_header_lines(part))
        wider = max(0.0, header + PADDING - (right - left + 2 * PADDING)) / 2
        ends.append((left, right, wider + PADDING))
    if any(after[0] <= before[1] for before, after in pairwise(ends)):
        return None
    shifts: list[tuple[float, float]] = []  # x, and the shift of elements to its right
    for number, (before, after) in enumerate(pairwise(ends)):
        across = [
            label.width
            for (tail, head), label in zip(edges, layout.labels, strict=True)
            if label and tail in parts[number].keys and head in parts[number + 1].keys
        ]
        needed = before[2] + after[2] + max([_ARROW, *(wide + 2 * _ARROW for wide in across)])
        shifts.append(((before[1] + after[0]) / 2, max(0.0, needed - (after[0] - before[1]))))
    rows = max(len(format_header_lines(part)) for part in parts)
    down = rows * _HEADER + 1.5 * PADDING
    first = ends[0][2] - ends[0][0]

    def shift(x: float) -> float:
        """Return the new x coordinate of a point after room for the frames has been inserted."""
        return x + first + sum(distance for start, distance in shifts if x > start)

    def shift_line(line: Sequence[Point]) -> tuple[Point, ...]:
        """Shift the points of a line horizontally to make room for the frames."""
        return tuple((shift(x), y + down) for x, y in line)

    lines = tuple(map(shift_line, layout.lines))
    height = layout.height + down + PADDING
    frames = []
    for left, right, side in ends:
        a, b = shift(left) - side, shift(right) + side
        frames.append(Box((a + b) / 2, height / 2, b - a, height))
    return replace(
        layout,
        boxes={
            key: replace(box, x=shift(box.x), y=box.y + down) for key, box in layout.boxes.items()
        },
        routes=tuple(map(shift_line, layout.routes)),
        lines=lines,
        labels=tuple(
            label and _place_label(label, ends_of_edge, line, parts, frames)
            for label, ends_of_edge, line in zip(layout.labels, edges, lines, strict=True)
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
    """Move a label along its edge: to the middle, or between the frames of two parts."""
    tail, head = (next(k for k, part in enumerate(parts) if key in part.keys) for key in edge)
    if tail == head:
        x, y = find_point_at(line, compute_line_length(line) / 2)
    else:
        left, right = frames[tail], frames[tail + 1]
        middle = (left.x + left.width / 2 + right.x - right.width / 2) / 2
        x, y = min(sample_line(line, 4.0), key=lambda point: abs(point[0] - middle))
    return replace(label, x=x, y=y)
