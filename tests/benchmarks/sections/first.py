"""The first gradient in a fresh process, with an empty and with a filled disk cache."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import cgprimer

from ..measuring import Row
from ..peers.ours import engines
from ..settings import Settings, quietly
from ..workloads import WORKLOADS, Workload, make_workload, random_graph
from .gradients import title

ROOT = Path(__file__).parents[3]
NAMES = ("W1", "M1", "M2", "r1k", "r10k", "r100k")
SAMPLES = {"W1": 1_000_000}

# The graph is at hand and lowered; what is timed begins where a user asks for the gradient.
SCRIPT = """
import json, pickle, sys, time
begin = time.perf_counter()
import cgprimer
cgprimer.loss_and_gradient, cgprimer.Dataset, cgprimer.tape
imported = time.perf_counter()
path, engine, dtype = sys.argv[1:]
with open(path, "rb") as file:
    graph, columns, targets, start = pickle.load(file)
if isinstance(graph, str):
    graph = cgprimer.parse(graph)
cgprimer.tape(graph)
data = cgprimer.Dataset.from_arrays(columns, targets)
ready = time.perf_counter()
call = cgprimer.loss_and_gradient(graph, data, engine=engine, dtype=dtype)
made = time.perf_counter()
loss, gradient = call(start)
first = time.perf_counter()
call(start)
second = time.perf_counter()
print(json.dumps({"import": imported - begin, "first": first - ready, "made": made - ready,
                  "second": second - first, "loss": loss}))
"""


def first_gradient(settings: Settings) -> list[Row]:
    """For each workload and engine: cold cache, then warm."""
    rows: list[Row] = []
    names = ("W1", "r100") if settings.quick else NAMES
    for name in settings.workloads or names:
        quietly(f"first: making {name}")
        few = WORKLOADS[name][1] if settings.quick else None
        rows += measure(make_workload(name, quick=bool(few)), settings)
    return rows


def million(settings: Settings) -> list[Row]:
    """1,000,000 operations."""
    samples = settings.samples[0] if settings.samples else 100
    operations = 2_000 if settings.quick else 1_000_000
    quietly(f"first: making {operations:,} operations; this takes minutes and gigabytes")
    return measure(random_graph(operations, samples), settings, section="million", repeats=1)


def measure(
    work: Workload, settings: Settings, *, section: str = "first", repeats: int = 0
) -> list[Row]:
    """Fresh processes for a workload."""
    rows: list[Row] = []
    repeats = repeats or (1 if settings.quick else 3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "workload.pickle"
        graph: object = work.graph
        cgprimer.tape(work.graph)
        shown = title(work)
        try:
            blob = pickle.dumps(
                (graph, work.columns, {work.output: work.target}, work.start_by_name)
            )
        except (RecursionError, TypeError, AttributeError, pickle.PicklingError):
            blob = pickle.dumps((
                "\n".join(work.expressions), work.columns, {work.output: work.target},
                work.start_by_name,
            ))  # fmt: skip
        path.write_bytes(blob)
        for engine in engines(settings):
            quietly(f"{section} {work.name}: {engine}")
            where = f"{shown}, {engine}"
            cold, warm = [], []
            try:
                for repeat in range(repeats):
                    cache = Path(folder) / f"cache-{engine}-{repeat}"
                    cold.append(_fresh(path, engine, settings.dtype, cache))
                    warm.append(_fresh(path, engine, settings.dtype, cache))
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                rows.append(Row(section, where, "cold", note=f"skipped: {error}"))
                continue
            least = min(t["first"] for t in warm)
            for who, times in (("warm cache", warm), ("cold cache", cold)):
                best = min(times, key=lambda t: t["first"])
                middle = sorted(t["first"] for t in times)[len(times) // 2]
                extra = {f"{k}, ms": best[k] * 1e3 for k in ("import", "made", "second")}
                seconds = best["first"]
                rows.append(Row(section, where, who, seconds, middle, None, len(times), "",
                                seconds / least, extra))  # fmt: skip
    return rows


def _fresh(path: Path, engine: str, dtype: str, cache: Path) -> dict[str, float]:
    """Times of one fresh process."""
    cache.mkdir(exist_ok=True)
    environment = {**os.environ, "CGPRIMER_CACHE": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path), engine, dtype],
        capture_output=True, text=True, env=environment, cwd=ROOT, timeout=1800, check=False,
    )  # fmt: skip
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"exit code {done.returncode}: {last[:150]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found
