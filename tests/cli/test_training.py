"""The main job: its report, its files, and what it refuses before it starts."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import pytest

from tests.approval import approved
from tests.cli.cli_tools import LECTURE, bad, environment, good, here, read_json, run

SHORT = ("--samples", "200", "--epochs", "3")


def test_the_lecture_example_with_defaults() -> None:
    done = run("train", LECTURE)
    assert done.returncode == 0
    assert done.stderr == ""
    first = done.stdout.splitlines()[0]
    share = float(first.partition("(")[2].split()[0])
    assert share < 1e-6
    text = done.stdout
    assert "The data determine 3 of 4 parameters" in text
    assert "ab and bc cannot be determined separately" in text
    assert "increasing ab by 1 and decreasing bc by 1 leaves xw unchanged." in text
    assert "Combinations that the data determine: ab + bc." in text
    rows = {line.split("  ")[0].strip(): line for line in text.splitlines()}
    assert rows["cd"].split()[1:] == [rows["cd"].split()[1], "3"]
    assert float(rows["cd"].split()[1]) == pytest.approx(3, abs=0.01)
    assert float(rows["ac"].split()[1]) == pytest.approx(4, abs=0.01)
    assert float(rows["ab + bc"].split()[3]) == pytest.approx(3, abs=0.01)
    assert rows["ab + bc"].split()[-2:] == ["3", "determined"]
    assert rows["ab"].endswith("not determined by itself")


def test_json() -> None:
    found = read_json("train", LECTURE, *SHORT)
    assert list(found) == [
        "format", "version", "graph", "parameters", "start", "truth", "settings", "start_loss",
        "loss", "epoch_losses", "validation_losses", "epochs", "steps", "seconds", "stopped",
        "reason", "metrics", "best_epoch", "last_parameters", "statistics", "penalty",
        "last_statistics", "scales", "converged",
        "identifiability",
    ]  # fmt: skip
    assert (found["format"], found["version"]) == ("cgprimer-run", 1)
    assert found["truth"] == {"ab": 1.0, "bc": 2.0, "cd": 3.0, "ac": 4.0}
    assert (found["epochs"], found["steps"], found["stopped"]) == (3, 12, "finished")
    assert len(found["epoch_losses"]) == 3
    assert found["identifiability"].pop("condition") < 1e3
    assert found["identifiability"] == {
        "rank": 3,
        "everywhere": [True],
        "null_directions": [{"ab": 1.0, "bc": -1.0}],
        "determined": [{"ab": 1.0, "bc": 1.0}],
    }


def test_truth_start_and_batch_size() -> None:
    found = read_json(
        "train", "-e", "xw = k*xa + b", "--truth", "k=2,b=5", "--start", "k=2", "--start", "b=5",
        "--batch-size", "all", "--epochs", "2", "--samples", "10",
    )  # fmt: skip
    assert found["start"] == found["parameters"] == found["truth"] == {"k": 2.0, "b": 5.0}
    assert found["start_loss"] == 0.0
    assert found["steps"] == 2


def test_no_epochs_report_the_start() -> None:
    found = read_json("train", LECTURE, "--epochs", "0", "--samples", "10")
    assert found["steps"] == 0
    assert found["parameters"] == found["start"]
    assert found["loss"] == found["start_loss"]
    assert "0 epochs, 0 steps" in good("train", LECTURE, "--epochs", "0", "--samples", "10")


def test_zero_loss_from_the_start_is_reported_without_a_nan() -> None:
    text = good(
        "train", "-e", "xw = k*xa", "--truth", "k=2", "--start", "k=2", "--epochs", "1",
        "--samples", "10",
    )  # fmt: skip
    assert "nan" not in text


@pytest.mark.parametrize("kind", ["csv", "npz"])
def test_from_a_file(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"d.{kind}"
    good("data", LECTURE, "--samples", "300", "--seed", "5", "-o", path)
    from_file = read_json("train", LECTURE, "--data", path, "--epochs", "2")
    made = read_json("train", LECTURE, "--samples", "300", "--epochs", "2", "--seed", "5")
    assert from_file["settings"]["samples"] == 300
    assert from_file["loss"] != made["loss"]  # another seed for the start
    again = read_json("train", LECTURE, "--data", path, "--epochs", "2", "--seed", "5")
    assert again["parameters"] == made["parameters"]


def test_save_plot_and_resume(tmp_path: Path) -> None:
    done = run(
        "train", LECTURE, *SHORT, "--schedule", "constant", "--save", tmp_path / "run.json",
        "--plot", tmp_path / "loss.svg",
    )  # fmt: skip
    assert done.returncode == 0
    assert str(tmp_path / "run.json") in done.stderr
    assert str(tmp_path / "loss.svg") in done.stderr
    assert str(tmp_path) not in done.stdout
    assert sorted(p.name for p in tmp_path.iterdir()) == ["loss.svg", "run.json"]
    saved = json.loads((tmp_path / "run.json").read_text())
    assert (saved["steps"], len(saved["step_losses"])) == (12, 12)
    longer = ("--samples", "200", "--epochs", "5", "--schedule", "constant")
    whole = read_json("train", LECTURE, *longer)
    taken_up = read_json("train", LECTURE, *longer, "--resume", tmp_path / "run.json")
    assert taken_up["parameters"] == whole["parameters"]
    assert taken_up["epoch_losses"] == whole["epoch_losses"]
    assert (taken_up["steps"], taken_up["epochs"]) == (20, 5)


def test_validation_by_share_and_by_file(tmp_path: Path) -> None:
    share = ("--validation", "0.25", "--save", tmp_path / "run.json")
    text = good("train", LECTURE, *SHORT, *share)
    assert "over 150 samples" in text
    assert "over 50 samples" in text
    saved = json.loads((tmp_path / "run.json").read_text())
    assert len(saved["validation_losses"]) == len(saved["epoch_losses"]) == 3
    assert saved["settings"]["validation"] == 0.25
    assert (saved["settings"]["samples"], saved["settings"]["steps_per_epoch"]) == (200, 3)
    good("data", LECTURE, "--samples", "40", "--seed", "9", "-o", tmp_path / "other.csv")
    found = read_json("train", LECTURE, *SHORT, "--validation", tmp_path / "other.csv")
    plain = read_json("train", LECTURE, *SHORT)
    assert found["parameters"] == plain["parameters"], "a file of its own takes no sample away"
    assert len(found["validation_losses"]) == 3
    assert plain["validation_losses"] == []


def test_validation_losses_that_are_not_finite_are_said_once(tmp_path: Path) -> None:
    others = tmp_path / "others.csv"
    others.write_text("xa,xw\n-1,0\n2,1\n")
    data = ("-e", "xw = k*log(xa)", "--truth", "k=2", "--low", "1", "--high", "2")
    text = good("train", *data, *SHORT, "--validation", others)
    assert text.count("validation") == 1
    assert "no finite validation loss over 2 samples" in text
    assert "validation" not in good("train", *data, *SHORT)


def test_another_seed_does_not_go_on_where_it_has_drawn_a_share(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    good("train", LECTURE, *SHORT, "--validation", "0.5", "--save", path)
    message = bad("train", LECTURE, *SHORT[:-2], "--epochs", "9", "--seed", "1", "--resume", path)
    approved(message, "0 ... 1")
    assert "--seed 0" in message
    good("train", LECTURE, *SHORT[:-2], "--epochs", "9", "--seed", "0", "--resume", path)


def test_validation_goes_on_with_the_run(tmp_path: Path) -> None:
    settings = ("--samples", "200", "--schedule", "constant")
    share = ("--validation", "0.25")
    good("train", LECTURE, *settings, *share, "--epochs", "2", "--save", tmp_path / "run.json")
    whole = read_json("train", LECTURE, *settings, *share, "--epochs", "4")
    found = read_json("train", LECTURE, *settings, "--epochs", "4", "--resume",
                      tmp_path / "run.json")  # fmt: skip
    assert found["validation_losses"] == whole["validation_losses"]
    message = bad("train", LECTURE, *settings, "--epochs", "4", "--validation", "0.5",
                  "--resume", tmp_path / "run.json")  # fmt: skip
    approved(message, "0.25")


@pytest.mark.parametrize(
    ("text", "words"),
    [("xa,xv\n1,2\n", "'xw'"), ("xa,xw\n1,nan\n", ""),
     ("xa,xw\n", ""), ("xa,xw\n1\n", "v.csv:2")],
)  # fmt: skip
def test_validation_files_with_mistakes(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text(text)
    approved(bad("train", LECTURE, *SHORT, "--validation", path), words)


@pytest.mark.parametrize("share", ["0", "1", "1.5", "-0.1", "nan", "0.001"])
def test_shares_that_are_none(share: str) -> None:
    message = bad("train", LECTURE, *SHORT, f"--validation={share}")
    assert "fraction" in message


def test_resume_of_another_graph(tmp_path: Path) -> None:
    good("train", LECTURE, *SHORT, "--save", tmp_path / "run.json")
    message = bad("train", "-e", "xw = k*xa; parameter k=1", "--resume", tmp_path / "run.json")
    approved(message)
    approved(message, "ab ... bc ... cd ... ac")


@pytest.mark.parametrize(
    "options",
    [
        ("--save", "nosuch/run.json"),
        ("--save", "."),
        ("--plot", "loss.bmp"),
        ("--plot", "loss"),
        ("--plot", "nosuch/loss.png"),
    ],
)
def test_files_that_cannot_be_written_fail_before_training(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    start = time.monotonic()
    message = bad("train", LECTURE, "--epochs", "1000000", *options, cwd=tmp_path)
    assert time.monotonic() - start < 20
    assert options[1] in message
    assert not list(tmp_path.iterdir())


def test_non_finite_keeps_the_run_as_json(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    done = run(
        "train", LECTURE, "--optimizer", "sgd", "--learning-rate", "100", "--save", path,
        "--epochs", "3", "--samples", "300",
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stdout == ""
    assert str(path) in done.stderr
    assert "sample" in done.stderr or "parameter" in done.stderr

    def refuse(text: str) -> None:
        raise AssertionError(f"{text} in {path.name} is no JSON")

    saved = json.loads(path.read_text(), parse_constant=refuse)
    assert saved["steps"] == len(saved["step_losses"])


def test_every_hash_seed_gives_the_same_report() -> None:
    def report(seed: str) -> dict[str, object]:
        found = read_json("train", LECTURE, *SHORT, env=environment(PYTHONHASHSEED=seed))
        found.pop("seconds")
        return dict(found)

    assert report("1") == report("2")


@pytest.mark.parametrize("command", ["train"])
def test_pipes_see_no_progress_bar(command: str) -> None:
    for extra in ({"NO_COLOR": "1"}, {"TERM": "xterm-256color"}):
        done = run(command, LECTURE, *SHORT, env=extra)
        assert done.stderr == ""
        assert "\x1b" not in done.stdout
        assert "\r" not in done.stdout


def test_beside_data_of_ones_own_nothing_is_called_true(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("day,xa,xw\nmon,1,2\ntue,2,5\nwed,3,6\n")
    graph = ("-e", "xw = k*xa + b; parameter k = 3")
    own = good("train", *graph, "--data", path, "--epochs", "2", "--save", tmp_path / "run.json")
    assert "declared" in own
    assert "true" not in own
    assert json.loads((tmp_path / "run.json").read_text())["truth"] == {}
    made = good("train", *graph, "--truth", "b=1", *SHORT)
    assert "true" in made
    assert "declared" not in made


def test_a_run_that_diverged_is_saved_as_such(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    rates = ("--optimizer", "sgd", "--schedule", "constant", "--batch-size", "all")
    for rate, reason in (("7", "the loss has grown from"), ("1e200", "training stopped at step")):
        done = run(
            "train", "-e", "xw = k*xa", "--truth", "k=2", *SHORT, *rates, "--learning-rate", rate,
            "--save", path, "--force",
        )  # fmt: skip
        assert done.returncode == 1
        saved = json.loads(path.read_text())
        assert saved["stopped"] == "diverged"
        assert reason in saved["reason"]
        assert saved["reason"] in done.stderr


def test_an_optimizer_and_a_loss_of_an_installed_package(tmp_path: Path) -> None:
    """An entry point of each group is all that a package needs."""
    (tmp_path / "outside.py").write_text(
        "import cgprimer\n"
        "def half(parameters, gradient, state, rate):\n"
        "    return parameters - rate*gradient/2, state\n"
        "HALF = cgprimer.Optimizer('half', half, rate=0.2)\n"
        "FOURTH = '(out - target)^4'\n"
    )
    info = tmp_path / "outside-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[cgprimer.optimizers]\nhalf = outside:HALF\n[cgprimer.losses]\nfourth = outside:FOURTH\n"
    )
    found = read_json(
        "train", "-e", "xw = k*xa", "--truth", "k=2", *SHORT, "--optimizer", "half", "--loss",
        "fourth", env={"PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
    )  # fmt: skip
    assert (found["settings"]["optimizer"], found["settings"]["learning_rate"]) == ("half", 0.2)
    assert found["loss"] < found["start_loss"]


NETWORK = "input x[3]; parameter W[8,3] = 0.5, v[8] = 1; xo = v @ tanh(W @ x)"


def test_arrays_are_trained_from_a_table(tmp_path: Path) -> None:
    table = here("data", "-e", NETWORK, "--samples", "200", "-o", "d.csv", cwd=tmp_path)
    assert table.returncode == 0, table.stderr
    assert (tmp_path / "d.csv").read_text().startswith("x[0],x[1],x[2],xo\n")
    given = ("-e", NETWORK, "--data", "d.csv", "--epochs", "2")
    done = here("train", *given, "--start", "v=0.1", "--save", "r.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^norm of W\[8,3\] +\S+ +2.4494897\b", done.stdout, re.MULTILINE)
    assert re.search(r"^v\[7\] +\S+ +1\b", done.stdout, re.MULTILINE)
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["start"]["v"] == [0.1] * 8
    assert [len(row) for row in found["parameters"]["W"]] == [3] * 8
    on = here("train", *given, "--epochs", "3", "--resume", "r.json", cwd=tmp_path)
    assert on.returncode == 0, on.stderr
    names = ("--names", "W[0,1],v", "-o", "p.svg")
    drawn = here("plot", "parameters", "r.json", *names, cwd=tmp_path)
    assert drawn.returncode == 0, drawn.stderr
    wrong = here("train", "-e", NETWORK.replace("3]", "4]"), "--data", "d.csv", cwd=tmp_path)
    assert wrong.returncode == 2
    approved(wrong.stderr, "'x' ... [4] ... [3]")
    approved(wrong.stderr, "x[3]")


def test_a_run_killed_before_its_figure_gets_it_with_resume(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    good("train", LECTURE, *SHORT, "--directory", folder)
    parameters = (folder / "parameters.json").read_text()
    for name in ("loss.png", "parameters.json"):  # written after the last checkpoint
        (folder / name).unlink()
        done = run("train", LECTURE, "--resume", folder)
        assert done.returncode == 0, done.stderr
        assert (folder / name).is_file()
    assert (folder / "parameters.json").read_text() == parameters
    approved(bad("train", LECTURE, "--resume", folder))
    good("train", LECTURE, "--resume", folder / "run.json", "--plot", tmp_path / "loss.svg")
    assert (tmp_path / "loss.svg").is_file()
