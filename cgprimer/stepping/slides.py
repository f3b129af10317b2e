"""The frames as slides of 16 to 9: the graph to the left, trace and program to the right.

A slide is 13.33 inches wide and no text on it is smaller than 14 points. A graph that is too large
for that is shown in part, around what is lit.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cgprimer.drawing.layout import Box, Point
from cgprimer.drawing.lettering import text_width, wrap_words
from cgprimer.drawing.saving import figure_bytes
from cgprimer.drawing.shapes import patches
from cgprimer.drawing.theme import FONT, LineStyle, Theme, mix, theme
from cgprimer.errors import plural
from cgprimer.stepping.frames import Frame, Stepping
from cgprimer.stepping.placing import LETTER, Placed, compact, placed
from cgprimer.stepping.scene import Vertex
from cgprimer.stepping.steps import Walk
from cgprimer.teaching.tables import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MONO = "DejaVu Sans Mono"
_WIDTH, _HEIGHT = 960.0, 540.0  # points
_EDGE = 16.0
_NARROW, _WIDE = 400.0, 524.0  # the graph's share of the width
_TEXT, _LARGE = 14.0, 16.0
_ROW = 20.0
_READABLE = _TEXT / LETTER  # of the picture's own size
_ASPECT = (_WIDE - _EDGE) / (_HEIGHT - 2 * _EDGE)
_GAPS = (56.0, 84.0, 104.0, 140.0)
_DPI = 144.0
_GIF_DPI = 96.0
_COLOURS = 64
_LAST_FRAME = 3  # times as long as the others


def slides(shown: Stepping, method: str, kind: str, *, dark: bool = False) -> Iterator[bytes]:
    """Each frame of a method as a PNG, SVG or PDF file.

    >>> from cgprimer.graph import parse
    >>> from cgprimer.stepping.frames import stepping
    >>> shown = stepping(parse("xw = cd*xa"), {"cd": 2, "xa": 3}, methods=["reverse"])
    >>> [content[:5] for content in slides(shown, "reverse", "pdf")]
    [b'%PDF-', b'%PDF-', b'%PDF-', b'%PDF-']
    """
    place = placed(shown.scene, _ASPECT, _GAPS)
    for frame in shown.frames(method):
        figure = slide(shown, method, frame, place, dark=dark)
        yield _png(figure, _DPI) if kind == "png" else figure_bytes(figure, kind)


def animation(shown: Stepping, method: str, *, dark: bool = False, speed: float = 1.0) -> bytes:
    """All frames of a method as one GIF of 1280 times 720 pixels; ``speed`` in steps per second."""
    from PIL import Image

    place = placed(shown.scene, _ASPECT, _GAPS)
    images = []
    for frame in shown.frames(method):
        content = _png(slide(shown, method, frame, place, dark=dark), _GIF_DPI)
        with Image.open(io.BytesIO(content)) as image:
            images.append(image.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE))
    length = round(1000 / speed)
    lengths = [length] * (len(images) - 1) + [_LAST_FRAME * length]
    found = io.BytesIO()
    images[0].save(found, "gif", save_all=True, append_images=images[1:], duration=lengths, loop=0)
    return found.getvalue()


def _png(figure: Figure, dpi: float) -> bytes:
    """Of exactly so many pixels, as projectors have them."""
    written = io.BytesIO()
    figure.savefig(written, format="png", dpi=dpi)
    return written.getvalue()


def slide(
    shown: Stepping, method: str, frame: Frame, place: Placed, *, dark: bool = False
) -> Figure:
    """One frame as a figure."""
    from matplotlib.figure import Figure

    look, walk = theme(dark), shown.walk(method)
    figure = Figure(figsize=(_WIDTH / 72, _HEIGHT / 72), facecolor=look.background)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_xlim(0, _WIDTH)
    axes.set_ylim(_HEIGHT, 0)  # downwards, as the picture was placed
    pen = _Pen(axes, look)
    split = min(max(place.width * _READABLE + _EDGE, _NARROW), _WIDE)
    _picture(pen, shown, frame, place, walk.mark, (split - _EDGE, _HEIGHT - 2 * _EDGE))
    left, right = split + _EDGE, _WIDTH - _EDGE
    y = _EDGE + 0.5 * _ROW
    counted = f"step {frame.number + 1} of {len(walk.steps)}"
    room = right - left - text_width(counted, _TEXT) - 20
    pen.write(right, y, counted, _TEXT, horizontalalignment="right")
    for line in wrap_words(shown.title, room, _LARGE, bold=True):
        pen.write(left, y, line, _LARGE, weight="bold")
        y += _ROW
    scheme = f" ({walk.scheme})" if walk.scheme else ""
    for line in wrap_words(f"{method}{scheme}, {frame.phase}", right - left, _TEXT):
        pen.write(left, y, line, _TEXT)
        y += _ROW
    y += 4
    result = "" if frame.result is None else f" = {number(frame.result)}"
    result = "" if frame.step.text.endswith(result) else result
    for line in wrap_words(frame.step.text + result, (right - left) / 1.1, _LARGE, bold=True):
        pen.write(left, y, line, _LARGE, weight="bold", family=_MONO)
        y += 1.1 * _ROW
    for line in wrap_words(frame.step.note, right - left, _TEXT):
        pen.write(left, y, line, _TEXT, color=pen.faint)
        y += _ROW
    parts = [
        f"d{shown.scene.target}/d{name} = {_known(value)}"
        for name, value in zip(shown.scene.wrt, frame.results, strict=True)
    ]
    floor = _HEIGHT - _EDGE
    for line in reversed(_results(parts, right - left)):
        pen.write(left, floor - 0.5 * _ROW, line, _TEXT)
        floor -= _ROW
    floor -= 4
    rows, lines = _shared_out(len(shown.scene.rows), len(walk.lines), int((floor - y) / _ROW))
    y = _trace(pen, shown, frame, (left, right), (y, y + rows * _ROW), walk.mark)
    _program(pen, walk, frame, (left, right), (y + 4, min(floor, y + lines * _ROW + 24)))
    return figure


def _shared_out(rows: int, lines: int, room: int) -> tuple[int, int]:
    """How many lines trace and program get, their headings and ends included.

    >>> _shared_out(30, 40, 20), _shared_out(3, 40, 20)
    ((11, 9), (4, 16))
    """
    trace = min(rows + 1, max(round(0.55 * room), room - lines - 1))
    return trace, room - trace


def _results(parts: list[str], width: float) -> list[str]:
    """The finished derivatives in lines, each kept in one piece; never more than three lines."""
    lines = [""]
    for part in parts:
        longer = f"{lines[-1]} · {part}" if lines[-1] else part
        if text_width(longer, _TEXT) <= width:
            lines[-1] = longer
        else:
            lines.append(part)
    if len(lines) <= 3:
        return lines
    known = [part for part in parts if not part.endswith(_known(None))]
    rest = f"{len(known)} of {len(parts)} derivatives are computed"
    return [*([known[-1]] if known else []), rest]


def _known(value: float | None) -> str:
    return "not computed" if value is None else number(value)


class _Pen:
    """Writes and draws in one look on one set of axes."""

    def __init__(self, axes: Axes, look: Theme) -> None:
        self.axes, self.look = axes, look
        self.lit = look.curves[1]
        self.faint = mix(look.ink, look.background, 0.72)

    def write(self, x: float, y: float, text: str, size: float, **more: Any) -> None:
        style = {"color": self.look.ink, "family": FONT, "horizontalalignment": "left", **more}
        self.axes.text(
            x, y, text, fontsize=size, verticalalignment="center", parse_math=False,
            clip_on=True, **style
        )  # fmt: skip

    def polygon(self, points: list[Point], colour: str, **more: Any) -> None:
        from matplotlib.patches import Polygon

        style = {"facecolor": colour, "linewidth": 0.0, **more}
        self.axes.add_patch(Polygon(points, closed=True, **style))

    def band(self, left: float, right: float, y: float) -> None:
        """Behind a line that is lit, with the triangle that says so without colour."""
        a, b = y - _ROW / 2, y + _ROW / 2
        glow = mix(self.lit, self.look.background, 0.2)
        self.polygon([(left, a), (right + 4, a), (right + 4, b), (left, b)], glow, zorder=0)
        self.polygon([(left + 2, y - 6), (left + 2, y + 6), (left + 11, y)], self.lit)


def _picture(
    pen: _Pen, shown: Stepping, frame: Frame, place: Placed, mark: str, space: tuple[float, float]
) -> None:
    """The graph in the left part of the slide; what does not fit is cut off there."""
    fits = min(space[0] / place.width, space[1] / place.height)
    scale = max(min(fits, 1.2), _READABLE)
    origin = []
    for size, room, axis in ((place.width, space[0], "x"), (place.height, space[1], "y")):
        spare = room / scale - size
        lit = [
            getattr(box, axis)
            for vertex, box in zip(shown.scene.vertices, place.boxes, strict=True)
            if vertex.name in frame.step.vertices
        ]
        middle = sum(lit) / len(lit) if lit else 0.0
        origin.append(-spare / 2 if spare >= 0 else min(max(middle - room / scale / 2, 0), -spare))
    figure = pen.axes.figure
    axes = figure.add_axes((_EDGE / _WIDTH, _EDGE / _HEIGHT, space[0] / _WIDTH, space[1] / _HEIGHT))
    axes.set_axis_off()
    axes.set_xlim(0, space[0])
    axes.set_ylim(space[1], 0)
    _graph(_Pen(axes, pen.look), shown, frame, place, (origin[0], origin[1], scale), mark)
    if fits < _READABLE:  # where the graph is cut off
        border, floor = space[0] + _EDGE, _HEIGHT - _EDGE
        line = [(border, _EDGE), (border + 1, _EDGE), (border + 1, floor), (border, floor)]
        pen.polygon(line, pen.look.grid)


def _graph(
    pen: _Pen,
    shown: Stepping,
    frame: Frame,
    place: Placed,
    at: tuple[float, float, float],
    mark: str,
) -> None:
    left, top, scale = at

    def to(point: Point) -> Point:
        return (point[0] - left) * scale, (point[1] - top) * scale

    size = LETTER * scale
    dash: LineStyle
    for k, (line, tip) in enumerate(zip(place.lines, place.tips, strict=True)):
        lit = k in frame.step.edges
        colour = pen.lit if lit else pen.look.edge
        points = [to(p) for p in line]
        dash = (0, (2.2, 1.0)) if lit else "-"
        pen.axes.plot(
            *zip(*points, strict=True), color=colour, linewidth=3.6 if lit else 1.4, linestyle=dash
        )
        (ex, ey), (tx, ty) = points[-1], to(tip)
        across = (-(ty - ey) * 0.6, (tx - ex) * 0.6)
        corners = [(tx, ty), (ex + across[0], ey + across[1]), (ex - across[0], ey - across[1])]
        pen.polygon(corners, colour, zorder=3)
    for vertex, box in zip(shown.scene.vertices, place.boxes, strict=True):
        x, y = to((box.x, box.y))
        moved = Box(x, y, box.width * scale, box.height * scale)
        _vertex(pen, vertex, moved, vertex.name in frame.step.vertices)
        value, derivative = frame.values[vertex.row], frame.derivatives[vertex.row]
        sum_so_far = frame.sums[vertex.row]
        below = "" if derivative is None else f"{mark} {compact(derivative, 9)}"
        if derivative is None and sum_so_far is not None:
            below = f"{mark} {compact(sum_so_far, 6)} + …"
        more: dict[str, Any] = {"horizontalalignment": "center", "zorder": 6}
        text = _known(None) if value is None else compact(value, 9)
        pen.write(x, y - 21 * scale, vertex.name, size * 1.05, weight="bold", **more)
        pen.write(x, y, text, size, **_faint(pen, value), **more)
        pen.write(x, y + 21 * scale, below, size, **_faint(pen, derivative), **more)
    for k, point in enumerate(place.labels):
        value = frame.partials[k]
        if value is not None:
            back = {"facecolor": pen.look.background, "edgecolor": "none", "pad": 1.0}
            more = {"bbox": back, "weight": "bold", "zorder": 7, "horizontalalignment": "center"}
            pen.write(*to(point), compact(value, 7), size, **more)


def _faint(pen: _Pen, value: float | None) -> dict[str, Any]:
    return {"color": pen.faint, "style": "italic"} if value is None else {}


def _vertex(pen: _Pen, vertex: Vertex, box: Box, lit: bool) -> None:
    style = pen.look.roles[vertex.role]
    for patch in patches(style, box, pen.look):
        patch.set_zorder(4)
        pen.axes.add_patch(patch)
    if lit:
        around = Box(box.x, box.y, box.width + 9, box.height + 9)
        ring = patches(style, around, pen.look)[0]
        ring.set(facecolor="none", edgecolor=pen.lit, linewidth=3.2, linestyle="-", zorder=4)
        pen.axes.add_patch(ring)
        tip, y = box.x - box.width / 2 - 6, box.y
        pen.polygon([(tip, y), (tip - 10, y - 7), (tip - 10, y + 7)], pen.lit, zorder=5)


def _trace(
    pen: _Pen,
    shown: Stepping,
    frame: Frame,
    across: tuple[float, float],
    down: tuple[float, float],
    mark: str,
) -> float:
    """The rows around the one that is lit, as many as there is room for; returns where they end."""
    left, right = across
    rows, lit = shown.scene.rows, frame.step.row
    columns = (left + 16, right - 112, right)
    y = down[0] + _ROW / 2
    kind = {"bar": "adjoint", "dot": "tangent"}.get(mark, "derivative")
    for x, text, side in zip(columns, ("trace", "value", kind), "lrr", strict=True):
        where = "left" if side == "l" else "right"
        pen.write(x, y, text, _TEXT, weight="bold", horizontalalignment=where)
    room = columns[1] - columns[0] - 105
    texts = []
    for row in rows:
        given = row.expression in ("input", "parameter")
        text = f"{row.name} ({row.expression})" if given else f"{row.name} = {row.expression}"
        texts.append(wrap_words(text, room, _TEXT, bold=True))
    first, last = _window([len(t) for t in texts], lit, int((down[1] - down[0]) / _ROW) - 1)
    if first:
        y += _ROW
        pen.write(columns[0], y, f"... {plural(first, 'row')} above", _TEXT, color=pen.faint)
    for place in range(first, last):
        here = place == lit
        weight = "bold" if here else "normal"
        for line in texts[place]:
            y += _ROW
            pen.write(columns[0], y, line, _TEXT, weight=weight)
            if here:
                pen.band(left, right, y)
        sums = frame.sums[place]
        found = frame.derivatives[place]
        partly = "" if sums is None or found is not None else f"{number(sums, 4)} + …"
        texts_of = (_known(frame.values[place]), partly or _known(found))
        for x, text, value, column in zip(
            columns[1:], texts_of, (frame.values[place], found), ("value", "derivative"),
            strict=True,
        ):  # fmt: skip
            more: dict[str, Any] = {"weight": weight, **_faint(pen, value)}
            if here and column == frame.step.column:
                more["bbox"] = {"facecolor": "none", "edgecolor": pen.lit, "pad": 2, "linewidth": 2}
            pen.write(x, y, text, _TEXT, horizontalalignment="right", **more)
    if last < len(rows):
        y += _ROW
        text = f"... {plural(len(rows) - last, 'row')} below"
        pen.write(columns[0], y, text, _TEXT, color=pen.faint)
    return y + _ROW / 2


def _window(heights: list[int], lit: int, most: int) -> tuple[int, int]:
    """The lines to show around one of them; a line above and below may say what is left out.

    >>> _window([1] * 10, 5, 6), _window([1] * 5, 3, 6), _window([2] * 9, 8, 6)
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


