"""Least squares by Levenberg-Marquardt and by gradient-based optimizers, on the same problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cgprimer.core.methods.derivative_program import Names, normalize_names
from cgprimer.errors import NonFiniteError, UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.number_format import format_number, mark_rounding
from cgprimer.support.validation import check_choice, check_integer, check_named_values
from cgprimer.training.data import Dataset, make_dataset, require_in_memory
from cgprimer.training.fitting.fit import fit
from cgprimer.training.loop import train
from cgprimer.training.losses import DEFAULT, load_samples
from cgprimer.training.optimizers import OPTIMIZERS
from cgprimer.training.parameter_vector import ParameterVectors
from cgprimer.training.runs import TrainingRun
from cgprimer.visualization.plots import slide
from cgprimer.visualization.plots.loss_landscape import format_full_batch_name
from cgprimer.visualization.plots.loss_plot import over_time

Array = Any
_FIT = "Levenberg-Marquardt"


def descent(
    graph: ExpressionGraph,
    data: Dataset | str | Path | None = None,
    *,
    start: Mapping[str, Any] | None = None,
    optimizers: Names = ("adam",),
    rates: Mapping[str, float] | None = None,
    steps: int = 10_000,
    seed: int = 0,
    dark: bool = False,
    title: str | None = None,
) -> slide.Figure:
    """Plot the mean loss of Levenberg-Marquardt and of optimizers from the same initial values.

    Every step uses all samples. Levenberg-Marquardt uses the derivative of each residual, an
    optimizer only the gradient of their sum of squares. Rejected steps of Levenberg-Marquardt count
    as steps.

    Args:
        graph: the graph.
        data: inputs and targets; 100 samples generated from the declared values unless given.
        start: initial values of parameters; other values are sampled with the seed.
        optimizers: optimizers to compare with Levenberg-Marquardt.
        rates: learning rates keyed by optimizer. Default: those of training.
        steps: number of steps of each optimizer.
        seed: random seed of initial values and data.

    Raises:
        UsageError: an unknown optimizer or parameter.
        DataError: the data do not match the graph.

    >>> import cgprimer
    >>> graph = cgprimer.parse("y = exp(k*x); parameter k = 0.5")
    >>> figure = descent(graph, start={"k": 1.0}, steps=20)
    >>> [line.get_label().partition(":")[0] for line in figure.axes[0].lines]
    ['Levenberg-Marquardt', 'adam, rate 0.05']
    """
    curves = descents(graph, data, start, optimizers, rates, steps, seed)
    figure, axes, look = slide.create_plot(
        dark,
        title,
        "Mean loss from the same initial values",
        x="step (1 = initial values)",
        y="mean loss",
    )
    for order, curve in enumerate(curves):
        style = slide.choose_line_style(order, look, len(curve.losses))
        if order == 0:  # Levenberg-Marquardt has few steps, with a marker each
            style |= {"marker": "o", "markersize": 9, "markevery": 1}
        axes.plot(curve.steps, curve.losses, **style, linewidth=2.4, label=curve.label)
    every = np.concatenate([curve.losses for curve in curves])
    every = every[np.isfinite(every) & (every > 0)]
    axes.set_xscale("log")
    slide.use_log_axis(axes, "x")
    if len(every):
        axes.set_yscale("log", nonpositive="mask")
        axes.set_ylim(every.min() / 2, 10 * max(curve.losses[0] for curve in curves))
        slide.use_log_axis(axes, "y")
    slide.draw_legend_below(figure, axes, look)
    return figure


@dataclass(frozen=True, eq=False)
class LossCurve:
    """The mean losses of one method after each step, with a legend label.

    Attributes:
        label: legend label, with the result.
        steps: numbers of evaluations; the first is that of the start.
        losses: mean losses after these evaluations.
    """

    label: str
    steps: Array
    losses: Array


def descents(
    graph: ExpressionGraph, data: Any = None, start: Mapping[str, Any] | None = None,
    optimizers: Names = ("adam",), rates: Mapping[str, float] | None = None,
    steps: int = 10_000, seed: int = 0,
) -> list[LossCurve]:  # fmt: skip
    """Compute the loss curves that :func:`descent` draws, beginning with Levenberg-Marquardt."""
    steps, seed = check_integer("steps", steps, minimum=1), check_integer("the seed", seed)
    names = normalize_names(optimizers, "optimizers")
    for name in names:
        check_choice("optimizer", name, OPTIMIZERS)
    chosen_rates = check_named_values("rates", rates, "optimizer", OPTIMIZERS, above=0)
    if unused := [name for name in chosen_rates if name not in names]:
        hint = f"add the optimizer (--optimizers {','.join([*names, *unused])})"
        message = f"`rates` contains {unused[0]!r}, which is not one of `optimizers`"
        raise UsageError(message, hint=hint)
    data = make_dataset(graph, samples=100, seed=seed) if data is None else data
    data = require_in_memory(load_samples(graph, data, DEFAULT), "every step uses all samples")
    vectors = ParameterVectors(graph)
    start_values = check_named_values(
        "start", start, "parameter", graph.parameters, shapes=graph.shapes, parts=True
    )
    sampled = vectors.values(np.random.default_rng(seed).random(len(vectors)))
    first = {**sampled, **start_values}
    result = fit(graph, data, start=first, algorithm="levenberg-marquardt")
    trials = [t.residual_sum_of_squares if t.accepted else np.inf for t in result.history]
    losses = np.minimum.accumulate(trials) / len(data)
    ending = f"minimum after {len(trials) - 1:,} steps" if result.converged else "no minimum found"
    curves = [LossCurve(f"{_FIT}: {ending}", np.arange(1, len(trials) + 1), losses)]
    for name in names:
        rate = {"learning_rate": chosen_rates[name]} if name in chosen_rates else {}
        settings = {"optimizer": name, "batch_size": len(data), "epochs": steps, **rate}
        try:
            run = train(graph, data, start=first, seed=seed, **settings)
        except NonFiniteError as error:
            if not isinstance(error.run, TrainingRun) or not error.run.steps:
                raise
            run = error.run
        curves.append(_build_optimizer_curve(name, run))
    return curves


def _build_optimizer_curve(name: str, run: TrainingRun) -> LossCurve:
    """Build the loss curve of a training run with full-batch updates."""
    steps, losses = over_time(run, "step")
    ending = f"final loss {format_number(losses[-1], 3)}"
    if run.stopped == "diverged":
        ending = "diverges"
    rate = mark_rounding(float(run.settings["learning_rate"]), 2)
    label = f"{format_full_batch_name(name)}, rate {rate}: {ending}"
    return LossCurve(label, np.asarray(steps), np.asarray(losses))
