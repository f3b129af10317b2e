"""Convergence, stable learning rates by eigenvalues of numpy, and undetermined parameters."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.errors import NonFiniteError
from cgprimer.training.convergence import estimate_decrease, has_converged
from cgprimer.training.curvature import stable_learning_rate
from cgprimer.training.data import Dataset
from cgprimer.training.identifiability import Identifiability, format_combination, identifiability
from tests.approval import approved, refused
from tests.training.training_graphs import PLAIN, TRUTH, lecture, line, table


@pytest.mark.parametrize("noise", [0.0, 20.0])
@pytest.mark.parametrize(
    ("settings", "converged"),
    [
        ({}, True),
        ({"epochs": 0}, False),
        ({"optimizer": "sgd", "learning_rate": 1e-6, "epochs": 3}, False),
        ({"batch_size": "all", "epochs": 30}, False),
        ({"batch_size": 1, "epochs": 20}, True),
    ],
)
def test_runs_of_the_lecture_graph(settings: dict[str, Any], converged: bool, noise: float) -> None:
    data = cgprimer.make_dataset(lecture(), samples=500, truth=TRUTH, noise=noise)
    run = cgprimer.train(lecture(), data, **settings)
    assert run.epochs == settings.get("epochs", 600)
    assert has_converged(run, lecture(), data) == converged


@pytest.mark.parametrize("text", ["xw = k*xa + b", "xw = k*xa + b + c"])  # of rank 2
def test_the_decrease_is_that_of_least_squares(text: str) -> None:
    graph = cgprimer.parse(text)
    data = cgprimer.make_dataset(line(), samples=1000, noise=0.5)
    x, y = data.inputs["xa"], data.targets["xw"]
    minimum = np.mean((y - np.polyval(np.polyfit(x, y, 1), x)) ** 2)
    for epochs in (0, 1, 4, 20):
        run = cgprimer.train(graph, data, epochs=epochs, start={"k": 1.0, "b": 1.0})
        found = estimate_decrease(run, graph, data)
        assert found == pytest.approx(1 - minimum / run.loss, abs=1e-9)
    assert found < 0.01  # noise remains


@pytest.mark.parametrize("loss", ["cross-entropy", "(out - target)^4"])
def test_other_losses_have_converged_if_they_no_longer_fall(loss: str) -> None:
    graph = cgprimer.parse("xo = sigmoid(w*xa + b)")
    steps = cgprimer.parse("xo = heaviside(xa - t); parameter t = 0.2")
    data = cgprimer.make_dataset(steps, samples=400, seed=3)
    for epochs, l2, converged in ((12, None, False), (200, 0.01, True), (0, None, False)):
        settings = {"learning_rate": 0.05, "schedule": "constant", "epochs": epochs, "l2": l2}
        run = cgprimer.train(graph, data, loss=loss, **settings)
        assert has_converged(run, graph, data) == converged


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
            batch_size=None, epochs=150, **PLAIN, **settings,
        )  # fmt: skip
        assert (run.stopped == "diverged") == diverges, run.loss
    reported = float(run.reason.rpartition("about ")[2])
    assert reported == pytest.approx(2 / curvature, rel=0.06)  # two digits
    if not settings:
        found = stable_learning_rate(LINE, DATA, {"k": 0.3, "b": 5.0})
        assert found == pytest.approx(2 / curvature, rel=1e-3)


def test_stable_rate_of_arrays_by_finite_differences() -> None:
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


def identify(text: str, values: dict[str, float], *samples: float) -> Identifiability:
    """Analyze a graph with given samples of its inputs."""
    graph = cgprimer.parse(text)
    columns = dict.fromkeys(graph.inputs, samples or (0.5, -1.0, 2.0, 3.0))
    targets = {} if graph.inputs else {"xw": [1.0, 2.0]}
    found = identifiability(graph, Dataset.from_arrays(columns, targets), values)
    assert found is not None
    return found


@pytest.mark.parametrize(("text", "at"), table("Jacobians"))
def test_known_jacobians(text: str, at: dict[str, float]) -> None:
    found, graph = identify(text, at), cgprimer.parse(text)
    sentences = found.sentences(graph.outputs)
    approved("\n".join([f"rank {found.rank}; everywhere: {found.everywhere}", *sentences]))
    assert {*found.undetermined()} == {name for d in found.null_directions for name in d}
    inputs = dict.fromkeys(graph.inputs, 0.7)
    for direction in found.null_directions:
        for slopes in cgprimer.jacobian(graph, {**inputs, **at}).values():
            change = sum(slopes[name] * step for name, step in direction.items())
            assert change == pytest.approx(0, abs=1e-12)


def test_sums_of_three_and_nearly_dependent_parameters() -> None:
    found = identify("xw = (a + b + c)*xa", dict.fromkeys("abc", 1.0))
    assert (found.rank, len(found.null_directions)) == (1, 2)
    assert [sum(direction.values()) for direction in found.null_directions] == pytest.approx([0, 0])
    assert found.determined == ({"a": 1.0, "b": 1.0, "c": 1.0},)
    assert identify("xw = k*xa + b", {"k": 1.0, "b": 2.0}).condition < 10
    near = identify("xw = k*(1000 + xa/1000) + b", {"k": 1.0, "b": 1.0})
    assert near.rank == 2
    assert near.condition > 1e5
    approved(near.sentences(("xw",))[-1], "hardly determine")


def test_few_and_many_samples() -> None:
    few = identify("xw = k*xa + b", {"k": 1.0, "b": 1.0}, 2.0)
    assert few.rank == 1
    assert few.null_directions[0] == pytest.approx({"k": 1.0, "b": -2.0})
    blocks = np.repeat([1.0, 2.0, 3.0], 1000)  # samples are chosen from all parts
    assert identify("xw = k*xa + b", {"k": 1.0, "b": 1.0}, *blocks).rank == 2
    graph, data = cgprimer.parse("xw = log(k*xa)"), Dataset.from_arrays({"xa": [0.0, 1.0]}, {})
    assert identifiability(graph, data, {"k": 1.0}) is None  # the Jacobian is not finite
    text = ";".join(f"xw{k} = a*xa" for k in range(30))
    tracemalloc.start()
    try:
        assert identify(text, {"a": 1.0}, *range(100)).rank == 1
        assert tracemalloc.get_traced_memory()[1] < 2e7  # a square matrix of 3,000 takes 72 MB
    finally:
        tracemalloc.stop()


def test_long_directions_are_counted() -> None:
    assert format_combination({"a": -1.0, "b": 0.5}) == "-a + 0.5*b"
    assert format_combination({"a": 1.0}) == "a"
    many = {f"a{k}": 1.0 for k in range(8)}
    few = {"ab": 1.0, "bc": -1.0}
    result = Identifiability((*many, *few), 8, (few, many), (few, many), (True, True))
    for every in (False, True):
        approved("\n".join(result.sentences(("xw",), every=every)))
