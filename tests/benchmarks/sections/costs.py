"""What a gradient costs: against the number of parameters, and against the primal alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

import cgprimer
from cgprimer.backends.plans.optimization import optimize
from cgprimer.core.evaluation.engines import select_engine
from cgprimer.training.objective import Objective

from ..measuring import Entry, Row, add_ratios, contest
from ..peers.ours import engines
from ..settings import Settings, quietly
from ..workloads import Workload, make_workload, network
from .gradients import reference, title

WIDTHS = (1, 2, 4, 8, 16, 32, 64)
TOO_MANY = 3e6  # operations times passes on the largest network that a method is tried on
TOO_LONG = 5.0  # seconds for a gradient; the method is left out of the larger networks


def counted(objective: Objective) -> int:
    """Operations of one gradient: those of the tape, times how often it is run."""
    return len(objective.program.tape) * objective.program.pass_count


def methods(settings: Settings) -> list[Row]:
    """A 4-h-h-1 network for growing h, by every method of cgprimer."""
    rows: list[Row] = []
    samples = 100 if settings.quick else 1000
    slow: dict[str, str] = {}
    for width in WIDTHS[:2] if settings.quick else WIDTHS:
        work = network(f"4-{width}-{width}-1", (4, width, width, 1), samples)
        for engine in engines(settings):
            rows += _methods_on(work, engine, settings, slow)
    return rows


def _methods_on(work: Workload, engine: str, settings: Settings, slow: dict[str, str]) -> list[Row]:
    where = f"{work.name}, {len(work.parameters):,} parameters, {work.samples:,} samples, {engine}"
    makers: dict[str, Callable[[], Entry]] = {}
    operations: dict[str, int] = {}
    absent = []

    def prepare(method: str) -> Entry:
        objective = Objective(work.graph, method=method, engine=engine, dtype=settings.dtype)
        operations[method] = counted(objective)
        if operations[method] > TOO_MANY:
            slow[f"{method} {engine}"] = f"{operations[method]:,} operations per sample"
            raise RuntimeError(slow[f"{method} {engine}"])
        columns = objective.columns(work.dataset)
        return Entry(lambda: objective.sums(columns, work.start, work.samples), lambda f: f)

    for method in cgprimer.methods():
        if f"{method} {engine}" in slow:
            note = f"skipped: too slow before ({slow[f'{method} {engine}']})"
            absent.append(Row("methods", where, method, note=note))
        else:
            makers[method] = lambda method=method: prepare(method)
    expected = lru_cache(lambda samples: reference(work, samples))
    rows = contest(
        "methods", where, makers, expected,
        budget=settings.budget / 4,
        dtype=settings.dtype,
        tolerance=1e-5 if settings.dtype == "float64" else 1e-1,  # finite differences
        progress=quietly,
    )  # fmt: skip
    for row in rows:
        row.extra = {"operations": operations.get(row.who, "")}
        if (row.first or 0.0) + (row.seconds or 0.0) > TOO_LONG:
            slow[f"{row.who} {engine}"] = f"{(row.first or 0) + (row.seconds or 0):.1f} s"
    add_ratios(rows, lambda row: row.who == "reverse")
    return rows + absent


def reverse_over_primal(settings: Settings) -> list[Row]:
    """Loss alone against loss and gradient, on the same engine and data."""
    rows = []
    names = settings.workloads or (("M1", "r1k") if settings.quick else ("M1", "M2", "r1k", "r10k"))
    for name in names:
        work = make_workload(name, quick=settings.quick)
        for engine in engines(settings):
            rows += _reverse_on(work, engine, settings)
    return rows


def _reverse_on(work: Workload, engine: str, settings: Settings) -> list[Row]:
    where = f"{title(work)}, {engine}"
    operations: dict[str, int] = {}
    optimized: dict[str, int] = {}

    def both() -> Entry:
        objective = Objective(work.graph, engine=engine, dtype=settings.dtype)
        operations["loss and gradient"] = counted(objective)
        optimized["loss and gradient"] = len(optimize(objective.program.tape))
        columns = objective.columns(work.dataset)
        return Entry(lambda: objective.sums(columns, work.start, work.samples), lambda f: f)

    def primal() -> Entry:
        objective = Objective(work.graph, engine=engine, dtype=settings.dtype)
        operations["loss"] = len(objective.primal)
        optimized["loss"] = len(optimize(objective.primal))
        columns = objective.columns(work.dataset)
        execute = select_engine(engine).compile(
            objective.primal, reduction="sum", dtype=settings.dtype
        )
        (output,) = objective.primal.outputs
        scalars = work.start_by_name
        zeros = np.zeros(len(work.parameters))
        return Entry(
            lambda: execute(columns, scalars, work.samples),
            lambda found: (float(found[output]), zeros),
        )

    loss, gradient = reference(work)
    rows = []
    entries = {"loss": (primal, np.zeros_like(gradient)), "loss and gradient": (both, gradient)}
    # The expected gradient differs, so each is checked alone; then both are timed in turns.
    for who, (make, wanted) in entries.items():
        alone = contest(
            "reverse", where, {who: make}, lambda _, w=wanted: (loss, w),
            budget=0.0, dtype=settings.dtype, tolerance=settings.tolerance, progress=quietly,
        )  # fmt: skip
        rows += [row for row in alone if row.note]
    if not rows:
        rows = contest(
            "reverse", where, {who: make for who, (make, _) in entries.items()}, None,
            budget=settings.budget, progress=quietly,
        )  # fmt: skip
    for row in rows:
        row.extra = {"operations": operations.get(row.who, "")}
    add_ratios(rows, lambda row: row.who == "loss")
    if set(operations) == set(entries) and len(rows) == len(entries):
        for name, count in (("as derived", operations), ("as run", optimized)):
            rows[-1].extra[f"operations over the primal's, {name}"] = (
                count["loss and gradient"] / count["loss"]
            )
    return rows
