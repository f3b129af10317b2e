"""The graph on a slide: shapes, numbers, highlights and a legend.

A graph whose text would be smaller than 14 points is shown in part: the vertices around the
highlighted ones are shown completely, and the sides state how many vertices are hidden.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cgprimer.core.operations.array_shapes import format_shape
from cgprimer.support.number_format import SHORT, mark_rounding
from cgprimer.visualization.diagrams.geometry import (
    Box,
    Point,
    Size,
    compute_line_length,
    find_point_at,
    sample_line,
)
from cgprimer.visualization.diagrams.geometry import bounding_box as enclose
from cgprimer.visualization.diagrams.slide_pen import Legend, Pen
from cgprimer.visualization.diagrams.text_layout import measure_text
from cgprimer.visualization.diagrams.theme import READABLE_SIZE, SLIDE_HEIGHT, mix, theme
from cgprimer.visualization.diagrams.vertex_shapes import build_shape_patches
from cgprimer.visualization.pages.stepping.scene import Scene, Vertex
from cgprimer.visualization.pages.stepping.slide_tables import (
    build_missing_style,
    format_partial_sum,
    format_shifted_value,
    format_value,
)
from cgprimer.visualization.pages.stepping.step_frames import Frame
from cgprimer.visualization.pages.stepping.vertex_positions import (
    FLAG,
    LABEL,
    LETTER,
    RING,
    SceneLayout,
)

READABLE = READABLE_SIZE / LETTER  #: the smallest scale of a picture, at which text has 14 points
EDGE = 16.0
_LARGEST = 1.2
_MARK = 24.0  # points at a side with hidden vertices
_TOLERANCE = 0.01  # units
_RING_ROOM = RING + 3.0  # room for the ring of a highlighted vertex
_ROW = 24.0  # of the legend
_LEGEND = 0.875  # scale at which the text of the legend has 14 points
_STUB = 64.0  # length of an edge to a hidden vertex
_FADE = 48.0  # length over which such an edge fades
_DASH, _PAUSE = 8.0, 3.6
_THICK, _THIN = 3.6, 1.4  # widths of highlighted and other edges


def draw_graph_area(
    pen: Pen, scene: Scene, frame: Frame, layout: SceneLayout, mark: str, room: Size
) -> None:
    """Draw the graph and its legend in the left area of a slide.

    ``mark`` is the prefix of derivatives, such as ``bar``.
    """
    legend = _build_legend(scene, room[0])
    # A legend of two lines is added to a graph that does not fit anyway, a longer one is not.
    fits_alone = _is_readable(layout, room)
    if not fits_room(layout, scene, room) and (fits_alone or len(legend.rows) > 2):
        legend.rows.clear()
    width, height = room[0], room[1] - legend.height
    inner = pen.part(EDGE, EDGE, *room)
    indices = {v.name: k for k, v in enumerate(scene.vertices)}
    highlighted = {indices[name] for name in frame.step.vertices if name in indices}
    ends = {indices[name] for k in frame.step.edges for name in scene.edges[k]}
    window = choose_window(layout, (width, height), sorted(highlighted), sorted(ends - highlighted))
    shown = {
        vertex.name
        for vertex, is_shown in zip(scene.vertices, window.shown, strict=True)
        if is_shown
    }
    for k in range(len(scene.edges)):
        _draw_edge(inner, scene, frame, layout, window, shown, k)
    for vertex, box in zip(scene.vertices, layout.boxes, strict=True):
        if vertex.name in shown:
            _draw_vertex(inner, vertex, box, window, frame, mark, layout.is_horizontal)
    _draw_hidden_counts(inner, window, (width, height))
    legend.draw(inner, width / 2, height)
    if not all(window.shown):
        border, floor = EDGE + width, SLIDE_HEIGHT - EDGE
        pen.line([(border, EDGE), (border, floor)], pen.look.grid, 1.0)


def fits_room(layout: SceneLayout, scene: Scene, room: Size) -> bool:
    """Return whether the whole graph and its legend fit into an area with readable text."""
    return _is_readable(layout, (room[0], room[1] - _build_legend(scene, room[0]).height))


def _build_legend(scene: Scene, width: float) -> Legend:
    """Build the legend for the vertex roles in the graph and for the current step's highlight."""
    roles = {vertex.role for vertex in scene.vertices}
    ordered_roles = (role for role in theme(False).roles if role in roles)
    return Legend([*ordered_roles, "step"], width, row=_ROW, scale=_LEGEND)


def _is_readable(layout: SceneLayout, room: Size) -> bool:
    """Return whether the text of the whole graph stays readable when scaled to fit an area."""
    box = bounding_box(layout)
    return min(room[0] / box.width, room[1] / box.height) >= READABLE


