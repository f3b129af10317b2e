"""The frames as slides of 16 to 9: the graph to the left, trace and program to the right.

A slide is 20 inches wide, so that its text has the size that the page has at 1920 pixels; a
larger graph gets a larger slide with the same text.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cgprimer.drawing.layout import Box
from cgprimer.drawing.lettering import text_width, wrap_words
from cgprimer.drawing.theme import FONT, LineStyle, Theme, mix, theme
from cgprimer.errors import plural
from cgprimer.stepping.frames import Frame, Stepping
from cgprimer.stepping.placing import LETTER, Placed, placed
from cgprimer.stepping.scene import Vertex
from cgprimer.stepping.steps import Walk
from cgprimer.teaching.tables import number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MONO = "DejaVu Sans Mono"
_WIDTH, _HEIGHT = 1440.0, 810.0  # points
_ABOVE, _BELOW, _EDGE = 130.0, 60.0, 28.0
_ROW = 27.0
_SHARE = 0.54  # of the width, for the graph
_TEXT = 16.0
_SMALLEST = 14.0
_DPI = 96.0
_GIF_DPI = 64.0
_COLOURS = 64
_LAST_FRAME = 3  # times as long as the others
_METADATA: dict[str, dict[str, Any]] = {
    "png": {},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}


def slides(shown: Stepping, method: str, kind: str, *, dark: bool = False) -> Iterator[bytes]:
    """Each frame of a method as a PNG, SVG or PDF file.

    >>> from cgprimer.graph import parse
    >>> from cgprimer.stepping.frames import stepping
    >>> shown = stepping(parse("xw = cd*xa"), {"cd": 2, "xa": 3}, methods=["reverse"])
    >>> [content[:5] for content in slides(shown, "reverse", "pdf")]
    [b'%PDF-', b'%PDF-', b'%PDF-', b'%PDF-']
    """
    from matplotlib import rc_context

    place = placed(shown.scene, _SHARE * _WIDTH / (_HEIGHT - _ABOVE - _BELOW))
    for frame in shown.frames(method):
        written = io.BytesIO()
        with rc_context({"svg.hashsalt": "cgprimer", "svg.fonttype": "path"}):
            figure = slide(shown, method, frame, place, dark=dark)
            figure.savefig(written, format=kind, dpi=_DPI, metadata=_METADATA[kind])
        yield written.getvalue()


def animation(shown: Stepping, method: str, *, dark: bool = False, speed: float = 1.0) -> bytes:
    """All frames of a method as one GIF of 1280 times 720 pixels; ``speed`` in steps per second."""
    from PIL import Image

    place = placed(shown.scene, _SHARE * _WIDTH / (_HEIGHT - _ABOVE - _BELOW))
    images = []
    for frame in shown.frames(method):
        written = io.BytesIO()
        slide(shown, method, frame, place, dark=dark).savefig(written, format="png", dpi=_GIF_DPI)
        written.seek(0)
        with Image.open(written) as image:
            images.append(image.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE))
    length = round(1000 / speed)
    lengths = [length] * (len(images) - 1) + [_LAST_FRAME * length]
    found = io.BytesIO()
    images[0].save(found, "gif", save_all=True, append_images=images[1:], duration=lengths, loop=0)
    return found.getvalue()


def slide(
    shown: Stepping, method: str, frame: Frame, place: Placed, *, dark: bool = False
) -> Figure:
    """One frame as a figure."""
    from matplotlib.figure import Figure

    look = theme(dark)
    room = (_SHARE * _WIDTH - 2 * _EDGE, _HEIGHT - _ABOVE - _BELOW)
    scale = min(room[0] / place.width, room[1] / place.height, 1.3)
    grown = max(1.0, _SMALLEST / (LETTER * scale))
    width, height = _WIDTH * grown, _HEIGHT * grown
    figure = Figure(figsize=(width / 72, height / 72), facecolor=look.background)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)  # downwards, as the picture was placed
    walk = shown.walk(method)
    pen = _Pen(axes, look)
    pen.write(_EDGE, 30, shown.title, 20, weight="bold")
    pen.write(width - _EDGE, 30, f"{method}, {frame.phase}", 18, horizontalalignment="right")
    counted = f"step {frame.number + 1} of {len(walk.steps)}"
    pen.write(width - _EDGE, 60, counted, _TEXT, horizontalalignment="right")
    result = "" if frame.result is None else f" = {number(frame.result)}"
    result = "" if frame.step.text.endswith(result) else result
    lines = wrap_words(frame.step.text + result, width - 2 * _EDGE - 220, 22, bold=True)
    for count, line in enumerate(lines):
        pen.write(_EDGE, 74 + 28 * count, line, 22, weight="bold", family=_MONO)
    top = max(_ABOVE, 74 + 28 * len(lines) + 14)
    scale = max(scale, _SMALLEST / LETTER)
    left = _EDGE + max(0.0, (_SHARE * width - 2 * _EDGE - place.width * scale) / 2)
    _graph(pen, shown, frame, place, (left, top, scale), walk.mark)
    across, floor = (_SHARE * width, width - _EDGE), height - _BELOW
    end = _trace(pen, shown, frame, across, (top, top + 0.76 * (floor - top)), walk.mark)
    _program(pen, walk, frame, across, (end + _ROW, floor))
    parts = [
        f"d{shown.scene.target}/d{name} = {_known(value)}"
        for name, value in zip(shown.scene.wrt, frame.results, strict=True)
    ]
    for count, line in enumerate(wrap_words(" · ".join(parts), width - 2 * _EDGE, _TEXT)):
        pen.write(_EDGE, height - 34 + 20 * count, line, _TEXT)
    return figure


def _known(value: float | None) -> str:
    return "not computed" if value is None else number(value)


class _Pen:
    """Writes and draws in one look on one set of axes."""

    def __init__(self, axes: Any, look: Theme) -> None:
        self.axes, self.look = axes, look
        self.lit = look.curves[1]
        self.faint = mix(look.ink, look.background, 0.72)

    def write(self, x: float, y: float, text: str, size: float, **more: Any) -> None:
        style = {"color": self.look.ink, "family": FONT, "horizontalalignment": "left", **more}
        self.axes.text(
            x, y, text, fontsize=size, verticalalignment="center", parse_math=False, **style
        )

    def polygon(self, points: list[tuple[float, float]], colour: str, **more: Any) -> None:
        from matplotlib.patches import Polygon

        style = {"facecolor": colour, "linewidth": 0.0, **more}
        self.axes.add_patch(Polygon(points, closed=True, **style))


def _graph(
    pen: _Pen,
    shown: Stepping,
    frame: Frame,
    place: Placed,
    at: tuple[float, float, float],
    mark: str,
) -> None:
    left, top, scale = at

    def to(point: tuple[float, float]) -> tuple[float, float]:
        return left + point[0] * scale, top + point[1] * scale

    size = LETTER * scale
    dash: LineStyle
    for k, (line, tip) in enumerate(zip(place.lines, place.tips, strict=True)):
        lit = k in frame.step.edges
        colour = pen.lit if lit else pen.look.edge
        points = [to(p) for p in line]
        dash = (0, (2.2, 1.0)) if lit else "-"
        pen.axes.plot(
            *zip(*points, strict=True), color=colour, linewidth=4.5 if lit else 1.6, linestyle=dash
        )
        (ex, ey), (tx, ty) = points[-1], to(tip)
        across = (-(ty - ey) * 0.6, (tx - ex) * 0.6)
        corners = [(tx, ty), (ex + across[0], ey + across[1]), (ex - across[0], ey - across[1])]
        pen.polygon(corners, colour, zorder=3)
    for vertex, box in zip(shown.scene.vertices, place.boxes, strict=True):
        x, y = to((box.x, box.y))
        moved = Box(x, y, box.width * scale, box.height * scale)
        _vertex(pen, vertex, moved, scale, vertex.name in frame.step.vertices)
        derivative = frame.derivatives[vertex.row]
        below = "" if derivative is None else f"{mark} {number(derivative)}"
        more: dict[str, Any] = {"horizontalalignment": "center", "zorder": 6}
        pen.write(x, y - 21 * scale, vertex.name, size * 1.05, weight="bold", **more)
        pen.write(x, y, _known(frame.values[vertex.row]), size, **more)
        pen.write(x, y + 21 * scale, below, size, **more)
    for k, point in enumerate(place.labels):
        value = frame.partials[k]
        if value is not None:
            back = {"facecolor": pen.look.background, "edgecolor": "none", "pad": 1.5}
            more = {"bbox": back, "weight": "bold", "zorder": 7, "horizontalalignment": "center"}
            pen.write(*to(point), number(value, 5), size * 0.9, **more)


def _vertex(pen: _Pen, vertex: Vertex, box: Box, scale: float, lit: bool) -> None:
    style = pen.look.roles[vertex.role]
    slant = 13 * scale if vertex.role == "parameter" else 0.0

    def outline(grow: float, fill: str, colour: str, width: float) -> None:
        a, b = box.width / 2 + grow, box.height / 2 + grow
        right = [(a - slant, -b), (a, 0.0), (a - slant, b)]
        corners = [*right, *((-x, -y) for x, y in right)]
        points = [(box.x + x, box.y + y) for x, y in corners]
        pen.polygon(points, fill, edgecolor=colour, linewidth=width, zorder=4)

    outline(0.0, style.fill, style.outline, style.line_width)
    if vertex.role == "output":  # told by its double line
        outline(-4.0, "none", style.outline, style.line_width)
    if lit:
        outline(6.0, "none", pen.lit, 4.0)
        tip, y = box.x - box.width / 2 - 9, box.y
        pen.polygon([(tip, y), (tip - 14, y - 10), (tip - 14, y + 10)], pen.lit, zorder=5)


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
    rows = shown.scene.rows
    most = int((down[1] - down[0]) / _ROW) - 3
    lit = frame.step.row
    first = max(0, min(lit - most // 2, len(rows) - most))
    columns = (left + 24, left + 0.64 * (right - left), right)
    step_column = {"value": 1, "derivative": 2}.get(frame.step.column, 1)
    y = down[0] + _ROW / 2
    kind = {"bar": "adjoint", "dot": "tangent"}.get(mark, "derivative")
    for x, text, side in zip(columns, ("trace", "value", kind), "lrr", strict=True):
        where = "left" if side == "l" else "right"
        pen.write(x, y, text, _TEXT, weight="bold", horizontalalignment=where)
    room = columns[1] - columns[0] - 110
    if first:
        y += _ROW
        pen.write(columns[0], y, f"... {plural(first, 'row')} above", _TEXT, color=pen.faint)
    for number_of_row, row in enumerate(rows[first : first + most], start=first):
        y += _ROW
        here = number_of_row == lit
        weight = "bold" if here else "normal"
        if here:
            band = [(left, y - 13), (right + 6, y - 13), (right + 6, y + 13), (left, y + 13)]
            pen.polygon(band, mix(pen.lit, pen.look.background, 0.2), zorder=0)
            pen.polygon([(left + 4, y - 8), (left + 4, y + 8), (left + 16, y)], pen.lit)
        given = row.expression in ("input", "parameter")
        text = f"{row.name} ({row.expression})" if given else f"{row.name} = {row.expression}"
        size = min(_TEXT, max(_SMALLEST, _TEXT * room / max(text_width(text, _TEXT), 1.0)))
        for count, line in enumerate(wrap_words(text, room, size)):
            y += _ROW * 0.8 if count else 0.0
            pen.write(columns[0], y, line, size, weight=weight)
        pair = (frame.values[number_of_row], frame.derivatives[number_of_row])
        for x, value, column in zip(columns[1:], pair, (1, 2), strict=True):
            colour = pen.faint if value is None else pen.look.ink
            style = {"style": "italic"} if value is None else {}
            more: dict[str, Any] = {"color": colour, "weight": weight, **style}
            if here and column == step_column:
                more["bbox"] = {"facecolor": "none", "edgecolor": pen.lit, "pad": 3, "linewidth": 2}
            pen.write(x, y, _known(value), _TEXT, horizontalalignment="right", **more)
    rest = len(rows) - first - most
    if rest > 0:
        y += _ROW
        pen.write(columns[0], y, f"... {plural(rest, 'row')} below", _TEXT, color=pen.faint)
    return y


def _program(
    pen: _Pen, walk: Walk, frame: Frame, across: tuple[float, float], down: tuple[float, float]
) -> None:
    """The lines of the program around the one that is lit."""
    left, right = across
    lit = frame.step.line
    most = min(int((down[1] - down[0]) / _ROW) - 1, len(walk.lines))
    first = max(0, min(lit - most // 2, len(walk.lines) - most))
    y = down[0] + _ROW / 2
    pen.write(left + 24, y, "program", _TEXT, weight="bold")
    for count in range(first, first + most):
        y += _ROW
        here = count == lit
        weight = "bold" if here else "normal"
        if here:
            band = [(left, y - 13), (right + 6, y - 13), (right + 6, y + 13), (left, y + 13)]
            pen.polygon(band, mix(pen.lit, pen.look.background, 0.2), zorder=0)
            pen.polygon([(left + 4, y - 8), (left + 4, y + 8), (left + 16, y)], pen.lit)
        value = frame.lines[count]
        text, shown = walk.lines[count], "" if value is None else number(value)
        room = right - left - 150
        pen.write(right, y, shown, _TEXT, weight=weight, horizontalalignment="right")
        for part, line in enumerate(wrap_words(text, room, _TEXT, bold=True)):
            y += 0.8 * _ROW if part else 0.0
            pen.write(left + 24, y, line, _TEXT, weight=weight)
        if y > down[1] - _ROW:  # a long line above took the room of the last ones
            break
