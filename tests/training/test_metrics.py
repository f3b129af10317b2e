"""Metrics, convergence, stable learning rates, undetermined parameters, and estimators."""

from __future__ import annotations

import math
import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.errors import DataError, NonFiniteError
from cgprimer.training.convergence import estimate_decrease, has_converged
from cgprimer.training.curvature import stable_learning_rate
from cgprimer.training.data import Dataset
from cgprimer.training.identifiability import Identifiability, format_combination, identifiability
from cgprimer.training.metrics import accuracy, confusion, r_squared
from tests.approval import approved, refused
from tests.training.training_graphs import PLAIN, TRUTH, lecture, line, line_data, table

X = np.random.default_rng(5).normal(size=90)
CLASSES = np.digitize(X, [-0.5, 0.5])
LOGIT = cgprimer.parse("xw = k*xa + b")


def test_metrics_by_numpy() -> None:
    random = np.random.default_rng(7)
    labels, outputs = random.integers(0, 4, 200), random.uniform(-0.5, 3.5, 200)
    nearest = np.clip(np.round(outputs), 0, 3).astype(int)
    counts = np.zeros((4, 4), int)
    np.add.at(counts, (labels, nearest), 1)
    assert confusion({"y": outputs}, {"y": labels}).counts.tolist() == counts.tolist()
    assert accuracy({"y": outputs}, {"y": labels}) == np.mean(labels == nearest)
    true, predicted = random.normal(size=(2, 50, 2)) * [[[1.0, 5.0]]]
    unexplained = ((true - predicted) ** 2).mean(axis=0) / true.var(axis=0)
    assert r_squared({"y": predicted}, {"y": true}) == pytest.approx(np.mean(1 - unexplained))
    assert math.isnan(r_squared({"y": [1.0, 2.0]}, {"y": [3.0, 3.0]}))
    # Ties, several outputs, a single label
    assert confusion({"y": [0.0, 0.5]}, {"y": [-1.0, 1.0]}).counts.tolist() == [[1, 0], [0, 1]]
    two = {"a": np.array([0.5, 0.1]), "b": np.array([0.5, 0.9])}
    which = {"a": np.array([1.0, 0.0]), "b": np.array([0.0, 1.0])}
    assert confusion(two, which).labels == ("a", "b")
    assert accuracy(two, which) == 1.0
    assert accuracy({"y": [0.2]}, {"y": [1.0]}) == 0.0, "a single label implies the classes 0 and 1"
    with refused(DataError):
        accuracy({"y": [0.2]}, {"y": [0.5]})


@pytest.mark.parametrize(
    ("text", "inputs"),
    [
        ("xa = a*x + a0; xb = b*x; xc = c*x + c0", X),
        ("input x[1]; parameter W[3,1], b[3]; xo = W @ x + b", X[:, None]),
    ],
    ids=["scalars", "array"],
)
def test_class_indices_are_compared_with_the_maximum_output(text: str, inputs: Any) -> None:
    data = cgprimer.Dataset.from_arrays({"x": inputs}, {"label": CLASSES})
    run = cgprimer.train(
        cgprimer.parse(text), data, loss="softmax-cross-entropy", metrics="accuracy,r2", epochs=40
    )
    rows = np.stack([*run.predict(data).values()], axis=-1).reshape(90, 3)
    score = run.score(data)
    assert score.accuracy == run.metrics["accuracy"][-1] == np.mean(rows.argmax(axis=1) == CLASSES)
    assert score.accuracy > 0.7
    assert score.confusion is not None
    assert score.confusion.counts.sum(axis=1).tolist() == np.bincount(CLASSES).tolist()
    probabilities = np.exp(rows) / np.exp(rows).sum(axis=1, keepdims=True)
    target = np.eye(3)[CLASSES]
    spread = ((target - target.mean(axis=0)) ** 2).sum(axis=0)
    expected = np.mean(1 - ((target - probabilities) ** 2).sum(axis=0) / spread)
    assert score.r2 == pytest.approx(expected)
    assert [*run.metrics] == ["accuracy", "r2"]


