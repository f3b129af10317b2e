"""Final losses of the runs of a sweep, over the number of training samples or over models."""

from __future__ import annotations

from math import isfinite, nan
from typing import Any

from cgprimer.training.model_variations import GRAPH, SAMPLES
from cgprimer.training.runs import TrainingRun
from cgprimer.training.sweeps import Sweep, format_cell
from cgprimer.visualization.plots import slide

_AXES = {SAMPLES: "training samples", GRAPH: "model"}


def choose_sweep_axis(sweep: Sweep) -> str | None:
    """Return the sweep setting for the horizontal axis, or None to draw loss curves instead.

    The setting is ``samples`` or ``graph``.
    """
    values = {name: {of[name] for of in sweep.varied} for name in sweep.varied[0]}
    if len(values.get(SAMPLES, ())) > 1:
        return SAMPLES
    validated = all(run.validation_losses for run in sweep.runs)
    return GRAPH if validated and [n for n, v in values.items() if len(v) > 1] == [GRAPH] else None


def final_losses(
    sweep: Sweep, axis: str, *, dark: bool = False, title: str | None = None
) -> slide.Figure:
    """Plot final training and validation losses against the number of samples or against the model.

    Training and validation loss of a combination of settings have the same color; training losses
    are dashed. Runs that differ only in the seed are averaged.

    Args:
        sweep: the runs.
        axis: ``samples`` or ``graph``.
    """
    rest = [tuple((n, v) for n, v in of.items() if n not in (axis, "seed")) for of in sweep.varied]
    values = list(dict.fromkeys(of[axis] for of in sweep.varied))
    positions = [float(v) for v in (values if axis == SAMPLES else range(len(values)))]
    default_title = f"Final loss by {'number of training samples' if axis == SAMPLES else 'model'}"
    figure, axes, look = slide.create_plot(
        dark, title, default_title, x=_AXES[axis], y="final loss"
    )
    shown: list[float] = []
    for order, key in enumerate(dict.fromkeys(rest)):
        style = slide.choose_curve_style(order, look)
        combination = ", ".join(format_cell(value) for _, value in key)
        for which, kind in enumerate(("validation", "training")):
            ends = [
                _compute_mean_final_loss(sweep, rest, key, axis, value, kind) for value in values
            ]
            shown += [end for end in ends if isfinite(end)]
            label = slide.format_label(f"{combination}: {kind}" if combination else kind)
            dashes = {"linestyle": ("-", "--")[which]}
            axes.plot(positions, ends, label=label, linewidth=2.0, **style | dashes)
    if shown and min(shown) > 0:
        axes.set_yscale("log")
        slide.use_log_axis(axes, "y", max_ticks=6)
    if axis == SAMPLES:
        axes.set_xscale("log")
        axes.set_xticks(positions, [f"{value:,}" for value in values])
        axes.minorticks_off()
    else:
        axes.set_xticks(positions, [slide.format_label(str(value)) for value in values])
    slide.draw_legend_below(figure, axes, look)
    return figure


def _compute_mean_final_loss(
    sweep: Sweep, rest: list[Any], key: Any, axis: str, value: Any, kind: str
) -> float:
    """Return the mean final loss of runs with equal settings, or nan if one of them diverged."""
    ends = []
    for of, other, run in zip(sweep.varied, rest, sweep.runs, strict=True):
        if other == key and of[axis] == value:
            if run.stopped == "diverged":
                return nan
            ends.append(run.loss if kind == "training" else _compute_validation_loss(run))
    return sum(ends) / len(ends) if ends else nan


def _compute_validation_loss(run: TrainingRun) -> float:
    """Return the validation loss of a run's final parameters; return nan if it has none."""
    losses = run.validation_losses
    return losses[run.best_epoch - 1] if losses else nan  # the last epoch without patience
