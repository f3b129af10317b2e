"""Sweeps over settings, training sets and graphs: each run is that of train()."""

from __future__ import annotations

import csv
import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer import networks, plot
from cgprimer.errors import CgprimerError, DataError
from cgprimer.training.model_variations import match_columns_to_graph, sample_subset
from tests.approval import refused
from tests.cli.cli_tools import bad, computed, environment, good, read_json
from tests.training.training_graphs import fields_of, line

DATA = cgprimer.make_dataset(line(), samples=120, noise=0.1)
INTERRUPTIBLE = (  # a shell starts background processes with SIGINT ignored
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "from cgprimer.cli import main; main()"
)


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
    assert fast["steps"] == below[0] * 2  # 90 samples in batches of 50
    assert slow["steps"] is None
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [float(row["loss"]) for row in rows] == [run.loss for run in found.runs]
    assert rows[0]["steps"] == ""
    assert "steps to 0.5" in found.table()


def test_runs_that_diverge_are_reported() -> None:
    vary = {"optimizer": ["sgd", "adam"], "learning_rate": [50.0, 0.1]}
    found = cgprimer.sweep(line(), DATA, vary, epochs=30)
    assert [run.stopped for run in found.runs] == ["diverged"] + ["finished"] * 3
    assert found.best is min(found.runs[1:], key=lambda run: run.loss)
    figure = plot.sweep(found)
    assert [axes.get_title() for axes in figure.axes] == ["sgd\ndiverges: 50", "adam"]


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


def test_graphs_are_trained_on_equal_samples() -> None:
    models = {size: networks.mlp(size) for size in ("1-2-1", "1-8-1")}
    result = cgprimer.sweep(line(), DATA, {"graph": models}, epochs=3, validation=0.25)
    assert [row["graph"] for row in result.rows()] == ["1-2-1", "1-8-1"]
    graph = models["1-8-1"]
    part, others = (match_columns_to_graph(graph, one) for one in DATA.split(0.25, 0))
    single = cgprimer.train(graph, part, epochs=3, validation=others)
    np.testing.assert_allclose(result.runs[1].validation_losses, single.validation_losses)


def test_columns_are_matched_by_name_or_by_position() -> None:
    data = cgprimer.Dataset.from_arrays({"a": [1.0, 2.0], "b": [3.0, 4.0]}, {"y": [0.0, 1.0]})
    network = match_columns_to_graph(networks.mlp("2-3-1"), data)
    assert network.inputs["x"].tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert network.targets["xo"].tolist() == [[0.0], [1.0]]
    swapped = match_columns_to_graph(cgprimer.parse("input b, a; y = k*a*b"), data)
    assert swapped.inputs["a"].tolist() == [1.0, 2.0]
    with refused(DataError, "3 ... 2"):
        match_columns_to_graph(networks.mlp("3-1"), data)


@pytest.mark.parametrize(
    "vary",
    [
        {}, {"learning_rat": [0.1]}, {"epochs": 3}, {"optimizer": "sgd,adam"}, {"epochs": []},
        {"epochs": [1, -1]}, {"seed": [*range(101)], "epochs": [*range(101)]},
        {"samples": [10, 91]}, {"samples": [0, 5]}, {"samples": "10"}, {"graph": line()},
        {"graph": {"a": "xw = k*xa"}}, {"graph": {}}, {"graph": {"a": networks.mlp("2-1")}},
    ],
)  # fmt: skip
def test_wrong_arguments_are_found_before_any_run(
    vary: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cgprimer.training.sweeps.train", lambda *_, **__: pytest.fail("a run"))
    with refused(CgprimerError):
        cgprimer.sweep(line(), DATA, vary)


def test_the_command(tmp_path: Path) -> None:
    words = ("sweep", "lecture", "--optimizer", "sgd,adam", "--learning-rate", "1e-4,0.1",
             "--samples", "50", "--epochs", "3", "--csv", "s.csv")  # fmt: skip
    text = good(*words, cwd=tmp_path)
    assert len(text.splitlines()) == 6
    rows = list(csv.DictReader(io.StringIO((tmp_path / "s.csv").read_text())))
    assert [(row["optimizer"], row["learning_rate"]) for row in rows] == [
        ("sgd", "0.0001"), ("sgd", "0.1"), ("adam", "0.0001"), ("adam", "0.1")]  # fmt: skip
    listed = read_json(*words, "--force", cwd=tmp_path)["runs"]
    assert [str(row["loss"]) for row in listed] == [row["loss"] for row in rows]
    assert "--force" in bad(*words, cwd=tmp_path)


def test_options_that_vary() -> None:
    for words, name, expected in (
        ("--max-norm cd=2 --seeds 0,1", "seed", [0, 1]),
        ("--samples 20,50 --validation 0.5 --l2 0.5", "samples", [20, 50]),
        ("--sizes 1-2-1,1-3-1", "graph", ["1-2-1", "1-3-1"]),
        ("--graphs olah", "graph", ["lecture", "olah"]),
        ("--loss squared-error,xa^2*(out-target)^2", "loss_function",
         ["squared-error", "xa^2*(out-target)^2"]),
    ):  # fmt: skip
        rows = read_json("sweep", "lecture", *words.split(), "--epochs", "1")["runs"]
        assert [row[name] for row in rows] == expected
        assert len({row["loss"] for row in rows}) == len(rows)


@pytest.mark.slow
def test_an_interrupted_sweep_reports_finished_runs(tmp_path: Path) -> None:
    words = ["sweep", "lecture", "--epochs", "400000,400001,400002", "--jobs", "2"]
    command = [sys.executable, "-c", INTERRUPTIBLE, *words, "--csv", "s.csv"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        env=environment(), start_new_session=True,
    ) as process:  # fmt: skip
        try:
            computed(process, 2)
            os.kill(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130, err
    assert "interrupted" in out
    assert "Traceback" not in err
    assert (tmp_path / "s.csv").exists()
