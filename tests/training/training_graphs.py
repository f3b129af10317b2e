"""Graphs, datasets and helpers that the tests of training share."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import cgprimer
from cgprimer.core.graph import ExpressionGraph
from cgprimer.training.data import Dataset
from cgprimer.training.loop import TrainingRun

TRUTH = {"ab": 1.0, "bc": 2.0, "cd": 3.0, "ac": 4.0}
TABLES = Path(__file__).with_name("tables.txt").read_text("utf-8")
PLAIN: dict[str, Any] = {"optimizer": "sgd", "schedule": "constant"}  # gradient descent


def table(section: str) -> list[Any]:
    """Return the rows of a section of ``tables.txt``, each of which is a JSON text."""
    found = next(s for s in TABLES.split("\n\n") if s.startswith(f"# {section}"))
    return [json.loads(row) for row in found.splitlines()[1:]]


@cache
def lecture() -> ExpressionGraph:
    return cgprimer.load("lecture")


@cache
def lecture_data(samples: int = 200, seed: int = 0) -> Dataset:
    return cgprimer.make_dataset(lecture(), samples=samples, seed=seed)


@cache
def line() -> ExpressionGraph:
    return cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")


def line_data(*inputs: float) -> Dataset:
    xa = np.array(inputs or (0.5, -1.0, 2.0, 0.25, 1.5), dtype=float)
    return Dataset.from_arrays({"xa": xa}, {"xw": 3 * xa - 1})


SAMPLES = 53  # a multiple of no batch and no vector


@cache
def two_outputs() -> ExpressionGraph:
    """Uniform work (sin(a)), a matrix, functions, and a parameter of which nothing varies."""
    return cgprimer.parse(
        "h0 = tanh(a0*xa + b0*xb + sin(a0)); h1 = tanh(a1*xa + b1*xb + sin(a1))\n"
        "xw = c0*h0 + c1*h1 + d; xv = h0*h1 - xa*c0 + 0.5*d^2; output xw, xv"
    )


@cache
def two_targets() -> Dataset:
    random = np.random.default_rng(5)
    inputs = {name: random.uniform(-1, 1, SAMPLES) for name in ("xa", "xb")}
    targets = {"xw": np.sin(inputs["xa"]), "xv": inputs["xb"] ** 2}
    return Dataset.from_arrays(inputs, targets)


def fields_of(run: TrainingRun) -> dict[str, Any]:
    """Return what equal runs have in common: everything except the graph and the time."""
    fields = {name: v for name, v in vars(run).items() if name not in ("seconds", "graph")}
    return {**fields, "state": [np.asarray(part).tolist() for part in run.state]}


def interrupt_at(step: int) -> Callable[[int, int, float], None]:
    """Return a callback that interrupts training after an update."""

    def stop(updates: int, _total: int, _loss: float) -> None:
        if updates >= step:
            raise KeyboardInterrupt

    return stop
