"""Ensembles: members, votes, out-of-bag errors, and the variance of an average."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer import networks
from cgprimer.errors import DataError, UsageError
from cgprimer.training.ensembles import Spread, compute_spread, find_majority
from cgprimer.training.model_variations import match_columns_to_graph
from tests.approval import refused
from tests.cli.cli_tools import bad, good, read_json
from tests.training.training_graphs import line

NEURON = cgprimer.parse("xw = sigmoid(k*xa + b); parameter k = 3, b = -1")
DATA = cgprimer.make_dataset(line(), samples=60, noise=1.0)


def classes(samples: int = 60, seed: int = 0) -> cgprimer.Dataset:
    random = np.random.default_rng(seed)
    label = random.integers(0, 2, samples).astype(float)
    return cgprimer.Dataset.from_arrays({"xa": label + random.normal(size=samples)}, {"xw": label})


def test_variance_of_an_average() -> None:
    """Case F13, and errors with a common part."""
    assert Spread(10, 1.0, 0.25, 0.0).expected == pytest.approx(0.325, rel=1e-15)
    assert Spread(10, 1.0, 0.0, 0.0).expected == pytest.approx(0.1, rel=1e-15)
    random = np.random.default_rng(5)
    errors = random.normal(size=50_000) * 0.5 + random.normal(size=(10, 50_000)) * np.sqrt(0.75)
    found = compute_spread(errors)
    products = errors @ errors.T / 50_000
    assert found.variance == pytest.approx(np.diag(products).mean())
    assert found.covariance == pytest.approx(products[~np.eye(10, dtype=bool)].mean())
    assert found.measured == pytest.approx(0.325, abs=0.01)
    assert found.measured == pytest.approx(found.expected, rel=1e-12)


def test_ties_go_to_the_lowest_label() -> None:
    assert find_majority(np.array([[2, 0], [1, 1]])).tolist() == [1, 0]
    counted = np.array([[True, False], [False, True]])
    assert find_majority(np.array([[2, 0], [1, 1]]), counted).tolist() == [2, 1]


def test_members_are_runs_on_bootstrap_samples() -> None:
    bag = cgprimer.ensemble(line(), DATA, members=3, seed=4, epochs=5)
    for k, (run, rows) in enumerate(zip(bag.runs, bag.drawn, strict=True)):
        single = cgprimer.train(line(), DATA.where(rows), epochs=5, seed=4 + k)
        assert run.parameters == single.parameters
        assert len(rows) == 60 > len({*rows})
    assert len({tuple(rows) for rows in bag.drawn}) == 3
    again = cgprimer.ensemble(line(), DATA, members=3, seed=4, epochs=5, jobs=1)
    assert [run.parameters for run in again.runs] == [run.parameters for run in bag.runs]
    outputs = np.stack([run.predict(DATA)["xw"] for run in bag.runs])
    np.testing.assert_array_equal(bag.predict(DATA)["xw"], outputs.mean(axis=0))


def test_out_of_bag_errors_and_votes() -> None:
    data, others = classes(), classes(seed=1)
    bag = cgprimer.ensemble(NEURON, data, members=5, loss="cross-entropy", epochs=5)
    outputs = np.stack([run.predict(data)["xw"] for run in bag.runs])
    unseen = np.array([[k not in rows for k in range(len(data))] for rows in bag.drawn])
    counted = unseen.any(axis=0)
    means = np.sum(outputs * unseen, axis=0)[counted] / unseen.sum(axis=0)[counted]
    votes = np.sum((outputs > 0.5) * unseen, axis=0) > unseen.sum(axis=0) / 2
    target = data.targets["xw"]
    found = bag.out_of_bag()
    assert found["samples"] == counted.sum()
    assert found["squared-error"] == pytest.approx(np.mean((means - target[counted]) ** 2))
    assert found["accuracy"] == np.mean(votes[counted] == target[counted])
    ballots = np.stack([run.predict(others)["xw"] > 0.5 for run in bag.runs])
    np.testing.assert_array_equal(bag.vote(others), (ballots.sum(axis=0) > 2).astype(float))
    with refused(DataError):
        cgprimer.ensemble(line(), DATA, members=2, epochs=1).vote(DATA)


def test_members_of_different_models() -> None:
    graphs = {"line": line(), "network": networks.mlp("1-3-1")}
    vary = {"graph": graphs, "learning_rate": [0.05, 0.1]}
    bag = cgprimer.ensemble(line(), DATA, vary=vary, members=5, epochs=4)
    assert [one["graph"] for one in bag.varied] == ["line", "line", "network", "network", "line"]
    assert [run.settings["learning_rate"] for run in bag.runs] == [0.05, 0.1, 0.05, 0.1, 0.05]
    outputs = []
    for run in bag.runs:
        graph = run.known_graph
        predicted = run.predict(match_columns_to_graph(graph, DATA))
        outputs.append(predicted[graph.outputs[0]].ravel())
    mean = np.mean(outputs, axis=0)
    np.testing.assert_allclose(bag.predict(DATA)["xw"], mean)
    np.testing.assert_allclose(bag.predict({"xa": DATA.inputs["xa"]})["xw"], mean)
    spread = bag.spread(DATA)
    assert spread.measured == pytest.approx(np.mean((mean - DATA.targets["xw"]) ** 2))
    assert spread.measured == pytest.approx(spread.expected, rel=1e-12)
    assert np.mean(bag.squared_errors(DATA)) == pytest.approx(spread.variance)
    with refused(UsageError):
        bag.averaged_weights()


def test_averaged_weights() -> None:
    """Averaging weights equals averaging outputs only for models that are linear in them."""
    graph = networks.mlp("1-4-1")
    sine = cgprimer.make_dataset(cgprimer.parse("y = sin(3*x)"), samples=40)
    data = match_columns_to_graph(graph, sine)
    bag = cgprimer.ensemble(graph, data, members=3, bootstrap=False, epochs=40, batch_size=10)
    assert all(rows.tolist() == list(range(40)) for rows in bag.drawn)
    mean = np.mean([run.parameters["W1"] for run in bag.runs], axis=0)
    np.testing.assert_allclose(bag.averaged_weights().parameters["W1"], mean)
    assert bag.averaged_weights_error(data) > 2 * bag.spread(data).measured
    settings: dict[str, Any] = {"members": 2, "epochs": 2, "normalize": "all"}
    linear = cgprimer.ensemble(line(), DATA, bootstrap=False, **settings)
    outputs = linear.averaged_weights().predict(DATA)["xw"]
    np.testing.assert_allclose(outputs, linear.predict(DATA)["xw"])
    with refused(UsageError):
        cgprimer.ensemble(line(), DATA, **settings).averaged_weights()


@pytest.mark.parametrize(
    ("settings", "values"),
    [
        ({"members": 0}, "members"), ({"optimizer": "adamx"}, "optimizer"),
        ({"optimizer": "sgd", "learning_rate": 1e9, "batch_size": 1}, "diverged"),
        ({"vary": {"seed": [1, 2]}}, "seed"),
        ({"vary": {"loss": ["squared-error", "huber"]}}, "loss"),
        ({"vary": {"epochs": [1, 2, 3]}, "members": 2}, "3 ... 2"),
        ({"vary": {"graph": {"two": cgprimer.parse("xw = k*xa; xv = b*xa")}}}, "2"),
    ],
)  # fmt: skip
def test_wrong_arguments(settings: dict, values: str) -> None:
    with refused(UsageError, values):
        cgprimer.ensemble(line(), DATA, **settings)


def test_the_command(tmp_path: Path) -> None:
    words = ("ensemble", "lecture", "--samples", "40", "--noise", "5", "--members", "3",
             "--epochs", "2", "--directory", "bag")  # fmt: skip
    assert "v/K + c(K-1)/K" in good(*words, cwd=tmp_path)
    assert "already" in bad(*words, cwd=tmp_path)
    result = read_json(*words[:-2])
    assert result["measured"] == pytest.approx(result["expected"], rel=1e-12)
    files = [tmp_path / "bag" / f"member-{k}.json" for k in (1, 2, 3)]
    assert result["losses"] == [cgprimer.load_run(path).loss for path in files]
    words = ("ensemble", "lecture", "--samples", "20", "--members", "2", "--no-bootstrap")
    assert "--members 3" in bad(*words, "--epochs", "1,2,3")
    result = read_json(*words, "--optimizer", "sgd,adam", "--learning-rate", "1e-4")
    assert result["members_varied"] == [{"optimizer": "sgd"}, {"optimizer": "adam"}]
    assert result["out_of_bag"] is None
    assert result["averaged_weights"] > 0
    (tmp_path / "own.csv").write_text("a,b\n" + "".join(f"{k / 9},{k % 3}\n" for k in range(24)))
    words = ("ensemble", "--sizes", "1-2-1,1-3-1", "--members", "2", "--epochs", "2")
    text = good(*words, "--data", "own.csv", cwd=tmp_path)
    assert "1-3-1" in text
    assert "averaged weights" not in text


def test_logits_are_measured_and_vote_as_probabilities() -> None:
    data, graph = classes(), cgprimer.parse("xw = k*xa + b")
    settings: dict[str, Any] = {"members": 3, "epochs": 5}
    logits = cgprimer.ensemble(graph, data, loss="cross-entropy-logit", **settings)
    same = cgprimer.ensemble(NEURON, data, loss="cross-entropy", **settings)
    assert logits.vote(data).tolist() == same.vote(data).tolist()
    assert logits.out_of_bag() == pytest.approx(same.out_of_bag(), rel=1e-6)
    expected = pytest.approx(dataclasses.asdict(same.spread(data)), rel=1e-6)
    assert dataclasses.asdict(logits.spread(data)) == expected
