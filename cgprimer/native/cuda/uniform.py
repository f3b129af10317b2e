"""What no sample changes: computed once a call, on the host, with numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from cgprimer.core.engines import Array
from cgprimer.core.primitives import primitive
from cgprimer.core.tape.passes import variance
from cgprimer.core.tape.tape import Tape
from cgprimer.native.arguments import as_scalars
from cgprimer.native.plans.plan import Step

_FUSED: dict[str, Callable[..., Array]] = {
    "fma": lambda a, b, c: a * b + c,
    "fms": lambda a, b, c: a * b - c,
    "fnma": lambda a, b, c: c - a * b,
}


def uniform_steps(tape: Tape) -> list[Step]:
    """The instructions of a tape that do not vary with the sample."""
    kinds = variance(tape)
    first = len(tape.leaves)
    return [
        Step(name, operands, (first + position,))
        for position, (name, operands) in enumerate(tape.instructions)
        if kinds[first + position] != "column"
    ]


class Uniform:
    """The uniform part of a tape or plan.

    Args:
        tape: its leaves are the values that are given.
        steps: in the order in which they run.
        size: number of values.
        dtype: type of the numbers.
    """

    def __init__(self, tape: Tape, steps: Iterable[Step], size: int, dtype: str) -> None:
        self.real = np.dtype(dtype).type
        self.start: list[Any] = [None] * size
        self.names: list[str] = []
        self.places: list[int] = []
        for index, leaf in enumerate(tape.leaves):
            if leaf.kind == "constant":
                self.start[index] = self.real(leaf.value)
            elif leaf.kind == "scalar":
                self.names.append(leaf.name)
                self.places.append(index)
        self.steps = [(self._functions(step.name), step.operands, step.results) for step in steps]

    @staticmethod
    def _functions(name: str) -> tuple[Callable[..., Array], ...]:
        if name == "sincos":
            return (np.sin, np.cos)
        return (_FUSED.get(name) or primitive(name).numpy,)

    def __call__(self, scalars: Mapping[str, Any]) -> list[Any]:
        """All values that do not vary with the sample; None for the others."""
        values = self.start.copy()
        real = self.real
        for index, value in zip(
            self.places, as_scalars(scalars, self.names, self.real), strict=True
        ):
            values[index] = value
        with np.errstate(all="ignore"):
            for functions, operands, results in self.steps:
                arguments = [values[o] for o in operands]
                for function, result in zip(functions, results, strict=True):
                    values[result] = real(function(*arguments))
        return values
