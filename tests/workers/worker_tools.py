"""Graphs, data and settings that the tests of workers share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import cgprimer
from cgprimer.training.runs import TrainingRun
from tests.checking.submissions import read_rows

ROWS = read_rows(Path(__file__).with_name("tables.txt"))

LINE = cgprimer.parse("xw = k*x")
PAIR = cgprimer.Dataset.from_arrays({"x": [1.0, 2.0]}, {"xw": [3.0, 6.0]})
PLAIN: dict[str, Any] = {
    "optimizer": "sgd", "learning_rate": 0.05, "schedule": "constant", "start": {"k": 0.0},
    "batch_size": 1, "shuffle": False, "epochs": 1, "simulate": True,
}  # fmt: skip


def lecture(samples: int = 600) -> tuple[cgprimer.ExpressionGraph, cgprimer.Dataset]:
    """Return the graph of the lecture with sampled data."""
    graph = cgprimer.load("lecture")
    return graph, cgprimer.make_dataset(graph, samples=samples)


def with_random_truth(
    graph: cgprimer.ExpressionGraph, samples: int, **options: Any
) -> cgprimer.Dataset:
    """Return data that were computed with random parameters."""
    numbers = np.random.default_rng(3)
    truth = {n: numbers.normal(size=graph.shapes.get(n, ())) * 0.5 for n in graph.parameters}
    return cgprimer.make_dataset(graph, samples=samples, truth=truth, **options)


def max_difference(one: TrainingRun, other: TrainingRun) -> float:
    """Return the largest relative difference of parameters."""
    return max(
        float(np.max(np.abs(value - other.parameters[n]) / np.maximum(1, np.abs(value))))
        for n, value in one.parameters.items()
    )
