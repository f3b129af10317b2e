"""Derivatives to fifty digits: central differences in arithmetic of many digits.

Central differences are poor in double precision because rounding drowns the difference. With
enough digits, the step can be so small that both errors are far below the fiftieth digit. The
number of digits is doubled until two results agree. The tape runs in mpmath's arithmetic, and the
doubles of the point are exact numbers. This module does not use the partials of the primitive
table. If the slopes to the left and to the right differ (a kink, the edge of a domain), the
reference derivative is not defined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, NamedTuple

from cgprimer.core.evaluation.passes import run_passes
from cgprimer.core.language.syntax_tree import operator_name
from cgprimer.core.methods.finite_difference import differentiate
from cgprimer.core.methods.step_rule import StepRule
from cgprimer.core.operations import find_primitive, symbolic_arithmetic
from cgprimer.support.value_names import internal_name
from cgprimer.tapes import Tape, reachable, values_of

_DIGITS = 50  # of a reference
_MIN_DIGITS, _MAX_DIGITS = 120, 6_000  # of the computation


@dataclass(frozen=True)
class _RelativeStep(StepRule):
    """A finite-difference step proportional to the variable, whose sign it never changes."""

    fraction: Any = 0.0

    def choose_step(self, value: Any, bits: int = 52) -> Any:
        """Return the step size for a value of the variable."""
        return self.fraction * (abs(value) if value else 1)


def compute_reference_derivatives(
    tape: Tape, of: str, wrt: tuple[str, ...], at: Mapping[str, float]
) -> dict[str, Any] | None:
    """Compute derivatives accurate to 50 digits, by difference quotients in mpmath.

    Args:
        tape: the tape of a graph.
        of: the variable to differentiate.
        wrt: the names with respect to which it is differentiated.
        at: values of the tape's columns and scalars.

    Returns:
        The derivatives, keyed by name; nan where a derivative is not defined, or does not converge
        with the maximum number of digits. None if mpmath is not installed, if a function has no
        form in mpmath (a registered primitive without ``sympy``), or if ``stop_gradient`` hides a
        derivative that is not zero.

    >>> import cgprimer
    >>> tape = cgprimer.tape(cgprimer.parse("xw = exp(xa)"))
    >>> import mpmath
    >>> mpmath.nstr(compute_reference_derivatives(tape, "xw", ("xa",), {"xa": 1.0})["xa"], 30)
    '2.71828182845904523536028747135'
    """
    if find_spec("mpmath") is None:
        return None
    import mpmath

    root = tape.index(of)
    needed = reachable(tape, [root])[len(tape.leaves) :]
    used = [i for i, is_needed in zip(tape.instructions, needed, strict=True) if is_needed]
    if any(instruction.primitive == "stop_gradient" for instruction in used):
        return _differentiate_through_stops(tape, of, wrt, at, needed)
    rows = {find_primitive(operator_name(instruction.primitive)) for instruction in used}
    if any(symbolic_arithmetic.get_sympy_form(row) is None for row in rows):
        return None
    central = differentiate(tape, (of,), wrt)
    one_sided = None  # difference quotients to the right detect kinks
    if not all(row.analytic for row in rows):
        one_sided = differentiate(tape, (of,), wrt, scheme="forward")

    def estimate(digits: int) -> _Estimate:
        """Compute all difference quotients with the given number of decimal digits."""
        with mpmath.workdps(digits):
            point = {name: mpmath.mpf(value) for name, value in at.items()}
            step = mpmath.mpf(10) ** -(digits // 3)
            slopes = _compute_difference_quotients(central, step, point)
            right = _compute_difference_quotients(one_sided, step, point) if one_sided else slopes
            gaps = {name: abs(right[name] - slopes[name]) for name in wrt}
            return _Estimate(digits, slopes, gaps)

    return _increase_digits(estimate, wrt, _choose_initial_digits(tape, root, at))


def _differentiate_through_stops(
    tape: Tape, of: str, wrt: tuple[str, ...], at: Mapping[str, float], needed: list[bool]
) -> dict[str, Any] | None:
    """Differentiate through ``stop_gradient``; None if this would change a derivative.

    Returns:
        The derivatives, or None if the gradient at a ``stop_gradient`` is not zero, as it is in a
        softmax.
    """
    stopped = {
        internal_name("hidden", str(index)): index
        for index, (instruction, is_needed) in enumerate(
            zip(tape.instructions, needed, strict=True), len(tape.leaves)
        )
        if is_needed and instruction.primitive == "stop_gradient"
    }
    instructions = tuple(
        i._replace(primitive="copy") if i.primitive == "stop_gradient" else i
        for i in tape.instructions
    )
    open_tape = replace(tape, instructions=instructions, names={**tape.names, **stopped})
    derivatives = compute_reference_derivatives(open_tape, of, (*wrt, *stopped), at)
    if derivatives is None or any(derivatives[name] != 0 for name in stopped):
        return None
    return {name: derivatives[name] for name in wrt}


class _Estimate(NamedTuple):
    """Difference quotients that were computed with a given number of decimal digits.

    Attributes:
        digits: the number of decimal digits.
        slopes: the central difference quotients, keyed by name.
        gaps: the distances between central and right difference quotients.
    """

    digits: int
    slopes: dict[str, Any]
    gaps: dict[str, Any]

    def find_limit(self, better: _Estimate, name: str) -> Any:
        """Return the derivative if two estimates agree, nan if undefined, None if they differ.

        Args:
            better: the estimate with more digits.
            name: the variable with respect to which the derivative is taken.

        Returns:
            The derivative, nan if it does not exist, or None if more digits are needed.
        """
        import mpmath

        old, new = self.slopes[name], better.slopes[name]
        if not (mpmath.isfinite(old) and mpmath.isfinite(new)):
            return mpmath.nan
        has_settled = abs(new - old) <= abs(new) * mpmath.mpf(10) ** -_DIGITS
        is_vanishing = abs(new) <= abs(old) * mpmath.mpf(10) ** -(better.digits // 8)
        if not (has_settled or is_vanishing):
            return None
        gap = better.gaps[name]
        is_smooth = gap <= self.gaps[name] * 1e-10 or gap <= abs(new) * 1e-20
        if not is_smooth:
            return mpmath.nan
        return new if has_settled else mpmath.mpf(0)


def _increase_digits(
    estimate: Callable[[int], _Estimate], wrt: tuple[str, ...], digits: int
) -> dict[str, Any]:
    """Double the number of digits until every derivative has converged or is undefined."""
    import mpmath

    derivatives = dict.fromkeys(wrt, mpmath.nan)
    if digits > _MAX_DIGITS:
        return derivatives
    pending = set(wrt)
    current = estimate(digits)
    while pending and current.digits <= _MAX_DIGITS:
        better = estimate(2 * current.digits)
        with mpmath.workdps(better.digits):
            for name in sorted(pending):
                limit = current.find_limit(better, name)
                if limit is not None:
                    derivatives[name] = limit
                    pending.discard(name)
        current = better
    return derivatives


def _compute_difference_quotients(
    program: Any, step: Any, point: Mapping[str, Any]
) -> dict[str, Any]:
    """Compute difference quotients of mpmath numbers with a relative step."""
    tape = program.tape

    def execute(columns: Any, scalars: Any, samples: int) -> dict[str, Any]:
        """Evaluate the outputs of the tape at one shifted point, keyed by name."""
        values = values_of(tape, columns, roots=tape.outputs.values())
        return {name: values[index] for name, index in tape.outputs.items()}

    program = replace(program, step_rule=_RelativeStep(None, 1, step))
    derivatives = run_passes(program, execute, point, {}, 1).derivatives
    return {wrt: value for (_, wrt), value in derivatives.items()}


def _choose_initial_digits(tape: Tape, root: int, at: Mapping[str, float]) -> int:
    """Choose an initial precision that covers the magnitudes of all tape values."""
    import mpmath

    with mpmath.workdps(20):
        point = {name: mpmath.mpf(value) for name, value in at.items()}
        values = values_of(tape, point, roots=[root])
        magnitudes = [mpmath.mag(v) for v in values if mpmath.isfinite(v) and v != 0]
    bits = int(max(magnitudes) - min(magnitudes)) if magnitudes else 0
    return _MIN_DIGITS + 3 * (bits * 302 // 1000)  # integers: bits can exceed the range of floats


def is_defined(reference: Any) -> bool:
    """Return whether a derivative exists, that is, whether its reference value is finite."""
    import mpmath

    return bool(mpmath.isfinite(reference))


def format_reference(reference: Any) -> str:
    """Format a reference derivative with 50 digits; ``nan`` if it is not defined."""
    import mpmath

    return str(mpmath.nstr(reference, _DIGITS)) if is_defined(reference) else "nan"


def compute_relative_error(value: float, reference: Any) -> float:
    """Compute ``|value - reference| / |reference|`` without cancellation.

    >>> [compute_relative_error(v, exact) for v, exact in ((1.0, 1), (0.0, 0), (1.0, 0))]
    [0.0, 0.0, inf]
    """
    import mpmath

    with mpmath.workdps(2 * _DIGITS):
        exact = mpmath.mpf(reference)
        if mpmath.isnan(exact) or math.isnan(value):
            return 0.0 if mpmath.isnan(exact) and math.isnan(value) else math.nan
        if mpmath.isinf(exact) or math.isinf(value):
            return 0.0 if exact == value else math.inf
        difference = abs(mpmath.mpf(value) - exact)
        if difference <= abs(exact) * mpmath.mpf("1e-45"):  # within the accuracy of the reference
            return 0.0
        return float(difference / abs(exact)) if exact else math.inf
