"""The losses of training runs: a line per run over its steps or epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    axis_of,
    named_runs,
    steps_per_epoch,
)

Array = Any
LOG = ("auto", "none", "x", "y", "both")
_FIRST = 9  # losses that say where a run begins
_AROUND = 30.0  # times the means' least and greatest: what is outside is noise
_READABLE = 500  # values of a curve that goes up and down at each of them
_LONG = 1000  # steps beyond which a thick line would hide its own ups and downs
_STEADY = 10  # times the window: a run that diverges in fewer steps has no means
_SHORT = 20  # times as long is another run: then each loss has a marker


def loss(
    *runs: Run | Mapping[str, Run],
    by: str = "auto",
    smooth: int | None = None,
    log: str = "auto",
    validation: bool = True,
    dark: bool = False,
    title: str | None = None,
) -> slide.Figure:
    """The training losses of one or several runs, and next to them their validation losses.

    A star marks the epoch of the least validation loss. Over epochs a curve begins with the loss
    before the first step, at 0. A run that diverges leaves the picture through its top or ends in
    a ring, and the legend says so. On a logarithmic axis a loss of 0 leaves a gap, as on any axis
    does one that is not finite.

    Args:
        runs: what :func:`cgprimer.train` returned, files that ``cgprimer train --save`` wrote, or
            mappings from names to either.
        by: over steps or epochs; auto: epochs if every run has five.
        smooth: the mean of so many neighbouring losses, the losses themselves faint behind;
            unless given 1, and of more than 500 losses a hundredth of them.
        log: which axes are logarithmic; auto: the loss, where none is negative.
        validation: draw the validation losses, where a run has some.

    Raises:
        UsageError: no run, a run without a step or without a finite loss, an unknown word.
        DataError: a file holds no run.

    Command line:
        cgprimer train lecture --validation 0.2 --save adam.json
        cgprimer train lecture --optimizer sgd --learning-rate 1e-4 --save sgd.json
        cgprimer plot loss adam.json sgd.json -o loss.png
        cgprimer plot loss adam.json --by step --smooth 50 --log both -o steps.svg

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
    >>> data = cgprimer.make_dataset(graph, samples=500)
    >>> run = cgprimer.train(graph, data, epochs=8, validation=0.2)
    >>> figure = loss({"adam": run}, title="a line")
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['adam, training', 'adam, validation', 'adam, best epoch 8']
    """
    given = named_runs(runs)
    found = {n: run for n, run in given.items() if run.steps or run.stopped != "diverged"} or given
    by = axis_of(found, check_choice("axis", by, BY))
    losses = {name: over_time(run, by) for name, run in found.items()}
    others = {name: validation_curve(run, by) for name, run in found.items() if validation}
    drawn = (*losses.values(), *others.values())
    every = [value for _, values in drawn for value in values if isfinite(value)]
    if not any(isfinite(value) for run in found.values() for value in run.step_losses):
        raise UsageError(
            "no loss of these runs is finite, so there is nothing to draw",
            hint="train again with a smaller learning rate (--learning-rate)",
        )
    longest = max(len(values) for _, values in losses.values())
    if smooth is None:
        smooth = 1 if longest <= _READABLE else longest // 100
    smooth = check_integer("the number of losses in a mean (smooth)", smooth, minimum=1)
    logarithmic = _log_axes(check_choice("choice of logarithmic axes", log, LOG), every)
    figure, axes, look = slide.framed(dark, title, "Loss", x=by, y="loss")
    shown = [v for _, values in others.values() for v in values]
    for name, run in found.items():
        order = list(given).index(name)
        places, values = losses[name]
        style = slide.line_style(order, look, len(values))
        explodes = _explodes(values)
        # The mean of an explosion is the explosion, at every step that it is near to.
        window = smooth if len(values) >= (_STEADY if explodes else 1) * smooth else 1
        means = smoothed(values, window)
        shown += means
        if window > 1:
            axes.plot(places, values, color=style["color"], linewidth=1.0, alpha=0.3, label="_raw")
        if len(values) == 1 or _SHORT * len(values) < longest:
            # A short run beside long ones is a stroke at the edge: markers make it a curve.
            style |= {"marker": slide.curve_style(order, look)["marker"], "markevery": 1}
        width = 2.6 if window > 1 or len(values) < _LONG else 1.3
        compared = bool(others.get(name, ([], []))[1])
        label = _curve_name(name, "training") if compared else name
        label += f", mean of {window}" if window > 1 else ""
        if run.stopped == "diverged" or explodes:
            known = run.stopped == "diverged" or any(map(isfinite, values))
            unknown = "" if any(map(isfinite, values)) else "no finite loss"
            label += f": {', '.join(filter(None, ['diverges' if known else '', unknown]))}"
        axes.plot(places, means, linewidth=width, **style, label=slide.plain(label))
        if run.stopped == "diverged" and isfinite(means[-1]):
            end = (places[-1], means[-1])
            slide.mark_end(axes, end, "diverged", style["color"], look, up=means[-1] < means[0])
        if compared:
            _draw_validation(axes, name, others[name], order, look)
    for order, name in enumerate(given):
        if name not in found:
            style = slide.line_style(order, look, 1)
            axes.plot([], [], **style, label=slide.plain(f"{name}: diverges at its first step"))
    if "x" in logarithmic and longest > 1:
        slide.log_axis(axes, "x")
    else:
        slide.linear_axis(axes, "x", whole=True)
    if "y" in logarithmic:
        axes.set_yscale("log", nonpositive="mask")  # a loss that is exactly 0 leaves a gap
        top = FAR * _beginning([values for _, values in losses.values()])
        axes.set_ylim(*_window(every, shown, top))
        slide.log_axis(axes, "y")
    else:
        slide.linear_axis(axes, "y")
    labels = axes.get_legend_handles_labels()[1]
    if len(labels) > 1 or labels[0] != slide.plain(next(iter(found))):
        slide.legend_below(figure, axes, look)
    return figure


def _curve_name(name: str, what: str) -> str:
    """Return the legend's text for a curve of a run; a run that is alone has no name of its own."""
    return what if name == UNNAMED else f"{name}, {what}"


