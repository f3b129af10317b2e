"""The noise of mini-batches: it can carry gradient descent out of a local minimum.

Source: Bottou 1991, "Stochastic gradient learning in neural networks"; Keskar et al. 2017, "On
large-batch training for deep learning: generalization gap and sharp minima".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cgprimer.core.graph import check_graph
from cgprimer.errors import UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.number_format import format_number
from cgprimer.support.validation import check_integer, check_named_values, check_real_number
from cgprimer.support.value_names import element_hint
from cgprimer.training.data import Dataset, make_dataset, require_in_memory
from cgprimer.training.losses import samples_for
from cgprimer.training.objective import Objective
from cgprimer.visualization.diagrams.theme import Theme
from cgprimer.visualization.plots import slide
from cgprimer.visualization.plots.cost_plot import as_counts

Array = Any
_SAMPLES = 100
_GRID = 601  # values of the parameter at which the loss is computed
_MOST_PANELS = 3
_CONVERGED = 0.01  # of the range: a descent that has converged is as close to the minimum
_MARGIN = 0.5  # of the distance between start, truth and minimum, on either side


def noise(
    graph: ExpressionGraph,
    data: Dataset | str | Path | None = None,
    *,
    over: str | None = None,
    start: Mapping[str, float] | None = None,
    batch_sizes: int | Sequence[int] = (1, 4),
    rate: float | None = None,
    steps: int = 300,
    seeds: int = 20,
    ranges: Sequence[tuple[float, float]] = (),
    at: Mapping[str, float] | None = None,
    loss: str = "squared-error",
    seed: int = 0,
    dark: bool = False,
    title: str | None = None,
) -> slide.Figure:
    """Mini-batch noise at a local minimum: full-batch descent stays there, small batches may leave.

    The loss is shown over one parameter, and below it the paths: one of gradient descent on all
    samples, and one run of SGD for each seed. All runs have the same start and learning rate. The
    title of a panel says how many runs end outside of the valley in which gradient descent ends; a
    run ends at the median over its last tenth of steps.

    Args:
        graph: the graph.
        data: inputs and targets; 100 samples made from the parameters' values unless given.
        over: the parameter; the only one unless given.
        start: its value before the first step; required.
        batch_sizes: one to three batch sizes, a panel for each; 1 and 4 unless given.
        rate: learning rate; half of the reciprocal of the largest curvature near the start unless
            given.
        steps: steps of each run.
        seeds: number of runs for each batch size, each with its own seed.
        ranges: range of the parameter that is shown.
        at: values of parameters; declared values fill the rest.
        loss: as for training.
        seed: of the data, and of the first run; the next ones follow.

    Raises:
        UsageError: an unknown parameter, or no start.
        DataError: the data are not those of the graph.

    Command line:
        cgprimer plot noise -e "y = sin(k*x); parameter k=6" --start k=-1.8 --rate 1.6 -o noise.png
        cgprimer plot noise lecture --over cd --start cd=-5 --batch-sizes 1,8 -o noise.svg --dark

    >>> import cgprimer
    >>> graph = cgprimer.parse("y = sin(k*x); parameter k = 6")
    >>> figure = noise(graph, start={"k": -1.8}, rate=1.6, seeds=4, steps=100, batch_sizes=1)
    >>> figure.axes[0].get_title()
    'batch size 1: 2 of 4 runs leave the valley'
    """
    found = noisy_descents(
        graph, data, over, start, batch_sizes, rate, steps, seeds, ranges, at, loss, seed
    )
    figure, look = slide.new_figure(dark, title, found.sentence)
    panels: Any = figure.subplots(
        2, len(found.panels), sharex=True, sharey="row", squeeze=False, height_ratios=(2, 3)
    )
    for column, panel in enumerate(found.panels):
        top, bottom = panels[:, column]
        _draw_loss(top, found, panel, look, first=column == 0)
        _draw_paths(bottom, found, panel, look, first=column == 0)
    slide.legend_below(figure, panels[1, 0], look)
    return figure


@dataclass(frozen=True, eq=False)
class Panel:
    """The runs with one batch size.

    Attributes:
        batch_size: samples of a step.
        paths: the parameter before each step and after the last; shape (runs, steps + 1).
        ends: where each run ends: the median over the last tenth of its steps.
        left: for each run whether it ends outside of the valley.
        diverged: the number of runs that are not finite at the end; they do not count as left.
    """

    batch_size: int
    paths: Array
    ends: Array
    left: Array
    diverged: int

    @property
    def sentence(self) -> str:
        """How many runs leave the valley, in words."""
        count = int(self.left.sum())
        leave = "leaves" if count == 1 else "leave"
        text = f"batch size {self.batch_size}: {count} of {len(self.paths)} runs {leave} the valley"
        return text + (f", {self.diverged} diverge" if self.diverged else "")


@dataclass(frozen=True, eq=False)
class NoisyDescents:
    """Gradient descent and SGD from one start, over one parameter.

    Attributes:
        name: the parameter.
        values, losses: the mean loss over a range of the parameter.
        valley: the ends of the valley around the end of gradient descent: the neighbouring maxima.
        full: the path of gradient descent on all samples; shape (steps + 1,).
        rate: learning rate of all runs.
        panels: for each batch size its runs.
    """

    name: str
    values: Array
    losses: Array
    valley: tuple[float, float]
    full: Array
    rate: float
    panels: tuple[Panel, ...]

    @property
    def in_lowest(self) -> bool:
        """Whether gradient descent ends in the valley of the lowest loss that is shown."""
        low, high = self.valley
        return bool(low <= self.values[np.nanargmin(self.losses)] <= high)

    @property
    def sentence(self) -> str:
        """Where gradient descent on all samples ends, in words."""
        where = f"{self.name} ≈ {format_number(float(self.full[-1]), 3)}"
        inside = (self.values >= self.valley[0]) & (self.values <= self.valley[1])
        lowest = self.values[np.nanargmin(np.where(inside, self.losses, np.inf))]
        if abs(self.full[-1] - lowest) > _CONVERGED * (self.values[-1] - self.values[0]):
            return f"Full-batch descent has not converged: {where}"
        kind = "the lowest minimum shown" if self.in_lowest else "a local minimum"
        return f"Full-batch descent ends in {kind}: {where}"


def noisy_descents(
    graph: ExpressionGraph,
    data: Any = None,
    over: str | None = None,
    start: Mapping[str, float] | None = None,
    batch_sizes: int | Sequence[int] = (1, 4),
    rate: float | None = None,
    steps: int = 300,
    seeds: int = 20,
    ranges: Sequence[tuple[float, float]] = (),
    at: Mapping[str, float] | None = None,
    loss: str = "squared-error",
    seed: int = 0,
) -> NoisyDescents:
    """Compute what :func:`noise` draws; the arguments are the same."""
    steps = check_integer("steps", steps, minimum=1)
    seed, runs = check_integer("the seed", seed), check_integer("seeds", seeds, minimum=1)
    sizes = as_counts(batch_sizes, "batch sizes")
    if len(sizes) > _MOST_PANELS:
        raise UsageError(f"at most {_MOST_PANELS} batch sizes fit on a slide, got {len(sizes)}")
    check_graph(graph)
    name = _parameter(graph, over)
    given = check_named_values("at", at, "parameter", graph.parameters)
    begin = check_named_values("start", start, "parameter", (name,)).get(name)
    if begin is None:
        hint = f"choose one near a local minimum: start={{{name!r}: ...}} (--start {name}=...)"
        raise UsageError(f"the start of {name!r} is missing", hint=hint)
    if data is None:
        data = make_dataset(graph, truth=given, samples=_SAMPLES, seed=seed)
    samples = require_in_memory(samples_for(graph, data, loss), "a step needs all samples")
    samples.check_finite()
    if max(sizes) > len(samples):
        raise UsageError(f"a batch of {max(sizes)} needs as many samples, got {len(samples)}")
    point = graph.point(given, needed=[n for n in graph.parameters if n != name])
    slope = _Slope(Objective(graph, loss=loss, dataset=samples), samples, name, point)
    truth = samples.truth.get(name, point.get(name))
    values = np.linspace(*_range(ranges, begin, truth), _GRID)
    everything = np.arange(len(samples))
    with np.errstate(all="ignore"):
        losses, slopes = np.transpose([slope(value, everything) for value in values])
        rate = _rate(values, slopes, begin, rate)
        full = _descend(slope, begin, rate, [everything] * steps)
        if not np.isfinite(full[-1]):
            raise UsageError("gradient descent diverges", hint="a smaller rate (--rate)")
        valley = _valley(values, losses, full[-1])
        panels = []
        for size in sizes:
            paths = np.array(
                [
                    _descend(slope, begin, rate, _batches(seed + run, len(samples), size, steps))
                    for run in range(runs)
                ]
            )
            ends = np.median(paths[:, -max(1, steps // 10) :], axis=1)
            finite = np.isfinite(ends)
            left = finite & ((ends < valley[0]) | (ends > valley[1]))
            panels.append(Panel(size, paths, ends, left, int((~finite).sum())))
    return NoisyDescents(name, values, losses, valley, full, rate, tuple(panels))


class _Slope:
    """The mean loss over some samples, and its derivative with respect to one parameter."""

    def __init__(
        self, objective: Objective, samples: Dataset, name: str, point: Mapping[str, Any]
    ) -> None:
        self.objective, self.columns = objective, objective.columns(samples)
        self.vector = objective.vectors.vector({**point, name: 0.0}).astype(objective.precision)
        self.index = objective.vectors.elements.index(name)

    def __call__(self, value: float, chosen: Array) -> tuple[float, float]:
        if not np.isfinite(value):
            return np.nan, np.nan
        self.vector[self.index] = value
        part = {name: column[chosen] for name, column in self.columns.items()}
        loss, gradient = self.objective.sums(part, self.vector, len(chosen))
        return loss / len(chosen), float(gradient[self.index]) / len(chosen)


def _parameter(graph: ExpressionGraph, over: str | None) -> str:
    scalars = [name for name in graph.parameters if name not in graph.shapes]
    if over is None and len(graph.parameters) == 1 == len(scalars):
        return scalars[0]
    if over not in scalars:
        hint = element_hint(over, scalars) if over else f"over=NAME (--over {scalars[0]})"
        what = f"no parameter {over!r} that is a number" if over else "several parameters"
        raise UsageError(f"the graph has {what}", hint=hint if scalars else "")
    return over


def _range(ranges: Sequence[tuple[float, float]], start: float, truth: Any) -> tuple[float, float]:
    if len(ranges) > 1:
        raise UsageError("the loss is shown over one parameter: give one range")
    if ranges:
        low, high = (check_real_number("an end of the range", end) for end in ranges[0])
        if not low < start < high:
            raise UsageError(f"the range must hold the start, {format_number(start)}")
        return low, high
    ends = [start] if truth is None else [start, float(truth)]
    side = _MARGIN * max(max(ends) - min(ends), 1.0)
    return min(ends) - side, max(ends) + side


def _rate(values: Array, slopes: Array, start: float, rate: float | None) -> float:
    """Return the rate that is given, or half the reciprocal of the curvature near the start."""
    if rate is not None:
        return check_real_number("the rate", rate, above=0)
    curvature = np.gradient(slopes, values)
    near = np.abs(values - start) <= (values[-1] - values[0]) / 4
    largest = float(np.nanmax(np.where(near, curvature, np.nan)))
    if not 0 < largest < np.inf:
        raise UsageError("the loss has no minimum near the start", hint="give a rate (--rate)")
    return 0.5 / largest


def _batches(seed: int, count: int, size: int, steps: int) -> list[Array]:
    """Return the samples of each step, epoch by epoch in random order."""
    random = np.random.default_rng(seed)
    per_epoch = count // size
    orders = [random.permutation(count) for _ in range(-(-steps // per_epoch))]
    parts = [order[k * size : (k + 1) * size] for order in orders for k in range(per_epoch)]
    return parts[:steps]


def _descend(slope: _Slope, start: float, rate: float, batches: Sequence[Array]) -> Array:
    path = [start]
    for chosen in batches:
        path.append(path[-1] - rate * slope(path[-1], chosen)[1])
    return np.array(path)


def _valley(values: Array, losses: Array, end: float) -> tuple[float, float]:
    """Return the maxima on both sides of a point; the end of the range where there is none."""
    inner = losses[1:-1]
    maxima = values[1:-1][(inner >= losses[:-2]) & (inner > losses[2:])]
    below, above = maxima[maxima <= end], maxima[maxima > end]
    return (
        float(below.max()) if len(below) else -np.inf,
        float(above.min()) if len(above) else np.inf,
    )


def _draw_loss(
    axes: slide.Axes, found: NoisyDescents, panel: Panel, look: Theme, *, first: bool
) -> None:
    """Draw the loss, and on it the ends of all runs."""
    slide.dress(axes, look, y="mean loss" if first else "")
    axes.set_title(panel.sentence, **slide.text_style(look) | {"weight": "bold"})
    axes.plot(found.values, found.losses, color=look.ink, linewidth=2.4)
    _mark_valley(axes, found, look)
    marks = (("o", ~panel.left, look.curves[0]), ("^", panel.left, look.curves[1]))
    for marker, chosen, colour in marks:
        ends = panel.ends[chosen]
        heights = np.interp(ends, found.values, found.losses, left=np.nan, right=np.nan)
        axes.plot(ends, heights, linestyle="", marker=marker, markersize=9, color=colour, alpha=0.8)
    height = float(np.interp(found.full[-1], found.values, found.losses))
    axes.plot(found.full[-1], height, linestyle="", marker="s", markersize=15, color=look.ink,
              markerfacecolor="none", markeredgewidth=2.2, zorder=5)  # fmt: skip
    slide.linear_axis(axes, "y", most=4)


def _draw_paths(
    axes: slide.Axes, found: NoisyDescents, panel: Panel, look: Theme, *, first: bool
) -> None:
    """Draw the paths downwards, from the first step to the last."""
    slide.dress(axes, look, x=found.name, y="step" if first else "")
    steps = np.arange(len(found.full))
    labels = {False: "SGD that stays", True: "SGD that leaves"}
    for path, left in zip(panel.paths, panel.left, strict=True):
        dashes = (0, (5, 1.5)) if left else "-"
        axes.plot(path, steps, color=look.curves[int(left)], linewidth=1.1, alpha=0.75,
                  linestyle=dashes)  # fmt: skip
    for left, label in labels.items():
        axes.plot([], [], color=look.curves[int(left)], linewidth=2.0, label=label,
                  marker="^" if left else "o", markersize=9,
                  linestyle=(0, (5, 1.5)) if left else "-")  # fmt: skip
    axes.plot(
        found.full,
        steps,
        color=look.ink,
        linewidth=3.4,
        label=f"full batch, rate {format_number(found.rate, 2)}",
        marker="s",
        markersize=11,
        markerfacecolor="none",
        markevery=[-1],
    )
    _mark_valley(axes, found, look, label="end of the valley")
    axes.set_xlim(found.values[0], found.values[-1])
    axes.set_ylim(0, len(steps) - 1)
    slide.linear_axis(axes, "x", most=6)
    slide.linear_axis(axes, "y", most=5, whole=True)
    if not axes.yaxis_inverted():  # panels of a row share the axis
        axes.invert_yaxis()


def _mark_valley(axes: slide.Axes, found: NoisyDescents, look: Theme, label: str = "") -> None:
    for end in filter(np.isfinite, found.valley):
        axes.axvline(end, color=look.edge, linewidth=1.6, linestyle=(0, (1.5, 2)),
                     label=label or None)  # fmt: skip
        label = ""
