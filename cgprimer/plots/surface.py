"""The loss over two parameters, as filled contours or in 3-D, with paths of optimizers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.methods.contract import Names
from cgprimer.data import Dataset
from cgprimer.number_format import marked
from cgprimer.pictures.theme import Theme, mix, theme
from cgprimer.plots import slide
from cgprimer.plots.landscape import Landscape, landscape, relief
from cgprimer.plots.surface_3d import draw_in_space, halo

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = Any
_LEVELS = 14


def surface(
    graph: ExpressionGraph,
    over: Names = (),
    data: Dataset | str | Path | None = None,
    *,
    in_3d: bool = False,
    ranges: Sequence[tuple[float, float]] = (),
    at: Mapping[str, float] | None = None,
    start: Mapping[str, float] | None = None,
    optimizers: Names | None = None,
    rates: Mapping[str, float] | None = None,
    steps: int = 200,
    loss: str = "squared-error",
    seed: int = 0,
    dark: bool = False,
    title: str | None = None,
    dataset: Dataset | None = None,
) -> Figure:
    """The mean loss over two parameters, with the path of each optimizer on it.

    All other parameters keep the values declared or given. Each step sees all samples. Colours,
    and in 3-D heights, are on a logarithmic scale where no loss is negative. A path that leaves
    the picture is cut at its edge, and the legend says so. Where there is no finite loss the plane
    is hatched. In 3-D the view is chosen so that paths are seen; what the surface hides is dotted.

    Args:
        graph: the graph.
        over: two of the graph's parameters; the first two unless given.
        data: inputs and targets, a Dataset or a .csv or .npz file; 200 samples made from the
            parameters' values unless given.
        in_3d: as a landscape in 3-D, instead of contours.
        ranges: from where to where, once for each of the two; three to either side of its value
            unless given.
        at: values of parameters; declared values fill the rest.
        start: where the paths begin; a tenth from the lower left corner unless given.
        optimizers: whose path or paths; all unless given, `none` for no path.
        rates: learning rates by optimizer; chosen by the steepness at the start unless given, so
            that the first step, were it a plain one, is a hundredth of the picture.
        steps: of each path.
        loss: as for training.
        seed: of the data.
        dark: for dark slides.
        title: above the picture.
        dataset: an older name of `data`.

    Raises:
        UsageError: not two different parameters, an unknown optimizer, an empty range.
        MissingValueError: a parameter has no value to be held at.
        DataError: the data are not those of the graph.

    Command line:
        cgprimer plot surface lecture --over ab,cd -o surface.png
        cgprimer plot surface lecture --over ab,cd --3d -o surface3d.png
        cgprimer plot surface -e "xw = k*xa + b; parameter k=3, b=-1" --rates sgd=0.3 -o a.svg

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
    >>> surface(graph, steps=20).axes[0].get_xlabel()
    'k'
    """
    found = landscape(
        graph,
        over,
        dataset if data is None else data,
        ranges=ranges,
        at=at,
        start=start,
        optimizers=optimizers,
        rates=rates,
        steps=steps,
        loss=loss,
        seed=seed,
    )
    return draw_surface(found, in_3d=in_3d, dark=dark, title=title)


def draw_surface(
    found: Landscape, *, in_3d: bool = False, dark: bool = False, title: str | None = None
) -> Figure:
    """Draw what :func:`landscape` has found; the arguments are those of :func:`surface`.

    Paths begin at the ring, and a cross marks the true values, where the data have been made from
    them, or else the declared or given ones.
    """
    from matplotlib.colors import LinearSegmentedColormap

    look = theme(dark)
    usual = f"Loss over {found.names[0]} and {found.names[1]}"
    figure = slide.new_figure(look, usual if title is None else title)
    # From the paper to the first colour of the theme: deep is pale, high is strong.
    strong = mix(look.curves[0], look.background, 0.75)
    colours = LinearSegmentedColormap.from_list("loss", [look.background, strong])
    paths, marks, notes = _paths(found, look), {}, []
    named = {f"{found.called} values": (found.known, _cross(look))} if found.known else {}
    if found.paths:
        named["start"] = (tuple(found.paths[0].points[0]), _ring(look))
    for name, (point, style) in named.items():
        if found.contains(np.array(point)):
            marks[name] = (point, style)
        else:
            notes.append(f"{name}: outside the picture")
    draw = draw_in_space if in_3d else _draw_in_plane
    axes = draw(figure, found, paths, marks, colours, look)
    for note in notes:
        axes.plot([], [], linestyle="", label=note)
    if axes.lines or axes.patches:
        slide.legend_below(figure, axes, look)
    return figure


def _draw_in_plane(
    figure: Figure,
    found: Landscape,
    paths: dict[str, tuple[Array, dict[str, Any]]],
    marks: dict[str, tuple[tuple[float, float], dict[str, Any]]],
    colours: Any,
    look: Theme,
) -> Any:
    from matplotlib.colors import LogNorm
    from matplotlib.patches import Rectangle
    from matplotlib.ticker import FixedLocator, FuncFormatter

    axes = figure.add_subplot()
    slide.dress(axes, look, x=found.names[0], y=found.names[1])
    shown = relief(found)
    floor, high = shown.floor, shown.top
    norm = None
    levels = np.linspace(floor, high, _LEVELS)
    if shown.logarithmic and high > floor:
        levels, norm = np.geomspace(floor, high, _LEVELS), LogNorm(floor, high)
        levels[[0, -1]] = floor, high  # exactly, or the highest point is a hole
    if not high > floor:
        levels = np.array([floor - 1, floor + 1])
    place = (shown.first, shown.second, shown.losses)
    filled = axes.contourf(*place, levels=levels, norm=norm, cmap=colours)
    axes.contour(*place, levels=levels[1:], colors=look.edge, linewidths=0.5)
    bar = figure.colorbar(filled, ax=axes, pad=0.02)
    if norm is not None:
        bar.locator = FixedLocator(slide.log_places(floor, high))
        bar.formatter = FuncFormatter(lambda value, _: slide.grouped(value))
        bar.update_ticks()
        bar.ax.minorticks_off()
    else:
        slide.linear_axis(bar.ax, "y")
    bar.set_label("mean loss", **slide.text_style(look))
    slide.number_style(bar.ax, look)
    bar.outline.set_edgecolor(look.edge)
    axes.grid(visible=False)
    for label, (points, style) in paths.items():
        axes.plot(*points.T, **halo(style, look))
        axes.plot(*points.T, label=label, **style)
    for name, (point, style) in marks.items():
        axes.plot(*point, label=name, **style)
    (left, right), (low, top) = ((s[0], s[-1]) for s in (found.first, found.second))
    axes.set_xlim(left, right)
    axes.set_ylim(low, top)
    for which in ("x", "y"):
        slide.linear_axis(axes, which)
    if shown.holes:
        hole = Rectangle((left, low), right - left, top - low, hatch="//", linewidth=0.0, zorder=0)
        hole.set(facecolor=look.background, edgecolor=look.edge, label="no finite loss")
        axes.add_patch(hole)
    return axes


def _paths(found: Landscape, look: Theme) -> dict[str, tuple[Array, dict[str, Any]]]:
    """For each path what the legend says of it, its points and its style.

    Colours stand out from the surface's own. Of paths that lie on one another the first is the
    widest, so that each of them is seen.
    """
    drawn = {}
    colours = look.curves[1:]
    for order, path in enumerate(found.paths):
        label = f"{path.optimizer}, rate {marked(path.rate, 2)}"
        if path.diverged:
            label += ": diverges"
        elif not found.contains(path.points).all():
            label += ": leaves the picture"
        under = min(len(found.paths) - 1 - order, 3)
        drawn[label] = (
            path.points,
            {
                **slide.curve_style(order, look),
                "color": colours[order % len(colours)],
                "linewidth": 2.6 + 1.4 * under,
                "markersize": 10 + 3.5 * under,
                "markeredgecolor": look.background,
                "markeredgewidth": 0.6,
                "markevery": max(1, len(path.points) // 20),
            },
        )
    return drawn


def _cross(look: Theme) -> dict[str, Any]:
    """The mark of the true values, whole also on the edge of the picture."""
    shape = {"marker": "X", "markersize": 15, "color": look.ink, "linestyle": ""}
    return {**shape, "markeredgecolor": look.background, "zorder": 6, "clip_on": False}


def _ring(look: Theme) -> dict[str, Any]:
    """The mark of the start, wide enough for the first steps to be seen in it."""
    shape = {"marker": "o", "markersize": 24, "markerfacecolor": "none", "linestyle": ""}
    edge = {"markeredgecolor": look.ink, "markeredgewidth": 2.6}
    return {**shape, **edge, "zorder": 6, "clip_on": False}
