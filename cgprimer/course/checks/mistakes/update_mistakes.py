"""Mistakes in which an update step affects the gradient: weight decay, parameters updated early.

Both have a number that the student chose, the strength of the decay or the learning rate. The
number is fitted to the student's derivatives and must then predict all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from cgprimer.core.operations.primitive_registry import Applied
from cgprimer.course.checks.gradient_questions import Question
from cgprimer.course.checks.mistakes.differentiated_tape import Edge
from cgprimer.course.checks.mistakes.gradient_passes import GradientPasses
from cgprimer.course.checks.mistakes.mistake_rule import Array, Attempt, Gradient, Prediction
from cgprimer.course.checks.mistakes.reverse_rules import MEAN, ReversePass, ReverseRules
from cgprimer.course.checks.question_points import Points

_MAX_DECAY = 1.0
_MAX_RATE = 2.0
_CONSTANT = 1e-6  # relative: by how much the fitted number may differ between points
_ROUNDING = 4 * 2.0**-52
_ITERATIONS = 12  # of the secant method
_SMALL_RATE = 1e-6  # a rate for which a gradient is nearly linear in the rate
_MAX_WORK = 10_000  # instructions of all gradients that are computed one after another
_COMMON_RATES = (0.1, 0.01, 0.001, 0.5, 0.05, 0.005, 1.0, 0.2, 0.02)
_SIMILAR = 0.05  # relative: by how much estimates of the rate may differ
_MIN_AGREEMENT = 0.1  # fraction of the estimates that must agree
_MIN_POINTS = 4  # points, or estimates of the rate, that must agree
_RATE = "rate."  # a leaf of a tape; names of users have no dot
_UPDATED_BEFORE = (
    "a parameter is updated before the derivative with respect to the {} parameter is computed"
)


# --- weight decay --------------------------------------------------------------------------------


def add_weight_decay(attempt: Attempt) -> Iterator[Prediction]:
    """Predict the gradients if weight decay, a multiple of each parameter, is added to them."""
    points = attempt.points
    strengths: dict[str, float] = {}
    for name in sorted(attempt.wrong & _list_parameter_elements(attempt.question)):
        strength = _fit_decay(attempt, name)
        if strength is not None:
            strengths[name] = strength
    if not strengths:
        return
    median = float(np.median([*strengths.values()]))
    values = {
        name: points.gradient[name] + median * points.arguments[name]
        for name, strength in strengths.items()
        if abs(strength - median) <= _CONSTANT * median
    }
    yield Prediction("a multiple of the parameter itself is added", values, individual=True)


def _fit_decay(attempt: Attempt, name: str) -> float | None:
    """Fit the weight decay strength that explains a student's derivatives for a parameter."""
    points, answers = attempt.points, attempt.answers[name]
    compared = points.smooth & (points.arguments[name] != 0) & np.isfinite(answers)
    weight, correct = points.arguments[name][compared], points.gradient[name][compared]
    if np.sum(compared) < _MIN_POINTS or np.ptp(np.abs(weight)) == 0:
        return None
    estimates = (answers[compared] - correct) / weight
    noise = (points.noise[name][compared] + _ROUNDING * np.abs(correct)) / np.abs(weight)
    strength = float(estimates[int(np.argmin(noise))])
    is_constant = np.abs(estimates - strength) <= _CONSTANT * abs(strength) + noise
    return strength if is_constant.all() and 0 < strength < _MAX_DECAY else None


def _list_parameter_elements(question: Question) -> set[str]:
    """Return the names of the elements of all parameters in a question's graph."""
    return {e for name in question.graph.parameters for e in question.list_elements(name)}


# --- updated parameters --------------------------------------------------------------------------


def return_updated_parameters(attempt: Attempt) -> Iterator[Prediction]:
    """Predict the values if a student returns updated parameters instead of gradients."""
    points = attempt.points
    names = attempt.wrong & _list_parameter_elements(attempt.question)
    accuracy, rate = 0.0, 0.0  # a large derivative determines the rate best
    for name in sorted(names):
        weight, correct, answers = (
            points.arguments[name],
            points.gradient[name],
            attempt.answers[name],
        )
        accuracies = np.abs(correct) / (np.abs(weight) + 1.0) * points.smooth
        best = int(np.argmax(accuracies))
        if accuracies[best] > accuracy and np.isfinite(answers[best]):
            accuracy = accuracies[best]
            rate = float((weight[best] - answers[best]) / correct[best])
    if 0 < rate < _MAX_RATE:
        values = {name: points.arguments[name] - rate * points.gradient[name] for name in names}
        message = "this is the parameter after the update, not its gradient"
        yield Prediction(message, values, individual=True)


