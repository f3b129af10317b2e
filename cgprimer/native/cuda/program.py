"""A plan as numbers that the interpreter's kernel reads.

An operation is five numbers: what to do, and four places. A place that is not negative is a row
of the block's table; ``-1 - k`` is number ``k`` of the uniform values. The columns that are read
have the first rows. What a group (a matrix, a block of products) needs besides stands in a list
of its own, ``table``, and its operation says where.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cgprimer.core.engines import Array
from cgprimer.native.plans.plan import Affine, Outer, Plan, Step
from cgprimer.native.plans.storage import rows

WORDS = 5
TILE = 4  # outputs of a matrix that a thread keeps in registers
STORE, SUM, DOT, AFFINE, OUTER = "store", "sum", "dot", "affine", "outer"


@dataclass(frozen=True, eq=False, repr=False)
class Program:
    """What the interpreter runs.

    Attributes:
        code: shape (operations + 1, WORDS), int32; the last one is there to be fetched only.
        names: what the numbers of operations stand for.
        table: rows and numbers of the groups, int32.
        columns: names of the columns, in the order of their rows.
        uniforms: the values in the order in which they are wanted; -1 stands for 0. First those
            that operations read, then the weights of matrices.
        operands: how many of them operations read.
        rows: number of rows, columns included.
        sums: accumulators that each thread has for itself: their numbers in the plan.
        shared_sums: accumulators that a block has as a whole.
        stored: for ``store``, the values that are given back, in order.
    """

    code: Array
    names: tuple[str, ...]
    table: Array
    columns: tuple[str, ...]
    uniforms: Array
    operands: int
    rows: int
    sums: tuple[int, ...]
    shared_sums: tuple[int, ...]
    stored: tuple[int, ...]


class _Encoder:
    """Collects numbers; see :func:`encoded`."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.names: dict[str, int] = {}
        self.code: list[tuple[int, ...]] = []
        self.table: list[int] = []
        self.uniforms: list[int] = []
        self.weights: list[int] = []
        self.uniform_at: dict[int, int] = {}
        self.sum_at: dict[int, int] = {}
        self.block_at: dict[int, int] = {}
        leaves = plan.tape.leaves
        read = {o for step in plan.varying for o in step.operands} | set(plan.outputs.values())
        columns = [i for i, leaf in enumerate(leaves) if leaf.kind == "column" and i in read]
        self.columns = tuple(leaves[i].name for i in columns)
        self.row = {value: row for row, value in enumerate(columns)}
        found = rows(plan)
        self.row.update({value: len(columns) + row for value, row in found.row_of.items()})
        self.rows = len(columns) + found.count

    def opcode(self, name: str) -> int:
        return self.names.setdefault(name, len(self.names))

    def place(self, value: int) -> int:
        row = self.row.get(value)
        if row is not None:
            return row
        if value not in self.uniform_at:
            self.uniform_at[value] = len(self.uniforms)
            self.uniforms.append(value)
        return -1 - self.uniform_at[value]

    def emit(self, name: str, target: int, *places: int) -> None:
        padded = (*places, -1, -1, -1)[:3]
        self.code.append((self.opcode(name), target, *padded))

    def step(self, step: Step, group: Affine | Outer | None) -> None:
        name, operands, results = step
        if isinstance(group, Affine):
            self.affine(group)
        elif isinstance(group, Outer):
            self.outer(group)
        elif name in (SUM, DOT):
            number = self.sum_at.setdefault(results[0], len(self.sum_at))
            self.emit(name, number, *map(self.place, operands))
        elif name == "sincos":
            self.emit(name, self.row[results[0]], self.place(operands[0]), self.row[results[1]])
        else:
            self.emit(name, self.row[results[0]], *map(self.place, operands))

    def affine(self, group: Affine) -> None:
        """Inputs, outputs, where among the weights its own begin, and the rows.

        The weights stand input by input, padded to whole tiles, then the biases.
        """
        count = len(group.outputs)
        padding = [-1] * (-count % TILE)
        start = len(self.weights)
        for i in range(len(group.inputs)):
            self.weights += [weights[i] for weights in group.weights] + padding
        self.weights += [*group.biases, *padding]
        self.emit(AFFINE, len(self.table))
        self.table += [len(group.inputs), count, start]
        self.table += [self.row[v] for v in (*group.inputs, *group.outputs)]

    def outer(self, group: Outer) -> None:
        self.emit(OUTER, len(self.table))
        self.table += [len(group.left), len(group.right)]
        self.table += [self.row[v] for v in (*group.left, *group.right)]
        for numbers in group.numbers:
            for n in numbers:
                at = self.block_at.setdefault(n, len(self.block_at)) if n >= 0 else -1
                self.table.append(at)


def encoded(plan: Plan, *, sums: bool) -> Program:
    """The numbers for a plan.

    >>> import cgprimer
    >>> from cgprimer.native.plans.making import plan
    >>> found = encoded(plan(cgprimer.tape(cgprimer.parse("xw = k*xa + m")), sums=True), sums=True)
    >>> found.names, found.code.tolist()[:2]
    (('fma', 'sum'), [[0, 1, -1, 0, -2], [1, 0, 1, -1, -1]])
    """
    encoder = _Encoder(plan)
    for position, step in enumerate(plan.varying):
        encoder.step(step, plan.groups.get(position))
    stored: tuple[int, ...] = ()
    if not sums:
        stored = tuple(dict.fromkeys(v for v in plan.outputs.values() if v in encoder.row))
        for k, value in enumerate(stored):
            encoder.emit(STORE, k, encoder.row[value])
    return Program(
        code=np.array([*encoder.code, (0, 0, 0, 0, 0)], np.int32),
        names=tuple(encoder.names),
        table=np.array(encoder.table or [0], np.int32),
        columns=encoder.columns,
        uniforms=np.array(encoder.uniforms + encoder.weights, np.int64),
        operands=len(encoder.uniforms),
        rows=max(1, encoder.rows),
        sums=tuple(encoder.sum_at),
        shared_sums=tuple(encoder.block_at),
        stored=stored,
    )


class Gather:
    """Picks the uniform values that a program reads out of all values.

    Args:
        program: says which, and in which order.
        real: type of the numbers.
    """

    def __init__(self, program: Program, real: Any) -> None:
        self.real = real
        self.wanted, self.inverse = np.unique(program.uniforms, return_inverse=True)
        self.values = [int(v) for v in self.wanted if v >= 0]
        self.nothing = len(self.wanted) - len(self.values)  # 1 if some place wants a plain 0

    def __call__(self, values: Sequence[Any]) -> Array:
        """The numbers as the kernel wants them; never empty."""
        known = [0.0] * self.nothing + [values[v] for v in self.values]
        found = np.array(known, self.real)[self.inverse] if known else np.zeros(1, self.real)
        return np.ascontiguousarray(found)


def outputs(plan: Plan, program: Program) -> Mapping[str, int]:
    """For each output that varies with the sample its number among the results.

    The results of sums are those of ``program.sums``, then those of ``program.shared_sums``.
    """
    if plan.summed:
        number = {n: k for k, n in enumerate((*program.sums, *program.shared_sums))}
        return {name: number[n] for name, n in plan.summed.items()}
    number = {value: k for k, value in enumerate(program.stored)}
    return {name: number[v] for name, v in plan.outputs.items() if v in number}
