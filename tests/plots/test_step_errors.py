"""The V of finite differences (case D6): its slopes, its tip, and what has no V."""

from __future__ import annotations

import numpy as np
import pytest

from cgprimer.core.graph.loading import load, parse
from cgprimer.errors import CgprimerError, DifferentiationError, MissingValueError, UsageError
from cgprimer.visualization.plots.error_plot import StepErrors, step_errors
from tests.approval import refused

SINE = parse("xw = sin(xa)")


@pytest.fixture(scope="module")
def sine() -> StepErrors:
    return step_errors(SINE, {"xa": 1})


def test_the_numbers_of_case_d6() -> None:
    found = step_errors(SINE, {"xa": 1}, steps=[1e-1, 1e-4, 1e-8, 1e-12])
    assert found.steps.tolist() == [1e-12, 1e-8, 1e-4, 1e-1]
    assert found.errors["forward"] == pytest.approx([4.3e-5, 3.0e-9, 4.2e-5, 4.3e-2], rel=0.02)
    assert found.errors["central"][2:] == pytest.approx([9.0e-10, 9.0e-4], rel=0.01)
    assert found.errors["central"][:2] == pytest.approx([1.2e-5, 2.6e-9], rel=0.05)


def test_slopes(sine: StepErrors) -> None:
    assert sine.slope("forward", 1e-6, 1e-2) == pytest.approx(1, abs=0.02)
    assert sine.slope("central", 1e-3, 1e-1) == pytest.approx(2, abs=0.02)
    assert sine.slope("complex-step", 1e-5, 1e-1) == pytest.approx(2, abs=0.02)
    for scheme in ("forward", "central"):
        assert sine.slope(scheme, 1e-15, 1e-10) == pytest.approx(-1, abs=0.2)


def test_best_steps_are_roots_of_the_precision(sine: StepErrors) -> None:
    assert 1e-9 < sine.best("forward") < 1e-7
    assert 1e-6 < sine.best("central") < 1e-4
    small = sine.errors["complex-step"][sine.steps <= sine.best("complex-step")]
    assert small.max() < 2.0**-52


def test_the_lecture_example_and_its_parameters() -> None:
    found = step_errors(load("examples/lecture.cg"), wrt="ab")
    assert found.derivative == 5.671875
    assert found.slope("central", 1e-3, 1e-1) == pytest.approx(2, abs=0.05)


def test_complex_steps_need_an_analytic_function() -> None:
    found = step_errors(parse("xw = abs(xa)*xa^2"), {"xa": 1})
    assert set(found.errors) == {"forward", "central"}
    assert "analytic" in found.refused["complex-step"]


def test_points_outside_the_domain_leave_gaps() -> None:
    found = step_errors(parse("xw = log(xa)"), {"xa": 0.01}, schemes=["central"])
    assert np.isnan(found.errors["central"][-1])
    assert np.isfinite(found.errors["central"][0])


@pytest.mark.parametrize(
    ("text", "settings", "kind", "words"),
    [
        ("xw = abs(xa)", {"at": {"xa": 0}}, DifferentiationError, ""),
        ("xw = step(xa)", {"at": {"xa": 0}}, DifferentiationError, ""),
        ("xw = sin(xa)", {}, MissingValueError, "xa"),
        ("xw = xa*xb", {"at": {"xa": 1, "xb": 1}}, UsageError, ""),
        ("xw = sin(xa)", {"at": {"xa": 1}, "wrt": "xb"}, UsageError, "xb"),
        ("xw = sin(xa)", {"at": {"xa": 1}, "steps": [0.0]}, UsageError, "positive"),
        ("xw = sin(xa)", {"at": {"xa": 1}, "schemes": ["middle"]}, UsageError, "middle"),
        ("xw = relu(xa)", {"at": {"xa": 1}, "schemes": ["complex-step"]}, DifferentiationError,
         "analytic"),
    ],
)  # fmt: skip
def test_mistakes(
    text: str, settings: dict[str, object], kind: type[CgprimerError], words: str
) -> None:
    with refused(kind, words):
        step_errors(parse(text), **settings)  # type: ignore[arg-type]
