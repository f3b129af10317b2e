"""Mistakes of an update step that leaks into a gradient: weight decay, parameters moved too early.

Both have a number that nobody declares, the strength of the decay or the learning rate. It is
fitted to the student's numbers and must then predict all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from cgprimer.course.checks.gradient_questions import Points, Question
from cgprimer.course.checks.sweep_outputs import Sweeps
from cgprimer.course.checks.wrong_sweeps import Slip

Array = Any
Gradient = Mapping[str, Array]
DECAY = "weight decay added"
RETURNED = "updated parameter returned"
UPDATED = "weight updated before its use"
_LARGEST_DECAY = 1.0
_LARGEST_RATE = 2.0
_STEADY = 1e-6  # relative: by how much the fitted number may differ between points
_ROUNDING = 4 * 2.0**-52
_ROUNDS = 12
_NEAR = 1e-6  # a rate for which a gradient is still nearly linear in it
_MOST_WORK = 10_000  # instructions of all gradients that are computed one after the other
_USUAL_RATES = (0.1, 0.01, 0.001, 0.5, 0.05, 0.005, 1.0, 0.2, 0.02)
_SIMILAR = 0.05  # relative: by how much estimates of the rate differ
_AGREEING = 0.1  # fraction of the estimates that must agree
_FEWEST = 4  # estimates of the rate that agree
_RATE = "rate."  # a leaf of a tape; no name of a user has a dot


def decays(
    question: Question, points: Points, theirs: Gradient, wrong: set[str]
) -> Iterator[tuple[str, str, Gradient]]:
    """Yield the right gradient plus a multiple of the parameters."""
    strengths: dict[str, float] = {}
    parameters = {e for n in question.graph.parameters for e in question.elements(n)}
    for name in sorted(wrong & parameters):
        here = points.smooth & (points.given[name] != 0) & np.isfinite(theirs[name])
        weight, right = points.given[name][here], points.right[name][here]
        if np.sum(here) < _FEWEST or np.ptp(np.abs(weight)) == 0:
            continue
        fitted = (theirs[name][here] - right) / weight
        noise = (points.noise[name][here] + _ROUNDING * np.abs(right)) / np.abs(weight)
        strength = float(fitted[int(np.argmin(noise))])
        steady = np.abs(fitted - strength) <= _STEADY * abs(strength) + noise
        if steady.all() and 0 < strength < _LARGEST_DECAY:
            strengths[name] = strength
    if not strengths:
        return
    strength = float(np.median([*strengths.values()]))
    values = {
        e: points.right[e] + strength * points.given[e]
        for e, one in strengths.items()
        if abs(one - strength) <= _STEADY * strength
    }
    yield DECAY, "a multiple of the parameter itself is added", values


def returned_updates(
    question: Question, points: Points, theirs: Gradient, wrong: set[str]
) -> Iterator[tuple[str, str, Gradient]]:
    """Yield parameters after a step, in the place of their gradient."""
    parameters = {e for n in question.graph.parameters for e in question.elements(n)}
    best, rate = 0.0, 0.0  # a large derivative tells the rate best
    for name in sorted(wrong & parameters):
        weight, right = points.given[name], points.right[name]
        clear = np.abs(right) / (np.abs(weight) + 1.0) * points.smooth
        at = int(np.argmax(clear))
        if clear[at] > best and np.isfinite(theirs[name][at]):
            best, rate = clear[at], float((weight[at] - theirs[name][at]) / right[at])
    if 0 < rate < _LARGEST_RATE:
        values = {e: points.given[e] - rate * points.right[e] for e in wrong & parameters}
        yield RETURNED, "this is the parameter after a step, not its gradient", values


def early_updates(
    question: Question, points: Points, theirs: Gradient, wrong: set[str]
) -> Iterator[tuple[str, str, Gradient]]:
    """Yield gradients with parameters that were moved before they are used.

    The learning rate is a usual one, or it is fitted to the student's numbers.
    """
    for way in _ways(question, points):
        yield from ((UPDATED, way.message, values) for values in way.usual)
        with np.errstate(all="ignore"):
            rate = _fitted_rate(points, theirs, wrong, way)
            if rate is not None:
                yield UPDATED, way.message, way.predict(rate)


@dataclass(frozen=True, eq=False)
class _Way:
    """A way to update too early.

    Attributes:
        message: what the student did.
        predict: computes the gradient for a learning rate.
        slopes: the derivatives of the gradient by the rate, at rate 0.
        usual: the gradients for usual rates.
    """

    message: str
    predict: Callable[[float], Gradient]
    slopes: Gradient
    usual: tuple[Gradient, ...]


@lru_cache(maxsize=4)  # shared by all submissions
def _ways(question: Question, points: Points) -> tuple[_Way, ...]:
    """Return the ways to update parameters too early."""
    if len(question.sources) < 2 or not {*question.wrt} <= {*question.graph.parameters}:
        return ()
    names = [*question.wrt]
    ways: dict[str, Callable[[float], Gradient]] = {
        "the backward pass multiplies with weights that are updated already": (
            _backward_with_updates(question, points)
        ),
        "it is the gradient after an update of all parameters": (
            lambda rate: _gradient(question, _moved(points.given, points.right, rate))
        ),
    }
    if len(names) * len(question.answering) <= _MOST_WORK:
        ways["a parameter is updated before the gradient by the next one is computed"] = (
            lambda rate: _one_after_another(question, points, names, rate)
        )
        ways["a parameter is updated before the gradient by the one before it is computed"] = (
            lambda rate: _one_after_another(question, points, names[::-1], rate)
        )
    found = []
    for message, predict in ways.items():
        with np.errstate(all="ignore"):
            near = predict(_NEAR)
            slopes = {e: (near[e] - points.right[e]) / _NEAR for e in question.sources}
            usual = tuple(predict(rate) for rate in _USUAL_RATES)
        found.append(_Way(message, predict, slopes, usual))
    return tuple(found)


def _fitted_rate(points: Points, theirs: Gradient, wrong: set[str], way: _Way) -> float | None:
    """Return the rate for which a prediction meets the student's numbers best, by secants."""
    names = sorted(wrong)

    def errors(rate: float) -> Array:
        values = way.predict(rate)
        return np.concatenate([(values[e] - theirs[e])[points.smooth] for e in names])

    slopes = np.concatenate([way.slopes[e][points.smooth] for e in names])
    before = np.concatenate([(points.right[e] - theirs[e])[points.smooth] for e in names])
    estimates = np.where(slopes == 0, np.nan, -before / slopes)
    rate = _densest(estimates[np.isfinite(estimates)])
    here = np.abs(estimates - rate) <= _SIMILAR * rate
    if np.sum(here) < max(_FEWEST, _AGREEING * np.sum(np.isfinite(estimates))):
        return None
    last = 0.0
    for _ in range(_ROUNDS):
        if not 0 < rate < _LARGEST_RATE:
            return None
        now = errors(rate)
        step = -float(np.median((now * (rate - last) / (now - before))[here]))
        last, before, rate = rate, now, rate + step
        if not abs(step) > 1e-15 * abs(rate):  # nan, if it does not change any more
            return last
    return None


