"""The interpreter's kernel: a loop over operations, each done for all samples of a block.

A block of threads has a table with a row per live value and a column per sample of its own
samples, in shared memory if it fits there. It takes its samples through the whole program, then
the next ones. The operations that the program has, and no others, are compiled; which one is
next is decided by a tree of comparisons, the same way for all threads.

Sums stay with the thread that added them up, in device memory, until the program is done with
all samples; the sums of a block of products belong, each, to one thread of the block. So every
number is added in an order that nothing but the launch decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cgprimer.native.cuda.mathematics import expression
from cgprimer.native.cuda.program import PAIRS
from cgprimer.native.encoding import TILE, WORDS

Handlers = Sequence[tuple[str, str]]  # names and patterns; without a pattern, no primitive's


@dataclass(frozen=True, slots=True)
class Layout:
    """How a launch is laid out.

    Attributes:
        lanes: threads of a block, each with a sample at a time.
        shared: whether the rows are in shared memory.
        rows: rows of the table.
        columns: how many of them are columns.
        sums, shared_sums: accumulators per thread and per block.
        uniforms: values that no sample changes; they stand behind the rows, once for all threads.
    """

    lanes: int
    shared: bool
    rows: int
    columns: int
    sums: int
    shared_sums: int
    uniforms: int

    @property
    def first_uniform(self) -> int:
        """Where in the table's numbers the uniform values begin."""
        return self.rows * self.lanes

    @property
    def numbers(self) -> int:
        """Numbers of a block's table."""
        return self.first_uniform + self.uniforms


def kernel_text(handlers: Handlers, layout: Layout) -> str:
    """The kernel that runs programs of these operations."""
    width = layout.lanes
    lines = [
        "t = cuda.threadIdx.x",
        "block = cuda.blockIdx.x",
        "blocks = cuda.gridDim.x",
    ]
    if layout.shared:
        lines += ["rows = cuda.shared.array(0, element)", "base = 0"]
    else:
        lines += ["rows = scratch", f"base = block * {layout.numbers}"]
    lines += _beginning(layout)
    lines += [
        f"start = block * {width}",
        "while start < n:",
        *_indented(_samples(handlers, layout)),
        "    fresh = False",
        f"    start += blocks * {width}",
    ]
    given = "code, count, table, uniforms, data, offsets, n, scratch, sums, out"
    return f"def kernel({given}):\n" + "".join(f"    {line}\n" for line in lines)


def _beginning(layout: Layout) -> list[str]:
    """The uniform values go behind the rows, once."""
    return [
        f"mine = block * {layout.lanes} + t",
        f"for k in range(t, {layout.uniforms}, {layout.lanes}):",
        f"    rows[base + {layout.first_uniform} + k] = uniforms[k]",
        "cuda.syncthreads()",
        "fresh = True",  # of a block's first samples: sums begin with them
    ]


def _added(place: str, value: str) -> list[str]:
    """A sum that grows. To write is not to wait; to read what was written would be."""
    return [
        f"at = {place}",
        "if fresh:",
        f"    sums[at] = wide({value})",
        "else:",
        f"    sums[at] += wide({value})",
    ]


def _samples(handlers: Handlers, layout: Layout) -> list[str]:
    width = layout.lanes
    words = ", ".join(f"next{w}" for w in range(WORDS))
    fetch = ", ".join(f"code[next_word + {w}]" for w in range(WORDS))
    return [
        f"valid = min({width}, n - start)",
        f"for j in range({layout.columns}):",
        "    if t < valid:",
        f"        rows[base + j * {width} + t] = data[offsets[j] + start + t]",
        "next_word = 0",
        f"{words} = {fetch}",
        "for position in range(count):",
        f"    op, d, a, b, c = {words}",
        f"    next_word += {WORDS}",
        f"    {words} = {fetch}",  # under way while this operation is computed
        f"    rd = base + d * {width} + t",
        *_indented(_choice([(k, _operation(*h, layout)) for k, h in enumerate(handlers)])),
    ]


def _choice(cases: list[tuple[int, list[str]]]) -> list[str]:
    """A tree of comparisons: five of them find one of thirty operations."""
    if not cases:
        return ["pass"]
    if len(cases) == 1:
        return cases[0][1]
    half = len(cases) // 2
    return [
        f"if op < {cases[half][0]}:",
        *_indented(_choice(cases[:half])),
        "else:",
        *_indented(_choice(cases[half:])),
    ]


def _operation(name: str, pattern: str, layout: Layout) -> list[str]:
    special: dict[str, Callable[[Layout], list[str]]] = {
        "store": _store, "sum": _sum, "dot": _dot, "affine": _affine, "outer": _outer,
        "sincos": _sincos,
    }  # fmt: skip
    if not pattern:
        return special[name](layout)
    text = expression(name, ("x", "y", "z"))
    operands = [o for o in ("x", "y", "z") if _mentions(text, o)]
    return [*_fetched(layout, operands), f"rows[rd] = {text}"]


