"""An epoch of the lecture graph, by cgprimer and by the training loops of other libraries.

All contestants use the samples in the same order, the same start and the same constant learning
rate, so that the parameters at the end can be compared.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import cgprimer

from ..gradient_peers import contestants, lecture_gradient, lecture_sums, skip_unless
from ..harness import THREADS, Cell, Contestant, Settings, measure, one_row_each
from ..report import Table, milliseconds
from ..workloads import LECTURE, LECTURE_TRUTH, Workload, create_workload

RATE = 1e-6


def numba_loop(work: Workload, batch: int) -> Contestant:
    import numba

    sums = lecture_sums()

    @numba.njit(error_model="numpy")
    def loop(xa, target, start, batch):  # type: ignore[no-untyped-def]
        ab, ac, bc, cd = start
        for begin in range(0, xa.shape[0], batch):
            end = min(begin + batch, xa.shape[0])
            part = slice(begin, end)
            _, by_ab, by_ac, by_cd = sums(xa[part], target[part], ab, ac, bc, cd)
            rate = RATE / (end - begin)
            ab -= 6.0 * rate * by_ab
            ac -= 6.0 * rate * by_ac
            bc -= 6.0 * rate * by_ab
            cd -= 2.0 * rate * by_cd
        return ab, ac, bc, cd

    arguments = work.columns["xa"], work.target, work.start, batch
    return Contestant(lambda: loop(*arguments), lambda p: (1.0, p))


def numpy_loop(work: Workload, batch: int) -> Contestant:
    xa, target = work.columns["xa"], work.target

    def run() -> Any:
        p = work.start.copy()
        for begin in range(0, len(xa), batch):
            x, t = xa[begin : begin + batch], target[begin : begin + batch]
            p -= RATE / len(x) * lecture_gradient(x, t, p)[1]
        return p

    return Contestant(run, lambda p: (1.0, p))


def jax_scan(work: Workload, batch: int) -> Contestant:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]
    columns = work.columns["xa"], work.target
    data = jax.device_put(tuple(column.reshape(-1, batch) for column in columns))
    start, function = jax.device_put(work.start), work.function

    def loss(p: Any, x: Any, t: Any) -> Any:
        return jnp.mean((function(jnp, [x], list(p)) - t) ** 2)

    @jax.jit
    def epoch(p: Any, data: Any) -> Any:
        return jax.lax.scan(lambda p, batch: (p - RATE * jax.grad(loss)(p, *batch), None), p, data)

    return Contestant(
        lambda: jax.block_until_ready(epoch(start, data)[0]), lambda p: (1.0, np.asarray(p))
    )


def torch_loop(work: Workload, batch: int) -> Contestant:
    import torch

    torch.set_num_threads(THREADS)
    xa, target = torch.tensor(work.columns["xa"]), torch.tensor(work.target)
    function = work.function

    def run() -> Any:
        p = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in work.start.tolist()]
        rule = torch.optim.SGD(p, lr=RATE)
        for begin in range(0, len(xa), batch):
            x, t = xa[begin : begin + batch], target[begin : begin + batch]
            rule.zero_grad()
            loss = ((function(torch, [x], p) - t) ** 2).mean()
            loss.backward()
            rule.step()
        return p

    return Contestant(run, lambda p: (1.0, [v.item() for v in p]))


def micrograd_loop(work: Workload, batch: int) -> Contestant:
    skip_unless(batch == 1, "has no batches")
    from micrograd.engine import Value

    function = work.function
    samples = list(zip(work.columns["xa"].tolist(), work.target.tolist(), strict=True))

    def run() -> Any:
        p = [Value(x) for x in work.start.tolist()]
        for x, t in samples:
            for value in p:
                value.grad = 0.0
            ((function(None, [Value(x)], p) - t) ** 2).backward()
            for value in p:
                value.data -= RATE * value.grad
        return p

    return Contestant(run, lambda p: (1.0, [value.data for value in p]))


def original_module(work: Workload, batch: int) -> Contestant:
    """Prepare the module of the lecture; its gradient differs, so only its time is compared."""
    skip_unless(batch == 1, "has no batches")
    os.environ.setdefault("MPLBACKEND", "Agg")
    from ComputationalGraphPrimer import ComputationalGraphPrimer

    def run_quietly(function: Callable[[], Any]) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            function()

    model = ComputationalGraphPrimer(
        expressions=list(LECTURE), output_vars=["xw"], dataset_size=work.samples,
        learning_rate=RATE, grad_delta=1e-4, display_loss_how_often=work.samples,
    )  # fmt: skip
    run_quietly(model.parse_general_dag_expressions)
    run_quietly(lambda: model.gen_gt_dataset(vals_for_learnable_params=LECTURE_TRUTH))
    return Contestant(lambda: run_quietly(model.train_on_all_data))


PEERS: dict[str, Callable[[Workload, int], Contestant]] = {
    "numba by hand": numba_loop,
    "numpy by hand": numpy_loop,
    "JAX jit, scan": jax_scan,
    "torch eager": torch_loop,
    "micrograd": micrograd_loop,
    "ComputationalGraphPrimer": original_module,
}
BATCHES = {"1 sample per step": 1, "50 samples per step": 50}
TABLES = (Table(("contestant",), dict.fromkeys(BATCHES, milliseconds)),)


def train_call(work: Workload, engine: str, batch: int, epochs: int = 1) -> Contestant:
    data, start = work.dataset, work.start_by_name

    def run() -> cgprimer.TrainingRun:
        return cgprimer.train(
            work.graph, data, engine=engine, optimizer="sgd", learning_rate=RATE, epochs=epochs,
            schedule="constant", batch_size=batch, start=start, shuffle=False,
        )  # fmt: skip

    return Contestant(run, lambda result: (1.0, [result.parameters[n] for n in work.parameters]))


def measure_cells(settings: Settings) -> Iterator[Cell]:
    work = create_workload("W1", samples=100 if settings.quick else 10_000)
    for column, batch in BATCHES.items():
        makers = contestants(train_call, PEERS, work, batch)
        expected = train_call(work, "numpy", batch).result()
        figures = measure(makers, settings.budget, expected=expected, tolerance=1e-8)
        yield from one_row_each(figures, column=column)
