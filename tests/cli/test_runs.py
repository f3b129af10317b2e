"""Runs as their users keep them: configurations, folders, checkpoints, and what a kill may cost."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.approval import approved
from tests.cli.cli_tools import COMMAND, LECTURE, bad, environment, good, read_json, run

SHORT = ("--samples", "200", "--epochs", "3")
LONG = (
    "train", LECTURE, "--samples", "2000", "--epochs", "12", "--batch-size", "5", "--engine",
    "numpy", "--optimizer", "adam", "--validation", "0.2", "--metrics", "r2", "--noise", "1",
    "--patience", "11", "--checkpoint-every", "0.02s", "--seed", "3",
)  # fmt: skip


def told(path: Path) -> dict[str, Any]:
    """A run's file, without what differs from one machine's moment to another's."""
    found: dict[str, Any] = json.loads(path.read_text())
    return {**found, "seconds": 0}


@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on_bit_by_bit(tmp_path: Path) -> None:
    good(*LONG, "--directory", tmp_path / "whole")
    place, kills = random.Random(4), 0
    command: list[object] = [COMMAND, *LONG, "--directory", tmp_path / "killed"]
    for _ in range(40):
        process = subprocess.Popen(
            list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env=environment(),
        )  # fmt: skip
        saved = tmp_path / "killed" / "run.json"
        before = saved.stat().st_mtime_ns if saved.exists() else 0
        for _ in range(2000):  # until it has saved something of its own
            if process.poll() is not None or (
                saved.exists() and saved.stat().st_mtime_ns != before
            ):
                break
            time.sleep(0.005)
        if kills < 3:
            time.sleep(place.random() * 0.15)
            process.kill()
        _, said = process.communicate(timeout=60)
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, said
        kills += 1
        command = [COMMAND, "train", "--resume", tmp_path / "killed"]
    assert kills >= 1
    assert process.returncode == 0
    assert told(tmp_path / "killed" / "run.json") == told(tmp_path / "whole" / "run.json")
    for name in ("metrics.jsonl", "parameters.json", "run.toml", "graph.cg"):
        texts = {(tmp_path / each / name).read_bytes() for each in ("whole", "killed")}
        assert len(texts) == 1, name


def test_a_folder_has_everything_and_its_configuration_runs_again(tmp_path: Path) -> None:
    data = tmp_path / "d.csv"
    good("data", LECTURE, "--samples", "100", "-o", data)
    folder = tmp_path / "runs" / "first"
    settings = ("--data", data, "--epochs", "3", "--start", "ab=0.5,bc=1", "--method", "forward")
    good("train", LECTURE, *settings, "--carry", "--batch-size", "all", "--directory", folder)
    assert sorted(path.name for path in folder.iterdir()) == [
        "graph.cg", "loss.png", "metrics.jsonl", "parameters.json", "run.json", "run.toml",
    ]  # fmt: skip
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2, 3]
    learnt = json.loads((folder / "parameters.json").read_text())
    assert (folder / "run.toml").read_text().count("../../d.csv") == 1
    again = read_json("train", folder / "run.toml", cwd=tmp_path)
    assert again["parameters"] == learnt
    assert again["settings"]["options"] == {"carry": True}
    assert again["start"]["ab"] == 0.5
    approved(bad("train", LECTURE, "--directory", folder))
    good("train", LECTURE, *SHORT, "--directory", folder, "--force")


def test_a_configuration_by_hand(tmp_path: Path) -> None:
    (tmp_path / "g.cg").write_text("xw = k*xa + b")
    config = tmp_path / "run.toml"
    config.write_text(
        'graph = "g.cg"\nsamples = 50\nbatch-size = "all"\nshuffle = false\nepochs = 2\n'
        'optimizer = "sgd"\n[truth]\nk = 3\nb = -1\n[start]\nk = 3\n"b" = -1\n'
    )
    found = read_json("train", config)
    assert found["steps"] == 2
    assert found["parameters"] == {"k": 3.0, "b": -1.0}
    assert read_json("train", config, "--epochs", "5")["steps"] == 5, "the command line goes first"
    for wrong, says in (
        ("epochz = 2", "run.toml:2 ... 'epochz' ... 'epochs'"),
        ("epochs = 2.5", "run.toml:2 ... epochs ... '2.5'"),
        ("epochs = -1", "run.toml:2 ... epochs ... -1"),
        ("epochs = true", "run.toml:2 ... epochs ... True"),
        ("shuffle = 1", "run.toml:2 ... shuffle ... 1"),
        ("batch_size = 'some'", "run.toml:2: batch_size: "),
        ("data = 1979-05-27", "run.toml:2 ... data"),
        ("force = true", "'force'"),
        ("epochs = ", "line 2"),
        ("a = " + "[" * 100_000, "error: "),
        ("[start]\nzz = 1", "start ... 'zz'"),
    ):
        config.write_text(f'graph = "g.cg"\n{wrong}\n')
        approved(bad("train", config, "--truth", "k=1,b=1"), says)
    config.write_text("epochs = 2\n")
    approved(bad("train", config))
    config.write_bytes(b'\xef\xbb\xbfgraph = "g.cg"\r\nsamples = 9\r\nepochs = 0\r\n')
    good("train", config, "--truth", "k=1,b=1")  # as Windows writes it
    config.write_text("graph = g.cg")
    approved(bad("train", config), '"quotes"')
    config.write_bytes(b"\xff")
    assert "run.toml" in bad("train", config)


