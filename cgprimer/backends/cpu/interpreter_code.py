"""The interpreter's code: an encoded plan with operands as byte offsets.

Operands are byte offsets of rows in the block's buffer, or of scalars in the uniform table. The
extended operands of affine groups, outer products and Python calls are in a side table. The code
consists of plain arrays, so that it can be cached on disk.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from cgprimer.backends.cpu.interpreter_handlers import UNROLL, number_opcodes
from cgprimer.backends.interfaces import Array
from cgprimer.backends.plan_encoding import CALL, TILE, WORDS, CodeSection, EncodedPlan, encode_plan
from cgprimer.backends.plans.plan import Plan
from cgprimer.errors import EngineError

_BUFFER_BYTES = 2**19  # the live rows of a block: half of a second-level cache
_LARGEST_ROW = 2**12  # bytes; longer rows gain nothing
# Rows have at least two units, even if they exceed the cache: a jump to the next handler costs as
# much as the work on one unit (measured). Beyond this size, memory access costs more.
_PATIENCE_BYTES = 2**24
_LARGEST_BUFFER = 2**31 - 2**20  # offsets are 32-bit integers


@dataclass(frozen=True, eq=False)
class InterpreterCode:
    """Code of the interpreter; arrays of operations have the shape (operations, 5)."""

    main: Array  #: operations for every block
    preamble: Array  #: operations once per thread
    uniform: Array  #: operations once per call, on rows of one unit
    side: Array  #: extended operands
    stride: int  #: bytes of a row
    buffer: int  #: bytes of a block's buffer
    unit: int  #: bytes of the shortest row
    columns: tuple[str, ...]  #: names, in the order of the addresses
    scalars: tuple[str, ...]
    table: int  #: size of the uniform table: scalars, constants, computed values, weights
    constants: Array
    count: int  #: number of vectors of sums, or of outputs per sample
    reads: Array  #: for each output, its index among the results, then ``fixed``
    fixed: Array  #: for uniform outputs, the index in the table
    functions: tuple[str, ...]  #: primitives that are Python functions

    def to_bytes(self) -> bytes:
        """Serialize the code: a line of JSON that describes the arrays, then the arrays."""
        plain: dict[str, Any] = {}
        arrays = []
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                arrays.append(np.ascontiguousarray(value))
                plain[name] = [value.dtype.str, *value.shape]
            else:
                plain[name] = value
        head = json.dumps(plain).encode() + b"\n"
        return head + b"".join(array.tobytes() for array in arrays)

    @classmethod
    def from_bytes(cls, data: bytes) -> InterpreterCode:
        """Return the code from its serialized form."""
        head, _, rest = data.partition(b"\n")
        values: dict[str, Any] = json.loads(head)
        offset = 0
        for field in fields(cls):
            value = values[field.name]
            if field.type == "Array":
                kind, shape = np.dtype(value[0]), tuple(value[1:])
                size = int(np.prod(shape)) * kind.itemsize
                values[field.name] = np.frombuffer(rest[offset : offset + size], kind).reshape(
                    shape
                )
                offset += size
            elif isinstance(value, list):
                values[field.name] = tuple(value)
        return cls(**values)


def encode_for_interpreter(plan: Plan, tile: int) -> EncodedPlan:
    """Encode a plan, with ``tile`` right factors per tile of an outer product."""
    return encode_plan(plan, tile=(TILE, tile), available=number_opcodes())


class UniformTable:
    """Layout of the table of uniform values: scalars, constants, computed values.

    Attributes:
        scalars: the scalars of the tape.
        constants: the constants, and -0.0, which pads matrices: adding it never changes a sum.
        place: value -> index in the table; the padding has the value -1.
    """

    def __init__(self, plan: Plan) -> None:
        leaves = list(enumerate(plan.tape.leaves))
        self.scalars = [i for i, leaf in leaves if leaf.kind == "scalar"]
        constants = [(i, leaf.value) for i, leaf in leaves if leaf.kind == "constant"]
        self.constants = [*(value for _, value in constants), -0.0]
        computed = (value for step in plan.uniform for value in step.results)
        values = [*self.scalars, *(i for i, _ in constants), -1, *computed]
        self.place = {value: k for k, value in enumerate(values)}


_ROWS, _GROUPS = -1, 0


def _counted_in(name: str, pattern: str, lanes: int) -> int:
    """Return the unit of an operation's result: rows, groups, or a number of bytes."""
    if pattern:
        return _GROUPS if pattern == CALL else _ROWS
    units = {"affine": _GROUPS, "outer": _GROUPS, "sum": 8 * lanes, "dot": 8 * lanes, "store": 1}
    return units.get(name, _ROWS)


def assemble(plan: Plan, *, itemsize: int, lanes: int, tile: int) -> InterpreterCode:
    """Translate a plan to interpreter code.

    Args:
        plan: the plan.
        itemsize: bytes of a number.
        lanes: numbers of a vector register.
        tile: right factors per tile of an outer product.
    """
    return _Assembler(plan, itemsize, lanes, tile).assemble()


