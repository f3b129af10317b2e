"""Least squares by its own method and by optimizers that know a gradient alone, on one problem."""

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
from cgprimer.training.losses import DEFAULT, samples_for
from cgprimer.training.optimizers import OPTIMIZERS
from cgprimer.training.parameter_vector import Vectors
from cgprimer.training.runs import TrainingRun
from cgprimer.visualization.plots import slide
from cgprimer.visualization.plots.loss_landscape import full_batch_name
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
    """The mean loss of Levenberg-Marquardt and of optimizers over their steps, from one start.

    Every step sees all samples. Levenberg-Marquardt knows the derivative of each residual, an
    optimizer only their sum. Of Levenberg-Marquardt steps that were tried and rejected count, too.

    Args:
        graph: the graph.
        data: inputs and targets; 100 samples made from the declared values unless given.
        start: values to start from; others are drawn from the seed.
        optimizers: beside Levenberg-Marquardt.
        rates: learning rates by optimizer; those of training unless given.
        steps: of each optimizer.
        seed: of start values and data.

    Raises:
        UsageError: an unknown optimizer or parameter.
        DataError: the data are not those of the graph.

    Command line:
        cgprimer data saturation --samples 20 --low 0 --high 3 --noise 5 -o rise.csv
        cgprimer plot descent saturation --data rise.csv --start b1=500,b2=0.1 -o descent.png
        cgprimer plot descent lecture --optimizers sgd,adam --rates sgd=1e-4 -o lecture.svg --dark

    >>> import cgprimer
    >>> graph = cgprimer.parse("y = exp(k*x); parameter k = 0.5")
    >>> figure = descent(graph, start={"k": 1.0}, steps=100)
    >>> [line.get_label().partition(":")[0] for line in figure.axes[0].lines]
    ['Levenberg-Marquardt', 'adam, rate 0.05']
    """
    ways = descents(graph, data, start, optimizers, rates, steps, seed)
    figure, axes, look = slide.framed(
        dark, title, "Mean loss from one start", x="step (1 is the start)", y="mean loss"
    )
    for order, way in enumerate(ways):
        style = slide.line_style(order, look, len(way.losses))
        if order == 0:  # few steps: each of them is seen
            style |= {"marker": "o", "markersize": 9, "markevery": 1}
        axes.plot(way.steps, way.losses, **style, linewidth=2.4, label=way.label)
    every = np.concatenate([way.losses for way in ways])
    every = every[np.isfinite(every) & (every > 0)]
    axes.set_xscale("log")
    slide.log_axis(axes, "x")
    if len(every):
        axes.set_yscale("log", nonpositive="mask")
        axes.set_ylim(every.min() / 2, 10 * max(way.losses[0] for way in ways))
        slide.log_axis(axes, "y")
    slide.legend_below(figure, axes, look)
    return figure


@dataclass(frozen=True, eq=False)
class Way:
    """What one method did: the mean loss after so many evaluations, the start being the first."""

    label: str
    steps: Array
    losses: Array


def descents(
    graph: ExpressionGraph, data: Any = None, start: Mapping[str, Any] | None = None,
    optimizers: Names = ("adam",), rates: Mapping[str, float] | None = None,
    steps: int = 10_000, seed: int = 0,
) -> list[Way]:  # fmt: skip
    """What :func:`descent` draws, Levenberg-Marquardt first; the arguments are its own."""
    steps, seed = check_integer("steps", steps, minimum=1), check_integer("the seed", seed)
    names = normalize_names(optimizers, "optimizers")
    for name in names:
        check_choice("optimizer", name, OPTIMIZERS)
    own = check_named_values("rates", rates, "optimizer", OPTIMIZERS, above=0)
    if stray := [name for name in own if name not in names]:
        hint = f"--optimizers {','.join([*names, *stray])}"
        raise UsageError(f"there is a rate for {stray[0]}, which is not asked for", hint=hint)
    data = make_dataset(graph, samples=100, seed=seed) if data is None else data
    data = require_in_memory(samples_for(graph, data, DEFAULT), "every step sees all samples")
    vectors = Vectors(graph)
    given = check_named_values(
        "start", start, "parameter", graph.parameters, shapes=graph.shapes, parts=True
    )
    begin = {**vectors.values(np.random.default_rng(seed).random(len(vectors))), **given}
    found = fit(graph, data, start=begin, algorithm="levenberg-marquardt")
    tried = [t.residual_sum_of_squares if t.accepted else np.inf for t in found.history]
    losses = np.minimum.accumulate(tried) / len(data)
    ended = f"minimum after {len(tried) - 1:,} steps" if found.converged else "no minimum"
    ways = [Way(f"{_FIT}: {ended}", np.arange(1, len(tried) + 1), losses)]
    for name in names:
        more = {"learning_rate": own[name]} if name in own else {}
        settings = {"optimizer": name, "batch_size": len(data), "epochs": steps, **more}
        try:
            run = train(graph, data, start=begin, seed=seed, **settings)
        except NonFiniteError as error:
            if not isinstance(error.run, TrainingRun) or not error.run.steps:
                raise
            run = error.run
        places, values = over_time(run, "step")
        said = (
            "diverges"
            if run.stopped == "diverged"
            else f"{format_number(values[-1], 3)} at the end"
        )
        rate = mark_rounding(float(run.settings["learning_rate"]), 2)
        label = f"{full_batch_name(name)}, rate {rate}: {said}"
        ways.append(Way(label, np.asarray(places), np.asarray(values)))
    return ways
