"""Finite differences: shift one variable by a small step and compare the outputs.

    forward       (f(x + h) - f(x)) / h              error of order h      n + 1 passes
    central       (f(x + h) - f(x - h)) / (2 h)      error of order h^2    2 n passes
    complex-step  Im f(x + i h) / h                  no cancellation       n passes

The program runs the original tape. The step is an option, or chosen from the size of the variable
to balance rounding error and truncation error: about sqrt(eps) for forward and cbrt(eps) for
central differences, times ``max(1, |x|)``. The complex step requires analytic functions, so it does
not support ``abs``, ``max``, ``relu`` and similar functions.

Source: Press et al., "Numerical Recipes", section 5.7; Squire and Trapp 1998 for the complex step.
"""

from __future__ import annotations

import math

from cgprimer.core.methods.derivative_program import (
    DerivativeProgram,
    Pass,
    Read,
    Shift,
    find_unused_name,
)
from cgprimer.core.methods.step_rule import StepRule
from cgprimer.core.operations.primitive_registry import find_operation
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_dependencies import find_dependents, reachable
from cgprimer.errors import DifferentiationError, UsageError

_ROOT = {"central": 3, "forward": 2, "complex-step": 0}  # the step is about this root of eps
_MOVES = {  # shifts of a variable in steps, with the weights of the results
    "central": ((1.0, 0.5), (-1.0, -0.5)),
    "forward": ((1.0, 1.0),),
    "complex-step": ((1j, 1.0),),
}
SCHEMES = tuple(_ROOT)


def differentiate(
    tape: Tape,
    of: tuple[str, ...],
    wrt: tuple[str, ...],
    *,
    scheme: str = "central",
    step: float | None = None,
) -> DerivativeProgram:
    """Return the program of finite differences.

    Args:
        tape: the tape to differentiate.
        of: the names to differentiate.
        wrt: the names with respect to which to differentiate.
        scheme: ``central``, ``forward`` or ``complex-step``.
        step: the step size, in the unit of the variable; by default chosen from its size.

    Raises:
        UsageError: the scheme is unknown, or the step is not positive.
        DifferentiationError: the scheme is the complex step, and a function is not analytic.
    """
    if scheme not in SCHEMES:
        raise UsageError(f"unknown scheme {scheme!r}", hint=f"choose one of {', '.join(SCHEMES)}")
    if step is not None and not 0 < step < math.inf:
        raise UsageError(f"`step` must be positive and finite, got {step!r}")
    indices = {name: tape.index(name) for name in (*of, *wrt)}
    needed = reachable(tape, (indices[name] for name in of))
    if scheme == "complex-step":
        active = find_dependents(tape, (indices[name] for name in wrt))
        for index, (row, _) in enumerate(tape.instructions, len(tape.leaves)):
            if needed[index] and active[index] and not find_operation(row).analytic:
                raise DifferentiationError(
                    f"the complex step does not support {row!r}, which is not analytic",
                    hint="use `scheme='central'`",
                )
    builder = Builder(simplify=False)
    inner = [name for name in wrt if indices[name] >= len(tape.leaves)]
    columns = {indices[name]: find_unused_name("shift", name, tape) for name in inner}

    def add_shift(index: int, copied: dict[int, int]) -> int:
        """Add a column with the shift to an inner variable; return the sum."""
        if index not in columns:
            return copied[index]
        return builder.emit("add", copied[index], builder.column(columns[index]), pinned=True)

    value = builder.extend(tape, keep=needed, then=add_shift)
    # The step of an inner variable is chosen from its value.
    outputs = {name: value[indices[name]] for name in (*of, *inner) if indices[name] in value}
    leaves = {name: columns[indices[name]] for name in inner if indices[name] in value}
    return DerivativeProgram(
        "finite-difference",
        builder.finish(outputs),
        of,
        wrt,
        _build_passes(scheme, of, wrt, leaves),
        primal_names=frozenset(tape.names),
        step_rule=StepRule(step, _ROOT[scheme]),
    )


def _build_passes(
    scheme: str, of: tuple[str, ...], wrt: tuple[str, ...], leaves: dict[str, str]
) -> tuple[Pass, ...]:
    """Return the evaluations of a difference scheme: shifted variables and outputs to read.

    Args:
        scheme: the name of the scheme.
        of: the names to differentiate.
        wrt: the names with respect to which to differentiate.
        leaves: the column to change for each inner variable.
    """
    passes: list[Pass] = []
    if scheme == "forward":
        passes.append(Pass(tuple(Read(t, name, t, -1.0) for t in of for name in wrt)))
    for name in wrt:
        for steps, weight in _MOVES[scheme]:
            reads = tuple(Read(t, name, t, weight) for t in of)
            passes.append(Pass(reads, shift=Shift(name, leaves.get(name, name), steps)))
    return tuple(passes)
