"""Steps as slides of aspect 16:9: the graph on the left, trace and program on the right.

A slide is 13.33 inches wide, and no text is smaller than 14 points. If a graph is too large for
this, the slide shows the part around the highlighted vertices.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from cgprimer.support.number_format import choose_equality_sign, format_number, mark_rounding
from cgprimer.visualization.diagrams.animation import encode_gif
from cgprimer.visualization.diagrams.figure_files import encode_figure
from cgprimer.visualization.diagrams.slide_pen import TEXT, break_lines, create_canvas
from cgprimer.visualization.diagrams.text_layout import measure_text
from cgprimer.visualization.diagrams.theme import SLIDE_HEIGHT as HEIGHT
from cgprimer.visualization.diagrams.theme import SLIDE_WIDTH as WIDTH
from cgprimer.visualization.diagrams.theme import mix, theme
from cgprimer.visualization.pages.stepping.slide_picture import (
    EDGE,
    READABLE,
    draw_graph_area,
    fits_room,
    format_edge_value,
)
from cgprimer.visualization.pages.stepping.slide_tables import (
    ROW,
    ColumnWidths,
    draw_tables,
    format_value,
    measure_columns,
)
from cgprimer.visualization.pages.stepping.step_frames import Frame, Stepping
from cgprimer.visualization.pages.stepping.vertex_positions import (
    LABEL,
    MANY,
    SceneLayout,
    compute_label_size,
    lay_out_scene,
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
_LEAST_DISTANCE = (
    11.0  # levels: Pillow rounds to steps of 4, and may take the wrong one of two nearer ones
)
_SHADES = 5  # of each color in the palette, for the edges of letters and lines


def render_slides(
    stepping: Stepping,
    method: str,
    kind: str,
    *,
    dark: bool = False,
    on_frame: OnFrame | None = None,
) -> Iterator[bytes]:
    """Yield the slide for each step of a method as the content of a PNG, SVG or PDF file.

    ``on_frame`` is called after each slide with its number and the number of all slides.
    """
    for figure in _draw_slides(stepping, method, dark, on_frame):
        if kind == "png":  # in the resolution of projectors
            buffer = io.BytesIO()
            figure.savefig(buffer, format="png", dpi=_DPI)
            yield buffer.getvalue()
        else:
            yield encode_figure(figure, kind)


def render_animation(
    stepping: Stepping,
    method: str,
    *,
    dark: bool = False,
    speed: float = 1.0,
    on_frame: OnFrame | None = None,
) -> bytes:
    """Render all steps of a method as an animated GIF of 1280 by 720 pixels.

    Args:
        stepping: the steps.
        method: the method.
        dark: use dark colors.
        speed: steps per second.
        on_frame: called after each frame with its number and the number of all frames.
    """
    return encode_gif(
        _draw_slides(stepping, method, dark, on_frame), _build_palette(dark), speed=speed
    )


def _draw_slides(
    stepping: Stepping, method: str, dark: bool, on_frame: OnFrame | None
) -> Iterator[Figure]:
    """Draw a slide for each step of a method, and yield the figures."""
    layout, widths = lay_out_slide(stepping, method), measure_columns(stepping, method)
    frames = stepping.frames(method)
    for count, frame in enumerate(frames, start=1):
        yield draw_slide(stepping, method, frame, layout, widths, dark=dark)
        if on_frame:
            on_frame(count, len(frames))


def _build_palette(dark: bool) -> Image:
    """Build a palette image of the theme's colors and their mixtures with the background.

    All frames share the palette, so that no color changes from frame to frame.
    """
    from PIL.Image import new

    look = theme(dark)
    areas = [look.background, mix(look.curves[1], look.background, 0.2)]  # of the highlighted line
    areas += [style.fill for style in look.roles.values()]
    inks = [look.ink, look.curves[1], *(style.outline for style in look.roles.values())]
    mixed = (mix(ink, look.background, k / _SHADES) for k in range(_SHADES, 0, -1) for ink in inks)
    colors = [bytes.fromhex(color[1:]) for color in areas]
    for shade in (bytes.fromhex(color[1:]) for color in mixed):
        if all(math.dist(shade, color) > _LEAST_DISTANCE for color in colors):
            colors.append(shade)
    image = new("P", (1, 1))
    image.putpalette(b"".join(colors))
    return image


def draw_slide(
    stepping: Stepping,
    method: str,
    frame: Frame,
    layout: SceneLayout,
    widths: ColumnWidths | None = None,
    *,
    dark: bool = False,
) -> Figure:
    """Draw the slide of one step; all slides of a method have the same layout and widths."""
    figure, pen = create_canvas(dark=dark)
    walk = stepping.walk(method)
    split = _compute_picture_width(layout)
    draw_graph_area(
        pen, stepping.scene, frame, layout, walk.mark, (split - EDGE, HEIGHT - 2 * EDGE)
    )
    left, right = split + EDGE, WIDTH - EDGE
    y = EDGE + 0.5 * ROW
    position = f"step {frame.number + 1} of {len(walk.steps)}"
    room = right - left - measure_text(position, TEXT) - 20
    pen.write(right, y, position, align="right")
    for line in break_lines(stepping.title, room, LARGE, bold=True) or [""]:
        pen.write(left, y, line, LARGE, weight="bold")
        y += ROW
    scheme = f" ({walk.scheme})" if walk.scheme else ""
    for line in break_lines(f"{method}{scheme}, {frame.phase}", right - left):
        pen.write(left, y, line)
        y += ROW
    y += 4
    for line in break_lines(format_headline(frame), (right - left) / 1.1, LARGE, bold=True):
        pen.write(left, y, line, LARGE, weight="bold")
        y += 1.1 * ROW
    for line in break_lines(frame.step.note, right - left):
        pen.write(left, y, line, color=pen.faint)
        y += ROW
    parts = [
        f"d{stepping.scene.target}/d{name} = {format_value(value)}".replace("= ≈", "≈ ")
        for name, value in zip(stepping.scene.wrt, frame.results, strict=True)
    ]
    floor = HEIGHT - EDGE
    for line in reversed(_wrap_results(parts, right - left)):
        pen.write(left, floor - 0.5 * ROW, line)
        floor -= ROW
    floor -= 4
    widths = widths or measure_columns(stepping, method)
    draw_tables(pen, stepping, walk, frame, widths, (left, y, right, floor))
    return figure


def format_headline(frame: Frame) -> str:
    """Format the headline of a slide: the instruction of the step and its result."""
    text = frame.step.text
    if frame.result is not None and not isinstance(frame.result, float):
        result = mark_rounding(frame.result, widest=_HEADLINE)
        return f"{text} {'=' if ' = ' in text else ':'} {result}".replace("= ≈", "≈ ")
    result = format_number(frame.result)
    if frame.result is None or text.endswith(f" = {result}"):
        return text
    # A path ends with the name of a variable: an equals sign would give it another meaning.
    sign = f" {choose_equality_sign(frame.result)}" if " = " in text else ":"
    return f"{text}{sign} {result}"


def lay_out_slide(stepping: Stepping, method: str = "") -> SceneLayout:
    """Lay out the graph for all slides of a method; reduce gaps if the graph does not fit.

    The layout has room for the longest number on an edge if the text stays readable.
    """
    frames = stepping.frames(method) if method and len(stepping.scene.edges) <= MANY else ()
    texts = {
        format_edge_value(part) for frame in frames for part in frame.partials if part is not None
    }
    widest = compute_label_size(max(map(len, texts), default=0))
    for label in dict.fromkeys((widest, LABEL)):
        for gaps in (_GAPS, _TIGHT):
            layout = lay_out_scene(stepping.scene, _ASPECT, gaps, label)
            room = (_compute_picture_width(layout) - EDGE, HEIGHT - 2 * EDGE)
            if fits_room(layout, stepping.scene, room):
                return layout
    return layout


def _compute_picture_width(layout: SceneLayout) -> float:
    """Return the x position at which the picture ends and the tables begin."""
    return min(max(layout.width * READABLE + EDGE, _NARROW), _WIDE)


def _wrap_results(parts: list[str], width: float) -> list[str]:
    """Wrap computed derivatives into at most three lines; replace further lines by a count."""
    lines = [""]
    for part in parts:
        longer = f"{lines[-1]} · {part}" if lines[-1] else part
        if measure_text(longer, TEXT) <= width:
            lines[-1] = longer
        else:
            lines += break_lines(part, width)
    if len(lines) <= 3:
        return [line for line in lines if line]
    finished = [part for part in parts if not part.endswith(format_value(None))]
    count = f"{len(finished)} of {len(parts)} derivatives computed"
    return [*(break_lines(finished[-1], width) if finished else []), count]
