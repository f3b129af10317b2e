"""Regularizers, norms, bounds, frozen parameters and schedules; cases F8, F12 and B4."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.errors import UsageError
from cgprimer.training.constraints import (
    project_to_norm_ball,
    shrink_towards_zero,
)
from cgprimer.training.data import Dataset
from cgprimer.training.objective import Objective
from cgprimer.training.schedules import rates
from tests.approval import refused
from tests.training.training_graphs import PLAIN, lecture, lecture_data, line_data

ENGINES = ("plain", "numpy", "cpu")
NOTHING = Dataset.from_arrays({}, {"xw": [0.0]})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("text", "start", "arguments", "expected", "penalty"),
    [
        ("0.2*W", {"W": 1}, {"l2": 0.5}, {"W": 0.88}, 0.5 * 0.88**2),  # l2 before the step
        ("1*u - 0.2*v", {"u": 0.5, "v": -0.03}, {}, {"u": 0.4, "v": -0.01}, 0),
        ("1*u - 0.2*v", {"u": 0.5, "v": -0.03}, {"l1": 0.1}, {"u": 0.38, "v": 0}, 0.2 * 0.38),
        ("0.2*W", {"W": 1}, {"l2": 0.5, "l1": 0.1}, {"W": 0.86}, 0.5 * 0.86**2 + 0.2 * 0.86),
        ("1*u + 1*v", {"u": 0.5, "v": 0.5}, {"l1": 0.1, "scale": {"u": 2}},
         {"u": 0.5 - 0.2 - 2 * 0.2 * 0.1, "v": 0.5 - 0.1 - 0.02}, 0.2 * (0.26 + 0.38)),
        ("1*u + 1*v", {"u": 0.5, "v": 0.5}, {"l2": {"v": 0.1}}, {"u": 0.4, "v": 0.39},
         0.1 * 0.39**2),
        ("-30*u - 40*v", {"u": 0, "v": 0}, {"max_norm": 1}, {"u": 0.6, "v": 0.8}, 0),
        ("-30*u - 10*v", {"u": 0, "v": 0}, {"max_norm": 2.5, "norm": 1}, {"u": 2.25, "v": 0.25}, 0),
        ("-30*u - 10*v", {"u": 0, "v": 0}, {"max_norm": 2, "norm": math.inf}, {"u": 2, "v": 1}, 0),
        ("0*u + 0*v", {"u": 3, "v": 4}, {"max_norm": 5}, {"u": 3, "v": 4}, 0),
        ("-9*u + 9*v", {"u": 0, "v": 0}, {"bounds": {"u": (-1, 0.5), "v": (-0.25, math.inf)}},
         {"u": 0.5, "v": -0.25}, 0),
        ("-9*u + 9*v", {"u": 0, "v": 0.5}, {"freeze": ["v"], "l2": 1}, {"u": 0.9, "v": 0.5},
         0.9**2 + 0.5**2),
    ],
)  # fmt: skip
def test_one_step_of_gradient_descent(
    text: str, start: dict, arguments: dict, expected: dict, penalty: float, engine: str
) -> None:
    graph = cgprimer.parse(f"xw = {text}")
    run = cgprimer.train(
        graph, NOTHING, learning_rate=0.1, epochs=1, loss="out", start=start, engine=engine,
        **arguments, **PLAIN,
    )  # fmt: skip
    assert run.parameters == pytest.approx(expected, rel=1e-14, abs=1e-15)
    assert run.loss == pytest.approx(graph.evaluate(expected)["xw"])  # without the penalty
    assert run.penalty == pytest.approx(penalty)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=4), st.floats(0.1, 4), st.integers(0, 99))
@settings(max_examples=20)
def test_projections_are_the_nearest_points_of_the_ball(
    numbers: list[float], radius: float, seed: int
) -> None:
    random, values = np.random.default_rng(seed), np.array(numbers)
    for p in (1.0, 2.0, math.inf):
        found = project_to_norm_ball(values, radius, p)
        assert np.linalg.norm(found, p) <= radius * (1 + 1e-12)
        distance = np.linalg.norm(found - values)
        for direction in random.normal(size=(10, len(values))):
            other = direction * radius * random.random() / np.linalg.norm(direction, p)
            assert np.linalg.norm(other - values) >= distance * (1 - 1e-12)
    for p in (1.5, 3.0):  # other norms scale down
        scale = min(1.0, radius / (np.linalg.norm(values, p) or 1.0))
        assert project_to_norm_ball(values, radius, p) == pytest.approx(scale * values)
    found = float(shrink_towards_zero(values[0], radius))
    near = (found - 1e-4, found, found + 1e-4)
    objective = [(w - values[0]) ** 2 / 2 + radius * abs(w) for w in near]
    assert objective[1] == min(objective)


def test_frozen_parameters_are_not_differentiated_and_need_a_value() -> None:
    free = np.array([1.0, 0.0, 0.0, 1.0])
    objective, whole = Objective(lecture(), free=free), Objective(lecture())
    assert objective.program.wrt == ("ab", "ac")
    columns, values = whole.columns(lecture_data(20)), np.array([0.1, 0.2, 0.3, 0.4])
    exact, found = whole.sums(columns, values, 20), objective.sums(columns, values, 20)
    assert found[0] == exact[0]
    assert found[1] == pytest.approx(exact[1] * free)
    graph = cgprimer.parse("xw = a*xa + b; parameter a = 3")
    with refused(UsageError, "--start b="):
        cgprimer.train(graph, line_data(), freeze=["b"])
    run = cgprimer.train(graph, line_data(), freeze=["b"], start={"b": -1}, epochs=2)
    assert run.parameters["b"] == -1
    data = Dataset.from_arrays({"xa": [0.0, 1.0]}, {"xw": [5.0, 8.0]})
    run = cgprimer.train(graph, data, freeze=["a"], max_norm=1, learning_rate=0.1, epochs=90)
    assert (run.parameters["a"], run.parameters["b"]) == (3.0, pytest.approx(1.0))


@pytest.mark.parametrize("engine", ["plain", "cpu"])
def test_elements_of_arrays_are_constrained(engine: str) -> None:
    graph = cgprimer.parse("input x[2]; parameter W[2,2], b[2]; xo = sum((W @ x + b)^2)")
    data = Dataset.from_arrays({"x": np.ones((4, 2))}, {"xo": np.zeros(4)})
    run = cgprimer.train(
        graph, data, engine=engine, start={"W": np.full((2, 2), 2.0), "b": np.ones(2)}, epochs=20,
        batch_size=None, loss="out", freeze=["W[0,1]"], bounds={"b": (0.5, 2)},
        max_norm={"W": 4.5, "b": 9.0},
    )  # fmt: skip
    assert run.parameters["W"][0, 1] == 2.0
    assert (run.parameters["b"] >= 0.5).all()
    assert run.loss < run.start_loss


@pytest.mark.parametrize(
    ("schedule", "arguments", "expected"),
    [
        ("constant", {}, [1, 1, 1, 1, 1, 1]),
        ("cosine", {}, [(1 + math.cos(math.pi * k / 6)) / 2 for k in range(6)]),
        ("exponential", {"hyper": {"gamma": 0.5}}, [1, 1, 0.5, 0.5, 0.25, 0.25]),
        ("exponential", {}, [1, 1, 0.9, 0.9, 0.81, 0.81]),
        ("steps", {"hyper": {"factor": 0.1, "every": 2}}, [1, 1, 1, 1, 0.1, 0.1]),
        ("steps", {"hyper": {"every": 1}}, [1, 1, 0.5, 0.5, 0.25, 0.25]),
        ("constant", {"warm_up": 2}, [0.25, 0.5, 0.75, 1, 1, 1]),
        ("1/(1 + step)", {}, [1 / (1 + k) for k in range(6)]),
        ("rate*(1 - t/epochs) + 0*steps", {}, [1, 1, 2 / 3, 2 / 3, 1 / 3, 1 / 3]),
        ("0.5", {}, [0.5] * 6),
    ],
)
def test_schedules(schedule: str, arguments: dict[str, Any], expected: list[float]) -> None:
    made = rates(schedule, 1.0, 3, 2, **arguments)
    assert made(0, 6) == pytest.approx(expected, rel=1e-14)
    assert made(3, 5) == pytest.approx(expected[3:5], rel=1e-14)
    graph, data = cgprimer.parse("xw = k*xa"), Dataset.from_arrays({"xa": [1, 1]}, {"xw": [0, 0]})
    for engine in ("plain", "cpu"):
        run = cgprimer.train(
            graph, data, optimizer="sgd", learning_rate=1.0, loss="out", epochs=3, batch_size=1,
            engine=engine, schedule=schedule, start={"k": 0.0}, **arguments,
        )  # fmt: skip
        assert run.parameters["k"] == pytest.approx(-sum(expected), rel=1e-14)
