"""Checks of gradients: verdicts, no accusations of right answers, contracts, cases E10, D2, F18."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.checking.gradient import GradientCheck, gradient_check
from tests.checking.planted import answers, graphs, right, samples
from tests.checking.students import Habits, Student

Program = Callable[[Mapping[str, Any]], dict[str, Any]]


# --- right answers are not accused ---------------------------------------------------------------


def _shuffled(check: GradientCheck, seed: int) -> Program:
    """Shares added up in another order: those of all paths, in any."""
    student, draw = Student(check.question.graph), Random(seed)

    def gradient(point: Mapping[str, Any]) -> dict[str, Any]:
        found = {}
        for name in check.question.wrt:
            paths = student.paths(point, name)
            draw.shuffle(paths)
            found[name] = sum(paths) if seed % 2 else math.fsum(paths)
        return found

    return gradient


def _noisy(check: GradientCheck, seed: int) -> Program:
    """Every operation off by half a unit in the last place."""
    draw = Random(seed)
    student = Student(
        check.question.graph, Habits(rounded=lambda v: v * (1 + draw.uniform(-1, 1) * 2.0**-52))
    )
    return lambda point: {n: student.gradient(point)[n] for n in check.question.wrt}


def _in_numpy(check: GradientCheck, seed: int) -> Program:
    """The package's own answer, in another mode: forward or symbolic, on arrays."""
    method = ("forward", "reverse", "path-sum")[seed % 3]
    graph, wrt = check.question.graph, check.question.wrt

    def gradient(point: Mapping[str, Any]) -> dict[str, Any]:
        whole = {n: np.array([v]) for n, v in point.items()}
        found = cgprimer.gradient(graph, whole, of=check.question.of, wrt=wrt, method=method)
        return {n: found[n].tolist() for n in wrt}

    return gradient


def _batch(check: GradientCheck, seed: int) -> Program:
    """The mean, or the sum, over a batch, sample by sample from either end."""
    student, mean = Student(check.question.graph), check.question.reduction == "mean"

    def gradient(point: Mapping[str, Any]) -> dict[str, Any]:
        each = [student.gradient(one) for one in samples(check, point)][:: (-1) ** seed]
        scale = len(each) if mean else 1
        return {n: sum(one[n] / scale for one in each) for n in check.question.wrt}

    return gradient


def _accused(many: int) -> list[str]:
    """What is said against so many right programs."""
    found, count = [], 0
    ways = (lambda check, seed: right(check), _shuffled, _noisy, _in_numpy)
    for seed, graph in enumerate(graphs()):
        single = len(graph.outputs) == 1
        checks = [(gradient_check(graph, count=8, seed=seed), way) for way in ways[seed % 2 :]]
        if single and graph.inputs:
            loss = ("squared-error", "half-squared-error")[seed % 2]
            reduction = ("mean", "sum")[seed % 2]
            checks.append((gradient_check(graph, loss=loss, batch=3, reduction=reduction, count=8,
                                          seed=seed), _batch))  # fmt: skip
        for check, way in checks:
            count += 1
            result = check.verdict(answers(check, way(check, seed)))
            found += [f"{graph.source.name} {way.__name__} {part}" for part in result.parts
                      if part.verdict != "right"]  # fmt: skip
        if count >= many:
            return found
    raise AssertionError


def test_right_answers_are_not_accused() -> None:
    assert _accused(60) == []


@pytest.mark.slow
def test_a_thousand_right_answers_are_not_accused() -> None:
    assert _accused(1000) == []


BADLY_CONDITIONED = (
    # Text, and a program that is right in exact arithmetic but computes in another way.
    ("input x = 2; parameter a = 3, c = 100000000; y = (a*x + c)^2 - c^2; output y",
     lambda x, a, c: {"a": 2 * x * (a * x + c), "c": (2 * (a * x + c)) - 2 * c}),
    ("input x = 0.5; parameter a = 1; y = (1 - cos(a*x*0.0001))*1000000; output y",
     lambda x, a: {"a": 2e6 * math.sin(a * x * 5e-5) * math.cos(a * x * 5e-5) * x * 1e-4}),
    ("input x = 1; parameter a = 1; u = exp(a*x); v = exp(0 - a*x); y = u*v + a; output y",
     lambda x, a: {"a": x * math.exp(a * x) * math.exp(-a * x) - x * math.exp(a * x - a * x) + 1}),
    ("input x = 1; parameter a = 1, b = 1; y = (a - b)^3*1000 + x*a; output y",
     lambda x, a, b: {"a": 3000 * (a * a - 2 * a * b + b * b) + x,
                      "b": -3000 * (a * a - 2 * a * b + b * b)}),
    ("parameter a = 30; y = tanh(a)*1000000; output y",
     lambda a: {"a": 1e6 * 4 / (math.exp(a) + math.exp(-a)) ** 2}),
)  # fmt: skip


@pytest.mark.parametrize(("text", "program"), BADLY_CONDITIONED)
def test_honest_noise_is_no_mistake(text: str, program: Any) -> None:
    result = cgprimer.check_gradient(cgprimer.parse(text), program, points=40)
    assert [part.verdict for part in result.parts] == ["right"] * len(result.parts), result.parts