def _densest(estimates: Array) -> float:
    """Return the positive estimate with the nearest neighbours; nan if there are too few."""
    known = np.sort(estimates[estimates > 0])
    if len(known) < _FEWEST:
        return math.nan
    widths = known[_FEWEST - 1 :] / known[: 1 - _FEWEST]
    return float(known[int(np.argmin(widths)) + _FEWEST // 2])


def _moved(given: Gradient, gradient: Gradient, rate: float) -> dict[str, Array]:
    return {**given, **{e: given[e] - rate * v for e, v in gradient.items()}}


def _gradient(question: Question, given: Gradient) -> Gradient:
    right, _ = question.read(question.run(question.answering, given))
    return right


def _one_after_another(
    question: Question, points: Points, names: list[str], rate: float
) -> Gradient:
    """Return gradients by one parameter each, after an update of those before it."""
    given, found = dict(points.given), dict[str, Array]()
    for name in names:
        right = _gradient(question, given)
        own = {e: right[e] for e in question.elements(name)}
        found |= own
        given = _moved(given, own, rate)
    return found


def _backward_with_updates(question: Question, points: Points) -> Callable[[float], Gradient]:
    """Return a function of the rate: the sweep in which products use updated parameters."""
    sweeps = Sweeps(question)
    rate = sweeps.builder.scalar(_RATE)
    gradient = sweeps.sweep(Slip(UPDATED, "", rate=rate))
    tape = sweeps.builder.finish(gradient, prune=True)

    def predict(value: float) -> Gradient:
        given = {**points.given, _RATE: np.full(len(points), value)}
        result = question.run(tape, given)
        return {e: result[e] for e in question.sources}

    return predict
