"""Bagging: votes, averages, what is out of the bag, and the variance of an average."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.errors import DataError, UsageError
from cgprimer.training.ensembles import Spread, compute_spread, find_majority
from tests.approval import refused
from tests.cli.cli_tools import bad, good, read_json

LINE = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
NEURON = cgprimer.parse("xw = sigmoid(k*xa + b); parameter k = 3, b = -1")


def classes(samples: int = 80, seed: int = 0) -> cgprimer.Dataset:
    random = np.random.default_rng(seed)
    label = random.integers(0, 2, samples).astype(float)
    return cgprimer.Dataset.from_arrays({"xa": label + random.normal(size=samples)}, {"xw": label})


def test_the_lecture_s_figures() -> None:  # case F13
    assert Spread(10, 1.0, 0.25, 0.0).expected == pytest.approx(0.325, rel=1e-15)
    assert Spread(10, 1.0, 0.0, 0.0).expected == pytest.approx(0.1, rel=1e-15)


def test_errors_that_are_drawn_with_these_moments_average_as_the_formula_says() -> None:
    random, members, samples = np.random.default_rng(5), 10, 400_000
    common = random.normal(size=samples) * 0.5
    errors = common + random.normal(size=(members, samples)) * np.sqrt(0.75)
    found = compute_spread(errors)
    assert found.variance == pytest.approx(1, abs=0.01)
    assert found.covariance == pytest.approx(0.25, abs=0.01)
    assert found.measured == pytest.approx(0.325, abs=0.005)
    assert found.measured == pytest.approx(found.expected, rel=1e-12)


def test_a_tie_goes_to_the_lowest_label() -> None:
    assert find_majority(np.array([[2, 0], [1, 1]])).tolist() == [1, 0]
    counted = np.array([[True, False], [False, True]])
    assert find_majority(np.array([[2, 0], [1, 1]]), counted).tolist() == [2, 1]


def test_members_are_the_runs_on_their_samples() -> None:
    data = cgprimer.make_dataset(LINE, samples=60, noise=1.0)
    bag = cgprimer.ensemble(LINE, data, members=3, seed=4, epochs=5)
    for k, (run, rows) in enumerate(zip(bag.runs, bag.drawn, strict=True)):
        alone = cgprimer.train(LINE, data.where(rows), epochs=5, seed=4 + k)
        assert run.parameters == alone.parameters
    assert len({tuple(rows) for rows in bag.drawn}) == 3
    again = cgprimer.ensemble(LINE, data, members=3, seed=4, epochs=5, jobs=1, start=None)
    assert [run.parameters for run in again.runs] == [run.parameters for run in bag.runs]
    each = np.stack([run.predict(data)["xw"] for run in bag.runs])
    np.testing.assert_array_equal(bag.predict(data)["xw"], each.mean(axis=0))


def test_what_is_out_of_the_bag_is_predicted_by_members_that_have_not_seen_it() -> None:
    data = classes()
    bag = cgprimer.ensemble(NEURON, data, members=5, loss="cross-entropy", epochs=10)
    errors, right, count = [], 0, 0
    for sample in range(len(data)):
        members = [run for run, rows in zip(bag.runs, bag.drawn, strict=True) if sample not in rows]
        if not members:
            continue
        count += 1
        one = data.where(np.array([sample]))
        outputs = [float(run.predict(one)["xw"][0]) for run in members]
        errors.append((np.mean(outputs) - data.targets["xw"][sample]) ** 2)
        votes = sum(output > 0.5 for output in outputs)
        right += (votes > len(members) - votes) == data.targets["xw"][sample]
    found = bag.out_of_bag()
    assert found["samples"] == count
    assert found["squared-error"] == pytest.approx(np.mean(errors), rel=1e-12)
    assert found["accuracy"] == right / count


def test_votes_are_labels() -> None:
    data, others = classes(), classes(seed=1)
    bag = cgprimer.ensemble(NEURON, data, members=3, loss="cross-entropy")
    each = np.stack([run.predict(others)["xw"] > 0.5 for run in bag.runs])
    np.testing.assert_array_equal(bag.vote(others), (each.sum(axis=0) > 1).astype(float))
    numbers = cgprimer.make_dataset(LINE, samples=60)
    with refused(DataError):
        cgprimer.ensemble(LINE, numbers, members=2, epochs=1).vote(numbers)


def test_mistakes() -> None:
    data = cgprimer.make_dataset(LINE, samples=20)
    with pytest.raises(UsageError, match="members"):
        cgprimer.ensemble(LINE, data, members=0)
    with pytest.raises(UsageError, match="diverged"):
        cgprimer.ensemble(LINE, data, optimizer="sgd", learning_rate=1e9, batch_size=1)
    with pytest.raises(UsageError, match="optimizer"):
        cgprimer.ensemble(LINE, data, optimizer="adamx")


def test_the_command(tmp_path: Path) -> None:
    words = ("ensemble", "lecture", "--samples", "80", "--noise", "5", "--members", "3")
    text = good(*words, "--directory", "bag", cwd=tmp_path)
    assert "v/K + c(K-1)/K" in text
    told = read_json(*words, "--json")
    assert told["measured"] == pytest.approx(told["expected"], rel=1e-12)
    assert told["losses"] == [
        cgprimer.load_run(tmp_path / "bag" / f"member-{k}.json").loss for k in (1, 2, 3)
    ]
    assert "already" in bad(*words, "--directory", "bag", cwd=tmp_path)


@pytest.mark.slow
def test_logits_vote_and_are_measured_as_probabilities() -> None:
    random = np.random.default_rng(3)
    x = random.normal(size=200)
    data = cgprimer.Dataset.from_arrays(
        {"x": x}, {"xo": (x + random.normal(size=200) / 3 > 1) * 1.0}
    )
    settings: dict[str, Any] = {"members": 3, "epochs": 20}
    logits = cgprimer.ensemble(
        cgprimer.parse("xo = k*x + b"), data.to_pandas(), loss="cross-entropy-logit", **settings
    )
    same = cgprimer.ensemble(
        cgprimer.parse("xo = sigmoid(k*x + b)"), data, loss="cross-entropy", **settings
    )
    assert logits.vote(data).tolist() == same.vote(data).tolist()
    for of in (lambda bag: bag.out_of_bag(), lambda bag: vars_of(bag.spread(data))):
        assert of(logits) == pytest.approx(of(same), rel=1e-9)


def vars_of(spread: Any) -> dict[str, float]:
    return {name: getattr(spread, name) for name in ("variance", "covariance", "measured")}


@pytest.mark.slow
def test_classes_of_softmax_vote() -> None:
    x = np.random.default_rng(3).normal(size=200)
    data = cgprimer.Dataset.from_arrays({"x": x}, {"label": (x > 0.5) * 1.0})
    bag = cgprimer.ensemble(
        cgprimer.parse("xa = a*x + b; xb = c*x"), data, loss="softmax-cross-entropy", members=3
    )
    assert np.mean((bag.vote(data) == "xb") == (x > 0.5)) > 0.9
