"""A tape as the text of a kernel: straight-line code, one thread for several samples.

For ``xw = k*xa^2`` and sums over the samples, with two samples in flight at a time::

    def body(v0, v1):                      # xa, k
        v2 = v0 * v0
        v3 = v1 * v2
        return (v3,)

    def kernel(data, out, n, c0, v1):      # all columns; where xa begins in them; k
        step = cuda.gridsize(1)
        i = cuda.grid(1)
        s0 = wide(0.0)
        while i + 1 * step < n:
            x0_0 = data[c0 + i]            # neighbouring threads read neighbouring numbers
            x0_1 = data[c0 + i + 1 * step]
            (r0_0,) = body(x0_0, v1)
            (r0_1,) = body(x0_1, v1)
            s0 += wide(r0_0 + r0_1)
            i += 2 * step
        ...
"""

from __future__ import annotations

from dataclasses import dataclass

from cgprimer.core.engines import Reduction
from cgprimer.core.tape.tape import Tape
from cgprimer.native.cuda.mathematics import expression
from cgprimer.native.plans.plan import varying

_IN_FLIGHT = 64  # bytes that a thread asks for before it uses the first
_MOST_UNROLLED = 8
_LONG_BODY = 64  # instructions; beyond it other threads hide the waiting, registers being scarce

TREE = """
def block_sum(shared, thread, threads):
    half = threads // 2
    cuda.syncthreads()
    while half > 0:
        if thread < half:
            shared[thread] += shared[thread + half]
        cuda.syncthreads()
        half = half // 2
"""


@dataclass(frozen=True, slots=True)
class Body:
    """What is computed for one sample.

    Attributes:
        lines: assignments to ``v<value>``.
        columns: the columns that are read: name and value.
        uniforms: values that no sample changes, constants left out.
        constants: the constants that are read, by the name that stands for them.
        results: the values to return, each once.
        returned: how they are written.
    """

    lines: tuple[str, ...]
    columns: tuple[tuple[str, int], ...]
    uniforms: tuple[int, ...]
    constants: dict[str, float]
    results: tuple[int, ...]
    returned: tuple[str, ...]

    def text(self) -> str:
        """The definition of ``body``."""
        given = [f"v{v}" for _, v in self.columns] + [f"v{v}" for v in self.uniforms]
        lines = [*self.lines, f"return ({', '.join(self.returned)},)"]
        return f"def body({', '.join(given)}):\n" + "".join(f"    {line}\n" for line in lines)


def body(tape: Tape) -> Body:
    """The part of a tape that varies with the sample.

    Args:
        tape: an optimized tape.

    Raises:
        EngineError: a primitive has no form on the GPU.
    """
    varies = varying(tape)
    first = len(tape.leaves)
    constants: dict[str, float] = {}
    read: set[int] = set()
    lines = []

    def name(value: int) -> str:
        read.add(value)
        if value < first and tape.leaves[value].kind == "constant":
            constants[f"k{value}"] = tape.leaves[value].value
            return f"k{value}"
        return f"v{value}"

    for position, (primitive, operands) in enumerate(tape.instructions):
        value = first + position
        if varies[value]:
            text = expression(primitive, tuple(name(o) for o in operands))
            lines.append(f"v{value} = {text}")
    results = tuple(dict.fromkeys(v for v in tape.outputs.values() if varies[v]))
    returned = tuple(name(v) for v in results)
    leaves = tape.leaves
    columns = [(leaves[v].name, v) for v in sorted(read) if v < first and varies[v]]
    uniforms = [v for v in sorted(read) if not varies[v] and f"k{v}" not in constants]
    return Body(tuple(lines), tuple(columns), tuple(uniforms), constants, results, returned)


def unrolling(found: Body, itemsize: int) -> int:
    """How many samples a thread takes at a time: enough bytes in flight to keep memory busy."""
    if len(found.lines) > _LONG_BODY:
        return 1 if len(found.lines) > 2 * _LONG_BODY else 2
    each = max(1, len(found.columns)) * itemsize
    wanted = min(_MOST_UNROLLED, max(1, _IN_FLIGHT // each))
    return int(1 << wanted.bit_length() - 1)


def kernel_text(found: Body, *, reduction: Reduction, unroll: int, threads: int) -> str:
    """The kernel for a body: ``out[result][block]`` gets sums, ``out[result][sample]`` values."""
    columns, results = range(len(found.columns)), range(len(found.results))
    given = ["data", "out", "n", *(f"c{j}" for j in columns), *(f"v{v}" for v in found.uniforms)]
    sums = reduction == "sum"
    lines = ["step = cuda.gridsize(1)", "i = cuda.grid(1)"]
    if sums:
        lines += [f"s{r} = wide(0.0)" for r in results]
    for count in dict.fromkeys((unroll, 1)):
        ahead = f" + {count - 1} * step" if count > 1 else ""
        lines.append(f"while i{ahead} < n:")
        lines += [f"    {line}" for line in _iteration(found, count, sums)]
        lines.append(f"    i += {count} * step")
    if sums:
        lines += [
            "t = cuda.threadIdx.x",
            f"shared = cuda.shared.array({threads}, wide)",
            *(line for r in results for line in _block_total(r, threads)),
        ]
    return f"def kernel({', '.join(given)}):\n" + "".join(f"    {line}\n" for line in lines)


def _iteration(found: Body, count: int, sums: bool) -> list[str]:
    """Loads first, so that all are under way together; then the arithmetic."""
    results = range(len(found.results))
    lines = []
    places = ["i"] + [f"i + {k} * step" for k in range(1, count)]
    for k, place in enumerate(places):
        lines += [f"x{j}_{k} = data[c{j} + {place}]" for j in range(len(found.columns))]
    for k in range(count):
        values = [f"x{j}_{k}" for j in range(len(found.columns))]
        values += [f"v{v}" for v in found.uniforms]
        names = ", ".join(f"r{r}_{k}" for r in results)
        lines.append(f"({names},) = body({', '.join(values)})")
    for r in results:
        if sums:  # a short run in the computation's own precision, the long one in float64
            lines.append(f"s{r} += wide({' + '.join(f'r{r}_{k}' for k in range(count))})")
        else:
            lines += [f"out[{r} * n + {place}] = r{r}_{k}" for k, place in enumerate(places)]
    return lines


def _block_total(result: int, threads: int) -> list[str]:
    return [
        f"shared[t] = s{result}",
        f"block_sum(shared, t, {threads})",
        "if t == 0:",
        f"    out[{result} * cuda.gridDim.x + cuda.blockIdx.x] = shared[0]",
        "cuda.syncthreads()",
    ]
