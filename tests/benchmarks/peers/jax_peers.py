"""JAX with jit: the graph as scalar expressions over columns, and networks as matrices."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ..measuring import Entry, Result
from ..settings import Settings
from ..workloads import Workload
from .contract import Peer, only_networks, too_large, too_long


@cache
def _device(kind: str) -> Any:
    """The device, warmed up: starting the library is not what is measured."""
    import jax

    jax.config.update("jax_enable_x64", True)
    found = jax.devices("gpu" if kind == "cuda" else "cpu")[0]
    with jax.default_device(found):
        jax.block_until_ready(jax.jit(lambda x: x + 1)(jax.numpy.zeros(3)))
    return found


def _no_device(settings: Settings) -> str:
    try:
        _device(settings.device)
    except RuntimeError as error:
        return f"skipped: JAX sees no such device: {str(error).splitlines()[0][:80]}"
    return ""


def _scalar(work: Workload, settings: Settings) -> Entry:
    import jax
    import jax.numpy as jnp

    def put(value: Any) -> Any:
        return jax.device_put(np.asarray(value, dtype=settings.dtype), device)

    device = _device(settings.device)
    columns = [put(column) for column in work.columns.values()]
    target = put(work.target)
    start = tuple(put(value) for value in work.start)
    function = work.function

    @jax.jit
    @jax.value_and_grad
    def gradient(parameters: Any, columns: Any, target: Any) -> Any:
        error = function(jnp, columns, parameters) - target
        return jnp.sum(error * error)

    def read(found: Any) -> Result:
        return float(found[0]), np.asarray(jax.device_get(found[1]), dtype=np.float64)

    return Entry(lambda: jax.block_until_ready(gradient(start, columns, target)), read)


def _matrices(work: Workload, settings: Settings) -> Entry:
    import jax
    import jax.numpy as jnp

    def put(value: Any) -> Any:
        return jax.device_put(np.asarray(value, dtype=settings.dtype), device)

    device = _device(settings.device)
    # Single precision means single precision: TF32 would be another computation.
    jax.config.update("jax_default_matmul_precision", "highest")
    points, target = put(work.points(settings.dtype)), put(work.target[:, None])
    start = [(put(w), put(b)) for w, b in work.matrices(work.start)]

    @jax.jit
    @jax.value_and_grad
    def gradient(layers: Any, points: Any, target: Any) -> Any:
        hidden = points
        for w, b in layers[:-1]:
            hidden = jnp.tanh(hidden @ w.T + b)
        w, b = layers[-1]
        error = hidden @ w.T + b - target
        return jnp.sum(error * error)

    def read(found: Any) -> Result:
        return float(found[0]), work.vector([(np.asarray(w), np.asarray(b)) for w, b in found[1]])

    return Entry(lambda: jax.block_until_ready(gradient(start, points, target)), read)


def _scalar_refuses(work: Workload, settings: Settings) -> str:
    # Measured: 15 to 31 s for 3,200 operations, given up after 280 s for 10,000.
    estimate = 0.5 + 0.008 * work.operations
    return (
        too_long(estimate, settings) or _no_device(settings) or too_large(work, settings, copies=1)
    )


def peers(settings: Settings) -> list[Peer]:
    return [
        Peer("JAX jit, scalar form", _scalar, ("jax",), _scalar_refuses),
        Peer(
            "JAX jit, matrix form",
            _matrices,
            ("jax",),
            lambda work, s: only_networks(work, s) or _no_device(s),
        ),
    ]
