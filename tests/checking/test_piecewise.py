"""Gradients of piecewise functions: wrong ones get no full marks, and right ones get them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from cgprimer.core.operations.primitive_registry import FUNCTIONS, Primitive
from cgprimer.course.checks import gradient_check as gradient_module
from cgprimer.course.checks.gradient_check import GradientCheck, build_gradient_check
from cgprimer.course.checks.question_points import select_arguments
from tests.checking.piecewise import (
    ALONE,
    PIECEWISE,
    WRONG,
    Mistake,
    alone,
    mistakes,
    program,
    random_piecewise,
)
from tests.checking.planted_mistakes import answers

ASKED: tuple[dict[str, Any], ...] = (
    {},
    {"loss": "squared-error"},
    {"loss": "hinge"},
    {"loss": "squared-error", "batch": 3},
)
SMOOTH = {"logaddexp", "asec", "acsc", "acsch", "stop_gradient"}  # or no derivative of their own


def verdicts(check: GradientCheck, mistake: Mistake | None = None) -> dict[str, str]:
    result = check.grade(answers(check, program(check, mistake)))
    return {part.name: part.verdict for part in result.parts}


def differs(check: GradientCheck, other: GradientCheck, mistake: Mistake) -> set[str]:
    """Return the names whose derivatives the mistake changes at a point of another check."""
    right, wrong = program(check), program(check, mistake)
    names: set[str] = set()
    for index in np.flatnonzero(other.points.smooth):
        point = select_arguments(other.question, other.points.arguments, int(index))
        ours, theirs = right(point), wrong(point)
        names |= {n for n, v in ours.items() if not math.isclose(v, theirs[n], rel_tol=1e-3)}
    return names


def test_every_piecewise_primitive_is_tried() -> None:
    rows = [row for group in FUNCTIONS.values() for row in group if isinstance(row, Primitive)]
    piecewise = {row.name for row in rows if row.built_in and not row.analytic} - SMOOTH
    assert piecewise == PIECEWISE.keys() == WRONG.keys()
    assert piecewise - {"equal"} == ALONE.keys()


@pytest.mark.parametrize("asked", ASKED, ids=str)
@pytest.mark.parametrize("function", ALONE)
def test_a_wrong_mask_is_found(function: str, asked: dict[str, Any]) -> None:
    check = build_gradient_check(alone(function), **asked)
    assert {*verdicts(check).values()} == {"right"}
    for mistake in mistakes(check.question.graph):
        wrong = differs(check, check, mistake)
        if mistake.function == function and mistake.kind in WRONG[function]:
            assert wrong, mistake
        found = verdicts(check, mistake)
        assert "right" not in {found[name] for name in wrong}, (mistake, found)


def random_checks(seeds: range, count: int = 20) -> Iterator[GradientCheck]:
    for seed in seeds:
        asked = ASKED[seed % len(ASKED)]
        yield build_gradient_check(random_piecewise(seed), count=count, seed=seed, **asked)


def full_marks(seeds: range) -> tuple[int, list[Any]]:
    """Return how many wrong programs there were, and those that got full marks."""
    tried, missed = 0, []
    for check in random_checks(seeds):
        assert {*verdicts(check).values()} == {"right"}, check.question.graph
        graph = check.question.graph
        other = build_gradient_check(
            graph,
            of=check.question.of,
            batch=check.question.batch,
            count=60,
            seed=1000,
        )
        for mistake in mistakes(graph):
            if wrong := differs(check, other, mistake):
                tried += 1
                found = verdicts(check, mistake)
                if all(found[name] == "right" for name in wrong):
                    missed.append((graph.source.text, mistake))
    return tried, missed


def test_wrong_programs_of_networks_get_no_full_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradient_module, "find_mistakes", lambda *_: {})  # which takes most time
    tried, missed = full_marks(range(3))
    assert tried > 30
    assert missed == []


@pytest.mark.slow
def test_wrong_programs_of_many_networks_get_no_full_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradient_module, "find_mistakes", lambda *_: {})
    tried, missed = full_marks(range(30))
    assert tried > 500
    assert missed == []
