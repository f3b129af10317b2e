"""Training, sweeps, certified fits and files, in processor time."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import OptimizeWarning, curve_fit

import cgprimer

from ...fitting import nist
from ..harness import (
    Cell,
    Contestant,
    Figure,
    Settings,
    child_processor_time,
    measure,
    one_row,
    one_row_each,
    report_progress,
)
from ..report import PROGRAMS, Table, fixed, milliseconds
from ..workloads import create_workload
from .stochastic_gradient_descent import numba_loop, train_call


def _digits(figure: Figure) -> str:
    return fixed(0 if figure.value == CERTIFIED_DIGITS else 1)(figure)


TABLES = (
    Table(("task", "contestant"), {"time": milliseconds}),
    Table(
        ("problem", "start"),
        {
            "steps": fixed(0),
            "digits": _digits,
            "time": milliseconds,
            "SciPy: digits": _digits,
            "SciPy: time": milliseconds,
        },
        left_aligned=1,
    ),
)
CERTIFIED_DIGITS = 11
FURTHER_EPOCHS = 40
# How a separate process reads a file.
READERS = {
    "cgprimer, csv": "from cgprimer import Dataset\n"
    "read = lambda p: Dataset.load(p, inputs=['x1', 'x2', 'x3', 'x4'], targets=['y'])",
    "pandas, csv": "import pandas\nread = pandas.read_csv",
    "cgprimer, training from Parquet in blocks, parquet": "import cgprimer\n"
    "graph = cgprimer.parse('y = a*x1 + b*x2 + c*x3 + d*x4')\n"
    "read = lambda p: cgprimer.train(graph, p, epochs=1)",
}
READ_SCRIPT = (PROGRAMS / "read_file.py.txt").read_text()


def measure_cells(settings: Settings) -> Iterator[Cell]:
    yield from _epochs(settings)
    yield from _sweep(settings)
    try:
        nist.folder()
    except pytest.skip.Exception as error:
        yield Cell(("certified problems", "all"), "time", Figure(note=str(error)))
    else:
        yield from _fits(settings)
        for name in nist.NAMES[: 1 if settings.quick else None]:
            for start in ("start1", "start2"):
                yield from _certified_problem(name, start, settings)
    yield from _files(settings)


def _epochs(settings: Settings) -> Iterator[Cell]:
    """Yield the times of one epoch, and of each further epoch of the same call."""
    work = create_workload("W1", samples=100 if settings.quick else 10_000)
    for batch in (1, 50):
        makers = {
            "a call of train": partial(train_call, work, "cpu", batch),
            "a further epoch in the same call": partial(
                train_call, work, "cpu", batch, 1 + FURTHER_EPOCHS
            ),
            "numba by hand": partial(numba_loop, work, batch),
        }
        figures = measure(makers, settings.budget, clock=time.process_time)
        one, further = list(figures.values())[:2]
        seconds = (further.value - one.value) / FURTHER_EPOCHS  # type: ignore[operator]
        figures["a further epoch in the same call"] = Figure(seconds)
        label = f"an epoch of {work.samples:,} samples, sgd, {batch} per step"
        yield from one_row_each(figures, label)


def _measure_once(run: Callable[[], Any]) -> tuple[Any, Figure]:
    """Return the result and the processor time of one run."""
    begin = time.process_time()
    result = run()
    return result, Figure(time.process_time() - begin, runs=1)


def _sweep(settings: Settings) -> Iterator[Cell]:
    """Yield the time of a sweep of a 4-2-1 network: batches of 8, 625 steps per epoch."""
    samples, epochs = (80, 1) if settings.quick else (5_000, 32)
    graph = cgprimer.load("two_layers")
    data = cgprimer.make_dataset(graph, samples=samples)
    vary = {
        "optimizer": ["sgd", "momentum", "adam"],
        "learning_rate": [0.3, 0.1, 0.03, 0.01, 0.003, 0.001],
    }
    report_progress("cgprimer.sweep")
    run = partial(cgprimer.sweep, graph, data, vary, epochs=epochs, batch_size=8)
    sweep, figure = _measure_once(run)
    label = f"a sweep of {len(sweep.runs)} runs, {sweep.runs[0].steps:,} steps of 8 each"
    yield Cell((label, "cgprimer.sweep"), "time", figure)


def _fits(settings: Settings) -> Iterator[Cell]:
    """Yield the times of bootstraps, and of a fit as a whole process."""
    certified, graph, data = nist.problem("Misra1a")
    fit = cgprimer.fit(graph, data, start=certified["start1"])
    n = 20 if settings.quick else 1_000
    for pairs, drawn in ((False, "residuals"), (True, "samples")):
        report_progress(f"bootstrap, {drawn}")
        _, figure = _measure_once(partial(fit.bootstrap, n, seed=0, pairs=pairs))
        label = f"{n:,} bootstrap fits of Misra1a, {drawn} drawn"
        yield Cell(("certified problems", label), "time", figure)
    certified, _, _ = nist.problem("Thurber")
    start = ",".join(f"{name}={value!r}" for name, value in certified["start1"].items())
    command = [
        sys.executable, "-m", "cgprimer", "fit", "-e", certified["model"],
        "--data", str(nist.folder() / "Thurber.csv"), "--start", start, "--json",
    ]  # fmt: skip
    run = partial(subprocess.run, command, check=True, capture_output=True)
    makers = {"cgprimer fit of Thurber, the whole process": partial(Contestant, run)}
    figures = measure(makers, settings.budget, clock=child_processor_time)
    yield from one_row_each(figures, "certified problems")


def _certified_problem(name: str, start: str, settings: Settings) -> Iterator[Cell]:
    """Yield the digits and the times of cgprimer and SciPy."""
    problem, graph, data = nist.problem(name)
    initial, certified = problem[start], problem["certified"]
    (output,), (variable,) = graph.outputs, graph.inputs
    x, y = (np.asarray(data.columns[column]) for column in (variable, output))

    def model(points: np.ndarray, *values: float) -> np.ndarray:
        parameters = dict(zip(certified, values, strict=True))
        return graph.evaluate({variable: points, **parameters})[output]

    def run_scipy() -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OptimizeWarning)
            values = [initial[parameter] for parameter in certified]
            return curve_fit(model, x, y, p0=values, maxfev=100_000)[0]

    fit = cgprimer.fit(graph, data, start=initial)
    scipy_parameters = dict(zip(certified, run_scipy().tolist(), strict=True))
    makers = {
        "time": partial(Contestant, partial(cgprimer.fit, graph, data, start=initial)),
        "SciPy: time": partial(Contestant, run_scipy),
    }
    figures = {
        "steps": Figure(len(fit.history) - 1),
        "digits": Figure(count_digits(fit.parameters, certified)),
        "SciPy: digits": Figure(count_digits(scipy_parameters, certified)),
        **measure(makers, settings.budget / 4, clock=time.process_time),
    }
    yield from one_row(figures, name, start.removeprefix("start"), table=1)


def count_digits(parameters: Mapping[str, float], certified: Mapping[str, float]) -> float:
    """Return the smallest number of digits in which parameters agree with certified values."""
    error = max(abs(parameters[name] - value) / abs(value) for name, value in certified.items())
    return min(CERTIFIED_DIGITS, -math.log10(error)) if error > 0 else CERTIFIED_DIGITS


def _files(settings: Settings) -> Iterator[Cell]:
    """Yield the times of reading CSV, and of training from a Parquet file in blocks."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    random = np.random.default_rng(0)
    for name, reader in READERS.items():
        kind = name.rpartition(" ")[2]
        write = csv.write_csv if kind == "csv" else parquet.write_table
        size = 1_000 if settings.quick else 2_100_000 if kind == "csv" else 5_000_000
        report_progress(name)
        with tempfile.TemporaryDirectory() as folder:
            paths = [str(Path(folder, f"{part}.{kind}")) for part in ("all", "few")]
            names = ("x1", "x2", "x3", "x4", "y")
            table = pa.table({column: random.normal(size=size) for column in names})
            write(table, paths[0])
            write(table.slice(0, 100), paths[1])
            command = [sys.executable, "-c", READ_SCRIPT.format(reader=reader), *paths]
            run = partial(subprocess.run, command, capture_output=True, text=True, check=False)
            processes = [run() for _ in range(1 if settings.quick or kind == "parquet" else 3)]
        label = f"files: {size:,} rows of five"
        if any(process.returncode for process in processes):
            reason = processes[0].stderr.strip().rpartition("\n")[2]
            yield Cell((label, name), "time", Figure(note=f"skipped: {reason}"))
            continue
        seconds = [json.loads(process.stdout) for process in processes]
        yield Cell((label, name), "time", Figure(min(seconds), runs=len(seconds)))
