"""The graph on a slide: shapes, numbers, what is lit, a legend, and where there is more.

A graph that would have letters under 14 points is cut, but no vertex is: those around what is lit
are shown whole, and the sides say how many are left out.
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
    line_length,
    point_at,
    sample_line,
)
from cgprimer.visualization.diagrams.geometry import bounding_box as around
from cgprimer.visualization.diagrams.slide_pen import Legend, Pen
from cgprimer.visualization.diagrams.text_layout import text_width
from cgprimer.visualization.diagrams.theme import READABLE_SIZE, SLIDE_HEIGHT, mix, theme
from cgprimer.visualization.diagrams.vertex_shapes import shape_patches
from cgprimer.visualization.pages.stepping.scene import Scene, Vertex
from cgprimer.visualization.pages.stepping.slide_tables import known, missing, moved, so_far
from cgprimer.visualization.pages.stepping.step_frames import Frame
from cgprimer.visualization.pages.stepping.vertex_positions import FLAG, LABEL, LETTER, RING, Placed

READABLE = READABLE_SIZE / LETTER  #: the smallest scale of a picture, text at 14 points
EDGE = 16.0
_LARGEST = 1.2
_MARK = 24.0  # points at a side where there is more
_CLOSE = 0.01  # units
_AROUND = RING + 3.0  # the ring of a vertex that is lit
_ROW = 24.0  # of the legend
_LEGEND = 0.875  # times as large as in a picture: its text has 14 points
_STUB = 64.0  # of an edge to a vertex that is left out
_FADE = 48.0
_DASH, _PAUSE = 8.0, 3.6
_LIT, _PLAIN = 3.6, 1.4


def draw_picture(
    pen: Pen, scene: Scene, frame: Frame, place: Placed, mark: str, room: Size
) -> None:
    """Draw the graph and its legend in the left part of the slide; ``mark`` names derivatives."""
    legend = _legend(scene, room[0])
    # The graph is never cut for the legend; where it is cut anyway, two lines are little.
    cut = not _readable(place, room)
    if not fits(place, scene, room) and not (cut and len(legend.rows) <= 2):
        legend.rows.clear()
    width, height = room[0], room[1] - legend.height
    inner = pen.part(EDGE, EDGE, *room)
    numbers = {v.name: k for k, v in enumerate(scene.vertices)}
    lit = {numbers[name] for name in frame.step.vertices if name in numbers}
    ends = {numbers[name] for k in frame.step.edges for name in scene.edges[k]}
    chosen = window(place, (width, height), sorted(lit), sorted(ends - lit))
    _graph(inner, scene, frame, place, chosen, mark)
    _more(inner, chosen, (width, height))
    legend.draw(inner, width / 2, height)
    if not all(chosen.shown):
        border, floor = EDGE + width, SLIDE_HEIGHT - EDGE
        pen.line([(border, EDGE), (border, floor)], pen.look.grid, 1.0)


def fits(place: Placed, scene: Scene, room: Size) -> bool:
    """Whether the whole graph and its legend can be read in a room of so many points."""
    return _readable(place, (room[0], room[1] - _legend(scene, room[0]).height))


def _legend(scene: Scene, width: float) -> Legend:
    """The roles that the graph has, and the mark of this step, in rows that are narrow enough."""
    roles = {vertex.role for vertex in scene.vertices}
    known = (role for role in theme(False).roles if role in roles)
    return Legend([*known, "step"], width, row=_ROW, scale=_LEGEND)


def _readable(place: Placed, room: Size) -> bool:
    whole = extent(place)
    return min(room[0] / whole.width, room[1] / whole.height) >= READABLE


def _more(pen: Pen, chosen: Window, room: Size) -> None:
    """At each side how many vertices are left out there; the triangle points to them."""
    width, height = room
    sides = (
        (_MARK / 2, height / 2, "▲", 90),
        (width - _MARK / 2, height / 2, "▲", 270),
        (width / 2, _MARK / 2, "▲", 0),
        (width / 2, height - _MARK / 2, "▼", 0),
    )
    for count, (x, y, sign, turned) in zip(chosen.more, sides, strict=True):
        if count:
            look: dict[str, Any] = {"rotation": turned, "align": "center", "zorder": 8}
            pen.write(x, y, f"{sign} {count} more", color=pen.faint, **look)


def _graph(pen: Pen, scene: Scene, frame: Frame, place: Placed, chosen: Window, mark: str) -> None:
    shown = {v.name for v, there in zip(scene.vertices, chosen.shown, strict=True) if there}
    for k, (tail, head) in enumerate(scene.edges):
        points = [chosen.to(p) for p in place.lines[k]]
        tip = chosen.to(place.tips[k])
        lit = k in frame.step.edges
        written = {tail, head} <= shown
        if written and lit:
            pen.line(points, pen.lit, _LIT, linestyle=(0, (_DASH / _LIT, _PAUSE / _LIT)))
        elif written:
            pen.line(points, pen.look.edge, _PLAIN)
        elif {tail, head} & shown:
            way = points if tail in shown else points[::-1]
            kept = way_out(chosen, way, math.inf if lit else _STUB)
            written = lit and math.dist(kept[0], kept[-1]) > 0.5 * line_length([*points, tip])
            _fading(pen, kept, lit)
        if head in shown:
            _head(pen, points[-1], tip, lit)
        value = frame.partials[k]
        if value is not None and written:
            back = {"facecolor": pen.look.background, "edgecolor": "none", "pad": 1.0}
            more: dict[str, Any] = {"bbox": back, "weight": "bold", "zorder": 7, "align": "center"}
            at = chosen.to(place.labels[k])
            pen.write(*at, edge_text(value), LETTER * chosen.scale, **more)
    for vertex, box in zip(scene.vertices, place.boxes, strict=True):
        if vertex.name in shown:
            scale = chosen.scale
            here = Box(*chosen.to((box.x, box.y)), box.width * scale, box.height * scale)
            lit = vertex.name in frame.step.vertices
            _vertex(pen, vertex, here, lit, (place.across, scale))
            _texts(pen, vertex, here, scale, frame, mark)


def edge_text(value: Any) -> str:
    """A number on an edge, or the shape of an array."""
    return mark_rounding(value, SHORT) if isinstance(value, float) else format_shape(value.shape)


def _fading(pen: Pen, points: list[Point], lit: bool) -> None:
    """A line that goes over into the background: it leads to a vertex that is left out."""
    from matplotlib.collections import LineCollection

    whole = line_length(points)
    if whole < _DASH:
        return
    colour, width, dash, pause = pen.look.edge, _PLAIN, _DASH / 2, 0.0
    if lit:
        colour, width, dash, pause = pen.lit, _LIT, _DASH, _PAUSE
    pieces, ending = dashes(points, dash, pause), min(_FADE, whole)
    shares = ((whole - k * (dash + pause)) / ending for k in range(len(pieces)))
    colours = [mix(colour, pen.look.background, min(1.0, max(share, 0.05))) for share in shares]
    drawn = LineCollection(pieces, colors=colours, linewidths=width, capstyle="butt", zorder=2)
    pen.axes.add_artist(drawn)


def _head(pen: Pen, end: Point, tip: Point, lit: bool) -> None:
    """An arrow head, over the ring of a vertex that is lit, with a rim that sets it off."""
    (ex, ey), (tx, ty) = end, tip
    half = 0.55 if lit else 0.42  # times its length
    across = (-(ty - ey) * half, (tx - ex) * half)
    corners = [(tx, ty), (ex + across[0], ey + across[1]), (ex - across[0], ey - across[1])]
    rim = {"edgecolor": pen.look.background, "linewidth": 1.0, "joinstyle": "round"}
    pen.polygon(corners, pen.lit if lit else pen.look.edge, zorder=5, **rim)


def _vertex(pen: Pen, vertex: Vertex, box: Box, lit: bool, look: tuple[bool, float]) -> None:
    style = pen.look.roles[vertex.role]
    for patch in shape_patches(style, box):
        patch.set_zorder(4)
        pen.axes.add_patch(patch)
    if not lit:
        return
    across, scale = look
    grown = 2 * RING * scale
    ring = shape_patches(style, Box(box.x, box.y, box.width + grown, box.height + grown))[0]
    ring.set(facecolor="none", edgecolor=pen.lit, linewidth=3.2, linestyle="-", zorder=4)
    pen.axes.add_patch(ring)
    away = (RING + 4.0) * scale
    if across:  # arrows come from the left
        pen.flag(box.x, box.y - box.height / 2 - away, down=True, zorder=5)
    else:
        pen.flag(box.x - box.width / 2 - away, box.y, zorder=5)


def _texts(pen: Pen, vertex: Vertex, box: Box, scale: float, frame: Frame, mark: str) -> None:
    k = vertex.row
    value, derivative, so_far_at = (
        frame.values[k],
        frame.derivatives[k],
        frame.sums[k],
    )
    below = "" if derivative is None else f"{mark} {known(derivative)}"
    cut = len(below) > 12 and theme(False).roles[vertex.role].shape == "hexagon"  # its corners
    if cut or text_width(below, LETTER) > box.width / scale - 12:
        below = below.removeprefix(f"{mark} ")
    if derivative is None and so_far_at is not None:
        below = so_far(so_far_at)  # no room for the mark
    more: dict[str, Any] = {"align": "center", "zorder": 6}
    text = known(None) if value is None else moved(value, frame.unmoved[k])
    size = LETTER * scale
    pen.write(box.x, box.y - 21 * scale, vertex.name, size * 1.05, weight="bold", **more)
    for line, y, number in ((text, box.y, value), (below, box.y + 21 * scale, derivative)):
        pen.write(box.x, y, line, size, **(missing(pen) if number is None else {}), **more)


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a picture, drawn ``scale`` times as large.

    Attributes:
        left, top: the picture's point that comes to (0, 0); in the picture's units.
        scale: points per unit.
        shown: for each vertex, if it is shown; whole or not at all.
        more: how many vertices are left out to the left, to the right, above and below.
        inner: where vertices may stand: left, top, right and bottom; in points.
    """

    left: float
    top: float
    scale: float
    shown: tuple[bool, ...]
    more: tuple[int, ...]
    inner: tuple[float, float, float, float]

    def to(self, point: Point) -> Point:
        """From the picture's units to points on the slide."""
        return (point[0] - self.left) * self.scale, (point[1] - self.top) * self.scale


