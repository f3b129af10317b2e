"""The stable learning rate: against eigenvalues that numpy finds, and against what descent does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.errors import NonFiniteError
from cgprimer.training.curvature import stable_learning_rate
from tests.approval import approved, refused

LINE = cgprimer.parse("xw = k*xa + b; parameter k = 1, b = 2")


def test_it_is_two_over_the_largest_eigenvalue() -> None:
    data = cgprimer.make_dataset(LINE, samples=100)
    columns = np.stack([data.inputs["xa"], np.ones(100)], axis=1)
    largest = np.linalg.eigvalsh(2 * columns.T @ columns / 100).max()
    found = stable_learning_rate(LINE, data, {"k": 0.3, "b": 5.0})
    assert found == pytest.approx(2 / largest, rel=1e-3)


def test_arrays_agree_with_their_hessian() -> None:
    graph = cgprimer.parse("input x[3]; parameter W[2,3], v[2]; xo = v @ tanh(W @ x)")
    data = cgprimer.make_dataset(graph, truth={"W": 0.3, "v": 1.0}, samples=40)
    random = np.random.default_rng(0)
    point = {"W": random.normal(size=(2, 3)), "v": random.normal(size=2)}
    at = point | {"x": data.inputs["x"], "target": data.targets["xo"]}
    found = cgprimer.hessian(graph, at, loss="squared-error")
    blocks = [
        [np.asarray(found[a][b]).mean(axis=0).reshape(np.size(point[a]), -1) for b in point]
        for a in point
    ]
    largest = np.linalg.eigvalsh(np.block(blocks)).max()
    assert stable_learning_rate(graph, data, point) == pytest.approx(2 / largest, rel=1e-3)


def test_a_surface_that_bends_down_most_has_the_rate_of_its_largest_bend_up() -> None:
    # (a^2 - 3)^2 has the second derivative 12 a^2 - 12: -12 at 0; k^2/2 bends up by 1.
    graph = cgprimer.parse("xw = (a^2 - 3)^2 + k^2/2 + 0*xa")
    data = cgprimer.Dataset.from_arrays({"xa": [0.0]}, {"xw": [0.0]})
    point = {"a": 0.0, "k": 0.0}
    assert stable_learning_rate(graph, data, point, loss="out") == pytest.approx(2.0, rel=1e-3)
    flat = cgprimer.parse("xw = -k^2 + 0*xa")
    assert stable_learning_rate(flat, data, {"k": 0.0}, loss="out") == np.inf


@pytest.mark.parametrize(("share", "grows"), [(0.95, False), (1.05, True)])
def test_descent_is_stable_up_to_it(share: float, grows: bool) -> None:
    data = cgprimer.make_dataset(LINE, samples=100)
    rate = share * stable_learning_rate(LINE, data, {"k": 0.0, "b": 0.0})
    settings = {"optimizer": "sgd", "schedule": "constant", "batch_size": None, "epochs": 200}
    run = cgprimer.train(LINE, data, learning_rate=rate, **settings)
    assert (run.loss > run.start_loss) == grows


def test_a_run_that_diverges_says_it() -> None:
    data = cgprimer.make_dataset(LINE, samples=100)
    settings = {"optimizer": "sgd", "schedule": "constant", "batch_size": None}
    run = cgprimer.train(LINE, data, learning_rate=1.5, epochs=30, **settings)
    approved(run.reason, "0.99")
    with refused(NonFiniteError, "0.99"):
        cgprimer.train(LINE, data, learning_rate=1e30, epochs=30, **settings)
    lecture = cgprimer.load("lecture")
    with refused(NonFiniteError):
        cgprimer.train(lecture, cgprimer.make_dataset(lecture), optimizer="sgd", learning_rate=0.01)


def test_a_rate_that_is_small_enough_is_not_blamed() -> None:
    graph = cgprimer.parse("xw = sqrt(k)*xa")
    data = cgprimer.Dataset.from_arrays({"xa": [1.0, 2.0]}, {"xw": [-1.0, -2.0]})
    with pytest.raises(NonFiniteError) as failed:
        cgprimer.train(graph, data, optimizer="sgd", learning_rate=0.05, start={"k": 0.5})
    assert "stable" not in str(failed.value)


@pytest.mark.parametrize(
    ("settings", "curvature"),
    [
        ({}, lambda h, n: np.linalg.eigvalsh(h).max()),
        ({"reduction": "sum"}, lambda h, n: n * np.linalg.eigvalsh(h).max()),
        ({"l2": 3.0}, lambda h, n: np.linalg.eigvalsh(h).max() + 6),
        ({"freeze": ["b"]}, lambda h, n: h[0, 0]),
        ({"scale": {"k": 4.0}}, lambda h, n: np.linalg.eigvals(np.diag([4, 1]) @ h).max()),
    ],
)
def test_the_rate_is_that_of_the_steps_as_they_are(
    settings: dict[str, Any], curvature: Any
) -> None:
    data = cgprimer.make_dataset(LINE, samples=100)
    columns = np.stack([data.inputs["xa"], np.ones(100)], axis=1)
    stable = 2 / curvature(2 * columns.T @ columns / 100, 100)
    given = {"optimizer": "sgd", "schedule": "constant", "batch_size": None, "epochs": 400}
    for share, grows in ((0.9, False), (1.1, True)):
        start = {"k": 4.0, "b": 7.0}
        run = cgprimer.train(
            LINE, data, learning_rate=share * stable, start=start, **given, **settings
        )
        assert (run.stopped == "diverged") == grows, run.loss
    said = float(run.reason.rpartition("about ")[2])
    assert said == pytest.approx(stable, rel=0.06)  # two digits


@pytest.mark.parametrize("function", [cgprimer.identifiability, cgprimer.stable_learning_rate])
def test_data_may_be_a_file(function, tmp_path: Path) -> None:
    data = cgprimer.make_dataset(LINE, truth={"k": 1, "b": 2}, samples=20)
    data.save(tmp_path / "line.csv")
    point = {"k": 0.5, "b": 1.0}
    assert function(LINE, tmp_path / "line.csv", point) == function(LINE, data, point)
    with pytest.raises(cgprimer.UsageError):
        function(LINE, 3, point)
