"""The trace and the program on a slide: the lines around the highlighted line, with numbers.

Numbers are formatted as in the picture and on the page; `frames.js` has the same rules.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from cgprimer.errors import pluralize
from cgprimer.support.number_format import SHORT, format_number, is_exact, mark_rounding
from cgprimer.visualization.diagrams.slide_pen import TEXT, Pen, break_lines
from cgprimer.visualization.diagrams.text_layout import measure_text
from cgprimer.visualization.pages.stepping.step_frames import Frame, Stepping
from cgprimer.visualization.pages.stepping.step_values import Walk

ROW = 20.0
Box = tuple[float, float, float, float]  # left, top, right and bottom
# Title, width and cells of each column, keyed by column; a cell is a string, and whether this
# string is a number.
_Cells = dict[str, tuple[str, float, list[tuple[str, bool]]]]

_INDENT = 16.0  # room for the triangle of the highlighted line
_GAP = 20.0  # between columns; the frame around a number takes 3 on each side
_WIDEST_NUMBERS = 250.0  # points of both columns of numbers
_LONGEST_NUMBER = 12  # characters of a shifted value: the length of "not computed"
_LONGEST_SUM = 15  # characters of a sum, whose signs and spaces are narrow
_ROUNDING = 0.05  # fraction of a shift that rounding may hide


class ColumnWidths(NamedTuple):
    """The widths, in points, of the number columns on the slides of a method.

    All slides of a walk have the same widths, so that no column moves from slide to slide.

    Attributes:
        value: the width of the values.
        derivative: the width of the derivatives.
        line: the width of the numbers next to the program.
        short: whether only the norms of arrays are shown; the picture shows the arrays.
    """

    value: float
    derivative: float
    line: float
    short: bool = False


def measure_columns(stepping: Stepping, method: str, *, short: bool = False) -> ColumnWidths:
    """Measure the number columns, which have the same width on all slides of a method."""
    frames = stepping.frames(method)
    values = {format_value(v, short) for f in frames for v in (None, *f.values)}
    derivatives = {format_value(v, short) for f in frames for v in (None, *f.derivatives)}
    derivatives |= {format_partial_sum(v, short) for f in frames for v in f.sums if v is not None}
    derivatives.add(format_derivative_heading(stepping.walk(method).mark))
    lines = {mark_rounding(v, SHORT) for f in frames for v in f.lines}

    def measure_widest(texts: set[str]) -> float:
        """Return the width of the widest string in bold, measuring only the longest strings."""
        longest = max(map(len, texts), default=0)
        return max(
            (measure_text(t, TEXT, True) for t in texts if len(t) > longest - 3), default=0.0
        )

    widths = ColumnWidths(
        measure_widest(values), measure_widest(derivatives), measure_widest(lines), short
    )
    is_wide = widths.value + widths.derivative > _WIDEST_NUMBERS
    if is_wide and stepping.scene.tape.has_arrays and not short:
        return measure_columns(stepping, method, short=True)
    return widths


def format_value(value: float | None, short: bool = False) -> str:
    """Format a number, or None as ``not computed``; ``short`` shows only the norm of an array."""
    if value is None:
        return "not computed"
    text = mark_rounding(value, SHORT, _LONGEST_NUMBER) if short else mark_rounding(value, SHORT)
    return text.rpartition("], ")[2] if short and "norm" in text else text


def format_partial_sum(value: float, short: bool = False) -> str:
    """Format a sum to which more summands will be added, such as ``2.5 + …``."""
    return f"{format_value(value, short)} + …"


def format_shifted_value(value: float, unshifted: float | None) -> str:
    """Format a value with enough digits to distinguish it from the value at the unshifted point.

    If eight digits are too few, the result is a sum: the value at the point plus the difference.
    ``unshifted`` is None if no variable is shifted.

    >>> format_shifted_value(2.75, 2.75), format_shifted_value(2.75 + 2**-18, 2.75)
    ('2.75', '≈2.7500038')
    >>> format_shifted_value(0.5 - 1e-12, 0.5)
    '0.5 - 1e-12'
    """
    if unshifted is None or value == unshifted or not math.isfinite(value - unshifted):
        return mark_rounding(value, SHORT)
    shift = value - unshifted
    for digits in (8, 7, 6):
        text = format_number(value, digits)
        if len(text) <= _LONGEST_NUMBER and abs(float(text) - value) <= _ROUNDING * abs(shift):
            return text if is_exact(text, value) else f"≈{text}"
    summand = f" {'+' if shift > 0 else '-'} {format_number(abs(shift), 2)}"
    rest = format_number(unshifted, SHORT)
    return (rest if len(rest) + len(summand) <= _LONGEST_SUM else "…") + summand


def format_derivative_heading(mark: str) -> str:
    """Return the heading of the derivative column: ``adjoint``, ``tangent`` or ``derivative``."""
    return {"bar": "adjoint", "dot": "tangent"}.get(mark, "derivative")


def draw_tables(
    pen: Pen, stepping: Stepping, walk: Walk, frame: Frame, widths: ColumnWidths, area: Box
) -> None:
    """Draw the trace above the program; long tables show only the lines near the current step."""
    left, top, right, bottom = area
    rows, step = stepping.scene.rows, frame.step
    n_rows, n_lines = divide_lines(len(rows), len(walk.lines), int((bottom - top) / ROW))
    leaf_roles = ("input", "parameter", "running statistic")
    texts = [
        f"{name} ({expression})" if expression in leaf_roles else f"{name} = {expression}"
        for name, expression, _ in rows
    ]
    values = [(format_value(v, widths.short), v is not None) for v in frame.values]
    sums = [
        (format_partial_sum(partial_sum, widths.short), False)
        if derivative is None and partial_sum is not None
        else (format_value(derivative, widths.short), derivative is not None)
        for derivative, partial_sum in zip(frame.derivatives, frame.sums, strict=True)
    ]
    trace: _Cells = {
        "value": ("value", widths.value, values),
        "derivative": (format_derivative_heading(walk.mark), widths.derivative, sums),
    }
    box = (left, top, right, top + n_rows * ROW)
    y = _draw_table(pen, ("trace", "row"), texts, trace, step.row, step.column, box)
    program: _Cells = {
        "line": ("", widths.line, [(mark_rounding(v, SHORT), True) for v in frame.lines])
    }
    box = (left, y + 4, right, min(bottom, y + n_lines * ROW + 24))
    _draw_table(pen, ("program", "line"), walk.lines, program, step.line, "", box)


def _draw_table(
    pen: Pen,
    words: tuple[str, str],
    texts: Sequence[str],
    columns: _Cells,
    highlighted: int,
    current_column: str,
    area: Box,
) -> float:
    """Draw text lines with columns of numbers on the right; return the y position of the end.

    Args:
        pen: draws on the slide.
        words: the title, and the noun for a line.
        texts: the lines.
        columns: the columns of numbers.
        highlighted: the index of the highlighted line.
        current_column: the column that the step computes, which is framed.
        area: the available area.
    """
    left, top, right, bottom = area
    ends, x = {}, right
    for column in reversed(list(columns)):
        ends[column] = x
        x -= columns[column][1] + _GAP
    y, start = top + ROW / 2, left + _INDENT
    pen.write(start, y, words[0], weight="bold")
    for column, (title, _, _) in columns.items():
        pen.write(ends[column], y, title, align="right", weight="bold")
    lines = [break_lines(text, x - start, bold=True) for text in texts]
    heights = [len(parts) for parts in lines]
    first, last = choose_lines(heights, highlighted, int((bottom - top) / ROW) - 1)
    if first:
        y += ROW
        pen.write(start, y, f"… {pluralize(first, words[1])} above", color=pen.faint)
    for index in range(first, last):
        is_highlighted = index == highlighted
        weight = "bold" if is_highlighted else "normal"
        # The program must not cover the results below.
        n_visible = max(1, int((bottom - y) / ROW)) if words[0] == "program" else None
        for k, line in enumerate(lines[index][:n_visible]):
            y += ROW
            pen.write(start, y, line, weight=weight)
            if is_highlighted:
                pen.band(left, right, y, ROW, first=k == 0)
        for column, (_, _, cells) in columns.items():
            text, is_number = cells[index]
            style: dict[str, Any] = {"weight": weight} if is_number else build_missing_style(pen)
            if is_highlighted and column == current_column:
                style["bbox"] = {
                    "facecolor": "none",
                    "edgecolor": pen.lit,
                    "pad": 2,
                    "linewidth": 2,
                }
            pen.write(ends[column], y, text, align="right", **style)
    if last < len(texts):
        y += ROW
        pen.write(start, y, f"… {pluralize(len(texts) - last, words[1])} below", color=pen.faint)
    return y + ROW / 2


def build_missing_style(pen: Pen) -> dict[str, Any]:
    """Return the text style for numbers that are not computed yet."""
    return {"color": pen.faint, "style": "italic", "weight": "normal"}


def choose_lines(heights: list[int], highlighted: int, max_height: int) -> tuple[int, int]:
    """Choose which table lines around the highlighted line are shown on a slide.

    Two lines are reserved for notes on omitted entries above and below.

    >>> choose_lines([1] * 10, 5, 6), choose_lines([1] * 5, 3, 6), choose_lines([2] * 9, 8, 6)
    ((3, 7), (0, 5), (7, 9))
    """
    if sum(heights) <= max_height:
        return 0, len(heights)
    max_height = max(max_height - 2, 1)
    first = min(max(highlighted, 0), len(heights) - 1)
    last, used, grown = first + 1, heights[first], True
    while grown:
        grown = False
        for index in (first - 1, last):
            if 0 <= index < len(heights) and used + heights[index] <= max_height:
                used, grown = used + heights[index], True
                first, last = min(first, index), max(last, index + 1)
    return first, last


def divide_lines(n_rows: int, n_lines: int, available: int) -> tuple[int, int]:
    """Divide the lines available on a slide between the trace and the program, including headings.

    >>> divide_lines(30, 40, 20), divide_lines(3, 40, 20)
    ((11, 9), (4, 16))
    """
    n_trace = min(n_rows + 1, max(round(0.55 * available), available - n_lines - 1))
    return n_trace, available - n_trace
