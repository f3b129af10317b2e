"""``cgprimer train`` and the commands that use its runs: reports, files, resumption, refusals."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.approval import approved
from tests.cli.cli_tools import LECTURE, bad, good, read_json, run

SHORT = ("--samples", "200", "--epochs", "3")
LINE = ("-e", "xw = k*xa + b", "--truth", "k=3,b=-1")


def read_run(path: Path) -> dict[str, Any]:
    """Return the contents of a run's file without the training time."""
    contents: dict[str, Any] = json.loads(path.read_text())
    return {**contents, "seconds": 0}


def test_a_data_file_replaces_generated_data(tmp_path: Path) -> None:
    generated = read_json("train", LECTURE, *SHORT, "--seed", "5")
    for name in ("d.csv", "d.npz"):
        good("data", LECTURE, "--samples", "200", "--seed", "5", "-o", tmp_path / name)
        line = ("train", LECTURE, "--data", tmp_path / name, "--epochs", "3")
        assert read_json(*line, "--seed", "5")["parameters"] == generated["parameters"]
        assert read_json(*line)["loss"] != generated["loss"]  # another start
    (tmp_path / "own.csv").write_text("day,xa,xw\nmon,1,2\ntue,2,5\nwed,3,6\n")
    line = ("train", "-e", "xw = k*xa + b; parameter k = 3", "--data", "own.csv", "--epochs", "2")
    report = good(*line, "--save", "run.json", cwd=tmp_path)
    assert "declared" in report
    assert "true" not in report
    assert read_run(tmp_path / "run.json")["truth"] == {}
    line = ("train", *LINE, "--start", "k=3", "--start", "b=-1", "--epochs", "2", "--samples", "10")
    found = read_json(*line, "--batch-size", "all")
    assert found["start"] == found["parameters"] == found["truth"] == {"k": 3.0, "b": -1.0}
    assert (found["start_loss"], found["steps"]) == (0.0, 2)


def test_columns_are_those_that_the_loss_needs(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("x,y,z,note\n0,0.5,1,9\n1,2,1,9\n2,4.5,1,9\n")
    line = ("train", "-e", "xo = k*x + b", "--data", "d.csv", "--epochs", "5")
    loss = "(xo - y)^2/2 + 0.1*k^2"
    found = read_json(*line, "--loss", loss, cwd=tmp_path)
    assert found["settings"]["loss"] == loss
    assert found["loss"] < found["start_loss"]
    renamed = read_json(*line, "--columns", "xo=y", "--l2", "k=0.1", cwd=tmp_path)
    assert renamed["start_loss"] != found["start_loss"]
    approved(bad(*line, "--loss", "(xo - t)^2", cwd=tmp_path), "'t'")
    approved(bad(*line, cwd=tmp_path), "'xo'")
    note = run("train", "-e", "y = k*x + z", "--data", "d.csv", "--epochs", "1", cwd=tmp_path)
    approved(note.stderr, "'input z'")


def test_validation_uses_a_fraction_or_a_file(tmp_path: Path) -> None:
    good("train", LECTURE, *SHORT, "--validation", "0.25", "--save", tmp_path / "run.json")
    saved = read_run(tmp_path / "run.json")
    assert len(saved["validation_losses"]) == len(saved["epoch_losses"]) == 3
    assert (saved["settings"]["samples"], saved["settings"]["steps_per_epoch"]) == (200, 3)
    longer = ("train", LECTURE, "--samples", "200", "--epochs", "5", "--resume")
    resumed = read_json(*longer, tmp_path / "run.json", "--schedule", "constant")
    assert resumed["validation_losses"][:3] == saved["validation_losses"]
    for option in (("--validation", "0.5"), ("--seed", "1")):  # another split
        approved(bad(*longer, tmp_path / "run.json", *option))
    (tmp_path / "other.csv").write_text("xa,xw\n-1,0\n2,1\n")
    found = read_json("train", LECTURE, *SHORT, "--validation", tmp_path / "other.csv")
    assert found["parameters"] == read_json("train", LECTURE, *SHORT)["parameters"]
    report = good("train", "-e", "xw = k*log(xa)", "--truth", "k=2", "--low", "1", "--high", "2",
                  *SHORT, "--validation", tmp_path / "other.csv")  # fmt: skip
    assert report.count("no finite validation loss over 2 samples") == 1


def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path: Path) -> None:
    constant = ("train", LECTURE, "--samples", "200", "--schedule", "constant")
    files = ("--save", "run.json", "--plot", "loss.svg")
    assert run(*constant, "--epochs", "3", *files, cwd=tmp_path).stderr == (
        "wrote run.json\nwrote loss.svg\n"
    )
    whole = read_json(*constant, "--epochs", "5")
    resumed = read_json(*constant, "--epochs", "5", "--resume", tmp_path / "run.json")
    assert {**resumed, "seconds": 0} == {**whole, "seconds": 0}
    good("train", "--resume", "run.json", "--epochs", "4", "--save", "run.json", cwd=tmp_path)
    assert read_run(tmp_path / "run.json")["epochs"] == 4  # it may replace its own file
    approved(bad(*constant, *files, cwd=tmp_path), "loss.svg")


