"""Generation of kernel source code, and of the integer code for interpreter kernels.

A short tape becomes straight-line code, one line per operation and one local variable per row.
Compiling a long tape this way would take too long: its kernel is an interpreter that reads the
next operation from an array, the same one in all threads. A block of threads has a table in device
memory, with a row per live value and a column per thread. The kernel contains only the operations
that occur in the program.

Each thread keeps the sums of ``sum`` and ``dot``, and each block of threads keeps the sums of
outer products, until all samples are processed. A second kernel adds these partial sums. The order
of the additions depends only on the launch configuration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cgprimer.backends.cuda.cuda_primitives import EXPRESSIONS, format_expression
from cgprimer.backends.interfaces import Array
from cgprimer.backends.plan_encoding import TILE, EncodedPlan, encode_plan
from cgprimer.backends.plans.plan import Plan

_MAX_SUMS = 32  # in straight-line code: each sum occupies registers of every thread


class DeviceCode(NamedTuple):
    """An execution plan encoded for the GPU: integer code, operand tables and outputs.

    Attributes:
        program: the plan encoded for any interpreter.
        code: operations as int32, shape (operations, WORDS). A nonnegative operand is a row; the
            operand ``-1 - k`` is uniform value ``k``.
        table: counts, offsets and rows of affine groups and outer products, int32.
        columns: names of the columns, in the order of their rows.
        operands: uniform values that operations read; the weights of the affine groups follow.
        outputs: name of an output that varies with the sample -> index of its result.
        straight_line: whether the kernel is straight-line code.
    """

    program: EncodedPlan
    code: Array
    table: Array
    columns: tuple[str, ...]
    operands: tuple[int, ...]
    outputs: Mapping[str, int]
    straight_line: bool

    def collect_uniforms(self, values: Sequence[Any], dtype: Any) -> Array:
        """Collect the uniform values and weights that the kernel reads in one nonempty array."""
        values_read = [*self.operands, *self.program.weights]
        return np.array([values[v] if v >= 0 else -0.0 for v in values_read] or [0.0], dtype)

    @property
    def thread_sums(self) -> int:
        """Number of sums that each thread accumulates; other sums are accumulated per block."""
        return self.program.sums if self.straight_line else self.program.direct_sums

    def generate_source(self, comments: Sequence[str] = ()) -> str:
        """Generate the source code of the kernel.

        Args:
            comments: one comment per operation, for straight-line code.
        """
        return (
            _generate_straight_line_kernel(self, comments)
            if self.straight_line
            else _generate_interpreter_kernel(self)
        )


def encode_for_device(plan: Plan, max_length: int) -> DeviceCode:
    """Encode an execution plan for the GPU.

    Args:
        plan: the plan.
        max_length: maximum number of instructions of a tape that becomes straight-line code.

    >>> import cgprimer
    >>> from cgprimer.backends.plans.planning import build_plan
    >>> plan = build_plan(cgprimer.tape(cgprimer.parse("xw = k*xa + m")), sums=True)
    >>> encode_for_device(plan, 0).operands, encode_for_device(plan, 0).code.tolist()
    ((1, 2), [[0, 1, -1, 0, -2], [1, 0, 1, 0, 0]])
    >>> print(encode_for_device(plan, 10).generate_source(["xw = k*xa + m", "sum of xw"]))
    def kernel(data, offsets, u, n, out):
        i = cuda.grid(1)
        s0 = wide(0.0)
        while i < n:
            r0 = data[offsets[0] + i]
            r1 = u[0] * r0 + u[1]  # xw = k*xa + m
            s0 += wide(r1)  # sum of xw
            i += cuda.gridsize(1)
        out[0 * cuda.gridsize(1) + cuda.grid(1)] = s0
    """
    program = encode_plan(plan, tile=(1, 1))
    code = program.main.code.astype(np.int32)
    operand_words = code[:, 2:]
    uniform_operands = np.unique(~operand_words[operand_words < 0])
    code[:, 2:] = np.where(
        operand_words < 0, ~np.searchsorted(uniform_operands, ~operand_words), operand_words
    )
    table: list[int] = []
    for line in code:
        if program.handlers[line[0]] in (("affine", ""), ("outer", "")):
            group = program.main.groups[line[1]]
            line[1] = len(table)
            table += [*group.counts, group.offset, *group.rows]
    if plan.summed:
        outputs = {name: program.sum_slots[k] for name, k in plan.summed.items()}
    else:
        index_of = {value: k for k, value in enumerate(program.stored)}
        outputs = {name: index_of[v] for name, v in plan.outputs.items() if v in index_of}
    return DeviceCode(
        program=program,
        code=code,
        table=np.array(table or [0], np.int32),
        columns=tuple(plan.tape.leaves[value].name for value in program.columns),
        operands=tuple(uniform_operands.tolist()),
        outputs=outputs,
        straight_line=len(plan.tape) <= max_length and program.sums <= _MAX_SUMS,
    )


# Operand words of the operations that are not primitives, except affine and outer.
_OPERAND_LETTERS = {"sincos": "a", "sum": "a", "dot": "ab", "store": "a"}


class _Destinations(NamedTuple):
    """Source expressions to which a generated operation assigns its results.

    Attributes:
        result: the row of the result.
        second_result: the row of the second result, for ``sincos``.
        accumulator: the sum, for ``sum`` and ``dot``.
        output: the element of the output array, for ``store``.
    """

    result: str
    second_result: str
    accumulator: str
    output: str


def _emit_elementwise(
    name: str, pattern: str, operands: tuple[str, ...], destinations: _Destinations
) -> list[str]:
    """Emit the source lines of an elementwise operation, a sum or a store.

    Args:
        name: name of the operation.
        pattern: operand kinds; empty for operations that are not primitives.
        operands: expressions of the operands.
        destinations: expressions of the variables to assign to.
    """
    result, second_result, accumulator, output = destinations
    if pattern:
        return [f"{result} = {format_expression(name, operands)}"]
    return {
        "sincos": [f"{result} = m.sin({operands[0]})", f"{second_result} = m.cos({operands[0]})"],
        "sum": [f"{accumulator} += wide({operands[0]})"],
        "dot": [f"{accumulator} += wide({operands[0]} * {operands[1]})"],
        "store": [f"{output} = {operands[0]}"],
    }[name]


# --- straight-line code ---------------------------------------------------------------------------


def _generate_straight_line_kernel(code: DeviceCode, comments: Sequence[str]) -> str:
    """Generate a straight-line kernel with a grid-stride loop over the samples."""
    lines = []
    for k, words in enumerate(code.code.tolist()):
        first, *more = _emit_straight_line_operation(code, *words)
        lines += [f"{first}  # {comments[k]}" if comments else first, *more]
    return _format_kernel(
        "data, offsets, u, n, out",
        "i = cuda.grid(1)",
        *(f"s{k} = wide(0.0)" for k in range(code.thread_sums)),
        "while i < n:",
        *(f"    r{k} = data[offsets[{k}] + i]" for k in range(len(code.columns))),
        *(f"    {line}" for line in lines),
        "    i += cuda.gridsize(1)",
        *(f"out[{k} * cuda.gridsize(1) + cuda.grid(1)] = s{k}" for k in range(code.thread_sums)),
    )


def _emit_straight_line_operation(
    code: DeviceCode, opcode: int, target: int, *operands: int
) -> list[str]:
    """Emit the source lines of one operation of a straight-line kernel."""
    name, pattern = code.program.handlers[opcode]
    x, y, z = (f"r{o}" if o >= 0 else f"u[{~o}]" for o in operands)
    if pattern or name in _OPERAND_LETTERS:
        variables = _Destinations(f"r{target}", y, f"s{target}", f"out[{target} * n + i]")
        return _emit_elementwise(name, pattern, (x, y, z), variables)
    # Left and right factors of an outer product, or inputs and tiles of an affine group.
    height, width, offset, *rows = code.table[target:].tolist()
    if name == "outer":
        return [
            f"s{offset + i * width + j} += wide(r{rows[i]} * r{rows[height + j]})"
            for i in range(height)
            for j in range(width)
        ]
    lines = []
    offset += len(code.operands)
    for k, row in enumerate(rows[height : height + width * TILE]):
        first = offset + k // TILE * TILE * (height + 1) + k % TILE
        terms = [f"u[{first + TILE * (i + 1)}] * r{rows[i]}" for i in range(height)]
        lines.append(f"r{row} = {' + '.join([f'u[{first}]', *terms])}")
    return lines


# --- interpreter ----------------------------------------------------------------------------------


def _generate_interpreter_kernel(code: DeviceCode) -> str:
    """Generate an interpreter kernel: a loop over operations, with one sample per thread."""
    program, thread_sums = code.program, code.thread_sums
    block_sums = program.sums - thread_sums
    cases = []
    for opcode, handler in enumerate(program.handlers):
        cases.append(f"{'elif' if opcode else 'if'} op == {opcode}:  # {handler[0]}")
        cases += [f"    {line}" for line in _emit_interpreter_case(code, *handler)]
    return _format_kernel(
        "data, offsets, u, n, out, code, table, rows",
        "t, width = cuda.threadIdx.x, cuda.blockDim.x",
        "block, blocks = cuda.blockIdx.x, cuda.gridDim.x",
        f"base = block * {program.rows} * width + t",
        "thread = block * width + t",
        f"first = {thread_sums} * blocks * width + block",  # first sum of the block
        f"for k in range({thread_sums}):",
        "    out[k * blocks * width + thread] = 0.0",
        f"for k in range(t, {block_sums}, width):",
        "    out[first + k * blocks] = 0.0",
        "start = block * width",
        "while start < n:",
        "    valid = min(width, n - start)",
        f"    for k in range({len(code.columns)}):",
        "        if t < valid:",
        "            rows[base + k * width] = data[offsets[k] + start + t]",
        "    for k in range(len(code)):",
        "        op, d, a, b, c = code[k, 0], code[k, 1], code[k, 2], code[k, 3], code[k, 4]",
        *(f"        {line}" for line in cases),
        "    start += blocks * width",
    )


def _emit_interpreter_case(code: DeviceCode, name: str, pattern: str) -> list[str]:
    """Emit the source lines with which an interpreter kernel executes one opcode."""
    if pattern or name in _OPERAND_LETTERS:
        destinations = _Destinations(
            result="rows[base + d * width]",
            second_result="rows[base + b * width]",
            accumulator="out[d * blocks * width + thread]",
            output="out[d * n + start + t]",
        )
        lines = _emit_elementwise(name, pattern, ("x", "y", "z"), destinations)
        words = (
            "".join(w for w in "abc" if f"{{{w}}}" in EXPRESSIONS[name])
            if pattern
            else _OPERAND_LETTERS[name]
        )
        loads = [
            f"{'xyz'['abc'.index(w)]} = rows[base + {w} * width] if {w} >= 0 else u[-1 - {w}]"
            for w in words
        ]
        return [*loads, "if t < valid:", *(f"    {line}" for line in lines)]
    if name == "outer":  # each thread sums one pair at a time over the samples of the block
        return [
            "cuda.syncthreads()",  # the rows of all threads are read
            "for p in range(t, table[d] * table[d + 1], width):",
            "    i = base - t + table[d + 3 + p // table[d + 1]] * width",
            "    j = base - t + table[d + 3 + table[d] + p % table[d + 1]] * width",
            "    total = wide(0.0)",
            "    for q in range(valid):",
            "        total += wide(rows[i + q] * rows[j + q])",
            f"    out[first + (table[d + 2] - {code.thread_sums} + p) * blocks] += total",
            "cuda.syncthreads()",  # rows are overwritten only after all reads
        ]
    tile = range(TILE)
    return [  # each input is loaded once per tile of outputs
        "inputs = table[d]",
        f"w = {len(code.operands)} + table[d + 2]",
        f"for o in range(d + 3 + inputs, d + 3 + inputs + table[d + 1] * {TILE}, {TILE}):",
        *(f"    h{k} = u[w + {k}]" for k in tile),
        "    for i in range(d + 3, d + 3 + inputs):",
        f"        w += {TILE}",
        "        x = rows[base + table[i] * width]",
        *(f"        h{k} += u[w + {k}] * x" for k in tile),
        f"    w += {TILE}",
        *(f"    rows[base + table[o + {k}] * width] = h{k}" for k in tile),
    ]


def _format_kernel(parameters: str, *lines: str) -> str:
    """Format the definition of the function ``kernel`` from its parameters and the body's lines."""
    return "\n    ".join((f"def kernel({parameters}):", *lines))


# One block of threads per sum; the order of the additions is fixed.
REDUCE = """\
def reduce(sums, thread_sums, blocks, width, out):
    k = cuda.blockIdx.x
    t = cuda.threadIdx.x
    length = blocks * width if k < thread_sums else blocks
    first = k * length
    if k >= thread_sums:
        first = thread_sums * blocks * width + (k - thread_sums) * blocks
    total = wide(0.0)
    for i in range(t, length, THREADS):
        total += sums[first + i]
    shared = cuda.shared.array(THREADS, wide)
    shared[t] = total
    half = THREADS // 2
    while half > 0:
        cuda.syncthreads()
        if t < half:
            shared[t] += shared[t + half]
        half //= 2
    if t == 0:
        out[k] = shared[0]"""


def generate_reduction_kernel(threads: int) -> str:
    """Generate the kernel of the second stage, which adds the partial sums of all threads."""
    return REDUCE.replace("THREADS", str(threads))
