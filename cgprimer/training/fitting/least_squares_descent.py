"""Gauss-Newton and Levenberg-Marquardt, as two loops over linearized problems.

The sum of squares of f(p + d) is approximately that of ``r + J d``, whose minimum satisfies
``J'J d = -J'r``. Both algorithms try this step, halved or damped until the sum of squares
decreases.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cgprimer.support.number_format import format_number
from cgprimer.training.fitting.damping import Damping
from cgprimer.training.fitting.residuals import Linearization, Residuals

Array = Any
OFFSET = 1e-9  # relative offset at a minimum; Bates and Watts accept 1e-3
_ROUNDING_OFFSET = 1e-6  # relative offset at a minimum if no step decreases the sum of squares
_EQUAL_SUMS = 1e-12  # relative difference of sums of squares that differ by rounding only
_NEGLIGIBLE = 1e-20  # a term smaller than this fraction of another has no effect
_MAX_HALVINGS = 60
_MAX_REJECTIONS = 6  # in succession, if the remaining decrease may be rounding


@dataclass(frozen=True)
class Trial:
    """Parameter values that an algorithm has tried, with their sum of squares."""

    step: int  # 0 is the start
    values: Array  # all elements of the parameters
    residual_sum_of_squares: float  # nan or infinite where the graph is not finite
    damping: float | None  # lambda of the step; None for the start and for undamped algorithms
    accepted: bool  # the descent continued from this point


@dataclass
class Descent:
    """The state of an iterative fit: the current point, all trials, and why it ended.

    Attributes:
        current: the linearization at the current point.
        trials: all trials, the start first.
        limit: the maximum number of steps.
        on_trial: called after each trial.
        reason: why the descent ended; an empty string until then.
        converged: whether the current point is a minimum.
    """

    current: Linearization
    trials: list[Trial]
    limit: int
    on_trial: Callable[[Trial], None] | None = None
    reason: str = ""
    converged: bool = False

    def record_trial(self, candidate: Linearization, damping: float | None) -> bool:
        """Record a trial; if it is an improvement, move to it and return True."""
        accepted = is_improvement(self.current, candidate)
        values, sum_of_squares = candidate.values, candidate.sum_of_squares
        trial = Trial(len(self.trials), values, sum_of_squares, damping, accepted)
        self.trials.append(trial)
        if accepted:
            self.current = candidate
        if self.on_trial:  # may raise KeyboardInterrupt
            self.on_trial(trial)
        return accepted

    def should_stop(self) -> bool:
        """Return whether the fit has reached a minimum or its maximum number of steps."""
        if reason := explain_minimum(self.current):
            self.reason, self.converged = reason, True
        elif len(self.trials) > self.limit:
            self.reason = (
                f"no minimum within {self.limit:,} steps: the relative offset is still"
                f" {format_number(self.current.relative_offset, 2)}"
            )
        return bool(self.reason)

    def stop_without_decrease(self) -> None:
        """End the fit because no step decreases the sum of squares, and record the reason."""
        self.converged = self.current.relative_offset <= _ROUNDING_OFFSET
        if self.converged:
            self.reason = (
                "the sum of squares decreases only by rounding errors:"
                f" {_describe_offset(self.current)}"
            )
        else:
            self.reason = (
                "no step decreases the sum of squares, although the relative offset is"
                f" {format_number(self.current.relative_offset, 2)}: the residuals are flat or not"
                " finite around this point"
            )


def is_improvement(current: Linearization, candidate: Linearization) -> bool:
    """Return whether a candidate lowers the sum of squares or, for equal sums, the gradient."""
    before, after = current.sum_of_squares, candidate.sum_of_squares
    if not candidate.is_finite or after > before * (1 + _EQUAL_SUMS):
        return False
    if current.relative_offset < _ROUNDING_OFFSET and after > before * (1 - _EQUAL_SUMS):
        return candidate.relative_offset < current.relative_offset
    return after < before


def explain_minimum(point: Linearization) -> str:
    """Explain why a point is a minimum; return an empty string if it is not a minimum."""
    if not point.n_active:
        return "every parameter is held at a bound"
    if not point.sum_of_squares:
        return "all residuals are zero"
    if point.relative_offset <= OFFSET:
        return f"a minimum: {_describe_offset(point)}"
    if point.reducible_norm <= point.rounding_norm:
        return "a minimum: the next step changes the outputs by less than their rounding errors"
    return ""


def _describe_offset(point: Linearization) -> str:
    """Describe the length of the next step in units of the standard errors."""
    offset = format_number(point.relative_offset, 2)
    return f"the next step is {offset} standard errors long"


def gauss_newton(problem: Residuals, descent: Descent) -> None:
    """Minimize by Gauss-Newton steps ``J'J d = -J'r``, halved until the sum of squares decreases.

    Source: Hartley 1961, "The modified Gauss-Newton method", Technometrics 3.
    """
    while not descent.should_stop():
        current = descent.current
        if current.rank < current.n_active:
            descent.reason = (
                f"J'J is singular (rank {current.rank} of {current.n_active}), so J'J d = -J'r has"
                " no unique solution: use damping (--algorithm levenberg-marquardt)"
            )
            return
        step = current.compute_step(0.0, np.zeros(current.n_active))
        for halvings in range(_MAX_HALVINGS):
            values = problem.clip(current.values + step / 2**halvings)
            accepted = descent.record_trial(Linearization(problem, values), 0.0)
            if accepted or len(descent.trials) > descent.limit or _is_at_rounding_level(current):
                break
        if descent.current is current and len(descent.trials) <= descent.limit:
            descent.stop_without_decrease()
            return


def levenberg_marquardt(
    problem: Residuals, descent: Descent, rule: Damping, damping: float | None = None
) -> None:
    """Minimize by steps ``(J'J + lambda D) d = -J'r``; lambda grows until the sum decreases.

    Args:
        problem: the residuals.
        descent: the state, which is updated.
        rule: the damping strategy.
        damping: the initial lambda; by default that of the strategy.

    Source: Madsen, Nielsen and Tingleff 2004, "Methods for non-linear least squares problems".
    """
    norms = np.zeros(len(problem.free))
    scaling, rejections = norms, 0
    if descent.current.n_active:
        diagonal = descent.current.column_norms**2
        damping = rule.initial(diagonal) if damping is None else damping
    while not descent.should_stop():
        current = descent.current
        norms[current.active] = current.column_norms
        scaling = rule.scaling(norms, scaling)
        minimum, maximum = _compute_damping_limits(norms, scaling)
        damping = max(damping or 0.0, minimum)
        step = current.compute_step(damping, scaling[current.active])
        candidate = Linearization(problem, problem.clip(current.values + step))
        if descent.record_trial(candidate, damping):
            predicted = current.sum_of_squares - current.predict_sum_of_squares(step)
            decrease = current.sum_of_squares - candidate.sum_of_squares
            gain = decrease / predicted if predicted > 0 else 1.0
            damping, rejections = rule.update(damping, gain, 0), 0
        elif (
            damping > maximum
            or np.array_equal(candidate.values, current.values)
            or (rejections >= _MAX_REJECTIONS and _is_at_rounding_level(current))
        ):
            descent.stop_without_decrease()
            return
        else:
            rejections += 1
            damping = rule.update(damping, None, rejections)


def _compute_damping_limits(norms: Array, scaling: Array) -> tuple[float, float]:
    """Return the range of lambda in which both damping and J'J affect the step."""
    positive = norms > 0
    diagonal = (norms[positive] / scaling[positive]) ** 2
    if not diagonal.size:
        return 0.0, 0.0
    return _NEGLIGIBLE * float(diagonal.min()), float(diagonal.max()) / _NEGLIGIBLE


def _is_at_rounding_level(point: Linearization) -> bool:
    """Return whether rounding errors exceed the decrease that further steps can achieve."""
    reducible = point.reducible_norm**2
    return point.relative_offset <= _ROUNDING_OFFSET or reducible < math.ulp(point.sum_of_squares)
