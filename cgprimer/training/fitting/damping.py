"""Damping strategies of Levenberg-Marquardt, each a row of three small functions.

A step solves ``(J'J + lambda D) d = -J'r``. With a large lambda the step is short and follows the
negative gradient; with a small lambda it is the Gauss-Newton step. A strategy determines D, the
initial lambda, and the update of lambda from the gain: the decrease of the sum of squares divided
by the decrease that the linear model predicted, or None for a rejected step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Array = Any


class Damping(NamedTuple):
    """A Levenberg-Marquardt damping strategy: how lambda is initialized, scaled and updated."""

    initial: Callable[[Array], float]  # diagonal of J'J -> initial lambda
    scaling: Callable[[Array, Array], Array]  # column norms of J, previous scaling -> sqrt(D)
    update: Callable[[float, float | None, int], float]  # lambda, gain, rejections -> next lambda


def update_by_ten(damping: float, gain: float | None, rejections: int) -> float:
    """Return lambda divided by 10 after an accepted step, or multiplied by 10 after a rejection."""
    return damping * 10 if gain is None else damping / 10


def update_by_gain(damping: float, gain: float | None, rejections: int) -> float:
    """Return lambda scaled according to the gain, or by 2, 4, 8, ... after rejected steps."""
    if gain is None:
        return float(damping * 2.0**rejections)
    return damping * max(1 / 3, 1 - (2 * gain - 1) ** 3)


def scale_by_identity(norms: Array, previous: Array) -> Array:
    """Return sqrt(D) for D = I; damping then depends on the units of the parameters."""
    return np.ones_like(norms)


def scale_by_maximum_norm(norms: Array, previous: Array) -> Array:
    """Return sqrt(D) as the maximum column norms of J so far; D has the units of J'J."""
    scaling: Array = np.maximum(np.where(norms > 0, norms, 1e-300), previous)
    return scaling


DAMPINGS = {
    # Levenberg 1944, Quarterly of Applied Mathematics 2, as in the lecture.
    "tens": Damping(lambda diagonal: 1.0, scale_by_identity, update_by_ten),
    # Marquardt 1963, SIAM Journal 11; maximum diagonal: More 1978, "Implementation and theory".
    "marquardt": Damping(lambda diagonal: 1e-2, scale_by_maximum_norm, update_by_ten),
    # Nielsen 1999, "Damping parameter in Marquardt's method", IMM-REP-1999-05.
    "nielsen": Damping(
        lambda diagonal: 1e-3 * float(diagonal.max()), scale_by_identity, update_by_gain
    ),
}
