"""Loss and gradient of the workloads, by the engines of cgprimer and by other libraries."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from ..gradient_peers import PEERS, cgprimer_engine, contestants
from ..harness import Cell, Settings, measure, one_row_each, report_progress
from ..report import Table, milliseconds
from ..workloads import WORKLOADS, create_workload

TABLES = (Table(("contestant",), dict.fromkeys(WORKLOADS, milliseconds)),)
QUICK = ("W1", "M1", "r100")


def measure_cells(settings: Settings) -> Iterator[Cell]:
    for name in QUICK if settings.quick else WORKLOADS:
        report_progress(f"workload {name}")
        work = create_workload(name, quick=settings.quick)
        makers = contestants(cgprimer_engine, PEERS, work)
        figures = measure(makers, settings.budget, expected=cache(work.reference))
        yield from one_row_each(figures, column=name)
