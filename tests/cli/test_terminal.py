"""Processes of the installed command: terminals, pipes, Ctrl-C, and runs that are killed."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import random
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_tools import COMMAND, LECTURE, environment, good, read_json, run

LONG = ("--epochs", "1000000", "--samples", "100", "--schedule", "constant")
SAVED = (
    "train", str(LECTURE), "--samples", "2000", "--epochs", "12", "--batch-size", "5", "--engine",
    "numpy", "--validation", "0.2", "--metrics", "r2", "--noise", "1", "--patience", "11",
    "--checkpoint-every", "0.02s", "--seed", "3",
)  # fmt: skip


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Let child processes receive Ctrl-C, which a background job of a shell ignores."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def started(
    *args: object, env: dict[str, str] | None = None, **settings: Any
) -> Iterator[subprocess.Popen[str]]:
    """Start the installed command; kill it and close its pipes in the end."""
    settings = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "text": True} | settings
    command = [str(COMMAND), *map(str, args)]
    with subprocess.Popen(command, env=environment(**(env or {})), **settings) as process:
        try:
            yield process
        finally:
            process.kill()


def on_terminal(
    *args: object, folder: Path, interrupt: bool = False, **env: str
) -> tuple[str, str, int]:
    """Run a command in a folder, with standard error on a terminal.

    With ``interrupt``, Ctrl-C is sent when the terminal shows a loss.

    Returns:
        Standard output, the text on the terminal and the exit code.
    """
    main, other = pty.openpty()
    output = folder / "standard-output"  # a pipe would fill up while the terminal is read
    settings = {"TERM": "xterm-256color", "COLUMNS": "200"} | env
    text = b""
    try:
        with (
            output.open("wb") as file,
            started(*args, stdout=file, stderr=other, cwd=folder, env=settings) as process,
        ):
            os.close(other)
            with contextlib.suppress(OSError):  # Linux: EIO when the other side is closed
                while select.select([main], [], [], 60)[0] and (data := os.read(main, 65536)):
                    text += data
                    if interrupt and re.search(rb"loss \d", text):
                        process.send_signal(signal.SIGINT)
                        interrupt = False
            code = process.wait(timeout=60)
    finally:
        os.close(main)
    result = output.read_text(), text.decode(), code
    output.unlink()
    return result


def test_a_terminal_shows_a_progress_bar(tmp_path: Path) -> None:
    line = ("train", LECTURE, "--epochs", "5", "--samples", "2000")
    output, screen, code = on_terminal(*line, folder=tmp_path)
    assert code == 0
    for part in ("training", "/200", "loss", "\x1b"):  # 5 epochs of 40 steps
        assert part in screen
    assert output.startswith("loss ")
    assert "\x1b" not in output


@pytest.mark.slow
def test_a_terminal_without_colors_gets_none(tmp_path: Path) -> None:
    line = ("train", LECTURE, "--epochs", "5", "--samples", "2000")
    _, screen, _ = on_terminal(*line, folder=tmp_path, NO_COLOR="1")
    colors = [f"\x1b[{n}" for n in (*range(30, 38), *range(90, 98))]
    assert not any(color in screen for color in colors)
    _, screen, _ = on_terminal(*line, folder=tmp_path, TERM="dumb")
    assert "\x1b" not in screen
    process = run(*line, env={"TERM": "xterm-256color"})  # pipes
    assert process.stderr == ""
    assert "\x1b" not in process.stdout


def test_names_of_files_do_not_control_the_terminal(tmp_path: Path) -> None:
    name = "a\x1b[2J\u202e.dot"
    for message in (run("draw", LECTURE, "-o", name, cwd=tmp_path), run("info", LECTURE, name)):
        assert "·.dot" in message.stderr
        assert "\x1b" not in message.stderr


def test_closed_pipes_are_no_error(tmp_path: Path) -> None:
    shell = f"set -o pipefail; {COMMAND} data lecture | head -1; echo codes ${{PIPESTATUS[@]}}"
    process = subprocess.run(
        ["bash", "-c", shell], capture_output=True, text=True, check=False, cwd=tmp_path,
        env=environment(),
    )  # fmt: skip
    assert (process.stderr, process.stdout.splitlines()[1:]) == ("", ["codes 0 0"])


def test_ctrl_c_saves_a_run_that_can_be_resumed(tmp_path: Path) -> None:
    output, screen, code = on_terminal("train", LECTURE, *LONG, folder=tmp_path, interrupt=True)
    assert "Traceback" not in screen
    assert code == 130, screen
    assert "ab + bc" in output
    assert [path.name for path in tmp_path.iterdir()] == ["lecture.run.json"]
    assert "wrote lecture.run.json" in screen
    assert "--resume lecture.run.json" in screen
    saved = json.loads((tmp_path / "lecture.run.json").read_text())
    assert saved["stopped"] == "interrupted"
    assert saved["loss"] < saved["start_loss"]
    goal = saved["epochs"] + 2
    resumed = read_json("train", LECTURE, "--epochs", goal, *LONG[2:], "--resume",
                        "lecture.run.json", cwd=tmp_path)  # fmt: skip
    assert (resumed["stopped"], resumed["epochs"]) == ("finished", goal)
    assert resumed["epoch_losses"][: saved["epochs"]] == saved["epoch_losses"]


@pytest.mark.slow
def test_killed_runs_continue_bit_by_bit(tmp_path: Path) -> None:
    good(*SAVED, "--directory", tmp_path / "whole")
    metrics, generator = tmp_path / "killed" / "metrics.jsonl", random.Random(4)
    arguments: tuple[object, ...] = (*SAVED, "--directory", tmp_path / "killed")
    for _ in range(3):
        before = metrics.stat().st_mtime_ns if metrics.exists() else 0
        with started(*arguments, stderr=subprocess.DEVNULL) as child:
            while child.poll() is None and (
                not metrics.exists() or metrics.stat().st_mtime_ns == before
            ):
                time.sleep(0.005)
            time.sleep(generator.random() * 0.15)
            child.kill()
            assert child.wait(timeout=60) in (0, -signal.SIGKILL)
        arguments = ("train", "--resume", tmp_path / "killed")
    if child.returncode:
        good(*arguments)
    runs = [json.loads((tmp_path / name / "run.json").read_text()) for name in ("whole", "killed")]
    assert {**runs[0], "seconds": 0} == {**runs[1], "seconds": 0}
    for name in ("metrics.jsonl", "parameters.json", "run.toml", "graph.cg"):
        assert len({(tmp_path / f / name).read_bytes() for f in ("whole", "killed")}) == 1, name


def test_characters_that_an_encoding_lacks_are_replaced(tmp_path: Path) -> None:
    environment = {"PYTHONIOENCODING": "latin-1", "MPLBACKEND": "nonsense"}
    process = run("grad", "-e", "xw = sin(π*xa)/3", "--at", "π=1,xa=1", env=environment)
    assert process.stdout.splitlines()[1].startswith("d xw / d \\u03c0 = ")
    good("draw", "lecture", "-o", "π.dot", env=environment, cwd=tmp_path)
    assert (tmp_path / "π.dot").stat().st_size > 0
