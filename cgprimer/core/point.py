"""One sample at a time: a tape on Python's own floats.

A numpy call costs a microsecond whatever it works on; for a single sample that is nearly all of
it. Python's arithmetic takes a twentieth of that, but raises where IEEE 754 has a value: then,
and only then, numpy is asked.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cgprimer.core.methods.contract import DerivativeProgram
from cgprimer.core.primitives import primitive
from cgprimer.core.run import step_size
from cgprimer.core.tape.passes import optimize, with_seeds
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import EngineError

_EXACT: dict[str, Callable[..., float]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "neg": operator.neg,
}


class PointProgram:
    """A tape compiled for single samples.

    Args:
        tape: what to run.
        outputs: the outputs wanted, in their order.

    >>> import cgprimer
    >>> program = PointProgram(cgprimer.tape(cgprimer.parse("xw = k/xa")), ["xw"])
    >>> program([2.0], [3.0]), program([0.0], [3.0])
    ([1.5], [inf])
    """

    def __init__(self, tape: Tape, outputs: Sequence[str]) -> None:
        self.tape = optimize(tape)
        self.columns = self.tape.of_kind("column")
        self.scalars = self.tape.of_kind("scalar")
        self.constants = [leaf.value for leaf in self.tape.leaves if leaf.kind == "constant"]
        self.steps = [
            (_float_function(name), operands) for name, operands in self.tape.instructions
        ]
        self.outputs = [self.tape.outputs[name] for name in outputs]

    def __call__(self, sample: Sequence[float], scalars: Sequence[float]) -> list[float]:
        """The outputs for one sample; the caller silences numpy's floating-point warnings.

        Args:
            sample: the columns' values, in the order of ``columns``.
            scalars: the scalars' values, in the order of ``scalars``.
        """
        values = [*sample, *scalars, *self.constants]
        append = values.append
        for function, operands in self.steps:
            if len(operands) == 2:
                left, right = operands
                append(function(values[left], values[right]))
            else:
                append(function(*[values[o] for o in operands]))
        return [values[i] for i in self.outputs]


class PointRunner:
    """A derivative program for single samples: all its passes, on Python's floats.

    Args:
        program: the derivatives of one name; no complex steps.
        columns: names of the columns, in the order in which samples give them.
        scalars: names of the scalars, in the order in which they are given.

    >>> import cgprimer
    >>> tape = cgprimer.tape(cgprimer.parse("xw = k*xa^2"))
    >>> program = cgprimer.differentiate(tape, method="finite-difference", step=0.5)
    >>> PointRunner(program, ["xa"], ["k"])([3.0], [2.0])
    (18.0, [9.0])
    """

    def __init__(
        self, program: DerivativeProgram, columns: Sequence[str], scalars: Sequence[str]
    ) -> None:
        if (program.step is not None and program.step.imaginary) or program.shifts:
            raise EngineError("complex steps and shifted inner variables need the numpy engine")
        self.program = program
        self.alone: dict[int, PointProgram] = {}
        reads = [read.output for run in program.passes for read in run.reads]
        wanted = list(dict.fromkeys((program.of[0], *reads)))
        self.wanted = wanted
        self.scalars = tuple(scalars)
        self.execute = PointProgram(program.tape, wanted)
        self.rule = program.step
        self.column_order = [columns.index(name) for name in self.execute.columns]
        # Scalars that are not given are seeds: each pass sets its own, behind those given.
        extra = [name for name in self.execute.scalars if name not in scalars]
        place = {name: i for i, name in enumerate((*scalars, *extra))}
        self.scalar_order = [place[name] for name in self.execute.scalars]
        self.wrt = program.wrt
        self.passes = [
            (
                [run.seeds.get(name, 0.0) for name in extra],
                place[run.shifted] if run.shifted else -1,
                run.steps.real,
                [(wanted.index(r.output), program.wrt.index(r.wrt), r.weight) for r in run.reads],
            )
            for run in program.passes
        ]
        self.shifted_at = [place[name] for name in program.wrt]

    def __call__(
        self, sample: Sequence[float], scalars: Sequence[float]
    ) -> tuple[float, list[float]]:
        """Value and derivatives for one sample; the caller silences numpy's warnings."""
        given = [sample[i] for i in self.column_order]
        rule, execute, order = self.rule, self.execute, self.scalar_order
        steps = [1.0] * len(self.wrt)
        if rule is not None:
            steps = [float(step_size(rule, scalars[i])) for i in self.shifted_at]
        totals = [0.0] * len(self.wrt)
        value: float | None = None
        for number, (seeds, moved, multiple, reads) in enumerate(self.passes):
            point = [*scalars, *seeds]
            if moved >= 0:
                point[moved] += multiple * steps[reads[0][1]]
            outputs = execute(given, [point[i] for i in order])
            if len(seeds) > 1 and not all(math.isfinite(outputs[o]) for o, _, _ in reads):
                # A seed of 0 that meets an infinity: see Runner._alone.
                outputs = self._alone(number)(given, scalars)
            if moved < 0 and value is None:
                value = outputs[0]
            for output, which, weight in reads:
                totals[which] += weight * outputs[output]
        if value is None:
            value = execute(given, [scalars[i] for i in order])[0]
        if rule is None:
            return value, totals
        return value, [total / step for total, step in zip(totals, steps, strict=True)]

    def _alone(self, number: int) -> Callable[[list[float], Sequence[float]], list[float]]:
        if number not in self.alone:
            seeded = with_seeds(self.program.tape, self.program.passes[number].seeds)
            self.alone[number] = PointProgram(seeded, self.wanted)
        program = self.alone[number]
        order = [self.scalars.index(name) for name in program.scalars]
        return lambda given, scalars: program(given, [scalars[i] for i in order])


def _float_function(name: str) -> Callable[..., float]:
    """A primitive on floats that never raises."""
    if name in _EXACT:
        return _EXACT[name]
    row = primitive(name)
    called = re.fullmatch(r"math\.(\w+)\(a\)", row.python)
    quick: Callable[..., Any] | None = getattr(math, called[1]) if called else None
    if name == "div":
        quick = operator.truediv
    whole = row.numpy
    if quick is None:
        # Python's own division would raise inside functions such as 1/cos(a)
        return lambda *arguments: float(whole(*map(np.float64, arguments)))

    def guarded(*arguments: float) -> float:
        try:
            return quick(*arguments)  # type: ignore[no-any-return]
        except (ZeroDivisionError, OverflowError, ValueError):
            with np.errstate(all="ignore"):
                return float(whole(*map(np.float64, arguments)))

    return guarded
