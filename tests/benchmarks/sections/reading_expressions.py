"""Parse texts, and lower their graphs to tapes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import cgprimer
from cgprimer.core.tape.lowering import lower

from ..harness import Cell, Contestant, Settings, measure, one_row, report_progress
from ..report import Table, milliseconds
from ..workloads import create_workload

TABLES = (Table(("text",), {"parse": milliseconds, "lower": milliseconds}),)
NAMES = ("W1", "M1", "M2", "r1k", "r10k", "N64")


def measure_cells(settings: Settings) -> Iterator[Cell]:
    size = 100 if settings.quick else 100_000
    definitions = (f"x{i + 1} = a{i}*x{i} + b" for i in range(size))
    texts = {
        f"{size:,} expressions a*x + b": "\n".join(definitions),
        f"one sum of {size:,} terms": "xw = " + " + ".join(f"a{i}*x{i}" for i in range(size)),
    }
    for name in NAMES[:2] if settings.quick else NAMES:
        texts[name] = "\n".join(create_workload(name, samples=1).expressions)
    for name, text in texts.items():
        report_progress(name)
        runs = {
            "parse": partial(cgprimer.parse, text),
            "lower": partial(lower, cgprimer.parse(text)),
        }
        makers = {stage: partial(Contestant, run) for stage, run in runs.items()}
        yield from one_row(measure(makers, settings.budget / 2), name)
