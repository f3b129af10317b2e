"""The noise of mini-batch gradients, which can move SGD out of a local minimum.

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
from cgprimer.training.losses import load_samples
from cgprimer.training.objective import Objective
from cgprimer.visualization.diagrams.theme import Theme
from cgprimer.visualization.plots import slide
from cgprimer.visualization.plots.cost_plot import sort_counts

Array = Any
_SAMPLES = 100
_GRID = 601  # values of the parameter at which the loss is computed
_MAX_PANELS = 3
_CONVERGED = 0.01  # distance to the minimum, over the range, of a converged descent
_MARGIN = 0.5  # of the distance between start and true value, on either side


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
    """Draw runs of SGD near a local minimum, which small batches may leave and full batches do not.

    The loss is drawn over one parameter, and below it the paths: one path of gradient descent with
    all samples, and one run of SGD for each seed. All runs have the same start and learning rate.
    The title of a panel says how many runs end outside of the valley in which gradient descent
    ends; the end of a run is the median over the last tenth of its steps.

    Args:
        graph: the graph.
        data: inputs and targets; 100 samples generated from the values of the parameters unless
            given.
        over: parameter on the horizontal axis. Default: the only parameter.
        start: initial value of the parameter; required.
        batch_sizes: one to three batch sizes, with a panel each.
        rate: learning rate. Default: half of the reciprocal of the maximum curvature near the
            start.
        steps: number of steps per run.
        seeds: number of runs for each batch size, each with a different seed.
        ranges: range of the parameter.
        at: values of parameters; other parameters keep their declared values.
        loss: as for training.
        seed: random seed of the data and of the first run; later runs use the next seeds.

    Raises:
        UsageError: an unknown parameter, or no start.
        DataError: the data do not match the graph.

    >>> import cgprimer
    >>> graph = cgprimer.parse("y = sin(k*x); parameter k = 6")
    >>> figure = noise(graph, start={"k": -1.8}, rate=1.6, seeds=4, steps=100, batch_sizes=1)
    >>> figure.axes[0].get_title()
    'batch size 1: 2 of 4 runs leave the valley'
    """
    descents = noisy_descents(
        graph, data, over, start, batch_sizes, rate, steps, seeds, ranges, at, loss, seed
    )
    figure, look = slide.create_figure(dark, title, descents.sentence)
    panels: Any = figure.subplots(
        2, len(descents.panels), sharex=True, sharey="row", squeeze=False, height_ratios=(2, 3)
    )
    for column, panel in enumerate(descents.panels):
        top, bottom = panels[:, column]
        _draw_loss(top, descents, panel, look, first=column == 0)
        _draw_paths(bottom, descents, panel, look, first=column == 0)
    slide.draw_legend_below(figure, panels[1, 0], look)
    return figure


@dataclass(frozen=True, eq=False)
class Panel:
    """The SGD runs with one batch size, which are drawn in the same panel.

    Attributes:
        batch_size: number of samples per step.
        paths: values of the parameter before each step and after the last; shape (runs, steps + 1).
        ends: the end of each run: the median over the last tenth of its steps.
        left: True for each run that ends outside of the valley.
        diverged: number of runs whose end is not finite; they do not count as left.
    """

    batch_size: int
    paths: Array
    ends: Array
    left: Array
    diverged: int

    @property
    def sentence(self) -> str:
        """Sentence that states how many runs leave the valley."""
        count = int(self.left.sum())
        leave = "leaves" if count == 1 else "leave"
        text = f"batch size {self.batch_size}: {count} of {len(self.paths)} runs {leave} the valley"
        return text + (f", {self.diverged} diverge" if self.diverged else "")


@dataclass(frozen=True, eq=False)
class NoisyDescents:
    """The paths of one parameter in gradient descent and in SGD runs, all from the same start.

    Attributes:
        name: the parameter.
        values, losses: values of the parameter, and the mean loss at each of them.
        valley: the maxima of the loss on both sides of the end of gradient descent.
        full: the path of gradient descent with all samples; shape (steps + 1,).
        rate: learning rate of all runs.
        panels: the runs of each batch size.
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
        """True if gradient descent ends in the lowest valley within the plotted range."""
        low, high = self.valley
        return bool(low <= self.values[np.nanargmin(self.losses)] <= high)

    @property
    def sentence(self) -> str:
        """Sentence that states where full-batch gradient descent ends."""
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
    """Compute the data that :func:`noise` draws; both functions have the same arguments."""
    steps = check_integer("steps", steps, minimum=1)
    seed, runs = check_integer("the seed", seed), check_integer("seeds", seeds, minimum=1)
    sizes = sort_counts(batch_sizes, "batch sizes")
    if len(sizes) > _MAX_PANELS:
        raise UsageError(f"`batch_sizes` must have at most {_MAX_PANELS} sizes, got {len(sizes)}")
    check_graph(graph)
    name = _choose_parameter(graph, over)
    given_values = check_named_values("at", at, "parameter", graph.parameters)
    first = check_named_values("start", start, "parameter", (name,)).get(name)
    if first is None:
        hint = f"choose a value near a local minimum: start={{{name!r}: ...}} (--start {name}=...)"
        raise UsageError(f"the parameter {name!r} has no initial value", hint=hint)
    if data is None:
        data = make_dataset(graph, truth=given_values, samples=_SAMPLES, seed=seed)
    samples = require_in_memory(
        load_samples(graph, data, loss), "full-batch descent uses all samples"
    )
    samples.check_finite()
    if max(sizes) > len(samples):
        what = f"a batch of {max(sizes)} requires at least {max(sizes)} samples"
        raise UsageError(f"{what}, got {len(samples)}")
    point = graph.point(given_values, needed=[n for n in graph.parameters if n != name])
    loss_over = _LossOverParameter(
        Objective(graph, loss=loss, dataset=samples), samples, name, point
    )
    truth = samples.truth.get(name, point.get(name))
    values = np.linspace(*_choose_range(ranges, first, truth), _GRID)
    everything = np.arange(len(samples))
    with np.errstate(all="ignore"):
        losses, slopes = np.transpose([loss_over(value, everything) for value in values])
        rate = _choose_rate(values, slopes, first, rate)
        full = _compute_path(loss_over, first, rate, [everything] * steps)
        if not np.isfinite(full[-1]):
            hint = "choose a smaller learning rate (--rate)"
            raise UsageError("full-batch gradient descent diverges", hint=hint)
        valley = _find_valley(values, losses, full[-1])
        panels = []
        for size in sizes:
            orders = [_sample_batches(seed + k, len(samples), size, steps) for k in range(runs)]
            paths = np.array([_compute_path(loss_over, first, rate, batches) for batches in orders])
            panels.append(_build_panel(size, paths, valley))
    return NoisyDescents(name, values, losses, valley, full, rate, tuple(panels))


