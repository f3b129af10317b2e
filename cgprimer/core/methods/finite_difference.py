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
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cgprimer.core.methods.contract import (
    DerivativeProgram,
    Derivatives,
    Execute,
    Given,
    Number,
    Pass,
    Read,
    fresh,
)
from cgprimer.core.primitives import primitive
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.passes import depends, reachable
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import DifferentiationError, UsageError

_ROOT = {"central": 3, "forward": 2, "complex-step": 0}  # the step is about this root of eps
_MOVES = {  # by how many steps a variable is moved, and what the result counts for
    "central": ((1.0, 0.5), (-1.0, -0.5)),
    "forward": ((1.0, 1.0),),
    "complex-step": ((1j, 1.0),),
}
SCHEMES = tuple(_ROOT)


@dataclass(frozen=True)
class Shifted(Pass):
    """A run with one variable moved; weights of its reads are in units of one over the step."""

    shifted: str = ""  # the variable; empty for none
    steps: complex = 0.0  # by how many of its steps; imaginary for a complex step

    def __str__(self) -> str:
        if not self.shifted:
            return "nothing moved"
        multiple = "i times its step" if self.steps == 1j else f"{self.steps:+g} step"
        return f"{self.shifted} moved by {multiple}"


@dataclass(frozen=True, slots=True)
class StepRule:
    """How far a variable is moved: ``size``, or chosen from the variable.

    The chosen step is ``relative(bits) * max(1, |value|)``, with the value rounded down to a
    power of two so that the shift itself is exact in most cases. A step has the unit of its
    variable.
    """

    size: float | None  # the step, if it is given
    root: int  # of the precision; 0 for a complex step, which can be as small as one likes

    def relative(self, bits: int) -> float:
        """The step for a variable of size 1, in a precision of so many binary digits."""
        return 2.0 ** -round(bits / self.root) if self.root else 2.0**-300

    def step(self, value: Number, bits: int = 52) -> Number:
        """The step for a variable of a given value, a number or an array of samples.

        >>> StepRule(None, 3).step(8.0) == 2.0**-14
        True
        """
        if self.size is not None:
            return self.size
        if isinstance(value, float):
            size = abs(value) if math.isfinite(value) else 1.0
            if not self.root:  # no cancellation: it can be tiny, and must be for a tiny variable
                small = size if 0.0 < size < 1.0 else 1.0
                return max(self.relative(bits) * small, min(small * 2.0**-20, 2.0**-600), 5e-324)
            # Not by a logarithm, which is rounded: that of 15.999999999999998 is 4.
            return math.ldexp(self.relative(bits), math.frexp(max(1.0, size))[1] - 1)
        import numpy as np

        sizes = np.abs(np.where(np.isfinite(value), value, 1.0))
        if not self.root:
            near = np.where((sizes > 0) & (sizes < 1), sizes, 1.0)
            least = np.maximum(np.minimum(near * 2.0**-20, 2.0**-600), 5e-324)
            return np.maximum(self.relative(bits) * near, least)
        return np.ldexp(self.relative(bits), np.frexp(np.maximum(1.0, sizes))[1] - 1)


