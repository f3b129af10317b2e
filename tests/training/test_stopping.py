"""Stopping and metrics: the best epoch's parameters, and how good they are."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.errors import DataError, UsageError
from cgprimer.training.metrics import accuracy, confusion, r_squared
from cgprimer.training.parameter_snapshots import MAX_STEP_LOSSES
from tests.approval import refused

LINE = cgprimer.parse("xw = k*xa + b")
random = np.random.default_rng(7)
TRAIN = cgprimer.Dataset.from_arrays({"xa": [0.0, 1.0]}, {"xw": [0.0, 3.0]})
OTHER = cgprimer.Dataset.from_arrays({"xa": [1.0]}, {"xw": [1.5]})  # the way to 3 leads past it
SETTINGS: dict[str, Any] = {
    "start": {"k": 0.0, "b": 0.0}, "optimizer": "sgd", "learning_rate": 0.05,
    "schedule": "constant", "batch_size": None, "validation": OTHER,
}  # fmt: skip


def test_early_stopping_returns_the_best_validation_epoch() -> None:
    """Lecture case F13."""
    run = cgprimer.train(LINE, TRAIN, epochs=200, patience=5, **SETTINGS)
    losses = run.validation_losses
    best = int(np.argmin(losses)) + 1
    assert run.best_epoch == best
    assert (run.stopped, run.epochs) == ("patience", best + 5)
    assert run.reason == f"the validation loss has not fallen since epoch {best}"
    until = cgprimer.train(LINE, TRAIN, epochs=best, **SETTINGS)
    assert run.parameters == until.parameters
    whole = cgprimer.train(LINE, TRAIN, epochs=best + 5, **SETTINGS)
    assert run.last_parameters == whole.parameters
    assert losses == whole.validation_losses
    assert run.loss == until.loss


def test_a_run_with_patience_goes_on_bit_by_bit(tmp_path: Path) -> None:
    more = {**SETTINGS, "optimizer": "adam", "metrics": "r2", "validation": OTHER}
    whole = cgprimer.train(LINE, TRAIN, epochs=60, patience=9, **more)
    begun = cgprimer.train(LINE, TRAIN, epochs=whole.best_epoch + 3, patience=9, **more)
    begun.save(tmp_path / "run.json")
    read = cgprimer.load_run(tmp_path / "run.json")
    del more["start"]
    found = cgprimer.train(LINE, TRAIN, epochs=60, patience=9, resume=read, **more)
    for name in ("parameters", "last_parameters", "best_epoch", "validation_losses", "stopped"):
        assert getattr(found, name) == getattr(whole, name), name


def test_patience_needs_other_samples() -> None:
    with refused(UsageError, "patience ... validation"):
        cgprimer.train(LINE, TRAIN, patience=3)
    for wrong in (0, -1, 2.5):
        with pytest.raises(UsageError, match="patience"):
            cgprimer.train(LINE, TRAIN, patience=wrong, validation=OTHER)


def test_metrics_are_taken_after_each_epoch() -> None:
    run = cgprimer.train(LINE, TRAIN, epochs=4, metrics=("r2",), **{**SETTINGS, "validation": None})
    assert len(run.metrics["r2"]) == 4
    assert run.metrics["r2"][-1] == pytest.approx(run.score(TRAIN).r2, rel=1e-12)
    with refused(UsageError, "'accurracy' ... accuracy"):
        cgprimer.train(LINE, TRAIN, metrics="accurracy")


def test_metrics_against_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    labels, outputs = random.integers(0, 4, 200), random.uniform(-0.5, 3.5, 200)
    nearest = np.clip(np.round(outputs), 0, 3)
    found = confusion({"y": outputs}, {"y": labels})
    assert found.counts.tolist() == metrics.confusion_matrix(labels, nearest).tolist()
    assert accuracy({"y": outputs}, {"y": labels}) == metrics.accuracy_score(labels, nearest)
    two, other = random.normal(size=(50, 2)), random.normal(size=(50, 2))
    assert r_squared({"y": other}, {"y": two}) == pytest.approx(metrics.r2_score(two, other))


def test_ties_go_to_the_lowest_label_and_numbers_are_no_classes() -> None:
    assert confusion({"y": [0.0, 0.5]}, {"y": [-1.0, 1.0]}).counts.tolist() == [[1, 0], [0, 1]]
    two = {"a": np.array([0.5, 0.1]), "b": np.array([0.5, 0.9])}
    true = {"a": np.array([1.0, 0.0]), "b": np.array([0.0, 1.0])}
    assert confusion(two, true).labels == ("a", "b")
    assert accuracy(two, true) == 1.0
    assert accuracy({"y": [0.2]}, {"y": [1.0]}) == 0.0, "of one class there are two all the same"
    with refused(DataError):
        accuracy({"y": [0.2]}, {"y": [0.5]})
    assert math.isnan(r_squared({"y": [1.0, 2.0]}, {"y": [3.0, 3.0]}))


def test_the_losses_of_a_long_run_are_thinned() -> None:
    data = cgprimer.make_dataset(LINE, truth={"k": 3.0, "b": 1.0}, samples=20_000)
    settings: dict[str, Any] = {"batch_size": 1, "schedule": "constant", "learning_rate": 1e-4}
    known = cgprimer.train(LINE, data, epochs=5, **settings)
    assert (len(known.step_losses), known.steps_apart) == (100_000, 1)
    longer = cgprimer.train(LINE, data, epochs=12, **settings)
    assert len(longer.step_losses) <= MAX_STEP_LOSSES
    assert longer.steps_apart == 4
    assert longer.step_losses[:25_000] == known.step_losses[::4]
    taken_up = cgprimer.train(LINE, data, epochs=12, resume=known, **settings)
    assert taken_up.step_losses == longer.step_losses
    assert taken_up.epoch_losses == longer.epoch_losses


def test_logits_are_compared_with_labels_as_probabilities() -> None:
    graph = cgprimer.parse("xo = k*xa + b")
    data = cgprimer.Dataset.from_arrays({"xa": [-1.0, 0.2, 1.0]}, {"xo": [0.0, 1.0, 1.0]})
    how: dict[str, Any] = {"loss": "cross-entropy-logit", "start": {"k": 1.0, "b": 0.0}}
    run = cgprimer.train(graph, data, epochs=1, learning_rate=1e-9, metrics="accuracy", **how)
    assert run.metrics["accuracy"] == [1.0], "a logit of 0.2 is more likely 1 than 0"
    assert run.score(data).accuracy == 1.0


_X = np.random.default_rng(5).normal(size=90)
_THREE = cgprimer.Dataset.from_arrays({"x": _X}, {"label": np.digitize(_X, [-0.5, 0.5])})
_ARRAY = cgprimer.Dataset.from_arrays({"x": _X[:, None]}, {"label": np.digitize(_X, [-0.5, 0.5])})


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("xa = a*x + a0; xb = b*x; xc = c*x + c0", _THREE),
        ("input x[1]; parameter W[3,1], b[3]; xo = W @ x + b", _ARRAY),
    ],
    ids=["numbers", "an array"],
)
def test_a_column_of_classes_beside_several_outputs_is_compared_with_the_largest(
    text: str, data: cgprimer.Dataset
) -> None:
    run = cgprimer.train(
        cgprimer.parse(text), data, loss="softmax-cross-entropy", metrics="accuracy,r2"
    )
    rows = np.stack([*run.predict(data).values()], axis=-1).reshape(90, 3)
    chosen, true = rows.argmax(axis=1), data.targets["label"].astype(int)
    score = run.score(data)
    assert score.accuracy == run.metrics["accuracy"][-1] == np.mean(chosen == true) > 0.7
    assert score.confusion is not None
    assert score.confusion.counts.sum() == 90
    shares = np.exp(rows) / np.exp(rows).sum(axis=1, keepdims=True)
    assert score.r2 == pytest.approx(
        r_squared({"y": shares}, {"y": np.eye(3)[true]})
    )  # of probabilities, not of logits
    assert [*run.metrics] == ["accuracy", "r2"]


def test_classes_are_classes_whatever_the_scale() -> None:
    graph = cgprimer.parse("xo = k*x + b")
    data = cgprimer.Dataset.from_arrays({"x": _X}, {"xo": (_X > 0.3).astype(float)})
    run = cgprimer.train(graph, data, normalize="all", metrics="accuracy")
    assert run.metrics["accuracy"][-1] == run.score(data).accuracy > 0.8


def test_a_loss_in_other_columns_has_a_score_and_no_metrics() -> None:
    data = cgprimer.Dataset.from_arrays({"xa": _X}, {"y": 2 * _X})
    run = cgprimer.train(LINE, data, loss="(xw - y)^2", epochs=1)
    assert run.score(data).loss == run.loss
    assert math.isnan(run.score(data).r2)
    with refused(DataError, "'xw' ... --columns xw="):
        cgprimer.train(LINE, data, loss="(xw - y)^2", metrics="r2")
    numbers = cgprimer.Dataset.from_arrays({"xa": _X}, {"xw": 2 * _X})
    began: list[Any] = []
    with refused(DataError):
        cgprimer.train(LINE, numbers, metrics="accuracy", on_checkpoint=began.append)
    assert not began
