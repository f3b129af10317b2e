"""An epoch of the lecture graph, by cgprimer and by the training loops of other libraries.

All contestants use the samples in the same order, the same start and the same constant learning
rate, so that the parameters at the end can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import cgprimer

from ..epoch_peers import PEERS, RATES
from ..gradient_peers import engines
from ..harness import Cell, Contestant, Settings, measure
from ..report import Table, milliseconds
from ..workloads import Workload, create_workload

CASES = {
    f"{optimizer}, {batch} sample{'s' * (batch > 1)} per step": (optimizer, batch)
    for batch in (1, 50)
    for optimizer in RATES
}
TABLES = (Table(("contestant",), dict.fromkeys(CASES, milliseconds)),)


def train_call(
    work: Workload, engine: str, optimizer: str, batch: int, epochs: int = 1
) -> Contestant:
    """Prepare a whole call of ``cgprimer.train``."""
    data, start = work.dataset, work.start_by_name

    def run() -> cgprimer.TrainingRun:
        return cgprimer.train(
            work.graph, data, engine=engine, optimizer=optimizer, learning_rate=RATES[optimizer],
            schedule="constant", epochs=epochs, batch_size=batch, start=start, shuffle=False,
        )  # fmt: skip

    return Contestant(run, lambda result: (1.0, [result.parameters[n] for n in work.parameters]))


def measure_cells(settings: Settings) -> Iterator[Cell]:
    work = create_workload("W1", samples=100 if settings.quick else 10_000)
    for column, (optimizer, batch) in CASES.items():
        makers: dict[str, Callable[[], Contestant]] = {
            f"cgprimer {engine}": partial(train_call, work, engine, optimizer, batch)
            for engine in engines()
        }
        makers |= {
            peer: partial(prepare, work, optimizer, batch) for peer, prepare in PEERS.items()
        }
        expected = train_call(work, "numpy", optimizer, batch).result()
        figures = measure(makers, settings.budget, expected=expected, tolerance=1e-8)
        for contestant, figure in figures.items():
            yield Cell((contestant,), column, figure)
