"""Derivatives to fifty digits: central differences in arithmetic of 160 digits.

Central differences are poor in double precision because rounding drowns the difference. With 160
digits the step can be 1e-45, and both errors are far below the fiftieth digit. The tape is run in
mpmath's arithmetic; the doubles of the point are taken as exact numbers. Where the slopes to the
left and to the right differ (a kink, an edge of the domain) there is no derivative to compare with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from cgprimer.core.methods.finite_difference import differentiate
from cgprimer.core.primitives import primitive
from cgprimer.core.tape.passes import reachable
from cgprimer.core.tape.tape import Tape

_DIGITS = 160
_STEP = "1e-45"


def reference_derivatives(
    tape: Tape, of: str, wrt: tuple[str, ...], at: Mapping[str, float]
) -> dict[str, Any] | None:
    """The derivatives of ``of`` as mpmath numbers.

    Args:
        tape: the primal.
        of: what is differentiated.
        wrt: with respect to which names.
        at: values of the tape's columns and scalars.

    Returns:
        None where a function has no form in mpmath (a registered primitive without ``sympy``),
        or hides its derivative on purpose (``stop_gradient``); nan where it is not defined.

    >>> import cgprimer
    >>> tape = cgprimer.tape(cgprimer.parse("xw = exp(xa)"))
    >>> import mpmath
    >>> mpmath.nstr(reference_derivatives(tape, "xw", ("xa",), {"xa": 1.0})["xa"], 30)
    '2.71828182845904523536028747135'
    """
    import mpmath

    needed = reachable(tape, [tape.index(of)])
    names = {
        s.primitive for s, n in zip(tape.instructions, needed[len(tape.leaves) :], strict=True) if n
    }
    if any(primitive(name).sympy is None for name in names):
        return None
    program = differentiate(tape, (of,), wrt)
    with mpmath.workdps(_DIGITS):
        exact = {name: mpmath.mpf(value) for name, value in at.items()}
        exact |= {column: mpmath.mpf(0) for column in program.shifts.values()}
        # Relative to the variable, so that a tiny one is not moved across an edge of its domain.
        step = {
            name: mpmath.mpf(_STEP) * (abs(exact.get(name, mpmath.mpf(1))) or 1) for name in wrt
        }
        middle = _run(program.tape, of, exact)
        totals: dict[str, Any] = {name: mpmath.mpf(0) for name in wrt}
        slopes: dict[str, list[Any]] = {name: [] for name in wrt}
        for run in program.passes:
            moved = dict(exact)
            target = program.shifts.get(run.shifted, run.shifted)
            if target in moved:
                moved[target] += int(run.steps.real) * step[run.shifted]
            value = _run(program.tape, of, moved)
            for read in run.reads:
                totals[read.wrt] += read.weight * value
                slopes[read.wrt].append((value - middle) / (run.steps.real * step[read.wrt]))
        return {
            name: total / step[name] if _agree(*slopes[name]) else mpmath.nan
            for name, total in totals.items()
        }


def is_known(reference: Any) -> bool:
    """Whether there is a derivative to compare with."""
    import mpmath

    return bool(mpmath.isfinite(reference))


def digits_of(reference: Any) -> str:
    """Fifty digits as text; ``nan`` where there is no derivative."""
    import mpmath

    return str(mpmath.nstr(reference, 50)) if is_known(reference) else "nan"


def _agree(left: Any, right: Any) -> bool:
    """Whether two one-sided slopes are those of one tangent."""
    return bool(abs(left - right) <= 1e-20 * max(1, abs(left)))


def relative_error(value: float, reference: Any) -> float:
    """``|value - reference| / |reference|``, with the difference taken in many digits.

    >>> relative_error(1.0, 1), relative_error(0.0, 0), relative_error(1.0, 0)
    (0.0, 0.0, inf)
    """
    import mpmath

    with mpmath.workdps(_DIGITS):
        exact = mpmath.mpf(reference)
        if mpmath.isnan(exact) or math.isnan(value):
            return 0.0 if mpmath.isnan(exact) and math.isnan(value) else math.nan
        if mpmath.isinf(exact) or math.isinf(value):
            return 0.0 if exact == value else math.inf
        # The reference itself is good to about 50 digits: anything smaller is zero.
        difference = abs(mpmath.mpf(value) - exact)
        if difference < mpmath.mpf("1e-60"):
            return 0.0
        return float(difference / abs(exact)) if abs(exact) > mpmath.mpf("1e-60") else math.inf


def _run(tape: Tape, of: str, given: Mapping[str, Any]) -> Any:
    """One output of a tape, in mpmath's arithmetic; nan outside a function's domain."""
    import mpmath

    root = tape.outputs[of]
    needed = reachable(tape, [root])
    module = _Mpmath()
    values: list[Any] = []
    for leaf in tape.leaves:
        values.append(
            mpmath.mpf(leaf.value) if leaf.kind == "constant" else given.get(leaf.name, mpmath.nan)
        )
    for (name, operands), wanted in zip(tape.instructions, needed[len(values) :], strict=True):
        value = mpmath.nan
        if wanted:
            try:
                value = primitive(name).sympy(module, *(values[o] for o in operands))  # type: ignore[misc]
            except (ZeroDivisionError, ValueError, OverflowError):
                value = mpmath.nan
            if isinstance(value, mpmath.mpc):  # outside the real domain
                value = mpmath.nan
        values.append(value)
    return values[root]


class _Mpmath:
    """mpmath under the names that the table's sympy forms use."""

    def __getattr__(self, name: str) -> Any:
        import mpmath

        return getattr(mpmath, name)

    def Pow(self, base: Any, exponent: Any) -> Any:
        import mpmath

        return mpmath.power(base, exponent)

    Abs = staticmethod(abs)
    Max = staticmethod(max)
    Min = staticmethod(min)

    @staticmethod
    def Heaviside(value: Any) -> float:
        return 0.5 if value == 0 else float(value > 0)

    @staticmethod
    def Piecewise(*pairs: tuple[Any, bool]) -> Any:
        return next(value for value, condition in pairs if condition)

    @staticmethod
    def Eq(left: Any, right: Any) -> bool:
        return bool(left == right)

    @staticmethod
    def Ne(left: Any, right: Any) -> bool:
        return bool(left != right)
