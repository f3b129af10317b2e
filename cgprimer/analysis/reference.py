"""Derivatives to fifty digits: central differences in arithmetic of many digits.

Central differences are poor in double precision because rounding drowns the difference. With
enough digits the step can be so small that both errors are far below the fiftieth digit. How many
are enough depends on the numbers: they are doubled until two results agree. The tape is run in
mpmath's arithmetic; the doubles of the point are taken as exact numbers. Nothing here reads the
table's derivatives. Where the slopes to the left and to the right differ (a kink, an edge of the
domain) there is no derivative to compare with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cgprimer.core.evaluation.passes import run_passes
from cgprimer.core.language.syntax_tree import operator_name
from cgprimer.core.methods.finite_difference import differentiate
from cgprimer.core.methods.step_rule import StepRule
from cgprimer.core.operations import find_primitive, symbolic_arithmetic
from cgprimer.support.value_names import internal_name
from cgprimer.tapes import Tape, reachable, values_of

try:
    import mpmath
except ImportError:
    mpmath = None  # then there is no reference

_DIGITS = 50  # of a reference; differences beyond it are none
_FEWEST, _MOST = 120, 6_000  # digits to compute with


@dataclass(frozen=True)
class _Relative(StepRule):
    """A step that is relative to the variable: a tiny one is not moved across an edge."""

    share: Any = 0.0

    def choose_step(self, value: Any, bits: int = 52) -> Any:
        return self.share * (abs(value) if value else 1)


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
        or hides its derivative on purpose (``stop_gradient``, unless nothing would flow there, as
        in a softmax), and where mpmath is missing; nan where it is not defined, or cannot be had
        with the most digits that are tried.

    >>> import cgprimer
    >>> tape = cgprimer.tape(cgprimer.parse("xw = exp(xa)"))
    >>> import mpmath
    >>> mpmath.nstr(reference_derivatives(tape, "xw", ("xa",), {"xa": 1.0})["xa"], 30)
    '2.71828182845904523536028747135'
    """
    if mpmath is None:
        return None
    root = tape.index(of)
    wanted = reachable(tape, [root])[len(tape.leaves) :]
    pairs = list(zip(tape.instructions, wanted, strict=True))
    hidden = {
        internal_name("hidden", str(index)): index
        for index, (instruction, needed) in enumerate(pairs, len(tape.leaves))
        if needed and instruction.primitive == "stop_gradient"
    }
    if hidden:  # what would flow, if it were not stopped?
        steps = [i._replace(primitive="copy") if i.primitive == "stop_gradient" else i
                 for i in tape.instructions]  # fmt: skip
        open_tape = replace(tape, instructions=tuple(steps), names={**tape.names, **hidden})
        all_of_them = reference_derivatives(open_tape, of, (*wrt, *hidden), at)
        if all_of_them is None or any(all_of_them[name] != 0 for name in hidden):
            return None
        return {name: all_of_them[name] for name in wrt}
    names = {operator_name(instruction.primitive) for instruction, needed in pairs if needed}
    rows = {find_primitive(name) for name in names}
    if any(symbolic_arithmetic.get_sympy_form(row) is None for row in rows):
        return None
    central = differentiate(tape, (of,), wrt)
    one_sided = None  # slopes to the right, where there may be kinks
    if not all(row.analytic for row in rows):
        one_sided = differentiate(tape, (of,), wrt, scheme="forward")

    def slopes(digits: int) -> tuple[dict[str, Any], dict[str, Any]]:
        with mpmath.workdps(digits):
            point = {name: mpmath.mpf(value) for name, value in at.items()}
            size = mpmath.mpf(10) ** -(digits // 3)
            both = _run(central, size, point)
            right = _run(one_sided, size, point) if one_sided else both
            return both, {name: abs(right[name] - both[name]) for name in wrt}

    digits = _first_digits(tape, root, at)
    found = dict.fromkeys(wrt, mpmath.nan)
    waiting = set(wrt) if digits <= _MOST else set()
    before = slopes(digits) if waiting else ({}, {})
    while waiting and digits <= _MOST:
        digits *= 2
        here = slopes(digits)
        with mpmath.workdps(digits):
            for name in sorted(waiting):
                old, new = before[0][name], here[0][name]
                finite = mpmath.isfinite(old) and mpmath.isfinite(new)
                settled = abs(new - old) <= abs(new) * mpmath.mpf(10) ** -_DIGITS
                vanishing = abs(new) <= abs(old) * mpmath.mpf(10) ** -(digits // 8)
                if finite and (settled or vanishing):
                    apart, were_apart = here[1][name], before[1][name]
                    if apart <= were_apart * 1e-10 or apart <= abs(new) * 1e-20:  # smooth
                        found[name] = new if settled else mpmath.mpf(0)
                if settled or vanishing or not finite:
                    waiting.discard(name)
        before = here
    return found


def _run(program: Any, size: Any, point: Mapping[str, Any]) -> dict[str, Any]:
    tape = program.tape

    def execute(columns: Any, scalars: Any, samples: int) -> dict[str, Any]:
        values = values_of(tape, columns, roots=tape.outputs.values())
        return {name: values[index] for name, index in tape.outputs.items()}

    program = replace(program, step_rule=_Relative(None, 1, size))
    found = run_passes(program, execute, point, {}, 1).derivatives
    return {wrt: value for (_, wrt), value in found.items()}


def _first_digits(tape: Tape, root: int, at: Mapping[str, float]) -> int:
    """Digits to begin with: the numbers on the tape must be seen beside each other."""
    with mpmath.workdps(20):
        point = {name: mpmath.mpf(value) for name, value in at.items()}
        values = values_of(tape, point, roots=[root])
        sizes = [mpmath.mag(v) for v in values if mpmath.isfinite(v) and v != 0]
    spread = 0.302 * (max(sizes) - min(sizes)) if sizes else 0.0
    return _FEWEST + 3 * int(spread)


def is_known(reference: Any) -> bool:
    """Whether there is a derivative to compare with."""
    return bool(mpmath.isfinite(reference))


def digits_of(reference: Any) -> str:
    """Fifty digits as text; ``nan`` where there is no derivative."""
    return str(mpmath.nstr(reference, _DIGITS)) if is_known(reference) else "nan"


def relative_error(value: float, reference: Any) -> float:
    """``|value - reference| / |reference|``, with the difference taken in many digits.

    >>> relative_error(1.0, 1), relative_error(0.0, 0), relative_error(1.0, 0)
    (0.0, 0.0, inf)
    """
    with mpmath.workdps(2 * _DIGITS):
        exact = mpmath.mpf(reference)
        if mpmath.isnan(exact) or math.isnan(value):
            return 0.0 if mpmath.isnan(exact) and math.isnan(value) else math.nan
        if mpmath.isinf(exact) or math.isinf(value):
            return 0.0 if exact == value else math.inf
        difference = abs(mpmath.mpf(value) - exact)
        if difference <= abs(exact) * mpmath.mpf("1e-45"):  # as good as the reference itself
            return 0.0
        return float(difference / abs(exact)) if exact else math.inf
