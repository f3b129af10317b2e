"""Paths of optimizers and arrows of the gradient on a loss surface."""

from __future__ import annotations

from typing import Any

import numpy as np

from cgprimer.support.number_format import mark_rounding
from cgprimer.visualization.diagrams.theme import Theme
from cgprimer.visualization.plots import slide
from cgprimer.visualization.plots.loss_landscape import Landscape, format_full_batch_name
from cgprimer.visualization.plots.loss_surface import LossSurface

Array = Any
Curves = dict[str, tuple[Array, dict[str, Any]]]  # points and style, keyed by legend label
_ARROW_LENGTH = 0.22  # of the height of the picture
_ASPECT = np.array([1.6, 1.0])  # width and height of a picture


def style_paths(landscape: Landscape, surface: LossSurface, look: Theme) -> Curves:
    """Return the points and the style of each optimizer path, keyed by legend label.

    Colors stand out from those of the surface. The first of several overlapping paths is the
    widest, so all of them are visible.
    """
    curves = {}
    colors = look.curves[1:]
    for order, path in enumerate(landscape.paths):
        ending = "" if surface.contains(path.points).all() else ": leaves the picture"
        ending = ": diverges" if path.diverged else ending
        label = f"{format_full_batch_name(path.optimizer)}, rate {mark_rounding(path.rate, 2)}"
        paths_above = min(len(landscape.paths) - 1 - order, 3)
        style = {
            "color": colors[order % len(colors)],
            "linewidth": 2.6 + 1.4 * paths_above,
            "markersize": 10 + 3.5 * paths_above,
            "markeredgecolor": look.background,
            "markeredgewidth": 0.6,
            "markevery": max(1, len(path.points) // 20),
        }
        curves[label + ending] = (path.points, slide.choose_curve_style(order, look) | style)
    return curves


def draw_path(
    axes: Any, points: Array, visible: Array, label: str, style: dict[str, Any], look: Theme
) -> None:
    """Draw a path with a halo that separates it from the surface; hidden parts are dotted."""
    shown = np.where(visible[:, None], points, np.nan)
    halo = {"linewidth": style["linewidth"] + 2.0, "label": "_halo", "zorder": 1.9}
    axes.plot(*shown.T, color=look.background, **halo)
    axes.plot(*shown.T, label=label, zorder=2.4, **style)
    if len(visible) and not visible.all():
        faint = {"linestyle": ":", "linewidth": 1.6, "marker": "", "alpha": 0.6}
        hidden = np.where(visible[:, None], np.nan, points)
        axes.plot(*hidden.T, label="_hidden", zorder=2, color=style["color"], **faint)


def draw_gradient_arrows(axes: Any, landscape: Landscape, count: int, look: Theme) -> None:
    """Draw arrows of steepest descent at equal intervals along the first path.

    An arrow points from p to p - t g in the units of the axes, with t such that all arrows are
    visible: its direction is correct on the scales of the axes, its length has no meaning. Only the
    part of the path inside the picture counts.
    """
    path = landscape.paths[0].points if landscape.paths else landscape.start[None]
    ends = np.array([[side[0], side[-1]] for side in (landscape.first, landscape.second)])
    span = ends[:, 1] - ends[:, 0]
    inside = ((path >= ends[:, 0]) & (path <= ends[:, 1])).all(axis=1)
    path = path[: np.argmin([*inside, False])]  # up to where it leaves the picture
    if not len(path):
        return
    distances = np.r_[0, np.cumsum(np.hypot(*(np.diff(path, axis=0) / span * _ASPECT).T))]
    targets = np.linspace(0, distances[-1], count + 1)[:-1]  # without the end of the path
    for k, distance in enumerate(targets):
        point = np.array([np.interp(distance, distances, side) for side in path.T])
        descent = -landscape.at_point(point)[1]
        length = float(np.hypot(*(descent / span * _ASPECT)))
        if not 0 < length < np.inf:
            continue
        tip = point + descent * (_ARROW_LENGTH / length / (1 if count == 1 else 1.6))
        arrow = {
            "arrowstyle": "-|>,head_width=0.45,head_length=0.8",
            "linewidth": 3.4,
            "color": look.ink,
            "shrinkA": 0,
            "shrinkB": 0,
        }
        axes.annotate("", tip, point, zorder=7, annotation_clip=False, arrowprops=arrow)
        if k == 0:
            _label_arrow(axes, (point + tip) / 2, descent / span * _ASPECT, look)


def _label_arrow(axes: Any, middle: Array, direction: Array, look: Theme) -> None:
    """Write the label of an arrow below its center, or to the right of a vertical arrow."""
    normal = np.array([direction[1], -direction[0]]) / np.hypot(*direction)
    if normal[1] > 0 or (normal[1] == 0 and normal[0] < 0):
        normal = -normal
    is_sideways = abs(normal[0]) > 0.3
    align = ("left" if normal[0] > 0 else "right") if is_sideways else "center"
    box = {"facecolor": look.background, "edgecolor": "none", "alpha": 0.8, "pad": 2}
    slide.annotate_point(
        axes, "-gradient", middle, (14 * normal).tolist(), look, zorder=8, ha=align,
        va="center" if normal[1] > -0.5 else "top", bbox=box,
    )  # fmt: skip
