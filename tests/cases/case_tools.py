"""What the tests of the lecture cases share: the examples, the methods, and how near is near."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import cgprimer
from cgprimer.core.graph import ExpressionGraph

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
METHODS = cgprimer.methods()
EXACT = tuple(method for method in METHODS if method != "finite-difference")


@cache
def example(name: str) -> ExpressionGraph:
    return cgprimer.load(EXAMPLES / f"{name}.cg")


def near(expected: float, method: str):
    """1e-12 relative for exact methods, 1e-6 for differences.

    An expected zero is met absolutely: rounding errors of numbers of size one are some 1e-16,
    and a difference quotient's some 1e-10.
    """
    if method == "finite-difference":
        return pytest.approx(expected, rel=1e-6, abs=1e-8)
    return pytest.approx(expected, rel=1e-12, abs=1e-15 if expected == 0.0 else 0.0)


def check(name: str, expected: dict[str, float], method: str, **how) -> None:
    """The gradient of an example with respect to the names of ``expected``."""
    found = cgprimer.gradient(example(name), wrt=tuple(expected), method=method, **how)
    assert list(found) == list(expected)
    for wrt, value in expected.items():
        assert found[wrt] == near(value, method), f"d/d{wrt} by {method}"
