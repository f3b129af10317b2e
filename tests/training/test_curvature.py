"""The stable learning rate: eigenvalues by numpy, and what gradient descent does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.errors import NonFiniteError
from cgprimer.training.curvature import stable_learning_rate
from tests.approval import approved, refused
from tests.training.training_graphs import PLAIN

LINE = cgprimer.parse("xw = k*xa + b; parameter k = 1, b = 2")
DATA = cgprimer.make_dataset(LINE, samples=100)
DESIGN = np.stack([DATA.inputs["xa"], np.ones(100)], axis=1)
HESSIAN = 2 * DESIGN.T @ DESIGN / 100


@pytest.mark.parametrize(
    ("settings", "curvature"),
    [
        ({}, np.linalg.eigvalsh(HESSIAN).max()),
        ({"reduction": "sum"}, 100 * np.linalg.eigvalsh(HESSIAN).max()),
        ({"l2": 3.0}, np.linalg.eigvalsh(HESSIAN).max() + 6),
        ({"freeze": ["b"]}, HESSIAN[0, 0]),
        ({"scale": {"k": 4.0}}, np.linalg.eigvals(np.diag([4, 1]) @ HESSIAN).max()),
    ],
)
def test_descent_diverges_above_the_stable_rate(settings: dict[str, Any], curvature: float) -> None:
    for factor, diverges in ((0.95, False), (1.1, True)):
        run = cgprimer.train(
            LINE, DATA, learning_rate=factor * 2 / curvature, start={"k": 4.0, "b": 7.0},
            batch_size=None, epochs=400, **PLAIN, **settings,
        )  # fmt: skip
        assert (run.stopped == "diverged") == diverges, run.loss
    reported = float(run.reason.rpartition("about ")[2])
    assert reported == pytest.approx(2 / curvature, rel=0.06)  # two digits
    if not settings:
        found = stable_learning_rate(LINE, DATA, {"k": 0.3, "b": 5.0})
        assert found == pytest.approx(2 / curvature, rel=1e-3)


def test_curvature_of_arrays_by_finite_differences() -> None:
    graph = cgprimer.parse("input x[3]; parameter W[2,3], v[2]; xo = v @ tanh(W @ x)")
    data = cgprimer.make_dataset(graph, truth={"W": 0.3, "v": 1.0}, samples=40)
    vector = np.random.default_rng(0).normal(size=8)

    def gradient(at: np.ndarray) -> np.ndarray:
        hidden = np.tanh(data.inputs["x"] @ at[:6].reshape(2, 3).T)
        error = 2 * (hidden @ at[6:] - data.targets["xo"]) / 40
        inner = error[:, None] * at[6:] * (1 - hidden**2)
        return np.concatenate([(inner.T @ data.inputs["x"]).ravel(), hidden.T @ error])

    steps = 1e-5 * np.eye(8)
    hessian = np.array([(gradient(vector + s) - gradient(vector - s)) / 2e-5 for s in steps])
    largest = np.linalg.eigvalsh((hessian + hessian.T) / 2).max()
    point = {"W": vector[:6].reshape(2, 3), "v": vector[6:]}
    assert stable_learning_rate(graph, data, point) == pytest.approx(2 / largest, rel=1e-3)


def test_negative_curvature_does_not_count() -> None:
    # (a^2 - 3)^2 has the second derivative 12 a^2 - 12, which is -12 at 0; that of k^2/2 is 1.
    graph = cgprimer.parse("xw = (a^2 - 3)^2 + k^2/2 + 0*xa")
    data = cgprimer.Dataset.from_arrays({"xa": [0.0]}, {"xw": [0.0]})
    found = stable_learning_rate(graph, data, {"a": 0.0, "k": 0.0}, loss="out")
    assert found == pytest.approx(2.0, rel=1e-3)
    for text in ("xw = -k^2 + 0*xa", "xw = k + 0*xa"):
        assert stable_learning_rate(cgprimer.parse(text), data, {"k": 0.0}, loss="out") == np.inf


def test_reasons_name_the_stable_rate_if_it_was_exceeded() -> None:
    run = cgprimer.train(LINE, DATA, learning_rate=1.5, epochs=30, batch_size=None, **PLAIN)
    approved(run.reason, "0.99")
    with refused(NonFiniteError, "0.99"):
        cgprimer.train(LINE, DATA, learning_rate=1e30, epochs=30, batch_size=None, **PLAIN)
    graph = cgprimer.parse("xw = sqrt(k)*xa")
    data = cgprimer.Dataset.from_arrays({"xa": [1.0, 2.0]}, {"xw": [-1.0, -2.0]})
    with pytest.raises(NonFiniteError) as caught:
        cgprimer.train(graph, data, optimizer="sgd", learning_rate=0.05, start={"k": 0.5})
    assert "stable" not in str(caught.value)
