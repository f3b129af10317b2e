"""Loss and gradient of networks of growing width, by all methods of cgprimer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache, partial

from cgprimer.training.objective import Objective

from ..harness import Cell, Contestant, Figure, Settings, Skipped, measure
from ..report import Table, fixed, milliseconds
from ..workloads import Workload, network

METHODS = ("reverse", "path-sum", "symbolic", "forward", "finite-difference")
TABLES = tuple(
    Table(
        ("network", "parameters"),
        dict.fromkeys(METHODS, cell_format),
        left_aligned=1,
    )
    for cell_format in (milliseconds, fixed(0))
)
WIDTHS = (1, 2, 4, 8, 16, 32, 64)
MOST_OPERATIONS = 3_000_000  # of all passes
MOST_SECONDS = 5.0  # of processor time, to prepare and run; larger networks are then skipped


def measure_cells(settings: Settings) -> Iterator[Cell]:
    too_slow: set[str] = set()
    for width in WIDTHS[:2] if settings.quick else WIDTHS:
        layers = (4, width, width, 1)
        samples = 100 if settings.quick else 1000
        work = network("-".join(map(str, layers)), layers, samples)
        row = (work.name, f"{len(work.parameters):,}")
        operations: dict[str, int] = {}
        makers = {
            method: partial(_prepare, work, method, operations, too_slow)
            for method in METHODS
            if method not in too_slow
        }
        # The tolerance is that of finite differences.
        figures = measure(
            makers, settings.budget / 4, expected=cache(work.reference), tolerance=1e-5
        )
        for method in METHODS:
            yield Cell(row, method, figures.get(method, Figure()))
            yield Cell(row, method, Figure(operations.get(method)), table=1)


def _prepare(
    work: Workload, method: str, operations: dict[str, int], too_slow: set[str]
) -> Contestant:
    begin = time.process_time()
    objective = Objective(work.graph, method=method, engine="cpu")
    operations[method] = len(objective.program.tape) * objective.program.pass_count
    if operations[method] > MOST_OPERATIONS:
        too_slow.add(method)
        raise Skipped(f"needs {operations[method]:,} operations")
    columns = objective.columns(work.dataset)
    objective.sums(columns, work.start, work.samples)
    if time.process_time() - begin > MOST_SECONDS:
        too_slow.add(method)
    return Contestant(lambda: objective.sums(columns, work.start, work.samples), lambda r: r)