def _mentions(text: str, operand: str) -> bool:
    return any(f"{left}{operand}{right}" in f" {text} " for left in " (-" for right in " ,)")


def _fetched(layout: Layout, operands: Sequence[str]) -> list[str]:
    """Operands of the thread's sample. Where each stands is computed without a branch, whether it
    is a row or not.
    """
    width, behind = layout.lanes, layout.first_uniform - 1
    words = {"x": "a", "y": "b", "z": "c"}
    return [
        f"{o} = rows[base + ({w} * {width} + t if {w} >= 0 else {behind} - {w})]"
        for o, w in words.items()
        if o in operands
    ]


def _sincos(layout: Layout) -> list[str]:
    place = f"base + b * {layout.lanes} + t"
    return [*_fetched(layout, "x"), "rows[rd] = m.sin(x)", f"rows[{place}] = m.cos(x)"]


def _store(layout: Layout) -> list[str]:
    return [*_fetched(layout, "x"), "if t < valid:", "    out[d * n + start + t] = x"]


def _sum(layout: Layout) -> list[str]:
    return _accumulated(layout, "x", "x")


def _dot(layout: Layout) -> list[str]:
    return _accumulated(layout, "xy", "x * y")


def _accumulated(layout: Layout, operands: str, text: str) -> list[str]:
    total = f"{text} if t < valid else zero"
    place = f"d * blocks * {layout.lanes} + mine"
    return [*_fetched(layout, operands), f"total = {total}", *_added(place, "total")]


def _affine(layout: Layout) -> list[str]:
    """A tile of outputs at a time: a value that is read serves all of the tile."""
    width, tile = layout.lanes, range(TILE)
    return [
        "inputs = table[d]",
        f"w = {layout.uniforms} + table[d + 2]",
        "first = d + 3 + inputs",
        "for _ in range(table[d + 1]):",
        *(f"    h{k} = uniforms[w + {k}]" for k in tile),
        "    for i in range(inputs):",
        f"        w += {TILE}",
        f"        x = rows[base + table[d + 3 + i] * {width} + t]",
        *(f"        h{k} += uniforms[w + {k}] * x" for k in tile),
        f"    w += {TILE}",
        *(f"    rows[base + table[first + {k}] * {width} + t] = h{k}" for k in tile),
        f"    first += {TILE}",
    ]


def _outer(layout: Layout) -> list[str]:
    """A tile of pairs for a thread at a time, summed over the samples of the block.

    Threads begin at different samples, so that they read different banks of shared memory.
    """
    width, (high, wide) = layout.lanes, PAIRS
    first = f"{layout.sums * width} + table[d + 2] - {layout.sums}"
    pairs = [(i, j) for i in range(high) for j in range(wide)]
    return [
        "cuda.syncthreads()",  # the rows of all threads are needed here
        "across = table[d + 1]",
        f"for p in range(t, table[d] * across, {width}):",
        f"    i = d + 3 + p // across * {high}",
        f"    j = d + 3 + table[d] * {high} + p % across * {wide}",
        *(f"    l{k} = base + table[i + {k}] * {width}" for k in range(high)),
        *(f"    r{k} = base + table[j + {k}] * {width}" for k in range(wide)),
        *(f"    h{i}{j} = zero" for i, j in pairs),
        "    q = t % valid",
        "    for k in range(valid):",
        *(f"        x{i} = rows[l{i} + q]" for i in range(high)),
        *(f"        y{j} = rows[r{j} + q]" for j in range(wide)),
        *(f"        h{i}{j} += x{i} * y{j}" for i, j in pairs),
        "        q += 1",
        "        if q == valid:",
        "            q = 0",
        *(
            f"    {line}"
            for k, (i, j) in enumerate(pairs)
            for line in _added(f"({first} + p * {high * wide} + {k}) * blocks + block", f"h{i}{j}")
        ),
        "cuda.syncthreads()",  # nobody writes onto rows that somebody still reads
    ]


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


REDUCE = """
def reduce(sums, own, blocks, lanes, out):
    # One block of threads per accumulator, which adds its numbers in an order that is fixed.
    k = cuda.blockIdx.x
    t = cuda.threadIdx.x
    if k < own:
        first = k * blocks * lanes
        length = blocks * lanes
    else:
        first = own * blocks * lanes + (k - own) * blocks
        length = blocks
    total = wide(0.0)
    for i in range(t, length, THREADS):
        total += sums[first + i]
    shared = cuda.shared.array(THREADS, wide)
    shared[t] = total
    block_sum(shared, t, THREADS)
    if t == 0:
        out[k] = shared[0]
"""


def reduce_text(threads: int) -> str:
    """The kernel of the second stage: one number for each accumulator."""
    return REDUCE.replace("THREADS", str(threads))
