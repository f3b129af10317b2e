"""Command lines give the recorded exit codes, JSON, numbers and files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_tools import here

from .comparing import FILES, contents, differences, missing_numbers, numbers_in, summarize

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
    before = contents(tmp_path)
    outcome = here(*run["args"], stdin=run.get("stdin"), cwd=tmp_path)
    assert outcome.returncode == run["exit_code"], outcome.stderr
    written = [name for name, data in contents(tmp_path).items() if data != before.get(name)]
    tolerance = run.get("tolerance", TOLERANCE)
    found: list[str] = []
    if "json" in run:
        found += differences(run["json"], json.loads(outcome.stdout), tolerance)
    for name, content in run.get("written", {}).items():
        if name not in written:
            found.append(f"{name} is not written, but {written}")
        else:
            found += differences(content, summarize(tmp_path / name), tolerance, name)
    assert not found, "\n".join(found)
    missing = missing_numbers(run.get("numbers", []), numbers_in(outcome.stdout), tolerance)
    assert not missing, outcome.stdout


def test_there_are_at_least_200_runs_and_40_of_them_fail() -> None:
    assert len(RUNS) >= 200
    assert sum(run["exit_code"] != 0 for run in RUNS) >= 40