def _program(
    pen: _Pen, walk: Walk, frame: Frame, across: tuple[float, float], down: tuple[float, float]
) -> None:
    """The lines of the program around the one that is lit."""
    left, right = across
    y = down[0] + _ROW / 2
    pen.write(left + 16, y, "program", _TEXT, weight="bold")
    texts = [wrap_words(line, right - left - 130, _TEXT, bold=True) for line in walk.lines]
    room = int((down[1] - down[0]) / _ROW) - 1
    first, last = _window([len(t) for t in texts], frame.step.line, room)
    if first:
        y += _ROW
        pen.write(left + 16, y, f"... {plural(first, 'line')} above", _TEXT, color=pen.faint)
    for place in range(first, last):
        here = place == frame.step.line
        weight = "bold" if here else "normal"
        for line in texts[place]:
            y += _ROW
            pen.write(left + 16, y, line, _TEXT, weight=weight)
            if here:
                pen.band(left, right, y)
        value = frame.lines[place]
        text = "" if value is None else number(value)
        pen.write(right, y, text, _TEXT, weight=weight, horizontalalignment="right")
    if last < len(walk.lines):
        y += _ROW
        text = f"... {plural(len(walk.lines) - last, 'line')} below"
        pen.write(left + 16, y, text, _TEXT, color=pen.faint)