def test_nothing_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    good("train", LECTURE, *SHORT, "--save", path)
    before = path.read_bytes()
    for option in ("--save", "--plot"):
        there = path if option == "--save" else tmp_path / "p.png"
        there.touch()
        approved(bad("train", LECTURE, *SHORT, option, there))
    assert path.read_bytes() == before
    good("train", "--resume", path, "--epochs", "4", "--save", path)
    assert told(path)["epochs"] == 4, "a run that goes on keeps its file"
    good("train", LECTURE, *SHORT, "--save", path, "--force")
    data = tmp_path / "d.csv"
    good("data", LECTURE, "--samples", "3", "-o", data)
    approved(bad("predict", path, "--data", data, "-o", data))


def interrupted(*args: object, cwd: Path, times: int = 1) -> subprocess.CompletedProcess[str]:
    """A run of the installed command that gets Ctrl-C as soon as it trains."""
    flag = cwd / "metrics-are-there"
    process = subprocess.Popen(
        [str(COMMAND), *map(str, args), "--directory", str(flag)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd, env=environment(),
    )  # fmt: skip
    for _ in range(4000):
        if (flag / "metrics.jsonl").exists() or process.poll() is not None:
            break
        time.sleep(0.005)
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(0.002)
    out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(args, process.returncode, out, err)


def test_a_second_interrupt_loses_nothing(tmp_path: Path) -> None:
    endless = ("train", LECTURE, "--samples", "500", "--epochs", "1000000")
    done = interrupted(*endless, "--save", tmp_path / "run.json", cwd=tmp_path, times=5)
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    saved = told(tmp_path / "run.json")
    assert saved["stopped"] == "interrupted"
    assert saved["steps"] > 0
    assert saved == told(tmp_path / "metrics-are-there" / "run.json")
    assert f"--resume {tmp_path / 'run.json'}" in done.stderr
    assert "parameter" in done.stdout


def test_what_cannot_be_saved_is_printed_first(tmp_path: Path) -> None:
    from unittest import mock

    from cgprimer.errors import UsageError

    def full(*_: object) -> None:
        raise UsageError("cannot write run.json: No space left on device")

    with mock.patch("cgprimer.cli.run_output.save_run", full):
        done = run("train", LECTURE, *SHORT, "--save", tmp_path / "run.json")
    assert done.returncode == 1
    assert "ab + bc" in done.stdout
    approved(done.stderr, "run.json")


def test_another_graph_is_refused_with_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    good("train", "-e", "xw = k*xa; parameter k = 3", *SHORT, "--save", path)
    more = ("--epochs", "9", "--resume", path)
    approved(bad("train", "-e", "xw = k*xa^2", *more), "xw = k*xa^2")
    approved(bad("train", "-e", "xw = j*xa", *more), "k ... j")
    good("train", "-e", "xw = k*xa; parameter k = 3", *SHORT, "--directory", tmp_path / "folder")
    folder = ("--epochs", "9", "--resume", tmp_path / "folder")
    approved(bad("train", "-e", "xw = k*xa^2", *folder), "xw = k*xa^2")
    approved(bad("train", LECTURE, *folder), "k ... ab")
    said = bad("train", "-e", "xw = k*xa", *more, "--optimizer", "sgd")
    approved(said, "adam ... sgd")


def test_what_was_learnt_is_used(tmp_path: Path) -> None:
    text = "xo = sigmoid(w1*x1 + w2*x2 + b)"
    path, data = tmp_path / "run.json", tmp_path / "d.csv"
    data.write_text("x1,x2,xo\n0,0,0\n0.2,0.1,0\n2,2,1\n1.5,2.5,1\n")
    good(
        "train", "-e", text, "--data", data, "--loss", "cross-entropy", "--epochs", "300",
        "--batch-size", "all", "--save", path,
    )  # fmt: skip
    rows = good("predict", path, "--data", data).splitlines()
    assert rows[0] == "x1,x2,xo"
    assert float(rows[1].split(",")[2]) < 0.2
    found = read_json("score", path, "--data", data)
    assert found["accuracy"] == 1.0
    assert found["confusion"] == {"labels": [0.0, 1.0], "counts": [[2, 0], [0, 2]]}
    assert "accuracy 1: 4 of 4 correct" in good("score", path, "--data", data)
    learnt = told(path)["parameters"]
    point = ",".join(f"{name}={value!r}" for name, value in learnt.items())
    inputs = ("--at", "x1=1,x2=0.5")
    for command in (("grad",), ("trace", "--method", "reverse")):
        by_run = good(*command, "-e", text, "--at", path, *inputs)
        assert by_run == good(*command, "-e", text, "--at", point, *inputs)
    other = read_json("grad", "-e", text, "--at", f"{path},w1=0", *inputs)
    assert other != read_json("grad", "-e", text, "--at", path, *inputs)
    good("score", path, "--data", data, "--plot", tmp_path / "boundary.png")
    assert (tmp_path / "boundary.png").read_bytes()[1:4] == b"PNG"
    approved(bad("score", tmp_path / "none.json", "--data", data))
    (tmp_path / "e.csv").write_text("x1,y\n1,2\n")
    assert "x2" in bad("predict", path, "--data", tmp_path / "e.csv")
