"""The frames as slides of 16 to 9: the graph to the left, trace and program to the right.

A slide is 13.33 inches wide and no text on it is smaller than 14 points. A graph that is too large
for that is shown in part, around what is lit.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from cgprimer.support.number_format import choose_equality_sign, format_number, mark_rounding
from cgprimer.visualization.diagrams.animation import encode_gif
from cgprimer.visualization.diagrams.figure_files import figure_bytes
from cgprimer.visualization.diagrams.slide_pen import TEXT, break_lines, sheet
from cgprimer.visualization.diagrams.text_layout import text_width
from cgprimer.visualization.diagrams.theme import SLIDE_HEIGHT as HEIGHT
from cgprimer.visualization.diagrams.theme import SLIDE_WIDTH as WIDTH
from cgprimer.visualization.diagrams.theme import mix, theme
from cgprimer.visualization.pages.stepping.slide_picture import (
    EDGE,
    READABLE,
    draw_picture,
    edge_text,
    fits,
)
from cgprimer.visualization.pages.stepping.slide_tables import (
    ROW,
    Columns,
    columns,
    draw_tables,
    known,
)
from cgprimer.visualization.pages.stepping.step_frames import Frame, Stepping
from cgprimer.visualization.pages.stepping.vertex_positions import (
    LABEL,
    MANY,
    Placed,
    label_size,
    placed,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image

OnFrame = Callable[[int, int], None]
LARGE = 16.0
_HEADLINE = 72  # characters of a matrix in it
_NARROW, _WIDE = 400.0, 524.0  # the graph's share of the width
_ASPECT = (_WIDE - EDGE) / (HEIGHT - 2 * EDGE)
_GAPS = (56.0, 84.0, 104.0, 140.0)
_TIGHT = (48.0, 52.0, *_GAPS)
_DPI = 144.0
_APART = 11.0  # levels: Pillow rounds to steps of 4, and may take the wrong one of two nearer ones
_SHADES = 5  # of each colour in the palette, for the edges of letters and lines


def slides(
    shown: Stepping, method: str, kind: str, *, dark: bool = False, on_frame: OnFrame | None = None
) -> Iterator[bytes]:
    """Each frame of a method as a PNG, SVG or PDF file.

    ``on_frame`` is called after each frame that is drawn, with its number and how many there are.
    """
    for figure in _figures(shown, method, dark, on_frame):
        if kind == "png":  # of exactly so many pixels, as projectors have them
            written = io.BytesIO()
            figure.savefig(written, format="png", dpi=_DPI)
            yield written.getvalue()
        else:
            yield figure_bytes(figure, kind)


def animation(
    shown: Stepping,
    method: str,
    *,
    dark: bool = False,
    speed: float = 1.0,
    on_frame: OnFrame | None = None,
) -> bytes:
    """All frames of a method as one GIF of 1280 times 720 pixels; ``speed`` in steps per second.

    ``on_frame`` is as in `slides`.
    """
    return encode_gif(_figures(shown, method, dark, on_frame), _palette(dark), speed=speed)


def _figures(
    shown: Stepping, method: str, dark: bool, on_frame: OnFrame | None
) -> Iterator[Figure]:
    place, wide, frames = slide_placed(shown, method), columns(shown, method), shown.frames(method)
    for count, frame in enumerate(frames, start=1):
        yield slide(shown, method, frame, place, wide, dark=dark)
        if on_frame:
            on_frame(count, len(frames))


def _palette(dark: bool) -> Image:
    """An image with the theme's colours, and those between each and the background.

    One palette for all frames, so that no colour changes from frame to frame, and areas are exact.
    """
    from PIL.Image import new

    look = theme(dark)
    areas = [look.background, mix(look.curves[1], look.background, 0.2)]  # of what is lit
    areas += [style.fill for style in look.roles.values()]
    inks = [look.ink, look.curves[1], *(style.outline for style in look.roles.values())]
    mixed = (mix(ink, look.background, k / _SHADES) for k in range(_SHADES, 0, -1) for ink in inks)
    colours = [bytes.fromhex(colour[1:]) for colour in areas]
    for shade in (bytes.fromhex(colour[1:]) for colour in mixed):
        if all(math.dist(shade, colour) > _APART for colour in colours):
            colours.append(shade)
    found = new("P", (1, 1))
    found.putpalette(b"".join(colours))
    return found


def slide(
    shown: Stepping,
    method: str,
    frame: Frame,
    place: Placed,
    wide: Columns | None = None,
    *,
    dark: bool = False,
) -> Figure:
    """One frame as a figure; ``wide`` is the same for all frames, and computed if None."""
    figure, pen = sheet(dark=dark)
    walk = shown.walk(method)
    split = _split(place)
    draw_picture(pen, shown.scene, frame, place, walk.mark, (split - EDGE, HEIGHT - 2 * EDGE))
    left, right = split + EDGE, WIDTH - EDGE
    y = EDGE + 0.5 * ROW
    counted = f"step {frame.number + 1} of {len(walk.steps)}"
    room = right - left - text_width(counted, TEXT) - 20
    pen.write(right, y, counted, align="right")
    for line in break_lines(shown.title, room, LARGE, bold=True) or [""]:
        pen.write(left, y, line, LARGE, weight="bold")
        y += ROW
    scheme = f" ({walk.scheme})" if walk.scheme else ""
    for line in break_lines(f"{method}{scheme}, {frame.phase}", right - left):
        pen.write(left, y, line)
        y += ROW
    y += 4
    for line in break_lines(headline(frame), (right - left) / 1.1, LARGE, bold=True):
        pen.write(left, y, line, LARGE, weight="bold")
        y += 1.1 * ROW
    for line in break_lines(frame.step.note, right - left):
        pen.write(left, y, line, color=pen.faint)
        y += ROW
    parts = [
        f"d{shown.scene.target}/d{name} = {known(value)}".replace("= ≈", "≈ ")
        for name, value in zip(shown.scene.wrt, frame.results, strict=True)
    ]
    floor = HEIGHT - EDGE
    for line in reversed(_results(parts, right - left)):
        pen.write(left, floor - 0.5 * ROW, line)
        floor -= ROW
    floor -= 4
    wide = wide or columns(shown, method)
    draw_tables(pen, shown, walk, frame, wide, (left, y, right, floor))
    return figure


def headline(frame: Frame) -> str:
    """What happens in a step, with the number that comes out."""
    text = frame.step.text
    if frame.result is not None and not isinstance(frame.result, float):
        made = mark_rounding(frame.result, widest=_HEADLINE)
        return f"{text} {'=' if ' = ' in text else ':'} {made}".replace("= ≈", "≈ ")
    result = format_number(frame.result)
    if frame.result is None or text.endswith(f" = {result}"):
        return text
    # A path ends with a variable's name; an equals sign after it would say something else.
    sign = f" {choose_equality_sign(frame.result)}" if " = " in text else ":"
    return f"{text}{sign} {result}"


def slide_placed(shown: Stepping, method: str = "") -> Placed:
    """Where the graph stands on all slides; its layers are closer where it would not fit.

    Of a method there is room for the longest number on an edge, if all can still be read.
    """
    frames = shown.frames(method) if method and len(shown.scene.edges) <= MANY else ()
    texts = {edge_text(part) for frame in frames for part in frame.partials if part is not None}
    wide = label_size(max(map(len, texts), default=0))
    for label in dict.fromkeys((wide, LABEL)):
        for gaps in (_GAPS, _TIGHT):
            found = placed(shown.scene, _ASPECT, gaps, label)
            if fits(found, shown.scene, (_split(found) - EDGE, HEIGHT - 2 * EDGE)):
                return found
    return found


def _split(place: Placed) -> float:
    """Where the picture ends and the tables begin."""
    return min(max(place.width * READABLE + EDGE, _NARROW), _WIDE)


def _results(parts: list[str], width: float) -> list[str]:
    """The finished derivatives in lines, each in one piece where it fits; or how many there are."""
    lines = [""]
    for part in parts:
        longer = f"{lines[-1]} · {part}" if lines[-1] else part
        if text_width(longer, TEXT) <= width:
            lines[-1] = longer
        else:
            lines += break_lines(part, width)
    if len(lines) <= 3:
        return [line for line in lines if line]
    done = [part for part in parts if not part.endswith(known(None))]
    rest = f"{len(done)} of {len(parts)} derivatives are computed"
    return [*(break_lines(done[-1], width) if done else []), rest]