def window(place: Placed, room: Size, lit: Iterable[int] = (), near: Iterable[int] = ()) -> Window:
    """Choose what to show in a room of so many points.

    A window shows as many as it can of the vertices ``lit``, then of those ``near``, then of the
    others. Steps with the same ``lit`` and ``near`` get the same window.

    >>> boxes = tuple(Box(150.0 * k + 100, 50, 130, 70) for k in range(9))
    >>> chosen = window(Placed(boxes, (), (), (), 1400, 100), (400, 400), lit=[4])
    >>> chosen.shown.index(True), sum(chosen.shown), chosen.more
    (3, 2, (3, 4, 0, 0))
    """
    whole = extent(place)
    middle, size = (whole.x, whole.y), (whole.width, whole.height)
    fits = min(room[0] / size[0], room[1] / size[1])
    if fits >= READABLE:
        scale = min(fits, _LARGEST)
        left, top = (m - r / scale / 2 for m, r in zip(middle, room, strict=True))
        shown = (True,) * len(place.boxes)
        return Window(left, top, scale, shown, (0, 0, 0, 0), (0.0, 0.0, *room))
    sides = [_MARK if s * READABLE > r else 0.0 for s, r in zip(size, room, strict=True)]
    rooms = [(r - 2 * side) / READABLE for r, side in zip(room, sides, strict=True)]
    weights = np.ones(len(place.boxes))
    for which in (near, lit):  # one of a better kind is worth more than all others
        weights[list(which)] = weights.sum() + 1
    spans, starts, inside = [], [], []
    for axis, space in enumerate(rooms):
        span = _spans(place, axis)
        wide = span[:, 1] - span[:, 0] > space  # fills the window: better in part than not at all
        span[wide] = span[wide].mean(axis=1, keepdims=True) + np.array([-space / 2, space / 2])
        start = np.array([middle[axis] - space / 2])
        if space < size[axis]:  # a window may begin at a vertex, or so that it ends at one
            start = np.unique(np.round(np.concatenate([span[:, 0], span[:, 1] - space]), 3))
        begun = start[:, None]
        inside.append((span[:, 0] >= begun - _CLOSE) & (span[:, 1] <= begun + space + _CLOSE))
        spans.append(span)
        starts.append(start)
    score = (inside[0] * weights) @ inside[1].T.astype(float)
    best = np.unravel_index(int(np.argmax(score)), score.shape)
    kept = inside[0][best[0]] & inside[1][best[1]]
    corner, beyond = [0.0, 0.0], []
    for axis, (span, space) in enumerate(zip(spans, rooms, strict=True)):
        at = float(starts[axis][best[axis]])
        if space < size[axis]:
            at = float(span[kept, 0].min() + span[kept, 1].max() - space) / 2
        beyond += [at - span[:, 0], span[:, 1] - at - space]
        corner[axis] = at - sides[axis] / READABLE
    more = np.bincount(np.argmax(beyond, axis=0)[~kept], minlength=4)
    inner = (sides[0], sides[1], room[0] - sides[0], room[1] - sides[1])
    shown, left_out = tuple(kept.tolist()), tuple(more.tolist())
    return Window(corner[0], corner[1], READABLE, shown, left_out, inner)


