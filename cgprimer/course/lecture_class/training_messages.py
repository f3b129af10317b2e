"""What the lecture's training prints: losses on their true scale, and a sample on its way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cgprimer.core.edge_partials import Partials
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.number_format import format_number
from cgprimer.training.data import Dataset
from cgprimer.training.runs import TrainingRun

_IN_A_PART, _NUMBERS = 256, 50_000  # samples that are shown, and numbers that are recorded
_RECORDS = 1024  # of parameters, as many as a run has room for


def tell(text: str = "") -> None:
    """A line; scripts of the lecture are read while they run."""
    print(text)  # noqa: T201


def tell_losses(run: TrainingRun, often: int, where: Callable[[int], str]) -> None:
    """``WHERE  loss = NUMBER`` every so many steps: the mean of the losses since the last line."""
    for step in range(often, run.steps + 1, often) if often else ():
        tell(f"{where(step)}  loss = {mean_loss(run, step - often, step):.4f}")


def mean_loss(run: TrainingRun, first: int, end: int) -> float:
    """The mean of the losses of some steps, of those that a long run has kept."""
    apart = run.steps_apart
    some = run.step_losses[-(-first // apart) : -(-end // apart)]
    return sum(some) / len(some) if some else float("nan")


def tell_samples(
    run: TrainingRun,
    data: Dataset,
    often: int,
    go_through: Callable[..., TrainingRun],
    partials: Callable[[Mapping[str, Any]], Partials],
) -> None:
    """Every so many samples one on its way forward, with the parameters that it met.

    The run is repeated in parts that record them on their way.
    """
    met, first, order = run.start, 0, np.arange(len(data))
    while first < len(data):
        # Moments of recording halve a part again and again, so it has 1, 2, 4, ... of them.
        most = max(1, min(_IN_A_PART, _NUMBERS // max(1, len(met))))
        whole = min(max(run.steps - first, 0) // often, most)
        end = first + often * (1 << max(whole.bit_length() - 1, 0))
        places = range(first, min(end, len(data)), often)
        columns = {n: [value] for n, value in met.items()}
        if whole:
            here = (order >= first) & (order < end)
            part = go_through(data.where(here), start=met, short_run_records=_RECORDS)
            kept = [part.recorded_steps.index(place - first) for place in places[1:]]
            for name, values in part.recorded_parameters.items():
                columns[name] += [values[index] for index in kept]
            met = part.parameters
        rows = [*places]
        at = {n: np.array(v) for n, v in columns.items()}
        at |= {n: column[rows] for n, column in data.inputs.items()}
        edges = partials(at)
        for k, place in enumerate(places):
            here_at = {n: float(v[k]) for n, v in at.items()}
            truth = {n: float(column[place]) for n, column in data.targets.items()}
            tell_sample(place, run.known_graph, here_at, truth, _of_sample(edges, k))
            if place + often <= run.steps:
                loss = mean_loss(run, place, place + often)
                tell(f"[sample={place + often}]  loss = {loss:.4f}")
        first = end


def _of_sample(edges: Partials, number: int) -> Partials:
    """The partials of one of several samples."""
    both = (edges.variable_to_variable, edges.variable_to_parameter)
    return Partials(*({pair: np.ravel(v)[number] for pair, v in of.items()} for of in both))


def tell_sample(
    index: int,
    graph: ExpressionGraph,
    at: Mapping[str, float],
    truth: Mapping[str, float],
    edges: Partials,
) -> None:
    """A sample on its way forward, and the partials that are made there."""
    values = graph.evaluate(dict(at))
    predicted = {name: float(values[name]) for name in graph.outputs}
    error = sum((predicted[name] - truth[name]) ** 2 for name in graph.outputs)
    tell(f"sample {index}, forward")
    tell(f"  inputs       {_listed({name: at[name] for name in graph.inputs})}")
    tell(f"  prediction   {_listed(predicted)}")
    tell(f"  truth        {_listed(truth)}    squared error {format_number(error, 6)}")
    tell(f"  parameters   {_listed({name: at[name] for name in graph.parameters})}")
    for what, pairs in (
        ("vertices", edges.variable_to_variable), ("parameters", edges.variable_to_parameter)
    ):  # fmt: skip
        tell(f"  partials by {what}")
        tell(f"    {_listed({f'd({h})/d({t})': float(v) for (h, t), v in pairs.items()})}")


def _listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} = {format_number(value, 6)}" for name, value in values.items())
