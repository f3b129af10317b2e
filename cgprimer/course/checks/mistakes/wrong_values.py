"""Mistakes that turn the correct derivatives into others: signs, factors, exchanged values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cgprimer.course.checks.mistakes.mistake_rule import Array, Attempt, Gradient, Prediction
from cgprimer.course.checks.mistakes.prediction_matching import TOLERANCE, is_predicted
from cgprimer.errors import join_names
from cgprimer.expressions import parse_element
from cgprimer.support.value_names import Element

_MAX_EXCHANGED = 200  # derivatives among which exchanged ones are looked for
_SECOND_MISTAKES = {
    -1.0: "in addition, the sign is wrong",
    2.0: "in addition, it is too large by a factor of 2",
    0.5: "in addition, a factor of 2 is missing",
}


# --- multiples -----------------------------------------------------------------------------------


def multiply_values(factor: float, message: str) -> Callable[[Attempt], Iterator[Prediction]]:
    """Return a function that predicts the correct derivatives times a factor."""

    def predict(attempt: Attempt) -> Iterator[Prediction]:
        """Predict each correct derivative times the factor, unless it is 0 at all points."""
        correct = attempt.points.gradient
        values = {name: factor * v for name, v in correct.items() if np.any(v)}
        yield Prediction(message, values, individual=True)

    return predict


def negate_values(attempt: Attempt) -> Iterator[Prediction]:
    """Predict derivatives with the wrong sign, with and without a wrong factor of 2."""
    yield from multiply_values(-1.0, "the sign is wrong")(attempt)
    for factor in (-0.5, -2.0):
        message = f"the sign is wrong; {_SECOND_MISTAKES[-factor]}"
        yield from multiply_values(factor, message)(attempt)


def exchange_reduction(name: str) -> Callable[[Attempt], Iterator[Prediction]]:
    """Return a function that predicts the gradient of a sum instead of a mean, or vice versa."""

    def predict(attempt: Attempt) -> Iterator[Prediction]:
        """Predict the gradient of the sum instead of the mean, or vice versa."""
        for factor, reduction in compute_reduction_factors(attempt).items():
            if reduction == name:
                message = f"over the samples of a batch: {name}"
                yield from multiply_values(factor, message)(attempt)

    return predict


def compute_reduction_factors(attempt: Attempt) -> dict[float, str]:
    """Map the factor between the sum and the mean over the batch to the name of the mistake."""
    question = attempt.question
    if question.batch < 2:
        return {}
    if question.reduction == "mean":
        return {float(question.batch): "sum instead of mean"}
    return {1.0 / question.batch: "mean instead of sum"}


def list_second_mistakes(attempt: Attempt) -> dict[float, str]:
    """Map each factor caused by a possible second mistake to a message for the student."""
    others = {f: f"in addition: {name}" for f, name in compute_reduction_factors(attempt).items()}
    return _SECOND_MISTAKES | others


def take_absolute_values(attempt: Attempt) -> Iterator[Prediction]:
    """Predict the absolute values of the correct derivatives."""
    values = {name: np.abs(v) for name, v in attempt.points.gradient.items()}
    yield Prediction("the sign is lost", values, individual=True)


def take_reciprocals(attempt: Attempt) -> Iterator[Prediction]:
    """Predict the reciprocals of the correct derivatives."""
    with np.errstate(all="ignore"):
        values = {name: 1.0 / v for name, v in attempt.points.gradient.items()}
    yield Prediction("it is the reciprocal of the correct value", values, individual=True)


def fit_constant_factors(attempt: Attempt) -> Iterator[Prediction]:
    """Predict the correct derivatives times a constant that is fitted to the student's."""
    for name in attempt.wrong:
        correct = attempt.points.gradient[name]
        with np.errstate(all="ignore"):
            ratios = (attempt.answers[name] / correct)[attempt.points.smooth & (correct != 0)]
            if len(ratios) > 3 and np.ptp(ratios) <= TOLERANCE * abs(np.median(ratios)):
                values = {name: correct * np.median(ratios)}
                message = "it is off by the same factor at every point"
                yield Prediction(message, values, individual=True)


# --- exchanged derivatives -----------------------------------------------------------------------


