"""The code of the interpreter: an encoded plan with operands as byte offsets.

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
    """Code for the interpreter: operations as integers, and the layout of its memory."""

    main: Array  #: operations for every block of samples
    preamble: Array  #: operations that run once per thread
    uniform: Array  #: operations that run once per call, on rows of one unit
    side: Array  #: extended operands
    stride: int  #: bytes per row
    buffer: int  #: bytes of a block's buffer
    unit: int  #: bytes of the shortest row
    columns: tuple[str, ...]  #: names, in the order of the addresses
    scalars: tuple[str, ...]
    table_size: int  #: size of the uniform table: scalars, constants, computed values, weights
    constants: Array
    result_count: int  #: number of vectors of sums, or of outputs per sample
    output_slots: Array  #: for each output, its index among the results, then the uniform outputs
    uniform_slots: Array  #: for each uniform output, its index in the uniform table
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
        """Deserialize code that :meth:`to_bytes` serialized."""
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
    """Encode an execution plan as integers for the interpreter on the CPU."""
    return encode_plan(plan, tile=(TILE, tile), available=number_opcodes())


class UniformTable:
    """Layout of the table of values that do not vary with the sample.

    Attributes:
        scalars: the scalars of the tape.
        constants: the constants, and -0.0, which pads matrices: adding it never changes a sum.
        slots: value -> index in the table; the padding has the value -1.
    """

    def __init__(self, plan: Plan) -> None:
        leaves = list(enumerate(plan.tape.leaves))
        self.scalars = [i for i, leaf in leaves if leaf.kind == "scalar"]
        constants = [(i, leaf.value) for i, leaf in leaves if leaf.kind == "constant"]
        self.constants = [*(value for _, value in constants), -0.0]
        computed = (value for step in plan.uniform for value in step.results)
        values = [*self.scalars, *(i for i, _ in constants), -1, *computed]
        self.slots = {value: k for k, value in enumerate(values)}


_ROWS, _GROUPS = -1, 0


def _get_result_unit(name: str, pattern: str, lanes: int) -> int:
    """Return the unit of an operation's result index: row, operand group or bytes."""
    if pattern:
        return _GROUPS if pattern == CALL else _ROWS
    units = {"affine": _GROUPS, "outer": _GROUPS, "sum": 8 * lanes, "dot": 8 * lanes, "store": 1}
    return units.get(name, _ROWS)


def assemble(plan: Plan, *, itemsize: int, lanes: int, tile: int) -> InterpreterCode:
    """Translate an execution plan to interpreter code.

    Args:
        plan: the execution plan.
        itemsize: bytes per element.
        lanes: elements per vector register.
        tile: right factors per tile of an outer product.
    """
    return _Assembler(plan, itemsize, lanes, tile).assemble()