def test_resuming_with_another_graph_is_refused_with_the_differences(tmp_path: Path) -> None:
    graph = ("-e", "xw = k*xa; parameter k = 3")
    good("train", *graph, *SHORT, "--save", tmp_path / "run.json")
    more = ("--epochs", "9", "--resume", tmp_path / "run.json")
    approved(bad("train", "-e", "xw = k*xa^2", *more), "xw = k*xa^2")
    approved(bad("train", "-e", "xw = j*xa", *more), "k ... j")
    approved(bad("train", *graph, *more, "--optimizer", "sgd"), "adam ... sgd")


def test_a_directory_contains_everything_and_its_configuration_runs_again(tmp_path: Path) -> None:
    good("data", LECTURE, "--samples", "100", "-o", tmp_path / "d.csv")
    folder = tmp_path / "runs" / "first"
    options = (
        "--data", tmp_path / "d.csv", "--epochs", "3", "--batch-size", "all", "--start",
        "ab=0.5,bc=1", "--method", "forward", "--carry", "--optimizer",
        "v = mu*v + g; p = p - rate*v", "--hyper", "mu=0.5,gamma=0.8", "--schedule", "exponential",
        "--learning-rate", "1e-6", "--warm-up", "0.5", "--l1", "ab=0.1", "--l2", "0.01", "--bounds",
        "ab=0:1,cd=-1:inf", "--freeze", "ac", "--max-norm", "ab+bc=2", "--norm", "1", "--scale",
        "bc=0.5",
    )  # fmt: skip
    report = good("train", LECTURE, *options, "--directory", folder)
    assert "regularizers add" in report
    assert sorted(path.name for path in folder.iterdir()) == [
        "graph.cg", "loss.png", "metrics.jsonl", "parameters.json", "run.json", "run.toml",
    ]  # fmt: skip
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2, 3]
    assert (folder / "run.toml").read_text().count("../../d.csv") == 1
    again = read_json("train", folder / "run.toml", cwd=tmp_path)
    assert again["parameters"] == json.loads((folder / "parameters.json").read_text())
    saved = read_run(folder / "run.json")
    for key in ("settings", "start", "epoch_losses", "penalty"):
        assert again[key] == saved[key]
    approved(bad("train", LECTURE, "--directory", folder))
    good("train", LECTURE, *SHORT, "--directory", folder, "--force")


def test_files_that_are_missing_from_a_directory_are_written_again(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    good("train", LECTURE, *SHORT, "--directory", folder)
    written = {name: (folder / name).read_bytes() for name in ("loss.png", "parameters.json")}
    for name in written:  # written after the last checkpoint
        (folder / name).unlink()
    good("train", LECTURE, "--resume", folder)
    assert {name: (folder / name).read_bytes() for name in written} == written
    approved(bad("train", LECTURE, "--resume", folder))


def test_a_configuration_file_replaces_options(tmp_path: Path) -> None:
    (tmp_path / "g.cg").write_text("xw = k*xa + b")
    config = tmp_path / "run.toml"
    config.write_text(
        'graph = "g.cg"\nsamples = 50\nbatch-size = "all"\nshuffle = false\nepochs = 2\n'
        'optimizer = "sgd"\n[truth]\nk = 3\nb = -1\n[start]\nk = 3\n"b" = -1\n'
    )
    found = read_json("train", config)
    assert found["steps"] == 2
    assert found["parameters"] == {"k": 3.0, "b": -1.0}
    assert read_json("train", config, "--epochs", "5")["steps"] == 5  # options take precedence
    config.write_bytes(b'\xef\xbb\xbfexpression = "xw = k*xa"\r\nsamples = 9\r\nepochs = 0\r\n')
    assert read_json("train", config, "--truth", "k=1")["settings"]["samples"] == 9


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("epochz = 2", "run.toml:2 ... 'epochz' ... 'epochs'"),
        ("epochs = 2.5", "run.toml:2 ... epochs ... '2.5'"),
        ("epochs = true", "run.toml:2 ... epochs ... True"),
        ("shuffle = 1", "run.toml:2 ... shuffle ... 1"),
        ("batch_size = 'some'", "run.toml:2 ... batch_size"),
        ("data = 1979-05-27", "run.toml:2 ... data"),
        ("force = true", "'force'"),
        ("epochs = ", "line 2"),
        ("a = " + "[" * 100_000, "run.toml"),
        ("[start]\nzz = 1", "'zz'"),
        ("", "'graph'"),
    ],
    ids=range(11),
)
def test_errors_in_a_configuration_file_are_located(line: str, values: str, tmp_path: Path) -> None:
    (tmp_path / "g.cg").write_text("xw = k*xa + b")
    config = tmp_path / "run.toml"
    config.write_text(f'graph = "g.cg"\n{line}\n' if line else "epochs = 2\n")
    approved(bad("train", config, "--truth", "k=1,b=1"), values)


