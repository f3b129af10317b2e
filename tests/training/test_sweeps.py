"""Sweeps: the runs are those that come one by one, and the table says what came out."""

from __future__ import annotations

import csv
import io
import os
import signal
import subprocess
from pathlib import Path

import pytest

import cgprimer
from cgprimer import plot
from cgprimer.errors import UsageError
from tests.approval import approved, refused
from tests.cli.cli_tools import COMMAND, bad, computed, environment, good, read_json, run
from tests.plots.plot_tools import entries

LINE = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
DATA = cgprimer.make_dataset(LINE, samples=120)
GRID = {
    "optimizer": ["sgd", "momentum", "adam"],
    "learning_rate": [0.1, 0.01],
    "batch_size": [1, 50],
}


def test_each_run_is_the_one_that_train_makes() -> None:
    found = cgprimer.sweep(LINE, DATA, GRID, epochs=4, jobs=3)
    assert len(found.runs) == 12
    assert len({tuple(of.items()) for of in found.varied}) == 12
    for of, one in zip(found.varied, found.runs, strict=True):
        alone = cgprimer.train(LINE, DATA, epochs=4, **of)
        assert one.parameters == alone.parameters
        assert one.step_losses == alone.step_losses
        assert one.settings == alone.settings


def test_the_rows_are_the_runs(tmp_path: Path) -> None:
    found = cgprimer.sweep(LINE, DATA, {"learning_rate": [0.3, 1e-6]}, epochs=9, threshold=0.5,
                           optimizer="sgd", validation=0.25)  # fmt: skip
    fast, slow = found.rows()
    assert fast["loss"] == found.runs[0].loss
    assert fast["least"] == min(found.runs[0].epoch_losses)
    assert fast["validation"] == found.runs[0].validation_losses[-1]
    below = [k for k, loss in enumerate(found.runs[0].epoch_losses, 1) if loss < 0.5]
    assert fast["steps"] == below[0] * 2  # 90 samples in batches of 50
    assert slow["steps"] is None
    assert found.best is found.runs[0]
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [float(row["loss"]) for row in rows] == [one.loss for one in found.runs]
    assert rows[1]["steps"] == ""
    assert "steps to 0.5" in found.table()


def test_what_diverges_is_said_and_the_rest_goes_on() -> None:
    found = cgprimer.sweep(LINE, DATA, {"learning_rate": [0.1, 50.0]}, optimizer="sgd", epochs=30)
    assert [one.stopped for one in found.runs] == ["finished", "diverged"]
    assert found.best is found.runs[0]
    assert "diverges" in " ".join(entries(plot.sweep(found)))
    vary = {"optimizer": ["sgd", "adam"], "learning_rate": [0.1, 50.0]}
    panels = [axes.get_title() for axes in plot.sweep(cgprimer.sweep(LINE, DATA, vary)).axes]
    assert panels == ["sgd\ndiverges: 50", "adam"]


@pytest.mark.parametrize(
    ("vary", "said"),
    [
        ({}, ""),
        ({"learning_rat": [0.1]}, "'learning_rate'"),
        ({"epochs": 3}, ""),
        ({"optimizer": "sgd,adam"}, ""),
        ({"epochs": []}, ""),
        ({"epochs": [1, -1]}, ""),
        ({"seed": list(range(101)), "epochs": list(range(101))}, "10,201 runs"),
    ],
)
def test_mistakes_are_said_before_any_run(vary: dict, said: str, monkeypatch) -> None:
    monkeypatch.setattr("cgprimer.training.sweeps.train", lambda *_, **__: pytest.fail("a run"))
    with refused(UsageError, said):
        cgprimer.sweep(LINE, DATA, vary)


@pytest.mark.parametrize("option", ["l1", "l2", "max-norm"])
def test_a_penalty_varies_and_may_be_given_by_name(option):
    key = option.replace("-", "_")
    rows = read_json("sweep", "lecture", f"--{option}", "0.5,2", "--epochs", "1", "--json")["runs"]
    assert [row[key] for row in rows] == [0.5, 2.0]
    words = (f"--{option}", "cd=2", "--seeds", "0,1", "--epochs", "1", "--json")
    rows = read_json("sweep", "lecture", *words)["runs"]
    assert [row["seed"] for row in rows] == [0, 1]
    assert "'x'" in bad("sweep", "lecture", f"--{option}", "0.5,x")


