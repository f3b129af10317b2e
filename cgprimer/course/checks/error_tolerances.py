"""Tolerances of gradient checks: for central differences, single precision and rounding errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from cgprimer.course.checks.gradient_questions import VALUE
from cgprimer.course.checks.question_points import Points

Array = Any
GOOD, FINE, SUSPICIOUS = 1e-7, 1e-4, 1e-2  # relative errors: the bands of gradient checks
# Terms of the tolerance for central differences; steps from 1e-6 to 1e-4 stay within them.
_OF_VALUE = 1e-9  # times the value
_OF_ROUNDING = 1e4  # times the bound of the value's rounding error
_OF_NORM = 2e-7  # times the norm of the gradient
_MAX_OF_DERIVATIVE = 1e-3  # upper bound, times the median size of the derivative
_MAX_FOR_ZERO = 1e-6  # upper bound for a derivative that is 0 at every point
_FLOAT32 = 2.0**29  # unit roundoff of float32, divided by the unit roundoff of float64


def compute_tolerances(points: Points) -> dict[str, Array]:
    """Compute absolute error tolerances for the value and for each derivative at all points.

    The tolerance covers the rounding errors of the computation, and the errors of central
    differences with a good step. Their rounding is large compared with a small derivative next to a
    large value, and their truncation is large compared with a small derivative in a large gradient.
    The tolerance for them is far smaller than the derivative's median size, so that 0 is never
    correct for a derivative that is not 0.
    """
    value, rounding = np.abs(points.value), points.noise[VALUE]
    with np.errstate(all="ignore"):
        norm = np.sqrt(sum(np.square(v) for v in points.gradient.values()))
    quotient = _OF_VALUE * value + _OF_ROUNDING * rounding + _OF_NORM * norm
    tolerances = {VALUE: rounding + _OF_VALUE * value}
    for name in points.gradient:
        bound = _MAX_OF_DERIVATIVE * compute_median_size(points, name) or _MAX_FOR_ZERO
        tolerances[name] = points.noise[name] + np.minimum(quotient, bound)
    return tolerances


def compute_median_size(points: Points, name: str) -> float:
    """Return the median absolute value of a derivative over the points at which it is nonzero."""
    values = points.value if name == VALUE else points.gradient[name]
    sizes = np.abs(values[points.smooth])
    return float(np.median(sizes[sizes > 0])) if sizes.any() else 0.0


def is_float32(points: Points, answers: Array, name: str) -> bool:
    """Return whether answers are correct derivatives that were computed in single precision.

    All of them are representable in float32, and their errors are at most the bound of the rounding
    errors for double precision, scaled to float32. This error may be at most a hundredth of the
    derivative or of its median size, or 1e-5 of the largest median size: single precision leaves
    no correct digit in the derivative of a saturated unit.
    """
    expected = points.value if name == VALUE else points.gradient[name]
    with np.errstate(all="ignore"):
        rounded = answers.astype(np.float32)[points.smooth]
        is_representable = np.array_equal(rounded, answers[points.smooth])
        largest = max(
            (compute_median_size(points, other) for other in points.gradient), default=0.0
        )
        size = max(compute_median_size(points, name), _MAX_OF_DERIVATIVE * largest)
        bound = SUSPICIOUS * np.maximum(size, np.abs(expected))
        tolerance = np.minimum(_FLOAT32 * points.noise[name], bound)
        is_near = np.abs(answers - expected) <= tolerance
    return is_representable and bool(is_near[points.smooth].all())
