"""Epochs of stochastic gradient descent on the lecture graph, one sample or a few at a time.

Everyone takes the samples in their order, from the same start and at the same constant rate, so
that all must end at the same parameters; that is checked before any time is printed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import cgprimer

from ..measuring import Entry, Row, add_ratios, contest
from ..peers import epoch_loops
from ..peers.ours import engines
from ..settings import Settings, quietly
from ..workloads import Workload, make_workload

RATES = {"sgd": 1e-6, "adam": 1e-3}
SAMPLES, FEW = 10_000, 500


def one_sample(settings: Settings) -> list[Row]:
    """One sample per step, with two optimizers."""
    return [row for name in RATES for row in _epoch(settings, name, 1, "epoch")]


def minibatch(settings: Settings) -> list[Row]:
    """50 samples per step."""
    return [row for name in RATES for row in _epoch(settings, name, 50, "minibatch")]


def ours(work: Workload, engine: str, optimizer: str, batch: int, epochs: int = 1) -> Entry:
    """A call of cgprimer.train, data and all."""
    data, start = work.dataset, work.start_by_name

    def run() -> cgprimer.training.loop.TrainingRun:
        return cgprimer.train(
            work.graph, data, engine=engine, optimizer=optimizer, learning_rate=RATES[optimizer],
            schedule="constant", epochs=epochs, batch_size=batch, start=start, shuffle=False,
        )  # fmt: skip

    return Entry(run, lambda found: (1.0, [found.parameters[name] for name in work.parameters]))


def _epoch(settings: Settings, optimizer: str, batch: int, section: str) -> list[Row]:
    work = make_workload("W1", samples=FEW if settings.quick else SAMPLES)
    rate = RATES[optimizer]
    makers: dict[str, Callable[[], Entry]] = {
        f"cgprimer {engine}": lambda engine=engine: ours(work, engine, optimizer, batch)
        for engine in engines(settings)
    }
    absent = []
    for peer in epoch_loops.LOOPS:
        wanted = not settings.peers or any(p.lower() in peer.name.lower() for p in settings.peers)
        if not wanted or not (peer.batches or batch == 1) or optimizer not in peer.optimizers:
            continue
        reason = peer.missing()
        if reason:
            absent.append(Row(section, "", peer.name, note=reason))
        else:
            makers[peer.name] = lambda peer=peer: peer.prepare(
                work, settings, optimizer, rate, batch
            )
    size = "one sample" if batch == 1 else f"{batch} samples"
    where = f"{optimizer}, {size} per step, one epoch of {work.samples:,} samples"
    reference = ours(work, "numpy", optimizer, batch)
    expected = 1.0, np.array(reference.read(reference.run())[1])  # type: ignore[misc]
    rows = contest(
        section, where, makers, lambda _: expected,
        budget=settings.budget, tolerance=1e-8, progress=quietly,
    )  # fmt: skip
    add_ratios(rows, lambda row: row.who.startswith("cgprimer"))
    for row in absent:
        row.workload = where
    return rows + absent
