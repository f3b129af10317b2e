"""All cores: a call is cut into as many parts as there are, each for a thread of its own.

Compiled code runs without Python's lock, so threads are enough. Which part does what depends on
the number of samples and of threads alone: the same result from run to run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

THREADS = "CGPRIMER_THREADS"  # environment: how many threads; all cores of the process unless set
WORTH = 2_000_000  # operations below which handing over to another thread costs more than it gives

_pool: ThreadPoolExecutor | None = None


def _forget() -> None:
    global _pool  # noqa: PLW0603 - a child process has none of its parent's threads
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def count() -> int:
    """How many threads may be used."""
    asked = os.environ.get(THREADS, "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def parts(samples: int, unit: int, operations: int) -> list[tuple[int, int]]:
    """First and last sample of each thread's part.

    Args:
        samples: how many there are, a multiple of ``unit``.
        unit: how many samples are taken at a time.
        operations: per sample.

    >>> parts(64, 16, 1)
    [(0, 64)]
    """
    units = samples // unit
    if not units:
        return []
    wanted = min(count(), units, max(1, samples * operations // WORTH + 1))
    edges = [units * part // wanted * unit for part in range(wanted + 1)]
    return list(pairwise(edges))


def run(calls: list[Callable[[], object]]) -> None:
    """Run all, the first in this thread."""
    global _pool  # noqa: PLW0603 - one pool for the process: threads are made once
    if len(calls) > 1 and (_pool is None or _pool._max_workers < len(calls) - 1):
        _pool = ThreadPoolExecutor(len(calls) - 1, thread_name_prefix="cgprimer")
    others = [_pool.submit(call) for call in calls[1:]] if _pool is not None else []
    try:
        for call in calls[:1]:
            call()
    finally:  # never leave while another thread still writes to this call's arrays
        for other in others:
            other.result()
