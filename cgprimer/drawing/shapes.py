"""The outlines of vertices: how large a shape its text needs, and the shape as matplotlib patches.

All lengths are in points; a figure's axes are set so that one data unit is one point.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cgprimer.drawing.layout import Box, Point, Size
from cgprimer.drawing.theme import RoleStyle, Shape, Theme

if TYPE_CHECKING:
    from matplotlib.patches import Patch

_PAD_ACROSS, _PAD_ALONG = 14.0, 9.0
_SLANT = 12.0  # of a hexagon's pointed ends
_INNER_OUTLINE = 4.0  # between the two lines of a double outline
_SMALLEST = 44.0


def shape_size(shape: Shape, text: Size) -> Size:
    """Return the width and height of the shape that holds a block of text.

    >>> shape_size("rectangle", (60, 20))
    (88.0, 44.0)
    """
    width, height = text
    if shape == "circle":
        # The ellipse through the corners of the text; never flatter than 3 to 4, and a circle
        # for the short names of operations.
        across = max(math.sqrt(2) * width + 8, _SMALLEST + 4)
        along = max(math.sqrt(2) * height + 4, 0.72 * across)
        return (max(across, along), along) if across > 2 * _SMALLEST else (max(across, along),) * 2
    extra = {"hexagon": _SLANT, "double": _INNER_OUTLINE}.get(shape, 0.0)
    across = width + 2 * (_PAD_ACROSS + extra)
    along = height + 2 * (_PAD_ALONG + (_INNER_OUTLINE if shape == "double" else 0.0))
    return (max(across, _SMALLEST), max(along, _SMALLEST))


def meet(shape: Shape, box: Box, end: Point) -> Point:
    """Move the end of an edge from the border of `box` to the outline of the shape inside it.

    Only a hexagon has sides that lie inside its box; the end moves level with the edge's port.

    >>> meet("hexagon", Box(0, 0, 100, 40), (-50, 10))
    (-44.0, 10)
    """
    x, y = end
    if shape != "hexagon" or abs(abs(x - box.x) - box.width / 2) > 1e-6:
        return end
    inward = min(_SLANT, box.width / 4) * min(1.0, abs(y - box.y) * 2 / box.height)
    return (x + inward if x < box.x else x - inward, y)


def patches(style: RoleStyle, box: Box, theme: Theme, small: bool = False) -> list[Patch]:
    """Return the patches that draw a vertex; `small` thins the details for the legend."""
    from matplotlib.patches import Ellipse, FancyBboxPatch, Polygon, Rectangle

    corner = (box.x - box.width / 2, box.y - box.height / 2)
    look: dict[str, Any] = {
        "facecolor": style.fill if style.shape != "dotted" else theme.background,
        "edgecolor": style.outline,
        "linewidth": style.line_width,
    }
    if style.shape == "circle":
        return [Ellipse((box.x, box.y), box.width, box.height, **look)]
    if style.shape == "hexagon":
        slant = 6.0 if small else min(_SLANT, box.width / 4)
        right, top = box.width / 2, box.height / 2
        outline = [
            (-right, 0.0),
            (-right + slant, top),
            (right - slant, top),
            (right, 0.0),
            (right - slant, -top),
            (-right + slant, -top),
        ]
        return [Polygon([(box.x + x, box.y + y) for x, y in outline], closed=True, **look)]
    if style.shape == "rounded":
        box_style = f"round,pad=0,rounding_size={5 if small else 10}"
        return [FancyBboxPatch(corner, box.width, box.height, boxstyle=box_style, **look)]
    if style.shape == "dotted":
        return [Rectangle(corner, box.width, box.height, linestyle=(0, (1.2, 1.6)), **look)]
    outer = Rectangle(corner, box.width, box.height, **look)
    if style.shape == "rectangle":
        return [outer]
    gap = 3.0 if small else _INNER_OUTLINE
    inner_corner = (corner[0] + gap, corner[1] + gap)
    inner = Rectangle(inner_corner, box.width - 2 * gap, box.height - 2 * gap, **look)
    return [outer, inner]
