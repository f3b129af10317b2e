"""Sweeps over settings, training sets and graphs; ensembles: members, votes, variance."""

from __future__ import annotations

import csv
import dataclasses
import io
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import cgprimer
from cgprimer import networks, plot
from cgprimer.errors import CgprimerError, DataError, UsageError
from cgprimer.training.ensembles import Spread, compute_spread, find_majority
from cgprimer.training.model_variations import match_columns_to_graph, sample_subset
from tests.approval import refused
from tests.cli.cli_tools import bad, good, here, read_json
from tests.training.training_graphs import fields_of, line, table

DATA = cgprimer.make_dataset(line(), samples=120, noise=0.1)


def test_each_run_is_that_of_train() -> None:
    grid = {"optimizer": ["sgd", "adam"], "learning_rate": [0.1, 0.01], "batch_size": [1, 50]}
    found = cgprimer.sweep(line(), DATA, grid, epochs=3, jobs=3)
    assert len({tuple(varied.items()) for varied in found.varied}) == len(found.runs) == 8
    for varied, run in zip(found.varied, found.runs, strict=True):
        assert fields_of(run) == fields_of(cgprimer.train(line(), DATA, epochs=3, **varied))


def test_rows_summarize_runs() -> None:
    found = cgprimer.sweep(line(), DATA, {"learning_rate": [1e-6, 0.3]}, epochs=9, threshold=0.5,
                           optimizer="sgd", validation=0.25)  # fmt: skip
    slow, fast = found.rows()
    best = found.runs[1]
    assert found.best is best
    assert (fast["loss"], fast["least"]) == (best.loss, min(best.epoch_losses))
    assert fast["validation"] == best.validation_losses[-1]
    below = [k for k, loss in enumerate(best.epoch_losses, 1) if loss < 0.5]
    assert (slow["steps"], fast["steps"]) == (None, below[0] * 2)  # 90 samples, batches of 50
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [float(row["loss"]) for row in rows] == [run.loss for run in found.runs]
    assert rows[0]["steps"] == ""
    assert "steps to 0.5" in found.table()


def test_runs_that_diverge_are_reported() -> None:
    vary = {"optimizer": ["sgd", "adam"], "learning_rate": [50.0, 0.1]}
    found = cgprimer.sweep(line(), DATA, vary, epochs=30)
    assert [run.stopped for run in found.runs] == ["diverged"] + ["finished"] * 3
    assert found.best is min(found.runs[1:], key=lambda run: run.loss)


def test_training_sets_share_their_validation_samples() -> None:
    vary = {"samples": [10, 90], "seed": [0, 1]}
    result = cgprimer.sweep(line(), DATA, vary, epochs=5)
    assert [run.settings["samples"] for run in result.runs] == [10, 10, 90, 90]
    assert {run.settings["validation_samples"] for run in result.runs} == {30}
    rest, held_out = DATA.split(0.25, 0)
    subset = sample_subset(rest, 10, 0)
    assert {*subset.inputs["xa"]} < {*rest.inputs["xa"]}
    single = cgprimer.train(line(), subset, epochs=5, validation=held_out)
    assert result.runs[0].parameters == single.parameters
    assert result.runs[0].validation_losses == single.validation_losses
    axes = plot.sweep(result).axes[0]
    assert axes.get_xlabel() == "training samples"
    ends = np.array([run.validation_losses[-1] for run in result.runs]).reshape(2, 2)
    lines = {one.get_label(): one.get_ydata() for one in axes.lines}
    np.testing.assert_allclose(lines["validation"], ends.mean(axis=1))


def test_columns_are_matched_to_graphs_by_name_or_by_position() -> None:
    models = {size: networks.mlp(size) for size in ("1-2-1", "1-8-1")}
    result = cgprimer.sweep(line(), DATA, {"graph": models}, epochs=3, validation=0.25)
    assert [row["graph"] for row in result.rows()] == ["1-2-1", "1-8-1"]
    part, others = (match_columns_to_graph(models["1-8-1"], one) for one in DATA.split(0.25, 0))
    single = cgprimer.train(models["1-8-1"], part, epochs=3, validation=others)
    np.testing.assert_allclose(result.runs[1].validation_losses, single.validation_losses)
    data = cgprimer.Dataset.from_arrays({"a": [1.0, 2.0], "b": [3.0, 4.0]}, {"y": [0.0, 1.0]})
    network = match_columns_to_graph(networks.mlp("2-3-1"), data)
    assert network.inputs["x"].tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert network.targets["xo"].tolist() == [[0.0], [1.0]]
    swapped = match_columns_to_graph(cgprimer.parse("input b, a; y = k*a*b"), data)
    assert swapped.inputs["a"].tolist() == [1.0, 2.0]
    with refused(DataError, "3 ... 2"):
        match_columns_to_graph(networks.mlp("3-1"), data)


