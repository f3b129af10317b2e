"""Losses by name and as text, and the function of loss and gradient."""

from __future__ import annotations

import numpy as np
import pytest

import cgprimer
from cgprimer.core.loss_expressions import LOSSES
from cgprimer.core.loss_node import with_loss
from cgprimer.errors import CgprimerError, DataError, MissingValueError, UsageError
from cgprimer.training.data import Dataset
from cgprimer.training.objective import loss_and_gradient
from tests.approval import refused, warned
from tests.training.training_graphs import TRUTH, lecture, lecture_data, line, line_data

METHODS = cgprimer.methods()


@pytest.mark.parametrize("method", METHODS)
def test_values_by_hand(method: str) -> None:
    """xw = k*xa + b at k=2, b=0: errors -xa + 1."""
    xa = np.array([0.5, -1.0, 2.0, 0.25, 1.5])
    error = 2 * xa - (3 * xa - 1)
    loss, gradient = loss_and_gradient(line(), line_data(), method=method)({"k": 2.0, "b": 0.0})
    assert loss == pytest.approx((error**2).sum(), rel=1e-12)
    expected = {"k": (2 * error * xa).sum(), "b": (2 * error).sum()}
    assert gradient == pytest.approx(expected, rel=1e-6 if method == METHODS[0] else 1e-12)
    assert type(loss) is float
    assert all(type(g) is float for g in gradient.values())


def test_mean_is_the_sum_over_the_samples() -> None:
    total = loss_and_gradient(line(), line_data())({"k": 2.0, "b": 0.0})
    mean = loss_and_gradient(line(), line_data(), reduction="mean")({"k": 2.0, "b": 0.0})
    assert mean[0] == pytest.approx(total[0] / 5)
    assert mean[1] == pytest.approx({n: g / 5 for n, g in total[1].items()})


def test_at_the_truth_everything_is_zero() -> None:
    loss, gradient = loss_and_gradient(lecture(), lecture_data())(TRUTH)
    assert loss == 0.0
    assert gradient == dict.fromkeys(TRUTH, 0.0)


@pytest.mark.parametrize("method", METHODS[1:])
def test_against_differences_of_the_loss(method: str) -> None:
    call = loss_and_gradient(lecture(), lecture_data(), method=method, reduction="mean")
    at = {"ab": 0.3, "bc": 0.7, "cd": 1.1, "ac": -0.4}
    _, gradient = call(at)
    for name, value in at.items():
        up, down = ({**at, name: value + h} for h in (1e-5, -1e-5))
        assert gradient[name] == pytest.approx((call(up)[0] - call(down)[0]) / 2e-5, rel=1e-6)


@pytest.mark.parametrize(
    ("loss", "value", "slope"),
    [
        ("squared-error", 0.25, -1.0),
        ("half-squared-error", 0.125, -0.5),
        ("absolute-error", 0.5, -1.0),
        ("cross-entropy", np.log(2), -2.0),
        ("(out - target)^4", 0.0625, -0.5),
        ("out*target", 0.5, 1.0),
        ("max(0, 1 - out*target)", 0.5, -1.0),
        ("out", 0.5, 1.0),
    ],
)
def test_every_loss(loss: str, value: float, slope: float) -> None:
    """One sample with output k = 0.5 and target 1."""
    data = Dataset.from_arrays({"xa": [1.0]}, {"xw": [1.0]})
    found = loss_and_gradient(cgprimer.parse("xw = k*xa"), data, loss=loss)({"k": 0.5})
    assert found[0] == pytest.approx(value, rel=1e-14)
    assert found[1]["k"] == pytest.approx(slope, rel=1e-14)


def test_a_loss_of_python_by_coordinates_is_that_by_descent() -> None:
    cgprimer.register_loss("uneven", lambda o, t: (o - t) ** 2 if o > t else abs(o - t))
    data = Dataset.from_arrays({"xa": [1.0, 2.0, 3.0]}, {"xw": [1.0, 4.0, 1.0]})
    settings = {"loss": "uneven", "epochs": 5, "learning_rate": 0.1, "start": {"k": 0.7, "b": 0}}
    try:
        with warned(UserWarning):
            runs = [
                cgprimer.train(line(), data, optimizer=name, hyper=hyper, **settings)
                for name, hyper in (("sgd", None), ("coordinates", {"block": 2}))
            ]
        assert runs[1].parameters == pytest.approx(runs[0].parameters, rel=1e-12)
        assert runs[1].epoch_losses == pytest.approx(runs[0].epoch_losses, rel=1e-12)
        arrays = Dataset.from_arrays({"x": np.eye(2)}, {"xo": np.eye(2)})
        graph = cgprimer.parse("input x[2]; parameter W[2,2]; xo = W @ x")
        with (
            warned(UserWarning),
            refused(UsageError, "out=[ ... arrays"),
        ):
            cgprimer.train(graph, arrays, loss="uneven")
    finally:
        cgprimer.unregister_loss("uneven")


