"""Two hundred runs that are killed or interrupted, and taken up again: the same numbers."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import cgprimer
from tests.cli.cli_tools import COMMAND, computed, environment

pytestmark = pytest.mark.slow

COUNT = 200
WAYS = (
    {"optimizer": "adam", "batch_size": 7},
    {"optimizer": "momentum", "batch_size": 1, "learning_rate": 1e-3},
    {"optimizer": "sgd", "batch_size": None, "learning_rate": 1e-2, "l2": 1e-3},
    {"optimizer": "rmsprop", "batch_size": 25, "schedule": "constant", "shuffle": False},
)
GRAPH = "input xa; parameter k=2, b=-1, c=0.5; xh = tanh(k*xa + b); xw = c*xh^2 + xh"


def way(number: int) -> dict[str, object]:
    return {**WAYS[number % len(WAYS)], "epochs": 15, "checkpoint_every": 1, "seed": number % 9}


def trained(number: int, path: Path, resume: Path | None = None) -> cgprimer.TrainingRun:
    graph = cgprimer.parse(GRAPH)
    data = cgprimer.make_dataset(graph, samples=103, noise=0.1)
    return cgprimer.train(
        graph, data, resume=resume and cgprimer.load_run(resume), **way(number),
        on_checkpoint=lambda run: cgprimer.save_run(run, path),
    )  # fmt: skip


def child(number: int, path: Path, ready: int) -> None:
    """Train in a copy of this process until somebody ends it; Ctrl-C leaves a file, too."""
    os.write(ready, b"!")
    run = trained(number, path)
    cgprimer.save_run(run, path)


def ended_by(kind: int, number: int, path: Path, after: float) -> None:
    ready, said = os.pipe()
    process = os.fork()
    if not process:
        code = 1
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            child(number, path, said)
            code = 0
        except KeyboardInterrupt:  # before the run began
            code = 0
        finally:
            os._exit(code)
    os.read(ready, 1)
    time.sleep(after)
    os.kill(process, kind)
    _, status = os.waitpid(process, 0)
    os.close(ready)
    os.close(said)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0


def trial(folder: Path) -> dict[str, int]:
    """How often what happened; every run that is taken up ends as if nothing had."""
    generator, found = random.Random(0), dict[str, int]()
    whole = {}
    for number in range(4 * 9):  # lcm: every way with every seed
        took = []
        for _ in range(2):  # the first one compiles, the copies of this process do not
            begun = time.perf_counter()
            run = trained(number, folder / "whole.json")
            took.append(time.perf_counter() - begun)
        whole[number] = run, min(took)
    for number in range(COUNT):
        path, (same, seconds) = folder / f"{number}.json", whole[number % 36]
        kind = signal.SIGKILL if number % 2 else signal.SIGINT
        ended_by(kind, number, path, generator.uniform(0, 1.3 * seconds))
        run = cgprimer.load_run(path) if path.exists() else None
        done = "before" if run is None else "after" if run.epochs == 15 else "midway"
        if run is None or run.epochs < 15:
            run = trained(number, path, resume=run and path)
        assert run.parameters == same.parameters, number
        assert run.epoch_losses == same.epoch_losses, number
        found[f"{kind.name} {done}"] = found.get(f"{kind.name} {done}", 0) + 1
    left = [p.name for p in folder.iterdir() if p.suffix == ".part"]
    return {**found, "left behind": len(left)}


def test_two_hundred_ends(tmp_path: Path) -> None:
    # A process of its own with one thread: it is copied two hundred times.
    where = f"trial(Path({str(tmp_path)!r}))"
    code = f"from tests.trial.test_interrupts import *; print(json.dumps({where}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=500,
        env=environment(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    print(found)
    assert sum(found.values()) - found["left behind"] == COUNT
    assert found["SIGKILL midway"] > 40
    assert found["SIGINT midway"] > 40


def test_ctrl_c_while_the_command_is_loaded() -> None:
    code = (
        "import sys\n"
        "class Hasty:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'click': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Hasty())\n"
        "from cgprimer.__main__ import main\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment()
    )
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def hears() -> None:
    """A process behind ``&`` or ``nohup`` would not hear of Ctrl-C, nor would its children."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def end_of(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What it says until its end, which comes in any case."""
    try:
        return process.communicate(timeout=60)
    finally:
        process.kill()


def stopped(folder: Path, *args: str, pauses: tuple[float, ...]) -> tuple[int, str, str]:
    """The command, with Ctrl-C after each pause, once it has begun to train."""
    process = subprocess.Popen(
        [str(COMMAND), "train", "lecture", "--epochs", "100000000", *args], cwd=folder,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
        preexec_fn=hears,  # noqa: PLW1509
    )  # fmt: skip
    computed(process, 3)
    for pause in pauses:
        time.sleep(pause)
        process.send_signal(signal.SIGINT)
    out, err = end_of(process)
    assert "Traceback" not in err
    return process.returncode, out, err


@pytest.mark.parametrize("pause", [0.001, 0.02, 0.2])
def test_ctrl_c_twice_loses_nothing(pause: float, tmp_path: Path) -> None:
    code, out, _ = stopped(tmp_path, "--save", "run.json", pauses=(0, pause))
    assert code == 130
    assert "ab + bc" in out
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
    assert cgprimer.load_run(tmp_path / "run.json").stopped == "interrupted"


def test_ctrl_c_leaves_an_earlier_run_alone(tmp_path: Path) -> None:
    (tmp_path / "lecture.run.json").write_text("an earlier one")
    code, _, err = stopped(tmp_path, pauses=(0,))
    assert code == 130
    assert (tmp_path / "lecture.run.json").read_text() == "an earlier one"
    assert "--resume lecture.run2.json" in err


@pytest.mark.parametrize("interrupt", [False, True])
def test_a_save_that_fails_comes_after_the_report(interrupt: bool, tmp_path: Path) -> None:
    where = tmp_path / "gone" / "run.json"
    where.parent.mkdir()
    epochs = "100000000" if interrupt else "4000"
    process = subprocess.Popen(
        [str(COMMAND), "train", "lecture", "--epochs", epochs, "--save", str(where)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
        preexec_fn=hears, cwd=tmp_path,  # noqa: PLW1509
    )  # fmt: skip
    while not where.exists() and process.poll() is None:  # the first checkpoint
        time.sleep(0.01)
    shutil.rmtree(where.parent)
    if interrupt:
        time.sleep(1)
        process.send_signal(signal.SIGINT)
    out, err = end_of(process)
    assert process.returncode == (130 if interrupt else 1), err
    assert "ab + bc" in out
    assert "the run was not saved" in err
