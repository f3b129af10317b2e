"""Losses of training runs over steps or epochs, with a curve for each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite
from typing import Any

import numpy as np

from cgprimer.errors import UsageError
from cgprimer.support.validation import check_choice, check_integer
from cgprimer.training.runs import TrainingRun
from cgprimer.visualization.diagrams.theme import Theme
from cgprimer.visualization.plots import slide
from cgprimer.visualization.plots.plotted_runs import (
    BY,
    FAR,
    UNNAMED,
    Run,
    choose_axis,
    name_runs,
    steps_per_epoch,
)

Array = Any
LOG = ("auto", "none", "x", "y", "both")
_FIRST = 9  # number of losses that count as the start of a run
_MARGIN = 30.0  # factor around the range of the means; losses outside are noise
_READABLE = 500  # values of a noisy curve that can be read without smoothing
_LONG = 1000  # steps from which on a thick line would hide its own noise
_STEADY = 10  # minimum number of losses of a diverging run, in windows, for it to be smoothed
_SHORT = 20  # if another run has so many times as many losses, each loss has a marker


def loss(
    *runs: Run | Mapping[str, Run],
    by: str = "auto",
    smooth: int | None = None,
    log: str = "auto",
    validation: bool = True,
    dark: bool = False,
    title: str | None = None,
) -> slide.Figure:
    """Draw the training losses and validation losses of one or more runs.

    A star marks the epoch with minimum validation loss. Over epochs, a curve starts at 0 with the
    loss before the first step. A run that diverges leaves the picture at the top or ends in a ring,
    and the legend says so. Losses that are not finite leave a gap, and so do losses of 0 on a
    logarithmic axis.

    Args:
        runs: results of :func:`cgprimer.train`, files written by ``cgprimer train --save``, or
            mappings from names to results or files.
        by: horizontal axis, steps or epochs; auto: epochs if every run has five.
        smooth: window of the moving average; the losses are faint behind it. Default: 1, or a
            hundredth of the number of losses if there are more than 500.
        log: logarithmic axes; auto: the loss, unless a loss is negative.
        validation: draw validation losses.

    Raises:
        UsageError: no run, a run without a step or without a finite loss, an unknown choice.
        DataError: a file is not a run.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
    >>> data = cgprimer.make_dataset(graph, samples=500)
    >>> run = cgprimer.train(graph, data, epochs=8, validation=0.2)
    >>> figure = loss({"adam": run}, title="a line")
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['adam, training', 'adam, validation', 'adam, best epoch 8']
    """
    runs_by_name = name_runs(runs)
    drawn = {
        n: run for n, run in runs_by_name.items() if run.steps or run.stopped != "diverged"
    } or runs_by_name
    by = choose_axis(drawn, check_choice("axis", by, BY))
    curves = [
        _build_curve(name, run, [*runs_by_name], by, validation) for name, run in drawn.items()
    ]
    if not any(isfinite(value) for run in drawn.values() for value in run.step_losses):
        raise UsageError(
            "all losses of the runs are infinite or nan",
            hint="train again with a smaller learning rate (--learning-rate)",
        )
    longest = max(len(c.losses) for c in curves)
    smooth = _choose_window(smooth, longest)
    every = [v for c in curves for v in (*c.losses, *c.validation[1]) if isfinite(v)]
    log_axes = _choose_log_axes(check_choice("choice of logarithmic axes", log, LOG), every)
    figure, axes, look = slide.create_plot(dark, title, "Loss", x=by, y="loss")
    shown = [v for c in curves for v in c.validation[1]]
    for curve in curves:
        shown += _draw_training(axes, curve, smooth, longest, look)
        if curve.validation[1]:
            _draw_validation(axes, curve, look)
    _add_undrawn_entries(axes, [*runs_by_name], drawn, look)
    top = FAR * _find_initial_loss([c.losses for c in curves])
    limits = _choose_limits(every, shown, top) if "y" in log_axes else (None, None)
    _scale_axes(axes, log_axes if longest > 1 else log_axes.replace("x", ""), limits)
    labels = axes.get_legend_handles_labels()[1]
    if len(labels) > 1 or labels[0] != slide.format_label(next(iter(drawn))):
        slide.draw_legend_below(figure, axes, look)
    return figure


def _add_undrawn_entries(
    axes: Any, names: list[str], drawn: Mapping[str, TrainingRun], look: Theme
) -> None:
    """Add a legend entry for each run that is not drawn because its first update diverges."""
    for order, name in enumerate(names):
        if name not in drawn:
            label = slide.format_label(f"{name}: diverges at its first step")
            axes.plot([], [], **slide.choose_line_style(order, look, 1), label=label)


def _scale_axes(axes: Any, log_axes: str, limits: tuple[float | None, float | None]) -> None:
    """Make axes linear or logarithmic; `limits` applies to a logarithmic loss axis."""
    if "x" in log_axes:
        slide.use_log_axis(axes, "x")
    else:
        slide.use_linear_axis(axes, "x", integers=True)
    if "y" in log_axes:
        if None not in limits:  # otherwise the automatic limits of the log axis can overflow
            axes.set_ylim(*limits)
        axes.set_yscale("log", nonpositive="mask")  # a loss that is exactly 0 leaves a gap
        axes.set_ylim(*limits)
        slide.use_log_axis(axes, "y")
    else:
        slide.use_linear_axis(axes, "y")


@dataclass(frozen=True, eq=False)
class _Curve:
    """The losses of one training run; `training` and `validation` are pairs (positions, losses).

    `order` is the index of the run, which determines its color.
    """

    name: str
    run: TrainingRun
    order: int
    training: tuple[list[float], list[float]]
    validation: tuple[list[float], list[float]]

    @property
    def losses(self) -> list[float]:
        """Training losses of the run."""
        return self.training[1]

    def label(self, kind: str) -> str:
        """Return a curve's legend label: the run's name and the kind, such as "a, training"."""
        return kind if self.name == UNNAMED else f"{self.name}, {kind}"


def _choose_window(smooth: int | None, longest: int) -> int:
    """Return the window size of the moving average; the default depends on the longest run."""
    if smooth is None:
        smooth = 1 if longest <= _READABLE else longest // 100
    return check_integer("the window of the moving average (smooth)", smooth, minimum=1)


def _build_curve(
    name: str, run: TrainingRun, names: list[str], by: str, validation: bool
) -> _Curve:
    """Collect the losses of a training run; its position in `names` determines its style."""
    validation_losses = validation_curve(run, by) if validation else ([], [])
    return _Curve(name, run, names.index(name), over_time(run, by), validation_losses)


def _draw_training(axes: Any, curve: _Curve, smooth: int, longest: int, look: Theme) -> list[float]:
    """Draw the training losses of a run, smoothed if there are many; return the drawn losses.

    `longest` is the number of losses of the longest run.
    """
    positions, losses = curve.training
    run, count = curve.run, len(losses)
    style = slide.choose_line_style(curve.order, look, count)
    explodes = _is_exploding(losses)
    # The mean of a window with an explosion is the explosion: such a run needs more losses.
    window = smooth if count >= (_STEADY if explodes else 1) * smooth else 1
    means = compute_moving_average(losses, window)
    if window > 1:
        color = style["color"]
        axes.plot(positions, losses, color=color, linewidth=1.0, alpha=0.3, label="_raw")
    if count == 1 or _SHORT * count < longest:
        # A short run next to long runs is a stroke at the edge: markers make it a curve.
        marker = slide.choose_curve_style(curve.order, look)["marker"]
        style |= {"marker": marker, "markevery": 1}
    width = 2.6 if window > 1 or count < _LONG else 1.3
    label = curve.label("training") if curve.validation[1] else curve.name
    label += f", mean of {window}" if window > 1 else ""
    if run.stopped == "diverged" or explodes:
        has_finite = any(map(isfinite, losses))
        remarks = ["diverges"] if run.stopped == "diverged" or has_finite else []
        remarks += [] if has_finite else ["no finite loss"]
        label += f": {', '.join(remarks)}"
    axes.plot(positions, means, linewidth=width, **style, label=slide.format_label(label))
    if run.stopped == "diverged" and isfinite(means[-1]):
        end = (positions[-1], means[-1])
        slide.mark_end(axes, end, "diverged", style["color"], look, up=means[-1] < means[0])
    return means


def _draw_validation(axes: Any, curve: _Curve, look: Theme) -> None:
    """Draw validation losses as a thin line with open markers in the color of the run."""
    positions, losses = curve.validation
    remark = "" if any(map(isfinite, losses)) else ": no finite loss"
    style = slide.choose_curve_style(curve.order, look) | {
        "linewidth": 1.4,
        "markersize": 8,
        "markeredgewidth": 1.6,
        "markevery": max(1, len(losses) // 20),
        "markerfacecolor": look.background,
    }
    label = slide.format_label(curve.label("validation") + remark)
    axes.plot(positions, losses, **style, label=label)
    _mark_best(axes, curve, look)


def _mark_best(axes: Any, curve: _Curve, look: Theme) -> None:
    """Mark the epoch with the minimum validation loss by a star shape specific to the run."""
    positions, losses = curve.validation
    if not any(map(isfinite, losses)):
        return
    index = int(np.nanargmin(np.where(np.isfinite(losses), losses, np.nan)))
    style = {
        "linestyle": "",
        "marker": (5 + curve.order, 1, 0),
        "markersize": 24,
        "color": look.curves[curve.order % len(look.curves)],
        "markeredgecolor": look.ink,
        "markeredgewidth": 1.4,
        "zorder": 6,
        "clip_on": False,
    }
    label = slide.format_label(curve.label(f"best epoch {index + 1}"))
    axes.plot(positions[index], losses[index], **style, label=label)


def over_time(run: TrainingRun, by: str) -> tuple[list[float], list[float]]:
    """Return the steps and their batch losses, or the epochs and their mean losses.

    The loss of epoch 0 is the loss before the first step.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa; parameter k = 2")
    >>> run = cgprimer.train(graph, cgprimer.make_dataset(graph, samples=100), epochs=2)
    >>> over_time(run, "epoch")[0], over_time(run, "step")[0]
    ([0.0, 1.0, 2.0], [1.0, 2.0, 3.0, 4.0])
    """
    has_start = by == "epoch" and isfinite(run.start_loss)
    losses = run.epoch_losses if by == "epoch" else run.step_losses
    values = run.losses_by_epoch if has_start else list(losses)
    distance = 1 if by == "epoch" else run.steps_apart
    return [float(distance * k + (not has_start)) for k in range(len(values))], values


def validation_curve(run: TrainingRun, by: str) -> tuple[list[float], list[float]]:
    """Return the validation losses of a run, preceded by their steps or epochs."""
    distance = 1.0 if by == "epoch" else steps_per_epoch(run)
    losses = list(run.validation_losses)
    return [distance * (k + 1) for k in range(len(losses))], losses


def compute_moving_average(values: Sequence[float], window: int) -> list[float]:
    """Compute the moving average in a window around each value; windows shrink at the ends.

    Values that are not finite are omitted from the means.

    >>> compute_moving_average([1.0, 2.0, 6.0, 4.0], 3)
    [1.5, 3.0, 4.0, 5.0]
    """
    array = np.asarray(values, dtype=float)
    finite = np.isfinite(array)
    sums = _sum_windows(np.where(finite, array, 0.0), window)
    counts = _sum_windows(finite.astype(float), window)
    with np.errstate(invalid="ignore", divide="ignore"):
        means: list[float] = (sums / counts).tolist()
    return means


def _sum_windows(values: Array, window: int) -> Array:
    """Return the sum over a window around each value; both ends are padded with zeros."""
    # A window is composed of blocks of 1, 2, 4, ... values. Differences of running sums would be
    # faster, but the rounding error of a loss of 1e50 would exceed all later losses.
    blocks = np.pad(values, ((window - 1) // 2, window // 2))
    sums = np.zeros(len(values))
    start, size = 0, 1
    while size <= window:
        if window & size:
            sums += blocks[start : start + len(values)]
            start += size
        blocks = blocks[:-size] + blocks[size:]
        size *= 2
    return sums


def _is_exploding(losses: Sequence[float]) -> bool:
    """Return whether the final loss of a run is far above its initial losses."""
    # If the first losses ascend, the run explodes from its first step.
    ascends = all(a < b for a, b in pairwise(losses[:_FIRST]))
    start = abs(losses[0] if ascends else _estimate_typical_initial_loss(losses))
    return not isfinite(losses[-1]) or (start > 0 and losses[-1] > FAR * start)


def _find_initial_loss(runs: Sequence[Sequence[float]]) -> float:
    """Return the maximum initial loss of stable runs, or else of all runs; 0 if none is finite."""
    stable = [run for run in runs if not _is_exploding(run)]
    # The first loss can be that of a lucky sample, so the typical loss counts as well.
    first = [max(run[0], _estimate_typical_initial_loss(run)) for run in stable] or [
        run[0] for run in runs
    ]
    return max((v for v in first if isfinite(v)), default=0.0)


def _estimate_typical_initial_loss(losses: Sequence[float]) -> float:
    """Return the upper quartile of the first losses of a run."""
    first = sorted(v if isfinite(v) else inf for v in losses[:_FIRST])
    return first[(len(first) - 1) * 3 // 4]


def _choose_limits(
    losses: Sequence[float], means: Sequence[float], top: float
) -> tuple[float | None, float | None]:
    """Return the limits of a logarithmic loss axis, or None for automatic limits.

    The axis ends above the start of runs that diverge, and not far outside the means: samples that
    are fitted by chance have losses of almost 0.
    """
    positive = [v for v in losses if v > 0]
    inside = [v for v in means if isfinite(v) and v > 0]
    least, most = (min(inside), max(inside)) if inside else (min(positive), max(positive))
    low = least / _MARGIN if min(positive) < least / _MARGIN else None
    high = most * _MARGIN if max(positive) > most * _MARGIN else None
    if least < top < (high or max(positive)):
        low, high = low or min(positive) / 2, top
    return low, high


def _choose_log_axes(log: str, losses: Sequence[float]) -> str:
    """Return which axes are logarithmic as a string: '', 'x', 'y' or 'xy'."""
    is_possible = max(losses) > 0 and min(losses) >= 0
    if log in ("y", "both") and not is_possible:
        reason = "a loss is negative" if min(losses) < 0 else "no loss is above 0"
        hint = "use a linear axis: log='none' (--log none)"
        raise UsageError(f"a logarithmic axis requires positive losses, but {reason}", hint=hint)
    return {"auto": "y" if is_possible else "", "none": "", "both": "xy"}.get(log, log)
