"""Stage 7: an optimizer. Mistakes are update rules of the same language as in training."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import isfinite
from typing import Any

import numpy as np

from cgprimer.course.checks.check_results import Part
from cgprimer.course.checks.optimizer_variants import RuleSimulation, Variant, simulate
from cgprimer.course.checks.stages.stage import Case, Stage, build_task, is_close
from cgprimer.course.checks.verdicts import accept, reject
from cgprimer.tapes import differentiate, values_of
from cgprimer.tapes import tape as tape_of
from cgprimer.training.rule_tables import OPTIMIZER_TABLE, SCHEDULES

_DESCENT = OPTIMIZER_TABLE["sgd"].formula
WRONG_DIRECTION = "the parameters move in the direction of the gradient; the loss grows"
_BOWL = Case("y = (p - 3)^2 + p*q + q^2", {"p": 0.5, "q": -1.0})
_SLOPE = Case("y = p", {"p": 1.0})
_RATE, _UPDATES, _DECAY = 0.1, 5, 0.9
#: Update rule and message of each mistake.
_WRONG_RULES = {
    "sign": ("p = p + rate*g", WRONG_DIRECTION),
    "rate ignored": ("p = p - g", "the update is not multiplied by the learning rate"),
    "rate applied twice": (
        "p = p - rate*rate*g", "the update is multiplied by the learning rate twice",
    ),
    "gradients add up": ("s = s + g; p = p - rate*s", "the update contains earlier gradients"),
    "gradient instead of a step": (
        "p = rate*g", "data is replaced by the update instead of reduced by it",
    ),
    "parameters never moved": (
        "p = p", "data is unchanged: change it in the given values, not in copies",
    ),
}  # fmt: skip
#: Learning rate of update t, counted from 0, and message of each mistake.
_WRONG_RATES = {
    "sign": ("-rate*gamma^t", WRONG_DIRECTION),
    "decay one step early": (
        "rate*gamma^(t + 1)", "the first update must use the full learning rate",
    ),
    "decay ignored": ("rate", "the learning rate does not decay"),
    "decay multiplied by the step": (
        "rate*gamma*t", "decay must be raised to the power of the update number",
    ),
    "decay only once": (
        "rate*where(less(0, t), gamma, 1)", "the learning rate must decay at every update",
    ),
}  # fmt: skip


def descend(
    case: Case, rate: float, updates: int, rule: str = "", fixed: Collection[str] = ()
) -> list[dict[str, float]]:
    """Return the point after each update of gradient descent.

    Args:
        case: the function and the initial point.
        rate: the learning rate.
        updates: the number of updates.
        rule: statements of the update rule; gradient descent by default.
        fixed: names that are not updated.

    >>> descend(Case("y = p^2", {"p": 1}), 0.25, 2)
    [{'p': 0.5}, {'p': 0.25}]
    """
    program = differentiate(tape_of(case.graph), wrt=case.names, method="reverse")
    outputs = {read.wrt: read.output for read in program.passes[0].reads}
    learned = [name for name in case.names if name not in fixed]
    simulation = RuleSimulation(rule or _DESCENT, {"rate": rate}, len(learned))
    point = {name: float(value) for name, value in case.at.items()}
    points = []
    for number in range(1, updates + 1):
        values = values_of(program.tape, point | dict(program.passes[0].seeds))
        gradient = np.array([values[program.tape.outputs[outputs[n]]] for n in learned])
        before = np.array([point[name] for name in learned])
        after = simulation.update(before, gradient, float(number))
        point = point | dict(zip(learned, after.tolist(), strict=True))
        points.append(point)
    return points


def _simulate_updates(
    case: Case, gradients: Sequence[Sequence[float]], rule: str, fixed: str = ""
) -> list[list[float]]:
    """Apply an update rule to a submission's gradients; return the parameters after each update.

    Earlier stages judge whether these gradients are correct.
    """
    start = np.array([float(case.at[name]) for name in case.names])
    hyper = {"rate": _RATE, "gamma": _DECAY}
    rows = simulate(Variant(rule), hyper, start, np.array(gradients))
    for index, name in enumerate(case.names):
        if name == fixed:
            rows[:, index] = start[index]
    return rows.tolist()  # type: ignore[no-any-return]


def _check_usable(answer: Any) -> Part | None:
    """Return a verdict if gradients or parameters cannot be judged, else None."""
    if not _are_finite(answer["grads"][0]):
        return reject("", "backward leaves a gradient that is not a finite number")
    if any(isinstance(value, str) for row in answer["rows"] for value in row):
        message = "data is not a number after an update: compute with data, not with values"
        return reject("data is not a number", message)
    if not all(map(_are_finite, (*answer["rows"], *answer["grads"]))):
        return reject("", "data or grad is not finite after an update")
    if not any(map(any, answer["grads"])):
        return reject("", "backward leaves no gradient, so no update is possible")
    return None


def _are_finite(values: Sequence[Any]) -> bool:
    """Return whether all values are finite floats."""
    return all(isinstance(value, float) and isfinite(value) for value in values)


def _judge_updates(case: Case, answer: Any) -> Part:
    """Return the verdict on updates with a constant learning rate."""

    def matches(rule: str = _DESCENT, fixed: str = "") -> bool:
        """Return whether an update rule predicts the parameters of the submission."""
        return is_close(answer["rows"], _simulate_updates(case, answer["grads"], rule, fixed))

    unusable = _check_usable(answer)
    if unusable:
        return unusable
    if matches():
        return accept()
    for mistake, (rule, message) in _WRONG_RULES.items():
        if matches(rule):
            return reject(mistake, message)
    if any(matches(fixed=name) for name in case.names):
        return reject("parameter left out", "one of the parameters is never updated")
    return reject("", "the parameters differ from those of gradient descent")


def _judge_decaying_rate(case: Case, answer: Any) -> Part:
    """Return the verdict on updates with a learning rate that decays exponentially."""

    def matches(formula: str) -> bool:
        """Return whether a learning rate formula predicts the parameters of the submission."""
        rule = f"k = t; t = k - 1; r = {formula}; t = k; p = p - r*g"
        return is_close(answer["rows"], _simulate_updates(case, answer["grads"], rule))

    unusable = _check_usable(answer)
    if unusable:
        return unusable
    if matches(SCHEDULES["exponential"].formula):
        return accept()
    for mistake, (formula, message) in _WRONG_RATES.items():
        if matches(formula):
            return reject(mistake, message)
    return reject("", "the learning rates differ from rate*decay^t for t = 0, 1, 2, ...")


OPTIMIZER = Stage(7, "optimizer", ("Value", "SGD"), (
    build_task("steps", 4, [_BOWL], _judge_updates, "run_optimizer", _RATE, _UPDATES),
    build_task(
        "decaying rate", 2, [_SLOPE], _judge_decaying_rate, "run_optimizer", _RATE, _UPDATES, _DECAY
    ),
), (2, 3, 4, 5, 7))  # fmt: skip
