"""Trace and program on a slide: the lines around the one that is lit, numbers in columns.

The texts of numbers are the same in the picture and on the page: `frames.js` has them, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from cgprimer.errors import pluralize
from cgprimer.support.number_format import SHORT, format_number, is_exact, mark_rounding
from cgprimer.visualization.diagrams.slide_pen import TEXT, Pen, break_lines
from cgprimer.visualization.diagrams.text_layout import text_width
from cgprimer.visualization.pages.stepping.step_frames import Frame, Stepping
from cgprimer.visualization.pages.stepping.step_values import Walk

ROW = 20.0
Box = tuple[float, float, float, float]  # left, top, right and bottom
# By column its title, its width, and for each line a text, and whether that is a number.
_Cells = dict[str, tuple[str, float, list[tuple[str, bool]]]]

_INDENT = 16.0  # holds the triangle
_GAP = 20.0  # between columns; the frame around a number takes 3 on each side


_MOST = 250.0  # points of both columns of numbers, so that names and expressions have room
_WIDEST = 12  # characters of a value that is moved: as many as "not computed" has
_SUM = 15  # of a sum, whose signs and spaces are narrow
_OFF = 0.05  # of the move may be lost to rounding


class Columns(NamedTuple):
    """Widths in points of the columns of numbers, in bold.

    They hold for all slides of a walk, so that no column moves from slide to slide.
    """

    value: float
    derivative: float
    line: float
    short: bool = False  # of arrays the norms alone: the picture has the rest


def columns(shown: Stepping, method: str, *, short: bool = False) -> Columns:
    """Make room for the widest number of a walk."""
    frames = shown.frames(method)
    values = {known(v, short) for f in frames for v in (None, *f.values)}
    derivatives = {known(v, short) for f in frames for v in (None, *f.derivatives)}
    derivatives |= {so_far(v, short) for f in frames for v in f.sums if v is not None}
    derivatives.add(heading(shown.walk(method).mark))
    lines = {mark_rounding(v, SHORT) for f in frames for v in f.lines}

    def widest(texts: set[str]) -> float:
        """In bold. Only the longest are measured: the others are narrower, digits being alike."""
        longest = max(map(len, texts), default=0)
        return max((text_width(t, TEXT, True) for t in texts if len(t) > longest - 3), default=0.0)

    found = Columns(widest(values), widest(derivatives), widest(lines), short)
    wide = found.value + found.derivative > _MOST and shown.scene.tape.has_arrays
    return columns(shown, method, short=True) if wide and not short else found


def known(value: float | None, short: bool = False) -> str:
    """A number, or that there is none yet; short, what takes room is an array's norm."""
    if value is None:
        return "not computed"
    text = mark_rounding(value, SHORT, _WIDEST) if short else mark_rounding(value, SHORT)
    return text.rpartition("], ")[2] if short and "norm" in text else text


def so_far(value: float, short: bool = False) -> str:
    """A sum to which shares are still missing."""
    return f"{known(value, short)} + …"


def moved(value: float, unmoved: float | None) -> str:
    """A value in a vertex, with enough digits to see how far it is from the value at the point.

    Where eight digits do not tell, the text is a sum: the value at the point, and the move.
    ``unmoved`` is None where nothing is moved.

    >>> moved(2.75, 2.75), moved(2.75 + 2**-18, 2.75), moved(0.5 - 1e-12, 0.5)
    ('2.75', '≈2.7500038', '0.5 - 1e-12')
    """
    if unmoved is None or value == unmoved or not math.isfinite(value - unmoved):
        return mark_rounding(value, SHORT)
    move = value - unmoved
    for digits in (8, 7, 6):
        text = format_number(value, digits)
        if len(text) <= _WIDEST and abs(float(text) - value) <= _OFF * abs(move):
            return text if is_exact(text, value) else f"≈{text}"
    added = f" {'+' if move > 0 else '-'} {format_number(abs(move), 2)}"
    rest = format_number(unmoved, SHORT)
    return (rest if len(rest) + len(added) <= _SUM else "…") + added


def heading(mark: str) -> str:
    """What the derivatives of a walk are called, by what marks them in the picture."""
    return {"bar": "adjoint", "dot": "tangent"}.get(mark, "derivative")