def test_diverged_runs_are_saved_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    line = ("train", *LINE, *SHORT, "--optimizer", "sgd", "--schedule", "constant")
    for rate, reason in (("7", "the loss has grown from"), ("1e200", "training stopped at step")):
        process = run(*line, "--batch-size", "all", "--learning-rate", rate, "--save", path,
                      "--force")  # fmt: skip
        assert process.returncode == 1
        saved = read_run(path)
        assert saved["stopped"] == "diverged"
        assert reason in saved["reason"]
        assert saved["reason"] in process.stderr
        assert saved["steps"] == len(saved["step_losses"])
        assert not re.search("NaN|Infinity", path.read_text())


def test_commands_use_the_parameters_of_a_run(tmp_path: Path) -> None:
    text = "xo = sigmoid(w1*x1 + w2*x2 + b)"
    (tmp_path / "d.csv").write_text("x1,x2,xo\n0,0,0\n0.2,0.1,0\n2,2,1\n1.5,2.5,1\n")
    data = ("--data", "d.csv")
    good("train", "-e", text, *data, "--loss", "cross-entropy", "--epochs", "300",
         "--batch-size", "all", "--save", "run.json", cwd=tmp_path)  # fmt: skip
    found = read_json("score", "run.json", *data, cwd=tmp_path)
    assert found["confusion"] == {"labels": [0.0, 1.0], "counts": [[2, 0], [0, 2]]}
    approved(good("score", "run.json", *data, cwd=tmp_path), "4 of 4 correct")
    learned = read_run(tmp_path / "run.json")["parameters"]
    point = ",".join(f"{name}={value!r}" for name, value in learned.items())
    line = ("grad", "-e", text, "--at", "x1=1,x2=0.5", "--at")
    assert good(*line, "run.json", cwd=tmp_path) == good(*line, point)
    assert good(*line, "run.json,w1=0", cwd=tmp_path) != good(*line, point)
    (tmp_path / "e.csv").write_text("x1,y\n1,2\n")
    assert "x2" in bad("predict", "run.json", "--data", "e.csv", cwd=tmp_path)


def test_arrays_are_trained_from_a_table(tmp_path: Path) -> None:
    network = "input x[3]; parameter W[8,3] = 0.5, v[8] = 1; xo = v @ tanh(W @ x)"
    good("data", "-e", network, "--samples", "200", "-o", "d.csv", cwd=tmp_path)
    assert (tmp_path / "d.csv").read_text().startswith("x[0],x[1],x[2],xo\n")
    line = ("train", "-e", network, "--data", "d.csv")
    report = good(*line, "--epochs", "2", "--start", "v=0.1", "--save", "r.json", cwd=tmp_path)
    assert re.search(r"^norm of W\[8,3\] +\S+ +2.4494897\b", report, re.MULTILINE)  # sqrt(24)/2
    assert re.search(r"^v\[7\] +\S+ +1\b", report, re.MULTILINE)
    saved = read_run(tmp_path / "r.json")
    assert saved["start"]["v"] == [0.1] * 8
    assert [len(row) for row in saved["parameters"]["W"]] == [3] * 8
    good(*line, "--epochs", "3", "--resume", "r.json", cwd=tmp_path)
    wrong = ("train", "-e", network.replace("3]", "4]"), "--data", "d.csv")
    approved(bad(*wrong, cwd=tmp_path), "x[3]")


@pytest.mark.slow
def test_every_hash_seed_gives_the_same_run() -> None:
    line = ("train", LECTURE, *SHORT)
    runs = [read_json(*line, env={"PYTHONHASHSEED": seed}) | {"seconds": 0} for seed in "12"]
    assert runs[0] == runs[1]
