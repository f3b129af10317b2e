"""How Levenberg-Marquardt chooses its damping: a pair of small functions each.

A step solves ``(J'J + lambda D) d = -J'r``. With a large lambda it is short and goes down the
gradient, with a small one it is the Gauss-Newton step. Each strategy says what D and the first
lambda are, and the next lambda, from the last one and from the gain: how far the sum of squares
fell, as a share of what the linear model had promised; None if it did not fall.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Array = Any


class Damping(NamedTuple):
    """A strategy."""

    first: Callable[[Array], float]  # of J'J's diagonal: the first lambda
    scaling: Callable[[Array, Array], Array]  # of J's column lengths, and so far: D's square root
    following: Callable[[float, float | None, int], float]  # of lambda, gain, rejections in a row


def by_ten(damping: float, gain: float | None, rejected: int) -> float:
    """A tenth after a step that was accepted, ten times as much after one that was not."""
    return damping * 10 if gain is None else damping / 10


def by_gain(damping: float, gain: float | None, rejected: int) -> float:
    """Smoothly less, the better the model was; after rejections times 2, 4, 8, ..."""
    if gain is None:
        return float(damping * 2.0**rejected)
    return damping * max(1 / 3, 1 - (2 * gain - 1) ** 3)


def identity(lengths: Array, before: Array) -> Array:
    """D is the identity: the damping knows nothing of the parameters' units."""
    return np.ones_like(lengths)


def largest_so_far(lengths: Array, before: Array) -> Array:
    """D is J'J's diagonal, as large as it ever was: each parameter is damped in its own unit."""
    found: Array = np.maximum(np.where(lengths > 0, lengths, 1e-300), before)
    return found


DAMPINGS = {
    # Levenberg 1944, Quarterly of Applied Mathematics 2, as the lecture has it.
    "tens": Damping(lambda diagonal: 1.0, identity, by_ten),
    # Marquardt 1963, SIAM Journal 11; the largest diagonal: More 1978, "Implementation and theory".
    "marquardt": Damping(lambda diagonal: 1e-2, largest_so_far, by_ten),
    # Nielsen 1999, "Damping parameter in Marquardt's method", IMM-REP-1999-05.
    "nielsen": Damping(lambda diagonal: 1e-3 * float(diagonal.max()), identity, by_gain),
}
