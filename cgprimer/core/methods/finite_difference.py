"""Finite differences: move one variable a little and see what happens.

    forward       (f(x + h) - f(x)) / h              error of order h      n + 1 passes
    central       (f(x + h) - f(x - h)) / (2 h)      error of order h^2    2 n passes
    complex-step  Im f(x + i h) / h                  no cancellation       n passes

The tape is the primal itself. The step is given, or chosen for each variable from its size: large
enough that rounding in f does not drown the difference, small enough that the next term of the
Taylor series does not: about sqrt(eps) for forward and cbrt(eps) for central differences, times
``max(1, |x|)``. Functions that are not analytic (``abs``, ``max``, ``relu``, ...) refuse the
complex step.

Source: Press et al., "Numerical Recipes", section 5.7; Squire and Trapp 1998 for the complex step.
"""

from __future__ import annotations

import math

from cgprimer.core.methods.contract import DerivativeProgram, Pass, Read, StepRule, fresh
from cgprimer.core.methods.reverse import signature_and
from cgprimer.core.primitives import primitive
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.passes import depends, reachable
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import DifferentiationError, UsageError

SCHEMES = ("central", "forward", "complex-step")
_ROOT = {"central": 3, "forward": 2, "complex-step": 0}  # the step is about this root of eps


def differentiate(
    tape: Tape,
    of: tuple[str, ...],
    wrt: tuple[str, ...],
    *,
    scheme: str = "central",
    step: float | None = None,
) -> DerivativeProgram:
    """The program of finite differences.

    Args:
        tape: the primal.
        of: names to differentiate.
        wrt: names with respect to which.
        scheme: ``central``, ``forward`` or ``complex-step``.
        step: by how much a variable is moved, in its own unit; chosen from its size if None.

    Raises:
        UsageError: an unknown scheme, or a step that is not positive.
        DifferentiationError: a complex step through a function that is not analytic.
    """
    if scheme not in SCHEMES:
        raise UsageError(f"there is no scheme {scheme!r}", hint=f"one of: {', '.join(SCHEMES)}")
    if step is not None and not 0 < step < math.inf:
        raise UsageError(f"the step must be positive and finite, not {step!r}")
    needed = reachable(tape, (tape.index(name) for name in of))
    if scheme == "complex-step":
        _refuse_kinks(tape, wrt, needed)
    builder = Builder(simplify=False)
    inner = [name for name in wrt if tape.index(name) >= len(tape.leaves)]
    shifts = {name: fresh("shift", name, tape) for name in inner}
    columns = {tape.index(name): column for name, column in shifts.items()}

    def shifted(index: int, copied: dict[int, int]) -> int:
        if index not in columns:
            return copied[index]
        return builder.emit("add", copied[index], builder.column(columns[index]), pinned=True)

    value = builder.extend(tape, keep=signature_and(tape, needed), then=shifted)
    outputs = {name: value[tape.index(name)] for name in of}
    for name in shifts:  # the step of an inner variable is chosen from its value
        if tape.index(name) in value:
            outputs.setdefault(name, value[tape.index(name)])
    return DerivativeProgram(
        "finite-difference",
        builder.finish(outputs),
        of,
        wrt,
        _passes(scheme, of, wrt),
        step=StepRule(step, _ROOT[scheme]),
        shifts={n: s for n, s in shifts.items() if tape.index(n) in value},
        primal_names=frozenset(tape.names),
    )


def _passes(scheme: str, of: tuple[str, ...], wrt: tuple[str, ...]) -> tuple[Pass, ...]:
    """Weights are in units of one over the step."""
    passes: list[Pass] = []
    if scheme == "forward":
        passes.append(Pass(tuple(Read(t, name, t, -1.0) for t in of for name in wrt)))
    for name in wrt:
        if scheme == "central":
            for side in (1.0, -1.0):
                passes.append(
                    Pass(tuple(Read(t, name, t, side / 2) for t in of), shifted=name, steps=side)
                )
        else:
            steps = 1j if scheme == "complex-step" else 1.0
            passes.append(Pass(tuple(Read(t, name, t) for t in of), shifted=name, steps=steps))
    return tuple(passes)


def _refuse_kinks(tape: Tape, wrt: tuple[str, ...], needed: list[bool]) -> None:
    active = depends(tape, (tape.index(name) for name in wrt))
    for position, (name, _) in enumerate(tape.instructions):
        index = len(tape.leaves) + position
        if needed[index] and active[index] and not primitive(name).analytic:
            raise DifferentiationError(
                f"a complex step cannot go through {name!r}: it is not analytic",
                hint="use scheme='central' (--scheme central)",
            )