GRAPHS = ({"graph": line()}, {"graph": {"a": networks.mlp("2-1")}})
LARGE = {"seed": [*range(101)], "epochs": [*range(101)]}


@pytest.mark.parametrize("vary", [*table("sweep, refused"), *GRAPHS, LARGE], ids=range(14))
def test_wrong_arguments_are_found_before_any_run(
    vary: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cgprimer.training.sweeps.train", lambda *_, **__: pytest.fail("a run"))
    with refused(CgprimerError):
        cgprimer.sweep(line(), DATA, vary)


def test_the_command_sweep_prints_rows_of_runs(tmp_path: Path) -> None:
    words = ("sweep", "lecture", "--optimizer", "sgd,adam", "--learning-rate", "1e-4,0.1",
             "--samples", "50", "--epochs", "3", "--csv", "s.csv")  # fmt: skip
    assert len(good(*words, cwd=tmp_path).splitlines()) == 6
    assert "--force" in bad(*words, cwd=tmp_path)
    listed = read_json(*words, "--force", cwd=tmp_path)["runs"]
    rows = csv.DictReader(io.StringIO((tmp_path / "s.csv").read_text()))
    names = ("optimizer", "learning_rate", "loss")
    assert [[row[name] for name in names] for row in rows] == [
        [str(run[name]) for name in names] for run in listed
    ]
    for options, name, values in table("options of the command sweep"):
        runs = read_json("sweep", "lecture", *options.split(), "--epochs", "1")["runs"]
        assert [run[name] for run in runs] == values
        assert len({run["loss"] for run in runs}) == len(runs)


def test_an_interrupted_sweep_reports_finished_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupt after the first of four runs; the others would take hours."""
    stop = nullcontext(Mock(side_effect=KeyboardInterrupt))
    monkeypatch.setattr("cgprimer.cli.sweep_command.progress_bar", lambda _: stop)
    epochs = "1,1000000000,1000000001,1000000002"
    words = ("sweep", "lecture", "--samples", "9", "--epochs", epochs, "--jobs", "2")
    done = here(*words, "--csv", "s.csv", cwd=tmp_path)
    assert done.returncode == 130, done.stderr
    assert "runs were not started" in done.stdout + done.stderr
    first, *others = csv.DictReader(io.StringIO((tmp_path / "s.csv").read_text()))
    assert first["epochs"] == "1"
    assert len(others) < 3


NEURON = cgprimer.parse("xw = sigmoid(k*xa + b); parameter k = 3, b = -1")
NOISY = cgprimer.make_dataset(line(), samples=60, noise=1.0)


def classes(samples: int = 60, seed: int = 0) -> cgprimer.Dataset:
    random = np.random.default_rng(seed)
    label = random.integers(0, 2, samples).astype(float)
    return cgprimer.Dataset.from_arrays({"xa": label + random.normal(size=samples)}, {"xw": label})


def test_variance_of_an_average_and_votes() -> None:
    """Case F13, and errors with a common part."""
    assert Spread(10, 1.0, 0.25, 0.0).expected == pytest.approx(0.325, rel=1e-15)
    assert Spread(10, 1.0, 0.0, 0.0).expected == pytest.approx(0.1, rel=1e-15)
    random = np.random.default_rng(5)
    errors = random.normal(size=5000) * 0.5 + random.normal(size=(10, 5000)) * np.sqrt(0.75)
    found, products = compute_spread(errors), errors @ errors.T / 5000
    assert found.variance == pytest.approx(np.diag(products).mean())
    assert found.covariance == pytest.approx(products[~np.eye(10, dtype=bool)].mean())
    assert found.measured == pytest.approx(0.325, abs=0.03)
    assert found.measured == pytest.approx(found.expected, rel=1e-12)
    votes = np.array([[2, 0], [1, 1]])  # ties go to the lowest label
    assert find_majority(votes).tolist() == [1, 0]
    assert find_majority(votes, np.array([[True, False], [False, True]])).tolist() == [2, 1]


def test_members_are_runs_on_bootstrap_samples() -> None:
    bag = cgprimer.ensemble(line(), NOISY, members=3, seed=4, epochs=5)
    for k, (run, rows) in enumerate(zip(bag.runs, bag.drawn, strict=True)):
        single = cgprimer.train(line(), NOISY.where(rows), epochs=5, seed=4 + k)
        assert run.parameters == single.parameters
        assert len(rows) == 60 > len({*rows})
    assert len({tuple(rows) for rows in bag.drawn}) == 3
    again = cgprimer.ensemble(line(), NOISY, members=3, seed=4, epochs=5, jobs=1)
    assert [run.parameters for run in again.runs] == [run.parameters for run in bag.runs]
    outputs = np.stack([run.predict(NOISY)["xw"] for run in bag.runs])
    np.testing.assert_array_equal(bag.predict(NOISY)["xw"], outputs.mean(axis=0))


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
        cgprimer.ensemble(line(), NOISY, members=2, epochs=1).vote(NOISY)


def test_members_of_different_models() -> None:
    graphs = {"line": line(), "network": networks.mlp("1-3-1")}
    vary = {"graph": graphs, "learning_rate": [0.05, 0.1]}
    bag = cgprimer.ensemble(line(), NOISY, vary=vary, members=5, epochs=4)
    assert [one["graph"] for one in bag.varied] == ["line", "line", "network", "network", "line"]
    assert [run.settings["learning_rate"] for run in bag.runs] == [0.05, 0.1, 0.05, 0.1, 0.05]
    outputs = []
    for run in bag.runs:
        graph = run.known_graph
        predicted = run.predict(match_columns_to_graph(graph, NOISY))
        outputs.append(predicted[graph.outputs[0]].ravel())
    mean = np.mean(outputs, axis=0)
    np.testing.assert_allclose(bag.predict(NOISY)["xw"], mean)
    np.testing.assert_allclose(bag.predict({"xa": NOISY.inputs["xa"]})["xw"], mean)
    spread = bag.spread(NOISY)
    assert spread.measured == pytest.approx(np.mean((mean - NOISY.targets["xw"]) ** 2))
    assert spread.measured == pytest.approx(spread.expected, rel=1e-12)
    assert np.mean(bag.squared_errors(NOISY)) == pytest.approx(spread.variance)
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
    linear = cgprimer.ensemble(line(), NOISY, bootstrap=False, **settings)
    outputs = linear.averaged_weights().predict(NOISY)["xw"]
    np.testing.assert_allclose(outputs, linear.predict(NOISY)["xw"])
    with refused(UsageError):
        cgprimer.ensemble(line(), NOISY, **settings).averaged_weights()


def test_wrong_arguments_of_ensembles() -> None:
    two = {"two": cgprimer.parse("xw = k*xa; xv = b*xa")}
    for settings in (*table("ensemble, refused"), {"vary": {"graph": two}}):
        with refused(UsageError):
            cgprimer.ensemble(line(), NOISY, **settings)


def test_the_command_ensemble_saves_members(tmp_path: Path) -> None:
    words = ("ensemble", "--engine", "numpy", "--epochs", "2", "--members", "3")
    saved = (*words, "lecture", "--samples", "40", "--noise", "5", "--directory", "bag")
    assert "v/K + c(K-1)/K" in good(*saved, cwd=tmp_path)
    assert "already" in bad(*saved, cwd=tmp_path)
    result = read_json(*saved[:-2])
    assert result["measured"] == pytest.approx(result["expected"], rel=1e-12)
    files = [tmp_path / "bag" / f"member-{k}.json" for k in (1, 2, 3)]
    assert result["losses"] == [cgprimer.load_run(path).loss for path in files]
    varied = (*words, "lecture", "--no-bootstrap", "--optimizer", "sgd,adam", "--samples", "20")
    result = read_json(*varied, "--learning-rate", "1e-4")
    assert [one["optimizer"] for one in result["members_varied"]] == ["sgd", "adam", "sgd"]
    assert result["out_of_bag"] is None
    assert result["averaged_weights"] > 0


def test_logits_are_measured_and_vote_as_probabilities() -> None:
    data, graph = classes(), cgprimer.parse("xw = k*xa + b")
    logits, same = (
        cgprimer.ensemble(g, data, members=3, epochs=5, loss=loss)
        for g, loss in ((graph, "cross-entropy-logit"), (NEURON, "cross-entropy"))
    )
    assert logits.vote(data).tolist() == same.vote(data).tolist()
    assert logits.out_of_bag() == pytest.approx(same.out_of_bag(), rel=1e-6)
    expected = pytest.approx(dataclasses.asdict(same.spread(data)), rel=1e-6)
    assert dataclasses.asdict(logits.spread(data)) == expected
