"""Training loops for the lecture graph, as the users of other libraries write them."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from .gradient_peers import lecture_gradient
from .harness import THREADS, Contestant, Skipped
from .workloads import LECTURE, LECTURE_TRUTH, Workload

RATES = {"sgd": 1e-6, "adam": 1e-3}
SGD_RATE, ADAM_RATE = RATES.values()
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # of Adam


def _check_single_samples(batch: int) -> None:
    if batch != 1:
        raise Skipped("has no batches")


def adam(p: Any, g: Any, m: Any, v: Any, power1: Any, power2: Any) -> tuple[Any, Any, Any]:
    """Return updated numbers or arrays; the powers are those of the two constants of Adam."""
    m = BETA1 * m + (1 - BETA1) * g
    v = BETA2 * v + (1 - BETA2) * g * g
    return p - ADAM_RATE * (m / (1 - power1)) / ((v / (1 - power2)) ** 0.5 + EPSILON), m, v


def numba_loop(work: Workload, optimizer: str, batch: int) -> Contestant:
    import numba

    update = numba.njit(adam)

    @numba.njit(error_model="numpy")
    def loop(xa, target, start, batch, with_adam):  # type: ignore[no-untyped-def]
        p = start.copy()
        m, v, g = np.zeros(4), np.zeros(4), np.zeros(4)
        power1, power2 = 1.0, 1.0
        for begin in range(0, xa.shape[0], batch):
            end = min(begin + batch, xa.shape[0])
            ab, ac, bc, cd = p
            by_ab, by_ac, by_cd = 0.0, 0.0, 0.0
            for i in range(begin, end):
                x = xa[i]
                xx = x * x
                xz = (ab + bc) * xx + ac * x
                square = xz * xz
                error = cd * xx + square * xz - target[i]
                bar = 6.0 * error * square
                by_ab += bar * xx
                by_ac += bar * x
                by_cd += 2.0 * error * xx
            part = 1.0 / (end - begin)
            g[0], g[1], g[2], g[3] = by_ab * part, by_ac * part, by_ab * part, by_cd * part
            if with_adam:
                power1 *= BETA1
                power2 *= BETA2
                for k in range(4):
                    p[k], m[k], v[k] = update(p[k], g[k], m[k], v[k], power1, power2)
            else:
                for k in range(4):
                    p[k] -= SGD_RATE * g[k]
        return p

    arguments = work.columns["xa"], work.target, work.start, batch, optimizer == "adam"
    return Contestant(lambda: loop(*arguments), lambda p: (1.0, p))


def numpy_loop(work: Workload, optimizer: str, batch: int) -> Contestant:
    xa, target = work.columns["xa"], work.target

    def run() -> Any:
        p, m, v = work.start.copy(), np.zeros(4), np.zeros(4)
        for step, begin in enumerate(range(0, len(xa), batch), start=1):
            x, t = xa[begin : begin + batch], target[begin : begin + batch]
            g = lecture_gradient(x, t, p)[1] / len(x)
            if optimizer == "sgd":
                p -= SGD_RATE * g
            else:
                p, m, v = adam(p, g, m, v, BETA1**step, BETA2**step)
        return p

    return Contestant(run, lambda p: (1.0, p))


def jax_scan(work: Workload, optimizer: str, batch: int) -> Contestant:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]
    columns = work.columns["xa"], work.target
    data = jax.device_put(tuple(column.reshape(-1, batch) for column in columns))
    start, function = jax.device_put(work.start), work.function

    def loss(p: Any, x: Any, t: Any) -> Any:
        return jnp.mean((function(jnp, [x], list(p)) - t) ** 2)

    def step(state: Any, batch: Any) -> Any:
        p, m, v, count = state
        g = jax.grad(loss)(p, *batch)
        count = count + 1
        if optimizer == "sgd":
            return (p - SGD_RATE * g, m, v, count), None
        return (*adam(p, g, m, v, BETA1**count, BETA2**count), count), None

    @jax.jit
    def epoch(p: Any, data: Any) -> Any:
        state = p, jnp.zeros(4), jnp.zeros(4), jnp.zeros(())
        return jax.lax.scan(step, state, data)[0][0]

    return Contestant(
        lambda: jax.block_until_ready(epoch(start, data)), lambda p: (1.0, np.asarray(p))
    )


def torch_loop(work: Workload, optimizer: str, batch: int) -> Contestant:
    import torch

    torch.set_num_threads(THREADS)
    xa, target = torch.tensor(work.columns["xa"]), torch.tensor(work.target)
    function = work.function

    def run() -> Any:
        p = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in work.start.tolist()]
        kind = torch.optim.SGD if optimizer == "sgd" else torch.optim.Adam
        rule = kind(p, lr=RATES[optimizer])
        for begin in range(0, len(xa), batch):
            x, t = xa[begin : begin + batch], target[begin : begin + batch]
            rule.zero_grad()
            loss = ((function(torch, [x], p) - t) ** 2).mean()
            loss.backward()
            rule.step()
        return p

    return Contestant(run, lambda p: (1.0, [v.item() for v in p]))


def micrograd_loop(work: Workload, optimizer: str, batch: int) -> Contestant:
    _check_single_samples(batch)
    from micrograd.engine import Value

    function = work.function
    samples = list(zip(work.columns["xa"].tolist(), work.target.tolist(), strict=True))

    def run() -> Any:
        p, m, v = [Value(x) for x in work.start.tolist()], [0.0] * 4, [0.0] * 4
        for step, (x, t) in enumerate(samples, start=1):
            for value in p:
                value.grad = 0.0
            ((function(None, [Value(x)], p) - t) ** 2).backward()
            powers = BETA1**step, BETA2**step
            for k, value in enumerate(p):
                if optimizer == "sgd":
                    value.data -= SGD_RATE * value.grad
                else:
                    value.data, m[k], v[k] = adam(value.data, value.grad, m[k], v[k], *powers)
        return p

    return Contestant(run, lambda p: (1.0, [value.data for value in p]))


def original_module(work: Workload, optimizer: str, batch: int) -> Contestant:
    """Prepare the module of the lecture; its gradient differs, so only its time is compared."""
    _check_single_samples(batch)
    if optimizer != "sgd":
        raise Skipped("has no other optimizers")
    os.environ.setdefault("MPLBACKEND", "Agg")
    from ComputationalGraphPrimer import ComputationalGraphPrimer

    with contextlib.redirect_stdout(io.StringIO()):
        model = ComputationalGraphPrimer(
            expressions=list(LECTURE), output_vars=["xw"], dataset_size=work.samples,
            learning_rate=SGD_RATE, grad_delta=1e-4, display_loss_how_often=work.samples,
        )  # fmt: skip
        model.parse_general_dag_expressions()
        model.gen_gt_dataset(vals_for_learnable_params=LECTURE_TRUTH)

    def run() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            model.train_on_all_data()

    return Contestant(run)


PEERS: dict[str, Callable[[Workload, str, int], Contestant]] = {
    "numba by hand": numba_loop,
    "numpy by hand": numpy_loop,
    "JAX jit, scan": jax_scan,
    "torch eager": torch_loop,
    "micrograd": micrograd_loop,
    "ComputationalGraphPrimer": original_module,
}
