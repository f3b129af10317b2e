"""Generation of the source code of a kernel, and of the integer code that it interprets.

A short tape becomes straight-line code, one line per operation and one local variable per row.
Compiling a long tape this way would take too long: its kernel is an interpreter that reads the
next operation from an array, in the same way in all threads. A block of threads has a table in
device memory, with a row per live value and a column per thread. The kernel contains only the
operations that occur in the program.

Each thread keeps the sums of ``sum`` and ``dot``, and each block of threads keeps the sums of
outer products, until all samples are processed. A second kernel adds these partial sums. The order
of the additions depends only on the launch configuration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cgprimer.backends.cuda.cuda_primitives import EXPRESSIONS, expression
from cgprimer.backends.interfaces import Array
from cgprimer.backends.plan_encoding import TILE, EncodedPlan, encode_plan
from cgprimer.backends.plans.plan import Plan

_MAX_SUMS = 32  # in straight-line code: each sum occupies registers of every thread


class DeviceCode(NamedTuple):
    """Code that a GPU runs for every sample.

    Attributes:
        program: the encoded plan.
        code: operations, shape (operations, WORDS), int32. A nonnegative operand is a row; ``-1 -
            k``
            is uniform value ``k``.
        table: counts, offsets and rows of affine groups and outer products, int32.
        columns: names of the columns, in the order of their rows.
        operands: the uniform values that operations read; the weights of the affine groups follow.
        outputs: output that varies with the sample -> index of its result.
        straight_line: whether the kernel is straight-line code.
    """

    program: EncodedPlan
    code: Array
    table: Array
    columns: tuple[str, ...]
    operands: tuple[int, ...]
    outputs: Mapping[str, int]
    straight_line: bool

    def uniforms(self, values: Sequence[Any], dtype: Any) -> Array:
        """Return the uniform values that the kernel reads, as a nonempty array."""
        values_read = [*self.operands, *self.program.weights]
        return np.array([values[v] if v >= 0 else -0.0 for v in values_read] or [0.0], dtype)

    @property
    def thread_sums(self) -> int:
        """Number of sums that each thread keeps; the block keeps the others."""
        return self.program.sums if self.straight_line else self.program.direct_sums

    def text(self, comments: Sequence[str] = ()) -> str:
        """Return the source of the kernel, with comments if it is straight-line code."""
        return (
            _straight_line_source(self, comments)
            if self.straight_line
            else _interpreter_source(self)
        )


def encode_for_device(plan: Plan, max_length: int) -> DeviceCode:
    """Encode a plan for the GPU.

    Args:
        plan: the plan.
        max_length: maximum length, in instructions, of a tape that becomes straight-line code.

    >>> import cgprimer
    >>> from cgprimer.backends.plans.planning import build_plan
    >>> plan = build_plan(cgprimer.tape(cgprimer.parse("xw = k*xa + m")), sums=True)
    >>> encode_for_device(plan, 0).operands, encode_for_device(plan, 0).code.tolist()
    ((1, 2), [[0, 1, -1, 0, -2], [1, 0, 1, 0, 0]])
    >>> print(encode_for_device(plan, 10).text(["xw = k*xa + m", "sum of xw"]))
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
        outputs = {name: program.sum_slots[number] for name, number in plan.summed.items()}
    else:
        number = {value: k for k, value in enumerate(program.stored)}
        outputs = {name: number[v] for name, v in plan.outputs.items() if v in number}
    return DeviceCode(
        program=program,
        code=code,
        table=np.array(table or [0], np.int32),
        columns=tuple(plan.tape.leaves[value].name for value in program.columns),
        operands=tuple(uniform_operands.tolist()),
        outputs=outputs,
        straight_line=len(plan.tape) <= max_length and program.sums <= _MAX_SUMS,
    )


# Operand words of operations that are not primitives, without affine and outer.
_OPERAND_LETTERS = {"sincos": "a", "sum": "a", "dot": "ab", "store": "a"}


def _elementwise_lines(
    name: str, pattern: str, operands: tuple[str, ...], to: str, second: str, total: str, out: str
) -> list[str]:
    """Return the lines of an elementwise operation, a sum or a store.

    Args:
        name: name of the operation.
        pattern: operand kinds; empty for operations that are not primitives.
        operands: expressions of the operands.
        to, second, total, out: expressions of the result, the second result, the sum, the output.
    """
    if pattern:
        return [f"{to} = {expression(name, operands)}"]
    return {
        "sincos": [f"{to} = m.sin({operands[0]})", f"{second} = m.cos({operands[0]})"],
        "sum": [f"{total} += wide({operands[0]})"],
        "dot": [f"{total} += wide({operands[0]} * {operands[1]})"],
        "store": [f"{out} = {operands[0]}"],
    }[name]


# --- straight-line code ---------------------------------------------------------------------------


def _straight_line_source(code: DeviceCode, comments: Sequence[str]) -> str:
    """Return a kernel with a grid-stride loop: each thread processes every n-th sample."""
    lines = []
    for k, words in enumerate(code.code.tolist()):
        first, *more = _straight_line_operation(code, *words)
        lines += [f"{first}  # {comments[k]}" if comments else first, *more]
    return _function_source(
        "data, offsets, u, n, out",
        "i = cuda.grid(1)",
        *(f"s{k} = wide(0.0)" for k in range(code.thread_sums)),
        "while i < n:",
        *(f"    r{k} = data[offsets[{k}] + i]" for k in range(len(code.columns))),
        *(f"    {line}" for line in lines),
        "    i += cuda.gridsize(1)",
        *(f"out[{k} * cuda.gridsize(1) + cuda.grid(1)] = s{k}" for k in range(code.thread_sums)),
    )


