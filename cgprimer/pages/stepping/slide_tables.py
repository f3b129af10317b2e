"""Trace and program on a slide: the lines around the one that is lit, numbers in columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cgprimer.errors import plural
from cgprimer.number_format import SHORT, marked
from cgprimer.pages.stepping.frames import Frame, Stepping
from cgprimer.pages.stepping.number_texts import known, so_far
from cgprimer.pages.stepping.steps import Walk
from cgprimer.pictures.lettering import text_width
from cgprimer.pictures.pen import TEXT, Pen, broken

ROW = 20.0
Box = tuple[float, float, float, float]  # left, top, right and bottom

_INDENT = 16.0  # holds the triangle
_GAP = 20.0  # between columns; the frame around a number takes 3 on each side


@dataclass(frozen=True, slots=True)
class Columns:
    """Widths in points of the columns of numbers, in bold.

    They hold for all slides of a walk, so that no column moves from slide to slide.
    """

    value: float
    derivative: float
    line: float


def columns(shown: Stepping, method: str) -> Columns:
    """Make room for the widest number of a walk."""
    frames, mark = shown.frames(method), shown.walk(method).mark
    values = {known(v) for f in frames for v in (None, *f.values)}
    derivatives = {known(v) for f in frames for v in (None, *f.derivatives)} | {heading(mark)}
    derivatives |= {so_far(v) for f in frames for v in f.sums if v is not None}
    lines = {marked(v, SHORT) for f in frames for v in f.lines if v is not None}
    return Columns(_widest(values), _widest(derivatives), _widest(lines))


def _widest(texts: Iterable[str]) -> float:
    """In bold. Only the longest are measured: the others are narrower, digits being alike."""
    different = set(texts)
    longest = max(map(len, different), default=0)
    return max((text_width(t, TEXT, True) for t in different if len(t) > longest - 3), default=0.0)


def heading(mark: str) -> str:
    """What the derivatives of a walk are called, by what marks them in the picture.

    >>> heading("bar"), heading("d")
    ('adjoint', 'derivative')
    """
    return {"bar": "adjoint", "dot": "tangent"}.get(mark, "derivative")


def draw_trace(
    pen: Pen, shown: Stepping, frame: Frame, wide: Columns, room: Box, mark: str
) -> float:
    """The rows around the one that is lit, as many as there is room for; returns where they end."""
    texts, cells = [], []
    for place, row in enumerate(shown.scene.rows):
        given = row.expression in ("input", "parameter")
        texts.append(
            f"{row.name} ({row.expression})" if given else f"{row.name} = {row.expression}"
        )
        value, found, sums = frame.values[place], frame.derivatives[place], frame.sums[place]
        partly = "" if sums is None or found is not None else so_far(sums)
        cells.append({
            "value": (known(value), value is not None),
            "derivative": (partly or known(found), found is not None),
        })  # fmt: skip
    columns = {"value": ("value", wide.value), "derivative": (heading(mark), wide.derivative)}
    lit = frame.step.row
    return _draw_lines(pen, ("trace", "row"), texts, cells, columns, lit, frame.step.column, room)


def draw_program(pen: Pen, walk: Walk, frame: Frame, wide: Columns, room: Box) -> None:
    """The lines of the program around the one that is lit."""
    cells = [{"line": ("" if v is None else marked(v, SHORT), True)} for v in frame.lines]
    columns = {"line": ("", wide.line)}
    _draw_lines(pen, ("program", "line"), walk.lines, cells, columns, frame.step.line, "", room)


def _draw_lines(
    pen: Pen,
    named: tuple[str, str],
    texts: Sequence[str],
    cells: Sequence[Mapping[str, tuple[str, bool]]],
    columns: Mapping[str, tuple[str, float]],
    lit: int,
    at: str,
    room: Box,
) -> float:
    """Texts under each other with numbers in columns to the right, around the one that is lit.

    ``named`` are the title and what a line is called. ``cells`` say for each text and column what
    stands there, and whether it is a number; ``columns`` have titles and widths. At the text that
    is lit, the column ``at`` is worked on.
    """
    left, top, right, bottom = room
    ends, x = {}, right
    for column in reversed(list(columns)):
        ends[column] = x
        x -= columns[column][1] + _GAP
    y, start = top + ROW / 2, left + _INDENT
    pen.write(start, y, named[0], weight="bold")
    for column, (title, _) in columns.items():
        pen.write(ends[column], y, title, align="right", weight="bold")
    lines = [broken(text, x - start, bold=True) for text in texts]
    first, last = around([len(some) for some in lines], lit, int((bottom - top) / ROW) - 1)
    if first:
        y += ROW
        pen.write(start, y, f"… {plural(first, named[1])} above", color=pen.faint)
    for place in range(first, last):
        here = place == lit
        weight = "bold" if here else "normal"
        for k, line in enumerate(lines[place]):
            y += ROW
            pen.write(start, y, line, weight=weight)
            if here:
                pen.band(left, right, y, ROW, first=k == 0)
        for column, (text, is_number) in cells[place].items():
            more: dict[str, Any] = {"weight": weight} if is_number else missing(pen)
            if here and column == at:
                more["bbox"] = {"facecolor": "none", "edgecolor": pen.lit, "pad": 2, "linewidth": 2}
            pen.write(ends[column], y, text, align="right", **more)
    if last < len(texts):
        y += ROW
        pen.write(start, y, f"… {plural(len(texts) - last, named[1])} below", color=pen.faint)
    return y + ROW / 2


def missing(pen: Pen) -> dict[str, Any]:
    """How a text looks that stands where a number is missing."""
    return {"color": pen.faint, "style": "italic", "weight": "normal"}


def around(heights: list[int], lit: int, most: int) -> tuple[int, int]:
    """The lines to show around one of them; a line above and below may say what is left out.

    >>> around([1] * 10, 5, 6), around([1] * 5, 3, 6), around([2] * 9, 8, 6)
    ((3, 7), (0, 5), (7, 9))
    """
    if sum(heights) <= most:
        return 0, len(heights)
    most = max(most - 2, 1)
    first = last = min(max(lit, 0), len(heights) - 1)
    last += 1
    used = heights[first]
    while True:
        grown = False
        for place in (first - 1, last):
            if 0 <= place < len(heights) and used + heights[place] <= most:
                used, grown = used + heights[place], True
                first, last = min(first, place), max(last, place + 1)
        if not grown:
            return first, last


def shared_out(rows: int, lines: int, room: int) -> tuple[int, int]:
    """How many lines trace and program get, their headings and ends included.

    >>> shared_out(30, 40, 20), shared_out(3, 40, 20)
    ((11, 9), (4, 16))
    """
    of_trace = min(rows + 1, max(round(0.55 * room), room - lines - 1))
    return of_trace, room - of_trace