def test_metrics_of_logits_and_of_normalized_data() -> None:
    data = cgprimer.Dataset.from_arrays({"xa": [-1.0, 0.2, 1.0]}, {"xw": [0.0, 1.0, 1.0]})
    how: dict[str, Any] = {"loss": "cross-entropy-logit", "start": {"k": 1.0, "b": 0.0}}
    run = cgprimer.train(LOGIT, data, epochs=1, learning_rate=1e-9, metrics="accuracy", **how)
    assert run.metrics["accuracy"] == [1.0], "a logit of 0.2 is more likely 1 than 0"
    assert run.score(data).accuracy == 1.0
    data = cgprimer.Dataset.from_arrays({"xa": X}, {"xw": (X > 0.3).astype(float)})
    run = cgprimer.train(LOGIT, data, normalize="all", metrics="accuracy,r2", epochs=40)
    outputs = run.predict(data)["xw"]
    assert run.score(data).accuracy == np.mean((outputs > 0.5) == (X > 0.3)) > 0.8
    assert run.metrics["accuracy"][-1] == run.score(data).accuracy
    assert len(run.metrics["r2"]) == 40
    assert run.metrics["r2"][-1] == pytest.approx(run.score(data).r2, rel=1e-9)


def test_losses_of_other_columns_have_no_metrics() -> None:
    data = cgprimer.Dataset.from_arrays({"xa": X}, {"y": 2 * X})
    run = cgprimer.train(LOGIT, data, loss="(xw - y)^2", epochs=1)
    assert run.score(data).loss == run.loss
    assert math.isnan(run.score(data).r2)
    with refused(DataError, "'xw' ... --columns xw="):
        cgprimer.train(LOGIT, data, loss="(xw - y)^2", metrics="r2")
    numbers = cgprimer.Dataset.from_arrays({"xa": X}, {"xw": 2 * X})
    started: list[Any] = []
    with refused(DataError):
        cgprimer.train(LOGIT, numbers, metrics="accuracy", on_checkpoint=started.append)
    assert not started


NEURON = "xo = sigmoid(w1*x1 + w2*x2 + b)"
random = np.random.default_rng(0)
PLANE = random.normal(size=(120, 2)) + np.repeat([[0.0, 0.0], [3.0, 3.0]], 60, axis=0)
SIDES = np.repeat([0, 1], 60)
SETTINGS = {"epochs": 20, "batch_size": 10, "loss": "cross-entropy"}


def classifier(**settings: object) -> cgprimer.Estimator:
    return cgprimer.Estimator(NEURON, classify=True, **{**SETTINGS, **settings})


def test_objective_of_scipy_has_the_least_squares_minimum() -> None:
    from scipy.optimize import minimize

    fun, start, names = cgprimer.flat_objective(line(), line_data())
    assert names == ("k", "b")
    assert start.tolist() == [3.0, -1.0]  # declared
    inputs, targets = line_data().inputs["xa"], line_data().targets["xw"]
    value, slope = fun(np.array([0.3, 0.2]))
    error = 0.3 * inputs + 0.2 - targets
    assert value == pytest.approx(np.mean(error**2))
    assert slope == pytest.approx([np.mean(2 * error * inputs), np.mean(2 * error)])
    found = minimize(fun, [0.0, 0.0], jac=True)
    assert found.x == pytest.approx(np.polyfit(inputs, targets, 1), abs=1e-5)
    graph = cgprimer.parse("input x[2]; parameter w[2] = [4, -2]; xo = w @ x")
    fun, start, names = cgprimer.flat_objective(graph, cgprimer.make_dataset(graph, samples=20))
    assert (names, start.tolist()) == (("w[0]", "w[1]"), [4.0, -2.0])
    assert (fun(start)[0], fun(start)[1].shape) == (0.0, (2,))


