"""Contestants take turns; nothing is timed before its result has been checked."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

Array = Any
Result = tuple[float, Array]  # loss, and the gradient in the order of the parameters
TURN = 0.05  # seconds of one turn: long enough to be hot again after the others
FLOOR = {"float64": 1e-3, "float32": 0.1}  # of the largest: smaller components count as this


@dataclass
class Entry:
    """A contestant on one workload, ready to run.

    Attributes:
        run: does the work once, and returns when it is done.
        read: turns what ``run`` returned into loss and gradient; None where there is only time.
        scale: the time is multiplied by it (a contestant that did only a part of the samples).
        part: how many samples it did, if only a part.
        note: for the table.
    """

    run: Callable[[], Any]
    read: Callable[[Any], Result] | None = None
    scale: float = 1.0
    part: int | None = None
    note: str = ""


@dataclass
class Row:
    """A line of a table. ``seconds`` is None where there is no time, and ``note`` says why."""

    section: str
    workload: str
    who: str
    seconds: float | None = None
    median: float | None = None
    first: float | None = None
    runs: int = 0
    note: str = ""
    ratio: float | None = None
    extra: dict[str, Any] = field(default_factory=dict)


def difference(found: Result, expected: Result, dtype: str) -> float:
    """The largest relative difference of loss and gradient.

    Components of the gradient that are far smaller than the largest are measured against a
    fraction of that one: they are sums of numbers that cancel.
    """
    loss, gradient = found
    reference = np.asarray(expected[1], dtype=np.float64)
    gradient = np.asarray(gradient, dtype=np.float64)
    if gradient.shape != reference.shape:
        return float("inf")
    largest = float(np.abs(reference).max(initial=0.0))
    scale = np.maximum(np.abs(reference), FLOOR[dtype] * largest)
    scale[scale == 0] = 1.0
    off = float((np.abs(gradient - reference) / scale).max(initial=0.0))
    off_loss = abs(float(loss) - expected[0]) / (abs(expected[0]) or 1.0)
    # max() alone would lose a nan in its second argument.
    return max(off, off_loss) if np.isfinite([off, off_loss]).all() else float("inf")


def in_turns(
    entries: Mapping[str, Callable[[], Any]], budget: float, least_runs: int = 3
) -> dict[str, list[float]]:
    """Seconds of every run of every contestant, round robin, until each has used its budget.

    In its turn a fast contestant runs once untimed, then several times; a slow one once. One run
    that takes more than the budget is enough.
    """
    times: dict[str, list[float]] = {name: [] for name in entries}
    used = dict.fromkeys(entries, 0.0)
    active = list(entries)
    turn = min(TURN, budget)
    gc.collect()
    gc.freeze()  # what is there already need not be looked through at each turn
    while active:
        for name in list(active):
            run, mine = entries[name], times[name]
            gc.collect()
            gc.disable()
            try:
                if mine and min(mine) < turn:
                    run()
                begin = time.perf_counter()
                while True:
                    start = time.perf_counter()
                    run()
                    end = time.perf_counter()
                    mine.append(end - start)
                    if end - begin >= turn:
                        break
            finally:
                gc.enable()
            used[name] += time.perf_counter() - begin
            enough = len(mine) >= least_runs and used[name] >= budget
            if enough or used[name] >= budget * 2:
                active.remove(name)
    gc.unfreeze()
    return times


def contest(
    section: str,
    workload: str,
    makers: Mapping[str, Callable[[], Entry]],
    expected: Callable[[int | None], Result] | None,
    *,
    budget: float,
    dtype: str = "float64",
    tolerance: float = 1e-9,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Row]:
    """Prepare, check and time contestants on a workload.

    Args:
        section, workload: where the rows belong.
        makers: for each contestant what prepares it; what this and the first run take is the cost
            before the first gradient.
        expected: the reference for the first so many samples (None for all of them); None where
            there is nothing to compare.
    """
    rows: dict[str, Row] = {}
    ready: dict[str, Entry] = {}
    for name, make in makers.items():
        row = rows[name] = Row(section, workload, name)
        progress(f"{section} {workload}: {name}")
        start = time.perf_counter()
        try:
            entry = make()
            found = entry.run()
            row.first = time.perf_counter() - start
            if entry.read is not None and expected is not None:
                off = difference(entry.read(found), expected(entry.part), dtype)
                row.extra["difference"] = off
                if not off <= tolerance:
                    row.note = f"WRONG: differs from cgprimer's numpy engine by {off:.2g}"
                    row.first = None
                    continue
            del found
        except Exception as error:
            text = str(error).strip().split("\n")[0][:160]
            row.note = f"skipped: {type(error).__name__}: {text}"
            row.first = None
            continue
        row.note = entry.note
        ready[name] = entry
    progress(f"{section} {workload}: {len(ready)} in turns")
    times = in_turns({name: entry.run for name, entry in ready.items()}, budget)
    for name, mine in times.items():
        scale, row = ready[name].scale, rows[name]
        row.seconds, row.median, row.runs = min(mine) * scale, median(mine) * scale, len(mine)
        if row.first is not None:
            row.first = max(0.0, row.first - min(mine))
    return list(rows.values())


def add_ratios(rows: list[Row], base: Callable[[Row], bool]) -> None:
    """Divide each time by the least of those rows of the same workload that are the base."""
    for workload in {row.workload for row in rows}:
        same = [r for r in rows if r.workload == workload]
        fair = [r.seconds for r in same if base(r) and r.seconds is not None]
        for row in same:
            if fair and row.seconds is not None:
                row.ratio = row.seconds / min(fair)
