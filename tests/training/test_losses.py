"""Losses: values of PyTorch, loss nodes of graphs, Python functions, targets and classes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.core.loss_attachment import graph_with_loss
from cgprimer.core.loss_expressions import parse_loss
from cgprimer.core.operations.notation import unparse
from cgprimer.errors import CgprimerError, DataError, MissingValueError, NonFiniteError, UsageError
from cgprimer.training.data import Dataset
from cgprimer.training.objective import loss_and_gradient
from tests.approval import refused, warned
from tests.training.training_graphs import PLAIN, lecture, lecture_data, line, line_data, table

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


@pytest.mark.parametrize("loss", table("losses, refused"))
def test_wrong_losses(loss: Any) -> None:
    with refused(CgprimerError) as caught:
        loss_and_gradient(line(), line_data(), loss=loss)
    assert caught.value.exit_code == 2


def test_wrong_arguments_columns_and_parameters_are_named() -> None:
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


def test_targets_and_outputs_are_checked() -> None:
    good = Dataset.from_arrays({"x": [1.0, 2.0]}, {"xo": [1.0, 1.0]})
    for loss, target, values in (
        ("cross-entropy", 1.25, "'xo' ... 1.25"), ("cross-entropy-logit", -0.25, "-0.25 ... 1"),
        ("hinge", 0.5, "0.5 ... -1"), ("(xoo - y)^2", 1.0, "'xo'"), ("(xo - y)^2", 1.0, "'y'"),
    ):  # fmt: skip
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
