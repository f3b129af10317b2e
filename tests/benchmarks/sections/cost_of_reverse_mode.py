"""The time and the number of operations of loss and gradient, compared with the loss alone."""

from __future__ import annotations

from collections.abc import Iterator

from cgprimer.backends.plans.optimization import optimize
from cgprimer.core.evaluation.engines import select_engine
from cgprimer.training.objective import Objective

from ..harness import Cell, Contestant, Figure, Settings, measure, one_row
from ..report import Table, fixed, milliseconds
from ..workloads import Workload, create_workload

COUNTS = ("operations, derived", "operations, run")
COLUMNS = {"loss, ms": milliseconds, "loss and gradient, ms": milliseconds}
TABLES = (
    Table(
        ("workload, engine",),
        {**COLUMNS, **dict.fromkeys(("time ratio", *COUNTS), fixed(2))},
    ),
)
NAMES = ("M1", "M2", "r1k", "r10k")


def measure_cells(settings: Settings) -> Iterator[Cell]:
    for name in NAMES[:1] if settings.quick else NAMES:
        work = create_workload(name, quick=settings.quick)
        for engine in ("numpy", "cpu"):
            yield from _compare(work, engine, settings)


def _compare(work: Workload, engine: str, settings: Settings) -> Iterator[Cell]:
    objective = Objective(work.graph, engine=engine)
    columns = objective.columns(work.dataset)
    compute_loss = select_engine(engine).compile(objective.primal, reduction="sum", dtype="float64")
    (output,) = objective.primal.outputs
    scalars = work.start_by_name
    loss, gradient = work.reference()

    def loss_alone() -> Contestant:
        return Contestant(
            lambda: compute_loss(columns, scalars, work.samples),
            lambda result: (float(result[output]), gradient),  # there is no gradient to compare
        )

    def loss_and_gradient() -> Contestant:
        return Contestant(
            lambda: objective.sums(columns, work.start, work.samples), lambda result: result
        )

    makers = dict(zip(COLUMNS, (loss_alone, loss_and_gradient), strict=True))
    figures = measure(makers, settings.budget, expected=(loss, gradient))
    seconds = [figure.value for figure in figures.values()]
    if None not in seconds:
        figures["time ratio"] = Figure(seconds[1] / seconds[0])  # type: ignore[operator]
    tape, primal = objective.program.tape, objective.primal
    passes = objective.program.pass_count
    figures[COUNTS[0]] = Figure(len(tape) * passes / len(primal))
    figures[COUNTS[1]] = Figure(len(optimize(tape)) / len(optimize(primal)))
    yield from one_row(figures, f"{work.name}, {engine}")
