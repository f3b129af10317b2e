"""Mistakes that leave a pattern of small errors: difference quotients and rounded values.

A difference quotient with too large a step has a truncation error that grows with the step: the
quotient with the same step has the same error at every point. Too small a step leaves rounding
errors: f(x + h) - f(x) is a small integer multiple of the spacing of floating-point numbers at f,
and so is the quotient times h.
Source: Press et al., "Numerical Recipes", section 5.7.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

from cgprimer.course.checks.gradient_questions import VALUE, Question
from cgprimer.course.checks.mistakes.mistake_rule import Array, Attempt
from cgprimer.course.checks.question_points import Points

_DIGITS = 9  # after the decimal point, to which values are rounded at most
_MAX_GOOD_STEP = 1e-4  # of central differences
_MAX_STEP = 0.5  # an error of 1 in x^3 is not a difference quotient with step 1
_MIN_POINTS = 3  # at which a pattern must show
_MAX_ERROR = 0.3  # relative: a larger error is not the error of a difference quotient
_ITERATIONS = 12
_MAX_TRIED_STEP = 10.0
_CONVERGED = 1e-9  # relative error of the fitted step
_STEPS = sorted([*(10.0**-k for k in range(4, 17)), *(2.0**-k for k in range(16, 44))])
_SCALINGS: dict[str, Callable[[Array], Array]] = {  # of the step with the variable x
    "h": np.ones_like,
    "h*max(1, |x|)": lambda x: np.maximum(1.0, np.abs(x)),
    "h*|x|": np.abs,
}
_ORDERS = {"forward": 1, "central": 2}


# --- rounded values ------------------------------------------------------------------------------


def find_rounded_values(attempt: Attempt) -> Iterator[tuple[str, set[str]]]:
    """Yield, for each precision, a message and the variables with derivatives rounded to it."""
    points = attempt.points
    names: dict[int, set[str]] = {}
    for name in attempt.wrong:
        answers, correct = (
            attempt.answers[name][points.smooth],
            points.gradient[name][points.smooth],
        )
        for digits in range(_DIGITS):
            is_near = np.abs(answers - correct) <= 0.501 * 10.0**-digits
            if is_near.all() and np.array_equal(np.round(answers, digits), answers):
                names.setdefault(digits, set()).add(name)
                break
    for digits, rounded in names.items():
        yield f"the numbers are rounded to {digits} decimals", rounded


# --- difference quotients ------------------------------------------------------------------------


def find_large_steps(attempt: Attempt) -> Iterator[tuple[str, set[str]]]:
    """Yield a message and the variables whose difference quotients have too large a step."""
    yield from _find_steps(attempt)[0].items()


def find_small_steps(attempt: Attempt) -> Iterator[tuple[str, set[str]]]:
    """Yield a message and the variables whose difference quotients have too small a step."""
    yield from _find_steps(attempt)[1].items()


def is_central_difference(question: Question, points: Points, answers: Array, name: str) -> bool:
    """Return whether a student's derivatives are central differences with a suitable step."""
    step = _fit_step(question, points, answers, name)
    return step is not None and step.scheme == "central" and abs(step.size) <= _MAX_GOOD_STEP


@lru_cache(maxsize=2)  # two rules ask for the same attempt
def _find_steps(attempt: Attempt) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Return the variables with too large and with too small a step, both keyed by message."""
    question, points = attempt.question, attempt.points
    names = attempt.wrong & points.arguments.keys()
    large: dict[str, set[str]] = {}
    small: dict[str, set[str]] = {}
    for name in [name for name in question.sources if name in names]:
        answers = attempt.answers[name]
        if _has_small_errors(points, answers, name):
            step = _fit_step(question, points, answers, name)
            if step is not None:
                large.setdefault(str(step), set()).add(name)
                continue
        size = _find_small_step(points, answers, name)
        if size is not None:
            message = f"differences with a step of about {size:.0e}: rounding errors dominate"
            small.setdefault(message, set()).add(name)
    return large, small


def _has_small_errors(points: Points, answers: Array, name: str) -> bool:
    """Return whether a student's errors are small enough to come from difference quotients."""
    correct, noise = points.gradient[name][points.smooth], points.noise[name][points.smooth]
    with np.errstate(all="ignore"):
        errors = np.abs(answers[points.smooth] - correct) / (np.abs(correct) + noise / 1e-7)
    errors = errors[~np.isnan(errors)]
    return bool(errors.size) and bool(np.median(errors) <= _MAX_ERROR)