def draw_tables(
    pen: Pen, shown: Stepping, walk: Walk, frame: Frame, wide: Columns, room: Box
) -> None:
    """Trace and program under each other, of each the lines around the one that is lit."""
    left, top, right, bottom = room
    every, step = shown.scene.rows, frame.step
    rows, lines = shared_out(len(every), len(walk.lines), int((bottom - top) / ROW))
    given = ("input", "parameter", "running statistic")
    texts = [f"{n} ({e})" if e in given else f"{n} = {e}" for n, e, _ in every]
    values = [(known(v, wide.short), v is not None) for v in frame.values]
    pairs = zip(frame.derivatives, frame.sums, strict=True)
    sums = [
        (
            known(d, wide.short) if d is not None or s is None else so_far(s, wide.short),
            d is not None,
        )
        for d, s in pairs
    ]
    trace: _Cells = {
        "value": ("value", wide.value, values),
        "derivative": (heading(walk.mark), wide.derivative, sums),
    }
    box = (left, top, right, top + rows * ROW)
    y = _draw_lines(pen, ("trace", "row"), texts, trace, step.row, step.column, box)
    program: _Cells = {
        "line": ("", wide.line, [(mark_rounding(v, SHORT), True) for v in frame.lines])
    }
    box = (left, y + 4, right, min(bottom, y + lines * ROW + 24))
    _draw_lines(pen, ("program", "line"), walk.lines, program, step.line, "", box)


def _draw_lines(
    pen: Pen,
    named: tuple[str, str],
    texts: Sequence[str],
    columns: _Cells,
    lit: int,
    at: str,
    room: Box,
) -> float:
    """Texts under each other with numbers in columns to the right; returns where they end.

    ``named`` are the title and what a line is called. At the text that is lit, the column ``at``
    is worked on.
    """
    left, top, right, bottom = room
    ends, x = {}, right
    for column in reversed(list(columns)):
        ends[column] = x
        x -= columns[column][1] + _GAP
    y, start = top + ROW / 2, left + _INDENT
    pen.write(start, y, named[0], weight="bold")
    for column, (title, _, _) in columns.items():
        pen.write(ends[column], y, title, align="right", weight="bold")
    lines = [break_lines(text, x - start, bold=True) for text in texts]
    first, last = around([len(some) for some in lines], lit, int((bottom - top) / ROW) - 1)
    if first:
        y += ROW
        pen.write(start, y, f"… {pluralize(first, named[1])} above", color=pen.faint)
    for place in range(first, last):
        here = place == lit
        weight = "bold" if here else "normal"
        most = (
            max(1, int((bottom - y) / ROW)) if named[0] == "program" else None
        )  # not over results
        for k, line in enumerate(lines[place][:most]):
            y += ROW
            pen.write(start, y, line, weight=weight)
            if here:
                pen.band(left, right, y, ROW, first=k == 0)
        for column, (_, _, cells) in columns.items():
            text, is_number = cells[place]
            more: dict[str, Any] = {"weight": weight} if is_number else missing(pen)
            if here and column == at:
                more["bbox"] = {"facecolor": "none", "edgecolor": pen.lit, "pad": 2, "linewidth": 2}
            pen.write(ends[column], y, text, align="right", **more)
    if last < len(texts):
        y += ROW
        pen.write(start, y, f"… {pluralize(len(texts) - last, named[1])} below", color=pen.faint)
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
    first = min(max(lit, 0), len(heights) - 1)
    last, used, grown = first + 1, heights[first], True
    while grown:
        grown = False
        for place in (first - 1, last):
            if 0 <= place < len(heights) and used + heights[place] <= most:
                used, grown = used + heights[place], True
                first, last = min(first, place), max(last, place + 1)
    return first, last


def shared_out(rows: int, lines: int, room: int) -> tuple[int, int]:
    """How many lines trace and program get, their headings and ends included.

    >>> shared_out(30, 40, 20), shared_out(3, 40, 20)
    ((11, 9), (4, 16))
    """
    of_trace = min(rows + 1, max(round(0.55 * room), room - lines - 1))
    return of_trace, room - of_trace
