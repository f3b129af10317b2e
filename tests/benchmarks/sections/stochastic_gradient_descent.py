"""An epoch of the lecture graph, by cgprimer and by the training loops of other libraries.

All contestants use the samples in the same order, the same start and the same constant learning
rate, so that the parameters at the end can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import cgprimer

from ..epoch_peers import PEERS, RATE
from ..gradient_peers import engines
from ..harness import Cell, Contestant, Settings, measure
from ..report import Table, milliseconds
from ..workloads import Workload, create_workload

BATCHES = {"1 sample per step": 1, "50 samples per step": 50}
TABLES = (Table(("contestant",), dict.fromkeys(BATCHES, milliseconds)),)


def train_call(work: Workload, engine: str, batch: int, epochs: int = 1) -> Contestant:
    """Prepare a whole call of ``cgprimer.train``."""
    data, start = work.dataset, work.start_by_name

    def run() -> cgprimer.TrainingRun:
        return cgprimer.train(
            work.graph, data, engine=engine, optimizer="sgd", learning_rate=RATE, epochs=epochs,
            schedule="constant", batch_size=batch, start=start, shuffle=False,
        )  # fmt: skip

    return Contestant(run, lambda result: (1.0, [result.parameters[n] for n in work.parameters]))


def measure_cells(settings: Settings) -> Iterator[Cell]:
    work = create_workload("W1", samples=100 if settings.quick else 10_000)
    for column, batch in BATCHES.items():
        makers: dict[str, Callable[[], Contestant]] = {
            f"cgprimer {engine}": partial(train_call, work, engine, batch) for engine in engines()
        }
        makers |= {peer: partial(prepare, work, batch) for peer, prepare in PEERS.items()}
        expected = train_call(work, "numpy", batch).result()
        figures = measure(makers, settings.budget, expected=expected, tolerance=1e-8)
        for contestant, figure in figures.items():
            yield Cell((contestant,), column, figure)
