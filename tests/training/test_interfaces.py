"""Graphs among scikit-learn's models and SciPy's objectives."""

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


def model(**more: object) -> cgprimer.Estimator:
    return cgprimer.Estimator(NEURON, classify=True, **{**SETTINGS, **more})


def test_a_vector_for_scipy_finds_the_least_squares() -> None:
    from scipy.optimize import check_grad, minimize

    fun, start, names = cgprimer.flat_objective(line(), line_data())
    assert names == ("k", "b")
    assert start.tolist() == [3.0, -1.0], "what the graph declares"
    assert check_grad(lambda v: fun(v)[0], lambda v: fun(v)[1], [0.3, 0.2]) < 1e-6
    found = minimize(fun, [0.0, 0.0], jac=True)
    inputs, targets = line_data().inputs["xa"], line_data().targets["xw"]
    assert found.x == pytest.approx(np.polyfit(inputs, targets, 1), abs=1e-5)


def test_a_vector_has_the_numbers_of_arrays() -> None:
    graph = cgprimer.parse("input x[2]; parameter w[2] = [4, -2]; xo = w @ x")
    fun, start, names = cgprimer.flat_objective(graph, cgprimer.make_dataset(graph, samples=20))
    assert (names, start.tolist()) == (("w[0]", "w[1]"), [4.0, -2.0])
    value, slope = fun(start)
    assert value == 0.0
    assert slope.shape == (2,)


@pytest.mark.slow
def test_the_tools_of_scikit_learn_take_it() -> None:
    pytest.importorskip("sklearn")
    from sklearn.base import clone, is_classifier, is_regressor
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    assert is_classifier(model())
    assert is_regressor(cgprimer.Estimator("xw = k*xa"))
    copy = clone(model())
    assert copy.get_params() == model().get_params()
    scores = cross_val_score(model(), PLANE, CLASSES, cv=3)
    assert scores.shape == (3,)
    assert scores.min() > 0.85
    piped = make_pipeline(StandardScaler(), model()).fit(PLANE, CLASSES)
    assert piped.score(PLANE, CLASSES) > 0.9
    search = GridSearchCV(model(), {"learning_rate": [1e-6, 0.1]}, cv=2).fit(PLANE, CLASSES)
    assert search.best_params_ == {"learning_rate": 0.1}


def test_labels_are_those_that_were_given() -> None:
    named = np.where(CLASSES == 1, "far", "near")
    fitted = model().fit(PLANE, named)
    assert {*fitted.predict(PLANE)} == {"far", "near"}
    assert fitted.score(PLANE, named) > 0.9
    two = cgprimer.parse("input x[2]; parameter W[2,2], b[2]; xo = sigmoid(W @ x + b)")
    largest = cgprimer.Estimator(two, classify=True, **SETTINGS).fit(PLANE, named)
    assert largest.score(PLANE, named) > 0.9
    again = pickle.loads(pickle.dumps(largest))
    assert (again.predict(PLANE) == largest.predict(PLANE)).all()


def test_rows_of_another_length_are_refused() -> None:
    with refused(DataError, "X ... 3 ... x1 ... x2"):
        model().fit(np.zeros((4, 3)), [0, 1, 0, 1])
