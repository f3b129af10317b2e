"""``--engine cuda``: the workloads on the GPU, and W1 against a plain copy."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

import cgprimer

from ..measuring import Row, in_turns
from ..peers.ours import engines
from ..settings import Settings, quietly
from ..workloads import make_workload
from . import gradients as on_cpu

NAMES = ("W1", "M1", "M2", "r1k", "N64")
W1_SAMPLES = (1_000_000, 10_000_000, 100_000_000)
COPY_BYTES = 4_000_000_000


def no_gpu() -> str:
    """Why nothing can be measured on a GPU here; empty if it can."""
    reasons = []
    for engine in cgprimer.engines():
        if engine.name == "cuda":
            reasons.append(engine.reason)
    if not reasons:
        return "this cgprimer has no engine called cuda"
    return reasons[0]


def gradients(settings: Settings) -> list[Row]:
    """The workloads; W1 in several sizes unless --samples says which."""
    rows: list[Row] = []
    for name in settings.workloads or NAMES:
        sizes: tuple[int | None, ...] = (None,)
        if name == "W1":
            sizes = settings.samples or (W1_SAMPLES[:1] if settings.quick else W1_SAMPLES)
        for size in sizes:
            quietly(f"making {name}")
            work = make_workload(name, quick=settings.quick, samples=size)
            rows += on_cpu.measure(work, settings)
    return rows


def _copier(size: int) -> tuple[Any, str]:
    """A device-to-device copy of so many bytes that waits for its end, and by whom it is done."""
    try:
        import cupy

        source = cupy.zeros(size, dtype=cupy.uint8)
        goal = cupy.empty_like(source)

        def by_cupy() -> None:
            cupy.copyto(goal, source)
            cupy.cuda.Device().synchronize()

        by_cupy()
    except Exception as error:
        quietly(f"no copy by CuPy ({type(error).__name__}); numba.cuda then")
    else:
        return by_cupy, "CuPy"
    from numba import cuda

    start = cuda.device_array(size // 8, dtype=np.float64)
    end = cuda.device_array_like(start)

    def by_numba() -> None:
        end.copy_to_device(start)
        cuda.synchronize()

    by_numba()
    return by_numba, "numba.cuda"


def bandwidth(settings: Settings) -> list[Row]:
    """W1's bytes per second as a fraction of what a copy moves (read and written)."""
    samples = max(settings.samples or (1_000_000 if settings.quick else W1_SAMPLES[-1],))
    size = 64_000_000 if settings.quick else COPY_BYTES
    work = make_workload("W1", samples=samples)
    rows = []
    copy, who = _copier(size)
    per_sample = 2 * np.dtype(settings.dtype).itemsize
    where = f"W1, {samples:,} samples, {settings.dtype}"
    for engine in engines(settings):
        call = cgprimer.loss_and_gradient(
            work.graph, work.dataset, engine=engine, dtype=settings.dtype
        )
        start = work.start_by_name
        clock = time.perf_counter()
        call(start)
        first = time.perf_counter() - clock
        times = in_turns({"copy": copy, "W1": partial(call, start)}, settings.budget)
        rates = {
            "copy": 2 * size / min(times["copy"]),
            "W1": per_sample * samples / min(times["W1"]),
        }
        rows.append(
            Row("bandwidth", where, f"copy of {size / 1e9:.2g} GB by {who}", min(times["copy"]),
                extra={"GB/s": rates["copy"] / 1e9}, ratio=1.0)
        )  # fmt: skip
        rows.append(
            Row("bandwidth", where, f"cgprimer {engine}", min(times["W1"]), first=first,
                extra={"GB/s": rates["W1"] / 1e9}, ratio=rates["W1"] / rates["copy"],
                note=f"{per_sample} bytes read per sample")
        )  # fmt: skip
    return rows
