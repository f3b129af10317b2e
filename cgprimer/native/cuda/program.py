"""A plan's program as the interpreter's kernel reads it.

A place that is not negative is a row of the block's table; ``-1 - k`` is number ``k`` of the
uniform values. Groups stand in a list of their own, ``table``, and their operations say where.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cgprimer.core.engines import Array
from cgprimer.native.encoding import Program, encoded
from cgprimer.native.plans.plan import Plan

PAIRS = (2, 2)  # values of a block of products that a thread multiplies at a time


@dataclass(frozen=True, eq=False, repr=False)
class DeviceProgram:
    """What the GPU's interpreter runs.

    Attributes:
        program: the numbers as all interpreters have them.
        code: shape (operations + 1, WORDS), int32; the last one is there to be fetched only.
        table: counts, beginnings and rows of the groups, int32.
        columns: names of the columns, in the order of their rows.
        operands: the uniform values that operations read, in the order of their numbers.
    """

    program: Program
    code: Array
    table: Array
    columns: tuple[str, ...]
    operands: tuple[int, ...]


def device_program(plan: Plan) -> DeviceProgram:
    """The numbers for a plan.

    >>> import cgprimer
    >>> from cgprimer.native.plans.making import plan
    >>> found = device_program(plan(cgprimer.tape(cgprimer.parse("xw = k*xa + m")), sums=True))
    >>> found.operands, found.code.tolist()[:2]
    ((1, 2), [[0, 1, -1, 0, -2], [1, 0, 1, 0, 0]])
    """
    program = encoded(plan, tile=PAIRS)
    places = program.main.code[:, 2:]
    read = np.unique(~places[places < 0])
    code = np.zeros((len(places) + 1, program.main.code.shape[1]), np.int32)
    code[:-1] = program.main.code
    code[:-1, 2:] = np.where(places < 0, ~np.searchsorted(read, ~places), places)
    at: list[int] = []
    table: list[int] = []
    for group in program.main.groups:
        at.append(len(table))
        table += [*group.counts, group.begin, *group.rows]
    grouped = [name in ("affine", "outer") and not pattern for name, pattern in program.handlers]
    inside = np.flatnonzero(np.array([*grouped, False])[code[:-1, 0]])
    code[inside, 1] = np.array([*at, 0])[code[inside, 1]]
    return DeviceProgram(
        program,
        code,
        np.array(table or [0], np.int32),
        tuple(plan.tape.leaves[value].name for value in program.columns),
        tuple(read.tolist()),
    )


class Gather:
    """Picks the uniform values that a program reads, then the weights of its matrices.

    Args:
        found: says which.
        real: type of the numbers.
    """

    def __init__(self, found: DeviceProgram, real: Any) -> None:
        self.real = real
        wanted = [*found.operands, *found.program.weights]
        self.size = len(wanted)
        self.values, self.inverse = np.unique(np.array(wanted, np.int64), return_inverse=True)

    def __call__(self, values: Sequence[Any]) -> Array:
        """The numbers as the kernel wants them; never empty."""
        if not self.size:
            return np.zeros(1, self.real)
        known = [values[v] if v >= 0 else -0.0 for v in self.values.tolist()]
        return np.ascontiguousarray(np.array(known, self.real)[self.inverse])


def outputs(plan: Plan, program: Program) -> Mapping[str, int]:
    """For each output that varies with the sample its number among the results."""
    if plan.summed:
        return {name: program.places[number] for name, number in plan.summed.items()}
    number = {value: k for k, value in enumerate(program.stored)}
    return {name: number[v] for name, v in plan.outputs.items() if v in number}
