"""A plan as numbers: the code that the interpreter's handlers read.

One operation is five 32-bit words: the handler's number, the place of the result, the places of
up to three operands. Places are bytes: of rows in the block's buffer, of single numbers in the
uniform table. What needs more words (matrix kernels, functions of Python) has them in a side
table. All of it is plain arrays, so that it can be kept on disk.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from cgprimer.errors import EngineError
from cgprimer.native.cpu.handlers import TILE, UNROLL, opcodes
from cgprimer.native.plans.plan import Affine, Outer, Plan, Step
from cgprimer.native.plans.storage import rows

Array = Any
_BUFFER_BYTES = 2**19  # the live rows of a block: half of a second-level cache
_LARGEST_ROW = 2**12  # bytes; longer rows gain nothing
# Two units at least, even where the rows outgrow the cache: jumping to the next handler costs as
# much as working through one unit (measured on r10k). Beyond this size, memory costs more.
_PATIENCE_BYTES = 2**24
_LARGEST_BUFFER = 2**31 - 2**20  # places are 32-bit words


@dataclass(frozen=True, eq=False)
class Code:
    """A program of the interpreter.

    Attributes:
        main: for every block; preamble: once per thread; uniform: once per call, over rows of one
            unit, a row for each value; shape (operations, 5) each.
        side: further words.
        stride: bytes of a row; buffer: bytes of a block's buffer; unit: bytes of the shortest row.
        columns: names, in the order of the context's table; scalars likewise.
        table: the uniform table: scalars first, then ``constants``, then computed numbers.
        constants: values of the constants.
        given: for the uniform part, which of the table's numbers go to its first rows.
        computed: rows of the uniform part whose numbers end the table.
        weights: for each number that the matrix kernels read, its place in the table.
        sums: vectors of sums; places: for each accumulator its vector.
        results: values per sample, in the order of the context's table.
        fixed: for outputs that do not vary, the place in the table.
        summed: for outputs that are sums, the accumulator.
        functions: primitives that run in Python.
    """

    main: Array
    preamble: Array
    uniform: Array
    side: Array
    stride: int
    buffer: int
    unit: int
    columns: tuple[str, ...]
    scalars: tuple[str, ...]
    table: int
    constants: Array
    given: Array
    computed: Array
    weights: Array
    sums: int
    places: Array
    results: tuple[str, ...]
    fixed: dict[str, int]
    summed: dict[str, int]
    functions: tuple[str, ...]

    def to_bytes(self) -> bytes:
        """For the cache: a line that describes the arrays, then the arrays."""
        plain: dict[str, Any] = {}
        arrays = []
        for name, value in asdict(self).items():
            if isinstance(value, np.ndarray):
                arrays.append(np.ascontiguousarray(value))
                plain[name] = [value.dtype.str, *value.shape]
            else:
                plain[name] = value
        head = json.dumps(plain).encode() + b"\n"
        return head + b"".join(array.tobytes() for array in arrays)

    @classmethod
    def from_bytes(cls, data: bytes) -> Code:
        """The reverse."""
        head, _, rest = data.partition(b"\n")
        found: dict[str, Any] = json.loads(head)
        at = 0
        for field in fields(cls):
            value = found[field.name]
            if field.type == "Array":
                kind, shape = np.dtype(value[0]), tuple(value[1:])
                size = int(np.prod(shape)) * kind.itemsize
                found[field.name] = np.frombuffer(rest[at : at + size], kind).reshape(shape)
                at += size
            elif isinstance(value, list):
                found[field.name] = tuple(value)
        return cls(**found)


def encoded(plan: Plan, *, itemsize: int, lanes: int, tile: int) -> Code:
    """The code of a plan.

    Args:
        plan: what to run.
        itemsize: bytes of a number.
        lanes: numbers in a vector.
        tile: right-hand values in a tile of the outer kernel.
    """
    return _Encoder(plan, itemsize, lanes, tile).code()


class _Encoder:
    """Plan to code. Values get places first, then every step becomes an operation."""

    def __init__(self, plan: Plan, itemsize: int, lanes: int, tile: int) -> None:
        self.plan, self.itemsize, self.lanes, self.tile = plan, itemsize, lanes, tile
        self.opcodes = opcodes()
        leaves = plan.tape.leaves
        self.columns = [i for i, leaf in enumerate(leaves) if leaf.kind == "column"]
        self.scalars = [i for i, leaf in enumerate(leaves) if leaf.kind == "scalar"]
        constants = [i for i, leaf in enumerate(leaves) if leaf.kind == "constant"]
        # One constant more pads the matrices: the zero that changes no sum, not even that of -0.
        self.constants = [*(leaves[i].value for i in constants), -0.0]
        self.zero = len(self.scalars) + len(constants)
        computed = [value for step in plan.uniform for value in step.results]
        self.shared = {v: k for k, v in enumerate([*self.scalars, *constants, -1, *computed])}
        placed = rows(plan)
        self.unit = itemsize * lanes * UNROLL
        self.stride = self._stride(placed.count + len(self.columns))
        self.count = placed.count  # rows so far
        self.row = {value: number * self.stride for value, number in placed.row_of.items()}
        for index in self.columns:
            self.row[index] = self._new_row()
        self.scratch = self._new_row()  # results that nobody reads
        self.splats: dict[int, int] = {}
        self.side: list[int] = []
        self.weights: list[int] = []
        self.functions: dict[str, int] = {}
        self.sums = len(plan.accumulators)
        self.places = list(range(self.sums))

    def _stride(self, count: int) -> int:
        """Bytes of a row: as many units as keep the live rows in the cache."""
        units = min(_BUFFER_BYTES // max(1, count), _LARGEST_ROW) // self.unit
        least = 2 if 2 * count * self.unit <= _PATIENCE_BYTES else 1
        return self.unit * max(least, units)

    def _new_row(self) -> int:
        self.count += 1
        return (self.count - 1) * self.stride

    def code(self) -> Code:
        plan, leaves = self.plan, self.plan.tape.leaves
        uniform, given, computed = self._uniform()
        # Columns and scalars that a block reads, then the steps, then what is written per sample.
        used = {o for step in plan.varying for o in step.operands} | set(plan.outputs.values())
        main: list[tuple[int, ...]] = [
            (self.opcodes["load", ""], self.row[index], number, 0, 0)
            for number, index in enumerate(self.columns)
            if index in used
        ]
        groups = plan.groups
        main += [self._operation(s, groups.get(p)) for p, s in enumerate(plan.varying)]
        results = [
            name
            for name, value in plan.outputs.items()
            if name not in plan.summed and value not in self.shared
        ]
        for number, name in enumerate(results):
            main.append((self.opcodes["store", ""], number, self.row[plan.outputs[name]], 0, 0))
        end = (self.opcodes["end", ""], 0, 0, 0, 0)
        preamble = [
            (self.opcodes["splat", ""], row, self.shared[value] * self.itemsize, 0, 0)
            for value, row in self.splats.items()
        ]
        if self.count * self.stride > _LARGEST_BUFFER:
            raise EngineError("the tape has too many live values for this machine's code")
        return Code(
            main=np.array([*main, end, end], np.int32),
            preamble=np.array([*preamble, end, end], np.int32),
            uniform=uniform,
            side=np.array(self.side or [0], np.int32),
            stride=self.stride,
            buffer=self.count * self.stride,
            unit=self.unit,
            columns=tuple(leaves[i].name for i in self.columns),
            scalars=tuple(leaves[i].name for i in self.scalars),
            table=len(self.shared),
            constants=np.array(self.constants),
            given=given,
            computed=computed,
            weights=np.array(self.weights, np.int64),
            sums=self.sums,
            places=np.array(self.places, np.int64),
            results=tuple(results),
            fixed={
                name: self.shared[value]
                for name, value in plan.outputs.items()
                if name not in plan.summed and value in self.shared
            },
            summed=dict(plan.summed),
            functions=tuple(self.functions),
        )

    def _uniform(self) -> tuple[Array, Array, Array]:
        """The steps that run once a call: every value has a row of one unit, and none is reused.

        Returns the operations, the table's places that fill the first rows, and the rows that
        fill the end of the table.
        """
        steps, unit = self.plan.uniform, self.unit
        made = {value for step in steps for value in step.results}
        read = {o for step in steps for o in step.operands} - made
        place = {value: k * unit for k, value in enumerate([*sorted(read), *sorted(made)])}
        operations: list[tuple[int, ...]] = []
        for name, operands, results in steps:
            words = [place[o] for o in operands]
            if name == "sincos":
                operations.append(
                    (self.opcodes[name, ""], place[results[0]], words[0], place[results[1]], 0)
                )
            elif (name, "r" * len(words)) in self.opcodes:
                code = self.opcodes[name, "r" * len(words)]
                operations.append((code, place[results[0]], *words, *(0,) * (3 - len(words))))
            else:
                operations.append(self._python(name, place[results[0]], words))
        operations += [(self.opcodes["end", ""], 0, 0, 0, 0)] * 2
        given = [self.shared[value] for value in sorted(read)]
        computed = [place[value] // unit for step in steps for value in step.results]
        return (
            np.array(operations, np.int32), np.array(given, np.int64), np.array(computed, np.int64)
        )  # fmt: skip

    # --- operations ------------------------------------------------------------------------------

    def _operation(self, step: Step, group: Affine | Outer | None) -> tuple[int, ...]:
        name, operands, results = step
        if group is not None:
            make = self._affine if isinstance(group, Affine) else self._outer
            return (self.opcodes[name, ""], make(group), 0, 0, 0)  # type: ignore[arg-type]
        row = self.row
        if name == "sincos":
            sine, cosine = row[results[0]], row[results[1]]
            return (self.opcodes[name, ""], sine, self._row_of(operands[0]), cosine, 0)
        if name in ("sum", "dot"):
            total = self.places[results[0]] * self.lanes * 8
            words = [self._row_of(o) for o in operands]
            return (self.opcodes[name, ""], total, *words, *(0,) * (3 - len(words)))
        pattern = "".join(["r" if o in row else "s" for o in operands])
        if pattern.startswith("sr") and name in ("fma", "fms", "fnma"):
            operands = (operands[1], operands[0], operands[2])
            pattern = "rs" + pattern[2]
        code = self.opcodes.get((name, pattern))
        if code is None:
            words = [self._row_of(o) for o in operands]
            code = self.opcodes.get((name, "r" * len(words)))
            if code is None:
                return self._python(name, row[results[0]], words)
        else:
            shared, size = self.shared, self.itemsize
            words = [row[o] if o in row else shared[o] * size for o in operands]
        return (code, row[results[0]], *words, *(0,) * (3 - len(words)))

    def _row_of(self, value: int) -> int:
        """The row of a value; one that does not vary gets a row that is filled beforehand."""
        found = self.row.get(value)
        if found is None:
            found = self.splats.get(value)
        if found is None:
            found = self.splats[value] = self._new_row()
        return found

    def _python(self, name: str, result: int, words: list[int]) -> tuple[int, ...]:
        number = self.functions.setdefault(name, len(self.functions))
        words = [*words, *[words[0]] * (3 - len(words))]
        return (self.opcodes["call", ""], self._aside([number, result, *words]), 0, 0, 0)

    def _aside(self, words: list[int]) -> int:
        """Further words; returns their place in bytes."""
        self.side.extend(words)
        return 4 * (len(self.side) - len(words))

    def _affine(self, group: Affine) -> int:
        shared, zero = self.shared, self.zero
        begin = len(self.weights)
        outputs = list(group.outputs)
        missing = -len(outputs) % TILE
        targets = [self.row[o] for o in outputs] + [self.scratch] * missing
        empty = [zero] * len(group.inputs)
        matrix = [[shared[w] for w in line] for line in group.weights] + [empty] * missing
        biases = [shared[b] if b >= 0 else zero for b in group.biases] + [zero] * missing
        for first in range(0, len(targets), TILE):
            self.weights += biases[first : first + TILE]
            for column in zip(*matrix[first : first + TILE], strict=True):
                self.weights += column
        inputs = [self._row_of(i) for i in group.inputs]
        return self._aside(
            [len(inputs), len(targets) // TILE, begin * self.itemsize, *inputs, *targets]
        )

    def _outer(self, group: Outer) -> int:
        left = [self._row_of(v) for v in group.left]
        right = [self._row_of(v) for v in group.right]
        left += [left[-1]] * (-len(left) % TILE)
        right += [right[-1]] * (-len(right) % self.tile)
        columns = len(right) // self.tile
        for i, line in enumerate(group.numbers):
            for j, number in enumerate(line):
                if number >= 0:  # tile after tile, row after row in each
                    block = i // TILE * columns + j // self.tile
                    inside = i % TILE * self.tile + j % self.tile
                    self.places[number] = self.sums + block * TILE * self.tile + inside
        begin = self.sums
        self.sums += len(left) * len(right)
        return self._aside([len(left) // TILE, columns, begin * self.lanes * 8, *left, *right])
