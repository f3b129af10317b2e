"""The interpreter's code: a program's numbers as places in memory.

Places are bytes: of rows in the block's buffer, of single numbers in the uniform table. What needs
more words than an operation has (matrix kernels, functions of Python) has them in a side table. All
of it is plain arrays, so that it can be kept on disk.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from cgprimer.errors import EngineError
from cgprimer.native.cpu.handlers import UNROLL, opcodes
from cgprimer.native.encoding import CALL, TILE, WORDS, Part, Program, encoded
from cgprimer.native.plans.plan import Plan

Array = Any
_BUFFER_BYTES = 2**19  # the live rows of a block: half of a second-level cache
_LARGEST_ROW = 2**12  # bytes; longer rows gain nothing
# Two units at least, even where the rows outgrow the cache: jumping to the next handler costs as
# much as working through one unit (measured on r10k). Beyond this size, memory costs more.
_PATIENCE_BYTES = 2**24
_LARGEST_BUFFER = 2**31 - 2**20  # places are 32-bit words


@dataclass(frozen=True, eq=False)
class Code:
    """A program of the interpreter; operations have the shape (operations, 5)."""

    main: Array  #: for every block
    preamble: Array  #: once per thread
    uniform: Array  #: once per call, on rows of one unit
    side: Array  #: further words
    stride: int  #: bytes of a row
    buffer: int  #: bytes of a block's buffer
    unit: int  #: bytes of the shortest row
    columns: tuple[str, ...]  #: names, in the order of the addresses
    scalars: tuple[str, ...]
    table: int  #: numbers that no sample changes: scalars, constants, computed ones, weights
    constants: Array
    count: int  #: vectors of sums, or outputs per sample
    reads: Array  #: of each output: its number among ``count``, then ``fixed``
    fixed: Array  #: for outputs that do not vary, the place in the table
    functions: tuple[str, ...]  #: primitives that run in Python

    def to_bytes(self) -> bytes:
        """For the cache: a line that describes the arrays, then the arrays."""
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


def program_of(plan: Plan, tile: int) -> Program:
    """The program of a plan; an outer kernel takes so many right-hand values at a time."""
    return encoded(plan, tile=(TILE, tile), known=opcodes())


class UniformTable:
    """The numbers that no sample changes: scalars, constants, computed ones.

    Attributes:
        scalars: the tape's values; constants: what they are.
        place: of each value. One constant more pads the matrices: the zero that changes no sum,
            not even that of -0; it is value -1.
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
    """What an operation's result is counted in: rows, groups, else so many bytes."""
    if pattern:
        return _GROUPS if pattern == CALL else _ROWS
    own = {"affine": _GROUPS, "outer": _GROUPS, "sum": 8 * lanes, "dot": 8 * lanes, "store": 1}
    return own.get(name, _ROWS)


def assembled(plan: Plan, *, itemsize: int, lanes: int, tile: int) -> Code:
    """The code of a plan, for numbers of so many bytes in vectors of so many lanes."""
    program, table = program_of(plan, tile), UniformTable(plan)
    leaves, number = plan.tape.leaves, opcodes()
    unit = itemsize * lanes * UNROLL
    # As many units as keep the live rows in the cache.
    units = min(_BUFFER_BYTES // max(1, program.rows), _LARGEST_ROW) // unit
    least = 2 if 2 * program.rows * unit <= _PATIENCE_BYTES else 1
    stride = unit * max(least, units)
    if program.rows * stride > _LARGEST_BUFFER:
        raise EngineError("the tape has too many live values for this machine's code")
    place = np.zeros(plan.size, np.int64)
    for value, at in table.place.items():
        if value >= 0:
            place[value] = at
    side: list[int] = []
    scale = {"affine": itemsize, "outer": lanes * 8, CALL: 1}
    codes = np.array([number[(CALL, "") if p == CALL else (n, p)] for n, p in program.handlers])
    counted = np.array([_counted_in(*handler, lanes) for handler in program.handlers])

    def words(part: Part, row: int) -> Array:
        """Operations with places in bytes, and two that end: a handler looks two ahead."""
        aside = []
        for group in part.groups:
            aside.append(4 * len(side))
            begin = len(table.place) * itemsize if group.name == "affine" else 0
            side.extend((*group.counts, begin + group.begin * scale[group.name]))
            side.extend(r * row for r in group.rows)
        code, out = part.code, np.zeros((len(part.code) + 2, WORDS), np.int32)
        out[:, 0] = number["end", ""]
        if len(code):
            target, given, unit_of = code[:, 1], code[:, 2:], counted[code[:, 0]]
            in_side = np.array([*aside, 0])[np.where(unit_of == _GROUPS, target, -1)]
            out[:-2, 0] = codes[code[:, 0]]
            out[:-2, 1] = in_side + target * np.where(unit_of == _ROWS, row, unit_of)
            shared = place[np.where(given < 0, ~given, 0)] * itemsize
            out[:-2, 2:] = np.where(given < 0, shared, given * row)
        return out

    indices = (i for i, leaf in enumerate(leaves) if leaf.kind == "column")
    columns = {index: number for number, index in enumerate(indices)}

    def operation(name: str, target: int, given: int = 0) -> tuple[int, ...]:
        return number[name, ""], target, given, 0, 0

    def table_place(value: int) -> int:
        return int(table.place[value]) * itemsize

    loads = [operation("load", r * stride, columns[v]) for r, v in enumerate(program.columns)]
    end = operation("end", 0)
    filled = [operation("splat", r * stride, table_place(v)) for r, v in program.filled]
    main, uniform = words(program.main, stride), words(program.uniform, unit)
    # Uniform operations work on rows; what they read and what becomes of them is in the table.
    given = [operation("splat", r * unit, table_place(v)) for r, v in enumerate(program.given)]
    made = sorted(value for step in plan.uniform for value in step.results)
    after = [operation("keep", table_place(v), r * unit) for r, v in enumerate(made, len(given))]
    if program.weights:
        after.append(operation("weigh", 4 * len(side)))
        sources = [table_place(value) for value in program.weights]
        side += [len(sources), len(table.place) * itemsize, *sources]
    once = [np.array(part, np.int32).reshape(-1, WORDS) for part in (given, [*after, end, end])]
    stored = {value: k for k, value in enumerate(program.stored)}
    count = program.sums if plan.accumulators else len(stored)
    fixed = [name for name, value in plan.outputs.items() if value in table.place]
    reads = {name: stored[v] for name, v in plan.outputs.items() if v in stored}
    reads |= {name: program.places[k] for name, k in plan.summed.items()}
    reads |= {name: count + k for k, name in enumerate(fixed)}
    rows = max(program.rows, -(-(len(given) + len(made)) * unit // stride))
    return Code(
        main=np.concatenate([np.array(loads, np.int32).reshape(-1, WORDS), main]),
        preamble=np.array([*filled, end, end], np.int32),
        uniform=np.concatenate([once[0], uniform[:-2], once[1]]),
        side=np.array(side or [0], np.int32),
        stride=stride,
        buffer=rows * stride,
        unit=unit,
        columns=tuple(leaves[i].name for i in columns),
        scalars=tuple(leaves[i].name for i in table.scalars),
        table=len(table.place) + len(program.weights),
        constants=np.array(table.constants),
        count=count,
        reads=np.array([reads[name] for name in plan.tape.outputs], np.int64),
        fixed=np.array([table.place[plan.outputs[name]] for name in fixed], np.int64),
        functions=program.functions,
    )
