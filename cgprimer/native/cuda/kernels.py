"""A plan as a kernel's text, and as the numbers that the kernel reads.

The operations of a small program are written out, a line each, with a local variable for each
row. For a large one that would take too long to compile: its kernel is a loop that reads which
operation comes next, the same way for all threads. A block of threads then has a table in device
memory, with a row per live value and a column per thread, and takes its samples through the whole
program, then the next ones. The operations that the program has, and no others, are compiled.

Sums stay with the thread that added them up, those of a block of products with the block, until
all samples are done; a second kernel adds them. So every number is added in an order that nothing
but the launch decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cgprimer.core.engines import Array
from cgprimer.native.cuda.mathematics import TEXTS, expression
from cgprimer.native.encoding import TILE, Program, encoded
from cgprimer.native.plans.plan import Plan

_MOST_SUMS = 32  # of a kernel that is written out: each is a register or two of every thread


class DeviceProgram(NamedTuple):
    """What a GPU computes for every sample.

    Attributes:
        program: the numbers as all interpreters have them.
        code: shape (operations, WORDS), int32. A place that is not negative is a row;
            ``-1 - k`` is number ``k`` of the uniform values.
        table: counts, beginnings and rows of the groups, int32; their operations say where.
        columns: names of the columns, in the order of their rows.
        operands: the uniform values that operations read, in the order of their numbers. The
            weights of the matrices stand behind them.
        outputs: for each output that varies with the sample its number among the results.
        straight: whether the operations are written out.
    """

    program: Program
    code: Array
    table: Array
    columns: tuple[str, ...]
    operands: tuple[int, ...]
    outputs: Mapping[str, int]
    straight: bool

    def uniforms(self, values: Sequence[Any], dtype: Any) -> Array:
        """Of all values those that the kernel reads, as it wants them; never empty."""
        wanted = [*self.operands, *self.program.weights]
        return np.array([values[v] if v >= 0 else -0.0 for v in wanted] or [0.0], dtype)

    @property
    def own_sums(self) -> int:
        """Sums that each thread has; the others belong to the block."""
        return self.program.sums if self.straight else self.program.own_sums

    def text(self, comments: Sequence[str] = ()) -> str:
        """The kernel; with a comment for each operation if it is written out."""
        return _straight(self, comments) if self.straight else _interpreter(self)


def device_program(plan: Plan, straight: int) -> DeviceProgram:
    """The program of a plan.

    Args:
        plan: what to run.
        straight: the longest tape, in instructions, whose operations are written out.

    >>> import cgprimer
    >>> from cgprimer.native.plans.making import plan
    >>> found = plan(cgprimer.tape(cgprimer.parse("xw = k*xa + m")), sums=True)
    >>> device_program(found, 0).operands, device_program(found, 0).code.tolist()
    ((1, 2), [[0, 1, -1, 0, -2], [1, 0, 1, 0, 0]])
    >>> print(device_program(found, 10).text(["xw = k*xa + m", "sum of xw"]))
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
    program = encoded(plan, tile=(1, 1))
    code = program.main.code.astype(np.int32)
    places = code[:, 2:]
    read = np.unique(~places[places < 0])
    code[:, 2:] = np.where(places < 0, ~np.searchsorted(read, ~places), places)
    table: list[int] = []
    for line in code:
        if program.handlers[line[0]] in (("affine", ""), ("outer", "")):
            group = program.main.groups[line[1]]
            line[1] = len(table)
            table += [*group.counts, group.begin, *group.rows]
    if plan.summed:
        outputs = {name: program.places[number] for name, number in plan.summed.items()}
    else:
        number = {value: k for k, value in enumerate(program.stored)}
        outputs = {name: number[v] for name, v in plan.outputs.items() if v in number}
    return DeviceProgram(
        program=program,
        code=code,
        table=np.array(table or [0], np.int32),
        columns=tuple(plan.tape.leaves[value].name for value in program.columns),
        operands=tuple(read.tolist()),
        outputs=outputs,
        straight=len(plan.tape) <= straight and program.sums <= _MOST_SUMS,
    )


# What operations read that are no primitive's, but for those of groups.
_WORDS = {"sincos": "a", "sum": "a", "dot": "ab", "store": "a"}


def _simple(
    name: str, pattern: str, given: tuple[str, ...], to: str, second: str, total: str, out: str
) -> list[str]:
    """An operation on operands that are written so; the other texts are places of results."""
    if pattern:
        return [f"{to} = {expression(name, given)}"]
    return {
        "sincos": [f"{to} = m.sin({given[0]})", f"{second} = m.cos({given[0]})"],
        "sum": [f"{total} += wide({given[0]})"],
        "dot": [f"{total} += wide({given[0]} * {given[1]})"],
        "store": [f"{out} = {given[0]}"],
    }[name]


# --- written out ---------------------------------------------------------------------------------


def _straight(found: DeviceProgram, comments: Sequence[str]) -> str:
    """A thread takes a sample, then the one a whole grid further on."""
    lines = []
    for k, words in enumerate(found.code.tolist()):
        first, *more = _written(found, *words)
        lines += [f"{first}  # {comments[k]}" if comments else first, *more]
    return _definition(
        "data, offsets, u, n, out",
        "i = cuda.grid(1)",
        *(f"s{k} = wide(0.0)" for k in range(found.own_sums)),
        "while i < n:",
        *(f"    r{k} = data[offsets[{k}] + i]" for k in range(len(found.columns))),
        *(f"    {line}" for line in lines),
        "    i += cuda.gridsize(1)",
        *(f"out[{k} * cuda.gridsize(1) + cuda.grid(1)] = s{k}" for k in range(found.own_sums)),
    )


