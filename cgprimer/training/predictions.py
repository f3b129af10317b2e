"""Predictions of a graph with learned parameters, and their score."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from cgprimer.core.derivatives import running_statistics
from cgprimer.core.evaluation.engines import select_engine
from cgprimer.core.evaluation.runner import compile_tape
from cgprimer.errors import DataError
from cgprimer.expressions import ExpressionGraph
from cgprimer.tapes import tape
from cgprimer.training.data import Blocks, Dataset, denormalize_outputs
from cgprimer.training.data.dataset import concatenate_columns
from cgprimer.training.data.dataset_columns import find_column
from cgprimer.training.data.normalization import Scales
from cgprimer.training.losses import align_targets, check_column_shape
from cgprimer.training.metrics import Confusion, confusion, convert_to_probabilities, r_squared

Array = Any


def compute_outputs(
    graph: ExpressionGraph, inputs: Mapping[str, Array], samples: int, parameters: Mapping[str, Any]
) -> dict[str, Array]:
    """Compute the outputs of a graph from columns of inputs, one column per output.

    Args:
        graph: the graph.
        inputs: the columns.
        samples: the number of samples.
        parameters: the parameters, and the running statistics of ``batchnorm``.

    Raises:
        DataError: the column of an input is missing or has another shape.

    >>> from cgprimer.core.graph import parse
    >>> compute_outputs(parse("xw = k*xa"), {"xa": np.array([1.0, 2.0])}, 2, {"k": 3.0})
    {'xw': array([3., 6.])}
    """
    columns = {n: np.asarray(find_column(inputs, n, "input"), float) for n in graph.inputs}
    for name, column in columns.items():
        check_column_shape("input", name, column.shape[1:], graph.shapes.get(name, ()))
    scalars = {name: parameters[name] for name in graph.parameters}
    scalars |= running_statistics(graph, parameters)
    execute = compile_tape(select_engine("numpy"), tape(graph), reduction="none", dtype="float64")
    outputs = execute(columns, scalars, samples)
    return {name: outputs[name] for name in graph.outputs}


def concatenate_blocks(
    data: Dataset | Blocks, compute: Callable[[Dataset], tuple[dict[str, Array], ...]]
) -> list[dict[str, Array]]:
    """Apply a function to each block of the data and concatenate the resulting columns."""
    columns = map(compute, map(data.block, range(len(data.lengths))))
    return list(map(concatenate_columns, zip(*columns, strict=True)))


def pair_outputs_with_targets(
    graph: ExpressionGraph,
    data: Dataset | Blocks,
    parameters: Mapping[str, Any],
    loss: str,
    scales: Scales,
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return the outputs, with logits as probabilities, and the targets of all samples.

    Both are in the units that the data had before they were normalized.

    Args:
        graph: the graph.
        data: the normalized samples.
        parameters: the parameters and the running statistics.
        loss: the name of the loss.
        scales: the scales of the normalization.

    Raises:
        DataError: an output has no target.
    """
    outputs, targets = concatenate_blocks(
        data,
        lambda block: (
            compute_outputs(graph, block.inputs, len(block), parameters),
            align_targets(graph, loss, block),
        ),
    )
    outputs, targets = denormalize_outputs(outputs, scales), denormalize_outputs(targets, scales)
    return convert_to_probabilities(outputs, loss), targets


@dataclass(frozen=True, slots=True, eq=False)
class Score:
    """The score of predictions: mean loss, R^2 and, for classes, the confusion matrix.

    Attributes:
        samples: the number of samples.
        loss: the mean of the loss that was minimized.
        r2: the fraction of the targets' variance that is explained; nan if outputs have no targets,
            as with a loss in other columns.
        confusion: the confusion matrix; None if the targets are not classes.
    """

    samples: int
    loss: float
    r2: float
    confusion: Confusion | None

    @property
    def accuracy(self) -> float | None:
        """The fraction of correctly predicted samples; None if the targets are not classes."""
        return None if self.confusion is None else self.confusion.accuracy

    def as_dict(self) -> dict[str, Any]:
        """Return the score as a dict of numbers, strings and lists, for JSON."""
        values = {"samples": self.samples, "loss": self.loss, "r2": self.r2}
        if (table := self.confusion) is None:
            return values
        matrix = {"labels": list(table.labels), "counts": table.counts.tolist()}
        return {**values, "accuracy": table.accuracy, "confusion": matrix}


def compute_score(
    graph: ExpressionGraph,
    data: Dataset | Blocks,
    parameters: Mapping[str, Any],
    mean_loss: float,
    scales: Scales,
    loss: str,
) -> Score:
    """Compute the score of parameters on samples whose mean loss is known.

    Args:
        graph: the graph.
        data: the normalized samples.
        parameters: the parameters and the running statistics.
        mean_loss: the mean loss of the samples.
        scales: the scales of the normalization.
        loss: the name of the loss.
    """
    try:
        outputs, targets = pair_outputs_with_targets(graph, data, parameters, loss, scales)
    except DataError:  # the loss does not compare outputs with targets
        return Score(len(data), mean_loss, math.nan, None)
    table = None
    if all(np.isfinite(column).all() for column in outputs.values()):
        with suppress(DataError):  # the targets are not classes
            table = confusion(outputs, targets)
    return Score(len(data), mean_loss, r_squared(outputs, targets), table)