def way_out(window: Window, line: Sequence[Point], most: float) -> list[Point]:
    """The part of a line, from its first point on, that stays inside; at most so many points long.

    The line is in points on the slide; what is given back ends before it comes to another vertex
    that is left out.
    """
    left, top, right, bottom = window.inner
    reach = min(line_length(line) - 14.0, most)
    kept: list[Point] = [line[0]]
    done = 0.0
    for a, b in pairwise(sample_line(line, 2.0)):
        done += math.dist(a, b)
        if done > reach or not (left <= b[0] <= right and top <= b[1] <= bottom):
            break
        kept.append(b)
    return kept


def dashes(line: Sequence[Point], dash: float, gap: float) -> list[list[Point]]:
    """Cut a line into pieces of one length."""
    starts = np.arange(0.0, line_length(line) - dash + 1e-9, dash + gap).tolist()
    return [[point_at(line, at), point_at(line, at + dash)] for at in starts]


def extent(place: Placed) -> Box:
    """What is drawn, in all: vertices with rings and flags, edges and their numbers."""
    corners = np.stack([_spans(place, 0), _spans(place, 1)], axis=-1).reshape(-1, 2).tolist()
    points = [(x, y) for x, y in corners] + [point for line in place.lines for point in line]
    return around((Box(*middle, *LABEL) for middle in place.labels), points)


def _spans(place: Placed, axis: int) -> NDArray[np.float64]:
    """From where to where a vertex goes along an axis, with its ring and its flag."""
    middles = np.array([(b.x, b.y)[axis] for b in place.boxes])
    halves = np.array([(b.width, b.height)[axis] / 2 for b in place.boxes])
    before = FLAG if axis == int(place.across) else _AROUND
    return np.stack([middles - halves - before, middles + halves + _AROUND], axis=1)
