"""A loss surface in 3-D, with paths that the surface can hide.

matplotlib draws whole objects on top of each other in 3-D, so a path would lie over a hill in front
of it. Here a point of a path is hidden if the ray from the point to the eye passes below the
surface. The projection is parallel, so all rays have the same direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import cos, log10, radians, sin
from typing import Any

import numpy as np

from cgprimer.visualization.diagrams.theme import Theme
from cgprimer.visualization.plots import slide
from cgprimer.visualization.plots.loss_surface import LossSurface
from cgprimer.visualization.plots.surface_curves import Curves, draw_path

Array = Any
_BOX = (2.1, 1.35, 0.8)  # the sides of the box
_VIEWS = tuple((up, around) for up in (36.0, 46.0, 56.0) for around in (-65.0, -115.0, 115.0, 65.0))
"""Elevation and azimuth in degrees, the usual view first."""
_REFERENCE_WEIGHT = 0.3  # weight of a visible reference point in the choice of a view
_GOOD_ENOUGH = 0.95  # fraction of the best score with which an earlier view is chosen
_MESH = 54  # cells of the mesh per side
_PATH_POINTS = 400  # between two updates, a path follows the surface
_TOLERANCE = 0.012  # of the height of the box: a point so close to the surface lies on it


def draw_in_space(
    figure: slide.Figure,
    surface: LossSurface,
    heights: str,
    paths: Curves,
    marks: Curves,
    colors: Any,
    look: Theme,
) -> Any:
    """Draw a surface in 3-D with paths and marks; return the axes."""
    figure.set_layout_engine("none")  # it would leave half of the slide empty around a 3-D box
    axes: Any = figure.add_axes((0.0, 0.13, 1.0, 0.79), projection="3d", computed_zorder=False)
    axes.set_facecolor("none")
    axes.set_proj_type("ortho")
    x, y = np.meshgrid(surface.first, surface.second)
    axes.plot_surface(x, y, surface.heights, cmap=colors, edgecolor=look.edge, linewidth=0.25,
                      rcount=_MESH, ccount=_MESH, zorder=1)  # fmt: skip
    view = _draw_curves(axes, surface, paths, marks, look)
    axes.view_init(elev=view[0], azim=view[1])
    _draw_box(axes, surface, heights, look)
    return axes


def _draw_curves(
    axes: Any, surface: LossSurface, paths: Curves, marks: Curves, look: Theme
) -> tuple[float, float]:
    """Draw paths and marks on a surface, hidden parts faintly; return the best viewing angles."""
    on_paths = {}
    for label, (points, _) in paths.items():
        inside = np.argmin([*surface.contains(points), False])  # up to where it leaves the picture
        on_paths[label] = _project_onto_surface(surface, points[:inside])
    on_marks = {
        name: _project_onto_surface(surface, point[None])[0] for name, (point, _) in marks.items()
    }
    references = [point for name, point in on_marks.items() if name != "start"]
    view = _choose_view(surface, [points for points, _ in on_paths.values()], references)
    for label, (points, updates) in on_paths.items():
        style = paths[label][1]
        style |= {"markevery": updates[:: style["markevery"]]}
        draw_path(axes, points, find_visible_points(surface, points, view), label, style, look)
    for name, point in on_marks.items():
        is_visible = find_visible_points(surface, point, view)[0]
        faint = {} if is_visible else {"alpha": 0.35}
        label = name if is_visible else f"{name} (hidden)"
        axes.plot(*point.T, label=label, **{**marks[name][1], "zorder": 4, **faint})
    if surface.has_holes:
        axes.plot([], [], linestyle="", label="no surface: no finite loss")
    return view


def _draw_box(axes: Any, surface: LossSurface, heights: str, look: Theme) -> None:
    """Draw the ticks, the height label and the walls of the 3-D plot box."""
    axes.xaxis.labelpad = axes.yaxis.labelpad = 14
    axes.set_zlabel(heights, labelpad=24, **slide.text_style(look))
    if surface.logarithmic:
        losses = slide.choose_log_ticks(surface.floor, surface.top, max_ticks=5)
        labels = [slide.format_log_tick(loss) for loss in losses]
        axes.set_zticks([log10(loss) for loss in losses], labels)
    else:
        slide.use_linear_axis(axes, "z", max_ticks=5)
    slide.style_ticks(axes, look)
    axes.tick_params(axis="z", pad=12)
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_pane_color(look.background)
        axis.line.set_color(look.edge)
        axis._axinfo["grid"]["color"] = look.grid
    axes.set_box_aspect(_BOX, zoom=1.06)


def _project_onto_surface(surface: LossSurface, points: Array) -> tuple[Array, list[int]]:
    """Project a path onto the surface; return dense points and the position of each update.

    The points have shape (points, 3). Between two updates they follow the surface.
    """
    if not len(points):  # the path starts outside
        return np.empty((0, 3)), []
    between = max(1, _PATH_POINTS // max(1, len(points) - 1))
    updates = np.arange(len(points))
    fine = np.linspace(0, len(points) - 1, between * (len(points) - 1) + 1)
    first, second = (np.interp(fine, updates, points[:, k]) for k in (0, 1))
    height = surface.interpolate_heights(first, second)
    return np.stack([first, second, height], axis=1), (updates * between).tolist()


def _choose_view(
    surface: LossSurface, paths: list[Array], references: list[Array]
) -> tuple[float, float]:
    """Choose the view in which the surface hides as few path and reference points as possible."""
    count = sum(len(points) for points in paths) or 1

    def score(view: tuple[float, float]) -> float:
        """Rate a view by how many path points and reference points are visible."""
        on_paths = sum(int(find_visible_points(surface, points, view).sum()) for points in paths)
        visible = sum(bool(find_visible_points(surface, point, view)[0]) for point in references)
        return on_paths + _REFERENCE_WEIGHT * count * visible

    scores: Mapping[tuple[float, float], float] = {view: score(view) for view in _VIEWS}
    return next(v for v, value in scores.items() if value >= _GOOD_ENOUGH * max(scores.values()))


def find_visible_points(surface: LossSurface, points: Array, view: tuple[float, float]) -> Array:
    """Return a mask of the points, of shape (points, 3), that the surface does not hide."""
    height = float(np.nanmax(surface.heights) - np.nanmin(surface.heights))
    spans = np.array([np.ptp(surface.first), np.ptp(surface.second), height or 1.0])
    up, around = radians(view[0]), radians(view[1])
    eye = np.array([cos(up) * cos(around), cos(up) * sin(around), sin(up)])
    ray = eye * spans / np.array(_BOX)  # in the units of the axes, for a length of 1 in the box
    hidden = np.zeros(len(points), dtype=bool)
    # The surface does not reach beyond the top of the box.
    for length in np.linspace(0.0, _BOX[2] / sin(up), 160)[1:]:
        point = points + length * ray
        is_below = surface.interpolate_heights(*point[:, :2].T) > (
            point[:, 2] + _TOLERANCE * spans[2]
        )  # False in holes
        hidden |= is_below & surface.contains(point[:, :2])
    return ~hidden
