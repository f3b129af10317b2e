"""Gauss-Newton and Levenberg-Marquardt: two loops of the same few lines.

The sum of squares of f(p + d) is nearly that of ``r + J d``; whoever minimises the latter gets
``J'J d = -J'r``. Both loops try that step, damped or cut short, until the sum of squares falls.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cgprimer.support.number_format import format_number
from cgprimer.training.fitting.damping import Damping
from cgprimer.training.fitting.residuals import Local, Residuals

Array = Any
OFFSET = 1e-9  # relative offset of a minimum; Bates and Watts are content with 1e-3
_ROUNDING = 1e-6  # relative offset that is as good where no step makes the sum of squares smaller
_LEVEL = 1e-12  # share of the sum of squares within which two are the same but for rounding
_FADED = 1e-20  # what is smaller than this share of something has no effect beside it
_HALVINGS = 60
_LAST = 6  # rejections in a row, where all that is left to gain may be rounding


@dataclass(frozen=True)
class Trial:
    """A point that was tried."""

    step: int  # 0 is the start
    values: Array  # all numbers of the parameters
    residual_sum_of_squares: float  # nan or infinite where the graph has no value
    damping: float | None  # lambda of the step; None of the start, and of methods without
    accepted: bool  # the descent went on from there


@dataclass
class Descent:
    """A way down: where it is, what it has tried, and why it ended (an empty text: it goes on)."""

    here: Local
    trials: list[Trial]
    limit: int
    on_trial: Callable[[Trial], None] | None = None
    reason: str = ""
    settled: bool = False

    def went(self, there: Local, damping: float | None) -> bool:
        """Take note of a trial; whether the sum of squares has fallen, so that it goes on there."""
        accepted = falls(self.here, there)
        trial = Trial(len(self.trials), there.values, there.sum, damping, accepted)
        self.trials.append(trial)
        if self.on_trial:
            self.on_trial(trial)
        if accepted:
            self.here = there
        return accepted

    def ends(self) -> bool:
        """Whether it is at an end: a minimum, or the last step that is allowed."""
        if reason := minimum(self.here):
            self.reason, self.settled = reason, True
        elif len(self.trials) > self.limit:
            self.reason = (
                f"{self.limit:,} steps were not enough: the relative offset is still"
                f" {format_number(self.here.offset, 2)}"
            )
        return bool(self.reason)

    def stuck(self) -> None:
        """No step makes the sum of squares smaller: rounding at a minimum, or no way on."""
        self.settled = self.here.offset <= _ROUNDING
        offset = format_number(self.here.offset, 2)
        if self.settled:
            self.reason = f"the sum of squares falls no more but for rounding, {_told(self.here)}"
        else:
            self.reason = (
                "no step makes the sum of squares smaller, and yet the relative offset is"
                f" {offset}: the residuals are flat or not finite around this point"
            )


def falls(here: Local, there: Local) -> bool:
    """Whether the sum of squares fell; equal ones but for rounding: whether the gradient did."""
    if not there.finite or there.sum > here.sum * (1 + _LEVEL):
        return False
    if here.offset < _ROUNDING and there.sum > here.sum * (1 - _LEVEL):
        return there.offset < here.offset
    return there.sum < here.sum


def minimum(here: Local) -> str:
    """Why a point is a minimum; an empty text where it is none."""
    if not here.size:
        return "every parameter is held at a bound"
    if not here.sum:
        return "all residuals are zero"
    if here.offset <= OFFSET:
        return f"a minimum: {_told(here)}"
    if here.reach <= here.rounding:
        return "a minimum: a further step moves the outputs by less than their rounding"
    return ""


def _told(here: Local) -> str:
    return f"a further step is {format_number(here.offset, 2)} of the standard errors long"


def gauss_newton(problem: Residuals, way: Descent) -> None:
    """Solve ``J'J d = -J'r``, go there; halve d until the sum of squares falls.

    Source: Hartley 1961, "The modified Gauss-Newton method", Technometrics 3.
    """
    while not way.ends():
        here = way.here
        if here.rank < here.size:
            way.reason = (
                f"J'J is singular (rank {here.rank} of {here.size}), so that J'J d = -J'r has no"
                " single solution: damping is needed (--algorithm levenberg-marquardt)"
            )
            return
        step = here.step(0.0, np.zeros(here.size))
        for halvings in range(_HALVINGS):
            there = Local(problem, problem.clipped(here.values + step / 2**halvings))
            if way.went(there, 0.0) or len(way.trials) > way.limit or _rounded(here):
                break
        if way.here is here and len(way.trials) <= way.limit:
            way.stuck()
            return


def levenberg_marquardt(
    problem: Residuals, way: Descent, rule: Damping, damping: float | None = None
) -> None:
    """Solve ``(J'J + lambda D) d = -J'r``; where the sum of squares falls go there, else damp more.

    Source: Madsen, Nielsen and Tingleff 2004, "Methods for non-linear least squares problems".
    """
    lengths = np.zeros(len(problem.free))
    scaling, rejected = lengths, 0
    if way.here.size:
        damping = rule.first(way.here.norms**2) if damping is None else damping
    while not way.ends():
        here = way.here
        lengths[here.movable] = here.norms
        scaling = rule.scaling(lengths, scaling)
        least, most = _dampings(lengths, scaling)
        damping = max(damping or 0.0, least)
        step = here.step(damping, scaling[here.movable])
        there = Local(problem, problem.clipped(here.values + step))
        if way.went(there, damping):
            promised = here.sum - here.predicted(step)
            gain = (here.sum - there.sum) / promised if promised > 0 else 1.0
            damping, rejected = rule.following(damping, gain, 0), 0
        elif (
            damping > most
            or np.array_equal(there.values, here.values)
            or (rejected >= _LAST and _rounded(here))
        ):
            way.stuck()
            return
        else:
            rejected += 1
            damping = rule.following(damping, None, rejected)


def _dampings(lengths: Array, scaling: Array) -> tuple[float, float]:
    """Damping of no effect beside any entry of J'J's diagonal, and that beside which none counts.

    Of a J of zeros it is nothing, and nothing.
    """
    seen = lengths > 0
    diagonal = (lengths[seen] / scaling[seen]) ** 2
    if not diagonal.size:
        return 0.0, 0.0
    return _FADED * float(diagonal.min()), float(diagonal.max()) / _FADED


def _rounded(here: Local) -> bool:
    """Whether all that a step could still take away is less than the rounding of the sum."""
    return here.offset <= _ROUNDING or here.reach**2 < math.ulp(here.sum)
