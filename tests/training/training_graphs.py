"""Small graphs and datasets that the tests of training share."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

import cgprimer
from cgprimer.core.graph import ExpressionGraph
from cgprimer.data import Dataset

LECTURE = Path(__file__).resolve().parents[2] / "examples" / "lecture.cg"
TRUTH = {"ab": 1.0, "bc": 2.0, "cd": 3.0, "ac": 4.0}


@cache
def lecture() -> ExpressionGraph:
    return cgprimer.load(LECTURE)


@cache
def lecture_data(samples: int = 200, seed: int = 0) -> Dataset:
    return cgprimer.make_dataset(lecture(), samples=samples, seed=seed)


@cache
def line() -> ExpressionGraph:
    return cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")


def line_data(*inputs: float) -> Dataset:
    xa = np.array(inputs or (0.5, -1.0, 2.0, 0.25, 1.5), dtype=float)
    return Dataset.from_arrays({"xa": xa}, {"xw": 3 * xa - 1})
