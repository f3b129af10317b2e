"""The loss over two parameters as a landscape in 3-D.

matplotlib draws whole objects one over the other, so a path would lie over a hill that hides it.
Here each point of a path looks along the ray to the eye: where the ray is below the surface, the
point is hidden. The projection is parallel, so all rays have one direction.
"""

from __future__ import annotations

from math import cos, log10, radians, sin
from typing import TYPE_CHECKING, Any

import numpy as np

from cgprimer.pictures.theme import Theme
from cgprimer.plots import slide
from cgprimer.plots.landscape import Landscape, Relief, relief

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = Any
_BOX = (2.1, 1.35, 0.8)  # the sides of the box
_VIEWS = tuple((up, around) for up in (36.0, 46.0, 56.0) for around in (-65.0, -115.0, 115.0, 65.0))
"""Elevation and azimuth in degrees, the usual view first."""
_TRUTH = 0.3  # of all points of paths: what it counts in the choice of a view to see the truth
_ENOUGH = 0.95  # of what the best view shows: then an earlier one is taken
_MESH = 54  # meshes to either side
_DENSE = 400  # points of a path: between two steps it follows the surface
_LIFT = 0.012  # of the box's height: what is as near to the surface lies on it


def draw_in_space(
    figure: Figure,
    found: Landscape,
    paths: dict[str, tuple[Array, dict[str, Any]]],
    marks: dict[str, tuple[tuple[float, float], dict[str, Any]]],
    colours: Any,
    look: Theme,
) -> Any:
    """Draw a landscape with the paths and marks on it, each with what the legend says of it."""
    figure.set_layout_engine("none")  # it would leave half of the slide empty around a 3-D box
    axes: Any = figure.add_axes((0.0, 0.13, 1.0, 0.79), projection="3d", computed_zorder=False)
    axes.set_facecolor("none")
    axes.set_proj_type("ortho")
    shown = relief(found)
    losses = shown.losses
    heights = np.log10(np.maximum(losses, shown.floor)) if shown.logarithmic else losses
    x, y = np.meshgrid(shown.first, shown.second)
    axes.plot_surface(x, y, heights, cmap=colours, edgecolor=look.edge, linewidth=0.25,
                      rcount=_MESH, ccount=_MESH, zorder=1)  # fmt: skip
    on_paths = {
        label: _on_surface(shown, heights, points[: _inside(found, points)])
        for label, (points, _) in paths.items()
    }
    on_marks = {name: _mark(shown, heights, point) for name, (point, _) in marks.items()}
    view = _best_view(shown, heights, [places for places, _ in on_paths.values()],
                      [place for name, place in on_marks.items() if name != "start"])  # fmt: skip
    for label, (places, steps) in on_paths.items():
        style = paths[label][1]
        seen = seen_points(shown, heights, places, view)
        _draw_path(axes, places, seen, label, {**style, "markevery": steps[:: style["markevery"]]},
                   look)  # fmt: skip
    for name, place in on_marks.items():
        faint = {} if seen_points(shown, heights, place, view)[0] else {"alpha": 0.35}
        text = f"{name} (hidden)" if faint else name
        axes.plot(*place.T, label=text, **{**marks[name][1], "zorder": 4, **faint})
    if shown.holes:
        axes.plot([], [], linestyle="", label="no surface: no finite loss")
    axes.view_init(elev=view[0], azim=view[1])
    _dress(axes, found, shown, look)
    return axes


def _inside(found: Landscape, points: Array) -> int:
    """How many points of a path lie in the picture, up to where it leaves for the first time."""
    inside = found.contains(points)
    return len(points) if inside.all() else int(np.argmin(inside))


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


def _mark(shown: Relief, heights: Array, point: tuple[float, float]) -> Array:
    """A point on the surface; shape (1, 3)."""
    return _on_surface(shown, heights, np.array([point], dtype=float))[0]


def _best_view(
    shown: Relief, heights: Array, paths: list[Array], truth: list[Array]
) -> tuple[float, float]:
    """The first of the views that shows nearly as much of the paths, and the truth, as any."""
    counts = sum(len(places) for places in paths) or 1

    def score(view: tuple[float, float]) -> float:
        on_paths = sum(int(seen_points(shown, heights, places, view).sum()) for places in paths)
        of_truth = sum(bool(seen_points(shown, heights, place, view)[0]) for place in truth)
        return on_paths + _TRUTH * counts * of_truth

    scores = [score(view) for view in _VIEWS]
    return next(v for v, s in zip(_VIEWS, scores, strict=True) if s >= _ENOUGH * max(scores))


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
    height = float(np.nanmax(heights) - np.nanmin(heights))
    sides = [(side[0], side[-1]) for side in (shown.first, shown.second)]
    spans = np.array([*(high - low for low, high in sides), height or 1.0])
    up, around = radians(view[0]), radians(view[1])
    eye = np.array([cos(up) * cos(around), cos(up) * sin(around), sin(up)])
    ray = eye * spans / np.array(_BOX)  # in the units of the axes, for a length of 1 in the box
    hidden = np.zeros(len(places), dtype=bool)
    # Above the box there is no surface any more.
    for length in np.linspace(0.0, _BOX[2] / sin(up), 160)[1:]:
        point = places + length * ray
        over = np.all(
            [(low <= x) & (x <= high) for x, (low, high) in zip(point.T, sides, strict=False)],
            axis=0,
        )
        level = _level(shown, heights, point[:, 0], point[:, 1])
        hidden |= over & (level > point[:, 2] + _LIFT * spans[2])  # False over holes
    return ~hidden


def _draw_path(
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


def halo(style: dict[str, Any], look: Theme) -> dict[str, Any]:
    """The style of a wider line under a path, which parts it from the surface."""
    width = style["linewidth"] + 2.0
    return {"color": look.background, "linewidth": width, "label": "_halo", "zorder": 1.9}


def _dress(axes: Any, found: Landscape, shown: Relief, look: Theme) -> None:
    style = slide.text_style(look)
    axes.set_xlim(float(found.first[0]), float(found.first[-1]))
    axes.set_ylim(float(found.second[0]), float(found.second[-1]))
    axes.set_xlabel(found.names[0], labelpad=14, parse_math=False, **style)
    axes.set_ylabel(found.names[1], labelpad=14, parse_math=False, **style)
    axes.set_zlabel("mean loss", labelpad=24, **style)
    for which in ("x", "y"):
        slide.linear_axis(axes, which, most=6)
    if shown.logarithmic and shown.top > shown.floor:
        losses = slide.log_places(shown.floor, shown.top, most=5)
        axes.set_zticks([log10(loss) for loss in losses], [slide.grouped(loss) for loss in losses])
    else:
        slide.linear_axis(axes, "z", most=5)
    slide.number_style(axes, look)
    axes.tick_params(axis="z", pad=12)
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_pane_color(look.background)
        axis.line.set_color(look.edge)
        axis._axinfo["grid"]["color"] = look.grid
    axes.set_box_aspect(_BOX, zoom=1.06)