class _Assembler:
    """Translation of an encoded plan to byte offsets."""

    def __init__(self, plan: Plan, itemsize: int, lanes: int, tile: int) -> None:
        self.plan, self.itemsize, self.lanes = plan, itemsize, lanes
        self.program, self.table = encode_for_interpreter(plan, tile), UniformTable(plan)
        self.opcodes = number_opcodes()
        self.unit = itemsize * lanes * UNROLL
        # As many units per row as keep the live rows in the cache.
        units = min(_BUFFER_BYTES // max(1, self.program.rows), _LARGEST_ROW) // self.unit
        min_units = 2 if 2 * self.program.rows * self.unit <= _PATIENCE_BYTES else 1
        self.stride = self.unit * max(min_units, units)
        if self.program.rows * self.stride > _LARGEST_BUFFER:
            raise EngineError("the tape has too many live values for the interpreter's buffer")
        self.side: list[int] = []

    def assemble(self) -> InterpreterCode:
        plan, program, table, leaves = self.plan, self.program, self.table, self.plan.tape.leaves
        indices = (i for i, leaf in enumerate(leaves) if leaf.kind == "column")
        columns = {index: number for number, index in enumerate(indices)}
        loads = [
            self._operation("load", row * self.stride, columns[value])
            for row, value in enumerate(program.columns)
        ]
        filled = [
            self._operation("splat", row * self.stride, self._table_offset(value))
            for row, value in program.filled
        ]
        end = self._operation("end", 0)
        main = self._translate(program.main, self.stride)
        uniform, uniform_rows = self._uniform_code()
        stored = {value: k for k, value in enumerate(program.stored)}
        count = program.sums if plan.accumulators else len(stored)
        fixed = [name for name, value in plan.outputs.items() if value in table.place]
        reads = {name: stored[v] for name, v in plan.outputs.items() if v in stored}
        reads |= {name: program.sum_slots[k] for name, k in plan.summed.items()}
        reads |= {name: count + k for k, name in enumerate(fixed)}
        return InterpreterCode(
            main=np.concatenate([np.array(loads, np.int32).reshape(-1, WORDS), main]),
            preamble=np.array([*filled, end, end], np.int32),
            uniform=uniform,
            side=np.array(self.side or [0], np.int32),
            stride=self.stride,
            buffer=max(program.rows, -(-uniform_rows * self.unit // self.stride)) * self.stride,
            unit=self.unit,
            columns=tuple(leaves[i].name for i in columns),
            scalars=tuple(leaves[i].name for i in table.scalars),
            table=len(table.place) + len(program.weights),
            constants=np.array(table.constants),
            count=count,
            reads=np.array([reads[name] for name in plan.tape.outputs], np.int64),
            fixed=np.array([table.place[plan.outputs[name]] for name in fixed], np.int64),
            functions=program.functions,
        )

    def _uniform_code(self) -> tuple[Array, int]:
        """Return the operations that run once per call, and the number of rows that they use.

        They work on rows; their inputs and results are in the uniform table.
        """
        program, end = self.program, self._operation("end", 0)
        uniform = self._translate(program.uniform, self.unit)
        inputs = [
            self._operation("splat", row * self.unit, self._table_offset(value))
            for row, value in enumerate(program.uniform_inputs)
        ]
        computed = sorted(value for step in self.plan.uniform for value in step.results)
        after = [
            self._operation("store_uniform", self._table_offset(value), row * self.unit)
            for row, value in enumerate(computed, len(inputs))
        ]
        if program.weights:
            after.append(self._operation("gather_weights", 4 * len(self.side)))
            sources = [self._table_offset(value) for value in program.weights]
            self.side += [len(sources), len(self.table.place) * self.itemsize, *sources]
        before_code, after_code = (
            np.array(part, np.int32).reshape(-1, WORDS) for part in (inputs, [*after, end, end])
        )
        code = np.concatenate([before_code, uniform[:-2], after_code])
        return code, len(inputs) + len(computed)

    def _translate(self, section: CodeSection, row: int) -> Array:
        """Return operations with byte offsets, and two ``end``: handlers look two ahead.

        Args:
            section: encoded operations.
            row: bytes of a row.
        """
        side_offsets = self._add_extended_operands(section, row)
        code, out = section.code, np.zeros((len(section.code) + 2, WORDS), np.int32)
        out[:, 0] = self.opcodes["end", ""]
        if not len(code):
            return out
        handlers = self.program.handlers
        numbers = [self.opcodes[(CALL, "") if p == CALL else (n, p)] for n, p in handlers]
        counted = np.array([_counted_in(*handler, self.lanes) for handler in handlers])
        target, operands, unit_of = code[:, 1], code[:, 2:], counted[code[:, 0]]
        in_side = np.array([*side_offsets, 0])[np.where(unit_of == _GROUPS, target, -1)]
        out[:-2, 0] = np.array(numbers)[code[:, 0]]
        out[:-2, 1] = in_side + target * np.where(unit_of == _ROWS, row, unit_of)
        place = np.zeros(self.plan.size, np.int64)
        for value, index in self.table.place.items():
            if value >= 0:
                place[value] = index
        shared = place[np.where(operands < 0, ~operands, 0)] * self.itemsize
        out[:-2, 2:] = np.where(operands < 0, shared, operands * row)
        return out

    def _add_extended_operands(self, section: CodeSection, row: int) -> list[int]:
        """Append extended operands to the side table, and return the offset of each group."""
        scale = {"affine": self.itemsize, "outer": self.lanes * 8, CALL: 1}
        offsets = []
        for group in section.groups:
            offsets.append(4 * len(self.side))
            start = len(self.table.place) * self.itemsize if group.name == "affine" else 0
            self.side.extend((*group.counts, start + group.offset * scale[group.name]))
            self.side.extend(r * row for r in group.rows)
        return offsets

    def _operation(self, name: str, target: int, operand: int = 0) -> tuple[int, ...]:
        return self.opcodes[name, ""], target, operand, 0, 0

    def _table_offset(self, value: int) -> int:
        return int(self.table.place[value]) * self.itemsize
