"""What a graph with learnt parameters says about samples, and how good that is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
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
from cgprimer.training.losses import beside_outputs, check_shape
from cgprimer.training.metrics import Confusion, beside_labels, confusion, r_squared

Array = Any


def outputs_of(
    graph: ExpressionGraph, inputs: Mapping[str, Array], samples: int, parameters: Mapping[str, Any]
) -> dict[str, Array]:
    """Each output's column for the columns of inputs; other columns are left alone.

    Running statistics of ``batchnorm`` stand among the parameters.

    Raises:
        DataError: an input has no column, or one of another shape.

    >>> from cgprimer.core.graph import parse
    >>> outputs_of(parse("xw = k*xa"), {"xa": np.array([1.0, 2.0])}, 2, {"k": 3.0})
    {'xw': array([3., 6.])}
    """
    columns = {n: np.asarray(find_column(inputs, n, "input"), float) for n in graph.inputs}
    for name, column in columns.items():
        check_shape("input", name, column.shape[1:], graph.shapes.get(name, ()))
    scalars = {name: parameters[name] for name in graph.parameters}
    scalars |= running_statistics(graph, parameters)
    execute = compile_tape(select_engine("numpy"), tape(graph), reduction="none", dtype="float64")
    found = execute(columns, scalars, samples)
    return {name: found[name] for name in graph.outputs}


def over_blocks(
    data: Dataset | Blocks, of: Callable[[Dataset], tuple[dict[str, Array], ...]]
) -> list[dict[str, Array]]:
    """Columns that are made of each block, put together to those of all."""
    found = map(of, map(data.block, range(len(data.lengths))))
    return list(map(concatenate_columns, zip(*found, strict=True)))


def beside_targets(
    graph: ExpressionGraph,
    data: Dataset | Blocks,
    parameters: Mapping[str, Any],
    loss: str,
    scales: Scales,
) -> tuple[dict[str, Array], dict[str, Array]]:
    """All outputs, as they are compared with labels, and the targets, of all blocks.

    Both are in the units of before the data were normalised by these scales.

    Raises:
        DataError: an output has no target.
    """
    outputs, targets = over_blocks(
        data,
        lambda block: (
            outputs_of(graph, block.inputs, len(block), parameters),
            beside_outputs(graph, loss, block),
        ),
    )
    outputs, targets = denormalize_outputs(outputs, scales), denormalize_outputs(targets, scales)
    return beside_labels(outputs, loss), targets


@dataclass(frozen=True, slots=True, eq=False)
class Score:
    """How well a run predicts samples.

    Attributes:
        samples: how many they are.
        loss: their mean loss, by the loss that was minimised.
        r2: the share of the targets' variance that is explained; nan where outputs have no
            targets, as with a loss in other columns.
        confusion: who is taken for whom; None where the targets are no classes.
    """

    samples: int
    loss: float
    r2: float
    confusion: Confusion | None

    @property
    def accuracy(self) -> float | None:
        """The share of samples whose class is predicted; None where there are no classes."""
        return None if self.confusion is None else self.confusion.accuracy

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        found = {"samples": self.samples, "loss": self.loss, "r2": self.r2}
        if (table := self.confusion) is None:
            return found
        shown = {"labels": list(table.labels), "counts": table.counts.tolist()}
        return {**found, "accuracy": table.accuracy, "confusion": shown}


def score_of(
    graph: ExpressionGraph,
    data: Dataset | Blocks,
    parameters: Mapping[str, Any],
    loss: float,
    scales: Scales,
    name: str,
) -> Score:
    """The score of parameters on samples, normalised by these scales, whose mean loss is known.

    The name is that of the loss.
    """
    try:
        given, targets = beside_targets(graph, data, parameters, name, scales)
    except DataError:  # the loss, whose columns are there, compares no output with a target
        return Score(len(data), loss, math.nan, None)
    table = None
    if all(np.isfinite(column).all() for column in given.values()):
        try:
            table = confusion(given, targets)
        except DataError:  # numbers, no classes
            table = None
    return Score(len(data), loss, r_squared(given, targets), table)
