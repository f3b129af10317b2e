"""Mistakes of an update step that leaks into a gradient: weight decay, parameters moved too early.

Both have a number that nobody declares, the strength of the decay or the learning rate. It is
fitted to the student's numbers and must then predict all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from cgprimer.checking.questions import Points, Question
from cgprimer.checking.sweeps import Sweeps
from cgprimer.checking.wrong_sweeps import Slip

Array = Any
Gradient = Mapping[str, Array]
DECAY = "weight decay added"
UPDATED = "weight updated before its use"
_LARGEST_DECAY = 1.0
_LARGEST_RATE = 2.0
_STEADY = 1e-6  # relative: by how much the fitted number may differ between points
_ROUNDS = 12
_NEAR = 1e-6  # a rate for which a gradient is still nearly linear in it
_MOST_NAMES = 12  # that may be updated one after the other
_SIMILAR, _MOSTLY = 10.0, 0.7  # estimates of the rate: by which factor they differ, and how many
_RATE = "rate."  # a leaf of a tape; no name of a user has a dot


def decays(
    question: Question, points: Points, theirs: Gradient, wrong: set[str]
) -> Iterator[tuple[str, str, Gradient]]:
    """Yield the right gradient plus a multiple of the parameters."""
    strengths: dict[str, float] = {}
    parameters = {e for n in question.graph.parameters for e in question.elements(n)}
    for name in wrong & parameters:
        weight, right = points.given[name], points.right[name]
        here = points.smooth & (weight != 0) & np.isfinite(theirs[name])
        if np.sum(here) < 4 or np.ptp(np.abs(weight[here])) == 0:
            continue
        fitted = (theirs[name] - right)[here] / weight[here]
        strength = float(np.median(fitted))
        steady = np.abs(fitted - strength) <= _STEADY * abs(strength)
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


def early_updates(
    question: Question, points: Points, theirs: Gradient, wrong: set[str]
) -> Iterator[tuple[str, str, Gradient]]:
    """Yield gradients with parameters that were moved before they are used, with a fitted rate."""
    for way in _ways(question, points):
        with np.errstate(all="ignore"):
            rate = _fitted_rate(points, theirs, wrong, way)
            if rate is not None:
                yield UPDATED, way.message, way.predict(rate)


@dataclass(frozen=True, eq=False)
class _Way:
    """A way to update too early: the gradient for a learning rate, and its slope at rate 0."""

    message: str
    predict: Callable[[float], Gradient]
    slopes: Gradient


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
    if 1 < len(names) <= _MOST_NAMES:
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
        found.append(_Way(message, predict, slopes))
    return tuple(found)


def _fitted_rate(points: Points, theirs: Gradient, wrong: set[str], way: _Way) -> float | None:
    """Return the rate for which a prediction meets the student's numbers best, by secants."""
    names = sorted(wrong)

    def errors(rate: float) -> Array:
        values = way.predict(rate)
        return np.concatenate([(values[e] - theirs[e])[points.smooth] for e in names])

    slopes = np.concatenate([way.slopes[e][points.smooth] for e in names])
    before = np.concatenate([(points.right[e] - theirs[e])[points.smooth] for e in names])
    estimates = (-before / slopes)[np.isfinite(before) & (slopes != 0)]
    if not len(estimates):
        return None
    last, rate = 0.0, float(np.median(estimates))
    similar = (estimates > rate / _SIMILAR) & (estimates < rate * _SIMILAR)
    if not 0 < rate < _LARGEST_RATE or np.mean(similar) < _MOSTLY:
        return None
    for _ in range(_ROUNDS):
        now = errors(rate)
        slopes = (now - before) / (rate - last)
        here = np.isfinite(slopes) & np.isfinite(now) & (slopes != 0)
        if not here.any():
            return None
        step = -float(np.median(now[here] / slopes[here]))
        if not np.isfinite(step) or abs(step) <= 1e-15 * abs(rate):
            break
        last, before, rate = rate, now, float(np.clip(rate + step, -_LARGEST_RATE, _LARGEST_RATE))
        if rate == last:
            break
    return rate if 0 < rate < _LARGEST_RATE else None


def _moved(given: Gradient, gradient: Gradient, rate: float) -> dict[str, Array]:
    return {**given, **{e: given[e] - rate * v for e, v in gradient.items()}}


def _gradient(question: Question, given: Gradient) -> Gradient:
    right, _ = question.read(question.run(question.answering, given))
    return right


def _one_after_another(
    question: Question, points: Points, names: list[str], rate: float
) -> Gradient:
    """Return gradients by one parameter each, after an update of those before it."""
    given, found = dict(points.given), {}
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
