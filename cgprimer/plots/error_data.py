"""The error of finite differences against their step: the V-shaped curve.

A large step is wrong because the curve is not its tangent (error of order h, or h² for central
differences); a small one because the difference of two nearly equal numbers has few digits left
(error of order 1/h). The complex step subtracts nothing, so it has only the first half of the V.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cgprimer.analysis.reference import is_known, reference_derivatives
from cgprimer.core.derivatives import chosen_output, point_values, single_name
from cgprimer.core.derivatives import tape as tape_of
from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.methods import differentiate
from cgprimer.core.run import Runner
from cgprimer.errors import DifferentiationError, UsageError

Array = Any
SCHEMES = ("forward", "central", "complex-step")
_JUMP = 1e20  # times the slope that the rules give: no rounding, but a jump
_NEIGHBOURS = 4  # steps to either side whose errors are looked at together: rounding is a lottery


@dataclass(frozen=True, eq=False)
class StepErrors:
    """Errors of finite differences over a range of steps.

    Attributes:
        of, wrt: what is differentiated, and with respect to what.
        formula: the expression of ``of``.
        at: the point.
        derivative: the exact derivative, rounded to a double.
        steps: the steps, ascending; shape (steps,). Unit: that of ``wrt``.
        errors: for each scheme the absolute errors; shape (steps,); nan where the shifted point
            lies outside the function's domain. Unit: that of the derivative.
        refused: schemes that cannot be used here, and why.
    """

    of: str
    wrt: str
    formula: str
    at: dict[str, float]
    derivative: float
    steps: Array
    errors: dict[str, Array]
    refused: dict[str, str]

    def smoothed(self, scheme: str) -> Array:
        """The largest error of each step's neighbourhood: what one may expect there."""
        errors = self.errors[scheme]
        found = np.full(len(errors), math.nan)
        for k in range(len(errors)):
            near = errors[max(0, k - _NEIGHBOURS) : k + _NEIGHBOURS + 1]
            if np.isfinite(near).any():
                found[k] = np.nanmax(near)
        return found

    def best(self, scheme: str) -> float:
        """The step with the least error to be expected; the largest such where many are as good.

        Raises:
            UsageError: the scheme has no finite error.
        """
        expected = self.smoothed(scheme)
        if not np.isfinite(expected).any():
            raise UsageError(f"the scheme {scheme!r} gave no number at any of the steps")
        # Nothing is better than the last digit of the derivative itself; and where no two numbers
        # are subtracted, the errors of all small steps are alike up to the luck of rounding.
        luck = 10.0 if scheme == "complex-step" else 1.0
        least = max(2.0**-52 * abs(self.derivative), luck * float(np.nanmin(expected)))
        return float(self.steps[np.flatnonzero(expected <= least)[-1]])

    def slope(self, scheme: str, low: float, high: float) -> float:
        """The slope of the error in the log-log picture between two steps, by least squares."""
        errors = self.errors[scheme]
        inside = (self.steps >= low) & (self.steps <= high) & (errors > 0)
        if inside.sum() < 2:
            raise UsageError(
                f"fewer than two errors of {scheme!r} lie between {low:g} and {high:g}"
            )
        return float(np.polyfit(np.log(self.steps[inside]), np.log(errors[inside]), 1)[0])


def step_errors(
    graph: ExpressionGraph,
    at: Mapping[str, float] | None = None,
    *,
    of: str | None = None,
    wrt: str | None = None,
    schemes: Sequence[str] = SCHEMES,
    steps: Sequence[float] | None = None,
) -> StepErrors:
    """The error of each scheme of finite differences at each step.

    Args:
        graph: the graph.
        at: a number for each input and parameter; declared values fill the rest.
        of: the variable to differentiate; the only output unless given.
        wrt: one name; the only input, or else the only parameter, unless given.
        schemes: of ``forward``, ``central`` and ``complex-step``.
        steps: ten for every power of ten from 1e-16 to 1 unless given.

    Raises:
        UsageError: an unknown name or scheme, or a step that is not positive.
        MissingValueError: a value is missing.
        DifferentiationError: there is no derivative here to compare with, or no scheme works.

    >>> from cgprimer.core.graph import parse
    >>> found = step_errors(parse("xw = sin(xa)"), {"xa": 1}, steps=[1e-12, 1e-8, 1e-4, 1e-1])
    >>> [f"{error:.1e}" for error in found.errors["forward"]]
    ['4.3e-05', '3.0e-09', '4.2e-05', '4.3e-02']
    """
    target = chosen_output(graph, of)
    name = single_name(graph, wrt)
    primal = tape_of(graph)
    point = point_values(graph, at, of=target)
    sizes = np.sort(np.logspace(-16, 0, 161) if steps is None else np.array(steps, dtype=float))
    if not sizes.size or not (np.isfinite(sizes).all() and sizes[0] > 0):
        raise UsageError("steps must be positive and finite")
    columns = {n: np.array([point[n]]) for n in graph.inputs}
    scalars = {n: point[n] for n in graph.parameters}
    found = reference_derivatives(primal, target, (name,), point)
    by_rules = Runner(differentiate(primal, target, name, method="reverse"))
    slope = float(np.ravel(by_rules(columns, scalars, 1).derivatives[target, name])[0])
    # At a jump whose value is the middle, both sides have one slope, which is enormous.
    if (
        found is None
        or not is_known(found[name])
        or abs(found[name]) > _JUMP * max(1.0, abs(slope))
    ):
        raise DifferentiationError(
            f"there is no exact derivative of {target} with respect to {name} to compare with",
            hint="a kink, a pole, an edge of the domain, or a function without a formula"
            " of its own; choose another point (--at)",
        )
    exact = found[name]
    errors: dict[str, Array] = {}
    refused: dict[str, str] = {}
    for scheme in dict.fromkeys(schemes):
        try:
            programs = [
                differentiate(
                    primal, target, name, method="finite-difference", scheme=scheme, step=size
                )
                for size in sizes.tolist()
            ]
        except DifferentiationError as error:
            refused[scheme] = error.message
            continue
        quotients = (Runner(p)(columns, scalars, 1).derivatives[target, name] for p in programs)
        values = [float(np.reshape(quotient, -1)[0]) for quotient in quotients]
        errors[scheme] = np.array([_error(value, exact) for value in values])
    if not errors:
        raise DifferentiationError(next(iter(refused.values()), "no scheme was asked for"))
    formula = str(graph.expression(target)) if target in graph.definitions else target
    return StepErrors(target, name, formula, point, float(exact), sizes, errors, refused)


def _error(value: float, exact: Any) -> float:
    """The distance from the exact derivative, taken in many digits."""
    import mpmath

    if not math.isfinite(value):
        return math.nan
    with mpmath.workdps(60):
        difference = abs(mpmath.mpf(value) - exact)
        # The reference is good to about fifty digits: anything smaller is zero.
        return float(difference) if difference > mpmath.mpf("1e-45") * abs(exact) else 0.0
