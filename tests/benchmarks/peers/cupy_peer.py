"""The lecture DAG on the GPU by hand: CuPy's arrays, and one fused CUDA kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..measuring import Entry, Result
from ..settings import Settings
from ..workloads import Workload
from .by_hand import lecture_gradient
from .contract import Peer, only_lecture

THREADS = 256
# Four sums per thread, then per warp, then per block; the blocks' sums are added up by CuPy.
SOURCE = r"""
extern "C" __global__ void lecture(
    const REAL* __restrict__ xa, const REAL* __restrict__ target, long long samples,
    REAL ab, REAL bc, REAL cd, REAL ac, double* sums)
{
    REAL part[4] = {0, 0, 0, 0};
    long long stride = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < samples; i += stride) {
        REAL x = xa[i], xx = x * x, xz = (ab + bc) * xx + ac * x, square = xz * xz;
        REAL error = cd * xx + square * xz - target[i], bar = error * square;
        part[0] += error * error;
        part[1] += bar * xx;
        part[2] += error * xx;
        part[3] += bar * x;
    }
    __shared__ double warps[32][4];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int k = 0; k < 4; k++) {
        double value = part[k];
        for (int step = 16; step > 0; step >>= 1)
            value += __shfl_down_sync(0xffffffffu, value, step);
        if (lane == 0) warps[warp][k] = value;
    }
    __syncthreads();
    if (threadIdx.x < 4) {
        double value = 0;
        for (int w = 0; w < blockDim.x / 32; w++) value += warps[w][threadIdx.x];
        sums[blockIdx.x * 4 + threadIdx.x] = value;
    }
}
"""


def _data(work: Workload, settings: Settings) -> tuple[Any, Any, Any, list[Any]]:
    import cupy

    xa = cupy.asarray(work.columns["xa"].astype(settings.dtype))
    target = cupy.asarray(work.target.astype(settings.dtype))
    number = np.dtype(settings.dtype).type
    return cupy, xa, target, [number(work.start_by_name[n]) for n in ("ab", "bc", "cd", "ac")]


def _arrays(work: Workload, settings: Settings) -> Entry:
    cupy, xa, target, (ab, bc, cd, ac) = _data(work, settings)

    def run() -> Result:
        xx = xa * xa
        xz = (ab + bc) * xx + ac * xa
        square = xz * xz
        error = cd * xx + square * xz - target
        bar_xz = 6 * error * square
        sums = cupy.stack([error @ error, bar_xz @ xx, error @ xx, bar_xz @ xa]).get().tolist()
        parts = {"ab": sums[1], "bc": sums[1], "cd": 2 * sums[2], "ac": sums[3]}
        return sums[0], lecture_gradient(work.parameters, parts)

    return Entry(run, lambda found: found)


def _fused(work: Workload, settings: Settings) -> Entry:
    cupy, xa, target, scalars = _data(work, settings)
    real = "double" if settings.dtype == "float64" else "float"
    kernel = cupy.RawKernel(SOURCE.replace("REAL", real), "lecture")
    processors = cupy.cuda.Device().attributes["MultiProcessorCount"]
    blocks = processors * 8
    sums = cupy.zeros((blocks, 4), dtype=cupy.float64)
    samples = np.int64(work.samples)

    def run() -> Result:
        kernel((blocks,), (THREADS,), (xa, target, samples, *scalars, sums))
        loss, shared, by_cd, by_ac = sums.sum(axis=0).get().tolist()
        parts = {"ab": 6 * shared, "bc": 6 * shared, "cd": 2 * by_cd, "ac": 6 * by_ac}
        return loss, lecture_gradient(work.parameters, parts)

    return Entry(run, lambda found: found)


def _refuses(work: Workload, settings: Settings) -> str:
    import cupy

    try:
        usable = cupy.cuda.runtime.getDeviceCount() > 0
    except Exception as error:
        return f"skipped: CuPy sees no GPU: {type(error).__name__}"
    return only_lecture(work, settings) if usable else "skipped: CuPy sees no GPU"


def peers(settings: Settings) -> list[Peer]:
    if settings.device != "cuda":
        return []
    return [
        Peer("CuPy by hand, arrays", _arrays, ("cupy",), _refuses),
        Peer("CuPy by hand, one kernel", _fused, ("cupy",), _refuses),
    ]
