"""The graph on a slide: shapes, numbers, what is lit, a legend, and where there is more."""

from __future__ import annotations

import math
from typing import Any

from cgprimer.number_format import SHORT, marked
from cgprimer.pages.stepping.frames import Frame
from cgprimer.pages.stepping.graph_places import LETTER, RING, Placed
from cgprimer.pages.stepping.scene import Scene, Vertex
from cgprimer.pages.stepping.slide_tables import known, missing, so_far
from cgprimer.pages.stepping.slide_tables import moved as moved_text
from cgprimer.pages.stepping.slide_window import (
    MARK,
    READABLE,
    Window,
    dashes,
    extent,
    way_out,
    window,
)
from cgprimer.pictures.geometry import Box, Point, Size, length
from cgprimer.pictures.pen import Legend, Pen
from cgprimer.pictures.shapes import patches
from cgprimer.pictures.theme import SLIDE_HEIGHT, mix, theme

EDGE = 16.0
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
        (MARK / 2, height / 2, "▲", 90),
        (width - MARK / 2, height / 2, "▲", 270),
        (width / 2, MARK / 2, "▲", 0),
        (width / 2, height - MARK / 2, "▼", 0),
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
            written = lit and math.dist(kept[0], kept[-1]) > 0.5 * length([*points, tip])
            _fading(pen, kept, lit)
        if head in shown:
            _head(pen, points[-1], tip, lit)
        value = frame.partials[k]
        if value is not None and written:
            back = {"facecolor": pen.look.background, "edgecolor": "none", "pad": 1.0}
            more: dict[str, Any] = {"bbox": back, "weight": "bold", "zorder": 7, "align": "center"}
            at = chosen.to(place.labels[k])
            pen.write(*at, marked(value, SHORT), LETTER * chosen.scale, **more)
    for vertex, box in zip(scene.vertices, place.boxes, strict=True):
        if vertex.name in shown:
            scale = chosen.scale
            moved = Box(*chosen.to((box.x, box.y)), box.width * scale, box.height * scale)
            lit = vertex.name in frame.step.vertices
            _vertex(pen, vertex, moved, lit, (place.across, scale))
            _texts(pen, vertex, moved, scale, frame, mark)


def _fading(pen: Pen, points: list[Point], lit: bool) -> None:
    """A line that goes over into the background: it leads to a vertex that is left out."""
    from matplotlib.collections import LineCollection

    whole = length(points)
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
    for patch in patches(style, box):
        patch.set_zorder(4)
        pen.axes.add_patch(patch)
    if not lit:
        return
    across, scale = look
    grown = 2 * RING * scale
    around = Box(box.x, box.y, box.width + grown, box.height + grown)
    ring = patches(style, around)[0]
    ring.set(facecolor="none", edgecolor=pen.lit, linewidth=3.2, linestyle="-", zorder=4)
    pen.axes.add_patch(ring)
    away = (RING + 4.0) * scale
    if across:  # arrows come from the left
        pen.flag(box.x, box.y - box.height / 2 - away, down=True, zorder=5)
    else:
        pen.flag(box.x - box.width / 2 - away, box.y, zorder=5)


def _texts(pen: Pen, vertex: Vertex, box: Box, scale: float, frame: Frame, mark: str) -> None:
    k = vertex.row
    value, derivative, so_far_at = frame.values[k], frame.derivatives[k], frame.sums[k]
    below = "" if derivative is None else f"{mark} {known(derivative)}"
    if derivative is None and so_far_at is not None:
        below = so_far(so_far_at)  # no room for the mark
    more: dict[str, Any] = {"align": "center", "zorder": 6}
    text = known(None) if value is None else moved_text(value, frame.unmoved[k])
    size = LETTER * scale
    pen.write(box.x, box.y - 21 * scale, vertex.name, size * 1.05, weight="bold", **more)
    for line, y, number in ((text, box.y, value), (below, box.y + 21 * scale, derivative)):
        pen.write(box.x, y, line, size, **(missing(pen) if number is None else {}), **more)
