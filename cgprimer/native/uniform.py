"""What no sample changes: computed once a call, with numpy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from cgprimer.core.primitives import arrays
from cgprimer.core.tape.tape import Tape
from cgprimer.native.arguments import as_scalars
from cgprimer.native.plans.plan import Step


class UniformValues:
    """The values of a tape or plan that do not vary with the sample.

    Args:
        tape: its leaves are the values that are given.
        steps: on such values alone, in the order in which they run; primitives, with one result.
        size: number of values.
        dtype: type of the numbers.
    """

    def __init__(self, tape: Tape, steps: Iterable[Step], size: int, dtype: Any) -> None:
        self.dtype, self.size = np.dtype(dtype), size
        self.real = self.dtype.type
        leaves = list(enumerate(tape.leaves))
        self.constants = [
            (i, self.real(leaf.value)) for i, leaf in leaves if leaf.kind == "constant"
        ]
        self.places = [i for i, leaf in leaves if leaf.kind == "scalar"]
        self.names = tape.of_kind("scalar")
        self.steps = [(arrays.function(name), operands, out) for name, operands, (out,) in steps]

    def __call__(self, scalars: Mapping[str, Any]) -> list[Any]:
        """All values that do not vary with the sample; None for the others."""
        values: list[Any] = [None] * self.size
        for index, value in self.constants:
            values[index] = value
        given = as_scalars(scalars, self.names, self.dtype)
        for index, number in zip(self.places, given, strict=True):
            values[index] = number
        with np.errstate(all="ignore"):
            for function, operands, result in self.steps:
                values[result] = self.real(function(*[values[o] for o in operands]))
        return values