def update_parameters_early(attempt: Attempt) -> Iterator[Prediction]:
    """Predict the gradients if parameters are updated before the backward pass uses them.

    The learning rate is a common one, or is fitted to the student's derivatives.
    """
    if np.sum(attempt.points.smooth) < _MIN_POINTS:
        return
    for update in _list_early_updates(attempt.question, attempt.points):
        yield from (Prediction(update.message, values) for values in update.common)
        with np.errstate(all="ignore"):
            rate = _fit_rate(attempt, update)
            if rate is not None:
                yield Prediction(update.message, update.predict(rate))


@dataclass(frozen=True, eq=False)
class _EarlyUpdate:
    """A way to update parameters too early, with the resulting gradients.

    Attributes:
        message: a sentence for the student.
        predict: computes the gradient for a learning rate.
        slopes: the derivatives of the gradient with respect to the rate, at rate 0.
        common: the gradients for common rates.
    """

    message: str
    predict: Callable[[float], Gradient]
    slopes: Gradient
    common: tuple[Gradient, ...]


@lru_cache(maxsize=4)  # shared by all submissions
def _list_early_updates(question: Question, points: Points) -> tuple[_EarlyUpdate, ...]:
    """Return the ways in which parameters may be updated too early, with predicted gradients."""
    if len(question.sources) < 2 or not {*question.wrt} <= {*question.graph.parameters}:
        return ()
    names = [*question.wrt]
    predictors: dict[str, Callable[[float], Gradient]] = {
        "the backward pass uses weights that are already updated": (
            _predict_backward_pass(question, points)
        ),
        "it is the gradient after an update of all parameters": (
            lambda rate: _differentiate_after_update(question, points, rate)
        ),
    }
    if len(names) * len(question.gradient_tape) <= _MAX_WORK:
        predictors[_UPDATED_BEFORE.format("next")] = lambda rate: _differentiate_between_updates(
            question, points, names, rate
        )
        predictors[_UPDATED_BEFORE.format("previous")] = lambda rate: (
            _differentiate_between_updates(question, points, names[::-1], rate)
        )
    updates = []
    for message, predict in predictors.items():
        with np.errstate(all="ignore"):
            near = predict(_SMALL_RATE)
            slopes = {e: (near[e] - points.gradient[e]) / _SMALL_RATE for e in question.sources}
            common = tuple(predict(rate) for rate in _COMMON_RATES)
        updates.append(_EarlyUpdate(message, predict, slopes, common))
    return tuple(updates)


def _fit_rate(attempt: Attempt, update: _EarlyUpdate) -> float | None:
    """Find the learning rate with which updated parameters best explain the student's answers."""
    names, points = sorted(attempt.wrong), attempt.points

    def compute_errors(rate: float) -> Array:
        """Return the differences between the predicted and the student's derivatives."""
        values = update.predict(rate)
        return np.concatenate([(values[e] - attempt.answers[e])[points.smooth] for e in names])

    slopes = np.concatenate([update.slopes[e][points.smooth] for e in names])
    before = np.concatenate(
        [(points.gradient[e] - attempt.answers[e])[points.smooth] for e in names]
    )
    estimates = np.where(slopes == 0, np.nan, -before / slopes)
    rate = _find_densest_estimate(estimates[np.isfinite(estimates)])
    agreeing = np.abs(estimates - rate) <= _SIMILAR * rate
    count = np.sum(np.isfinite(estimates))
    if np.sum(agreeing) < max(_MIN_POINTS, _MIN_AGREEMENT * count):
        return None
    last = 0.0
    for _ in range(_ITERATIONS):
        if not 0 < rate < _MAX_RATE:
            return None
        now = compute_errors(rate)
        step = -float(np.median((now * (rate - last) / (now - before))[agreeing]))
        last, before, rate = rate, now, rate + step
        if not abs(step) > 1e-15 * abs(rate):  # nan if the errors do not change any more
            return last
    return None