def _find_small_step(points: Points, answers: Array, name: str) -> float | None:
    """Return the step size if rounding errors dominate the difference quotients, else None."""
    compared = points.smooth & np.isfinite(answers)
    answers, value = answers[compared], points.value[compared]
    correct, noise = points.gradient[name][compared], points.noise[VALUE][compared]
    errors = np.abs(answers - correct)
    is_visible = errors[(answers != 0) | (correct != 0)] > 0
    if len(answers) < 2 * _MIN_POINTS or np.ptp(answers) == 0 or np.mean(is_visible) <= 0.5:
        return None  # rounding shows at almost every point
    spacing = np.spacing(np.abs(value)) / 2
    for steps, size in product((1.0, 2.0), _STEPS):  # forward, central
        is_rounding = errors * size <= 4 * noise
        if np.count_nonzero(is_rounding) <= 0.9 * len(is_rounding):
            continue
        with np.errstate(all="ignore"):
            multiples = answers * (steps * size) / spacing
            difference = np.abs(multiples - np.round(multiples))
            is_integer = difference <= 1e-3 + 1e-15 * np.abs(multiples)
            is_integer &= (np.abs(multiples) > 0.5) | (answers == 0)
        is_short = np.abs(multiples) < 1e12
        # A value with few digits is an integer multiple of any power of two.
        is_likely = math.log2(size) % 1 or np.mean(errors <= np.abs(answers) / 2) > 0.5
        if np.mean(is_integer & is_short & is_rounding) > 0.9 and is_likely:
            return float(size)
    return None


class _Step(NamedTuple):
    """The step of a difference quotient: scheme (such as central), size, and scaling with x."""

    scheme: str
    size: float
    scaling: str

    def __str__(self) -> str:
        kind = "backward" if self.scheme == "forward" and self.size < 0 else self.scheme
        text = self.scaling.replace("h", f"{abs(self.size):.1g}", 1)
        return f"{kind} differences with a step of about {text}"


class _Quotients:
    """Difference quotients with respect to a variable, compared with a student's derivatives.

    Attributes:
        errors: the errors of the student's derivatives.
        compared: the points at which errors are compared.
    """

    def __init__(self, question: Question, points: Points, answers: Array, name: str) -> None:
        self.question, self.points, self.name = question, points, name
        self.correct, self.noise = points.gradient[name], points.noise[VALUE]
        self.errors = answers - self.correct
        self.compared = points.smooth & np.isfinite(answers)
        bound = 1e-7 * np.abs(self.correct) + points.noise[name]
        self.is_wrong = self.compared & (np.abs(self.errors) > bound)

    def compute_truncation_errors(self, scheme: str, step: Array) -> Array:
        """Return the truncation errors of difference quotients with the given steps."""
        question, points, name = self.question, self.points, self.name
        x = points.arguments[name]
        ends = (step, -step) if scheme == "central" else (step, 0.0 * step)
        after, before = (
            question.evaluate(question.primal, {**points.arguments, name: x + shift})[question.of]
            for shift in ends
        )
        return (after - before) / ((2 if scheme == "central" else 1) * step) - self.correct

    def fit_step(self, scheme: str, scale: Array) -> float:
        """Find the step size whose truncation errors are closest to the student's errors."""
        step, order = 1e-3, _ORDERS[scheme]
        for _ in range(_ITERATIONS):
            predicted = self.compute_truncation_errors(scheme, step * scale)
            is_visible = self.compared & (np.abs(predicted) > self.noise / abs(step))
            if np.sum(is_visible) < _MIN_POINTS:
                break
            ratio = float(np.median(self.errors[is_visible] / predicted[is_visible]))
            if not np.isfinite(ratio) or ratio == 0 or (order == 2 and ratio < 0):
                break
            step *= np.sign(ratio) * min(max(abs(ratio) ** (1 / order), 1e-2), 1e2)
            if abs(step) > _MAX_TRIED_STEP or abs(ratio - 1) < _CONVERGED:
                break
        return float(step)

    def matches_step(self, scheme: str, step: float, scale: Array) -> bool:
        """Return whether the student's errors match the truncation errors for a given step."""
        predicted = self.compute_truncation_errors(scheme, step * scale)
        allowed = 0.01 * np.abs(predicted) + self.noise / abs(step) / 2
        is_near = np.abs(self.errors - predicted) <= allowed
        is_visible = self.compared & (np.abs(predicted) > self.noise / abs(step))
        explained, wrong = np.sum(is_visible & self.is_wrong), np.sum(self.is_wrong)
        explains = explained > 0.5 * wrong and np.sum(is_visible) >= _MIN_POINTS
        return bool(np.all(is_near[self.compared]) and explains and abs(step) <= _MAX_STEP)


def _fit_step(question: Question, points: Points, answers: Array, name: str) -> _Step | None:
    """Return the step whose truncation errors match the student's errors, or None."""
    quotients = _Quotients(question, points, answers, name)
    with np.errstate(all="ignore"):
        for scaling, scale_with in _SCALINGS.items():
            scale = scale_with(points.arguments[name])
            for scheme in _ORDERS:
                step = quotients.fit_step(scheme, scale)
                if quotients.matches_step(scheme, step, scale):
                    return _Step(scheme, step, scaling)
    return None
