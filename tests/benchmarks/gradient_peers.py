"""Loss and gradient of a workload by other libraries, and by hand.

Each function prepares the data in the best form for its library. An ``ImportError`` or
:class:`Skipped` states why a library is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

import cgprimer

from .harness import THREADS, Array, Contestant, Result, Skipped
from .workloads import Workload

MICROGRAD_OPERATIONS = 20_000  # the number of operations that are timed
KEPT_VALUES = 2e8  # the largest number of intermediate values that fit into memory


def cgprimer_engine(work: Workload, engine: str) -> Contestant:
    call = cgprimer.loss_and_gradient(work.graph, work.dataset, engine=engine)
    start = work.start_by_name
    return Contestant(lambda: call(start), lambda r: (r[0], [r[1][n] for n in work.parameters]))


def contestants(
    own: Callable[..., Contestant],
    peers: Mapping[str, Callable[..., Contestant]],
    work: Workload,
    *batch: int,
) -> dict[str, Callable[[], Contestant]]:
    """Return the engines of cgprimer that this machine can run, and the other libraries."""
    engines = [engine.name for engine in cgprimer.engines() if engine.available]
    makers = {f"cgprimer {name}": partial(own, work, name, *batch) for name in engines}
    return makers | {peer: partial(prepare, work, *batch) for peer, prepare in peers.items()}


def skip_unless(condition: object, reason: str) -> None:
    """Leave a contestant out of the table unless a condition holds."""
    if not condition:
        raise Skipped(reason)


def lecture_gradient(xa: Array, target: Array, p: Array) -> tuple[Array, Array]:
    """Return the errors of the lecture graph, and the gradient of their summed squares."""
    ab, ac, bc, cd = p.tolist()
    xx = xa * xa
    xz = (ab + bc) * xx + ac * xa
    square = xz * xz
    error = cd * xx + square * xz - target
    bar_xz = 6 * error * square
    by_ab = bar_xz @ xx
    return error, np.array([by_ab, bar_xz @ xa, by_ab, 2 * (error @ xx)])


def numpy_tuned(work: Workload) -> Contestant:
    skip_unless(work.name == "W1", "written for the lecture graph")
    arguments = work.columns["xa"], work.target, work.start

    def run() -> Result:
        error, gradient = lecture_gradient(*arguments)
        return float(error @ error), gradient

    return Contestant(run, lambda result: result)


def lecture_sums(**options: Any) -> Any:
    """Compile the loss of the lecture graph, and the sums in its gradient without factors."""
    import numba

    @numba.njit(error_model="numpy", **options)
    def sums(inputs, targets, ab, ac, bc, cd):  # type: ignore[no-untyped-def]
        loss, by_ab, by_ac, by_cd = 0.0, 0.0, 0.0, 0.0
        for i in range(inputs.shape[0]):
            x = inputs[i]
            xx = x * x
            xz = (ab + bc) * xx + ac * x
            square = xz * xz
            error = cd * xx + square * xz - targets[i]
            bar = error * square
            loss += error * error
            by_ab += bar * xx
            by_ac += bar * x
            by_cd += error * xx
        return loss, by_ab, by_ac, by_cd

    return sums


def numba_fused(work: Workload) -> Contestant:
    skip_unless(work.name == "W1", "written for the lecture graph")
    import numba

    numba.set_num_threads(min(THREADS, numba.config.NUMBA_NUM_THREADS))
    part_sums = lecture_sums(fastmath=True)

    @numba.njit(parallel=True, fastmath=True, error_model="numpy")
    def kernel(xa, target, ab, ac, bc, cd, sums):  # type: ignore[no-untyped-def]
        workers = sums.shape[0]
        samples = xa.shape[0]
        for k in numba.prange(workers):
            # Slices that are indexed from 0 need no care for negative indices, so the loop becomes
            # vector code, which is four times as fast.
            part = slice(k * samples // workers, (k + 1) * samples // workers)
            sums[k, 0], sums[k, 1], sums[k, 2], sums[k, 3] = part_sums(
                xa[part], target[part], ab, ac, bc, cd
            )

    sums = np.zeros((THREADS, 16))  # each worker writes to its own line of the cache
    arguments = work.columns["xa"], work.target, *work.start.tolist(), sums

    def run() -> Result:
        kernel(*arguments)
        loss, by_ab, by_ac, by_cd = sums.sum(axis=0)[:4].tolist()
        return loss, np.array([6 * by_ab, 6 * by_ac, 6 * by_ab, 2 * by_cd])

    return Contestant(run, lambda result: result)


@dataclass(frozen=True)
class Form:
    """A loss that any library of arrays can compute and differentiate."""

    start: Sequence[Array]  # the parameters
    data: Sequence[Array]  # the inputs, followed by the target
    # The loss from a module (torch, jax.numpy), parameters and data.
    loss: Callable[[Any, Sequence[Any], Sequence[Any]], Any]
    # The gradients as one vector, in the order of the reference.
    vector: Callable[[Sequence[Array]], Array]


def scalar_form(work: Workload) -> Form:
    """Return the scalar expressions of a workload, applied to columns."""
    function = work.function

    def loss(m: Any, parameters: Sequence[Any], data: Sequence[Any]) -> Any:
        error = function(m, data[:-1], parameters) - data[-1]
        return (error * error).sum()

    return Form(list(work.start), [*work.columns.values(), work.target], loss, np.array)


def network_form(start: Sequence[Array], x: Array, y: Array) -> Form:
    """Return a tanh network; ``start`` alternates between weights (out, in) and biases."""

    def loss(m: Any, parameters: Sequence[Any], data: Sequence[Any]) -> Any:
        value, target = data
        for k in range(0, len(parameters), 2):
            value = m.tanh(value) if k else value
            value = value @ parameters[k].T + parameters[k + 1]
        error = value - target
        return (error * error).sum()

    return Form(start, [x, y], loss, lambda parts: np.concatenate([p.ravel() for p in parts]))


def matrix_form(work: Workload) -> Form:
    """Return a network as its matrices, as the users of other libraries would write it."""
    skip_unless(work.layers, "has no matrix form")
    start = [part for layer in work.matrices(work.start) for part in layer]
    form = network_form(start, work.points(), work.target[:, None])
    return replace(form, vector=lambda p: work.vector(list(zip(p[::2], p[1::2], strict=True))))


def jax_gradient(form: Form) -> Contestant:
    import jax

    jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]
    start, data = jax.device_put((list(form.start), list(form.data)))
    gradient = jax.jit(jax.value_and_grad(partial(form.loss, jax.numpy)))
    return Contestant(
        lambda: jax.block_until_ready(gradient(start, data)),
        lambda result: (float(result[0]), form.vector(list(map(np.asarray, result[1])))),
    )


def jax_scalars(work: Workload) -> Contestant:
    seconds = 0.008 * work.operations  # measured: 15 to 31 s for 3,200 operations
    skip_unless(seconds <= 60, f"compiling would take about {seconds:.0f} s")
    return jax_gradient(scalar_form(work))


def torch_gradient(form: Form) -> Contestant:
    import torch

    torch.set_num_threads(THREADS)
    start = [torch.tensor(value, requires_grad=True) for value in form.start]
    data = list(map(torch.tensor, form.data))

    def run() -> Any:
        loss = form.loss(torch, start, data)
        return loss.item(), torch.autograd.grad(loss, start)

    return Contestant(run, lambda r: (r[0], form.vector([part.numpy() for part in r[1]])))


def kept_form(work: Workload) -> Form:
    """Return the scalar expressions for a library that keeps all intermediate values."""
    values = work.operations * work.samples
    skip_unless(values <= KEPT_VALUES, f"keeps all {values:.2g} intermediate values")
    return scalar_form(work)


def casadi_map(work: Workload) -> Contestant:
    seconds = 0.0005 * work.operations
    skip_unless(seconds <= 60, f"compiling would take about {seconds:.0f} s")
    import casadi

    inputs = casadi.SX.sym("x", len(work.inputs))
    target = casadi.SX.sym("t")
    parameters = casadi.SX.sym("p", len(work.parameters))
    output = work.function(casadi, casadi.vertsplit(inputs), casadi.vertsplit(parameters))
    loss = (output - target) ** 2
    both = casadi.vertcat(loss, casadi.gradient(loss, parameters))
    sample = casadi.Function("sample", [inputs, target, parameters], [both])
    # Each thread sums over a part of the samples; all samples use the same parameters.
    part, remainder = divmod(work.samples, THREADS)
    assert remainder == 0, "all threads need equally many samples"
    mapped = sample.map(part, [False, False, True], [True]).map(THREADS, "thread", THREADS)
    arguments = casadi.DM(work.points().T), casadi.DM(work.target[None, :]), casadi.DM(work.start)

    def read(result: Any) -> Result:
        sums = np.asarray(result).sum(axis=1)
        return float(sums[0]), sums[1:]

    return Contestant(lambda: mapped(*arguments), read)


def autograd_gradient(form: Form) -> Contestant:
    from autograd import numpy, value_and_grad

    gradient = value_and_grad(partial(form.loss, numpy))
    return Contestant(
        lambda: gradient(form.start, form.data), lambda r: (float(r[0]), form.vector(r[1]))
    )


def _micrograd_functions() -> Any:
    """Return the functions that micrograd lacks, written as its own are."""
    from micrograd.engine import Value

    def unary(f: Callable[[float], float], slope: Callable[[float, float], float]) -> Any:
        def apply(x: Any) -> Any:
            out = Value(f(x.data), (x,))

            def backward() -> None:
                x.grad += slope(x.data, out.data) * out.grad

            out._backward = backward
            return out

        return staticmethod(apply)

    functions = {
        "sin": unary(math.sin, lambda x, _: math.cos(x)),
        "exp": unary(math.exp, lambda _, y: y),
        "tanh": unary(math.tanh, lambda _, y: 1 - y * y),
    }
    return type("Functions", (), functions)


def micrograd(work: Workload) -> Contestant:
    """Prepare a few samples, because micrograd creates an object per operation and sample."""
    from micrograd.engine import Value

    part = work.head(max(1, min(work.samples, MICROGRAD_OPERATIONS // work.operations)))
    samples = list(zip(*part.columns.values(), part.target, strict=True))
    functions, function = _micrograd_functions(), work.function

    def run() -> Result:
        loss, total = 0.0, np.zeros(len(work.start))
        for *inputs, target in samples:
            parameters = [Value(p) for p in work.start.tolist()]
            output = function(functions, [Value(float(x)) for x in inputs], parameters)
            error = (output - float(target)) ** 2
            error.backward()
            loss += error.data
            total += [p.grad for p in parameters]
        return loss, total

    scale = work.samples / part.samples
    return Contestant(run, lambda result: result, part.samples, scale)


PEERS: dict[str, Callable[[Workload], Contestant]] = {
    "numpy by hand, tuned": numpy_tuned,
    "numba by hand, fused": numba_fused,
    "JAX jit, scalar form": jax_scalars,
    "torch eager, scalar form": lambda work: torch_gradient(kept_form(work)),
    "CasADi SX map": casadi_map,
    "autograd": lambda work: autograd_gradient(kept_form(work)),
    "micrograd": micrograd,
    "JAX jit, matrix form": lambda work: jax_gradient(matrix_form(work)),
    "torch eager, matrix form": lambda work: torch_gradient(matrix_form(work)),
}
