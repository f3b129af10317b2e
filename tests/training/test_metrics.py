"""Metrics as scikit-learn defines them, and graphs as estimators of scikit-learn and SciPy."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.errors import DataError
from cgprimer.training.metrics import accuracy, confusion, r_squared
from tests.approval import refused
from tests.training.training_graphs import line, line_data

X = np.random.default_rng(5).normal(size=90)
CLASSES = np.digitize(X, [-0.5, 0.5])
LINE = cgprimer.parse("xw = k*xa + b")


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


def test_classes_of_ties_of_several_outputs_and_of_numbers() -> None:
    assert confusion({"y": [0.0, 0.5]}, {"y": [-1.0, 1.0]}).counts.tolist() == [[1, 0], [0, 1]]
    two = {"a": np.array([0.5, 0.1]), "b": np.array([0.5, 0.9])}
    true = {"a": np.array([1.0, 0.0]), "b": np.array([0.0, 1.0])}
    assert confusion(two, true).labels == ("a", "b")
    assert accuracy(two, true) == 1.0
    assert accuracy({"y": [0.2]}, {"y": [1.0]}) == 0.0, "a single label implies the classes 0 and 1"
    with refused(DataError):
        accuracy({"y": [0.2]}, {"y": [0.5]})
    assert math.isnan(r_squared({"y": [1.0, 2.0]}, {"y": [3.0, 3.0]}))


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
    run = cgprimer.train(LINE, data, epochs=1, learning_rate=1e-9, metrics="accuracy", **how)
    assert run.metrics["accuracy"] == [1.0], "a logit of 0.2 is more likely 1 than 0"
    assert run.score(data).accuracy == 1.0
    data = cgprimer.Dataset.from_arrays({"xa": X}, {"xw": (X > 0.3).astype(float)})
    run = cgprimer.train(LINE, data, normalize="all", metrics="accuracy,r2", epochs=40)
    outputs = run.predict(data)["xw"]
    assert run.score(data).accuracy == np.mean((outputs > 0.5) == (X > 0.3)) > 0.8
    assert run.metrics["accuracy"][-1] == run.score(data).accuracy
    assert len(run.metrics["r2"]) == 40
    assert run.metrics["r2"][-1] == pytest.approx(run.score(data).r2, rel=1e-9)


def test_losses_of_other_columns_have_no_metrics() -> None:
    data = cgprimer.Dataset.from_arrays({"xa": X}, {"y": 2 * X})
    run = cgprimer.train(LINE, data, loss="(xw - y)^2", epochs=1)
    assert run.score(data).loss == run.loss
    assert math.isnan(run.score(data).r2)
    with refused(DataError, "'xw' ... --columns xw="):
        cgprimer.train(LINE, data, loss="(xw - y)^2", metrics="r2")
    numbers = cgprimer.Dataset.from_arrays({"xa": X}, {"xw": 2 * X})
    started: list[Any] = []
    with refused(DataError):
        cgprimer.train(LINE, numbers, metrics="accuracy", on_checkpoint=started.append)
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


def test_classifiers_predict_labels() -> None:
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


def test_regressors_predict_outputs_and_score_r2() -> None:
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
