"""Networks written with matrices: loss and gradient of a batch, against the same in numbers.

The text has six lines. Of a small network ``engine="cpu"`` compiles the numbers, of large ones what
is between the products; ``arrays`` is numpy alone. torch and JAX have it as matrices, too.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from cgprimer.core.graph import parse
from cgprimer.training.data import Dataset
from cgprimer.training.objective import Objective

from ..measuring import Entry, Result, Row, add_ratios, contest
from ..settings import Settings, quietly

Arrays = dict[str, Any]
SIZES = ((4, 8, 8, 1), (64, 128, 128, 1), (784, 128, 10))


def matrices(settings: Settings) -> list[Row]:
    """Small batches and, of N64, 10,000 samples at once."""
    rows = []
    for sizes in SIZES[:1] if settings.quick else SIZES:
        for batch in (50, 10_000) if sizes[0] == 64 else (50,):
            rows += _gradients(settings, sizes, batch)
    return rows


def text(sizes: tuple[int, ...]) -> str:
    """The network: tanh between its layers."""
    declared, lines, last = [], [], "x"
    for k, (n, m) in enumerate(pairwise(sizes), start=1):
        declared.append(f"W{k}[{m},{n}], b{k}[{m}]")
        layer = f"W{k} @ {last} + b{k}"
        last = f"h{k}" if k < len(sizes) - 1 else "y"
        lines.append(f"{last} = {layer}" if last == "y" else f"{last} = tanh({layer})")
    return "\n".join([f"input x[{sizes[0]}]; parameter {', '.join(declared)}", *lines, "output y"])


def _gradients(settings: Settings, sizes: tuple[int, ...], batch: int) -> list[Row]:
    random, dtype = np.random.default_rng(0), settings.dtype
    depth = len(sizes) - 1
    start: Arrays = {}
    for k, (n, m) in enumerate(pairwise(sizes), start=1):
        start |= {f"W{k}": random.normal(size=(m, n)) / n**0.5, f"b{k}": random.normal(size=m)}
    x, y = random.uniform(-1, 1, (batch, sizes[0])), random.normal(size=(batch, sizes[-1]))
    flat = np.concatenate([part.ravel() for part in start.values()])

    def ours(engine: str) -> Entry:
        objective = Objective(parse(text(sizes)), engine=engine, dtype=dtype, samples=batch * 1000)
        columns = objective.columns(Dataset.from_arrays({"x": x}, {"y": y}))
        values = flat.astype(objective.precision)
        return Entry(lambda: objective.sums(columns, values, batch), lambda found: found)

    def output(p: Arrays, out: Any, tanh: Callable[[Any], Any]) -> Any:
        for k in range(1, depth + 1):
            out = out @ p[f"W{k}"].T + p[f"b{k}"]
            out = tanh(out) if k < depth else out
        return out

    def read(found: tuple[Any, Arrays]) -> Result:
        return float(found[0]), np.concatenate([np.ravel(found[1][n]) for n in start])

    def torch_eager() -> Entry:
        import torch

        kind = getattr(torch, dtype)
        p = {n: torch.tensor(v, dtype=kind, requires_grad=True) for n, v in start.items()}
        data, targets = torch.tensor(x, dtype=kind), torch.tensor(y, dtype=kind)

        def run() -> Any:
            loss = ((output(p, data, torch.tanh) - targets) ** 2).sum()
            return loss, dict(zip(p, torch.autograd.grad(loss, list(p.values())), strict=True))

        return Entry(run, lambda found: read((found[0].item(), found[1])))

    def jax_jit() -> Entry:
        import jax

        jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]
        p = {n: jax.numpy.asarray(v, dtype) for n, v in start.items()}
        data, targets = jax.numpy.asarray(x, dtype), jax.numpy.asarray(y, dtype)
        loss = jax.jit(
            jax.value_and_grad(lambda p: ((output(p, data, jax.numpy.tanh) - targets) ** 2).sum())
        )
        return Entry(lambda: jax.block_until_ready(loss(p)), read)

    makers = {
        "cgprimer": lambda: ours("auto"), "cgprimer, arrays": lambda: ours("plain"),
        "cgprimer, in numbers": lambda: ours("cpu"), "torch eager": torch_eager, "jax": jax_jit,
    }  # fmt: skip
    if sizes[0] > 4:  # the engine cpu runs large ones with arrays, too
        del makers["cgprimer, in numbers"]
    exact = Objective(parse(text(sizes)), engine="plain")
    columns = exact.columns(Dataset.from_arrays({"x": x}, {"y": y}))
    expected = exact.sums(columns, flat, batch)
    name = f"{'-'.join(map(str, sizes))}, {batch:,} samples, {dtype}"
    rows = contest("matrices", name, makers, lambda _: expected, budget=settings.budget,
                   dtype=dtype, tolerance=settings.tolerance, progress=quietly)  # fmt: skip
    add_ratios(rows, lambda row: row.who == "cgprimer")
    return rows
