"""SciPy's minimizers, run on the residuals and the Jacobian of this package.

SciPy's own convergence messages are not trusted: a point counts as a minimum by the same relative
offset as for Gauss-Newton and Levenberg-Marquardt.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cgprimer.support.number_format import format_number
from cgprimer.training.fitting.least_squares_descent import Descent, gauss_newton
from cgprimer.training.fitting.residuals import Linearization, Residuals

Array = Any
# Trust-region reflective (Branch, Coleman and Li 1999), dogleg steps in rectangles (Voglis and
# Lagaris 2004), MINPACK's lmder (More 1978), and L-BFGS-B (Byrd, Lu, Nocedal and Zhu 1995), which
# uses the gradient only.
METHODS = {"trust-region": "trf", "dogleg": "dogbox", "minpack": "lm", "l-bfgs": "L-BFGS-B"}
_TOLERANCE = 4e-16  # SciPy's tolerances: it runs as long as it makes progress
_BOUND_DISTANCE = 1e-4  # relative distance from which a parameter is moved to its bound
_MAX_RESTARTS = 4
_NEAR_MINIMUM = 1e-3  # relative offset from which Gauss-Newton converges in a few steps
_LARGE_SUM = 1e300  # replaces a sum of squares that is not finite


def minimize_with_scipy(problem: Residuals, descent: Descent, algorithm: str) -> None:
    """Continue a fit with one of SciPy's minimization algorithms.

    Some algorithms only come close to a bound. Parameters near a bound are moved to it, and the
    algorithm continues with the others.
    """
    for _ in range(_MAX_RESTARTS):
        active = descent.current.active
        message = _run_scipy(problem, descent, METHODS[algorithm])
        values = _snap_to_bounds(problem, descent.current.values)
        candidate = Linearization(problem, values)
        is_lower = candidate.sum_of_squares <= descent.current.sum_of_squares
        if candidate.is_finite and is_lower:
            descent.current = candidate
        if descent.should_stop() or np.array_equal(descent.current.active, active):
            break
    current = descent.current
    if current.relative_offset < _NEAR_MINIMUM and current.rank == current.n_active:
        gauss_newton(problem, descent)  # the last digits, which the sum of squares does not show
    if not (descent.converged or descent.should_stop()):
        offset = format_number(current.relative_offset, 2)
        descent.reason = f"SciPy's {algorithm} ended at a relative offset of {offset}: {message}"


def _run_scipy(problem: Residuals, descent: Descent, method: str) -> str:
    """Run a SciPy minimizer on the parameters that are not at a bound; return its message."""
    from scipy.optimize import least_squares, minimize

    start, columns = descent.current.values, descent.current.active
    indices = descent.current.active_indices
    latest: dict[bytes, Linearization] = {start[indices].tobytes(): descent.current}

    def linearize(active: Array) -> Linearization:
        """Linearize the residuals; the latest result is cached, because SciPy asks for it twice."""
        key = np.asarray(active, float).tobytes()
        if key not in latest:
            values = start.copy()
            values[indices] = active
            latest.clear()
            latest[key] = Linearization(problem, values)
            descent.record_trial(latest[key], None)
        return latest[key]

    def compute_residuals(active: Array) -> Array:
        """Compute the residuals; infinite values make SciPy try a shorter step."""
        point = linearize(active)
        if point.is_finite:
            return point.residuals.copy()
        return np.full(len(point.residuals), np.inf)

    def compute_jacobian(active: Array) -> Array:
        """Compute the Jacobian of the residuals with respect to the active parameters."""
        return linearize(active).jacobian[:, columns]

    def compute_sum_and_gradient(active: Array) -> tuple[float, Array]:
        """Compute the sum of squares and its gradient."""
        point = linearize(active)
        if not point.is_finite:
            return _LARGE_SUM, np.zeros(len(indices))
        return point.sum_of_squares, 2 * point.jacobian[:, columns].T @ point.residuals

    low, high = problem.low[indices], problem.high[indices]
    tolerances: Any = dict.fromkeys(("ftol", "xtol", "gtol"), _TOLERANCE)
    if method != "lm":
        tolerances["bounds"] = (low, high)
    limits: Any = {"maxiter": descent.limit, "maxfun": descent.limit, "ftol": 0.0, "gtol": 0.0}
    bounds = list(zip(low, high, strict=True))
    try:
        with np.errstate(all="ignore"):
            if method == "L-BFGS-B":
                result = minimize(
                    compute_sum_and_gradient, start[indices], jac=True, method=method,
                    bounds=bounds, options=limits,
                )  # fmt: skip
            else:
                result = least_squares(
                    compute_residuals, start[indices], compute_jacobian, method=method,
                    x_scale="jac", max_nfev=descent.limit, **tolerances,
                )  # fmt: skip
    except (ValueError, np.linalg.LinAlgError) as error:  # numbers too large for SciPy
        return str(error)
    return str(result.message).rstrip(".")


def _snap_to_bounds(problem: Residuals, values: Array) -> Array:
    """Return the parameter values, with each value near a bound replaced by the bound."""
    for bound in (problem.low, problem.high):
        tolerance = _BOUND_DISTANCE * (1 + np.abs(values))
        is_near = np.isfinite(bound) & (np.abs(values - bound) <= tolerance)
        values = np.where(is_near, bound, values)
    return values
