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
    """Return the folder of the problems; skip the test if there is none."""
    given = os.environ.get("CGPRIMER_NIST")
    above = [Path(given)] if given else [p / "shared" / "nist" for p in Path(__file__).parents]
    found = next((path for path in above if (path / "index.json").exists()), None)
    return found or pytest.skip("no folder shared/nist above the repository, nor CGPRIMER_NIST")


@cache
def problem(name: str) -> tuple[Any, cgprimer.ExpressionGraph, cgprimer.Dataset]:
    """Return the certified values, the model and the data."""
    certified = json.loads((folder() / "index.json").read_text(encoding="utf-8"))[name]
    graph = cgprimer.parse(certified["model"])
    path = folder() / f"{name}.csv"
    data = cgprimer.Dataset.load(path, inputs=graph.inputs, targets=graph.outputs)
    return certified, graph, data