def _draw_validation(
    axes: Any, name: str, curve: tuple[list[float], list[float]], order: int, look: Theme
) -> None:
    """Draw validation losses thin and with open markers in the run's colour, and mark the least."""
    places, losses = curve
    unknown = "" if any(map(isfinite, losses)) else ": no finite loss"
    style = slide.curve_style(order, look) | {
        "linewidth": 1.4,
        "markersize": 8,
        "markeredgewidth": 1.6,
        "markevery": max(1, len(losses) // 20),
        "markerfacecolor": look.background,
    }
    axes.plot(places, losses, **style, label=slide.plain(_curve_name(name, "validation") + unknown))
    _mark_best(axes, name, curve, order, look)


def _mark_best(
    axes: Any, name: str, curve: tuple[list[float], list[float]], order: int, look: Theme
) -> None:
    """Mark the first epoch of least validation loss with a star; runs differ by its points."""
    places, losses = curve
    if not any(map(isfinite, losses)):
        return
    index = int(np.nanargmin(np.where(np.isfinite(losses), losses, np.nan)))
    style = {
        "linestyle": "",
        "marker": (5 + order, 1, 0),
        "markersize": 24,
        "color": look.curves[order % len(look.curves)],
        "markeredgecolor": look.ink,
        "markeredgewidth": 1.4,
        "zorder": 6,
        "clip_on": False,
    }
    label = slide.plain(_curve_name(name, f"best epoch {index + 1}"))
    axes.plot(places[index], losses[index], **style, label=label)


def over_time(run: TrainingRun, by: str) -> tuple[list[float], list[float]]:
    """Steps and the losses of their batches, or epochs and their mean loss.

    Epoch 0 is the loss before the first step.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa; parameter k = 2")
    >>> run = cgprimer.train(graph, cgprimer.make_dataset(graph, samples=100), epochs=2)
    >>> over_time(run, "epoch")[0], over_time(run, "step")[0]
    ([0.0, 1.0, 2.0], [1.0, 2.0, 3.0, 4.0])
    """
    begins = by == "epoch" and isfinite(run.start_loss)
    losses = run.epoch_losses if by == "epoch" else run.step_losses
    values = run.losses_by_epoch if begins else list(losses)
    apart = 1 if by == "epoch" else run.steps_apart
    return [float(apart * k + (not begins)) for k in range(len(values))], values


def validation_curve(run: TrainingRun, by: str) -> tuple[list[float], list[float]]:
    """The steps or epochs after which validation losses were taken, and the losses."""
    apart = 1.0 if by == "epoch" else steps_per_epoch(run)
    losses = list(run.validation_losses)
    return [apart * (k + 1) for k in range(len(losses))], losses


def smoothed(values: Sequence[float], window: int) -> list[float]:
    """The mean over `window` neighbouring values around each; fewer at the ends.

    Values that are not finite are left out of the means.

    >>> smoothed([1.0, 2.0, 6.0, 4.0], 3)
    [1.5, 3.0, 4.0, 5.0]
    """
    array = np.asarray(values, dtype=float)
    finite = np.isfinite(array)
    sums = _window_sums(np.where(finite, array, 0.0), window)
    counts = _window_sums(finite.astype(float), window)
    with np.errstate(invalid="ignore", divide="ignore"):
        means: list[float] = (sums / counts).tolist()
    return means


def _window_sums(values: Array, window: int) -> Array:
    """The sum over the window around each value, with zeros beyond the ends."""
    # A window is put together from blocks of 1, 2, 4, ... values. Differences of running sums would
    # be faster, but a loss of 1e50 at the start would swallow all that come after it.
    blocks = np.pad(values, ((window - 1) // 2, window // 2))
    found = np.zeros(len(values))
    begun, size = 0, 1
    while size <= window:
        if window & size:
            found += blocks[begun : begun + len(values)]
            begun += size
        blocks = blocks[:-size] + blocks[size:]
        size *= 2
    return found


def _explodes(run: Sequence[float]) -> bool:
    """Whether a run ends far above its beginning."""
    # A run whose every loss is above the one before explodes from its first step.
    ascends = all(before < after for before, after in pairwise(run[:_FIRST]))
    start = abs(run[0] if ascends else _usual(run))
    return not isfinite(run[-1]) or (start > 0 and run[-1] > FAR * start)


def _beginning(runs: Sequence[Sequence[float]]) -> float:
    """The loss that runs begin with, or 0; of those that do not diverge if there are some."""
    calm = [run for run in runs if not _explodes(run)]
    # Beside a lucky sample's first loss there is a usual one.
    first = [max(run[0], _usual(run)) for run in calm] or [run[0] for run in runs]
    return max((v for v in first if isfinite(v)), default=0.0)


def _usual(run: Sequence[float]) -> float:
    """What most of the first losses do not exceed."""
    first = sorted(v if isfinite(v) else inf for v in run[:_FIRST])
    return first[(len(first) - 1) * 3 // 4]


def _window(
    losses: Sequence[float], means: Sequence[float], top: float
) -> tuple[float | None, float | None]:
    """From where to where a logarithmic axis goes, None for as far as the curves do.

    It ends above the beginning of runs that diverge, and not far outside the means: single
    samples that happen to fit leave losses of almost 0 behind.
    """
    positive = [v for v in losses if v > 0]
    inside = [v for v in means if isfinite(v) and v > 0]
    least, most = (min(inside), max(inside)) if inside else (min(positive), max(positive))
    low = least / _AROUND if min(positive) < least / _AROUND else None
    high = most * _AROUND if max(positive) > most * _AROUND else None
    if least < top < (high or max(positive)):
        low, high = low or min(positive) / 2, top
    return low, high


def _log_axes(log: str, losses: Sequence[float]) -> str:
    """The letters of the logarithmic axes."""
    possible = max(losses) > 0 and min(losses) >= 0
    if log in ("y", "both") and not possible:
        why = "a loss is negative" if min(losses) < 0 else "no loss is above 0"
        raise UsageError(f"{why}: it has no place on a logarithmic axis", hint="--log none")
    return {"auto": "y" if possible else "", "none": "", "both": "xy"}.get(log, log)
