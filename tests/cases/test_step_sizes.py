"""Case D6: the V-shaped error of finite differences, and the orders of the schemes."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cgprimer
from tests.cases.case_tools import example

SLIDE = {
    "forward": {1e-1: 4.3e-2, 1e-4: 4.2e-5, 1e-8: 3.0e-9, 1e-12: 4.3e-5},
    "central": {1e-1: 9.0e-4, 1e-4: 9.0e-10, 1e-8: 2.6e-9, 1e-12: 1.2e-5},
}


def error(scheme: str, step: float) -> float:
    found = cgprimer.gradient(example("sine"), method="finite-difference", scheme=scheme, step=step)
    return abs(found["x"] - math.cos(1.0))


@pytest.mark.parametrize(
    ("scheme", "step", "expected"),
    [(scheme, step, error) for scheme, errors in SLIDE.items() for step, error in errors.items()],
)
def test_errors_as_on_the_slide(scheme, step, expected):
    assert expected / 2 <= error(scheme, step) <= 2 * expected


@pytest.mark.parametrize(("scheme", "order"), [("forward", 1), ("central", 2)])
def test_order_of_the_error(scheme, order):
    # From 1e-1 to 1e-3 Taylor's next term dominates: rounding adds 1e-13 at most.
    steps = np.geomspace(1e-1, 1e-3, 9)
    errors = [error(scheme, float(step)) for step in steps]
    slope = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert slope == pytest.approx(order, abs=0.02)


def test_a_complex_step_has_no_bottom():
    for exponent in (10, 50, 100, 300):
        assert error("complex-step", 10.0**-exponent) <= 1e-15
