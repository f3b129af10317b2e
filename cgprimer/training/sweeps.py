"""Many runs of one graph on one dataset, each with other settings, side by side."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any

from cgprimer.analysis.text_tables import table
from cgprimer.core.graph import check_graph
from cgprimer.errors import NonFiniteError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.number_format import format_number
from cgprimer.support.type_checks import check_functions
from cgprimer.support.validation import check_integer, check_real_number
from cgprimer.training.data import Dataset, require_in_memory
from cgprimer.training.loop import train
from cgprimer.training.losses import DEFAULT, data_for, samples_for
from cgprimer.training.model_variations import (
    GRAPH,
    SAMPLES,
    TEST_SHARE,
    combinations,
    renamed_for,
    subset,
)
from cgprimer.training.runs import TrainingRun
from cgprimer.training.settings import SETTING_NAMES, create_settings

_SHARE = 0.1  # of the loss at the start: the threshold unless one is given


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """Runs that differ in some settings.

    Attributes:
        varied: for each run the settings that vary.
        runs: in the same order.
        threshold: a loss; how many steps each run takes to get below it is in the table.
        halted: how many runs Ctrl-C has left out.
    """

    varied: tuple[dict[str, Any], ...]
    runs: tuple[TrainingRun, ...]
    threshold: float
    halted: int = 0

    @property
    def named(self) -> dict[str, TrainingRun]:
        """The runs, called by what varies: ``adam, 0.01``."""
        names = (", ".join(map(word, of.values())) for of in self.varied)
        return dict(zip(names, self.runs, strict=True))

    @property
    def best(self) -> TrainingRun:
        """The run with the least loss at its end: on validation samples where there are some."""
        return min(self.runs, key=_final)

    def rows(self) -> list[dict[str, Any]]:
        """A dictionary for each run: what varies, then what came out.

        A loss that varies is the ``loss_function``.
        ``steps`` counts steps until the loss was below the threshold, None where it never was;
        ``seconds`` is the time spent in steps, beside the other runs.
        """
        rows = []
        for varied, run in zip(self.varied, self.runs, strict=True):
            losses = [loss for loss in run.epoch_losses if math.isfinite(loss)]
            others = [loss for loss in run.validation_losses if math.isfinite(loss)]
            row = {"loss_function" if n == "loss" else n: v for n, v in varied.items()}
            row |= {"loss": run.loss, "least": min(losses, default=math.nan)}
            row |= {"validation": others[-1]} if others else {}
            rows.append(
                row | {"steps": steps_until(run, self.threshold), "seconds": run.seconds,
                       "stopped": run.stopped}
            )  # fmt: skip
        return rows

    def table(self, style: str = "text") -> str:
        """The rows as ``text``, ``markdown``, ``latex`` or ``csv`` (with all digits).

        Raises:
            UsageError: another style.
        """
        header, body, left = self.cells(exact=style == "csv")
        return table(header, body, style=style, left=left)

    def cells(self, *, exact: bool = False) -> tuple[list[str], list[list[str]], list[int]]:
        """The rows as texts: titles, cells, and which columns hold words."""
        rows = self.rows()
        keys = list(dict.fromkeys(key for row in rows for key in row))
        left = [k for k, key in enumerate(keys) if any(isinstance(r.get(key), str) for r in rows)]
        if exact:
            return keys, [[_exact(row.get(key)) for key in keys] for row in rows], left
        words = {
            "learning_rate": "rate", "loss": "final loss", "validation": "validation loss",
            "steps": f"steps to {format_number(self.threshold, 3)}",
            "seconds": "time/s", "stopped": "end",
        }  # fmt: skip
        rows = [row | {"seconds": float(f"{row['seconds']:.1e}")} for row in rows]
        header = [words.get(key, key.replace("_", " ")) for key in keys]
        return header, [[word(row.get(key)) for key in keys] for row in rows], left

    def to_csv(self) -> str:
        """The rows as CSV, with all digits; steps are empty where the threshold was not met."""
        return self.table("csv") + "\n"

    def __repr__(self) -> str:
        losses = f"final losses {format_number(min(map(_final, self.runs)), 6)} and more"
        return f"<Sweep of {len(self.runs)} runs over {', '.join(self.varied[0])}: {losses}>"


def sweep(
    graph: ExpressionGraph,
    dataset: Any,
    vary: Mapping[str, Sequence[Any]],
    *,
    threshold: float | None = None,
    jobs: int | None = None,
    on_run: Callable[[int, int], None] | None = None,
    **given: Any,
) -> Sweep:
    """Train once for each combination of settings, with the same start and the same samples.

    Compiled epochs of several runs are done at once; the results are those of runs one by one.

    Args:
        graph, dataset: as in :func:`cgprimer.train`.
        vary: for each setting its values; all combinations are run. ``samples`` varies the size
            of the training set, and ``graph``, a mapping of names to graphs, the model: columns
            (those of ``graph``) are matched by name, or else by position.
        threshold: a loss; the table says how many steps each run takes to get below it. A tenth
            of the loss at the start unless given.
        jobs: how many runs at once; as many as there are cores unless given.
        on_run: called after each run with how many are done, of how many.
        given: what all runs are given, as to :func:`cgprimer.train`. If samples vary, the
            validation samples are a quarter of the data unless given.

    Returns:
        The runs. One that diverges is among them, with ``stopped == "diverged"``. Ctrl-C ends all
        that are under way and leaves those out that were not begun.

    Raises:
        UsageError, DataError: as :func:`cgprimer.train`, before any run; nothing varies.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
    >>> data = cgprimer.make_dataset(graph, samples=200)
    >>> vary = {"optimizer": ["sgd", "adam"], "learning_rate": [0.1, 0.01]}
    >>> found = sweep(graph, data, vary, epochs=20, threshold=0.01)
    >>> [run.loss < 0.01 for run in found.runs]
    [True, False, True, False]
    """
    check_graph(graph)
    check_functions(on_run=on_run)
    grid = list(combinations(vary))
    for one in grid:
        own = {name: value for name, value in one.items() if name in SETTING_NAMES}
        create_settings({n: value for n, value in given.items() if n in SETTING_NAMES} | own)
    if threshold is not None:
        threshold = check_real_number("the threshold", threshold, above=0)
    if SAMPLES in vary:
        dataset, given["validation"] = _with_test_samples(graph, dataset, given)
    if GRAPH in vary:
        data = samples_for(graph, dataset, given.get("loss", DEFAULT))
        dataset = require_in_memory(data, "columns are matched with several graphs in memory")
    graphs: Mapping[Any, ExpressionGraph] = dict(vary.get(GRAPH, {}))
    calls = [_call(graphs.get(one.get(GRAPH), graph), dataset, one, given) for one in grid]
    first = dict(zip((one.get(GRAPH) for one in grid), calls, strict=True))
    for call in first.values():  # mistakes are reported before any run
        call(epochs=0)
    runs = at_once(calls, jobs, on_run)
    if threshold is None:
        threshold = _SHARE * next(iter(runs.values())).start_loss
    varied = tuple(grid[place] for place in runs)
    return Sweep(varied, tuple(runs.values()), threshold, len(grid) - len(runs))


def _with_test_samples(
    graph: ExpressionGraph, data: Any, given: Mapping[str, Any]
) -> tuple[Dataset, Any]:
    """Return the samples to take training sets from, and those that no run is trained on."""
    why = "training sets of several sizes are taken from data in memory"
    settings = {name: value for name, value in given.items() if name in SETTING_NAMES}
    whole = require_in_memory(data_for(graph, data, create_settings(settings)[0])[0], why)
    share = given.get("validation")
    if share is None or isinstance(share, Real):
        return whole.split(TEST_SHARE if share is None else float(share), given.get("seed", 0))
    return whole, share


def _call(
    graph: ExpressionGraph, data: Any, varied: Mapping[str, Any], given: Mapping[str, Any]
) -> Callable[..., TrainingRun]:
    """Return the call of :func:`cgprimer.train` for one combination."""
    settings = dict(given) | {n: v for n, v in varied.items() if n in SETTING_NAMES}
    if SAMPLES in varied:
        data = subset(data, varied[SAMPLES], settings.get("seed", 0))
    if GRAPH in varied:
        data = renamed_for(graph, data)
        if isinstance(others := settings.get("validation"), Dataset):
            settings["validation"] = renamed_for(graph, others)
    return partial(train, graph, data, **settings)


def at_once(
    runs: Sequence[Callable[..., TrainingRun]],
    jobs: int | None = None,
    on_run: Callable[[int, int], None] | None = None,
) -> dict[int, TrainingRun]:
    """Several runs at once, by ascending places; Ctrl-C ends those under way and begins no others.

    Args:
        runs: calls of :func:`cgprimer.train` that lack nothing but ``on_progress``.
        jobs: how many at once; as many as there are cores unless given.
        on_run: called after each run with how many are done, of how many.

    Raises:
        UsageError: jobs is no positive number.
    """
    jobs = check_integer("jobs", os.cpu_count() or 1 if jobs is None else jobs, minimum=1)
    halted: list[bool] = []
    found: dict[int, TrainingRun] = {}

    def halt(*_: Any) -> None:
        if halted:
            raise KeyboardInterrupt  # as Ctrl-C does it to the main thread: the run ends cleanly

    def one(place: int) -> None:
        if halted:
            return
        try:
            found[place] = runs[place](on_progress=halt)
        except NonFiniteError as error:
            if not isinstance(error.run, TrainingRun):
                raise
            found[place] = error.run

    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(one, place) for place in range(len(runs))]
        try:
            for done, future in enumerate(futures, start=1):
                future.result()
                if on_run is not None:
                    on_run(done, len(runs))
        except BaseException as error:
            halted.append(True)
            pool.shutdown(cancel_futures=True)
            if not isinstance(error, KeyboardInterrupt):
                raise
    if not found:
        raise KeyboardInterrupt
    return dict(sorted(found.items()))


def steps_until(run: TrainingRun, threshold: float) -> int | None:
    """Steps until the mean loss of an epoch, or of as many steps, is below; None if it never is.

    >>> run = TrainingRun({}, {}, {}, {"steps_per_epoch": 10}, epoch_losses=[2.0, 0.5], steps=20)
    >>> steps_until(run, 1.0), steps_until(run, 0.1)
    (20, None)
    """
    per_epoch = int(run.settings.get("steps_per_epoch") or 0)
    for epoch, loss in enumerate(run.epoch_losses, start=1):
        if loss < threshold:
            return epoch * per_epoch
    return None


def _final(run: TrainingRun) -> float:
    loss = run.validation_losses[-1] if run.validation_losses else run.loss
    return loss if math.isfinite(loss) and run.stopped != "diverged" else math.inf


def word(value: Any) -> str:
    """A value of a setting, or a result, as it stands in tables and legends."""
    if value is None:
        return "-"
    return f"{format_number(value, 4)}" if isinstance(value, float) else str(value)


def _exact(value: Any) -> str:
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)
