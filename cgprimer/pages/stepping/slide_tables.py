"""Trace and program on a slide: the lines around the one that is lit, numbers in columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cgprimer.core.number_format import number
from cgprimer.errors import plural
from cgprimer.pages.stepping.frames import Frame, Stepping
from cgprimer.pages.stepping.slide_pen import ROW, TEXT, Pen, known, lines_of
from cgprimer.pages.stepping.steps import Walk
from cgprimer.pictures.lettering import text_width

_INDENT = 16.0  # holds the triangle
_GAP = 20.0  # between columns; the frame around a number takes 3 on each side
_LONGEST = (14, 13, 12, 11, 10, 9)  # characters of a number
_NAMES = 150.0  # width that the names of the trace should have


@dataclass(frozen=True, slots=True)
class Columns:
    """How many characters a number of the trace may have; widths of numbers, in points.

    They hold for all slides of a walk, so that no column moves from slide to slide.
    """

    most: int
    value: float
    derivative: float
    line: float


def columns(shown: Stepping, method: str, width: float) -> Columns:
    """Make room for the widest number of a walk in bold, with fewer digits where names need it.

    Args:
        shown: the steps.
        method: the walk's.
        width: of the table, in points.
    """
    walk = shown.walk(method)
    found: dict[str, set[float]] = {"value": set(), "derivative": set(), "sofar": set()}
    lines: set[float] = set()
    memory = {slot: shown.point[name] for name, slot in walk.given.items()}
    for step, written in zip(walk.steps, shown.numbers[method], strict=True):
        memory.update({w.slot: value for w, value in zip(step.writes, written, strict=True)})
        for show in step.shows:
            if show.column in found:
                found[show.column].add(memory[show.slot])
        if step.line >= 0 and step.result >= 0:
            lines.add(memory[step.result])
    least = text_width(known(None), TEXT)
    chosen = None
    for most in _LONGEST:
        value = max(least, _widest(shorter(v, most) for v in found["value"]))
        texts = [shorter(v, most) for v in found["derivative"]]
        texts += [so_far(v) for v in found["sofar"]]
        title = text_width(heading(walk.mark), TEXT, bold=True)
        derivative = max(least, title, _widest(texts))
        chosen = Columns(most, value, derivative, _widest(number(v) for v in lines))
        if width - _INDENT - value - derivative - 2 * _GAP >= _NAMES:
            return chosen
    assert chosen is not None
    return chosen


def _widest(texts: Iterable[str]) -> float:
    """In bold. Only the longest are measured: the others are narrower, digits being alike."""
    different = set(texts)
    longest = max(map(len, different), default=0)
    return max((text_width(t, TEXT, True) for t in different if len(t) > longest - 3), default=0.0)


def shorter(value: float | None, most: int) -> str:
    """A number in at most so many characters, if three digits can be had.

    >>> shorter(0.75136507, 10), shorter(-0.00090157474, 10), shorter(None, 10)
    ('0.75136507', '-0.0009016', 'not computed')
    """
    texts = [known(value, digits) for digits in range(8, 2, -1)]
    return next((text for text in texts if len(text) <= most), texts[0 if value is None else -1])


def heading(mark: str) -> str:
    """What the derivatives of a walk are called, by what marks them in the picture.

    >>> heading("bar"), heading("d")
    ('adjoint', 'derivative')
    """
    return {"bar": "adjoint", "dot": "tangent"}.get(mark, "derivative")


def so_far(value: float) -> str:
    """A sum to which shares are still missing.

    >>> so_far(0.123456)
    '0.1235 + …'
    """
    return f"{number(value, 4)} + …"


def trace(
    pen: Pen,
    shown: Stepping,
    frame: Frame,
    wide: Columns,
    across: tuple[float, float],
    down: tuple[float, float],
    mark: str,
) -> float:
    """The rows around the one that is lit, as many as there is room for; returns where they end."""
    left, right = across
    rows, lit = shown.scene.rows, frame.step.row
    places = (left + _INDENT, right - wide.derivative - _GAP, right)
    y = down[0] + ROW / 2
    titles = ("trace", "value", heading(mark))
    for x, text, side in zip(places, titles, ("left", "right", "right"), strict=True):
        pen.write(x, y, text, weight="bold", horizontalalignment=side)
    room = places[1] - wide.value - _GAP - places[0]
    texts = []
    for row in rows:
        given = row.expression in ("input", "parameter")
        text = f"{row.name} ({row.expression})" if given else f"{row.name} = {row.expression}"
        texts.append(lines_of(text, room, bold=True))
    first, last = around([len(t) for t in texts], lit, int((down[1] - down[0]) / ROW) - 1)
    if first:
        y += ROW
        pen.write(places[0], y, f"… {plural(first, 'row')} above", color=pen.faint)
    for place in range(first, last):
        here = place == lit
        weight = "bold" if here else "normal"
        for k, line in enumerate(texts[place]):
            y += ROW
            pen.write(places[0], y, line, weight=weight)
            if here:
                pen.band(left, right, y, first=k == 0)
        sums, found = frame.sums[place], frame.derivatives[place]
        partly = "" if sums is None or found is not None else so_far(sums)
        value = frame.values[place]
        cells = (
            ("value", shorter(value, wide.most), value),
            ("derivative", partly or shorter(found, wide.most), found),
        )
        for x, (column, text, held) in zip(places[1:], cells, strict=True):
            more: dict[str, Any] = {"weight": weight, **pen.unless_known(held)}
            if here and column == frame.step.column:
                more["bbox"] = {"facecolor": "none", "edgecolor": pen.lit, "pad": 2, "linewidth": 2}
            pen.write(x, y, text, horizontalalignment="right", **more)
    if last < len(rows):
        y += ROW
        pen.write(places[0], y, f"… {plural(len(rows) - last, 'row')} below", color=pen.faint)
    return y + ROW / 2


def program(
    pen: Pen,
    walk: Walk,
    frame: Frame,
    wide: Columns,
    across: tuple[float, float],
    down: tuple[float, float],
) -> None:
    """The lines of the program around the one that is lit."""
    left, right = across
    y = down[0] + ROW / 2
    pen.write(left + _INDENT, y, "program", weight="bold")
    room = right - wide.line - _GAP - left - _INDENT
    texts = [lines_of(line, room, bold=True) for line in walk.lines]
    fits = int((down[1] - down[0]) / ROW) - 1
    first, last = around([len(t) for t in texts], frame.step.line, fits)
    if first:
        y += ROW
        pen.write(left + _INDENT, y, f"… {plural(first, 'line')} above", color=pen.faint)
    for place in range(first, last):
        here = place == frame.step.line
        weight = "bold" if here else "normal"
        for k, line in enumerate(texts[place]):
            y += ROW
            pen.write(left + _INDENT, y, line, weight=weight)
            if here:
                pen.band(left, right, y, first=k == 0)
        value = frame.lines[place]
        text = "" if value is None else number(value)
        pen.write(right, y, text, weight=weight, horizontalalignment="right")
    if last < len(walk.lines):
        y += ROW
        text = f"… {plural(len(walk.lines) - last, 'line')} below"
        pen.write(left + _INDENT, y, text, color=pen.faint)


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
