"""NIST's certified regression problems, where a folder ``shared/nist`` lies beside the project.

Nothing of them is in the repository. The folder is found above this file, or named by the
environment variable CGPRIMER_NIST.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import cgprimer

NAMES = (
    "Misra1a", "DanWood", "Chwirut2", "MGH09", "Rat43", "Thurber", "Eckerle4", "Lanczos3",
)  # fmt: skip


def folder() -> Path:
    """Where the problems are; the test is skipped where they are not."""
    given = os.environ.get("CGPRIMER_NIST")
    above = [Path(given)] if given else [p / "shared" / "nist" for p in Path(__file__).parents]
    found = next((path for path in above if (path / "index.json").exists()), None)
    if found is None:
        pytest.skip("no folder shared/nist above the repository, and CGPRIMER_NIST is not set")
    return found


@cache
def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def problem(name: str) -> tuple[Any, cgprimer.ExpressionGraph, cgprimer.Dataset]:
    """What is certified, the model and the data."""
    certified = _read(folder() / "index.json")[name]
    graph = cgprimer.parse(certified["model"])
    path = folder() / f"{name}.csv"
    data = cgprimer.Dataset.load(path, inputs=graph.inputs, targets=graph.outputs)
    return certified, graph, data
