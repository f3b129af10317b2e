"""Command lines give the recorded exit codes, JSON, numbers and files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from .commands import FILES, numbers_in, run_command, summarize
from .comparing import differences, missing_numbers

RUNS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("runs.json").read_text("utf-8"))
TOLERANCE = 1e-9  # of numbers, unless a run has another one


def _parameters() -> list[Any]:
    return [
        pytest.param(run, id=" ".join(run["args"]), marks=[pytest.mark.slow] * run.get("slow", 0))
        for run in RUNS
    ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("run", _parameters())
def test_run(run: dict[str, Any], tmp_path: Path) -> None:
    for name, fixture in run.get("files", {}).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(FILES / fixture, tmp_path / name)
    for name, text in run.get("texts", {}).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    outcome = run_command(run["args"], tmp_path, run.get("stdin", ""))
    assert outcome.exit_code == run["exit_code"], outcome.stderr
    tolerance = run.get("tolerance", TOLERANCE)
    found: list[str] = []
    if "json" in run:
        found += differences(run["json"], json.loads(outcome.stdout), tolerance)
    for name, content in run.get("written", {}).items():
        if name not in outcome.written:
            found.append(f"{name} is not written, but {', '.join(outcome.written) or 'nothing'}")
        else:
            found += differences(content, summarize(tmp_path / name), tolerance, name)
    assert not found, "\n".join(found)
    missing = missing_numbers(run.get("numbers", []), numbers_in(outcome.stdout), tolerance)
    assert not missing, outcome.stdout


def test_there_are_at_least_200_runs_and_40_of_them_fail() -> None:
    assert len(RUNS) >= 200
    assert sum(run["exit_code"] != 0 for run in RUNS) >= 40
