"""SciPy's minimisers behind the same call: our residuals and our J, SciPy's way down.

What they say of their end is not taken for granted: a point counts as a minimum by the same
relative offset as one that our own loops have found.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cgprimer.support.number_format import format_number
from cgprimer.training.fitting.least_squares_descent import Descent, gauss_newton
from cgprimer.training.fitting.residuals import Local, Residuals

Array = Any
# By our names: trust regions whose shape keeps off the bounds (Branch, Coleman and Li 1999), dogleg
# steps in rectangles (Voglis and Lagaris 2004), MINPACK's lmder (More 1978), and L-BFGS-B (Byrd,
# Lu, Nocedal and Zhu 1995), which knows the gradient alone.
METHODS = {"trust-region": "trf", "dogleg": "dogbox", "minpack": "lm", "l-bfgs": "L-BFGS-B"}
_FINEST = 4e-16  # tolerances: SciPy shall go on as long as it gets on
_NEAR, _ROUNDS = 1e-4, 4  # of a bound: it is tried; and how often
_BEGUN = 1e-3  # relative offset that is nearly a minimum
_HUGE = 1e300  # in the place of a sum that is not finite


def by_scipy(problem: Residuals, way: Descent, algorithm: str) -> None:
    """Go down from where the way is, by an algorithm of SciPy's.

    Some only come near a bound. Parameters that belong there are put there, and the others go on.
    """
    for _ in range(_ROUNDS):
        moved = way.here.movable
        said = _go_down(problem, way, METHODS[algorithm])
        there = Local(problem, _at_bounds(problem, way.here.values))
        if there.finite and there.sum <= way.here.sum:
            way.here = there
        if way.ends() or np.array_equal(way.here.movable, moved):
            break
    here = way.here
    if here.offset < _BEGUN and here.rank == here.size:
        gauss_newton(problem, way)  # the last digits, which sums of squares do not show
    if not (way.settled or way.ends()):
        offset = format_number(here.offset, 2)
        way.reason = f"SciPy's {algorithm} ended at a relative offset of {offset}: {said}"


def _go_down(problem: Residuals, way: Descent, name: str) -> str:
    """One call of SciPy's, for what may move; what it says of its end."""
    from scipy.optimize import least_squares, minimize

    begin, free, columns = way.here.values, way.here.places, way.here.movable
    seen: dict[bytes, Local] = {begin[free].tobytes(): way.here}

    def local(moved: Array) -> Local:
        key = np.asarray(moved, float).tobytes()
        if key not in seen:
            values = begin.copy()
            values[free] = moved
            seen.clear()
            seen[key] = Local(problem, values)
            way.went(seen[key], None)
        return seen[key]

    def residuals(moved: Array) -> Array:
        there = local(moved)  # infinite ones make SciPy try a shorter step
        return there.residuals.copy() if there.finite else np.full(len(there.residuals), np.inf)

    def sum_and_gradient(moved: Array) -> tuple[float, Array]:
        there = local(moved)
        if not there.finite:
            return _HUGE, np.zeros(len(free))
        return there.sum, 2 * there.jacobian[:, columns].T @ there.residuals

    low, high = problem.low[free], problem.high[free]
    finest: Any = dict.fromkeys(("ftol", "xtol", "gtol"), _FINEST)
    if name != "lm":
        finest["bounds"] = (low, high)
    limits: Any = {"maxiter": way.limit, "maxfun": way.limit, "ftol": 0.0, "gtol": 0.0}
    pairs = list(zip(low, high, strict=True))
    try:
        with np.errstate(all="ignore"):
            if name == "L-BFGS-B":
                ended = minimize(
                    sum_and_gradient, begin[free], jac=True, method=name, bounds=pairs,
                    options=limits,
                )  # fmt: skip
            else:
                ended = least_squares(
                    residuals, begin[free], lambda moved: local(moved).jacobian[:, columns],
                    method=name, x_scale="jac", max_nfev=way.limit, **finest,
                )  # fmt: skip
    except (ValueError, np.linalg.LinAlgError) as error:  # numbers that are too large for it
        return str(error)
    return str(ended.message).rstrip(".")


def _at_bounds(problem: Residuals, values: Array) -> Array:
    """The values, those that are near to a bound at it."""
    for bound in (problem.low, problem.high):
        near = np.isfinite(bound) & (np.abs(values - bound) <= _NEAR * (1 + np.abs(values)))
        values = np.where(near, bound, values)
    return values
