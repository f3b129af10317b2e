"""The losses at the end of runs over the size of their training set, or over their models."""

from __future__ import annotations

from math import isfinite, nan
from typing import Any

from cgprimer.training.model_variations import GRAPH, SAMPLES
from cgprimer.training.runs import TrainingRun
from cgprimer.training.sweeps import Sweep, format_cell
from cgprimer.visualization.plots import slide

_AXES = {SAMPLES: "training samples", GRAPH: "model"}


def axis_of_sweep(sweep: Sweep) -> str | None:
    """Return what the final losses of a sweep are drawn over: samples, graphs, or nothing."""
    values = {name: {of[name] for of in sweep.varied} for name in sweep.varied[0]}
    if len(values.get(SAMPLES, ())) > 1:
        return SAMPLES
    validated = all(run.validation_losses for run in sweep.runs)
    return GRAPH if validated and [n for n, v in values.items() if len(v) > 1] == [GRAPH] else None


def final_losses(
    sweep: Sweep, axis: str, *, dark: bool = False, title: str | None = None
) -> slide.Figure:
    """Return the picture of training and validation losses over samples or models.

    Training and validation loss of one combination have one color; training losses are dashed.
    Runs that differ only in the seed are averaged.

    Args:
        sweep: the runs.
        axis: ``samples`` or ``graph``.
    """
    rest = [tuple((n, v) for n, v in of.items() if n not in (axis, "seed")) for of in sweep.varied]
    values = list(dict.fromkeys(of[axis] for of in sweep.varied))
    places = [float(v) for v in values] if axis == SAMPLES else list(map(float, range(len(values))))
    usual = f"Loss over {'the number of training samples' if axis == SAMPLES else 'models'}"
    figure, axes, look = slide.framed(dark, title, usual, x=_AXES[axis], y="loss at the end")
    shown: list[float] = []
    for order, key in enumerate(dict.fromkeys(rest)):
        style = slide.curve_style(order, look)
        called = ", ".join(format_cell(value) for _, value in key)
        for which, kind in enumerate(("validation", "training")):
            ends = [_mean_end(sweep, rest, key, axis, value, kind) for value in values]
            shown += [end for end in ends if isfinite(end)]
            axes.plot(places, ends, label=slide.plain(f"{called}: {kind}" if called else kind),
                      linewidth=2.0, **style | {"linestyle": ("-", "--")[which]})  # fmt: skip
    if shown and min(shown) > 0:
        axes.set_yscale("log")
        slide.log_axis(axes, "y", most=6)
    if axis == SAMPLES:
        axes.set_xscale("log")
        axes.set_xticks(places, [f"{value:,}" for value in values])
        axes.minorticks_off()
    else:
        axes.set_xticks(places, [slide.plain(str(value)) for value in values])
    slide.legend_below(figure, axes, look)
    return figure


def _mean_end(sweep: Sweep, rest: list[Any], key: Any, axis: str, value: Any, kind: str) -> float:
    """Return the mean loss at the end of the runs of one combination; nan if one diverged."""
    ends = []
    for of, other, run in zip(sweep.varied, rest, sweep.runs, strict=True):
        if other == key and of[axis] == value:
            if run.stopped == "diverged":
                return nan
            ends.append(run.loss if kind == "training" else _validation_loss(run))
    return sum(ends) / len(ends) if ends else nan


def _validation_loss(run: TrainingRun) -> float:
    """Return the validation loss of the parameters that a run returned; nan without one."""
    losses = run.validation_losses
    return losses[run.best_epoch - 1] if losses else nan  # without patience that is the last
