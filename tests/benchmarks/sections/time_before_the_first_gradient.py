"""The first gradient in a fresh process, with an empty and with a filled cache."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..harness import Cell, Figure, Settings, report_progress
from ..report import PROGRAMS, ROOT, Table, milliseconds
from ..workloads import create_workload

COLUMNS = ("warm cache", "cold cache", "second call")
TABLES = (Table(("workload",), dict.fromkeys(COLUMNS, milliseconds)),)
NAMES = ("W1", "M1", "M2", "r1k", "r10k", "r100k")
SCRIPT = (PROGRAMS / "first_gradient.py.txt").read_text()


def measure_cells(settings: Settings) -> Iterator[Cell]:
    for name in NAMES[:1] if settings.quick else NAMES:
        report_progress(f"workload {name}")
        work = create_workload(name, quick=settings.quick)
        cold, warm = [], []
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "workload.pickle")
            data = work.columns, {work.output: work.target}, work.start_by_name
            path.write_bytes(pickle.dumps(("\n".join(work.expressions), *data)))
            for repetition in range(1 if settings.quick else 3):
                cache = Path(folder, f"cache{repetition}")
                cold.append(_run_process(path, cache))
                warm.append(_run_process(path, cache))
        seconds = (min(warm)[0], min(cold)[0], min(warm)[1])
        for column, value in zip(COLUMNS, seconds, strict=True):
            yield Cell((name,), column, Figure(value, runs=len(warm)))


def _run_process(path: Path, cache: Path) -> list[float]:
    """Return the seconds of the first and the second call in a fresh process."""
    cache.mkdir(exist_ok=True)
    output = subprocess.check_output(
        [sys.executable, "-c", SCRIPT, str(path)],
        env={**os.environ, "CGPRIMER_CACHE": str(cache)}, cwd=ROOT,
    )  # fmt: skip
    return list(map(float, json.loads(output)))
