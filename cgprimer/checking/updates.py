"""Mistakes of an update step that leaks into a gradient: weight decay, parameters moved too early.

Both have a number that nobody declares, the strength of the decay or the learning rate. It is
fitted to the student's numbers and must then predict all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
    if len(question.sources) < 2 or not {*question.wrt} <= {*question.graph.parameters}:
        return
    names = [*question.wrt]
    ways: list[tuple[str, Callable[[float], Gradient]]] = [
        (
            "the backward pass multiplies with weights that are updated already",
            _backward_with_updates(question, points),
        ),
        (
            "each parameter is updated before the gradient by the next one is computed",
            lambda rate: _one_after_another(question, points, names, rate),
        ),
        (
            "each parameter is updated before the gradient by the one before it is computed",
            lambda rate: _one_after_another(question, points, names[::-1], rate),
        ),
        (
            "it is the gradient after an update of all parameters",
            lambda rate: _gradient(question, _moved(points.given, points.right, rate)),
        ),
    ]
    for said, predict in ways:
        with np.errstate(all="ignore"):
            rate = _fitted_rate(points, theirs, wrong, predict)
            if rate is not None:
                yield UPDATED, said, predict(rate)


def _fitted_rate(
    points: Points, theirs: Gradient, wrong: set[str], predict: Callable[[float], Gradient]
) -> float | None:
    """Return the rate for which a prediction meets the student's numbers best, by secants."""

    def errors(rate: float) -> Array:
        values = predict(rate)
        return np.concatenate([(values[e] - theirs[e])[points.smooth] for e in sorted(wrong)])

    last, rate = 0.0, 1e-3
    before = errors(last)
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
