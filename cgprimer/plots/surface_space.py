"""The loss over two parameters as a landscape in 3-D.

matplotlib draws whole objects one over the other, so a path would lie over a hill that hides it.
Here each point of a path looks along the ray to the eye: where the ray is below the surface, the
point is hidden. The projection is parallel, so all rays have one direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, cos, floor, log10, radians, sin
from typing import TYPE_CHECKING, Any

import numpy as np

from cgprimer.core.number_format import number
from cgprimer.pictures.frame import legend_below, linear_axis, text_style
from cgprimer.pictures.theme import AXIS_SIZE, FONT, Theme
from cgprimer.plots.surface_data import Landscape
from cgprimer.plots.surface_marks import (
    Array,
    Relief,
    colours,
    contains,
    cross,
    halo,
    inside,
    outside,
    path_label,
    path_style,
    relief,
    ring,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BOX = (2.1, 1.35, 0.8)  # the sides of the box
_VIEWS = tuple((up, around) for up in (36.0, 46.0, 56.0) for around in (-65.0, -115.0, 115.0, 65.0))
"""Elevation and azimuth in degrees, the usual view first."""
_TRUTH = 0.3  # of all points of paths: what it counts in the choice of a view to see the truth
_ENOUGH = 0.95  # of what the best view shows: then an earlier one is taken
_MESH = 54  # meshes to either side
_DENSE = 400  # points of a path: between two steps it follows the surface
_LIFT = 0.012  # of the box's height: what is as near to the surface lies on it


def draw_in_space(figure: Figure, found: Landscape, look: Theme) -> None:
    """Draw a landscape with the paths on it."""
    figure.set_layout_engine("none")  # it would leave half of the slide empty around a 3-D box
    axes: Any = figure.add_axes((0.0, 0.13, 1.0, 0.79), projection="3d", computed_zorder=False)
    axes.set_facecolor("none")
    axes.set_proj_type("ortho")
    shown = relief(found)
    heights = shown.height(shown.losses)
    x, y = np.meshgrid(shown.first, shown.second)
    axes.plot_surface(
        x,
        y,
        heights,
        cmap=colours(look),
        edgecolor=look.edge,
        linewidth=0.25,
        rcount=_MESH,
        ccount=_MESH,
        zorder=1,
    )
    paths = [
        _on_surface(shown, heights, path.points[: inside(found, path)]) for path in found.paths
    ]
    truth = _mark(shown, heights, found.truth) if found.truth else np.empty((0, 3))
    counts = sum(len(places) for places, _ in paths) or 1

    def score(view: tuple[float, float]) -> float:
        on_paths = sum(int(seen_points(shown, heights, places, view).sum()) for places, _ in paths)
        return on_paths + _TRUTH * counts * float(seen_points(shown, heights, truth, view).sum())

    scores = [score(view) for view in _VIEWS]
    view = next(v for v, s in zip(_VIEWS, scores, strict=True) if s >= _ENOUGH * max(scores))
    for order, (path, (places, steps)) in enumerate(zip(found.paths, paths, strict=True)):
        style = path_style(order, len(paths), look, len(steps))
        marked = {**style, "markevery": steps[:: style["markevery"]]}
        seen = seen_points(shown, heights, places, view)
        _path(axes, places, seen, path_label(found, path), marked, look)
    marks = [("true values", found.truth, cross(look))] if found.truth else []
    if found.paths:
        marks.append(("start", tuple(found.paths[0].points[0]), ring(look)))
    for name, point, style in marks:
        if not contains(found, point):
            outside(axes, name)
            continue
        place = _mark(shown, heights, point)
        faint = {} if seen_points(shown, heights, place, view)[0] else {"alpha": 0.35}
        text = f"{name} (hidden)" if faint else name
        axes.plot(*place.T, label=text, **{**style, "zorder": 4, **faint})
    if shown.holes:
        axes.plot([], [], linestyle="", label="no surface: no finite loss")
    axes.view_init(elev=view[0], azim=view[1])
    _dress(axes, found, shown, look)
    if axes.lines:
        legend_below(figure, axes, look)


def _on_surface(shown: Relief, heights: Array, points: Array) -> tuple[Array, list[int]]:
    """A path as close points on the surface, shape (points, 3), and which of them are its steps."""
    if not len(points):  # it begins outside
        return np.empty((0, 3)), []
    between = max(1, _DENSE // max(1, len(points) - 1))
    steps = np.arange(len(points))
    fine = np.linspace(0, len(points) - 1, between * (len(points) - 1) + 1)
    first, second = (np.interp(fine, steps, points[:, k]) for k in (0, 1))
    level = _level(shown, heights, first, second)
    return np.stack([first, second, level], axis=1), (steps * between).tolist()


def _mark(shown: Relief, heights: Array, point: Sequence[float]) -> Array:
    """A point on the surface; shape (1, 3)."""
    first, second = (np.atleast_1d(float(value)) for value in point)
    return np.stack([first, second, _level(shown, heights, first, second)], axis=1)


def _level(shown: Relief, heights: Array, first: Array, second: Array) -> Array:
    """The height of the surface over points, straight between those of the grid."""
    across = np.interp(first, shown.first, np.arange(len(shown.first)))
    along = np.interp(second, shown.second, np.arange(len(shown.second)))
    column = np.minimum(across.astype(int), len(shown.first) - 2)
    row = np.minimum(along.astype(int), len(shown.second) - 2)
    s, t = across - column, along - row
    near = (1 - s) * heights[row, column] + s * heights[row, column + 1]
    far = (1 - s) * heights[row + 1, column] + s * heights[row + 1, column + 1]
    found: Array = (1 - t) * near + t * far
    return found


def seen_points(shown: Relief, heights: Array, places: Array, view: tuple[float, float]) -> Array:
    """Which places on the surface, shape (places, 3), the eye sees; shape (places,)."""
    low, high = float(np.nanmin(heights)), float(np.nanmax(heights))
    spans = np.array(
        [shown.first[-1] - shown.first[0], shown.second[-1] - shown.second[0], high - low or 1.0]
    )
    up, around = radians(view[0]), radians(view[1])
    eye = np.array([cos(up) * cos(around), cos(up) * sin(around), sin(up)])
    ray = eye * spans / np.array(_BOX)  # in the units of the axes, for a length of 1 in the box
    hidden = np.zeros(len(places), dtype=bool)
    # Above the box there is no surface any more.
    for length in np.linspace(0.0, _BOX[2] / sin(up), 160)[1:]:
        point = places + length * ray
        over = (
            (point[:, 0] >= shown.first[0])
            & (point[:, 0] <= shown.first[-1])
            & (point[:, 1] >= shown.second[0])
            & (point[:, 1] <= shown.second[-1])
        )
        level = _level(shown, heights, point[:, 0], point[:, 1])
        hidden |= over & (level > point[:, 2] + _LIFT * spans[2])  # False over holes
    return ~hidden


def _path(
    axes: Any, places: Array, seen: Array, label: str, style: dict[str, Any], look: Theme
) -> None:
    """A path as it is seen, and faintly dotted where it is hidden."""
    shown = np.where(seen[:, None], places, np.nan)
    axes.plot(*shown.T, **halo(style, look))
    axes.plot(*shown.T, label=label, zorder=3, **style)
    if len(seen) and not seen.all():
        faint = {"linestyle": ":", "linewidth": 1.6, "marker": "", "alpha": 0.6}
        behind = np.where(seen[:, None], np.nan, places)
        axes.plot(*behind.T, label="_hidden", zorder=2, color=style["color"], **faint)


def _dress(axes: Any, found: Landscape, shown: Relief, look: Theme) -> None:
    style = text_style(look)
    axes.set_xlim(float(found.first[0]), float(found.first[-1]))
    axes.set_ylim(float(found.second[0]), float(found.second[-1]))
    axes.set_xlabel(found.names[0], labelpad=14, parse_math=False, **style)
    axes.set_ylabel(found.names[1], labelpad=14, parse_math=False, **style)
    axes.set_zlabel("mean loss", labelpad=24, **style)
    for which in ("x", "y"):
        linear_axis(axes, which, most=6)
    if shown.logarithmic:
        high = float(np.nanmax(shown.losses))
        axes.set_zticks(*_levels(shown.floor, high))
    else:
        linear_axis(axes, "z", most=5)
    axes.tick_params(labelsize=AXIS_SIZE - 1, colors=look.ink, labelfontfamily=FONT)
    axes.tick_params(axis="z", pad=12)
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_pane_color(look.background)
        axis.line.set_color(look.edge)
        axis._axinfo["grid"]["color"] = look.grid
    axes.set_box_aspect(_BOX, zoom=1.06)


def _levels(low: float, high: float) -> tuple[list[float], list[str]]:
    """Heights and their numbers: decades, or 1, 2 and 5 where there are few of them.

    >>> _levels(0.05, 200.0)[1]
    ['0.1', '1', '10', '100']
    """
    every = range(floor(log10(low)), ceil(log10(high)) + 1)
    decades = [10.0**k for k in every if low <= 10.0**k <= high]
    losses = decades[:: 1 + len(decades) // 6]
    if len(losses) < 2:
        losses = [n * 10.0**k for k in every for n in (1, 2, 5) if low <= n * 10.0**k <= high]
    return [log10(loss) for loss in losses], [number(loss, 6) for loss in losses]
