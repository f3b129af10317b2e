"""Runs as their users keep them: configurations, folders, checkpoints, and what a kill may cost."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.cli.cli_tools import COMMAND, LECTURE, environment, good

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
