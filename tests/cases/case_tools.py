"""Helpers for tests of the lecture cases: examples and methods."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import cgprimer
from cgprimer.core.graph import ExpressionGraph

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
METHODS = cgprimer.methods()
EXACT = tuple(method for method in METHODS if method != "finite-difference")


@cache
def example(name: str) -> ExpressionGraph:
    return cgprimer.load(EXAMPLES / f"{name}.cg")
