"""What the command line asked for; every part of the suite gets it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """How to measure.

    Attributes:
        dtype: ``float64`` or ``float32``.
        device: ``cpu`` or ``cuda``.
        budget: seconds of measuring per contestant and workload.
        compile_budget: a contestant whose compiling would take more seconds is left out.
        threads: for contestants that have the choice.
        quick: small sizes, to see that everything works.
        torch_compile: run torch.compile whatever it costs.
        samples: other sizes than the usual, for the workloads that are named.
        workloads: which; all unless given.
        peers: contestants whose name has one of these in it; all unless given.
    """

    dtype: str = "float64"
    device: str = "cpu"
    budget: float = 2.0
    compile_budget: float = 60.0
    threads: int = 2
    quick: bool = False
    torch_compile: bool = False
    samples: tuple[int, ...] = ()
    workloads: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()

    @property
    def tolerance(self) -> float:
        """Relative; what a contestant may differ by from cgprimer's numpy engine."""
        return 1e-9 if self.dtype == "float64" else 1e-3


def hold_to_threads(threads: int) -> None:
    """Hold this process, and what it starts, to so many processors.

    Some contestants (JAX) have no option for it. To be called before numpy is imported.
    """
    if hasattr(os, "sched_setaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, allowed[:threads])
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(name, str(threads))


def quietly(what: str) -> None:
    """Say on stderr what is going on; stdout is for the tables."""
    print(f"[benchmarks] {what}", file=sys.stderr, flush=True)


Progress = Callable[[str], None]
