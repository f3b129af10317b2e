"""Schedules, regularizers, norms, bounds and frozen parameters; F8, F12 and B4 of the lectures."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.errors import CgprimerError, UsageError
from cgprimer.training.constraints import (
    Constraints,
    constraints,
    project_to_norm_ball,
    shrink_towards_zero,
)
from cgprimer.training.data import Dataset
from cgprimer.training.optimizers import OPTIMIZERS, optimizer
from cgprimer.training.parameter_vector import ParameterVectors
from cgprimer.training.schedules import rates
from cgprimer.training.update_rules import record_update
from tests.approval import refused
from tests.training.training_graphs import lecture, lecture_data, line, line_data

ENGINES = ("plain", "numpy", "cpu")


def one_step(text: str, start: dict[str, float], rate: float, **settings: Any) -> Any:
    """A step of plain descent on an output that is the loss, without inputs."""
    data = Dataset.from_arrays({}, {"xw": [0.0]})
    run = cgprimer.train(
        cgprimer.parse(text), data, optimizer="sgd", learning_rate=rate, schedule="constant",
        epochs=1, loss="out", start=start, **settings,
    )  # fmt: skip
    return run


# --- F8 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_l2_shrinks_before_the_step(engine: str) -> None:
    run = one_step("xw = 0.2*W", {"W": 1.0}, 0.1, l2=0.5, engine=engine)
    assert run.parameters["W"] == pytest.approx(0.88, rel=1e-15)
    assert run.loss == pytest.approx(0.2 * 0.88)  # that of the data
    assert run.penalty == pytest.approx(0.5 * 0.88**2)


@pytest.mark.parametrize("engine", ENGINES)
def test_l1_does_not_cross_zero(engine: str) -> None:
    start = {"u": 0.5, "v": -0.03}
    half = one_step("xw = 1*u - 0.2*v", start, 0.1, engine=engine)
    assert half.parameters == pytest.approx({"u": 0.4, "v": -0.01})
    run = one_step("xw = 1*u - 0.2*v", start, 0.1, l1=0.1, engine=engine)
    assert run.parameters == {"u": pytest.approx(0.38), "v": 0.0}
    assert run.penalty == pytest.approx(2 * 0.1 * 0.38)


def test_the_elastic_net_is_both() -> None:
    both = one_step("xw = 0.2*W", {"W": 1.0}, 0.1, l2=0.5, l1=0.1)
    assert both.parameters["W"] == pytest.approx(0.86)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_largest_norm(engine: str) -> None:
    run = one_step("xw = 0*u + 0*v", {"u": 3, "v": 4}, 0.1, engine=engine)
    assert run.parameters == {"u": 3, "v": 4}
    graph = cgprimer.parse("xw = -3*u - 4*v")
    data = Dataset.from_arrays({}, {"xw": [0.0]})
    run = cgprimer.train(
        graph, data, optimizer="sgd", learning_rate=1.0, schedule="constant", loss="out", epochs=1,
        start={"u": 0, "v": 0}, max_norm=1, engine=engine,
    )  # fmt: skip
    assert run.parameters == pytest.approx({"u": 0.6, "v": 0.8})


# --- what projections are ------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_projections_are_the_nearest_points(p: float) -> None:
    random = np.random.default_rng(3)
    for _ in range(20):
        values, most = random.normal(size=4) * 3, random.uniform(0.5, 3)
        found = project_to_norm_ball(values, most, p)
        assert np.linalg.norm(found, p) <= most * (1 + 1e-12)
        away = np.linalg.norm(found - values)
        for _ in range(50):
            other = random.normal(size=4)
            other *= most * random.random() / np.linalg.norm(other, p)
            assert np.linalg.norm(other - values) >= away * (1 - 1e-12)


@pytest.mark.parametrize("p", [1.5, 3.0])
def test_other_norms_are_scaled_down(p: float) -> None:
    values = np.array([3.0, -1.0])
    found = project_to_norm_ball(values, 1.0, p)
    assert np.linalg.norm(found, p) == pytest.approx(1.0)
    assert found[0] / found[1] == pytest.approx(-3.0)
    assert project_to_norm_ball(values, 9.0, p) is values


def test_the_proximal_step_is_where_its_sum_is_least() -> None:
    for value in (-2.0, -0.05, 0.0, 0.03, 1.0):
        found = float(shrink_towards_zero(np.array(value), 0.1))
        near = [found - 1e-4, found, found + 1e-4]
        sums = [(w - value) ** 2 / 2 + 0.1 * abs(w) for w in near]
        assert sums[1] == min(sums)


# --- in whole runs, on every engine alike --------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 7, None])
@pytest.mark.parametrize(
    "settings",
    [
        {"l2": 0.01, "l1": {"ab": 0.1}, "optimizer": "momentum", "learning_rate": 1e-6},
        {"bounds": {"ab": (0.2, 0.5), "cd": (-math.inf, 1)}},
        {"freeze": ["ab", "cd"], "start": {"ab": 0.7}},
        {"scale": {"ab": 0.0, "cd": 2.0}},
        {"max_norm": {"ab+bc": 1.0, "cd": 2.0}},
        {"max_norm": 3.0, "norm": math.inf},
        {"freeze": ["bc"], "l2": 0.1, "bounds": {"ab": (0, 1)}, "optimizer": "adamw"},
        {"schedule": "exponential", "hyper": {"gamma": 0.5, "beta1": 0.8}, "warm_up": 0.5},
    ],
)
def test_engines_agree(settings: dict[str, Any], batch: int | None) -> None:
    runs = [
        cgprimer.train(
            lecture(), lecture_data(40), engine=engine, epochs=4, batch_size=batch, **settings
        )
        for engine in ENGINES
    ]
    for run in runs[1:]:
        assert run.parameters == pytest.approx(runs[0].parameters, rel=1e-9)
        assert run.penalty == pytest.approx(runs[0].penalty, rel=1e-9)
        assert run.step_losses == pytest.approx(runs[0].step_losses, rel=1e-8)
    assert {"ab": 0.7, "cd": 3.0}.items() <= runs[0].parameters.items() or "start" not in settings


def test_engines_run_constraints_in_their_own_code() -> None:
    vectors = ParameterVectors(lecture())
    asked = {"l2": 0.1, "l1": 0.1, "bounds": {"ab": (0, 1)}, "freeze": ["cd"], "scale": {"ab": 2}}
    made = constraints(vectors, **asked)  # type: ignore[arg-type]
    for name in ("sgd", "adam", "nesterov"):
        rule = record_update(made.constrain_rule(optimizer(name)))
        assert len(rule.columns) == 2 + 6 + {"sgd": 0, "nesterov": 1, "adam": 2}[name]
    assert Constraints().constrain_rule(OPTIMIZERS["sgd"]) is OPTIMIZERS["sgd"]


def test_frozen_parameters_are_not_differentiated() -> None:
    from cgprimer.training.objective import Objective

    free = np.array([1.0, 0.0, 0.0, 1.0])
    objective = Objective(lecture(), free=free)
    assert objective.program.wrt == ("ab", "ac")
    whole = Objective(lecture())
    columns, values = whole.columns(lecture_data(20)), np.array([0.1, 0.2, 0.3, 0.4])
    known, found = whole.sums(columns, values, 20), objective.sums(columns, values, 20)
    assert found[0] == known[0]
    assert found[1] == pytest.approx(known[1] * free)


def test_arrays_are_constrained_element_by_element() -> None:
    graph = cgprimer.parse("input x[2]; parameter W[2,2], b[2]; xo = sum((W @ x + b)^2)")
    data = Dataset.from_arrays({"x": np.ones((4, 2))}, {"xo": np.zeros(4)})
    start = {"W": np.full((2, 2), 2.0), "b": np.ones(2)}
    for engine in ("plain", "cpu"):
        run = cgprimer.train(
            graph, data, engine=engine, start=start, epochs=20, batch_size=None, loss="out",
            freeze=["W[0,1]"], bounds={"b": (0.5, 2)}, max_norm={"W": 4.5, "b": 9.0},
        )  # fmt: skip
        learnt = run.parameters
        assert learnt["W"][0, 1] == 2.0
        assert (learnt["b"] >= 0.5).all()
        assert run.loss < run.start_loss


@pytest.mark.parametrize("optimizer_name", ["adam", "v = 0.9*v + g; p = p - rate*v", "l-bfgs"])
def test_a_run_is_taken_up_with_its_constraints(optimizer_name: str, tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "optimizer": optimizer_name, "learning_rate": 1e-5, "l2": 0.1, "freeze": ["cd"],
        "bounds": {"ab": (0, 0.5)}, "schedule": "steps", "hyper": {"every": 2},
    }  # fmt: skip
    whole = cgprimer.train(lecture(), lecture_data(), epochs=4, **settings)
    half = cgprimer.train(lecture(), lecture_data(), epochs=2, **settings)
    cgprimer.save_run(half, tmp_path / "run.json", lecture())
    known = cgprimer.load_run(tmp_path / "run.json")
    rest = cgprimer.train(lecture(), lecture_data(), epochs=4, resume=known, **settings)
    if optimizer_name == "l-bfgs":  # its memory begins anew
        assert rest.loss <= half.loss
    else:
        assert rest.parameters == whole.parameters
    assert len(half.state) == {"a": 3, "v": 1, "l": 0}[optimizer_name[0]]


# --- schedules -----------------------------------------------------------------------------------


def test_step_sizes_that_fall_by_a_factor() -> None:
    """F12: delta*gamma^t."""
    found = rates("exponential", 0.1, 4, 1, {"gamma": 0.9})(0, 4)
    assert found == pytest.approx([0.1, 0.09, 0.081, 0.0729], rel=1e-14)
    written = rates("rate*gamma^t", 0.1, 4, 1, {"gamma": 0.9})(0, 4)
    assert written == pytest.approx(found, rel=1e-14)
    run = one_step("xw = k", {"k": 0.0}, 0.1)
    data = Dataset.from_arrays({}, {"xw": [0.0]})
    run = cgprimer.train(
        cgprimer.parse("xw = k"), data, optimizer="sgd", learning_rate=0.1, loss="out", epochs=4,
        schedule="exponential", hyper={"gamma": 0.9}, start={"k": 0.0},
    )  # fmt: skip
    assert run.parameters["k"] == pytest.approx(-(0.1 + 0.09 + 0.081 + 0.0729), rel=1e-14)


@pytest.mark.parametrize(
    ("schedule", "settings", "expected"),
    [
        ("constant", {}, [1, 1, 1, 1, 1, 1]),
        ("cosine", {}, [(1 + math.cos(math.pi * k / 6)) / 2 for k in range(6)]),
        ("exponential", {"hyper": {"gamma": 0.5}}, [1, 1, 0.5, 0.5, 0.25, 0.25]),
        ("steps", {"hyper": {"factor": 0.1, "every": 2}}, [1, 1, 1, 1, 0.1, 0.1]),
        ("constant", {"warm_up": 2}, [0.25, 0.5, 0.75, 1, 1, 1]),
        ("1/(1 + step)", {}, [1 / (1 + k) for k in range(6)]),
        ("rate*(1 - t/epochs) + 0*steps", {}, [1, 1, 2 / 3, 2 / 3, 1 / 3, 1 / 3]),
        ("0.5", {}, [0.5] * 6),
    ],
)
def test_schedules(schedule: str, settings: dict[str, Any], expected: list[float]) -> None:
    made = rates(schedule, 1.0, 3, 2, **settings)
    assert made(0, 6) == pytest.approx(expected, rel=1e-14)
    assert made(3, 5) == pytest.approx(expected[3:5], rel=1e-14)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"schedule": "cosin"}, "'cosin' ... 'cosine'"),
        ({"schedule": "rate/(1 + dec*t)"}, "'dec' ... --hyper dec="),
        ({"schedule": "rate*(1 - t)"}, "-0"),
        ({"schedule": "rate/t"}, "inf ... 1"),
        ({"schedule": "rate*"}, ""),
        ({"schedule": "sin(rate, 2)"}, "sin"),
        ({"schedule": "exponential", "hyper": {"gama": 0.9}}, "'gama' ... 'gamma'"),
        ({"schedule": "steps", "hyper": {"every": 0}}, "every"),
        ({"schedule": "steps", "hyper": {"every": -3}}, "every ... -3"),
        ({"warm_up": -1}, "warm_up ... 0"),
        ({"l2": -1}, "l2 ... 0"),
        ({"l2": {"kk": 1}}, "'kk'"),
        ({"l1": "a"}, ""),
        ({"bounds": {"k": 1}}, "k=0:1"),
        ({"bounds": {"k": (2, 1)}}, "ascend"),
        ({"bounds": {"k": (0, 1)}, "start": {"k": 2}}, "k"),
        ({"freeze": ["k", "b"]}, ""),
        ({"freeze": ["q"]}, "'q'"),
        ({"freeze": ["k[0]"]}, "k[0]"),
        ({"max_norm": 0}, ""),
        ({"max_norm": {"k+q": 1}}, "'q'"),
        ({"max_norm": 1, "norm": 0.5}, "norm ... 1"),
        ({"scale": 2}, ""),
        ({"norm": 1}, "1 ... p ... max_norm ... --max-norm"),
        (
            {"max_norm": 1, "bounds": {"k": (5, 10)}},
            "max_norm ... 1",
        ),
        (
            {"max_norm": 1, "norm": "inf", "bounds": {"k": (-9, -2)}},
            "max_norm ... 1",
        ),
        ({"freeze": ["k"], "bounds": {"k": (5, 10)}}, "k"),
        ({"batch_size": 1_000_000}, "1,000,000 ... --batch-size"),
    ],
)
def test_mistakes(settings: dict[str, Any], said: str) -> None:
    with refused(CgprimerError, said):
        cgprimer.train(line(), line_data(), **settings)


def test_frozen_parameters_are_not_counted_in_a_norm() -> None:
    graph = cgprimer.parse("xw = a*xa + b; parameter a = 3")
    data = cgprimer.Dataset.from_arrays({"xa": [0.0, 1.0]}, {"xw": [5.0, 8.0]})
    run = cgprimer.train(graph, data, freeze=["a"], max_norm=1, learning_rate=0.1, epochs=90)
    assert (run.parameters["a"], run.parameters["b"]) == (3.0, pytest.approx(1.0))


def test_a_frozen_parameter_needs_a_value() -> None:
    graph = cgprimer.parse("xw = k*xa + b")
    with refused(UsageError, "--start b="):
        cgprimer.train(graph, line_data(), freeze=["b"])
    run = cgprimer.train(graph, line_data(), freeze=["b"], start={"b": -1}, epochs=2)
    assert run.parameters["b"] == -1


@pytest.mark.parametrize("engine", ENGINES)
def test_l1_shrinks_by_the_rate_of_each_parameter(engine: str) -> None:
    run = one_step(
        "xw = 1*u + 1*v", {"u": 0.5, "v": 0.5}, 0.1, l1=0.1, scale={"u": 2}, engine=engine
    )
    assert run.parameters == pytest.approx({"u": 0.5 - 0.2 - 2 * 0.2 * 0.1, "v": 0.5 - 0.1 - 0.02})
