"""Training several models on the same data: training sets of several sizes, several graphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cgprimer
from cgprimer import networks, plot
from cgprimer.errors import DataError, UsageError
from cgprimer.training.model_variations import match_columns_to_graph, sample_subset
from tests.approval import approved, refused
from tests.cli.cli_tools import bad, good, read_json

LINE = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
DATA = cgprimer.make_dataset(LINE, samples=200, noise=0.5)


def test_training_sets_of_several_sizes_share_their_validation_samples() -> None:
    result = cgprimer.sweep(LINE, DATA, {"samples": [10, 150]}, epochs=5)
    assert [run.settings["samples"] for run in result.runs] == [10, 150]
    assert [run.settings["validation_samples"] for run in result.runs] == [50, 50]
    rest, kept = DATA.split(0.25, 0)
    alone = cgprimer.train(LINE, sample_subset(rest, 10, 0), epochs=5, validation=kept)
    assert result.runs[0].parameters == alone.parameters
    assert result.runs[0].validation_losses == alone.validation_losses


def test_more_samples_lower_the_validation_loss() -> None:
    graph = cgprimer.parse("xw = a + b*x + c*x^2 + d*x^3 + e*x^4")
    truth = dict.fromkeys("abcde", 0.5)
    data = cgprimer.make_dataset(graph, truth=truth, samples=2000, noise=1.0)
    vary = {"samples": [8, 1000], "seed": [0, 1, 2]}
    result = cgprimer.sweep(graph, data, vary, optimizer="l-bfgs", epochs=100, validation=0.4)
    ends = np.array([run.validation_losses[-1] for run in result.runs]).reshape(2, 3).mean(axis=1)
    assert ends[0] > 1.2 * ends[1]
    figure = plot.sweep(result)
    assert figure.axes[0].get_xlabel() == "training samples"
    lines = {line.get_label(): line.get_ydata() for line in figure.axes[0].lines}
    np.testing.assert_allclose(lines["validation"], ends)


def test_columns_are_matched_by_name_or_by_position() -> None:
    data = cgprimer.Dataset.from_arrays({"a": [1.0, 2.0], "b": [3.0, 4.0]}, {"y": [0.0, 1.0]})
    network = match_columns_to_graph(networks.mlp("2-3-1"), data)
    assert network.inputs["x"].tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert network.targets["xo"].tolist() == [[0.0], [1.0]]
    swapped = match_columns_to_graph(cgprimer.parse("input b, a; y = k*a*b"), data)
    assert swapped.inputs["a"].tolist() == [1.0, 2.0]
    with refused(DataError, "3 ... 2"):
        match_columns_to_graph(networks.mlp("3-1"), data)


def test_graphs_are_trained_on_the_same_samples() -> None:
    models = {size: networks.mlp(size) for size in ("1-2-1", "1-8-1")}
    result = cgprimer.sweep(LINE, DATA, {"graph": models}, epochs=3, validation=0.25)
    assert [row["graph"] for row in result.rows()] == ["1-2-1", "1-8-1"]
    part, others = DATA.split(0.25, 0)
    graph = models["1-8-1"]
    alone = cgprimer.train(
        graph,
        match_columns_to_graph(graph, part),
        epochs=3,
        validation=match_columns_to_graph(graph, others),
    )
    np.testing.assert_allclose(result.runs[1].validation_losses, alone.validation_losses)
    ticks = [text.get_text() for text in plot.sweep(result).axes[0].get_xticklabels()]
    assert ticks == ["1-2-1", "1-8-1"]


@pytest.mark.parametrize(
    ("vary", "error", "message"),
    [
        ({"samples": [10, 151]}, UsageError, "150"),
        ({"samples": [0, 5]}, UsageError, "got 0"),
        ({"samples": "10"}, UsageError, ""),
        ({"graph": LINE}, UsageError, ""),
        ({"graph": {"a": "xw = k*xa"}}, UsageError, ""),
        ({"graph": {}}, UsageError, ""),
        ({"graph": {"a": networks.mlp("2-1")}}, DataError, "2"),
    ],
)
def test_mistakes(vary: dict, error: type[Exception], message: str) -> None:
    with refused(error, message):
        cgprimer.sweep(LINE, DATA, vary, epochs=1)


def test_sizes_of_the_training_set_on_the_command_line(tmp_path: Path) -> None:
    words = ("sweep", "lecture", "--samples", "20,50", "--noise", "5", "--epochs", "2")
    rows = read_json(*words, "--json")["runs"]
    assert [row["samples"] for row in rows] == [20, 50]
    assert all("validation" in row for row in rows)
    rows = read_json(*words, "--validation", "0.5", "--batch-size", "all", "--json")["runs"]
    assert [row["samples"] for row in rows] == [20, 50]
    good("data", "lecture", "--samples", "100", "-o", "new.csv", cwd=tmp_path)
    words = ("sweep", "lecture", "--data", "new.csv", "--epochs", "2")
    good(*words, "--samples", "20,50", "--plot", "s.svg", cwd=tmp_path)
    assert (tmp_path / "s.svg").exists()
    approved(bad(*words, "--samples", "20,80", cwd=tmp_path), "75")
    approved(bad(*words, "--samples", "20", cwd=tmp_path), "--samples")


def test_layer_sizes_on_the_command_line(tmp_path: Path) -> None:
    rows = read_json("sweep", "lecture", "--sizes", "1-2-1,1-3-1", "--epochs", "2", "--json")
    assert [row["graph"] for row in rows["runs"]] == ["1-2-1", "1-3-1"]
    rows = read_json("sweep", "lecture", "--graphs", "olah", "--epochs", "1", "--json")
    assert [row["graph"] for row in rows["runs"]] == ["lecture", "olah"]
    (tmp_path / "own.csv").write_text("height,width,label\n1,2,0\n3,4,1\n5,6,1\n7,8,0\n")
    words = ("sweep", "--sizes", "2-2-1,2-4-1", "--data", "own.csv", "--epochs", "2")
    assert "2-4-1" in good(*words, "--validation", "0.25", "--activation", "relu", cwd=tmp_path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--sizes", "2-4-1"], "--data"),
        (["--sizes", "1-x"], "1-x"),
        (["lecture", "--epochs", "1,2", "--activation", "relu"], "--sizes"),
        (["lecture", "--graphs", "lecture"], ""),
        (["lecture", "--graphs", "nowhere.cg"], "nowhere.cg"),
        (["lecture", "--sizes", "2-1,2-2-1"], "2"),
        (["lecture", "--sizes", "1-2-1,1-3-1", "--activation", "rleu"], "rleu"),
        ([], ""),
    ],
)
def test_mistakes_on_the_command_line(words: list[str], message: str) -> None:
    approved(bad("sweep", *words), message)


def test_members_of_different_models_are_averaged() -> None:
    models = {"line": LINE, "network": networks.mlp("1-3-1")}
    vary = {"graph": models, "learning_rate": [0.05, 0.1]}
    bag = cgprimer.ensemble(LINE, DATA, vary=vary, members=5, epochs=4)
    assert [one["graph"] for one in bag.varied] == ["line", "line", "network", "network", "line"]
    assert [run.settings["learning_rate"] for run in bag.runs] == [0.05, 0.1, 0.05, 0.1, 0.05]
    mean = np.mean(
        [
            run.predict(match_columns_to_graph(run.known_graph, DATA))[
                run.known_graph.outputs[0]
            ].ravel()
            for run in bag.runs
        ],
        axis=0,
    )
    np.testing.assert_allclose(bag.predict(DATA)["xw"], mean)
    np.testing.assert_allclose(bag.predict({"xa": DATA.inputs["xa"]})["xw"], mean)
    spread = bag.spread(DATA)
    assert spread.measured == pytest.approx(np.mean((mean - DATA.targets["xw"]) ** 2))
    assert spread.measured == pytest.approx(spread.expected, rel=1e-12)
    assert np.mean(bag.squared_errors(DATA)) == pytest.approx(spread.variance)
    with refused(UsageError):
        bag.averaged_weights()


def test_averaged_weights_are_the_mean_and_not_the_averaged_outputs() -> None:
    graph = networks.mlp("1-4-1")
    data = match_columns_to_graph(
        graph, cgprimer.make_dataset(cgprimer.parse("y = sin(3*x)"), samples=100)
    )
    bag = cgprimer.ensemble(graph, data, members=3, bootstrap=False, epochs=150)
    assert all(rows.tolist() == list(range(100)) for rows in bag.drawn)
    mean = bag.averaged_weights()
    each = np.mean([run.parameters["W1"] for run in bag.runs], axis=0)
    np.testing.assert_allclose(mean.parameters["W1"], each)
    assert bag.averaged_weights_error(data) > 2 * bag.spread(data).measured
    line = cgprimer.ensemble(LINE, DATA, members=3, epochs=4)  # linear in its parameters
    outputs = line.averaged_weights().predict(DATA)["xw"]
    np.testing.assert_allclose(outputs, line.predict(DATA)["xw"])


def test_averaged_weights_of_normalized_columns() -> None:
    settings = {"members": 2, "epochs": 2, "normalize": "all"}
    with refused(UsageError):
        cgprimer.ensemble(LINE, DATA, **settings).averaged_weights()
    bag = cgprimer.ensemble(LINE, DATA, bootstrap=False, **settings)
    outputs = bag.averaged_weights().predict(DATA)["xw"]
    np.testing.assert_allclose(outputs, bag.predict(DATA)["xw"])


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ({"seed": [1, 2]}, "seed"),
        ({"loss": ["squared-error", "huber"]}, "loss"),
        ({"epochs": [1, 2, 3]}, "3 ... 2"),
        ({"graph": {"two": cgprimer.parse("xw = k*xa; xv = b*xa")}}, "2"),
    ],
)
def test_mistakes_with_ensembles(vary: dict, message: str) -> None:
    with refused(UsageError, message):
        cgprimer.ensemble(LINE, DATA, vary=vary, members=2)


def test_ensembles_of_models_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("a,b\n" + "".join(f"{k / 9},{k % 3}\n" for k in range(24)))
    words = ("ensemble", "--sizes", "1-2-1,1-4-1", "--members", "2", "--epochs", "2")
    text = good(*words, "--data", "own.csv", cwd=tmp_path)
    assert "1-4-1" in text
    assert "averaged weights" not in text
    words = ("ensemble", "lecture", "--samples", "60", "--members", "2", "--no-bootstrap")
    result = read_json(*words, "--optimizer", "sgd,adam", "--learning-rate", "1e-4", "--json")
    assert result["members_varied"] == [{"optimizer": "sgd"}, {"optimizer": "adam"}]
    assert result["out_of_bag"] is None
    assert result["averaged_weights"] > 0
    assert "averaged weights" in good(*words)
    assert "--members 3" in bad(*words, "--epochs", "1,2,3")