def _draw_hidden_counts(pen: Pen, window: Window, room: Size) -> None:
    """Draw the number of vertices hidden beyond each side of the window, next to a triangle."""
    width, height = room
    sides = (
        (_MARK / 2, height / 2, "▲", 90),
        (width - _MARK / 2, height / 2, "▲", 270),
        (width / 2, _MARK / 2, "▲", 0),
        (width / 2, height - _MARK / 2, "▼", 0),
    )
    for count, (x, y, sign, rotation) in zip(window.hidden_counts, sides, strict=True):
        if count:
            look: dict[str, Any] = {"rotation": rotation, "align": "center", "zorder": 8}
            pen.write(x, y, f"{sign} {count} more", color=pen.faint, **look)


def _draw_edge(
    pen: Pen,
    scene: Scene,
    frame: Frame,
    layout: SceneLayout,
    window: Window,
    shown: set[str],
    index: int,
) -> None:
    """Draw an edge and the number on it; an edge to a hidden vertex fades out."""
    tail, head = scene.edges[index]
    points = [window.to_slide(p) for p in layout.lines[index]]
    tip = window.to_slide(layout.tips[index])
    highlighted = index in frame.step.edges
    has_number = {tail, head} <= shown
    if has_number and highlighted:
        pen.line(points, pen.lit, _THICK, linestyle=(0, (_DASH / _THICK, _PAUSE / _THICK)))
    elif has_number:
        pen.line(points, pen.look.edge, _THIN)
    elif {tail, head} & shown:
        outward = points if tail in shown else points[::-1]
        visible = cut_line(window, outward, math.inf if highlighted else _STUB)
        is_long = math.dist(visible[0], visible[-1]) > 0.5 * compute_line_length([*points, tip])
        has_number = highlighted and is_long
        _draw_fading_line(pen, visible, highlighted)
    if head in shown:
        _draw_arrow_head(pen, points[-1], tip, highlighted)
    value = frame.partials[index]
    if value is not None and has_number:
        background = {"facecolor": pen.look.background, "edgecolor": "none", "pad": 1.0}
        style: dict[str, Any] = {"bbox": background, "weight": "bold", "zorder": 7}
        position = window.to_slide(layout.labels[index])
        size = LETTER * window.scale
        pen.write(*position, format_edge_value(value), size, align="center", **style)


def format_edge_value(value: Any) -> str:
    """Format the number on an edge; for an array, show only its shape."""
    return mark_rounding(value, SHORT) if isinstance(value, float) else format_shape(value.shape)


def _draw_fading_line(pen: Pen, points: list[Point], highlighted: bool) -> None:
    """Draw the visible part of an edge to a hidden vertex; the line fades into the background."""
    from matplotlib.collections import LineCollection

    total = compute_line_length(points)
    if total < _DASH:
        return
    color, width, dash, pause = pen.look.edge, _THIN, _DASH / 2, 0.0
    if highlighted:
        color, width, dash, pause = pen.lit, _THICK, _DASH, _PAUSE
    pieces, fade = split_into_dashes(points, dash, pause), min(_FADE, total)
    fractions = ((total - k * (dash + pause)) / fade for k in range(len(pieces)))
    colors = [
        mix(color, pen.look.background, min(1.0, max(fraction, 0.05))) for fraction in fractions
    ]
    lines = LineCollection(pieces, colors=colors, linewidths=width, capstyle="butt", zorder=2)
    pen.axes.add_artist(lines)


def _draw_arrow_head(pen: Pen, base: Point, tip: Point, highlighted: bool) -> None:
    """Draw the arrowhead of an edge, with a rim that separates it from the highlights below it."""
    (ex, ey), (tx, ty) = base, tip
    half = 0.55 if highlighted else 0.42  # half the width, divided by the length
    across = (-(ty - ey) * half, (tx - ex) * half)
    corners = [(tx, ty), (ex + across[0], ey + across[1]), (ex - across[0], ey - across[1])]
    rim = {"edgecolor": pen.look.background, "linewidth": 1.0, "joinstyle": "round"}
    pen.polygon(corners, pen.lit if highlighted else pen.look.edge, zorder=5, **rim)


def _draw_vertex(
    pen: Pen,
    vertex: Vertex,
    box: Box,
    window: Window,
    frame: Frame,
    mark: str,
    is_horizontal: bool,
) -> None:
    """Draw a vertex: its shape, its highlight, its name, its value and its derivative."""
    scale = window.scale
    slide_box = Box(*window.to_slide((box.x, box.y)), box.width * scale, box.height * scale)
    _draw_shape(pen, vertex, slide_box)
    if vertex.name in frame.step.vertices:
        _draw_highlight(pen, vertex, slide_box, scale, is_horizontal)
    _draw_vertex_text(pen, vertex, slide_box, scale, frame, mark)


