"""SciPy's minimisers behind the same call: our residuals and our J, SciPy's way down.

What they say of their end is not taken for granted: a point counts as a minimum by the same
relative offset as one that our own loops have found.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cgprimer.fitting.descent import Descent
from cgprimer.fitting.residuals import Local, Residuals
from cgprimer.number_format import number

Array = Any
# By our names: trust regions whose shape keeps off the bounds (Branch, Coleman and Li 1999), dogleg
# steps in rectangles (Voglis and Lagaris 2004), MINPACK's lmder (More 1978), and L-BFGS-B (Byrd,
# Lu, Nocedal and Zhu 1995), which knows the gradient alone.
METHODS = {"trust-region": "trf", "dogleg": "dogbox", "minpack": "lm", "l-bfgs": "L-BFGS-B"}
_FINEST = 4e-16  # tolerances: SciPy shall go on as long as it gets on
_NEAR, _ROUNDS = 1e-4, 4  # of a bound: it is tried; and how often
_HUGE = 1e300  # in the place of a sum that is not finite


def by_scipy(problem: Residuals, way: Descent, algorithm: str) -> None:
    """Go down from where the way is, by an algorithm of SciPy's.

    Some only come near a bound. Parameters that belong there are put there, and the others go on.
    """
    for _ in range(_ROUNDS):
        said = _go_down(problem, way, METHODS[algorithm])
        there = Local(problem, _at_bounds(problem, way.here.values))
        stays = not there.finite or there.size == way.here.size or there.sum > way.here.sum
        if way.ends() or stays:
            break
        way.here = there
    if not way.ends():
        way.stuck()
        if not way.settled:
            offset = number(way.here.offset, 2)
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

    def sum_and_gradient(moved: Array) -> tuple[float, Array]:
        there = local(moved)
        if not there.finite:
            return _HUGE, np.zeros(len(free))
        return there.sum, 2 * there.jacobian[:, columns].T @ there.residuals

    low, high = problem.low[free], problem.high[free]
    if name == "L-BFGS-B":
        limits: Any = {"maxiter": way.limit, "maxfun": way.limit, "ftol": 0.0, "gtol": 0.0}
        pairs = list(zip(low, high, strict=True))
        ended = minimize(
            sum_and_gradient, begin[free], jac=True, method=name, bounds=pairs, options=limits
        )
    else:
        finest: Any = dict.fromkeys(("ftol", "xtol", "gtol"), _FINEST)
        if name != "lm":
            finest["bounds"] = (low, high)
        ended = least_squares(
            lambda moved: local(moved).residuals.copy(),
            begin[free],
            lambda moved: local(moved).jacobian[:, columns],
            method=name,
            x_scale="jac",
            max_nfev=way.limit,
            **finest,
        )
    return str(ended.message)


def _at_bounds(problem: Residuals, values: Array) -> Array:
    """The values, those that are near to a bound at it."""
    for bound in (problem.low, problem.high):
        near = np.isfinite(bound) & (np.abs(values - bound) <= _NEAR * (1 + np.abs(values)))
        values = np.where(near, bound, values)
    return values
