"""Mini-batches: each has a loss surface of its own, and each step goes down that of its batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from cgprimer.training.losses import samples_for
from cgprimer.visualization.plots import slide
from cgprimer.visualization.plots.loss_landscape import Landscape, Relief, landscape, relief
from cgprimer.visualization.plots.surface_plot import fill, shades

Array = Any
_GRID = 25
_HALVINGS = 40
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
    """The loss surface of each mini-batch with the steps that go down it, and that of all samples.

    Plain descent takes the batches in turn. A panel shows the steps of its batch as arrows and the
    rest of the path as a thin line; the last panel has all steps on the mean of the surfaces. A
    star is where the surface of a panel is lowest.

    Args:
        graph: the graph.
        over: two of the graph's parameters; the first two unless given.
        data: inputs and targets, of which the first samples are taken; made from the parameters'
            values unless given.
        batch_size: samples of a batch.
        batches: how many there are, up to 5.
        epochs: how often all of them are gone through.
        rate: the learning rate; chosen so that the path stays in the picture unless given.
        ranges: from where to where, once for each of the two; three to either side of its value
            unless given.
        at: values of parameters; declared values fill the rest.
        start: where the path begins; a tenth from the lower left corner unless given.
        noise: standard deviation of the targets that are made.
        loss: as for training.
        seed: of the data.

    Raises:
        UsageError: not two different parameters, too many batches, fewer samples than they need.
        MissingValueError: a parameter has no value to be held at.
        DataError: the data are not those of the graph.

    Command line:
        cgprimer plot batches -e "xw = k*xa + b; parameter k=3, b=-1" -o batches.png
        cgprimer plot batches lecture --over ab,cd --batch-size 2 --noise 5 -o lecture.svg --dark

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
    >>> [axes.get_title() for axes in batches(graph).axes[:4]]
    ['batch 1', 'batch 2', 'batch 3', 'all samples']
    """
    count = check_integer("the number of batches", batches, minimum=1)
    if count > 5:
        raise UsageError("a slide has room for 5 batches")
    own, noise = (
        check_integer("the batch size", batch_size, minimum=1),
        check_real_number("noise", noise),
    )
    if data is None:
        truth = {n: v for n, v in (at or {}).items() if n in graph.parameters}
        data = make_dataset(graph, truth=truth, samples=count * own, noise=noise, seed=seed)
    samples = samples_for(graph, data, loss)
    if len(samples) < count * own:
        what = f"{count} batches of {own} need {count * own} samples, and there are {len(samples)}"
        raise UsageError(what, hint="--batch-size, or --batches")
    parts = [samples.where(np.arange(k * own, (k + 1) * own)) for k in range(count)]
    parts.append(samples.where(np.arange(count * own)))
    how = (ranges, at, start, "none", None, 1, loss, seed, _GRID)
    found = [landscape(graph, over, part, *how) for part in parts]
    walk = descent_by_batches(found, check_integer("epochs", epochs, minimum=1), rate)
    usual = f"One step per batch, rate {mark_rounding(walk.rate, 2)}"
    if not np.isfinite(walk.points).all():
        usual += ": diverges"
    figure, look = slide.new_figure(dark, title, usual)
    columns = -(-len(found) // 2)
    grid: Any = figure.subplots(2, columns, sharex=True, sharey=True, squeeze=False)
    colours, ink = shades(look), look.curves[1]
    shown, top = _together(found)
    for k, (axes, one) in enumerate(zip(grid.flat, found, strict=False)):
        slide.dress(axes, look)
        fill(axes, shown[k], colours, look, top)
        whole = k == count
        axes.grid(visible=False)
        axes.plot(*walk.points.T, color=look.ink, linewidth=1.2, label="path", zorder=2)
        axes.plot(*walk.points[0], marker="o", markersize=15, markerfacecolor="none", linestyle="",
                  markeredgewidth=2.2, color=look.ink, label="start", zorder=4)  # fmt: skip
        axes.plot(*one.lowest, marker="*", markersize=17, linestyle="", color=look.curves[2],
                  markeredgecolor=look.background, label="lowest", zorder=3)  # fmt: skip
        for step, (a, b) in enumerate(pairwise(walk.points)):
            if whole or step % count == k:
                axes.annotate("", b, a, zorder=5, arrowprops={
                    "arrowstyle": "-|>,head_width=0.3,head_length=0.5", "linewidth": 2.2,
                    "color": ink, "shrinkA": 0, "shrinkB": 0})  # fmt: skip
        axes.plot([], [], color=ink, linewidth=2.2, linestyle="-", marker=">",
                  label="steps of the panel's batch")  # fmt: skip
        axes.set_title("all samples" if whole else f"batch {k + 1}", **slide.text_style(look) | {
            "weight": "bold"})  # fmt: skip
        axes.set_xlim(one.first[0], one.first[-1])
        axes.set_ylim(one.second[0], one.second[-1])
        slide.linear_axis(axes, "x", most=6)
        slide.linear_axis(axes, "y", most=5)
        if k + columns >= len(found):
            axes.set_xlabel(one.names[0], **slide.text_style(look))
            axes.tick_params(labelbottom=True)
        if k % columns == 0:
            axes.set_ylabel(one.names[1], **slide.text_style(look))
    for axes in grid.flat[len(found) :]:
        axes.set_visible(False)
    slide.legend_below(figure, grid.flat[0], look)
    return figure


def _together(found: Sequence[Landscape]) -> tuple[list[Relief], float]:
    """What is shown of each, with one floor and one kind of scale; and the top of all."""
    each = [relief(one) for one in found]
    logarithmic = all(one.logarithmic for one in each)
    floor = (max if logarithmic else min)(one.floor for one in each)
    levelled = [
        replace(one, losses=np.maximum(one.losses, floor), floor=floor, logarithmic=logarithmic)
        for one in each
    ]
    return levelled, max(one.top for one in each)


@dataclass(frozen=True, eq=False)
class Walk:
    """A path of plain descent: its rate, and the points before each step and after the last."""

    rate: float
    points: Array


def descent_by_batches(
    found: Sequence[Landscape], epochs: int = _EPOCHS, rate: float | None = None
) -> Walk:
    """Steps down the surfaces in turn, but for the last, which is that of all samples.

    A rate that is not given is the largest of some halves of another that keeps the path in the
    picture and ends below its start.
    """
    *each, whole = found
    low, high = (np.array([side[k] for side in (whole.first, whole.second)]) for k in (0, -1))

    def walk(rate: float) -> Array:
        points = [whole.start]
        for step in range(epochs * len(each)):
            with np.errstate(all="ignore"):
                slope = each[step % len(each)].at_point(points[-1])[1]
                points.append(points[-1] - rate * slope)
        return np.array(points)

    if rate is not None:
        return Walk(rate, walk(check_real_number("the rate", rate, above=0)))
    slope = np.abs(whole.at_point(whole.start)[1])
    steep = float(slope.max())
    if not 0 < steep < np.inf:
        raise UsageError("the loss has no finite slope at the start", hint="--start NAME=VALUE")
    rate = 0.5 * float((high - low)[slope.argmax()]) / steep
    level: Callable[[Any], float] = lambda point: whole.at_point(point)[0]  # noqa: E731
    for _ in range(_HALVINGS):
        points = walk(rate)
        inside = ((points >= low) & (points <= high)).all()
        if inside and level(points[-1]) < level(points[0]):
            break
        rate /= 2
    return Walk(rate, points)