def _draw_shape(pen: Pen, vertex: Vertex, box: Box) -> None:
    """Draw the shape of a vertex in the color of its role."""
    style = pen.look.roles[vertex.role]
    for patch in build_shape_patches(style, box):
        patch.set_zorder(4)
        pen.axes.add_patch(patch)


def _draw_highlight(pen: Pen, vertex: Vertex, box: Box, scale: float, is_horizontal: bool) -> None:
    """Draw a ring around a highlighted vertex, and a triangular marker next to it."""
    style = pen.look.roles[vertex.role]
    margin = 2 * RING * scale
    ring = build_shape_patches(style, Box(box.x, box.y, box.width + margin, box.height + margin))[0]
    ring.set(facecolor="none", edgecolor=pen.lit, linewidth=3.2, linestyle="-", zorder=4)
    pen.axes.add_patch(ring)
    distance = (RING + 4.0) * scale
    if is_horizontal:  # arrows come from the left
        pen.flag(box.x, box.y - box.height / 2 - distance, down=True, zorder=5)
    else:
        pen.flag(box.x - box.width / 2 - distance, box.y, zorder=5)


def _draw_vertex_text(
    pen: Pen, vertex: Vertex, box: Box, scale: float, frame: Frame, mark: str
) -> None:
    """Draw the name, the value and the derivative of a vertex."""
    k = vertex.row
    value, derivative, partial_sum = frame.values[k], frame.derivatives[k], frame.sums[k]
    below = "" if derivative is None else f"{mark} {format_value(derivative)}"
    is_hexagon = theme(False).roles[vertex.role].shape == "hexagon"  # has less room in corners
    if (is_hexagon and len(below) > 12) or measure_text(below, LETTER) > box.width / scale - 12:
        below = below.removeprefix(f"{mark} ")
    if derivative is None and partial_sum is not None:
        below = format_partial_sum(partial_sum)  # without the mark, for which there is no room
    style: dict[str, Any] = {"align": "center", "zorder": 6}
    text = format_value(None) if value is None else format_shifted_value(value, frame.unmoved[k])
    size = LETTER * scale
    pen.write(box.x, box.y - 21 * scale, vertex.name, size * 1.05, weight="bold", **style)
    for line, y, number in ((text, box.y, value), (below, box.y + 21 * scale, derivative)):
        pen.write(
            box.x, y, line, size, **(build_missing_style(pen) if number is None else {}), **style
        )


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a graph's layout that is visible on a slide.

    Attributes:
        left: the horizontal position of the window in the layout.
        top: the vertical position of the window in the layout.
        scale: points per unit of the layout.
        shown: whether each vertex is shown.
        hidden_counts: the number of hidden vertices to the left, to the right, above and below.
        inner: the area of vertices (left, top, right and bottom), in points.
    """

    left: float
    top: float
    scale: float
    shown: tuple[bool, ...]
    hidden_counts: tuple[int, ...]
    inner: tuple[float, float, float, float]

    def to_slide(self, point: Point) -> Point:
        """Convert a position in the layout to slide coordinates, in points."""
        return (point[0] - self.left) * self.scale, (point[1] - self.top) * self.scale


def choose_window(
    layout: SceneLayout, room: Size, highlighted: Iterable[int] = (), ends: Iterable[int] = ()
) -> Window:
    """Choose which part of a graph's layout a slide shows in the given area, in points.

    The window shows as many highlighted vertices as possible, then ends of highlighted edges, then
    other vertices. Steps with the same highlights get the same window.

    >>> boxes = tuple(Box(150.0 * k + 100, 50, 130, 70) for k in range(9))
    >>> layout = SceneLayout(boxes, (), (), (), 1400, 100)
    >>> window = choose_window(layout, (400, 400), highlighted=[4])
    >>> window.shown.index(True), sum(window.shown), window.hidden_counts
    (3, 2, (3, 4, 0, 0))
    """
    box = bounding_box(layout)
    middle, size = (box.x, box.y), (box.width, box.height)
    full_scale = min(room[0] / size[0], room[1] / size[1])
    if full_scale >= READABLE:
        scale = min(full_scale, _LARGEST)
        left, top = (m - r / scale / 2 for m, r in zip(middle, room, strict=True))
        shown = (True,) * len(layout.boxes)
        return Window(left, top, scale, shown, (0, 0, 0, 0), (0.0, 0.0, *room))
    sides = [_MARK if s * READABLE > r else 0.0 for s, r in zip(size, room, strict=True)]
    spaces = [(r - 2 * side) / READABLE for r, side in zip(room, sides, strict=True)]
    weights = np.ones(len(layout.boxes))
    for indices in (ends, highlighted):  # one vertex outweighs all vertices of lower priority
        weights[list(indices)] = weights.sum() + 1
    searches = [
        _search_window_positions(layout, axis, space, middle[axis], size[axis])
        for axis, space in enumerate(spaces)
    ]
    (spans_x, starts_x, inside_x), (spans_y, starts_y, inside_y) = searches
    scores = (inside_x * weights) @ inside_y.T.astype(float)
    best = np.unravel_index(int(np.argmax(scores)), scores.shape)
    visible = inside_x[best[0]] & inside_y[best[1]]
    corner, distances = [0.0, 0.0], []
    for axis, (spans, start) in enumerate(
        ((spans_x, starts_x[best[0]]), (spans_y, starts_y[best[1]]))
    ):
        position, space = float(start), spaces[axis]
        if space < size[axis]:
            position = float(spans[visible, 0].min() + spans[visible, 1].max() - space) / 2
        distances += [position - spans[:, 0], spans[:, 1] - position - space]
        corner[axis] = position - sides[axis] / READABLE
    hidden = np.bincount(np.argmax(distances, axis=0)[~visible], minlength=4)
    inner = (sides[0], sides[1], room[0] - sides[0], room[1] - sides[1])
    shown, hidden_counts = tuple(visible.tolist()), tuple(hidden.tolist())
    return Window(corner[0], corner[1], READABLE, shown, hidden_counts, inner)


def _search_window_positions(
    layout: SceneLayout, axis: int, space: float, middle: float, size: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Find candidate positions of the window along one axis, and the vertices inside each.

    Args:
        layout: the layout.
        axis: 0 for horizontal, 1 for vertical.
        space: the length of the window.
        middle: the middle of the layout.
        size: the length of the layout.

    Returns:
        Start and end of each vertex, the candidate starts of the window, and a boolean matrix that
        tells which vertices are inside the window at each start.
    """
    spans = _list_vertex_extents(layout, axis)
    is_wide = spans[:, 1] - spans[:, 0] > space  # wider than the window, so shown in part
    half = np.array([-space / 2, space / 2])
    spans[is_wide] = spans[is_wide].mean(axis=1, keepdims=True) + half
    starts = np.array([middle - space / 2])
    if space < size:  # a window begins or ends at a vertex
        starts = np.unique(np.round(np.concatenate([spans[:, 0], spans[:, 1] - space]), 3))
    begin, end = starts[:, None] - _TOLERANCE, starts[:, None] + space + _TOLERANCE
    return spans, starts, (spans[:, 0] >= begin) & (spans[:, 1] <= end)


