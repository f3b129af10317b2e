"""Runs that are killed or interrupted and resumed give the same numbers as uninterrupted runs."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cgprimer
from tests.checking.submissions import read_rows, read_sections
from tests.cli.cli_tools import COMMAND, computed, environment

pytestmark = pytest.mark.slow

COUNT = 48
FOLDER = Path(__file__).parent
SETTINGS = read_rows(FOLDER / "tables.txt")["interrupted runs"]
GRAPH = "input xa; parameter k=2, b=-1, c=0.5; xh = tanh(k*xa + b); xw = c*xh^2 + xh"


def train(number: int, path: Path, resume: Path | None = None) -> cgprimer.TrainingRun:
    """Train with the settings of a number; each epoch writes a checkpoint."""
    graph = cgprimer.parse(GRAPH)
    data = cgprimer.make_dataset(graph, samples=103, noise=0.1)
    return cgprimer.train(
        graph, data, resume=resume and cgprimer.load_run(resume), epochs=15, seed=number % 3,
        checkpoint_every=1, on_checkpoint=lambda run: cgprimer.save_run(run, path),
        **SETTINGS[number % len(SETTINGS)],
    )  # fmt: skip


def train_and_end(kind: int, number: int, path: Path, seconds: float) -> None:
    """Train in a copy of this process, and send it a signal after some seconds."""
    process = os.fork()
    if not process:
        try:
            with contextlib.suppress(KeyboardInterrupt):  # before the run began
                cgprimer.save_run(train(number, path), path)
            os._exit(0)
        finally:
            os._exit(1)
    try:
        time.sleep(seconds)
    finally:
        os.kill(process, kind)
        _, status = os.waitpid(process, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0


def run_trial(folder: Path) -> dict[str, int]:
    """Return how often a run ended when; each resumed run must end like an uninterrupted run."""
    generator, ends, whole = random.Random(0), dict[str, int](), {}
    for number in range(3 * len(SETTINGS)):  # each seed with each of the settings
        train(number, folder / "whole.json")  # compiles; the copies of this process do not
        begin = time.perf_counter()
        run = train(number, folder / "whole.json")
        whole[number] = run, time.perf_counter() - begin
    for number in range(COUNT):
        path, (expected, duration) = folder / f"{number}.json", whole[number % len(whole)]
        kind = signal.SIGKILL if number % 2 else signal.SIGINT
        train_and_end(kind, number, path, generator.uniform(0, 1.3 * duration))
        half = cgprimer.load_run(path) if path.exists() else None
        is_midway = half is not None and half.epochs < 15
        run = half if half and not is_midway else train(number, path, resume=half and path)
        assert run.parameters == expected.parameters, number
        assert run.epoch_losses == expected.epoch_losses, number
        ends[kind.name] = ends.get(kind.name, 0) + is_midway
    return ends


def test_interrupted_and_killed_runs_are_resumed(tmp_path: Path) -> None:
    # In a separate process with one thread: it is copied many times.
    result = f"json.dumps(run_trial(Path({str(tmp_path)!r})))"
    code = f"from tests.trial.test_interrupts import *; print({result})"
    one_thread = environment(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    done = run_code(code, timeout=500, env=one_thread)
    assert done.returncode == 0, done.stderr[-2000:]
    assert min(json.loads(done.stdout).values()) > 5  # midway


def run_code(code: str, **options: Any) -> subprocess.CompletedProcess[str]:
    options = {"env": environment(), **options}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_interrupt_while_the_command_is_loaded() -> None:
    done = run_code(dict(read_sections(FOLDER / "programs.txt"))["interrupted import"])
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


@contextlib.contextmanager
def training(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Start a command that trains; kill it in any case."""
    process = subprocess.Popen(
        [str(COMMAND), "train", "lecture", *options], cwd=folder, env=environment(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


ENDLESS = ("--epochs", "100000000")


def test_interrupt_does_not_overwrite_an_earlier_run(tmp_path: Path) -> None:
    (tmp_path / "lecture.run.json").write_text("an earlier run")
    with training(tmp_path, *ENDLESS) as process:
        computed(process, 3)
        process.send_signal(signal.SIGINT)
        _, messages = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (tmp_path / "lecture.run.json").read_text() == "an earlier run"
    assert "--resume lecture.run2.json" in messages


@pytest.mark.parametrize("interrupted", [False, True])
def test_failing_save_is_reported_after_the_results(interrupted: bool, tmp_path: Path) -> None:
    path = tmp_path / "gone" / "run.json"
    path.parent.mkdir()
    epochs = ENDLESS if interrupted else ("--epochs", "4000")
    with training(tmp_path, *epochs, "--save", str(path)) as process:
        while not path.exists() and process.poll() is None:  # the first checkpoint
            time.sleep(0.01)
        shutil.rmtree(path.parent)
        if interrupted:
            time.sleep(1)
            process.send_signal(signal.SIGINT)
        output, messages = process.communicate(timeout=60)
    assert process.returncode == (130 if interrupted else 1), messages
    assert "ab + bc" in output
    assert "the run was not saved" in messages