class _Assembler:
    """Translator from execution plans to interpreter code."""

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
            raise EngineError(
                f"the interpreter of the engine 'cpu' supports at most "
                f"{_LARGEST_BUFFER // self.stride} live values, got {self.program.rows}"
            )
        self.side: list[int] = []

    def assemble(self) -> InterpreterCode:
        """Translate the execution plan to interpreter code."""
        plan, program, table, leaves = self.plan, self.program, self.table, self.plan.tape.leaves
        indices = (i for i, leaf in enumerate(leaves) if leaf.kind == "column")
        columns = {index: number for number, index in enumerate(indices)}
        loads = [
            self._encode_operation("load", row * self.stride, columns[value])
            for row, value in enumerate(program.columns)
        ]
        splats = [
            self._encode_operation("splat", row * self.stride, self._get_table_offset(value))
            for row, value in program.filled
        ]
        end = self._encode_operation("end", 0)
        main = self._translate_section(program.main, self.stride)
        uniform, uniform_rows = self._translate_uniform_section()
        stored = {value: k for k, value in enumerate(program.stored)}
        count = program.sums if plan.accumulators else len(stored)
        uniform_outputs = [name for name, value in plan.outputs.items() if value in table.slots]
        slots = {name: stored[v] for name, v in plan.outputs.items() if v in stored}
        slots |= {name: program.sum_slots[k] for name, k in plan.summed.items()}
        slots |= {name: count + k for k, name in enumerate(uniform_outputs)}
        return InterpreterCode(
            main=np.concatenate([np.array(loads, np.int32).reshape(-1, WORDS), main]),
            preamble=np.array([*splats, end, end], np.int32),
            uniform=uniform,
            side=np.array(self.side or [0], np.int32),
            stride=self.stride,
            buffer=max(program.rows, -(-uniform_rows * self.unit // self.stride)) * self.stride,
            unit=self.unit,
            columns=tuple(leaves[i].name for i in columns),
            scalars=tuple(leaves[i].name for i in table.scalars),
            table_size=len(table.slots) + len(program.weights),
            constants=np.array(table.constants),
            result_count=count,
            output_slots=np.array([slots[name] for name in plan.tape.outputs], np.int64),
            uniform_slots=np.array(
                [table.slots[plan.outputs[name]] for name in uniform_outputs], np.int64
            ),
            functions=program.functions,
        )

    def _translate_uniform_section(self) -> tuple[Array, int]:
        """Translate the operations that run once per call; also return their number of buffer rows.

        The operations compute on rows; their inputs and results are in the uniform table.
        """
        program, end = self.program, self._encode_operation("end", 0)
        uniform = self._translate_section(program.uniform, self.unit)
        inputs = [
            self._encode_operation("splat", row * self.unit, self._get_table_offset(value))
            for row, value in enumerate(program.uniform_inputs)
        ]
        computed = sorted(value for step in self.plan.uniform for value in step.results)
        after = [
            self._encode_operation("store_uniform", self._get_table_offset(value), row * self.unit)
            for row, value in enumerate(computed, len(inputs))
        ]
        if program.weights:
            after.append(self._encode_operation("gather_weights", 4 * len(self.side)))
            sources = [self._get_table_offset(value) for value in program.weights]
            self.side += [len(sources), len(self.table.slots) * self.itemsize, *sources]
        before_code, after_code = (
            np.array(part, np.int32).reshape(-1, WORDS) for part in (inputs, [*after, end, end])
        )
        code = np.concatenate([before_code, uniform[:-2], after_code])
        return code, len(inputs) + len(computed)

    def _translate_section(self, section: CodeSection, row: int) -> Array:
        """Translate a code section: replace indices of operands by byte offsets.

        The result ends with two ``end`` operations, because each handler loads the address of the
        handler two operations ahead.

        Args:
            section: encoded operations.
            row: bytes per row.
        """
        side_offsets = self._append_extended_operands(section, row)
        code, out = section.code, np.zeros((len(section.code) + 2, WORDS), np.int32)
        out[:, 0] = self.opcodes["end", ""]
        if not len(code):
            return out
        handlers = self.program.handlers
        opcodes = [self.opcodes[(CALL, "") if p == CALL else (n, p)] for n, p in handlers]
        units = np.array([_get_result_unit(*handler, self.lanes) for handler in handlers])
        result, operands, unit = code[:, 1], code[:, 2:], units[code[:, 0]]
        group_offsets = np.array([*side_offsets, 0])[np.where(unit == _GROUPS, result, -1)]
        out[:-2, 0] = np.array(opcodes)[code[:, 0]]
        out[:-2, 1] = group_offsets + result * np.where(unit == _ROWS, row, unit)
        slots = np.zeros(self.plan.size, np.int64)
        for value, slot in self.table.slots.items():
            if value >= 0:
                slots[value] = slot
        table_offsets = slots[np.where(operands < 0, ~operands, 0)] * self.itemsize
        out[:-2, 2:] = np.where(operands < 0, table_offsets, operands * row)
        return out

    def _append_extended_operands(self, section: CodeSection, row: int) -> list[int]:
        """Append additional operands of operations to the side table; return their offsets."""
        scale = {"affine": self.itemsize, "outer": self.lanes * 8, CALL: 1}
        offsets = []
        for group in section.groups:
            offsets.append(4 * len(self.side))
            start = len(self.table.slots) * self.itemsize if group.name == "affine" else 0
            self.side.extend((*group.counts, start + group.offset * scale[group.name]))
            self.side.extend(r * row for r in group.rows)
        return offsets

    def _encode_operation(self, name: str, result: int, operand: int = 0) -> tuple[int, ...]:
        """Encode an operation as five integers: opcode, result, three operands."""
        return self.opcodes[name, ""], result, operand, 0, 0

    def _get_table_offset(self, value: int) -> int:
        """Return the byte offset of a uniform value in the uniform table."""
        return int(self.table.slots[value]) * self.itemsize