def transpose_values(attempt: Attempt) -> Iterator[Prediction]:
    """Predict the transposed gradient with respect to each square matrix."""
    for name in attempt.question.wrt:
        shape = attempt.question.shapes[name]
        if len(shape) == 2 and shape[0] == shape[1]:
            values = {
                str(Element(name, (i, j))): attempt.points.gradient[str(Element(name, (j, i)))]
                for i in range(shape[0])
                for j in range(shape[0])
            }
            yield Prediction(f"{name} is transposed", values)


def permute_values(attempt: Attempt) -> Iterator[Prediction]:
    """Predict the correct derivatives, assigned to the wrong variables."""
    exchange = _find_exchange(attempt)
    if exchange.is_permutation:
        yield Prediction("these are the correct values in another order", exchange.values())


def swap_parameters(attempt: Attempt) -> Iterator[Prediction]:
    """Predict the gradients if the derivatives with respect to two variables are swapped."""
    exchange = _find_exchange(attempt)
    if exchange.is_permutation:
        return
    arrays = exchange.swapped_arrays
    if arrays:
        yield Prediction(f"{join_names(arrays)} are swapped", exchange.values())
        return
    for name, other in exchange.origins.items():
        if exchange.origins.get(other) == name:
            yield Prediction(f"{name} and {other} are swapped", exchange.values(name, other))


def copy_other_derivatives(attempt: Attempt) -> Iterator[Prediction]:
    """Predict, for a wrong derivative, the correct one with respect to another variable."""
    exchange = _find_exchange(attempt)
    if exchange.is_permutation or exchange.swapped_arrays:
        return
    for name, other in exchange.origins.items():
        is_swapped = exchange.origins.get(other) == name
        if (
            not is_swapped and np.ptp(attempt.points.gradient[other]) != 0
        ):  # constants match by chance
            message = f"this is the derivative with respect to {other}"
            yield Prediction(message, exchange.values(name))


@dataclass(frozen=True, eq=False)
class _Exchange:
    """Wrong derivatives that would be correct with respect to other variables.

    Attributes:
        correct: the correct derivatives.
        origins: for a name with a wrong derivative, the name whose correct derivative it is.
        names: all names with a wrong derivative.
    """

    correct: Gradient
    origins: dict[str, str]
    names: frozenset[str]

    def values(self, *names: str) -> dict[str, Array]:
        """Return the exchanged derivatives for the given names, or for all names by default."""
        return {
            name: self.correct[origin]
            for name, origin in self.origins.items()
            if not names or name in names
        }

    @property
    def is_permutation(self) -> bool:
        """True if at least three derivatives are permuted, not only swapped in pairs."""
        origins = self.origins
        is_cycle = len(origins) > 2 and {*origins} == {*origins.values()}
        return is_cycle and any(origins[origins[name]] != name for name in origins)

    @property
    def swapped_arrays(self) -> list[str]:
        """The names of two arrays with completely swapped derivatives; empty if there are none."""
        origins = self.origins
        are_pairs = all(origins.get(origins[name]) == name for name in origins)
        if origins.keys() != self.names or not are_pairs or len(origins) < 3:
            return []
        arrays = [*dict.fromkeys(parse_element(name)[0] for name in origins)]
        is_crossed = all(
            parse_element(name)[0] != parse_element(other)[0] for name, other in origins.items()
        )
        return arrays if len(arrays) == 2 and is_crossed else []


@lru_cache(maxsize=2)  # three rules ask for the same attempt
def _find_exchange(attempt: Attempt) -> _Exchange:
    """Find wrong derivatives that would be correct with respect to other variables."""
    question, points, answers = attempt.question, attempt.points, attempt.answers
    if len(question.sources) > _MAX_EXCHANGED:
        return _Exchange(points.gradient, {}, frozenset())
    first_smooth = int(np.argmax(points.smooth))
    names = [name for name in question.sources if name in attempt.wrong]
    options = {
        name: [
            other
            for other in question.sources
            if other != name
            and np.isclose(
                answers[name][first_smooth], points.gradient[other][first_smooth], 1e-6, 0.0
            )
            and is_predicted(points, answers[name], points.gradient[other], points.noise[other])
        ]
        for name in names
    }
    origins: dict[str, str] = {}
    for name in sorted(names, key=lambda name: len(options[name])):
        unused = (other for other in options[name] if other not in origins.values())
        if options[name]:
            origins[name] = next(unused, options[name][0])
    return _Exchange(points.gradient, origins, frozenset(names))