def _straight_line_operation(code: DeviceCode, op: int, to: int, *operand_words: int) -> list[str]:
    """Return the lines of an operation in straight-line code."""
    name, pattern = code.program.handlers[op]
    x, y, z = (f"r{place}" if place >= 0 else f"u[{~place}]" for place in operand_words)
    if pattern or name in _OPERAND_LETTERS:
        return _elementwise_lines(
            name, pattern, (x, y, z), f"r{to}", y, f"s{to}", f"out[{to} * n + i]"
        )
    # Left and right factors of an outer product, or inputs and tiles of an affine group.
    height, width, offset, *rows = code.table[to:].tolist()
    if name == "outer":
        return [
            f"s{offset + i * width + j} += wide(r{rows[i]} * r{rows[height + j]})"
            for i in range(height)
            for j in range(width)
        ]
    lines = []
    offset += len(code.operands)
    for k, target in enumerate(rows[height : height + width * TILE]):
        first = offset + k // TILE * TILE * (height + 1) + k % TILE
        terms = [f"u[{first + TILE * (i + 1)}] * r{rows[i]}" for i in range(height)]
        lines.append(f"r{target} = {' + '.join([f'u[{first}]', *terms])}")
    return lines


# --- interpreter ----------------------------------------------------------------------------------


def _interpreter_source(code: DeviceCode) -> str:
    """Return a kernel that loops over operations, for one sample per thread."""
    program, thread_sums = code.program, code.thread_sums
    block_sums = program.sums - thread_sums
    cases = []
    for number, handler in enumerate(program.handlers):
        cases.append(f"{'elif' if number else 'if'} op == {number}:  # {handler[0]}")
        cases += [f"    {line}" for line in _interpreter_operation(code, *handler)]
    return _function_source(
        "data, offsets, u, n, out, code, table, rows",
        "t, width = cuda.threadIdx.x, cuda.blockDim.x",
        "block, blocks = cuda.blockIdx.x, cuda.gridDim.x",
        f"here = block * {program.rows} * width + t",
        "mine = block * width + t",
        f"first = {thread_sums} * blocks * width + block",  # first sum of the block
        f"for k in range({thread_sums}):",
        "    out[k * blocks * width + mine] = 0.0",
        f"for k in range(t, {block_sums}, width):",
        "    out[first + k * blocks] = 0.0",
        "start = block * width",
        "while start < n:",
        "    valid = min(width, n - start)",
        f"    for k in range({len(code.columns)}):",
        "        if t < valid:",
        "            rows[here + k * width] = data[offsets[k] + start + t]",
        "    for k in range(len(code)):",
        "        op, d, a, b, c = code[k, 0], code[k, 1], code[k, 2], code[k, 3], code[k, 4]",
        *(f"        {line}" for line in cases),
        "    start += blocks * width",
    )


def _interpreter_operation(code: DeviceCode, name: str, pattern: str) -> list[str]:
    """Return the lines of an operation whose operands are read from its words."""
    if pattern or name in _OPERAND_LETTERS:
        rows = ("rows[here + d * width]", "rows[here + b * width]")
        destinations = (*rows, "out[d * blocks * width + mine]", "out[d * n + start + t]")
        lines = _elementwise_lines(name, pattern, ("x", "y", "z"), *destinations)
        words = (
            "".join(w for w in "abc" if f"{{{w}}}" in EXPRESSIONS[name])
            if pattern
            else _OPERAND_LETTERS[name]
        )
        loads = [
            f"{'xyz'['abc'.index(w)]} = rows[here + {w} * width] if {w} >= 0 else u[-1 - {w}]"
            for w in words
        ]
        return [*loads, "if t < valid:", *(f"    {line}" for line in lines)]
    if name == "outer":  # each thread sums one pair at a time over the samples of the block
        return [
            "cuda.syncthreads()",  # the rows of all threads are read
            "for p in range(t, table[d] * table[d + 1], width):",
            "    i = here - t + table[d + 3 + p // table[d + 1]] * width",
            "    j = here - t + table[d + 3 + table[d] + p % table[d + 1]] * width",
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
        "        x = rows[here + table[i] * width]",
        *(f"        h{k} += u[w + {k}] * x" for k in tile),
        f"    w += {TILE}",
        *(f"    rows[here + table[o + {k}] * width] = h{k}" for k in tile),
    ]


def _function_source(arguments: str, *lines: str) -> str:
    return "\n    ".join((f"def kernel({arguments}):", *lines))


# One block of threads per sum; the order of the additions is fixed.
REDUCE = """\
def reduce(sums, own, blocks, width, out):
    k = cuda.blockIdx.x
    t = cuda.threadIdx.x
    length = blocks * width if k < own else blocks
    first = k * length if k < own else own * blocks * width + (k - own) * blocks
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


def reduction_source(threads: int) -> str:
    """Return the kernel of the second stage, which computes one number per sum."""
    return REDUCE.replace("THREADS", str(threads))