@dataclass(frozen=True, eq=False, repr=False)
class DifferenceProgram(DerivativeProgram):
    """The primal, run with one variable moved after the other, and the quotients.

    ``shifts`` has, for an inner variable that is moved, the column that is added to it.
    """

    seeds_only = False
    passes: Sequence[Shifted]
    rule: StepRule = field(kw_only=True)
    shifts: dict[str, str] = field(default_factory=dict, kw_only=True)

    def run(
        self, execute: Execute, columns: Given, scalars: Given, samples: int, **how: Any
    ) -> Derivatives:
        """Run the primal as often as the scheme asks for, and divide by the steps."""
        bits = how.get("bits", 52)
        columns = {**dict.fromkeys(self.shifts.values(), 0.0), **columns}
        scalars = dict(scalars)
        base = execute(columns, scalars, samples)
        point = {**base, **scalars, **columns}
        sizes = {name: point.get(name, 0.0).real for name in self.wrt}
        if any(getattr(name, "kind", "") == "batch_mean" for name, _ in self.tape.instructions):
            import numpy as np  # samples that are moved together are moved by one step

            sizes = {name: float(np.max(np.abs(v), initial=0.0)) for name, v in sizes.items()}
        steps = {name: self.rule.step(size, bits) for name, size in sizes.items()}
        found: dict[tuple[str, str], Number] = {}
        for one in self.passes:
            outputs = base
            if one.shifted:
                leaf = self.shifts.get(one.shifted, one.shifted)
                given = columns if leaf in columns else scalars
                kept = given.get(leaf, 0.0)
                given[leaf] = kept + one.steps * steps[one.shifted]
                outputs = execute(columns, scalars, samples)
                given[leaf] = kept
            if self.is_complex:
                outputs = {name: value.imag for name, value in outputs.items()}
            one.add_to(found, outputs)
        values = {name: base[name].real for name in self.of}
        for (of, wrt), total in found.items():
            if self.is_complex:
                found[of, wrt] = _meant(total, values[of], steps[wrt], point.get(wrt, 0.0).real)
            else:
                found[of, wrt] = total / steps[wrt]
        return Derivatives(values, found)


def _meant(imaginary: Number, value: Number, step: Number, near: Number) -> Number:
    """A complex step's quotient, nan where it means nothing.

    Off the real domain, or where a complex function leaves rounding errors in the imaginary
    part, that part means nothing; divided by h = 1e-90 it is enormous.
    """
    import numpy as np

    with np.errstate(all="ignore"):
        quotient = np.divide(imaginary, step)
        # Near 0 a derivative may be large: that of log(x) is 1/x.
        scale = np.maximum(1.0, np.where(np.equal(near, 0.0), 1.0, 1.0 / np.abs(near)))
        likely = np.abs(quotient) <= 1e30 * scale * np.maximum(1.0, np.abs(value))
        return np.where(np.isfinite(value) & likely, quotient, np.nan)


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
    place = {name: tape.index(name) for name in (*of, *wrt)}
    needed = reachable(tape, (place[name] for name in of))
    if scheme == "complex-step":
        active = depends(tape, (place[name] for name in wrt))
        for index, (row, _) in enumerate(tape.instructions, len(tape.leaves)):
            known = type(row) is str  # what moves elements or adds them up has no kinks
            if needed[index] and active[index] and known and not primitive(row).analytic:
                raise DifferentiationError(
                    f"a complex step cannot go through {row!r}: it is not analytic",
                    hint="use scheme='central' (--scheme central)",
                )
    builder = Builder(simplify=False)
    inner = [name for name in wrt if place[name] >= len(tape.leaves)]
    columns = {place[name]: fresh("shift", name, tape) for name in inner}

    def shifted(index: int, copied: dict[int, int]) -> int:
        if index not in columns:
            return copied[index]
        return builder.emit("add", copied[index], builder.column(columns[index]), pinned=True)

    value = builder.extend(tape, keep=needed, then=shifted)
    # The step of an inner variable is chosen from its value.
    outputs = {name: value[place[name]] for name in (*of, *inner) if place[name] in value}
    scalars = tape.of_kind("scalar")
    return DifferenceProgram(
        "finite-difference",
        builder.finish(outputs),
        of,
        wrt,
        _passes(scheme, of, wrt),
        primal_names=frozenset(tape.names),
        rule=StepRule(step, _ROOT[scheme]),
        shifts={name: columns[place[name]] for name in inner if place[name] in value},
        is_complex=scheme == "complex-step",
        by_sample=any(name not in scalars for name in wrt),
    )


def _passes(scheme: str, of: tuple[str, ...], wrt: tuple[str, ...]) -> tuple[Shifted, ...]:
    passes: list[Shifted] = []
    if scheme == "forward":
        passes.append(Shifted(tuple(Read(t, name, t, -1.0) for t in of for name in wrt)))
    for name in wrt:
        for steps, weight in _MOVES[scheme]:
            reads = tuple(Read(t, name, t, weight) for t in of)
            passes.append(Shifted(reads, shifted=name, steps=steps))
    return tuple(passes)