def _build_panel(size: int, paths: Array, valley: tuple[float, float]) -> Panel:
    """Group the SGD runs with one batch size, and find those that leave the valley."""
    steps = paths.shape[1] - 1
    ends = np.median(paths[:, -max(1, steps // 10) :], axis=1)
    finite = np.isfinite(ends)
    left = finite & ((ends < valley[0]) | (ends > valley[1]))
    return Panel(size, paths, ends, left, int((~finite).sum()))


class _LossOverParameter:
    """The mean loss of selected samples and its derivative, as a function of one parameter."""

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


def _choose_parameter(graph: ExpressionGraph, over: str | None) -> str:
    """Return the scalar parameter that is shown on the horizontal axis."""
    scalars = [name for name in graph.parameters if name not in graph.shapes]
    if over is None and len(graph.parameters) == 1 == len(scalars):
        return scalars[0]
    if over not in scalars:
        if over:
            hint = element_hint(over, scalars) if scalars else ""
            raise UsageError(f"unknown scalar parameter {over!r}", hint=hint)
        hint = f"choose one: over=NAME (--over {scalars[0]})" if scalars else ""
        raise UsageError("`over` is required for a graph with several parameters", hint=hint)
    return over


def _choose_range(
    ranges: Sequence[tuple[float, float]], start: float, truth: Any
) -> tuple[float, float]:
    """Return the given parameter range, or a range around the start and the true value."""
    if len(ranges) > 1:
        raise UsageError(f"`ranges` must contain exactly one range, got {len(ranges)}")
    if ranges:
        low, high = (check_real_number("an end of the range", end) for end in ranges[0])
        if not low < start < high:
            raise UsageError(f"the range must contain the start, {format_number(start)}")
        return low, high
    ends = [start] if truth is None else [start, float(truth)]
    side = _MARGIN * max(max(ends) - min(ends), 1.0)
    return min(ends) - side, max(ends) + side


def _choose_rate(values: Array, slopes: Array, start: float, rate: float | None) -> float:
    """Return the given learning rate, or half the reciprocal of the curvature near the start."""
    if rate is not None:
        return check_real_number("the rate", rate, above=0)
    curvature = np.gradient(slopes, values)
    near = np.abs(values - start) <= (values[-1] - values[0]) / 4
    largest = float(np.nanmax(np.where(near, curvature, np.nan)))
    if not 0 < largest < np.inf:
        hint = "pass a learning rate: rate=0.1 (--rate 0.1)"
        raise UsageError(
            "cannot choose a learning rate: the loss is not convex near the start", hint=hint
        )
    return 0.5 / largest


def _sample_batches(seed: int, count: int, size: int, steps: int) -> list[Array]:
    """Sample the indices of one batch per step, in a new random order in each epoch."""
    random = np.random.default_rng(seed)
    per_epoch = count // size
    orders = [random.permutation(count) for _ in range(-(-steps // per_epoch))]
    parts = [order[k * size : (k + 1) * size] for order in orders for k in range(per_epoch)]
    return parts[:steps]


def _compute_path(
    loss_over: _LossOverParameter, start: float, rate: float, batches: Sequence[Array]
) -> Array:
    """Return the path of gradient descent that uses one batch of samples in each step."""
    path = [start]
    for chosen in batches:
        path.append(path[-1] - rate * loss_over(path[-1], chosen)[1])
    return np.array(path)


def _find_valley(values: Array, losses: Array, end: float) -> tuple[float, float]:
    """Return the nearest local maxima of the loss to the left and right of a point, or infinity."""
    inner = losses[1:-1]
    maxima = values[1:-1][(inner >= losses[:-2]) & (inner > losses[2:])]
    below, above = maxima[maxima <= end], maxima[maxima > end]
    return (
        float(below.max()) if len(below) else -np.inf,
        float(above.min()) if len(above) else np.inf,
    )


def _draw_loss(
    axes: slide.Axes, descents: NoisyDescents, panel: Panel, look: Theme, *, first: bool
) -> None:
    """Draw the loss over the parameter, and mark the end of each run."""
    slide.style_axes(axes, look, y="mean loss" if first else "")
    axes.set_title(panel.sentence, **slide.text_style(look) | {"weight": "bold"})
    axes.plot(descents.values, descents.losses, color=look.ink, linewidth=2.4)
    _mark_valley(axes, descents, look)
    marks = (("o", ~panel.left, look.curves[0]), ("^", panel.left, look.curves[1]))
    for marker, chosen, color in marks:
        ends = panel.ends[chosen]
        heights = np.interp(ends, descents.values, descents.losses, left=np.nan, right=np.nan)
        axes.plot(ends, heights, linestyle="", marker=marker, markersize=9, color=color, alpha=0.8)
    end = descents.full[-1]
    height = float(np.interp(end, descents.values, descents.losses))
    axes.plot(end, height, linestyle="", marker="s", markersize=15, color=look.ink,
              markerfacecolor="none", markeredgewidth=2.2, zorder=5)  # fmt: skip
    slide.use_linear_axis(axes, "y", max_ticks=4)


def _draw_paths(
    axes: slide.Axes, descents: NoisyDescents, panel: Panel, look: Theme, *, first: bool
) -> None:
    """Draw the path of the parameter in each run, with time from top to bottom."""
    slide.style_axes(axes, look, x=descents.name, y="step" if first else "")
    steps = np.arange(len(descents.full))
    labels = {False: "SGD run stays", True: "SGD run leaves"}
    for path, left in zip(panel.paths, panel.left, strict=True):
        dashes = (0, (5, 1.5)) if left else "-"
        axes.plot(path, steps, color=look.curves[int(left)], linewidth=1.1, alpha=0.75,
                  linestyle=dashes)  # fmt: skip
    for left, label in labels.items():
        axes.plot([], [], color=look.curves[int(left)], linewidth=2.0, label=label,
                  marker="^" if left else "o", markersize=9,
                  linestyle=(0, (5, 1.5)) if left else "-")  # fmt: skip
    axes.plot(
        descents.full,
        steps,
        color=look.ink,
        linewidth=3.4,
        label=f"full batch, rate {format_number(descents.rate, 2)}",
        marker="s",
        markersize=11,
        markerfacecolor="none",
        markevery=[-1],
    )
    _mark_valley(axes, descents, look, label="valley boundary")
    axes.set_xlim(descents.values[0], descents.values[-1])
    axes.set_ylim(0, len(steps) - 1)
    slide.use_linear_axis(axes, "x", max_ticks=6)
    slide.use_linear_axis(axes, "y", max_ticks=5, integers=True)
    if not axes.yaxis_inverted():  # panels of a row share the axis
        axes.invert_yaxis()


def _mark_valley(axes: slide.Axes, descents: NoisyDescents, look: Theme, label: str = "") -> None:
    """Draw vertical lines at the boundaries of the valley."""
    for end in filter(np.isfinite, descents.valley):
        axes.axvline(end, color=look.edge, linewidth=1.6, linestyle=(0, (1.5, 2)),
                     label=label or None)  # fmt: skip
        label = ""
