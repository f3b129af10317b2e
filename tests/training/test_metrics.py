"""Accuracy, confusion matrices and R^2, as scikit-learn defines them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.errors import DataError
from cgprimer.training.metrics import accuracy, confusion, r_squared
from tests.approval import refused

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
