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

from cgprimer.primitives import primitive
from cgprimer.tapes.passes import optimize
from cgprimer.tapes.tape import Tape

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
        return lambda *arguments: float(whole(*arguments))

    def guarded(*arguments: float) -> float:
        try:
            return quick(*arguments)  # type: ignore[no-any-return]
        except (ZeroDivisionError, OverflowError, ValueError):
            return float(whole(*map(np.float64, arguments)))

    return guarded
