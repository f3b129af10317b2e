"""The loss, or a function, over two parameters, as contours or in 3-D, with optimizers' paths.

In 3-D matplotlib draws whole objects one over the other, so a path would lie over a hill that hides
it. Here each point of a path looks along the ray to the eye: where the ray is below the surface,
the point is hidden. The projection is parallel, so all rays have one direction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import cos, log10, radians, sin
from pathlib import Path
from typing import Any

import numpy as np

from cgprimer.core.methods.derivative_program import Names
from cgprimer.errors import UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.number_format import mark_rounding
from cgprimer.support.validation import check_integer
from cgprimer.training.data import Dataset
from cgprimer.visualization.diagrams.theme import Theme, mix
from cgprimer.visualization.plots import slide
from cgprimer.visualization.plots.loss_landscape import (
    Landscape,
    Relief,
    full_batch_name,
    landscape,
    relief,
)

Array = Any
Drawn = dict[str, tuple[Array, dict[str, Any]]]  # by what the legend says: points and style
_LEVELS = 14
_ARROW = 0.22  # of the picture's height: the length of an arrow of the gradient
_BOX = (2.1, 1.35, 0.8)  # the sides of the box
_VIEWS = tuple((up, around) for up in (36.0, 46.0, 56.0) for around in (-65.0, -115.0, 115.0, 65.0))
"""Elevation and azimuth in degrees, the usual view first."""
_TRUTH = 0.3  # of all points of paths: what it counts in the choice of a view to see the truth
_ENOUGH = 0.95  # of what the best view shows: then an earlier one is taken
_MESH = 54  # meshes to either side
_DENSE = 400  # points of a path: between two steps it follows the surface
_LIFT = 0.012  # of the box's height: what is as near to the surface lies on it


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
    """The mean loss, or a function, over two parameters, with the path of each optimizer on it.

    A graph without inputs is a function of its parameters, and the surface shows its values.
    All other parameters keep the values declared or given. Each step sees all samples. Colours,
    and in 3-D heights, are on a logarithmic scale where no loss is negative. A path that leaves
    the picture is cut at its edge, and the legend says so. Where there is no finite loss the plane
    is hatched. In 3-D the view is chosen so that paths are seen; what the surface hides is dotted.

    Args:
        graph: the graph.
        over: two of the graph's parameters, of arrays numbers such as `W[0,1]`; the first two
            unless given.
        data: inputs and targets, a Dataset or a .csv or .npz file; 200 samples made from the
            parameters' values unless given.
        in_3d: as a landscape in 3-D, instead of contours.
        gradient: how many arrows show the way down that is steepest: the first at the start, others
            evenly along the first path.
        ranges: from where to where, once for each of the two; unless given, three to either side of
            the minimum, or more where the start is farther away.
        at: values of parameters; declared values fill the rest.
        start: where the paths begin; unless given at the declared values of a function, or else a
            tenth from the lower left corner.
        optimizers: whose path or paths; sgd, momentum and adam unless given, `none` for no path.
        rates: learning rates by optimizer; chosen by the steepness at the start unless given, so
            that the first step, were it a plain one, is a hundredth of the picture.
        steps: of each path.
        loss: as for training, or `output` for the values of the output; unless given
            `squared-error`, or `output` for a graph without inputs.
        seed: of the data.
        dataset: an older name of `data`.

    Raises:
        UsageError: not two different parameters, an unknown optimizer, an empty range, arrows in
            3-D, or several arrows without a path.
        MissingValueError: a parameter has no value to be held at.
        DataError: the data are not those of the graph.

    Command line:
        cgprimer plot surface lecture --over ab,cd -o surface.png
        cgprimer plot surface paraboloid --over x,y --gradient 3 -o bowl.png
        cgprimer plot surface lecture --over ab,cd --3d -o surface3d.png
        cgprimer plot surface lecture --over ab,cd --gradient 3 --optimizers sgd -o arrows.png
        cgprimer plot surface -e "xw = k*xa + b; parameter k=3, b=-1" --rates sgd=0.3 -o a.svg

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
    >>> surface(graph, steps=20).axes[0].get_xlabel()
    'k'
    """
    data = dataset if data is None else data
    found = landscape(graph, over, data, ranges, at, start, optimizers, rates, steps, loss, seed)
    return draw_surface(found, in_3d=in_3d, gradient=gradient, dark=dark, title=title)


def draw_surface(
    found: Landscape,
    *,
    in_3d: bool = False,
    gradient: int = 0,
    dark: bool = False,
    title: str | None = None,
) -> slide.Figure:
    """Draw what :func:`landscape` has found; the arguments are those of :func:`surface`.

    Paths begin at the ring. A cross marks the true values where targets have been made from them,
    and the declared or given values where the data are those of a user.
    """
    arrows = check_integer("the number of arrows", gradient)
    if arrows and in_3d:
        raise UsageError("arrows of the gradient are drawn in the plane, not in 3-D")
    if arrows > 1 and not found.paths:
        raise UsageError(
            "several arrows are drawn along a path, and there is none",
            hint="name an optimizer (--optimizers sgd), or draw one arrow (--gradient 1)",
        )
    shown = relief(found)
    usual = "{} over {} and {}".format(found.function or "Loss", *found.names)
    if not found.holds_minimum:
        usual += " (no minimum in this range)"
    figure, look = slide.new_figure(dark, title, usual)
    colours = shades(look)
    mark: dict[str, Any] = {"linestyle": "", "zorder": 6, "clip_on": False}  # whole on the edge
    cross = {"marker": "X", "markersize": 15, "color": look.ink, "markeredgecolor": look.background}
    # Wide enough for the first steps to be seen in it.
    ring = {"marker": "o", "markersize": 24, "markerfacecolor": "none", "markeredgewidth": 2.6}
    marks: Drawn = {}
    if found.known:
        marks[f"{found.called} values"] = (np.array(found.known), mark | cross)
    if found.paths:
        marks["start"] = (found.paths[0].points[0], mark | ring | {"markeredgecolor": look.ink})
    outside = [name for name, (point, _) in marks.items() if not shown.contains(point)]
    inside = {name: drawn for name, drawn in marks.items() if name not in outside}
    draw = _draw_in_space if in_3d else _draw_in_plane
    heights = f"mean {found.quantity}" if found.averaged else found.quantity
    axes = draw(figure, shown, heights, _paths(found, shown, look), inside, colours, look)
    axes.set_xlim(found.first[0], found.first[-1])
    axes.set_ylim(found.second[0], found.second[-1])
    for which, name in zip("xy", found.names, strict=True):
        getattr(axes, f"set_{which}label")(name, **slide.text_style(look))
        slide.linear_axis(axes, which, most=6 if in_3d else 8)
    if arrows:
        along = found.paths[0].points if found.paths else found.start[None]
        _draw_arrows(axes, found, along, arrows, look)
    for name in outside:
        axes.plot([], [], linestyle="", label=f"{name}: outside the picture")
    if axes.lines or axes.patches:
        slide.legend_below(figure, axes, look)
    return figure


def _draw_in_plane(
    figure: slide.Figure,
    shown: Relief,
    heights: str,
    paths: Drawn,
    marks: Drawn,
    colours: Any,
    look: Theme,
) -> Any:
    axes = figure.add_subplot()
    slide.dress(axes, look)
    filled = fill(axes, shown, colours, look)
    bar = figure.colorbar(filled, ax=axes, pad=0.02)
    (slide.log_axis if shown.logarithmic else slide.linear_axis)(bar.ax, "y")
    bar.minorticks_off()
    bar.set_label(heights, **slide.text_style(look))
    slide.number_style(bar.ax, look)
    bar.outline.set_edgecolor(look.edge)
    axes.grid(visible=False)
    for label, (points, style) in paths.items():
        _draw_path(axes, points, np.full(len(points), True), label, style, look)
    for name, (point, style) in marks.items():
        axes.plot(*point, label=name, **style)
    if shown.holes:
        axes.axhspan(shown.second[0], shown.second[-1], hatch="//", linewidth=0.0, zorder=0,
                     facecolor=look.background, edgecolor=look.edge,
                     label="no finite loss")  # fmt: skip
    return axes


def shades(look: Theme) -> Any:
    """From the paper to the first colour of the theme: deep is pale, high is strong."""
    from matplotlib.colors import LinearSegmentedColormap

    strong = mix(look.curves[0], look.background, 0.75)
    return LinearSegmentedColormap.from_list("loss", [look.background, strong])


def fill(axes: Any, shown: Relief, colours: Any, look: Theme, top: float | None = None) -> Any:
    """Filled contours up to a top, with thin lines between them; what a colour bar is made of."""
    from matplotlib.colors import LogNorm

    floor, high = shown.floor, shown.top if top is None else top
    levels = np.linspace(floor, high, _LEVELS) if high > floor else [floor - 1, floor + 1]
    norm = None
    if shown.logarithmic:
        levels, norm = np.geomspace(floor, high, _LEVELS), LogNorm(floor, high)
    place = (shown.first, shown.second, shown.losses)
    filled = axes.contourf(*place, levels=levels, norm=norm, cmap=colours)
    axes.contour(*place, levels=levels[1:], colors=look.edge, linewidths=0.5)
    return filled


def _draw_arrows(axes: Any, found: Landscape, along: Array, many: int, look: Theme) -> None:
    """The steepest way down from the first point, and from others evenly along a path.

    An arrow goes from p to p - t g in the units of the axes, with t such that all are seen: the
    angle is right on the axes' scales, the length says nothing. Only the part of the path that
    stays in the picture counts, and points lie between steps where steps are long.
    """
    ends = np.array([[side[0], side[-1]] for side in (found.first, found.second)])
    span = ends[:, 1] - ends[:, 0]
    aspect = np.array([1.6, 1.0])  # of a picture's sides
    within = ((along >= ends[:, 0]) & (along <= ends[:, 1])).all(axis=1)
    along = along[: np.argmin([*within, False])]  # up to where it leaves the picture
    if not len(along):
        return
    walked = np.r_[0, np.cumsum(np.hypot(*(np.diff(along, axis=0) / span * aspect).T))]
    for k, goal in enumerate(np.linspace(0, walked[-1], many + 1)[:-1]):  # not at the bottom
        point = np.array([np.interp(goal, walked, side) for side in along.T])
        down = -found.at_point(point)[1]
        length = float(np.hypot(*(down / span * aspect)))
        if not 0 < length < np.inf:
            continue
        tip = point + down * (_ARROW / length / (1 if many == 1 else 1.6))
        axes.annotate("", tip, point, zorder=7, annotation_clip=False, arrowprops={
            "arrowstyle": "-|>,head_width=0.45,head_length=0.8", "linewidth": 3.4,
            "color": look.ink, "shrinkA": 0, "shrinkB": 0})  # fmt: skip
        if k == 0:
            _name_arrow(axes, (point + tip) / 2, down / span * aspect, look)


def _name_arrow(axes: Any, middle: Array, way: Array, look: Theme) -> None:
    """Write what an arrow is below its middle, or to its right where it is upright."""
    across = np.array([way[1], -way[0]]) / np.hypot(*way)  # at right angles to the arrow
    if across[1] > 0 or (across[1] == 0 and across[0] < 0):
        across = -across
    to_side = abs(across[0]) > 0.3
    align = ("left" if across[0] > 0 else "right") if to_side else "center"
    slide.beside(axes, "-gradient", middle, (14 * across).tolist(), look, zorder=8, ha=align,
                 va="center" if across[1] > -0.5 else "top",
                 bbox={"facecolor": look.background, "edgecolor": "none", "alpha": 0.8,
                       "pad": 2})  # fmt: skip


def _paths(found: Landscape, shown: Relief, look: Theme) -> Drawn:
    """For each path what the legend says of it, its points and its style.

    Colours stand out from the surface's own. Of paths that lie on one another the first is the
    widest, so that each of them is seen.
    """
    drawn = {}
    colours = look.curves[1:]
    for order, path in enumerate(found.paths):
        leaves = "" if shown.contains(path.points).all() else ": leaves the picture"
        label = f"{full_batch_name(path.optimizer)}, rate {mark_rounding(path.rate, 2)}"
        under = min(len(found.paths) - 1 - order, 3)
        style = {
            "color": colours[order % len(colours)],
            "linewidth": 2.6 + 1.4 * under,
            "markersize": 10 + 3.5 * under,
            "markeredgecolor": look.background,
            "markeredgewidth": 0.6,
            "markevery": max(1, len(path.points) // 20),
        }
        said = label + (": diverges" if path.diverged else leaves)
        drawn[said] = (path.points, slide.curve_style(order, look) | style)
    return drawn


def _draw_in_space(
    figure: slide.Figure,
    shown: Relief,
    heights: str,
    paths: Drawn,
    marks: Drawn,
    colours: Any,
    look: Theme,
) -> Any:
    figure.set_layout_engine("none")  # it would leave half of the slide empty around a 3-D box
    axes: Any = figure.add_axes((0.0, 0.13, 1.0, 0.79), projection="3d", computed_zorder=False)
    axes.set_facecolor("none")
    axes.set_proj_type("ortho")
    x, y = np.meshgrid(shown.first, shown.second)
    axes.plot_surface(x, y, shown.heights, cmap=colours, edgecolor=look.edge, linewidth=0.25,
                      rcount=_MESH, ccount=_MESH, zorder=1)  # fmt: skip
    on_paths = {}
    for label, (points, _) in paths.items():
        leaves = np.argmin([*shown.contains(points), False])  # for the first time
        on_paths[label] = _on_surface(shown, points[:leaves])
    on_marks = {name: _on_surface(shown, point[None])[0] for name, (point, _) in marks.items()}
    view = _best_view(shown, [places for places, _ in on_paths.values()],
                      [place for name, place in on_marks.items() if name != "start"])  # fmt: skip
    for label, (places, steps) in on_paths.items():
        style = paths[label][1]
        style |= {"markevery": steps[:: style["markevery"]]}
        _draw_path(axes, places, seen_points(shown, places, view), label, style, look)
    for name, place in on_marks.items():
        faint = {} if seen_points(shown, place, view)[0] else {"alpha": 0.35}
        text = f"{name} (hidden)" if faint else name
        axes.plot(*place.T, label=text, **{**marks[name][1], "zorder": 4, **faint})
    if shown.holes:
        axes.plot([], [], linestyle="", label="no surface: no finite loss")
    axes.view_init(elev=view[0], azim=view[1])
    axes.xaxis.labelpad = axes.yaxis.labelpad = 14
    axes.set_zlabel(heights, labelpad=24, **slide.text_style(look))
    if shown.logarithmic:
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
    return axes


def _on_surface(shown: Relief, points: Array) -> tuple[Array, list[int]]:
    """A path as close points on the surface, shape (points, 3), and which of them are its steps."""
    if not len(points):  # it begins outside
        return np.empty((0, 3)), []
    between = max(1, _DENSE // max(1, len(points) - 1))
    steps = np.arange(len(points))
    fine = np.linspace(0, len(points) - 1, between * (len(points) - 1) + 1)
    first, second = (np.interp(fine, steps, points[:, k]) for k in (0, 1))
    level = _level(shown, first, second)
    return np.stack([first, second, level], axis=1), (steps * between).tolist()


def _best_view(shown: Relief, paths: list[Array], truth: list[Array]) -> tuple[float, float]:
    """The first of the views that shows nearly as much of the paths, and the truth, as any."""
    counts = sum(len(places) for places in paths) or 1

    def score(view: tuple[float, float]) -> float:
        on_paths = sum(int(seen_points(shown, places, view).sum()) for places in paths)
        of_truth = sum(bool(seen_points(shown, place, view)[0]) for place in truth)
        return on_paths + _TRUTH * counts * of_truth

    scores = [score(view) for view in _VIEWS]
    return next(v for v, s in zip(_VIEWS, scores, strict=True) if s >= _ENOUGH * max(scores))


def _level(shown: Relief, first: Array, second: Array) -> Array:
    """The height of the surface over points, straight between those of the grid."""
    across = np.interp(first, shown.first, np.arange(len(shown.first)))
    along = np.interp(second, shown.second, np.arange(len(shown.second)))
    column = np.minimum(across.astype(int), len(shown.first) - 2)
    row = np.minimum(along.astype(int), len(shown.second) - 2)
    s, t, heights = across - column, along - row, shown.heights
    near, far = ((1 - s) * heights[k, column] + s * heights[k, column + 1] for k in (row, row + 1))
    return (1 - t) * near + t * far


def seen_points(shown: Relief, places: Array, view: tuple[float, float]) -> Array:
    """Which places on the surface, shape (places, 3), the eye sees; shape (places,)."""
    height = float(np.nanmax(shown.heights) - np.nanmin(shown.heights))
    spans = np.array([np.ptp(shown.first), np.ptp(shown.second), height or 1.0])
    up, around = radians(view[0]), radians(view[1])
    eye = np.array([cos(up) * cos(around), cos(up) * sin(around), sin(up)])
    ray = eye * spans / np.array(_BOX)  # in the units of the axes, for a length of 1 in the box
    hidden = np.zeros(len(places), dtype=bool)
    # Above the box there is no surface any more.
    for length in np.linspace(0.0, _BOX[2] / sin(up), 160)[1:]:
        point = places + length * ray
        above = _level(shown, *point[:, :2].T) > point[:, 2] + _LIFT * spans[2]  # not in holes
        hidden |= above & shown.contains(point[:, :2])
    return ~hidden


def _draw_path(
    axes: Any, places: Array, seen: Array, label: str, style: dict[str, Any], look: Theme
) -> None:
    """A path as it is seen, with a halo that parts it from the surface; faint where hidden."""
    shown = np.where(seen[:, None], places, np.nan)
    halo = {"linewidth": style["linewidth"] + 2.0, "label": "_halo", "zorder": 1.9}
    axes.plot(*shown.T, color=look.background, **halo)
    axes.plot(*shown.T, label=label, zorder=2.4, **style)
    if len(seen) and not seen.all():
        faint = {"linestyle": ":", "linewidth": 1.6, "marker": "", "alpha": 0.6}
        behind = np.where(seen[:, None], np.nan, places)
        axes.plot(*behind.T, label="_hidden", zorder=2, color=style["color"], **faint)
