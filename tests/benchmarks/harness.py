"""Time contestants in turns, after their results have been compared with a reference."""

from __future__ import annotations

import gc
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

Array = Any
Result = tuple[float, Array]  # a loss, and the gradient in the order of the parameters
Clock = Callable[[], float]

TURN = 0.05  # seconds of one turn: long enough to refill the processor's caches
LEAST_RUNS = 3
THREADS = 2  # of contestants that have an option for it
# Components of a gradient are sums of numbers that may cancel. The error of a small component is
# therefore relative to this fraction of the largest component.
SMALL_COMPONENT = 1e-3


class Skipped(Exception):
    """The reason why a contestant does not take part."""


@dataclass(frozen=True)
class Settings:
    """Settings of a run."""

    quick: bool = False  # measure the smallest sizes, to see that everything works
    budget: float = 2.0  # seconds of measuring per contestant


@dataclass
class Contestant:
    """A contestant with prepared data."""

    run: Callable[[], Any]  # computes the result once, and returns when it is complete
    read: Callable[[Any], Result] | None = None  # the result of a run; None: nothing to compare
    samples: int | None = None  # of a run, None for all samples
    scale: float = 1.0  # from the measured time to the time of all samples

    def result(self) -> Result:
        assert self.read is not None
        return self.read(self.run())


@dataclass
class Figure:
    """The content of a cell: the least time in seconds, or another number."""

    value: float | None = None  # None if ``note`` says why there is no number
    median: float | None = None  # of the times of ``runs`` runs
    runs: int = 0
    scaled: bool = False  # whether the time was measured on a part of the samples
    note: str = ""


@dataclass
class Cell:
    """A figure and its position in one of the tables of a section."""

    row: tuple[str, ...]
    column: str
    figure: Figure
    table: int = 0


Makers = Mapping[str, Callable[[], Contestant]]


def report_progress(text: str) -> None:
    """Print to stderr, because stdout is for the tables."""
    print(f"[benchmarks] {text}", file=sys.stderr, flush=True)


def relative_error(result: Result, expected: Result) -> float:
    """Return the largest relative error of a loss and a gradient, infinity for nan."""
    (loss, gradient), (expected_loss, reference) = result, expected
    gradient, reference = np.asarray(gradient, float), np.asarray(reference, float)
    if gradient.shape != reference.shape:
        return float("inf")
    sizes = np.abs(reference)
    scale = np.maximum(sizes, SMALL_COMPONENT * sizes.max(initial=0.0))
    scale[scale == 0] = 1.0
    errors = [*np.abs(gradient - reference) / scale]
    errors.append(abs(float(loss) - expected_loss) / (abs(expected_loss) or 1.0))
    return float(max(errors)) if np.isfinite(errors).all() else float("inf")


def run_in_turns(
    runs: Mapping[str, Callable[[], Any]], budget: float, clock: Clock = time.perf_counter
) -> dict[str, list[float]]:
    """Return the times of all runs of each contestant.

    The contestants take turns until each has used its budget. In its turn, a fast contestant runs
    once untimed and then several times. A slow contestant runs once. A contestant that takes twice
    the budget runs fewer than ``LEAST_RUNS`` times.
    """
    times: dict[str, list[float]] = {name: [] for name in runs}
    used = dict.fromkeys(runs, 0.0)
    active = list(runs)
    turn = min(TURN, budget)
    gc.collect()
    gc.freeze()  # the collections between turns need not look at existing objects
    while active:
        for name in list(active):
            run, own = runs[name], times[name]
            gc.collect()
            gc.disable()
            try:
                if own and min(own) < turn:
                    run()
                begin = clock()
                while True:
                    start = clock()
                    run()
                    end = clock()
                    own.append(end - start)
                    if end - begin >= turn:
                        break
            finally:
                gc.enable()
            used[name] += clock() - begin
            enough = len(own) >= LEAST_RUNS and used[name] >= budget
            if enough or used[name] >= 2 * budget:
                active.remove(name)
    gc.unfreeze()
    return times


def measure(
    makers: Makers,
    budget: float,
    *,
    expected: Callable[[int | None], Result] | Result | None = None,
    tolerance: float = 1e-9,
    clock: Clock = time.perf_counter,
) -> dict[str, Figure]:
    """Prepare, compare and time contestants.

    Args:
        makers: For each contestant, the function that prepares it.
        budget: Seconds of measuring per contestant.
        expected: The reference, or a function that returns the reference for the first samples
            (None for all samples); None if there is nothing to compare.
        tolerance: The largest relative error of a contestant.
        clock: The clock, in seconds.
    """
    figures: dict[str, Figure] = {}
    ready: dict[str, Contestant] = {}
    for name, make in makers.items():
        report_progress(name)
        try:
            contestant = make()
            result = contestant.run()
            if contestant.read is not None and expected is not None:
                reference = expected(contestant.samples) if callable(expected) else expected
                error = relative_error(contestant.read(result), reference)
                if not error <= tolerance:
                    note = f"WRONG: relative error {error:.2g}"
                    figures[name] = Figure(note=note)
                    continue
            del result
        except Exception as error:
            figures[name] = Figure(note=_reason(error))
            continue
        figures[name] = Figure()
        ready[name] = contestant
    for name, own in run_in_turns({n: c.run for n, c in ready.items()}, budget, clock).items():
        scale = ready[name].scale
        figures[name] = Figure(min(own) * scale, median(own) * scale, len(own), scale != 1.0)
    return figures


def _reason(error: Exception) -> str:
    if isinstance(error, ImportError):
        return f"skipped: {error.name} is not installed"
    kind = "" if isinstance(error, Skipped) else f"{type(error).__name__}: "
    return f"skipped: {kind}{str(error).strip().partition(chr(10))[0][:160]}"


def one_row_each(
    figures: Mapping[str, Figure], *labels: str, column: str = "time", table: int = 0
) -> Iterator[Cell]:
    """Yield a cell of one column for each contestant, in rows that begin with labels."""
    for name, figure in figures.items():
        yield Cell((*labels, name), column, figure, table)


def one_row(figures: Mapping[str, Figure], *labels: str, table: int = 0) -> Iterator[Cell]:
    """Yield the cells of one row, with the columns as keys."""
    for column, figure in figures.items():
        yield Cell(labels, column, figure, table)


def child_processor_time() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