def _written(found: DeviceProgram, op: int, to: int, *places: int) -> list[str]:
    """The lines of an operation."""
    name, pattern = found.program.handlers[op]
    x, y, z = (f"r{place}" if place >= 0 else f"u[{~place}]" for place in places)
    if pattern or name in _WORDS:
        return _simple(name, pattern, (x, y, z), f"r{to}", y, f"s{to}", f"out[{to} * n + i]")
    # Of pairs how many left and right values, of a matrix how many inputs and tiles.
    high, wide, begin, *rows = found.table[to:].tolist()
    if name == "outer":
        return [
            f"s{begin + i * wide + j} += wide(r{rows[i]} * r{rows[high + j]})"
            for i in range(high)
            for j in range(wide)
        ]
    lines = []
    begin += len(found.operands)
    for k, target in enumerate(rows[high : high + wide * TILE]):
        first = begin + k // TILE * TILE * (high + 1) + k % TILE
        terms = [f"u[{first + TILE * (i + 1)}] * r{rows[i]}" for i in range(high)]
        lines.append(f"r{target} = {' + '.join([f'u[{first}]', *terms])}")
    return lines


# --- read ----------------------------------------------------------------------------------------


def _interpreter(found: DeviceProgram) -> str:
    """A loop over operations for the samples of a block."""
    program, own = found.program, found.own_sums
    shared = program.sums - own
    cases = []
    for number, handler in enumerate(program.handlers):
        cases.append(f"{'elif' if number else 'if'} op == {number}:  # {handler[0]}")
        cases += [f"    {line}" for line in _operation(found, *handler)]
    return _definition(
        "data, offsets, u, n, out, code, table, rows",
        "t, width = cuda.threadIdx.x, cuda.blockDim.x",
        "block, blocks = cuda.blockIdx.x, cuda.gridDim.x",
        f"here = block * {program.rows} * width + t",
        "mine = block * width + t",
        f"first = {own} * blocks * width + block",  # of the block's own sums
        f"for k in range({own}):",
        "    out[k * blocks * width + mine] = 0.0",
        f"for k in range(t, {shared}, width):",
        "    out[first + k * blocks] = 0.0",
        "start = block * width",
        "while start < n:",
        "    valid = min(width, n - start)",
        f"    for k in range({len(found.columns)}):",
        "        if t < valid:",
        "            rows[here + k * width] = data[offsets[k] + start + t]",
        "    for k in range(len(code)):",
        "        op, d, a, b, c = code[k, 0], code[k, 1], code[k, 2], code[k, 3], code[k, 4]",
        *(f"        {line}" for line in cases),
        "    start += blocks * width",
    )


def _operation(found: DeviceProgram, name: str, pattern: str) -> list[str]:
    """The lines of an operation whose places stand in its words."""
    if pattern or name in _WORDS:
        rows = ("rows[here + d * width]", "rows[here + b * width]")
        places = (*rows, "out[d * blocks * width + mine]", "out[d * n + start + t]")
        lines = _simple(name, pattern, ("x", "y", "z"), *places)
        words = "".join(w for w in "abc" if f"{{{w}}}" in TEXTS[name]) if pattern else _WORDS[name]
        fetched = [
            f"{'xyz'['abc'.index(w)]} = rows[here + {w} * width] if {w} >= 0 else u[-1 - {w}]"
            for w in words
        ]
        return [*fetched, "if t < valid:", *(f"    {line}" for line in lines)]
    if name == "outer":  # a pair for a thread at a time, summed over the samples of the block
        return [
            "cuda.syncthreads()",  # the rows of all threads are needed here
            "for p in range(t, table[d] * table[d + 1], width):",
            "    i = here - t + table[d + 3 + p // table[d + 1]] * width",
            "    j = here - t + table[d + 3 + table[d] + p % table[d + 1]] * width",
            "    total = wide(0.0)",
            "    for q in range(valid):",
            "        total += wide(rows[i + q] * rows[j + q])",
            f"    out[first + (table[d + 2] - {found.own_sums} + p) * blocks] += total",
            "cuda.syncthreads()",  # nobody writes onto rows that somebody still reads
        ]
    tile = range(TILE)
    return [  # a matrix, a tile of outputs at a time: a value that is read serves all of the tile
        "inputs = table[d]",
        f"w = {len(found.operands)} + table[d + 2]",
        f"for o in range(d + 3 + inputs, d + 3 + inputs + table[d + 1] * {TILE}, {TILE}):",
        *(f"    h{k} = u[w + {k}]" for k in tile),
        "    for i in range(d + 3, d + 3 + inputs):",
        f"        w += {TILE}",
        "        x = rows[here + table[i] * width]",
        *(f"        h{k} += u[w + {k}] * x" for k in tile),
        f"    w += {TILE}",
        *(f"    rows[here + table[o + {k}] * width] = h{k}" for k in tile),
    ]


def _definition(given: str, *lines: str) -> str:
    return "\n    ".join((f"def kernel({given}):", *lines))


# One block of threads per sum, which adds its numbers up in an order that is fixed.
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


def reduce_text(threads: int) -> str:
    """The kernel of the second stage: one number for each sum."""
    return REDUCE.replace("THREADS", str(threads))
