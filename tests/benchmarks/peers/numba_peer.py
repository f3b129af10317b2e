"""The lecture DAG in numba, fused by hand: what a good engineer would write for this one graph."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..measuring import Entry, Result
from ..settings import Settings
from ..workloads import Workload
from .by_hand import lecture_gradient
from .contract import Peer, only_lecture


@cache
def _kernel() -> Callable[..., Any]:
    import numba

    @numba.njit(parallel=True, fastmath=True, error_model="numpy")
    def kernel(xa, target, ab, bc, cd, ac, sums):  # type: ignore[no-untyped-def]
        workers = sums.shape[0]
        samples = xa.shape[0]
        for worker in numba.prange(workers):
            # Slices, indexed from 0: negative indices need no care then, and the loop becomes
            # vector code, which is four times faster.
            mine = slice(worker * samples // workers, (worker + 1) * samples // workers)
            inputs, targets = xa[mine], target[mine]
            zero = xa.dtype.type(0)
            loss, shared, by_cd, by_ac = zero, zero, zero, zero
            for i in range(inputs.shape[0]):
                x = inputs[i]
                xx = x * x
                xz = (ab + bc) * xx + ac * x
                square = xz * xz
                error = cd * xx + square * xz - targets[i]
                bar = error * square
                loss += error * error
                shared += bar * xx
                by_cd += error * xx
                by_ac += bar * x
            sums[worker, 0] = loss
            sums[worker, 1] = shared
            sums[worker, 2] = by_cd
            sums[worker, 3] = by_ac

    return kernel


def _prepare(work: Workload, settings: Settings) -> Entry:
    import numba

    numba.set_num_threads(min(settings.threads, numba.config.NUMBA_NUM_THREADS))
    kernel = _kernel()
    number = np.dtype(settings.dtype).type
    xa = np.ascontiguousarray(work.columns["xa"], dtype=settings.dtype)
    target = np.ascontiguousarray(work.target, dtype=settings.dtype)
    scalars = [number(work.start_by_name[name]) for name in ("ab", "bc", "cd", "ac")]
    # Single precision needs more and shorter partial sums, and each worker a cache line of its own.
    workers = settings.threads * (1 if settings.dtype == "float64" else 64)
    partial = np.zeros((workers, 16), dtype=settings.dtype)

    def run() -> Result:
        kernel(xa, target, *scalars, partial)
        loss, shared, by_cd, by_ac = partial.sum(axis=0, dtype=np.float64)[:4].tolist()
        parts = {"ab": 6 * shared, "bc": 6 * shared, "cd": 2 * by_cd, "ac": 6 * by_ac}
        return loss, lecture_gradient(work.parameters, parts)

    return Entry(run, lambda found: found)


def peers(settings: Settings) -> list[Peer]:
    if settings.device == "cuda":
        return []
    return [Peer("numba by hand, fused", _prepare, ("numba",), only_lecture)]