def test_frames_have_the_columns_that_a_loss_names() -> None:
    data = Dataset.from_arrays({"xa": [1.0, 2.0, 3.0]}, {"y": [1.0, 4.0, 1.0]})
    frame, loss = data.to_pandas(), "(xw - y)^2 + 0.5*k^2"
    at = {"k": 2.0, "b": 1.0}
    expected = loss_and_gradient(line(), data, loss=loss, reduction="mean")(at)
    assert loss_and_gradient(line(), frame, loss=loss, reduction="mean")(at) == expected
    fun, _, names = cgprimer.flat_objective(line(), frame, loss=loss)
    value, slopes = fun(np.array([at[name] for name in names]))
    assert value == pytest.approx(expected[0])
    assert dict(zip(names, slopes, strict=True)) == pytest.approx(expected[1])


def test_losses_of_several_outputs_add_up() -> None:
    graph = cgprimer.parse("xv = k*xa; xw = b*xa")
    data = Dataset.from_arrays({"xa": [2.0]}, {"xv": [1.0], "xw": [3.0]})
    loss, gradient = loss_and_gradient(graph, data)({"k": 1.0, "b": 1.0})
    assert loss == 2.0
    assert gradient == {"k": 4.0, "b": -4.0}


def test_a_loss_is_a_vertex_of_the_tape() -> None:
    for name in {*LOSSES} - {"softmax-cross-entropy"}:  # that one needs several outputs
        tape = with_loss(cgprimer.tape(lecture()), name)
        assert list(tape.outputs) == ["loss.sample"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("squared-eror", "'squared-error'"),
        ("nosuch", ""),
        ("target^2", "'target'"),
        ("xww - 1", "'xw'"),
        ("out - goal", ""),
        ("(out - target", "<loss>:1"),
        ("tahn(out)", "tanh"),
        ("", ""),
        ("out = target", "<loss>:1"),
    ],
)
def test_a_wrong_loss(text: str, said: str) -> None:
    with refused(CgprimerError, said) as caught:
        loss_and_gradient(line(), line_data(), loss=text)
    assert caught.value.exit_code == 2


def test_wrong_arguments() -> None:
    with refused(UsageError, "'product'"):
        loss_and_gradient(line(), line_data(), reduction="product")
    with refused(UsageError, "'float16'"):
        loss_and_gradient(line(), line_data(), dtype="float16")
    with refused(UsageError):
        loss_and_gradient(line(), line_data(), engine="abacus")
    with refused(UsageError):
        loss_and_gradient(line(), line_data(), method="backward")
    with refused(UsageError, "'step'"):
        loss_and_gradient(line(), line_data(), step=0.1)
    with pytest.raises(MissingValueError, match="'b'"):
        loss_and_gradient(line(), line_data())({"k": 1.0})
    with refused(UsageError):
        loss_and_gradient(cgprimer.parse("xw = 2*xa"), line_data())


def test_missing_columns_are_named() -> None:
    with refused(DataError, "'xa' ... xb"):
        loss_and_gradient(line(), Dataset.from_arrays({"xb": [1.0]}, {"xw": [1.0]}))
    with refused(DataError, "'xw'"):
        loss_and_gradient(line(), Dataset.from_arrays({"xa": [1.0]}))


def test_no_samples() -> None:
    empty = Dataset.from_arrays({"xa": []}, {"xw": []})
    assert loss_and_gradient(line(), empty)({"k": 1.0, "b": 1.0}) == (0.0, {"k": 0.0, "b": 0.0})
    with refused(DataError):
        loss_and_gradient(line(), empty, reduction="mean")


def test_float32_is_close_to_float64() -> None:
    at = {"ab": 0.3, "bc": 0.7, "cd": 1.1, "ac": -0.4}
    double = loss_and_gradient(lecture(), lecture_data())(at)
    single = loss_and_gradient(lecture(), lecture_data(), dtype="float32")(at)
    assert single[0] == pytest.approx(double[0], rel=1e-5)
    assert single[1] == pytest.approx(double[1], rel=1e-4)
    assert single[0] != double[0]
