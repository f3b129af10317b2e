"""Mini-batches: each has its own loss surface, which its updates descend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from cgprimer.core.methods.derivative_program import Names
from cgprimer.errors import UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.number_format import mark_rounding
from cgprimer.support.validation import check_integer, check_real_number
from cgprimer.training.data import Dataset, make_dataset
from cgprimer.training.losses import load_samples
from cgprimer.visualization.diagrams.theme import Theme
from cgprimer.visualization.plots import slide
from cgprimer.visualization.plots.loss_landscape import (
    Landscape,
    LandscapeOptions,
    compute_landscape,
)
from cgprimer.visualization.plots.loss_surface import LossSurface, build_loss_surface
from cgprimer.visualization.plots.surface_plot import build_color_map, fill_contours

Array = Any
_GRID = 25
_MAX_HALVINGS = 40  # of the learning rate
_MAX_BATCHES = 5  # panels of a slide, next to the panel of all samples
_EPOCHS = 2


def batches(
    graph: ExpressionGraph,
    over: Names = (),
    data: Dataset | str | Path | None = None,
    *,
    batch_size: int = 4,
    batches: int = 3,
    epochs: int = _EPOCHS,
    rate: float | None = None,
    ranges: Sequence[tuple[float, float]] = (),
    at: Mapping[str, float] | None = None,
    start: Mapping[str, float] | None = None,
    noise: float = 0.5,
    loss: str = "squared-error",
    seed: int = 0,
    dark: bool = False,
    title: str | None = None,
) -> slide.Figure:
    """Draw the loss surface of each mini-batch with its updates, and the surface of the full data.

    Gradient descent takes the batches in turn. A panel shows the updates of its batch as arrows and
    the rest of the path as a thin line; the last panel shows all updates on the mean surface. A
    star marks the minimum of the surface of a panel.

    Args:
        graph: the graph.
        over: two of the graph's parameters; the first two unless given.
        data: inputs and targets, of which the first samples are used; generated from the values of
            the parameters unless given.
        batch_size: samples per batch.
        batches: number of batches, up to 5.
        epochs: number of epochs.
        rate: learning rate; chosen so that the path stays in the picture unless given.
        ranges: range of each of the two parameters; three to either side of its value unless given.
        at: values of parameters; other parameters keep their declared values.
        start: start of the path; a tenth from the lower left corner unless given.
        noise: standard deviation of the noise of generated targets.
        loss: as for training.
        seed: random seed of the data.

    Raises:
        UsageError: not two different parameters, too many batches, or too few samples.
        MissingValueError: a fixed parameter has no value.
        DataError: the data do not match the graph.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
    >>> [axes.get_title() for axes in batches(graph).axes[:4]]
    ['batch 1', 'batch 2', 'batch 3', 'all samples']
    """
    parts = _split_samples(graph, data, at, (batch_size, batches), noise, loss, seed)
    options = LandscapeOptions(
        over, ranges, at, start, optimizers="none", steps=1, loss=loss, seed=seed, grid=_GRID
    )
    landscapes = [compute_landscape(graph, part, options) for part in parts]
    epochs = check_integer("epochs", epochs, minimum=1)
    path = descent_by_batches(landscapes, epochs, rate)
    return _draw_batches(landscapes, path, dark=dark, title=title)


@dataclass(frozen=True, eq=False)
class BatchDescent:
    """The path of gradient descent with mini-batches, and its learning rate.

    Attributes:
        rate: learning rate.
        points: values of the two parameters before each update and after the last.
    """

    rate: float
    points: Array


def _draw_batches(
    landscapes: Sequence[Landscape], path: BatchDescent, *, dark: bool, title: str | None
) -> slide.Figure:
    """Draw one panel for each loss landscape, with the path of mini-batch descent."""
    default_title = f"Mini-batch descent, learning rate {mark_rounding(path.rate, 2)}"
    if not np.isfinite(path.points).all():
        default_title += ": diverges"
    figure, look = slide.create_figure(dark, title, default_title)
    columns = -(-len(landscapes) // 2)
    grid: Any = figure.subplots(2, columns, sharex=True, sharey=True, squeeze=False)
    surfaces, top = _align_surfaces(landscapes)
    for k, (axes, landscape) in enumerate(zip(grid.flat, landscapes, strict=False)):
        slide.style_axes(axes, look)
        fill_contours(axes, surfaces[k], build_color_map(look), look, top)
        axes.grid(visible=False)
        _draw_panel(axes, landscape, path, k, len(landscapes) - 1, look)
        slide.use_linear_axis(axes, "x", max_ticks=6)
        slide.use_linear_axis(axes, "y", max_ticks=5)
        if k + columns >= len(landscapes):
            axes.set_xlabel(landscape.names[0], **slide.text_style(look))
            axes.tick_params(labelbottom=True)
        if k % columns == 0:
            axes.set_ylabel(landscape.names[1], **slide.text_style(look))
    for axes in grid.flat[len(landscapes) :]:
        axes.set_visible(False)
    slide.draw_legend_below(figure, grid.flat[0], look)
    return figure


def _split_samples(
    graph: ExpressionGraph,
    data: Any,
    at: Mapping[str, float] | None,
    sizes: tuple[int, int],
    noise: float,
    loss: str,
    seed: int,
) -> list[Dataset]:
    """Split the data into batches, and append an item with the samples of all batches.

    `sizes` are the number of samples per batch and the number of batches.
    """
    count = check_integer("the number of batches", sizes[1], minimum=1)
    if count > _MAX_BATCHES:
        raise UsageError(f"`batches` must be at most {_MAX_BATCHES}, got {count}")
    size = check_integer("the batch size", sizes[0], minimum=1)
    noise = check_real_number("noise", noise)
    if data is None:
        truth = {n: v for n, v in (at or {}).items() if n in graph.parameters}
        data = make_dataset(graph, truth=truth, samples=count * size, noise=noise, seed=seed)
    samples = load_samples(graph, data, loss)
    if len(samples) < count * size:
        raise UsageError(
            f"{count} batches of {size} require {count * size} samples, got {len(samples)}",
            hint="choose a smaller batch size (--batch-size) or fewer batches (--batches)",
        )
    parts = [samples.where(np.arange(k * size, (k + 1) * size)) for k in range(count)]
    return [*parts, samples.where(np.arange(count * size))]


def _draw_panel(
    axes: slide.Axes, landscape: Landscape, path: BatchDescent, k: int, count: int, look: Theme
) -> None:
    """Draw the path and the updates of batch `k`; if `k` equals `count`, draw all updates."""
    axes.plot(*path.points.T, color=look.ink, linewidth=1.2, label="path", zorder=2)
    axes.plot(*path.points[0], marker="o", markersize=15, markerfacecolor="none", linestyle="",
              markeredgewidth=2.2, color=look.ink, label="start", zorder=4)  # fmt: skip
    axes.plot(*landscape.lowest, marker="*", markersize=17, linestyle="", color=look.curves[2],
              markeredgecolor=look.background, label="minimum", zorder=3)  # fmt: skip
    arrow: dict[str, Any] = {
        "arrowstyle": "-|>,head_width=0.3,head_length=0.5",
        "linewidth": 2.2,
        "color": look.curves[1],
        "shrinkA": 0,
        "shrinkB": 0,
    }
    for step, (a, b) in enumerate(pairwise(path.points)):
        if k == count or step % count == k:
            axes.annotate("", b, a, zorder=5, arrowprops=arrow)
    axes.plot([], [], color=look.curves[1], linewidth=2.2, linestyle="-", marker=">",
              label="steps with this batch")  # fmt: skip
    name = "all samples" if k == count else f"batch {k + 1}"
    axes.set_title(name, **slide.text_style(look) | {"weight": "bold"})
    axes.set_xlim(landscape.first[0], landscape.first[-1])
    axes.set_ylim(landscape.second[0], landscape.second[-1])


def _align_surfaces(landscapes: Sequence[Landscape]) -> tuple[list[LossSurface], float]:
    """Align loss surfaces to a common floor and scale; return them and their maximum loss."""
    surfaces = [build_loss_surface(landscape) for landscape in landscapes]
    logarithmic = all(surface.logarithmic for surface in surfaces)
    floor = (max if logarithmic else min)(surface.floor for surface in surfaces)
    aligned = [
        replace(
            surface,
            losses=np.maximum(surface.losses, floor),
            floor=floor,
            logarithmic=logarithmic,
        )
        for surface in surfaces
    ]
    return aligned, max(surface.top for surface in surfaces)


def descent_by_batches(
    landscapes: Sequence[Landscape], epochs: int = _EPOCHS, rate: float | None = None
) -> BatchDescent:
    """Compute the path of gradient descent that cycles through the loss surfaces of the batches.

    The last landscape, that of all samples, is only for the choice of the learning rate. Unless a
    rate is given, a large rate is halved until the path stays in the picture and ends below its
    start.
    """
    *batches, total = landscapes
    low, high = (np.array([side[k] for side in (total.first, total.second)]) for k in (0, -1))

    def descend(rate: float) -> Array:
        """Return the points that gradient descent visits with the given learning rate."""
        points = [total.start]
        for step in range(epochs * len(batches)):
            with np.errstate(all="ignore"):
                slope = batches[step % len(batches)].at_point(points[-1])[1]
                points.append(points[-1] - rate * slope)
        return np.array(points)

    if rate is not None:
        return BatchDescent(rate, descend(check_real_number("the rate", rate, above=0)))
    slope = np.abs(total.at_point(total.start)[1])
    steepness = float(slope.max())
    if not 0 < steepness < np.inf:
        hint = "choose another start (--start NAME=VALUE)"
        raise UsageError("the slope of the loss at the start must be finite and nonzero", hint=hint)
    rate = 0.5 * float((high - low)[slope.argmax()]) / steepness
    for _ in range(_MAX_HALVINGS):
        points = descend(rate)
        is_inside = ((points >= low) & (points <= high)).all()
        if is_inside and total.at_point(points[-1])[0] < total.at_point(points[0])[0]:
            break
        rate /= 2
    return BatchDescent(rate, points)
