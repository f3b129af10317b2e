"""Training loops over the lecture DAG, each as its library's users write them."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..measuring import Entry
from ..settings import Settings
from ..workloads import LECTURE, LECTURE_TRUTH, Workload
from .contract import Peer

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # of Adam
Prepare = Callable[[Workload, Settings, str, float, int], Entry]


@dataclass(frozen=True)
class Loop:
    """A contestant of the epochs; ``batches``: whether it can take several samples per step."""

    name: str
    prepare: Prepare
    modules: tuple[str, ...] = ()
    batches: bool = True
    optimizers: tuple[str, ...] = ("sgd", "adam")

    def missing(self) -> str:
        return Peer(self.name, lambda work, settings: Entry(lambda: None), self.modules).missing()


def _arrays(work: Workload) -> tuple[Any, Any, Any]:
    assert work.parameters == ("ab", "ac", "bc", "cd")
    return work.columns["xa"], work.target, work.start


def _by_numpy(work: Workload, settings: Settings, optimizer: str, rate: float, batch: int) -> Entry:
    xa, target, start = _arrays(work)

    def run() -> Any:
        p, m, v = start.copy(), np.zeros(4), np.zeros(4)
        for step, begin in enumerate(range(0, len(xa), batch), start=1):
            x, t = xa[begin : begin + batch], target[begin : begin + batch]
            ab, ac, bc, cd = p.tolist()
            xx = x * x
            xz = (ab + bc) * xx + ac * x
            square = xz * xz
            error = cd * xx + square * xz - t
            bar = 6 * error * square
            shared = bar @ xx
            g = np.array([shared, bar @ x, shared, 2 * (error @ xx)]) / len(x)
            if optimizer == "sgd":
                p -= rate * g
            else:
                m = BETA1 * m + (1 - BETA1) * g
                v = BETA2 * v + (1 - BETA2) * g * g
                p -= rate * (m / (1 - BETA1**step)) / (np.sqrt(v / (1 - BETA2**step)) + EPSILON)
        return p

    return Entry(run, lambda p: (1.0, p))


@cache
def _numba_loop() -> Callable[..., Any]:
    import numba

    @numba.njit(error_model="numpy")
    def loop(xa, target, start, rate, batch, adam):  # type: ignore[no-untyped-def]
        p = start.copy()
        m, v, g = np.zeros(4), np.zeros(4), np.zeros(4)
        power1, power2 = 1.0, 1.0
        for begin in range(0, xa.shape[0], batch):
            end = min(begin + batch, xa.shape[0])
            ab, ac, bc, cd = p
            shared, by_ac, by_cd = 0.0, 0.0, 0.0
            for i in range(begin, end):
                x = xa[i]
                xx = x * x
                xz = (ab + bc) * xx + ac * x
                square = xz * xz
                error = cd * xx + square * xz - target[i]
                bar = 6.0 * error * square
                shared += bar * xx
                by_ac += bar * x
                by_cd += 2.0 * error * xx
            share = 1.0 / (end - begin)
            g[0], g[1], g[2], g[3] = shared * share, by_ac * share, shared * share, by_cd * share
            if adam:
                power1 *= BETA1
                power2 *= BETA2
                for k in range(4):
                    m[k] = BETA1 * m[k] + (1 - BETA1) * g[k]
                    v[k] = BETA2 * v[k] + (1 - BETA2) * g[k] * g[k]
                    p[k] -= rate * (m[k] / (1 - power1)) / (np.sqrt(v[k] / (1 - power2)) + EPSILON)
            else:
                for k in range(4):
                    p[k] -= rate * g[k]
        return p

    return loop


def _by_numba(work: Workload, settings: Settings, optimizer: str, rate: float, batch: int) -> Entry:
    xa, target, start = _arrays(work)
    loop = _numba_loop()
    return Entry(
        lambda: loop(xa, target, start, rate, batch, optimizer == "adam"), lambda p: (1.0, p)
    )


def _by_jax(work: Workload, settings: Settings, optimizer: str, rate: float, batch: int) -> Entry:
    import jax
    import jax.numpy as jnp

    from .jax_peers import _device

    device = _device(settings.device)
    xa, target, start = (jax.device_put(a, device) for a in _arrays(work))
    steps = work.samples // batch
    if steps * batch != work.samples:
        raise ValueError("scan wants batches of one size")
    function = work.function

    def loss(p: Any, x: Any, t: Any) -> Any:
        return jnp.mean((function(jnp, [x], list(p)) - t) ** 2)

    def step(state: Any, data: Any) -> Any:
        p, m, v, count = state
        g = jax.grad(loss)(p, *data)
        count = count + 1
        if optimizer == "sgd":
            return (p - rate * g, m, v, count), None
        m = BETA1 * m + (1 - BETA1) * g
        v = BETA2 * v + (1 - BETA2) * g * g
        scale = jnp.sqrt(v / (1 - BETA2**count)) + EPSILON
        return (p - rate * (m / (1 - BETA1**count)) / scale, m, v, count), None

    @jax.jit
    def epoch(p: Any, xa: Any, target: Any) -> Any:
        batches = xa.reshape(steps, batch), target.reshape(steps, batch)
        state = p, jnp.zeros(4), jnp.zeros(4), jnp.zeros(())
        return jax.lax.scan(step, state, batches)[0][0]

    return Entry(
        lambda: jax.block_until_ready(epoch(start, xa, target)), lambda p: (1.0, np.asarray(p))
    )


def _by_torch(work: Workload, settings: Settings, optimizer: str, rate: float, batch: int) -> Entry:
    import torch

    from .torch_peers import _warm

    _warm("cpu", settings.threads)
    xa, target = (torch.tensor(a) for a in _arrays(work)[:2])
    function = work.function

    def run() -> Any:
        p = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in work.start.tolist()]
        kind = torch.optim.SGD if optimizer == "sgd" else torch.optim.Adam
        rule = kind(p, lr=rate)
        for begin in range(0, len(xa), batch):
            x, t = xa[begin : begin + batch], target[begin : begin + batch]
            rule.zero_grad()
            loss = ((function(torch, [x], p) - t) ** 2).mean()
            loss.backward()
            rule.step()
        return p

    return Entry(run, lambda p: (1.0, [v.item() for v in p]))


def _by_micrograd(
    work: Workload, settings: Settings, optimizer: str, rate: float, batch: int
) -> Entry:
    from micrograd.engine import Value

    from .micrograd_peer import functions

    m, function = functions(), work.function
    samples = list(zip(work.columns["xa"].tolist(), work.target.tolist(), strict=True))

    def run() -> Any:
        p = [Value(v) for v in work.start.tolist()]
        first, second = [0.0] * 4, [0.0] * 4
        for step, (x, t) in enumerate(samples, start=1):
            for value in p:
                value.grad = 0.0
            ((function(m, [Value(x)], p) - t) ** 2).backward()
            for k, value in enumerate(p):
                g = value.grad
                if optimizer == "sgd":
                    value.data -= rate * g
                    continue
                first[k] = BETA1 * first[k] + (1 - BETA1) * g
                second[k] = BETA2 * second[k] + (1 - BETA2) * g * g
                scale = (second[k] / (1 - BETA2**step)) ** 0.5 + EPSILON
                value.data -= rate * (first[k] / (1 - BETA1**step)) / scale
        return p

    return Entry(run, lambda p: (1.0, [v.data for v in p]))


def _original(work: Workload, settings: Settings, optimizer: str, rate: float, batch: int) -> Entry:
    """A training run of the original module; its gradient is another one, so only time counts."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    from ComputationalGraphPrimer import ComputationalGraphPrimer

    with contextlib.redirect_stdout(io.StringIO()):
        cgp = ComputationalGraphPrimer(
            expressions=list(LECTURE), output_vars=["xw"], dataset_size=work.samples,
            learning_rate=1e-6, grad_delta=1e-4, display_loss_how_often=work.samples,
        )  # fmt: skip
        cgp.parse_general_dag_expressions()
        cgp.gen_gt_dataset(vals_for_learnable_params=LECTURE_TRUTH)

    def run() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            cgp.train_on_all_data()

    return Entry(run, note="another gradient than the chain rule's: only the time compares")


LOOPS = (
    Loop("numba by hand", _by_numba, ("numba",)),
    Loop("numpy by hand", _by_numpy),
    Loop("JAX jit, scan", _by_jax, ("jax",)),
    Loop("torch eager", _by_torch, ("torch",)),
    Loop("micrograd", _by_micrograd, ("micrograd",), batches=False),
    Loop(
        "ComputationalGraphPrimer",
        _original,
        ("torch", "matplotlib", "ComputationalGraphPrimer"),
        batches=False,
        optimizers=("sgd",),
    ),
)