def cut_line(window: Window, line: Sequence[Point], max_length: float) -> list[Point]:
    """Return the first part of an edge's polyline, which ends at the border of the window.

    The result is at most ``max_length`` points long, and ends before a hidden vertex.
    """
    left, top, right, bottom = window.inner
    max_length = min(compute_line_length(line) - 14.0, max_length)
    visible: list[Point] = [line[0]]
    total = 0.0
    for a, b in pairwise(sample_line(line, 2.0)):
        total += math.dist(a, b)
        if total > max_length or not (left <= b[0] <= right and top <= b[1] <= bottom):
            break
        visible.append(b)
    return visible


def split_into_dashes(line: Sequence[Point], dash: float, gap: float) -> list[list[Point]]:
    """Split a polyline into dashes of equal length, separated by gaps."""
    starts = np.arange(0.0, compute_line_length(line) - dash + 1e-9, dash + gap).tolist()
    return [[find_point_at(line, start), find_point_at(line, start + dash)] for start in starts]


def bounding_box(layout: SceneLayout) -> Box:
    """Return the bounding box of a layout, including highlights and the numbers on edges."""
    corners = (
        np.stack([_list_vertex_extents(layout, 0), _list_vertex_extents(layout, 1)], axis=-1)
        .reshape(-1, 2)
        .tolist()
    )
    points = [(x, y) for x, y in corners] + [point for line in layout.lines for point in line]
    return enclose((Box(*middle, *LABEL) for middle in layout.labels), points)


def _list_vertex_extents(layout: SceneLayout, axis: int) -> NDArray[np.float64]:
    """Return where each vertex starts and ends along an axis, including its ring and marker."""
    middles = np.array([(b.x, b.y)[axis] for b in layout.boxes])
    halves = np.array([(b.width, b.height)[axis] / 2 for b in layout.boxes])
    before = FLAG if axis == int(layout.is_horizontal) else _RING_ROOM
    return np.stack([middles - halves - before, middles + halves + _RING_ROOM], axis=1)
