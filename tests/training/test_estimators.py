"""Graphs as estimators of scikit-learn and as objectives of SciPy."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import cgprimer
from cgprimer.errors import DataError
from tests.approval import refused
from tests.training.training_graphs import line, line_data

NEURON = "xo = sigmoid(w1*x1 + w2*x2 + b)"
random = np.random.default_rng(0)
PLANE = random.normal(size=(120, 2)) + np.repeat([[0.0, 0.0], [3.0, 3.0]], 60, axis=0)
CLASSES = np.repeat([0, 1], 60)
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
    labels = np.where(CLASSES == 1, "far", "near")
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
    scores = cross_val_score(classifier(), PLANE, CLASSES, cv=3)
    assert scores.shape == (3,)
    assert scores.min() > 0.85
    pipeline = make_pipeline(StandardScaler(), classifier()).fit(PLANE, CLASSES)
    assert pipeline.score(PLANE, CLASSES) > 0.9
    search = GridSearchCV(classifier(), {"learning_rate": [1e-6, 0.1]}, cv=2).fit(PLANE, CLASSES)
    assert search.best_params_ == {"learning_rate": 0.1}