def test_the_command(tmp_path: Path) -> None:
    words = ("sweep", "lecture", "--optimizer", "sgd,adam", "--learning-rate", "1e-4,0.1",
             "--samples", "200", "--epochs", "6")  # fmt: skip
    text = good(*words, "--csv", "s.csv", "--plot", "s.svg", cwd=tmp_path)
    assert len(text.splitlines()) == 6
    rows = list(csv.DictReader(io.StringIO((tmp_path / "s.csv").read_text())))
    assert [(row["optimizer"], row["learning_rate"]) for row in rows] == [
        ("sgd", "0.0001"), ("sgd", "0.1"), ("adam", "0.0001"), ("adam", "0.1")]  # fmt: skip
    told = read_json(*words, "--json")
    assert [str(row["loss"]) for row in told["runs"]] == [row["loss"] for row in rows]
    assert "--force" in bad(*words, "--csv", "s.csv", cwd=tmp_path)
    good(*words, "--csv", "s.csv", "--force", cwd=tmp_path)
    seeds = read_json("sweep", "lecture", "--seeds", "0,1,2", "--epochs", "1", "--json")
    assert [row["seed"] for row in seeds["runs"]] == [0, 1, 2]
    assert len({row["loss"] for row in seeds["runs"]}) == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--epochs", "3"], ""),
        (["--optimizer", "sgd,adamx"], "'adam'"),
        (["--learning-rate", "0.1,x"], "'x'"),
        (["--epochs", "1,2", "--jobs", "0"], "--jobs"),
        (["--epochs", "1,2", "--plot", "a.jpg"], ".pdf"),
        (["--epochs", "1,2", "--data", "nowhere.csv"], "nowhere.csv"),
    ],
)
def test_mistakes_on_the_command_line(words: list[str], said: str) -> None:
    approved(bad("sweep", "lecture", *words), said)


@pytest.mark.slow
def test_an_interrupted_sweep_says_what_was_done(tmp_path: Path) -> None:
    words = ["sweep", "lecture", "--epochs", "400000,400001,400002", "--jobs", "2"]
    words += ["--csv", "s.csv"]
    with subprocess.Popen(
        [COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=tmp_path, env=environment(),
    ) as process:  # fmt: skip
        computed(process, 2)
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "interrupted" in out
    assert "Traceback" not in err
    assert (tmp_path / "s.csv").exists()


def test_help_names_every_setting() -> None:
    text = run("sweep", "--help").stdout
    assert all(f"--{n}" in text for n in ("optimizer", "learning-rate", "seeds", "threshold"))


def test_many_optimizers_have_a_panel_each() -> None:
    names = ["sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam", "adamw"]
    vary = {"optimizer": names, "learning_rate": [1e-3, 1e3, 1e4, 1e5]}
    found = cgprimer.sweep(LINE, DATA, vary, epochs=2)
    figure = plot.sweep(found)
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title().split("\n")[0] for axes in shown] == names
    assert shown[3].xaxis.get_tick_params()["labelbottom"]  # below it is no panel
    assert "diverge" in shown[0].get_title()
    many = cgprimer.sweep(LINE, DATA, {"seed": [*range(12)], "batch_size": [5, 10]}, epochs=1)
    assert [axes.get_title() for axes in plot.sweep(many).axes] == ["5", "10"]


def test_losses_that_vary_find_their_columns_and_are_told(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("x,y,w\n0,1,1\n1,3,2\n2,4,1\n")
    losses = "squared-error,w*(out - target)^2"
    rows = read_json("sweep", "-e", "y = a + b*x", "--data", "d.csv", "--loss", losses,
                     "--epochs", 1, cwd=tmp_path)["runs"]  # fmt: skip
    assert [row["loss_function"] for row in rows] == losses.split(",")
    assert rows[0]["loss"] != rows[1]["loss"]


def test_targets_are_not_normalised_where_no_output_has_their_name(tmp_path: Path) -> None:
    graph = cgprimer.parse("y = a + b*x")
    data = cgprimer.Dataset.from_arrays({"x": [0.0, 1.0, 2.0]}, {"w": [1.0, 3.0, 4.0]})
    with refused(UsageError, "'y'"):
        cgprimer.train(graph, data, loss="(y - w)^2", normalize="all")
    assert cgprimer.train(graph, data, loss="(y - w)^2", normalize="inputs", epochs=1).scales
