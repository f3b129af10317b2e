"""The graph on a slide: shapes, numbers, what is lit, a legend, and where there is more."""

from __future__ import annotations

import math
from typing import Any

from cgprimer.number_format import SHORT, marked
from cgprimer.pages.stepping.frames import Frame
from cgprimer.pages.stepping.graph_places import LETTER, RING, Placed
from cgprimer.pages.stepping.number_texts import known, so_far
from cgprimer.pages.stepping.number_texts import moved as moved_text
from cgprimer.pages.stepping.scene import Scene, Vertex
from cgprimer.pages.stepping.slide_tables import missing
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
from cgprimer.pictures.legend import Legend
from cgprimer.pictures.pen import Pen
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
    below = legend.height
    width, height = room
    inner = pen.part(EDGE, EDGE, width, height)
    numbers = {v.name: k for k, v in enumerate(scene.vertices)}
    lit = {numbers[name] for name in frame.step.vertices if name in numbers}
    ends = {numbers[name] for k in frame.step.edges for name in scene.edges[k]}
    chosen = window(place, (width, height - below), sorted(lit), sorted(ends - lit))
    _graph(inner, scene, frame, place, chosen, mark)
    _more(inner, chosen, (width, height - below))
    legend.draw(inner, width / 2, height - below)
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
    (left, top), (right, bottom) = extent(place)
    return min(room[0] / (right - left), room[1] / (bottom - top)) >= READABLE


def _more(pen: Pen, chosen: Window, room: Size) -> None:
    """At each side how many vertices are left out there; the triangle points to them."""
    width, height = room
    left, right, above, below = chosen.more
    sides = (
        (left, MARK / 2, height / 2, 90),
        (right, width - MARK / 2, height / 2, 270),
        (above, width / 2, MARK / 2, 0),
        (below, width / 2, height - MARK / 2, 0),
    )
    for count, x, y, turned in sides:
        if count:
            sign = "▼" if y > height - MARK else "▲"
            look: dict[str, Any] = {"rotation": turned, "align": "center"}
            pen.write(x, y, f"{sign} {count} more", color=pen.faint, zorder=8, **look)


def _graph(pen: Pen, scene: Scene, frame: Frame, place: Placed, chosen: Window, mark: str) -> None:
    numbers = {v.name: k for k, v in enumerate(scene.vertices)}
    for k, edge in enumerate(scene.edges):
        ends = [chosen.shown[numbers[name]] for name in edge]
        points = [chosen.to(p) for p in place.lines[k]]
        tip = chosen.to(place.tips[k])
        lit = k in frame.step.edges
        written = all(ends)
        if all(ends):
            _line(pen, points, lit)
        elif any(ends):
            way = points if ends[0] else [*points[::-1]]
            kept = way_out(chosen, way, math.inf if lit else _STUB)
            written = lit and math.dist(kept[0], kept[-1]) > 0.5 * length([*points, tip])
            _fading(pen, kept, lit)
        if ends[1]:
            _head(pen, points[-1], tip, lit)
        value = frame.partials[k]
        if value is not None and written:
            back = {"facecolor": pen.look.background, "edgecolor": "none", "pad": 1.0}
            more: dict[str, Any] = {"bbox": back, "weight": "bold", "zorder": 7}
            at = chosen.to(place.labels[k])
            size = LETTER * chosen.scale
            pen.write(*at, marked(value, SHORT), size, align="center", **more)
    for k, vertex in enumerate(scene.vertices):
        if chosen.shown[k]:
            box = place.boxes[k]
            moved = Box(
                *chosen.to((box.x, box.y)), box.width * chosen.scale, box.height * chosen.scale
            )
            lit = vertex.name in frame.step.vertices
            _vertex(pen, vertex, moved, lit, (place.across, chosen.scale))
            _texts(pen, vertex, moved, frame, (mark, chosen.scale))


def _line(pen: Pen, points: list[Point], lit: bool) -> None:
    if not lit:
        pen.line(points, pen.look.edge, _PLAIN)
        return
    pen.line(points, pen.lit, _LIT, linestyle=(0, (_DASH / _LIT, _PAUSE / _LIT)))


def _fading(pen: Pen, points: list[Point], lit: bool) -> None:
    """A line that goes over into the background: it leads to a vertex that is left out."""
    if length(points) < _DASH:
        return
    ending = min(_FADE, length(points))
    begun = length(points) - ending
    pieces = dashes(points, _DASH, _PAUSE) if lit else dashes(points, _DASH / 2, 0.0)
    colours = []
    for k in range(len(pieces)):
        at = k * (_DASH + _PAUSE if lit else _DASH / 2)
        left = min(1.0, 1.0 - (at - begun) / ending)
        colours.append(mix(pen.lit if lit else pen.look.edge, pen.look.background, max(left, 0.05)))
    from matplotlib.collections import LineCollection

    width = _LIT if lit else _PLAIN
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


def _texts(pen: Pen, vertex: Vertex, box: Box, frame: Frame, look: tuple[str, float]) -> None:
    mark, scale = look
    value, derivative = frame.values[vertex.row], frame.derivatives[vertex.row]
    sum_so_far = frame.sums[vertex.row]
    below = "" if derivative is None else f"{mark} {known(derivative)}"
    if derivative is None and sum_so_far is not None:
        below = so_far(sum_so_far)  # no room for the mark
    more: dict[str, Any] = {"align": "center", "zorder": 6}
    text = known(None) if value is None else moved_text(value, frame.unmoved[vertex.row])
    size = LETTER * scale
    pen.write(box.x, box.y - 21 * scale, vertex.name, size * 1.05, weight="bold", **more)
    for line, y, number in ((text, box.y, value), (below, box.y + 21 * scale, derivative)):
        pen.write(box.x, y, line, size, **(missing(pen) if number is None else {}), **more)


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
