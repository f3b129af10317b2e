"""The loss over two parameters, as filled contours or in 3-D, with paths of optimizers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cgprimer.drawing.frame import (
    MARKERS,
    dress,
    headline,
    legend,
    legend_below,
    new_figure,
    text_style,
    tick,
)
from cgprimer.drawing.theme import AXIS_SIZE, DASHES, FONT, Theme, mix, theme
from cgprimer.teaching.landscape import Descent, Landscape

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEVELS = 14
_STEEP = 30.0  # times the median: above it a linear height would show a wall and a floor
_FLOOR = 0.02  # of the grid's points are the bottom
_DEEPEST = 1e-6  # of the greatest loss: what is less counts as the bottom


def draw_surface(
    found: Landscape, *, in_3d: bool = False, dark: bool = False, title: str = ""
) -> Figure:
    """Draw the loss over two parameters with each optimizer's path on it.

    Colours, and in 3-D the heights of steep surfaces, are on a logarithmic scale where no loss is
    negative. Paths begin at the ring,
    and a cross marks the true values. A path that leaves the picture is cut at its edge, and the
    legend says so.

    >>> import cgprimer
    >>> from cgprimer.teaching.landscape import landscape
    >>> graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
    >>> figure = draw_surface(landscape(graph, ["k", "b"], steps=20, grid=11))
    >>> figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()
    ('k', 'b')
    """
    look = theme(dark)
    figure = new_figure(look)
    heading = title or f"Loss over {found.names[0]} and {found.names[1]}"
    (_in_space if in_3d else _in_plane)(figure, found, look, heading)
    return figure


def _heights(found: Landscape) -> tuple[Any, float, bool]:
    """The losses to show, the least of them, and whether their scale is logarithmic."""
    finite = np.where(np.isfinite(found.losses), found.losses, np.nan)
    low, high = float(np.nanmin(finite)), float(np.nanmax(finite))
    if low < 0 or high <= 0:
        return finite, low, False
    # The bottom of a narrow valley lies between the points of the grid: a few are its floor.
    floor = max(high * _DEEPEST, float(np.nanquantile(finite, _FLOOR)))
    return np.maximum(finite, floor), floor, True


def _colours(look: Theme) -> Any:
    """From the paper to the first colour of the theme: deep is pale, high is strong."""
    from matplotlib.colors import LinearSegmentedColormap

    strong = mix(look.curves[0], look.background, 0.75)
    return LinearSegmentedColormap.from_list("loss", [look.background, strong])


def _in_plane(figure: Figure, found: Landscape, look: Theme, heading: str) -> None:
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import FuncFormatter, LogLocator

    axes = figure.add_subplot()
    dress(axes, look, title=heading, x=found.names[0], y=found.names[1])
    heights, floor, logarithmic = _heights(found)
    high = float(np.nanmax(heights))
    norm = None
    levels = np.linspace(floor, high, _LEVELS)
    if logarithmic and high > floor:
        levels, norm = np.geomspace(floor, high, _LEVELS), LogNorm(floor, high)
    if not high > floor:
        levels = np.array([floor - 1, floor + 1])
    filled = axes.contourf(
        found.first, found.second, heights, levels=levels, norm=norm, cmap=_colours(look)
    )
    axes.contour(
        found.first, found.second, heights, levels=levels[1:], colors=look.edge, linewidths=0.5
    )
    bar = figure.colorbar(filled, ax=axes, pad=0.02)
    if norm is not None:
        few = high < 100 * floor
        bar.locator = LogLocator(numticks=9, subs=(1.0, 2.0, 5.0) if few else (1.0,))
        bar.formatter = FuncFormatter(lambda value, _: tick(value))
        bar.update_ticks()
        bar.ax.minorticks_off()
    bar.set_label("mean loss", **text_style(look))
    bar.ax.tick_params(labelsize=AXIS_SIZE - 1, colors=look.ink, labelfontfamily=FONT)
    bar.outline.set_edgecolor(look.edge)
    axes.grid(visible=False)
    for number, path in enumerate(found.paths):
        axes.plot(
            path.points[:, 0],
            path.points[:, 1],
            label=_path_label(found, path),
            **_path_style(number, look, len(path.points)),
        )
    if found.truth:
        axes.plot(*found.truth, label="true values", **_cross(look))
    if found.paths:
        axes.plot(*found.paths[0].points[0], label="start", **_ring(look))
    axes.set_xlim(float(found.first[0]), float(found.first[-1]))
    axes.set_ylim(float(found.second[0]), float(found.second[-1]))
    if axes.lines:
        legend_below(figure, axes, look)


def _in_space(figure: Figure, found: Landscape, look: Theme, heading: str) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    figure.set_layout_engine("none")  # it would leave half of the slide empty around a 3-D box
    axes: Any = figure.add_axes((0.0, 0.02, 0.76, 0.9), projection="3d", computed_zorder=False)
    axes.set_facecolor(look.background)
    heights, floor, logarithmic = _heights(found)
    logarithmic = logarithmic and float(np.nanmax(heights)) > _STEEP * float(np.nanmedian(heights))
    shown = np.log10(heights) if logarithmic else heights
    x, y = np.meshgrid(found.first, found.second)
    axes.plot_surface(
        x,
        y,
        shown,
        cmap=_colours(look),
        edgecolor=look.edge,
        linewidth=0.15,
        alpha=0.85,
        rcount=40,
        ccount=40,
        zorder=1,
    )

    def place(point: Any, loss: float) -> tuple[float, float, float]:
        height = np.log10(max(loss, floor)) if logarithmic else loss
        return float(point[0]), float(point[1]), float(height)

    for number, path in enumerate(found.paths):
        inside = _inside(found, path)
        places = [
            place(point, loss)
            for point, loss in zip(path.points[:inside], path.losses[:inside], strict=True)
        ]
        style = _path_style(number, look, inside)
        axes.plot(*zip(*places, strict=True), label=_path_label(found, path), zorder=3, **style)
    if found.truth:
        nearest = found.losses[
            np.abs(found.second - found.truth[1]).argmin(),
            np.abs(found.first - found.truth[0]).argmin(),
        ]
        marker = {**_cross(look), "zorder": 4}
        x1, y1, z1 = place(found.truth, float(nearest))
        axes.plot([x1], [y1], [z1], label="true values", **marker)
    if found.paths:
        first = found.paths[0]
        x1, y1, z1 = place(first.points[0], float(first.losses[0]))
        axes.plot([x1], [y1], [z1], label="start", **{**_ring(look), "zorder": 4})
    style = text_style(look)
    axes.set_xlabel(found.names[0], labelpad=14, parse_math=False, **style)
    axes.set_ylabel(found.names[1], labelpad=14, parse_math=False, **style)
    axes.set_zlabel("mean loss", labelpad=26, **style)
    if logarithmic:
        axes.zaxis.set_major_formatter(FuncFormatter(lambda value, _: tick(10.0**value)))
        axes.zaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axes.tick_params(labelsize=AXIS_SIZE - 1, colors=look.ink, labelfontfamily=FONT)
    axes.tick_params(axis="z", pad=12)
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_pane_color(look.background)
        axis.line.set_color(look.edge)
        axis._axinfo["grid"]["color"] = look.grid
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=6))
    axes.view_init(elev=38, azim=-58)
    axes.set_box_aspect((1.25, 1.25, 0.8), zoom=0.98)
    headline(figure, look, heading)
    if axes.lines:
        corner = (0.985, 0.05)
        legend(
            axes, look, loc="lower right", bbox_to_anchor=corner, bbox_transform=figure.transFigure
        )


def _inside(found: Landscape, path: Descent) -> int:
    """How many points of a path lie in the picture, up to where it leaves for the first time."""
    low = np.array([found.first[0], found.second[0]])
    high = np.array([found.first[-1], found.second[-1]])
    outside = np.flatnonzero(((path.points < low) | (path.points > high)).any(axis=1))
    return int(outside[0]) if outside.size else len(path.points)


def _path_label(found: Landscape, path: Descent) -> str:
    text = f"{path.optimizer}, rate {path.rate:.2g}"
    if path.diverged:
        return f"{text}: diverges"
    return text if _inside(found, path) == len(path.points) else f"{text}: leaves the picture"


def _path_style(number: int, look: Theme, points: int) -> dict[str, Any]:
    """Colours that stand out from the surface's own, each with a dash and a marker."""
    from matplotlib.patheffects import Normal, Stroke

    colours = look.curves[1:]
    return {
        "color": colours[number % len(colours)],
        "linestyle": DASHES[number % len(DASHES)],
        "linewidth": 2.6,
        "marker": MARKERS[number % len(MARKERS)],
        "markersize": 6,
        "markevery": max(1, points // 20),
        "path_effects": [Stroke(linewidth=4.6, foreground=look.background), Normal()],
    }


def _cross(look: Theme) -> dict[str, Any]:
    return {
        "linestyle": "",
        "marker": "X",
        "markersize": 15,
        "color": look.ink,
        "markeredgecolor": look.background,
        "zorder": 6,
    }


def _ring(look: Theme) -> dict[str, Any]:
    return {
        "linestyle": "",
        "marker": "o",
        "markersize": 15,
        "markerfacecolor": "none",
        "markeredgecolor": look.ink,
        "markeredgewidth": 2.6,
        "zorder": 6,
    }