def test_classifiers_predict_labels_and_regressors_outputs() -> None:
    labels = np.where(SIDES == 1, "far", "near")
    fitted = classifier().fit(PLANE, labels)
    assert {*fitted.predict(PLANE)} == {"far", "near"}
    assert fitted.score(PLANE, labels) == np.mean(fitted.predict(PLANE) == labels) > 0.9
    two = cgprimer.parse("input x[2]; parameter W[2,2], b[2]; xo = sigmoid(W @ x + b)")
    largest = cgprimer.Estimator(two, classify=True, **SETTINGS).fit(PLANE, labels)
    assert largest.score(PLANE, labels) > 0.9
    again = pickle.loads(pickle.dumps(largest))
    assert (again.predict(PLANE) == largest.predict(PLANE)).all()
    with refused(DataError, "X ... 3 ... x1 ... x2"):
        classifier().fit(np.zeros((4, 3)), [0, 1, 0, 1])
    x, y = PLANE[:, :1], 3 * PLANE[:, 0] - 1 + 0.1 * PLANE[:, 1]
    fitted = cgprimer.Estimator(line(), optimizer="l-bfgs", epochs=50).fit(x, y)
    predicted = np.polyval(np.polyfit(x[:, 0], y, 1), x[:, 0])
    np.testing.assert_allclose(np.ravel(fitted.predict(x)), predicted, rtol=1e-3, atol=1e-3)
    unexplained = np.mean((y - predicted) ** 2) / np.var(y)
    assert fitted.score(x, y) == pytest.approx(1 - unexplained, abs=1e-5)


@pytest.mark.slow
def test_tools_of_scikit_learn_accept_estimators() -> None:
    pytest.importorskip("sklearn")
    from sklearn.base import clone, is_classifier, is_regressor
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    assert is_classifier(classifier())
    assert is_regressor(cgprimer.Estimator("xw = k*xa"))
    assert clone(classifier()).get_params() == classifier().get_params()
    scores = cross_val_score(classifier(), PLANE, SIDES, cv=3)
    assert scores.shape == (3,)
    assert scores.min() > 0.85
    pipeline = make_pipeline(StandardScaler(), classifier()).fit(PLANE, SIDES)
    assert pipeline.score(PLANE, SIDES) > 0.9
    search = GridSearchCV(classifier(), {"learning_rate": [1e-6, 0.1]}, cv=2).fit(PLANE, SIDES)
    assert search.best_params_ == {"learning_rate": 0.1}


@pytest.mark.parametrize("noise", [0.0, 20.0])
@pytest.mark.parametrize(("settings", "converged"), table("converged runs"))
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


def test_nearly_dependent_parameters_and_long_directions() -> None:
    found = identify("xw = (a + b + c)*xa", dict.fromkeys("abc", 1.0))
    assert (found.rank, len(found.null_directions)) == (1, 2)
    assert [sum(direction.values()) for direction in found.null_directions] == pytest.approx([0, 0])
    assert found.determined == ({"a": 1.0, "b": 1.0, "c": 1.0},)
    assert identify("xw = k*xa + b", {"k": 1.0, "b": 2.0}).condition < 10
    near = identify("xw = k*(1000 + xa/1000) + b", {"k": 1.0, "b": 1.0})
    assert near.rank == 2
    assert near.condition > 1e5
    approved(near.sentences(("xw",))[-1], "hardly determine")
    assert format_combination({"a": -1.0, "b": 0.5}) == "-a + 0.5*b"
    assert format_combination({"a": 1.0}) == "a"
    many = {f"a{k}": 1.0 for k in range(8)}
    few = {"ab": 1.0, "bc": -1.0}
    result = Identifiability((*many, *few), 8, (few, many), (few, many), (True, True))
    for every in (False, True):
        approved("\n".join(result.sentences(("xw",), every=every)))


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
