"""What a peer is."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from ..measuring import Entry
from ..settings import Settings
from ..workloads import Workload

NOT_FOR_IT = "-"  # a peer that has no form for the workload; such lines are left out of the table


@dataclass(frozen=True)
class Peer:
    """One way to compute loss and gradient.

    Attributes:
        name: what the tables call it.
        prepare: puts the data into the peer's own best form, and makes what is to be timed.
        modules: what it needs installed.
        refuses: why it does not do a workload; empty if it does.
        ours: whether it is an engine of cgprimer.
    """

    name: str
    prepare: Callable[[Workload, Settings], Entry]
    modules: tuple[str, ...] = ()
    refuses: Callable[[Workload, Settings], str] = lambda work, settings: ""
    ours: bool = False

    def missing(self) -> str:
        """Why it cannot run here at all; empty if it can."""
        for module in self.modules:
            try:
                import_module(module)
            except ImportError as error:
                wanted = (error.name or "").partition(".")[0] == module.partition(".")[0]
                return "not installed" if wanted else f"skipped: cannot be imported: {error}"
            except Exception as error:
                return f"skipped: import fails: {type(error).__name__}: {error}"
        return ""


def only_networks(work: Workload, settings: Settings) -> str:
    """For matrix forms."""
    return "" if work.layers else NOT_FOR_IT


def only_lecture(work: Workload, settings: Settings) -> str:
    """For what was written by hand for the lecture DAG."""
    return "" if work.name == "W1" else NOT_FOR_IT


def too_long(estimate: float, settings: Settings) -> str:
    """Whether compiling would take too long."""
    if estimate <= settings.compile_budget:
        return ""
    return (
        f"skipped: compiling would take about {estimate:.0f} s or more"
        f" (--compile-budget {settings.compile_budget:.0f})"
    )


def too_large(work: Workload, settings: Settings, copies: float = 3.0) -> str:
    """Whether a peer that keeps every intermediate would run out of memory.

    Args:
        copies: arrays of all samples that it keeps per operation, derivatives included.
    """
    size = 8 if settings.dtype == "float64" else 4
    needed = work.operations * work.samples * size * copies
    free = 60e9 if settings.device == "cuda" else _free_memory() * 0.4
    if needed <= free:
        return ""
    return f"skipped: keeps every intermediate, {needed / 1e9:.0f} GB of {free / 1e9:.0f} to use"


def _free_memory() -> float:
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (ValueError, OSError):
        return 8e9
