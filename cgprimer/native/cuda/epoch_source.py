"""An epoch of training as one kernel: one block of threads that goes from step to step.

The samples of a batch are shared out among the threads, their sums put together in shared memory,
and the parameters, which live there too, moved by as many threads as there are parameters. No step
waits for the host. The columns come in the order of the epoch.
"""

from __future__ import annotations

from collections.abc import Sequence

from cgprimer.native.cuda.source import Body


def epoch_text(
    found: Body,
    scalars: Sequence[int],
    *,
    arrays: int,
    numbers: int,
    loss: int,
    gradients: Sequence[int],
    threads: int,
) -> str:
    """The kernel of an epoch.

    Args:
        found: what is computed for a sample; see :func:`cgprimer.native.cuda.source.body`.
        scalars: for each of its uniform values the number of the parameter that it is.
        arrays, numbers: how many parts of the optimizer's state have an entry per parameter, and
            how many are single numbers. The function ``update`` takes a parameter, its gradient,
            its entries, the rate and the numbers, and returns all but gradient and rate anew.
        loss: which of the results is the loss.
        gradients: which of the results is the gradient, for each parameter.
        threads: of the block.
    """
    count, results = len(gradients), range(len(found.results))
    columns = range(len(found.columns))
    before = ["params[k]", "g", *(f"state[{a * count} + k]" for a in range(arrays)), "rate",
              *(f"m{b}" for b in range(numbers))]  # fmt: skip
    after = ["p", *(f"a{a}" for a in range(arrays)), *(f"f{b}" for b in range(numbers))]
    sample = [f"data[c{j} + begin + i]" for j in columns] + [f"v{v}" for v in found.uniforms]
    lines = [
        "t = cuda.threadIdx.x",
        f"params = cuda.shared.array({count}, wide)",
        f"parts = cuda.shared.array({len(found.results) * threads}, wide)",
        "bad = cuda.shared.array(1, wide)",
        f"for k in range(t, {count}, {threads}):",
        "    params[k] = values[k]",
        "if t == 0:",
        "    bad[0] = wide(0.0)",
        "    failed[0] = -1",
        "cuda.syncthreads()",
        *(f"m{b} = f{b} = state[{arrays * count + b}]" for b in range(numbers)),
        "begin = 0",
        "step = 0",
        "while begin < n:",
        *(f"    v{v} = real(params[{p}])" for v, p in zip(found.uniforms, scalars, strict=True)),
        "    size = min(batch, n - begin)",
        *(f"    s{r} = wide(0.0)" for r in results),
        f"    for i in range(t, size, {threads}):",
        f"        ({', '.join(f'r{r}' for r in results)},) = body({', '.join(sample)})",
        *(f"        s{r} += wide(r{r})" for r in results),
        *(f"    parts[{r * threads} + t] = s{r}" for r in results),
        *(f"    {line}" for line in _tree(len(found.results), threads)),
        f"    for r in range(t, {len(found.results)}, {threads}):",
        f"        g = parts[r * {threads}] / size",
        "        if not g - g == 0.0:",  # infinite or nan
        "            bad[0] = wide(1.0)",
        "    cuda.syncthreads()",
        "    if t == 0:",
        f"        losses[step] = parts[{loss * threads}] / size",
        "    if bad[0] != 0.0:",
        "        if t == 0:",
        "            failed[0] = step",
        "        break",
        "    rate = rates[step]",
        f"    for k in range(t, {count}, {threads}):",
        f"        g = parts[places[k] * {threads}] / size",
        f"        {', '.join(after)}, = update({', '.join(before)})",
        "        params[k] = p",
        *(f"        state[{a * count} + k] = a{a}" for a in range(arrays)),
        *(f"    m{b} = f{b}" for b in range(numbers)),  # the same for all parameters
        "    begin += batch",
        "    step += 1",
        "    cuda.syncthreads()",
        f"for k in range(t, {count}, {threads}):",
        "    values[k] = params[k]",
        "if t == 0:",
        *(f"    state[{arrays * count + b}] = m{b}" for b in range(numbers)),
        "    step = 0",
    ]
    given = [
        "data", "n", "batch", "width", *(f"c{j}" for j in columns),
        "places", "values", "state", "rates", "losses", "failed",
    ]  # fmt: skip
    return f"def epoch({', '.join(given)}):\n" + "".join(f"    {line}\n" for line in lines)


def _tree(results: int, threads: int) -> list[str]:
    """All sums at once, half as many numbers at each level; ``width`` threads had samples."""
    return [
        "half = width // 2",
        "cuda.syncthreads()",
        "while half > 0:",
        f"    for i in range(t, {results} * half, {threads}):",
        "        r = i // half",
        f"        at = r * {threads} + i - r * half",
        "        parts[at] += parts[at + half]",
        "    cuda.syncthreads()",
        "    half = half // 2",
    ]


GATHER = """
def gather(data, offset, order, n, out, start):
    step = cuda.gridsize(1)
    i = cuda.grid(1)
    while i < n:
        out[start + i] = data[offset + order[i]]
        i += step
"""
