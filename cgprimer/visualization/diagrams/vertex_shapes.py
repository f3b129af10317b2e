"""The outlines of vertices: their sizes, and their matplotlib patches.

Lengths are in points; one data unit of the axes of a figure is one point.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cgprimer.visualization.diagrams.geometry import Box, Point, Size
from cgprimer.visualization.diagrams.theme import RoleStyle, Shape

if TYPE_CHECKING:
    from matplotlib.patches import Patch

_PAD_ACROSS, _PAD_ALONG = 14.0, 9.0
_SLANT = 12.0  # width of the pointed ends of a hexagon
_INNER_OUTLINE = 4.0  # between the two lines of a double outline
_SMALLEST = 44.0
_PILL_PAD, _PILL_RADIUS = 18.0, 22.0
_CORNER = 9.0  # points of an outline next to a corner at which no edge ends


def measure_shape(shape: Shape, text: Size, *, tight: bool = False) -> Size:
    """Return the width and height of the shape that encloses a block of text.

    With `tight`, the padding between text and outline is halved.

    >>> measure_shape("rectangle", (60, 20)), measure_shape("rectangle", (60, 40), tight=True)
    ((88.0, 44.0), (74.0, 49.0))
    """
    width, height = text
    share = 0.5 if tight else 1.0
    if shape == "circle":
        # Short names of operations have a circle, longer texts a pill, which is much smaller than
        # an ellipse around the text.
        across = max(math.sqrt(2) * max(width, height) + 8, _SMALLEST + 4)
        if across <= 2 * _SMALLEST:
            return (across, across)
        return (width + 2 * share * _PILL_PAD, height + 2 * share * _PAD_ALONG)
    extra = {"hexagon": _SLANT, "double": _INNER_OUTLINE}.get(shape, 0.0)
    across = width + 2 * (share * _PAD_ACROSS + extra)
    along = height + 2 * (share * _PAD_ALONG + (_INNER_OUTLINE if shape == "double" else 0.0))
    return (max(across, _SMALLEST), max(along, _SMALLEST))


def contains_point(shape: Shape, box: Box, point: Point) -> bool:
    """Return whether a point lies inside the shape that fills `box`.

    >>> [contains_point(shape, Box(0, 0, 10, 10), (4, 4)) for shape in ("circle", "rectangle")]
    [False, True]
    """
    across, along = abs(point[0] - box.x) * 2, abs(point[1] - box.y) * 2
    if shape == "circle":
        radius = compute_pill_radius(box)
        corner = (max(across / 2 - box.width / 2 + radius, 0), along / 2 - box.height / 2 + radius)
        return across <= box.width and math.hypot(corner[0], max(corner[1], 0)) <= radius
    slant = 2 * min(_SLANT, box.width / 4) if shape == "hexagon" else 0.0
    return along <= box.height and across <= box.width - slant * along / box.height


def clip_to_outline(shape: Shape, box: Box, port: Point, *, down: bool = False) -> Point:
    """Return the point where a horizontal or vertical line from outside meets a vertex outline.

    `port` is a point to the left or right of the vertex, with `down` above or below it. Lines do
    not end at corners, where an arrow head could point to either side.

    >>> [clip_to_outline("rectangle", Box(0, 0, 100, 40), (-58, y)) for y in (10, 24)]
    [(-50.0, 10.0), (-50.0, 11.0)]
    """
    middle, half = (box.x, box.width / 2) if down else (box.y, box.height / 2)
    free = max(half - _CORNER, 0.0)
    position = min(max(port[0 if down else 1], middle - free), middle + free)
    inner = (position, box.y) if down else (box.x, position)
    outer = (position, port[1]) if down else (port[0], position)
    for _ in range(24):
        point = ((inner[0] + outer[0]) / 2, (inner[1] + outer[1]) / 2)
        inner, outer = (point, outer) if contains_point(shape, box, point) else (inner, point)
    return (round(inner[0], 3), round(inner[1], 3))


def compute_pill_radius(box: Box) -> float:
    """Return the corner radius of a pill shape, or the radius of a circle.

    >>> compute_pill_radius(Box(0, 0, 48, 48)), compute_pill_radius(Box(0, 0, 120, 80))
    (24.0, 22.0)
    """
    half = min(box.width, box.height) / 2
    return half if box.width == box.height else min(half, _PILL_RADIUS)


def compute_hexagon_corners(box: Box, slant: float = _SLANT) -> list[Point]:
    """Return the corners of the hexagon that fills a box, starting with the left corner.

    >>> compute_hexagon_corners(Box(0, 0, 100, 40))[:2]
    [(-50.0, 0), (-38.0, 20.0)]
    """
    right, top = box.width / 2, box.height / 2
    inner = right - min(slant, right / 2)
    corners = [(-right, 0), (-inner, top), (inner, top), (right, 0), (inner, -top), (-inner, -top)]
    return [(box.x + x, box.y + y) for x, y in corners]


def build_shape_patches(style: RoleStyle, box: Box, small: bool = False) -> list[Patch]:
    """Build the matplotlib patches that draw a vertex; `small` omits details for the legend."""
    from matplotlib.patches import FancyBboxPatch, Polygon, Rectangle

    corner = (box.x - box.width / 2, box.y - box.height / 2)
    look: Any = {"facecolor": style.fill, "edgecolor": style.outline}
    look["linewidth"] = style.line_width
    if style.shape == "hexagon":
        return [
            Polygon(compute_hexagon_corners(box, 6.0 if small else _SLANT), closed=True, **look)
        ]
    if style.shape in ("circle", "rounded"):
        radius = compute_pill_radius(box) if style.shape == "circle" else 5.0 if small else 10.0
        round_box = f"round,pad=0,rounding_size={radius}"
        return [FancyBboxPatch(corner, box.width, box.height, boxstyle=round_box, **look)]
    if style.shape == "dotted":
        look["linestyle"] = (0, (1.2, 1.6))
    inner = 3.0 if small else _INNER_OUTLINE
    return [
        Rectangle((corner[0] + g, corner[1] + g), box.width - 2 * g, box.height - 2 * g, **look)
        for g in ((0.0, inner) if style.shape == "double" else (0.0,))
    ]