def _find_densest_estimate(estimates: Array) -> float:
    """Return an estimate in the densest cluster of positive ones, or nan if there are too few."""
    positive = np.sort(estimates[estimates > 0])
    if len(positive) < _MIN_POINTS:
        return math.nan
    widths = positive[_MIN_POINTS - 1 :] / positive[: 1 - _MIN_POINTS]
    return float(positive[int(np.argmin(widths)) + _MIN_POINTS // 2])


def _update_arguments(arguments: Gradient, gradient: Gradient, rate: float) -> dict[str, Array]:
    """Return the arguments after one gradient descent update."""
    return {**arguments, **{name: arguments[name] - rate * v for name, v in gradient.items()}}


def _differentiate_after_update(question: Question, points: Points, rate: float) -> Gradient:
    """Return the gradient at the point reached by an update of all parameters."""
    updated = _update_arguments(points.arguments, points.gradient, rate)
    return question.evaluate_gradient(updated)[1]


def _differentiate_between_updates(
    question: Question, points: Points, names: list[str], rate: float
) -> Gradient:
    """Return the gradient if each parameter is updated before the next derivative is computed."""
    arguments, gradient = dict(points.arguments), dict[str, Array]()
    for name in names:
        _, correct, _ = question.evaluate_gradient(arguments)
        derivatives = {e: correct[e] for e in question.list_elements(name)}
        gradient |= derivatives
        arguments = _update_arguments(arguments, derivatives, rate)
    return gradient


# --- weights that are updated during the backward pass -------------------------------------------


@dataclass(eq=False, repr=False)
class UpdateDuringPass(ReverseRules):
    """Rules of a reverse pass that updates a weight before the other factor's adjoint uses it.

    Attributes:
        rate: the learning rate as a value of the builder.
        parameters: the parameters that are used once, so that their adjoint is complete then.
        samples: the number of samples of a batch whose gradients are added; 1 for their mean; 0
            without a batch.
    """

    rate: int = 0
    parameters: frozenset[int] = frozenset()
    samples: int = 0

    def choose_operation(
        self, run: ReversePass, edge: Edge, primitive: Applied, values: Sequence[Any], out: Any
    ) -> tuple[Applied, Sequence[Any], Any]:
        """Return a product with the updated weight as operand, or any other operation unchanged."""
        if primitive != "mul":
            return primitive, values, out
        parameter = run.tape.instruction(edge.head).operands[1 - edge.position]
        if parameter not in self.parameters or parameter not in run.adjoints:
            return primitive, values, out
        gradient = run.adjoints[parameter]
        if self.samples:
            gradient = run.emit(MEAN, gradient)
        if self.samples > 1:
            gradient = run.emit("mul", run.constant(float(self.samples)), gradient)
        change = run.emit("mul", self.rate, gradient)
        updated = run.emit("sub", values[1 - edge.position], change)
        operands = (updated, values[1]) if edge.position == 1 else (values[0], updated)
        return primitive, operands, out


def _predict_backward_pass(question: Question, points: Points) -> Callable[[float], Gradient]:
    """Return a function from a learning rate to the gradient of a pass with updated weights."""
    passes = GradientPasses(question)
    tails = [edge.tail for edge in passes.edges]
    parameters = frozenset(i for i in passes.sources.values() if tails.count(i) == 1)
    order = []
    for head in reversed(passes.region):
        edges = passes.edges_to(head)
        if passes.instruction(head).primitive == "mul":  # the parameter's adjoint comes first
            edges.sort(key=lambda edge: edge.tail not in parameters)
        order += edges
    samples = question.batch if question.reduction == "sum" else min(question.batch, 1)
    rate = passes.builder.scalar(_RATE)
    rules = UpdateDuringPass(rate, parameters, samples, order=order)
    tape = passes.builder.finish(passes.gradient(rules), prune=True)

    def predict(learning_rate: float) -> Gradient:
        """Return the gradient that this mistake yields for a learning rate."""
        arguments = {**points.arguments, _RATE: np.full(len(points), learning_rate)}
        result = question.evaluate(tape, arguments)
        return {name: result[name] for name in question.sources}

    return predict
