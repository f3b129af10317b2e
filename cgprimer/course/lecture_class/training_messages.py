"""Messages of the lecture's training: mean losses, and the forward pass of selected samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cgprimer.core.edge_partials import Partials
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.number_format import format_number
from cgprimer.training.data import Dataset
from cgprimer.training.runs import TrainingRun

_MAX_SAMPLES = 256  # printed samples in one part of a run
_MAX_VALUES = 50_000  # recorded parameter values in one part of a run
_MAX_RECORDS = 1024  # of parameters: the capacity of a run


def print_line(text: str = "") -> None:
    """Print a line about the progress of training."""
    print(text)  # noqa: T201


def print_losses(run: TrainingRun, interval: int, label: Callable[[int], str]) -> None:
    """Print mean losses of a run at regular intervals, in the form ``LABEL  loss = 0.1234``.

    Args:
        run: the training run.
        interval: the number of iterations between two lines; 0 to print nothing.
        label: a function from an iteration to the label of its line.
    """
    for step in range(interval, run.steps + 1, interval) if interval else ():
        print_line(f"{label(step)}  loss = {compute_mean_loss(run, step - interval, step):.4f}")


def compute_mean_loss(run: TrainingRun, first: int, end: int) -> float:
    """Return the mean of the recorded losses of iterations ``first`` to ``end - 1``."""
    interval = run.steps_apart
    losses = run.step_losses[-(-first // interval) : -(-end // interval)]
    return sum(losses) / len(losses) if losses else float("nan")


def print_samples(
    run: TrainingRun,
    data: Dataset,
    interval: int,
    train_on: Callable[..., TrainingRun],
    partials: Callable[[Mapping[str, Any]], Partials],
) -> None:
    """Print the forward pass of every ``interval``-th sample, with the parameters at that time.

    The run is repeated in parts to record these parameters.

    Args:
        run: the training run.
        data: its samples.
        interval: the number of samples between two printed samples.
        train_on: trains on a dataset and returns the run.
        partials: returns the local partials for given values.
    """
    start, first, order = run.start, 0, np.arange(len(data))
    while first < len(data):
        # A run halves its records when they are full, so a part has 1, 2, 4, ... intervals.
        max_intervals = max(1, min(_MAX_SAMPLES, _MAX_VALUES // max(1, len(start))))
        intervals = min(max(run.steps - first, 0) // interval, max_intervals)
        end = first + interval * (1 << max(intervals.bit_length() - 1, 0))
        indices = range(first, min(end, len(data)), interval)
        columns = {name: [value] for name, value in start.items()}
        if intervals:
            in_part = (order >= first) & (order < end)
            part = train_on(data.where(in_part), start=start, short_run_records=_MAX_RECORDS)
            records = [part.recorded_steps.index(index - first) for index in indices[1:]]
            for name, values in part.recorded_parameters.items():
                columns[name] += [values[record] for record in records]
            start = part.parameters
        _print_samples_at(run, data, indices, interval, columns, partials)
        first = end


def _print_samples_at(
    run: TrainingRun,
    data: Dataset,
    indices: range,
    interval: int,
    parameters: Mapping[str, Sequence[Any]],
    partials: Callable[[Mapping[str, Any]], Partials],
) -> None:
    """Print the forward pass of selected samples, and the mean loss after each sample.

    Args:
        run: the training run.
        data: its samples.
        indices: the indices of the samples to print.
        interval: the number of samples between two printed samples.
        parameters: the values of each parameter at these samples.
        partials: returns the local partials for given values.
    """
    values = {name: np.array(column) for name, column in parameters.items()}
    values |= {name: column[[*indices]] for name, column in data.inputs.items()}
    edges = partials(values)
    for position, index in enumerate(indices):
        point = {name: float(column[position]) for name, column in values.items()}
        targets = {name: float(column[index]) for name, column in data.targets.items()}
        print_sample(index, run.known_graph, point, targets, _select_sample(edges, position))
        if index + interval <= run.steps:
            loss = compute_mean_loss(run, index, index + interval)
            print_line(f"[sample={index + interval}]  loss = {loss:.4f}")


def _select_sample(edges: Partials, position: int) -> Partials:
    """Extract the local partials of one sample from the local partials of a batch."""
    tables = (edges.variable_to_variable, edges.variable_to_parameter)
    return Partials(
        *({pair: np.ravel(values)[position] for pair, values in table.items()} for table in tables)
    )


def print_sample(
    index: int,
    graph: ExpressionGraph,
    at: Mapping[str, float],
    targets: Mapping[str, float],
    edges: Partials,
) -> None:
    """Print the forward pass of one sample, its squared error and the local partials."""
    values = graph.evaluate(dict(at))
    predictions = {name: float(values[name]) for name in graph.outputs}
    error = sum((predictions[name] - targets[name]) ** 2 for name in graph.outputs)
    print_line(f"forward pass of sample {index}")
    print_line(f"  inputs       {_format_values({name: at[name] for name in graph.inputs})}")
    print_line(f"  prediction   {_format_values(predictions)}")
    squared_error = format_number(error, 6)
    print_line(f"  target       {_format_values(targets)}    squared error {squared_error}")
    print_line(f"  parameters   {_format_values({name: at[name] for name in graph.parameters})}")
    for noun, pairs in (
        ("vertices", edges.variable_to_variable),
        ("parameters", edges.variable_to_parameter),
    ):
        print_line(f"  partials with respect to {noun}")
        partials = {f"d({head})/d({tail})": float(v) for (head, tail), v in pairs.items()}
        print_line(f"    {_format_values(partials)}")


def _format_values(values: Mapping[str, float]) -> str:
    """Format named values, such as ``xa = 0.5, xb = 2``."""
    return ", ".join(f"{name} = {format_number(value, 6)}" for name, value in values.items())
