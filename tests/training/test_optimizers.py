"""Optimizers, update rules, regularizers, bounds, norms, schedules and losses."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

import cgprimer
from cgprimer.core.loss_attachment import graph_with_loss
from cgprimer.core.loss_expressions import parse_loss
from cgprimer.core.operations.notation import unparse
from cgprimer.errors import (
    CgprimerError,
    DataError,
    MissingValueError,
    NonFiniteError,
    TapeError,
    UsageError,
)
from cgprimer.training.constraints import project_to_norm_ball, shrink_towards_zero
from cgprimer.training.data import Dataset
from cgprimer.training.objective import Objective, loss_and_gradient
from cgprimer.training.optimizers import OPTIMIZERS, optimizer
from cgprimer.training.schedules import rates
from cgprimer.training.update_rules import record_update
from tests.approval import approved, refused, warned
from tests.training.training_graphs import PLAIN, lecture, lecture_data, line, line_data, table

ENGINES = ("plain", "numpy", "cpu")
START = {"k": 0.25, "b": 0.5}
NOTHING = Dataset.from_arrays({}, {"xw": [0.0]})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("name", "settings", "expected"), table("optimizers: "))
def test_a_hundred_steps_are_those_of_pytorch(
    name: str, settings: dict[str, Any], expected: list[float], engine: str
) -> None:
    settings = {"optimizer": name.partition(" ")[0], **settings}
    run = cgprimer.train(
        line(), line_data(), engine=engine, start=START, epochs=100, learning_rate=0.02,
        schedule="constant", batch_size=None, **settings,
    )  # fmt: skip
    assert (run.parameters["k"], run.parameters["b"]) == pytest.approx(expected, rel=1e-10)


def test_default_hyperparameters_and_the_first_step_of_adam() -> None:
    """Case E9: with g = 1e-5 and epsilon = 1e-8 outside the root, 0.999000999 of the rate."""
    approved("\n".join(f"{name}: {OPTIMIZERS[name].hyper}" for name in OPTIMIZERS))
    zero, adam = np.zeros(2), optimizer("adam").update
    state = (zero, zero, np.array(0.0))
    moved, after = adam(zero, np.array([1e-5, -1e-5]), state, rate=0.5)
    assert moved == pytest.approx([-0.5 * 0.999000999, 0.5 * 0.999000999], rel=1e-9)
    assert float(after[2]) == 1
    assert adam(zero, np.array([100.0, 0.0]), state, rate=0.5)[0] == pytest.approx([-0.5, 0.0])
    assert (zero == 0).all()  # updates do not modify their arguments


@pytest.mark.parametrize(
    ("shuffle", "reduction"), [(False, "mean"), (True, "mean"), (False, "sum")]
)
@pytest.mark.parametrize("batch", [1, 2, 5, None])
def test_updates_use_the_gradients_of_batches(
    batch: int | None, shuffle: bool, reduction: str
) -> None:
    data = line_data()
    inputs, (k, b), losses, epoch_losses = data.inputs["xa"], (START["k"], START["b"]), [], []
    for epoch in range(2):
        order = np.random.default_rng([7, epoch]).permutation(5) if shuffle else np.arange(5)
        total = 0.0
        for first in range(0, 5, batch or 5):
            xa = inputs[order[first : first + (batch or 5)]]
            error = k * xa + b - (3 * xa - 1)
            losses.append((error**2).mean())  # whatever the reduction
            total += (error**2).sum()
            rate = 0.02 * (len(xa) if reduction == "sum" else 1)
            k, b = k - rate * (2 * error * xa).mean(), b - rate * (2 * error).mean()
        epoch_losses.append(total / 5)
    before = {name: column.copy() for name, column in data.columns.items()}
    for engine in ENGINES:
        run = cgprimer.train(
            line(), data, learning_rate=0.02, epochs=2, start=START, batch_size=batch, seed=7,
            shuffle=shuffle, reduction=reduction, engine=engine, **PLAIN,
        )  # fmt: skip
        assert run.parameters == pytest.approx({"k": k, "b": b}, rel=1e-12)
        assert run.step_losses == pytest.approx(losses, rel=1e-12)
        assert run.epoch_losses == pytest.approx(epoch_losses, rel=1e-12)
        errors = (START["k"] - 3) * inputs + START["b"] + 1
        assert run.start_loss == pytest.approx(errors @ errors / 5)
        assert run.steps == len(losses)
    np.testing.assert_equal(data.columns, before)


def test_state_of_a_written_rule_starts_at_zero_or_a_given_value() -> None:
    rule = optimizer("v = mu*v + g; p = p - rate*v", {"mu": 0.5, "v": 2.0})
    assert rule.hyper == {}
    p, state = rule.update(np.array([1.0]), np.array([3.0]), rule.start(np.array([1.0])), 0.1)
    assert (p, state) == (pytest.approx(0.6), (pytest.approx(4.0),))
    assert optimizer("d = rate*g; p = p - d").start(np.ones(3)) == ()
    assert len(record_update(optimizer("p = p - rate*g/t")).scalars) == 2
    with refused(UsageError, "'nu' ... v ... mu"):
        optimizer("v = mu*v + g; p = p - rate*v", {"mu": 0.9, "nu": 1})


@pytest.mark.parametrize(("text", "factors"), table("update rules with a common state"))
def test_state_that_is_common_to_all_parameters(text: str, factors: tuple[float, ...]) -> None:
    xa, (k, b) = line_data(1.5).inputs["xa"][0], (0.25, 0.5)
    for factor in factors:
        error = k * xa + b - (3 * xa - 1)
        k, b = k - factor * 2 * error * xa, b - factor * 2 * error
    for engine, batch in product(("numpy", "cpu"), (1, None)):
        run = cgprimer.train(
            line(), line_data(1.5), optimizer=text, learning_rate=0.1, epochs=3, batch_size=batch,
            engine=engine, start=START, schedule="constant",
        )  # fmt: skip
        assert run.parameters == pytest.approx({"k": k, "b": b}, rel=1e-12)


@pytest.mark.parametrize(("text", "marked"), table("update rules, refused"))
def test_wrong_rules_are_marked_in_their_text(text: str, marked: str) -> None:
    with refused(CgprimerError) as caught:
        optimizer(text)
    lines = str(caught.value).splitlines()
    carets = next(k for k, one in enumerate(lines) if set(one.strip()) == {"^"})
    begin = lines[carets].index("^")
    assert lines[carets - 1].ljust(99)[begin : begin + lines[carets].count("^")] == marked


def adamax(p: Any, g: Any, state: tuple[Any, ...], rate: float) -> tuple[Any, Any]:
    first, largest, steps = 0.9 * state[0] + 0.1 * g, np.maximum(0.999 * state[1], abs(g)), state[2]
    moved = p - rate * first / (1 - 0.9 ** (steps + 1)) / (largest + 1e-8)
    return moved, (first, largest, steps + 1)


def signed_root(p: Any, g: Any, state: Any, rate: float) -> tuple[Any, Any]:
    step = (1 - 2 * (g < 0)) * abs(-g) ** 0.5 + np.where(g > 0, np.sign(g), 2 * g)
    return p - rate * step, state


def clipped(p: Any, g: Any, state: Any, rate: float) -> tuple[Any, Any]:
    size = np.linalg.norm(g)
    return p - rate * (g / size if size > 1 else g), state


def first_doubled(p: Any, g: Any, state: Any, rate: float) -> tuple[Any, Any]:
    factor = 2.0 if state[0] == 0 else 1.0
    return p - rate * factor * g, (state[0] + 1,)


RULES: dict[str, tuple[Any, Any, bool]] = {  # update, start, whether it can be recorded
    "adamax": (adamax, lambda p: (np.zeros_like(p), np.zeros_like(p), np.array(0.0)), True),
    "signed-root": (signed_root, lambda _: (), True),
    "clipped": (clipped, lambda _: (), False),
    "by-sum": (lambda p, g, s, rate: (p - rate * sum(np.atleast_1d(g)), s), lambda _: (), False),
    "first-doubled": (first_doubled, lambda _: (np.array(0.0),), False),
}


@pytest.mark.parametrize("name", RULES)
def test_registered_rules_run_as_in_python(name: str) -> None:
    """Engines run rules that can be recorded; others run in Python with a warning."""
    update, start, recorded = RULES[name]
    values = np.array([START["k"], START["b"]])
    objective, state = Objective(line()), start(values)
    columns = objective.columns(line_data())
    for _ in range(9):
        gradient = objective.sums(columns, values, 5)[1] / 5
        values, state = update(values, gradient, state, 0.01)
    settings: dict[str, Any] = {"optimizer": name, "start": START, "epochs": 9}
    settings |= {"batch_size": None, "schedule": "constant"}
    rule = cgprimer.register_optimizer(name, update, start=start, rate=0.01)
    try:
        if recorded:
            assert len(record_update(rule).tape) > 2
            runs = [cgprimer.train(line(), line_data(), engine=e, **settings) for e in ENGINES]
        else:
            with refused(TapeError):
                record_update(rule)
            with warned(UserWarning, f"{name}'"):
                runs = [cgprimer.train(line(), line_data(), engine="cpu", **settings)]
    finally:
        cgprimer.unregister_optimizer(name)
    for run in runs:
        assert [run.parameters["k"], run.parameters["b"]] == pytest.approx(values, rel=1e-9)


def test_updates_that_fail_and_names_in_use_cannot_be_registered() -> None:
    for update, state in (
        (lambda p, g, state, rate: p, ()),
        (lambda p, g, state, rate: (p[:1], state), ()),
        (lambda p, g, state, rate: (p, ()), (np.zeros(2),)),
        (lambda p, g, state, rate: (p, state), (np.zeros(7),)),
        (lambda p, g, state, rate: (p - unknown, state), ()),  # noqa: F821
        (lambda p, g: (p, ()), ()),
        (5, ()),
    ):
        with refused(UsageError):
            cgprimer.register_optimizer("mine", update, start=lambda _, s=state: s)
        with refused(UsageError, "'mine'"):
            cgprimer.train(line(), line_data(), optimizer="mine")
    for call, *arguments in (
        (cgprimer.register_optimizer, "adam", clipped), (cgprimer.unregister_optimizer, "adam"),
        (cgprimer.register_loss, "squared-error", "out"), (cgprimer.unregister_loss, "adam"),
    ):  # fmt: skip
        with refused(UsageError, "registered"):
            call(*arguments)


@pytest.mark.parametrize("engine", ENGINES)
def test_two_coordinate_steps_reach_the_minimum_in_either_order(engine: str) -> None:
    """Case F12: 2x^2 + 3y^2, whose output is the loss."""
    bowl = cgprimer.parse("xw = 2*x1^2 + 3*y^2; parameter x1")
    second_losses = set()
    for seed in range(6):
        run = cgprimer.train(
            bowl, Dataset.from_arrays({}, {"xw": [0.0]}), optimizer="coordinates", epochs=2,
            learning_rate=1.0, schedule="constant", scale={"x1": 1 / 4, "y": 1 / 6}, loss="out",
            start={"x1": 4, "y": 5}, seed=seed, engine=engine,
        )  # fmt: skip
        assert run.parameters == pytest.approx({"x1": 0.0, "y": 0.0}, abs=1e-14)
        assert run.step_losses[0] == pytest.approx(107.0)
        second_losses.add(round(run.step_losses[1], 9))
    assert second_losses == {75.0, 32.0}


def test_l_bfgs_stops_at_the_minimum() -> None:
    run = cgprimer.train(lecture(), lecture_data(20), optimizer="l-bfgs", epochs=200)
    assert run.loss < 1e-18
    assert run.stopped == "converged"
    assert run.steps == run.epochs == len(run.step_losses) < 200
    few = cgprimer.train(lecture(), lecture_data(20), optimizer="l-bfgs", epochs=3)
    assert (few.stopped, few.steps, few.state) == ("finished", 3, ())
    assert few.step_losses == pytest.approx(run.step_losses[:3], rel=1e-9)
    more = cgprimer.train(lecture(), lecture_data(20), optimizer="l-bfgs", epochs=5, resume=few)
    assert more.loss <= few.loss  # without the memory of earlier iterations
    ridge = cgprimer.train(line(), line_data(), optimizer="l-bfgs", epochs=99, l2=0.1)
    x = np.stack([line_data().inputs["xa"], np.ones(5)], axis=1)
    expected = np.linalg.solve(x.T @ x / 5 + 0.1 * np.eye(2), x.T @ line_data().targets["xw"] / 5)
    assert [ridge.parameters["k"], ridge.parameters["b"]] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("text", "start", "arguments", "expected", "penalty"), table("one step of gradient descent")
)
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
@examples(max_examples=20)
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
def test_coordinates_and_constraints_of_arrays(engine: str) -> None:
    graph = cgprimer.parse("input x[3]; parameter W[2,3], b[2]; xo = sum(tanh(W @ x + b))")
    data = cgprimer.make_dataset(graph, truth={"W": 1.0, "b": 0.0}, samples=20)
    rules: dict[str, Any] = {"optimizer": "coordinates", "batch_size": None, "engine": engine}
    run = cgprimer.train(graph, data, epochs=40, **rules)
    assert run.loss < 0.8 * run.start_loss
    rules |= {"hyper": {"block": 3}, "freeze": ["W"], "start": {"W": 0.5}}
    one = cgprimer.train(graph, data, epochs=1, **rules)
    assert (one.parameters["b"] != one.start["b"]).all()
    np.testing.assert_array_equal(one.parameters["W"], one.start["W"])
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


@pytest.mark.parametrize(("schedule", "arguments", "expected"), table("schedules: "))
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


METHODS = cgprimer.methods()
ONE = cgprimer.parse("xo = k*x")
THREE = cgprimer.parse("xa = a*x; xb = b*x; xc = c*x")
ROW = cgprimer.parse("input x[2]; parameter W[3,2]; xo = W @ x")
SOFTMAX = "softmax-cross-entropy"
AT = {"ab": 0.3, "bc": 0.7, "cd": 1.1, "ac": -0.4}
NEAR: dict[str, Any] = {"rel": 1e-13, "abs": 1e-15}


@contextmanager
def registered_loss(loss: Any, name: str = "mine") -> Iterator[None]:
    cgprimer.register_loss(name, loss)
    try:
        yield
    finally:
        cgprimer.unregister_loss(name)


@pytest.mark.parametrize("engine", ["plain", "numpy", "cpu"])
def test_values_and_slopes(engine: str) -> None:
    for loss, out, target, value, slope in table("losses: "):
        data = Dataset.from_arrays({"x": [1.0]}, {"xo": [target]})
        found = loss_and_gradient(ONE, data, loss=loss, engine=engine)({"k": out})
        assert found[0] == pytest.approx(value, **NEAR), loss
        assert found[1]["k"] == pytest.approx(slope, **NEAR), loss
        at = {"k": out, "x": 1.0, "target": target}
        assert graph_with_loss(ONE, loss).evaluate(at)["loss"] == pytest.approx(value, **NEAR)
        assert cgprimer.gradient(ONE, at, loss=loss)["k"] == pytest.approx(slope, **NEAR)


@pytest.mark.parametrize(("logits", "target", "value", "slopes"), table("softmax: "))
def test_softmax_of_scalars_and_of_arrays(
    logits: list[float], target: Any, value: float, slopes: list[float]
) -> None:
    total_loss, known = pytest.approx(value, **NEAR), dict(zip("abc", slopes, strict=True))
    at = dict(zip("abc", logits, strict=True))
    if isinstance(target, int):  # a column of any name contains class indices
        at_point, columns = {"target": target}, {"label": [target]}
    else:
        at_point = {f"target_x{n}": p for n, p in zip("abc", target, strict=True)}
        columns = {f"x{n}": [p] for n, p in zip("abc", target, strict=True)}
    found = cgprimer.gradient(THREE, {"x": 1.0, **at, **at_point}, loss=SOFTMAX)
    assert found == pytest.approx(known, **NEAR)
    data = Dataset.from_arrays({"x": [1.0]}, columns)
    found = loss_and_gradient(THREE, data, loss=SOFTMAX)(at)
    assert found == (total_loss, pytest.approx(known, **NEAR))
    weights = [[n, 0.0] for n in logits]
    data = Dataset.from_arrays({"x": [[1.0, 0.0]]}, {"xo": [target]})
    for engine in ("plain", "cpu"):
        total, gradient = loss_and_gradient(ROW, data, loss=SOFTMAX, engine=engine)({"W": weights})
        assert total == total_loss
        np.testing.assert_allclose(gradient["W"][:, 0], slopes, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("method", METHODS)
def test_sum_and_mean_over_samples_by_numpy(method: str) -> None:
    xa = line_data().inputs["xa"]
    error = 2 * xa - (3 * xa - 1)
    expected = (error**2).sum(), np.array([(2 * error * xa).sum(), (2 * error).sum()])
    rel = 1e-6 if method == "finite-difference" else 1e-12
    for reduction, count in (("sum", 1), ("mean", 5)):
        call = loss_and_gradient(line(), line_data(), method=method, reduction=reduction)
        loss, gradient = call({"k": 2.0, "b": 0.0})
        assert loss == pytest.approx(expected[0] / count, rel=1e-12)
        assert [gradient["k"], gradient["b"]] == pytest.approx(expected[1] / count, rel=rel)
        assert {type(number) for number in (loss, *gradient.values())} == {float}


def test_steps_of_forward_differences_follow_the_magnitude_of_samples() -> None:
    """The forward quotient of x^2 is 2*x + h without rounding errors, if x is a power of two.

    Each sample has its own step h, but batch_mean requires one step, of the largest magnitude.
    """
    x = np.array([0.0, 1.0, -2.0, 32.0, -1024.0])
    steps = 2.0**-26 * np.array([1.0, 1.0, 2.0, 32.0, 1024.0])
    how: Any = {"method": "finite-difference", "scheme": "forward"}
    for text, expected in (("xw = x^2", steps), ("xw = x^2 + 0*batch_mean(x)", steps[-1])):
        graph = cgprimer.parse(text)
        np.testing.assert_array_equal(
            cgprimer.gradient(graph, {"x": x}, **how)["x"] - 2 * x, expected
        )
    points = [cgprimer.gradient(cgprimer.parse("xw = x^2"), {"x": v}, **how)["x"] for v in x]
    np.testing.assert_array_equal(points - 2 * x, steps)


def test_no_samples_several_outputs_and_single_precision() -> None:
    empty = Dataset.from_arrays({"xa": []}, {"xw": []})
    assert loss_and_gradient(line(), empty)({"k": 1.0, "b": 1.0}) == (0.0, {"k": 0.0, "b": 0.0})
    with refused(DataError):
        loss_and_gradient(line(), empty, reduction="mean")
    graph = cgprimer.parse("xv = k*xa; xw = b*xa")
    data = Dataset.from_arrays({"xa": [2.0]}, {"xv": [1.0], "xw": [3.0]})
    assert loss_and_gradient(graph, data)({"k": 1.0, "b": 1.0}) == (2.0, {"k": 4.0, "b": -4.0})
    double = loss_and_gradient(lecture(), lecture_data())(AT)
    single = loss_and_gradient(lecture(), lecture_data(), dtype="float32")(AT)
    assert single[0] == pytest.approx(double[0], rel=1e-5)
    assert single[1] == pytest.approx(double[1], rel=1e-4)
    assert single[0] != double[0]


def test_neuron_of_the_lecture() -> None:
    """Case B2."""
    graph = cgprimer.parse("z = w*x + b; yhat = 1/(1 + exp(-z)); input x; parameter w, b")
    loss, at = "(yhat - y)^2/2", {"y": 1.0, "x": 2.0, "w": 0.5, "b": -1.0}
    slopes = {"w": -0.25, "b": -0.125, "x": -0.0625}
    assert graph_with_loss(graph, loss).evaluate(at)["loss"] == 0.125
    assert cgprimer.trace(graph, at, loss=loss, method="reverse").of == "loss"
    assert "loss" in cgprimer.step(graph, at, loss=loss, methods=["reverse"], method="reverse")
    for result in cgprimer.compare(graph, at, loss=loss, wrt=[*slopes]).results:
        assert result.derivatives == pytest.approx(slopes, rel=1e-7)


@pytest.mark.parametrize(("text", "loss", "inputs"), table("graphs with a loss"))
def test_graphs_with_a_loss_are_graphs(text: str, loss: str, inputs: str) -> None:
    graph = cgprimer.parse(text)
    made = graph_with_loss(graph, loss)
    assert (" ".join(made.inputs), len(made.outputs)) == (inputs, 1)
    again = cgprimer.parse(made.text)
    for name in ("text", "outputs", "depends_on"):
        assert getattr(again, name) == getattr(made, name)
    assert graph_with_loss(graph, loss) is made  # cached
    assert graph_with_loss(graph, None) is graph


def test_an_output_is_minimized_without_targets() -> None:
    bowl = cgprimer.parse("l = 2*p^2 + 3*q^2")
    data = cgprimer.make_dataset(bowl, samples=4, targets=False)
    for engine in ("plain", "numpy", "cpu"):
        run = cgprimer.train(
            bowl, data, loss="output", start={"p": 4.0, "q": 5.0}, engine=engine, epochs=1,
            learning_rate=0.1, **PLAIN,
        )  # fmt: skip
        assert run.parameters == pytest.approx({"p": 4 * 0.6, "q": 5 * 0.4}, rel=1e-14)
    graph = cgprimer.parse("input x, y; yhat = k*x; l = (yhat - y)^2/2")
    data = Dataset.from_arrays({"x": [1.0, 2.0], "y": [3.0, 6.0]})
    with warned(UserWarning, "'l'"):
        found = cgprimer.train(graph, data, epochs=1)
    assert found.settings["loss"] == "output"
    assert found.parameters == cgprimer.train(graph, data, loss="output", epochs=1).parameters


def uneven(out: Any, target: Any) -> Any:
    """Return an error that is three times as large above the target as below it."""
    error = out - target
    return 3 * error**2 if error > 0 else error**2


@pytest.mark.parametrize("optimizer", ["sgd", "coordinates"])
@pytest.mark.parametrize("batch", [1, 2, None])
def test_a_function_with_an_if_runs_in_python_with_a_warning(
    batch: int | None, optimizer: str
) -> None:
    data = Dataset.from_arrays({"x": [1.0, 2.0, 3.0]}, {"xo": [1.0, 5.0, 5.5]})
    same = "where(less(target, out), 3*(out - target)^2, (out - target)^2)"
    rules: dict[str, Any] = {"batch_size": batch, "epochs": 3, "start": {"k": 2.0}}
    rules["optimizer"] = optimizer
    expected = cgprimer.train(ONE, data, loss=same, **rules)
    with registered_loss(uneven):
        with warned(UserWarning, "'mine'") as caught:
            run = cgprimer.train(ONE, data, loss="mine", **rules)
        assert len(caught) == 1
        with warned(UserWarning):
            found = loss_and_gradient(ONE, data, loss="mine")({"k": 2.0})
        with refused(UsageError):
            graph_with_loss(ONE, "mine")
    by_hand = 3 * 1.0 + 1.0 + 3 * 0.25, 2 * (3 * 1.0 - 1.0 * 2 + 3 * 0.5 * 3)
    assert (found[0], found[1]["k"]) == pytest.approx(by_hand, rel=1e-14)
    assert run.parameters == pytest.approx(expected.parameters, rel=1e-12)
    assert run.step_losses == pytest.approx(expected.step_losses, rel=1e-12)


def test_functions_of_arrays_and_of_several_outputs() -> None:
    def by_element(out: Any, target: Any) -> Any:
        if not getattr(out, "ndim", 0):
            return uneven(out, target)
        error = (out - target) ** 2
        return error.sum() if float(error.data.max()) < 4 else 2 * error.sum()

    arrays = Dataset.from_arrays({"x": [[1.0, 0.5], [3.0, 1.0]]}, {"xo": [[0, 1, 0], [1, 0, 0]]})
    scalars = Dataset.from_arrays({"x": [1.0]}, {"xa": [0.0], "xb": [3.0], "xc": [1.0]})
    at = np.arange(6.0).reshape(3, 2) / 4
    with registered_loss(by_element), warned(UserWarning):
        total, gradient = loss_and_gradient(ROW, arrays, loss="mine")({"W": at})
        found = loss_and_gradient(THREE, scalars, loss="mine")({"a": 1.0, "b": 1.0, "c": 2.0})
    assert found == (3 + 4 + 3, {"a": 6.0, "b": -4.0, "c": 6.0})
    error = arrays.inputs["x"] @ at.T - arrays.targets["xo"]
    weight = np.where((error**2).max(axis=1) < 4, 1.0, 2.0)
    assert total == pytest.approx((weight * (error**2).sum(axis=1)).sum(), rel=1e-13)
    expected = (2 * weight[:, None] * error).T @ arrays.inputs["x"]
    np.testing.assert_allclose(gradient["W"], expected, rtol=1e-13)
    with registered_loss(uneven), warned(UserWarning), refused(UsageError, "out=[ ... arrays"):
        cgprimer.train(ROW, arrays, loss="mine")


def test_registered_losses_are_recorded_and_can_change_their_meaning() -> None:
    with registered_loss(lambda out, target: np.sqrt((out - target) ** 2 + 1) - 1):
        assert unparse(parse_loss("mine")) == "sqrt((out - target)^2 + 1) - 1"
        found = cgprimer.gradient(ONE, {"k": 2.0, "x": 1.0, "target": 1.0}, loss="mine")
        assert found["k"] == pytest.approx(1 / math.sqrt(2))
    for text in ("(out - target)^2", "(out - target)^4"):
        known = loss_and_gradient(lecture(), lecture_data(), loss=text)(AT)
        with registered_loss(text):
            assert loss_and_gradient(lecture(), lecture_data(), loss="mine")(AT) == known


def test_losses_that_cannot_be_registered() -> None:
    for loss in (lambda out: out, lambda out, target: None, lambda out, target: out.nothing,
                 "goal - out", "target", "(out", "", 5):  # fmt: skip
        with refused(CgprimerError):
            cgprimer.register_loss("mine", loss)
        with refused(UsageError, "'mine'"):
            cgprimer.train(line(), line_data(), loss="mine")


def test_wrong_losses_arguments_columns_and_parameters_are_named() -> None:
    wrong = {"reduction": "product", "dtype": "float16", "engine": "abacus", "step": 0.1}
    for name, value in wrong.items():
        with refused(UsageError, name):
            loss_and_gradient(line(), line_data(), **{name: value})
    with refused(DataError, "'xw'"):
        loss_and_gradient(line(), Dataset.from_arrays({"xa": [1.0]}))
    with refused(MissingValueError, "'b'"):
        loss_and_gradient(line(), line_data())({"k": 1.0})
    with refused(UsageError):
        loss_and_gradient(cgprimer.parse("xw = 2*xa"), line_data())
    for loss in table("losses, refused"):
        with refused(CgprimerError) as caught:
            loss_and_gradient(line(), line_data(), loss=loss)
        assert caught.value.exit_code == 2


def test_targets_and_outputs_are_checked() -> None:
    good = Dataset.from_arrays({"x": [1.0, 2.0]}, {"xo": [1.0, 1.0]})
    for loss, target, values in table("targets, refused"):
        data = Dataset.from_arrays({"x": [1.0, 2.0]}, {"xo": [1.0, target]})
        for call in (cgprimer.train, loss_and_gradient):
            with refused(CgprimerError, values):
                call(ONE, data, loss=loss)
        with refused(CgprimerError, values):
            cgprimer.train(ONE, good, loss=loss, validation=data)
    for graph, inputs, targets in (
        (THREE, [1.0, 2.0], {"label": [0, 3]}), (THREE, [1.0, 2.0], {"label": [0.5, 1]}),
        (ROW, [[1.0, 0.0]] * 2, {"xo": [[1, 0, 0], [0.5, 0.25, 0]]}),
    ):  # fmt: skip
        with refused(DataError):
            cgprimer.train(graph, Dataset.from_arrays({"x": inputs}, targets), loss=SOFTMAX)
    with refused(DataError, "0 ... 2"):
        cgprimer.gradient(THREE, {"x": 1, "a": 1, "b": 1, "c": 1, "target": 3}, loss=SOFTMAX)
    with refused(DataError, "0 ... 2"):
        cgprimer.gradient(ONE, {"k": 1, "x": 1, "target": [1, -1, 0]}, loss="hinge")
    with refused(UsageError, "k ... 3"):
        graph_with_loss(cgprimer.parse("xa = k*x; xb = 2*x; xc = x"), "(out - target)^2 + k^2")
    with refused(UsageError, "3 ... xa ... xb ... xc"):
        graph_with_loss(THREE, "output")
    with refused(NonFiniteError, "cross-entropy-logit"):
        cgprimer.train(ONE, good, loss="cross-entropy", start={"k": 0.0})
