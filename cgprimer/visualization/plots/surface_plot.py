"""The loss, or a function, over two parameters, as contours or in 3-D, with optimizers' paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cgprimer.core.methods.derivative_program import Names
from cgprimer.errors import UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.validation import check_integer
from cgprimer.training.data import Dataset
from cgprimer.visualization.diagrams.theme import Theme, mix
from cgprimer.visualization.plots import slide
from cgprimer.visualization.plots.loss_landscape import (
    Landscape,
    LandscapeOptions,
    compute_landscape,
)
from cgprimer.visualization.plots.loss_surface import LossSurface, build_loss_surface
from cgprimer.visualization.plots.surface_3d import draw_in_space
from cgprimer.visualization.plots.surface_curves import (
    Curves,
    draw_gradient_arrows,
    draw_path,
    style_paths,
)

_LEVELS = 14  # contours


def surface(
    graph: ExpressionGraph,
    over: Names = (),
    data: Dataset | str | Path | None = None,
    *,
    in_3d: bool = False,
    gradient: int = 0,
    ranges: Sequence[tuple[float, float]] = (),
    at: Mapping[str, float] | None = None,
    start: Mapping[str, float] | None = None,
    optimizers: Names | None = None,
    rates: Mapping[str, float] | None = None,
    steps: int = 200,
    loss: str | None = None,
    seed: int = 0,
    dark: bool = False,
    title: str | None = None,
    dataset: Dataset | None = None,
) -> slide.Figure:
    """Draw the mean loss or a function over two parameters, with the paths of optimizers.

    A graph without inputs is a function of its parameters. Other parameters are fixed. Each step
    uses all samples. Colors, and heights in 3-D, have a logarithmic scale unless a loss is
    negative. Regions without a finite loss are hatched. In 3-D, hidden parts of paths are dotted.

    Args:
        graph: the graph.
        over: two parameters or elements such as `W[0,1]`. Default: the first two.
        data: a Dataset or a .csv or .npz file. Default: 200 generated samples.
        in_3d: draw a surface in 3-D instead of contours.
        gradient: number of arrows of steepest descent: at the start and along the first path.
        ranges: range of each parameter. Default: three to either side of the minimum, or more.
        at: values of parameters; other parameters keep their declared values.
        start: start of the paths. Default: a tenth from the lower left corner, or the declared
            values of a function.
        optimizers: optimizers whose paths are drawn, or `none`. Default: sgd, momentum, adam.
        rates: learning rates keyed by optimizer. Default: by the slope at the start.
        steps: number of steps of each path.
        loss: as for training, or `output`. Default: `output` for a graph without inputs.
        seed: random seed of the data.
        dataset: old name of `data`.

    Raises:
        UsageError: an unknown name, an empty range, or arrows in 3-D or without a path.
        MissingValueError: a fixed parameter has no value.
        DataError: the data do not match the graph.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
    >>> surface(graph, steps=20).axes[0].get_xlabel()
    'k'
    """
    options = LandscapeOptions(over, ranges, at, start, optimizers, rates, steps, loss, seed)
    landscape = compute_landscape(graph, dataset if data is None else data, options)
    return draw_surface(landscape, in_3d=in_3d, gradient=gradient, dark=dark, title=title)


def draw_surface(
    landscape: Landscape,
    *,
    in_3d: bool = False,
    gradient: int = 0,
    dark: bool = False,
    title: str | None = None,
) -> slide.Figure:
    """Draw a loss landscape as contours or in 3-D; the arguments are those of :func:`surface`.

    Paths start at the ring. A cross marks the true values of generated targets, or the declared or
    given values if the data are the user's.
    """
    arrows = check_integer("the number of arrows", gradient)
    if arrows and in_3d:
        raise UsageError("gradient arrows are not available in 3-D", hint="omit `in_3d` (--3d)")
    if arrows > 1 and not landscape.paths:
        raise UsageError(
            "more than one gradient arrow requires the path of an optimizer",
            hint="name an optimizer (--optimizers sgd), or draw one arrow (--gradient 1)",
        )
    surface = build_loss_surface(landscape)
    default_title = "{} over {} and {}".format(landscape.function or "Loss", *landscape.names)
    if not landscape.has_inner_minimum:
        default_title += " (no minimum in this range)"
    figure, look = slide.create_figure(dark, title, default_title)
    marks = _style_marks(landscape, look)
    outside = [name for name, (point, _) in marks.items() if not surface.contains(point)]
    inside = {name: mark for name, mark in marks.items() if name not in outside}
    draw = draw_in_space if in_3d else _draw_in_plane
    heights = f"mean {landscape.quantity}" if landscape.averaged else landscape.quantity
    paths = style_paths(landscape, surface, look)
    axes = draw(figure, surface, heights, paths, inside, build_color_map(look), look)
    axes.set_xlim(landscape.first[0], landscape.first[-1])
    axes.set_ylim(landscape.second[0], landscape.second[-1])
    for which, name in zip("xy", landscape.names, strict=True):
        getattr(axes, f"set_{which}label")(name, **slide.text_style(look))
        slide.use_linear_axis(axes, which, max_ticks=6 if in_3d else 8)
    if arrows:
        draw_gradient_arrows(axes, landscape, arrows, look)
    for name in outside:
        axes.plot([], [], linestyle="", label=f"{name}: outside the picture")
    if axes.lines or axes.patches:
        slide.draw_legend_below(figure, axes, look)
    return figure


def _style_marks(landscape: Landscape, look: Theme) -> Curves:
    """Return position and style of each mark: the reference values and the start of the paths."""
    common: dict[str, Any] = {"linestyle": "", "zorder": 6, "clip_on": False}
    marks: Curves = {}
    if landscape.reference:
        cross = {"marker": "X", "markersize": 15, "color": look.ink}
        style = common | cross | {"markeredgecolor": look.background}
        marks[f"{landscape.reference_kind} values"] = (np.array(landscape.reference), style)
    if landscape.paths:
        # The ring is wide enough for the first updates to be visible inside.
        ring = {"marker": "o", "markersize": 24, "markerfacecolor": "none", "markeredgewidth": 2.6}
        style = common | ring | {"markeredgecolor": look.ink}
        marks["start"] = (landscape.paths[0].points[0], style)
    return marks


def _draw_in_plane(
    figure: slide.Figure,
    surface: LossSurface,
    heights: str,
    paths: Curves,
    marks: Curves,
    colors: Any,
    look: Theme,
) -> Any:
    """Draw filled contours with a color bar, paths and marks; return the axes."""
    axes = figure.add_subplot()
    slide.style_axes(axes, look)
    contours = fill_contours(axes, surface, colors, look)
    bar = figure.colorbar(contours, ax=axes, pad=0.02)
    (slide.use_log_axis if surface.logarithmic else slide.use_linear_axis)(bar.ax, "y")
    bar.minorticks_off()
    bar.set_label(heights, **slide.text_style(look))
    slide.style_ticks(bar.ax, look)
    bar.outline.set_edgecolor(look.edge)
    axes.grid(visible=False)
    for label, (points, style) in paths.items():
        draw_path(axes, points, np.full(len(points), True), label, style, look)
    for name, (point, style) in marks.items():
        axes.plot(*point, label=name, **style)
    if surface.has_holes:
        axes.axhspan(surface.second[0], surface.second[-1], hatch="//", linewidth=0.0, zorder=0,
                     facecolor=look.background, edgecolor=look.edge,
                     label="no finite loss")  # fmt: skip
    return axes


def build_color_map(look: Theme) -> Any:
    """Build the color map of a surface: pale for low losses, strong for high losses."""
    from matplotlib.colors import LinearSegmentedColormap

    strong = mix(look.curves[0], look.background, 0.75)
    return LinearSegmentedColormap.from_list("loss", [look.background, strong])


def fill_contours(
    axes: Any, surface: LossSurface, colors: Any, look: Theme, top: float | None = None
) -> Any:
    """Draw filled contours with thin lines between them; return the contours for a color bar.

    `top` is the loss of the highest contour; the maximum of the surface unless given.
    """
    from matplotlib.colors import LogNorm

    floor, high = surface.floor, surface.top if top is None else top
    levels = np.linspace(floor, high, _LEVELS) if high > floor else [floor - 1, floor + 1]
    norm = None
    if surface.logarithmic:
        levels, norm = np.geomspace(floor, high, _LEVELS), LogNorm(floor, high)
    grid = (surface.first, surface.second, surface.losses)
    contours = axes.contourf(*grid, levels=levels, norm=norm, cmap=colors)
    axes.contour(*grid, levels=levels[1:], colors=look.edge, linewidths=0.5)
    return contours
