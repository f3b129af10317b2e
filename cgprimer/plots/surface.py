"""The loss over two parameters, as filled contours or in 3-D, with paths of optimizers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cgprimer.core.number_format import number
from cgprimer.pictures.frame import (
    dress,
    headline,
    legend_below,
    linear_axis,
    new_figure,
    text_style,
)
from cgprimer.pictures.theme import AXIS_SIZE, FONT, Theme, theme
from cgprimer.plots.surface_data import Landscape
from cgprimer.plots.surface_marks import (
    colours,
    contains,
    cross,
    halo,
    hole,
    outside,
    path_label,
    path_style,
    relief,
    ring,
)
from cgprimer.plots.surface_space import draw_in_space

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEVELS = 14


def draw_surface(
    found: Landscape, *, in_3d: bool = False, dark: bool = False, title: str = ""
) -> Figure:
    """Draw the loss over two parameters with each optimizer's path on it.

    Colours, and in 3-D heights, are on a logarithmic scale where no loss is negative. Paths begin
    at the ring, and a cross marks the true values. A path that leaves the picture is cut at its
    edge, and the legend says so. Where there is no finite loss the plane is hatched. In 3-D the
    view is chosen so that paths are seen; what the surface hides of them is dotted.

    >>> import cgprimer
    >>> from cgprimer.plots.surface_data import landscape
    >>> graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
    >>> figure = draw_surface(landscape(graph, ["k", "b"], steps=20, grid=11))
    >>> figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()
    ('k', 'b')
    """
    look = theme(dark)
    figure = new_figure(look)
    heading = title or f"Loss over {found.names[0]} and {found.names[1]}"
    headline(figure, look, heading)
    (draw_in_space if in_3d else _in_plane)(figure, found, look)
    return figure


def _in_plane(figure: Figure, found: Landscape, look: Theme) -> None:
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import FuncFormatter, LogLocator

    axes = figure.add_subplot()
    dress(axes, look, x=found.names[0], y=found.names[1])
    shown = relief(found)
    floor, high = shown.floor, float(np.nanmax(shown.losses))
    norm = None
    levels = np.linspace(floor, high, _LEVELS)
    if shown.logarithmic and high > floor:
        levels, norm = np.geomspace(floor, high, _LEVELS), LogNorm(floor, high)
        levels[[0, -1]] = floor, high  # exactly, or the highest point is a hole
    if not high > floor:
        levels = np.array([floor - 1, floor + 1])
    place = (shown.first, shown.second, shown.losses)
    filled = axes.contourf(*place, levels=levels, norm=norm, cmap=colours(look))
    axes.contour(*place, levels=levels[1:], colors=look.edge, linewidths=0.5)
    bar = figure.colorbar(filled, ax=axes, pad=0.02)
    if norm is not None:
        few = high < 100 * floor
        bar.locator = LogLocator(numticks=9, subs=(1.0, 2.0, 5.0) if few else (1.0,))
        bar.formatter = FuncFormatter(lambda value, _: number(value, 6))
        bar.update_ticks()
        bar.ax.minorticks_off()
    else:
        linear_axis(bar.ax, "y")
    bar.set_label("mean loss", **text_style(look))
    bar.ax.tick_params(labelsize=AXIS_SIZE - 1, colors=look.ink, labelfontfamily=FONT)
    bar.outline.set_edgecolor(look.edge)
    axes.grid(visible=False)
    for order, path in enumerate(found.paths):
        style = path_style(order, len(found.paths), look, len(path.points))
        axes.plot(*path.points.T, **halo(style, look))
        axes.plot(*path.points.T, label=path_label(found, path), **style)
    marks = [("true values", found.truth, cross(look))] if found.truth else []
    if found.paths:
        marks.append(("start", tuple(found.paths[0].points[0]), ring(look)))
    for name, point, style in marks:
        if contains(found, point):
            axes.plot(*point, label=name, **style)
        else:
            outside(axes, name)
    axes.set_xlim(float(found.first[0]), float(found.first[-1]))
    axes.set_ylim(float(found.second[0]), float(found.second[-1]))
    for which in ("x", "y"):
        linear_axis(axes, which)
    if shown.holes:
        corner = (float(found.first[0]), float(found.second[0]))
        size = {"width": found.first[-1] - corner[0], "height": found.second[-1] - corner[1]}
        axes.add_patch(hole(look, xy=corner, **size))
    if axes.lines or shown.holes:
        legend_below(figure, axes, look)
