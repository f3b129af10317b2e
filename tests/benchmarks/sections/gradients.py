"""Loss and gradient of the workloads: cgprimer's engines against everyone else."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

import cgprimer

from ..measuring import Entry, Result, Row, add_ratios, contest
from ..peers import by_hand, makers
from ..peers.contract import NOT_FOR_IT
from ..settings import Settings, quietly
from ..workloads import TITLES, WORKLOADS, Workload, make_workload

SECTION = "gradients"


def reference(work: Workload, samples: int | None = None) -> Result:
    """Loss and gradient by cgprimer's numpy engine in float64; everyone has to agree with it."""
    part = work if samples is None else work.head(samples)
    call = cgprimer.loss_and_gradient(part.graph, part.dataset, engine="numpy")
    loss, gradient = call(part.start_by_name)
    return loss, np.array([gradient[name] for name in work.parameters])


def title(work: Workload) -> str:
    named = f" ({TITLES[work.name]})" if work.name in TITLES else ""
    return f"{work.name}{named}, {work.operations:,} operations, {work.samples:,} samples"


def gradients(settings: Settings, names: tuple[str, ...] = tuple(WORKLOADS)) -> list[Row]:
    """All workloads, all peers; a workload's data is dropped before the next is made."""
    rows: list[Row] = []
    for name in settings.workloads or names:
        if settings.quick and not settings.workloads and not WORKLOADS[name][2]:
            continue
        for size in settings.samples or (None,):
            quietly(f"making {name}")
            rows += measure(make_workload(name, quick=settings.quick, samples=size), settings)
    return rows


def measure(work: Workload, settings: Settings) -> list[Row]:
    """One workload: who agrees is timed, the others are listed with the reason."""
    where = title(work)
    ready, absent = makers(work, settings)
    expected = lru_cache(lambda samples: reference(work, samples))
    rows = contest(
        SECTION,
        where,
        ready,
        expected,
        budget=settings.budget,
        dtype=settings.dtype,
        tolerance=settings.tolerance,
        progress=quietly,
    )
    add_ratios(rows, lambda row: row.who.startswith("cgprimer"))
    rows += [
        Row(SECTION, where, who, note=reason) for who, reason in absent if reason != NOT_FOR_IT
    ]
    return rows


def methods_on_lecture(settings: Settings) -> list[Row]:
    """The lecture graph over a batch: all methods, on the numpy engine, against numpy by hand."""
    work = make_workload("W1", quick=settings.quick)

    def ours(method: str) -> Entry:
        call = cgprimer.loss_and_gradient(
            work.graph, work.dataset, method=method, engine="numpy", dtype=settings.dtype
        )
        start = work.start_by_name
        return Entry(
            lambda: call(start), lambda found: (found[0], [found[1][n] for n in work.parameters])
        )

    entries = {
        peer.name: lambda peer=peer: peer.prepare(work, settings)
        for peer in by_hand.peers(settings)
        if not peer.refuses(work, settings)
    }
    entries |= {f"cgprimer numpy, {m}": lambda m=m: ours(m) for m in cgprimer.methods()}
    expected = reference(work)
    rows = contest(
        "batch",
        title(work),
        entries,
        lambda _: expected,
        budget=settings.budget,
        dtype=settings.dtype,
        # Finite differences are approximate.
        tolerance=1e-6 if settings.dtype == "float64" else 1e-1,
        progress=quietly,
    )
    add_ratios(rows, lambda row: row.who == "numpy by hand")
    return rows
