"""Training and fitting: whole calls, a sweep, fits, and files; in processor time.

Times are those of the processor, so that other work on the machine counts little; the least of
several runs. A sweep and whole processes are those of all their threads together.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer

from ...fitting import nist
from ..measuring import Row
from ..peers import epoch_loops
from ..settings import Settings, quietly
from ..workloads import make_workload
from .epochs import RATES, ours

_FURTHER = 40  # epochs
FIT, FILES = "certified problems", "files"
_READ = {  # what a process of its own does with a file; after a small one
    "cgprimer": "from cgprimer import Dataset\n"
    "read = lambda p: Dataset.load(p, inputs=['x1', 'x2', 'x3', 'x4'], targets=['y'])",
    "pandas": "import pandas\nread = pandas.read_csv",
    "cgprimer, training from Parquet in blocks": "import cgprimer\n"
    "graph = cgprimer.parse('y = a*x1 + b*x2 + c*x3 + d*x4')\n"
    "read = lambda p: cgprimer.train(graph, p, epochs=1)",
}
_CHILD = """
import json, sys, time
from pathlib import Path
{read}
read(sys.argv[2])  # a few rows: what it imports
begin = time.process_time()
read(sys.argv[1])
used = time.process_time() - begin
# Not ru_maxrss, in which is the process that started this one.
status = Path("/proc/self/status").read_text()
print(json.dumps([used, int(status.split("VmHWM:")[1].split()[0]) / 1e3]))
"""


def learning(settings: Settings) -> list[Row]:
    """The numbers that were hoped for when training and fitting were written."""
    return [*_calls(settings), *_sweep(settings), *_fits(settings), *_files(settings)]


def measure_least(run: Callable[[], Any], times: int) -> float:
    found = []
    for _ in range(times):
        begin = time.process_time()
        run()
        found.append(time.process_time() - begin)
    return min(found)


def _calls(settings: Settings) -> list[Row]:
    """One epoch of the lecture graph, and what a further one costs, which is steps alone."""
    work = make_workload("W1", samples=500 if settings.quick else 10_000)
    times = 3 if settings.quick else 200
    rows = []
    for batch in (1, 50):
        where = f"an epoch of {work.samples:,} samples, sgd, {batch} per step"
        quietly(f"learning: {where}")
        mine, longer = (
            ours(work, settings.device, "sgd", batch, epochs) for epochs in (1, 1 + _FURTHER)
        )
        mine.run()
        one = measure_least(mine.run, times)
        rows.append(Row("learning", where, "a call of train", one))
        further = (measure_least(longer.run, times) - one) / _FURTHER
        rows.append(Row("learning", where, "a further epoch in the same call", further))
        by_hand = next(p for p in epoch_loops.LOOPS if p.name.startswith("numba"))
        if (reason := by_hand.missing()) or settings.quick:
            rows.append(Row("learning", where, by_hand.name, note=reason or "not compiled"))
            continue
        peer = by_hand.prepare(work, settings, "sgd", RATES["sgd"], batch)
        peer.run()
        rows.append(Row("learning", where, by_hand.name, measure_least(peer.run, times)))
    return rows


def _sweep(settings: Settings) -> list[Row]:
    """The homework: a 4-2-1 network, batches of 8, three optimizers at six rates."""
    samples, epochs = (200, 1) if settings.quick else (5_000, 32)  # 625 steps each
    graph = cgprimer.load("two_layers")
    data = cgprimer.make_dataset(graph, samples=samples)
    vary = {
        "optimizer": ["sgd", "momentum", "adam"],
        "learning_rate": [0.3, 0.1, 0.03, 0.01, 0.003, 0.001],
    }
    quietly("learning: sweep")
    begin, used = time.perf_counter(), time.process_time()
    found = cgprimer.sweep(graph, data, vary, epochs=epochs, batch_size=8)
    used, whole = time.process_time() - used, time.perf_counter() - begin
    where = f"a sweep of {len(found.runs)} runs, {found.runs[0].steps:,} steps of 8 each"
    return [Row("learning", where, "cgprimer.sweep", used, extra={"wall, s": round(whole, 2)})]


def _fits(settings: Settings) -> list[Row]:
    """Thurber as a whole process, and a bootstrap of Misra1a."""
    try:
        folder = nist.folder()
    except pytest.skip.Exception as error:
        return [Row("learning", FIT, "cgprimer fit", note=str(error))]
    quietly("learning: fits")
    certified, graph, data = nist.problem("Misra1a")
    found = cgprimer.fit(graph, data, start=certified["start1"])
    many = 20 if settings.quick else 1_000
    rows = []
    for pairs in (False, True):
        what = f"{many:,} bootstrap fits of Misra1a, {'samples' if pairs else 'residuals'} drawn"
        again = partial(found.bootstrap, many, seed=0, pairs=pairs)
        rows.append(Row("learning", FIT, what, measure_least(again, 1)))
    certified, _, _ = nist.problem("Thurber")
    start = ",".join(f"{name}={value!r}" for name, value in certified["start1"].items())
    command = [sys.executable, "-m", "cgprimer", "fit", "-e", certified["model"],
               "--data", str(folder / "Thurber.csv"), "--start", start, "--json"]  # fmt: skip

    def process() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    least = min(process() for _ in range(1 if settings.quick else 5))
    return [*rows, Row("learning", FIT, "cgprimer fit of Thurber, the whole process", least)]


def _files(settings: Settings) -> list[Row]:
    """206 MB of CSV beside pandas, and five million rows of Parquet that are trained on."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    rows = []
    names = ("x1", "x2", "x3", "x4", "y")
    random = np.random.default_rng(0)
    for who, ending, full in zip(
        _READ, ("csv", "csv", "parquet"), (2_100_000, 2_100_000, 5_000_000), strict=True
    ):
        size = 2_000 if settings.quick else full
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"data.{ending}")
            made = pa.table({name: random.normal(size=size) for name in names})
            few = Path(folder, f"few.{ending}")
            for table, where in ((made, path), (made.slice(0, 100), few)):
                (csv.write_csv if ending == "csv" else parquet.write_table)(table, where)
            quietly(f"learning: {who}, {path.stat().st_size / 1e6:.0f} MB of {ending}")
            done = [
                subprocess.run([sys.executable, "-c", _CHILD.format(read=_READ[who]), path, few],
                               check=True, capture_output=True, text=True).stdout
                for _ in range(1 if settings.quick or ending == "parquet" else 3)
            ]  # fmt: skip
        used, memory = min(map(json.loads, done))
        where = f"{FILES}: {size:,} rows of five"
        rows.append(Row("learning", where, f"{who}, {ending}", used, extra={"MB": round(memory)}))
    return rows
