"""Sweeps: runs of one graph on one dataset with different settings, for comparison."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from numbers import Real
from threading import Event
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
from cgprimer.training.losses import DEFAULT, load_samples, load_training_data
from cgprimer.training.model_variations import (
    GRAPH,
    SAMPLES,
    TEST_SHARE,
    iterate_combinations,
    match_columns_to_graph,
    sample_subset,
)
from cgprimer.training.runs import TrainingRun
from cgprimer.training.settings import SETTING_NAMES, create_settings

_DEFAULT_THRESHOLD = 0.1  # relative to the loss at the start


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """The result of a sweep: training runs that differ in some settings.

    Attributes:
        varied: the varied settings of each run.
        runs: the runs, in the order of `varied`.
        threshold: the loss for which the table lists the number of steps to get below it.
        halted: number of runs that were not started because of Ctrl-C.
    """

    varied: tuple[dict[str, Any], ...]
    runs: tuple[TrainingRun, ...]
    threshold: float
    halted: int = 0

    @property
    def named(self) -> dict[str, TrainingRun]:
        """The runs, keyed by the values of their varied settings, such as ``adam, 0.01``."""
        names = (", ".join(map(format_cell, settings.values())) for settings in self.varied)
        return dict(zip(names, self.runs, strict=True))

    @property
    def best(self) -> TrainingRun:
        """The run with the lowest final loss, on the validation samples if there are any."""
        return min(self.runs, key=_get_final_loss)

    def rows(self) -> list[dict[str, Any]]:
        """Return one dictionary per run: its varied settings, then its results.

        A varied loss has the key ``loss_function``. ``steps`` is the number of steps until the
        loss was below the threshold, or None; ``seconds`` is the time spent in steps while other
        runs were in progress.
        """
        rows = []
        for varied, run in zip(self.varied, self.runs, strict=True):
            losses = [loss for loss in run.epoch_losses if math.isfinite(loss)]
            others = [loss for loss in run.validation_losses if math.isfinite(loss)]
            row = {"loss_function" if n == "loss" else n: v for n, v in varied.items()}
            row |= {"loss": run.loss, "least": min(losses, default=math.nan)}
            row |= {"validation": others[-1]} if others else {}
            rows.append(
                row | {"steps": count_steps_until(run, self.threshold), "seconds": run.seconds,
                       "stopped": run.stopped}
            )  # fmt: skip
        return rows

    def table(self, style: str = "text") -> str:
        """Format the rows as a table in the given style.

        Args:
            style: ``text``, ``markdown``, ``latex`` or ``csv`` (with all digits).

        Raises:
            UsageError: an unknown style.
        """
        header, body, left = self.cells(exact=style == "csv")
        return table(header, body, style=style, left=left)

    def cells(self, *, exact: bool = False) -> tuple[list[str], list[list[str]], list[int]]:
        """Return the header, the formatted cells, and the indices of text columns.

        Args:
            exact: write numbers with all digits, and keys as the header.
        """
        rows = self.rows()
        keys = list(dict.fromkeys(key for row in rows for key in row))
        left = [k for k, key in enumerate(keys) if any(isinstance(r.get(key), str) for r in rows)]
        if exact:
            return keys, [[_format_exactly(row.get(key)) for key in keys] for row in rows], left
        titles = {
            "learning_rate": "rate", "loss": "final loss", "validation": "validation loss",
            "steps": f"steps to {format_number(self.threshold, 3)}",
            "seconds": "time/s", "stopped": "end",
        }  # fmt: skip
        rows = [row | {"seconds": float(f"{row['seconds']:.1e}")} for row in rows]
        header = [titles.get(key, key.replace("_", " ")) for key in keys]
        return header, [[format_cell(row.get(key)) for key in keys] for row in rows], left

    def to_csv(self) -> str:
        """Return the rows as CSV with all digits; a run above the threshold has empty ``steps``."""
        return self.table("csv") + "\n"

    def __repr__(self) -> str:
        losses = f"final losses {format_number(min(map(_get_final_loss, self.runs)), 6)} and more"
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
    """Train a graph once per combination of settings, with equal start values and samples.

    Runs execute in parallel threads; the results do not depend on the number of threads.

    Args:
        graph, dataset: as in :func:`cgprimer.train`.
        vary: settings to lists of values; all combinations are run. ``samples`` varies the size
            of the training set. ``graph``, a mapping of names to graphs, varies the model; the
            columns of `dataset` are matched by name, or else by position.
        threshold: the loss for which the table lists the number of steps to get below it; by
            default a tenth of the loss at the start.
        jobs: number of runs in parallel; by default the number of cores.
        on_run: called after each run with the number of finished runs and of all runs.
        given: settings of all runs, as for :func:`cgprimer.train`. If ``samples`` varies, a
            quarter of the data are validation samples by default.

    Returns:
        The runs. A run that diverges is included, with ``stopped == "diverged"``. Ctrl-C stops all
        runs in progress and leaves out runs that have not started.

    Raises:
        UsageError, DataError: as :func:`cgprimer.train`, before any run; or nothing varies.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
    >>> data = cgprimer.make_dataset(graph, samples=200)
    >>> vary = {"optimizer": ["sgd", "adam"], "learning_rate": [0.1, 0.01]}
    >>> result = sweep(graph, data, vary, epochs=20, threshold=0.01)
    >>> [run.loss < 0.01 for run in result.runs]
    [True, False, True, False]
    """
    check_graph(graph)
    check_functions(on_run=on_run)
    grid = list(iterate_combinations(vary))
    for combination in grid:
        settings = {**given, **combination}
        create_settings({name: value for name, value in settings.items() if name in SETTING_NAMES})
    if threshold is not None:
        threshold = check_real_number("the threshold", threshold, above=0)
    if SAMPLES in vary:
        dataset, given["validation"] = _split_off_validation(graph, dataset, given)
    if GRAPH in vary:
        data = load_samples(graph, dataset, given.get("loss", DEFAULT))
        dataset = require_in_memory(data, "several graphs require a dataset in memory")
    graphs: Mapping[Any, ExpressionGraph] = dict(vary.get(GRAPH, {}))
    names = [combination.get(GRAPH) for combination in grid]
    calls = [
        _prepare_call(graphs.get(name, graph), dataset, combination, given)
        for name, combination in zip(names, grid, strict=True)
    ]
    for call in dict(zip(names, calls, strict=True)).values():  # report mistakes before any run
        call(epochs=0)
    runs = run_in_parallel(calls, jobs, on_run)
    if threshold is None:
        threshold = _DEFAULT_THRESHOLD * next(iter(runs.values())).start_loss
    varied = tuple(grid[index] for index in runs)
    return Sweep(varied, tuple(runs.values()), threshold, len(grid) - len(runs))


def _split_off_validation(
    graph: ExpressionGraph, data: Any, common: Mapping[str, Any]
) -> tuple[Dataset, Any]:
    """Split the data into training samples and validation samples that all runs share."""
    reason = "training sets of several sizes require a dataset in memory"
    settings = {name: value for name, value in common.items() if name in SETTING_NAMES}
    dataset = require_in_memory(
        load_training_data(graph, data, create_settings(settings)[0])[0], reason
    )
    validation = common.get("validation")
    if validation is None or isinstance(validation, Real):
        fraction = TEST_SHARE if validation is None else float(validation)
        return dataset.split(fraction, common.get("seed", 0))
    return dataset, validation


def _prepare_call(
    graph: ExpressionGraph, data: Any, varied: Mapping[str, Any], common: Mapping[str, Any]
) -> Callable[..., TrainingRun]:
    """Return a partial call to :func:`cgprimer.train` for one combination of settings."""
    settings = dict(common) | {n: v for n, v in varied.items() if n in SETTING_NAMES}
    if SAMPLES in varied:
        data = sample_subset(data, varied[SAMPLES], settings.get("seed", 0))
    if GRAPH in varied:
        data = match_columns_to_graph(graph, data)
        if isinstance(others := settings.get("validation"), Dataset):
            settings["validation"] = match_columns_to_graph(graph, others)
    return partial(train, graph, data, **settings)


def run_in_parallel(
    runs: Sequence[Callable[..., TrainingRun]],
    jobs: int | None = None,
    on_run: Callable[[int, int], None] | None = None,
) -> dict[int, TrainingRun]:
    """Execute training runs in parallel threads; Ctrl-C stops all of them.

    Args:
        runs: calls to :func:`cgprimer.train` with all arguments except ``on_progress``.
        jobs: number of runs in parallel; by default the number of cores.
        on_run: called after each run with the number of finished runs and of all runs.

    Returns:
        The finished and stopped runs by their index, in ascending order.

    Raises:
        UsageError: `jobs` is not a positive integer.
    """
    jobs = check_integer("jobs", os.cpu_count() or 1 if jobs is None else jobs, minimum=1)
    is_stopped = Event()
    results: dict[int, TrainingRun] = {}

    def stop_if_requested(*_: Any) -> None:
        """Raise KeyboardInterrupt, which ends the run cleanly, if Ctrl-C was pressed."""
        if is_stopped.is_set():
            raise KeyboardInterrupt

    def execute_run(index: int) -> None:
        """Execute the run with the given index, and store its result."""
        if is_stopped.is_set():
            return
        try:
            results[index] = runs[index](on_progress=stop_if_requested)
        except NonFiniteError as error:
            if not isinstance(error.run, TrainingRun):
                raise
            results[index] = error.run

    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(execute_run, index) for index in range(len(runs))]
        try:
            for n_finished, future in enumerate(futures, start=1):
                future.result()
                if on_run is not None:
                    on_run(n_finished, len(runs))
        except BaseException as error:
            is_stopped.set()
            pool.shutdown(cancel_futures=True)
            if not isinstance(error, KeyboardInterrupt):
                raise
    if not results:
        raise KeyboardInterrupt
    return dict(sorted(results.items()))


def count_steps_until(run: TrainingRun, threshold: float) -> int | None:
    """Return the number of steps until an epoch's mean loss is below a threshold, or None.

    >>> run = TrainingRun({}, {}, {}, {"steps_per_epoch": 10}, epoch_losses=[2.0, 0.5], steps=20)
    >>> count_steps_until(run, 1.0), count_steps_until(run, 0.1)
    (20, None)
    """
    per_epoch = int(run.settings.get("steps_per_epoch") or 0)
    for epoch, loss in enumerate(run.epoch_losses, start=1):
        if loss < threshold:
            return epoch * per_epoch
    return None


def _get_final_loss(run: TrainingRun) -> float:
    """Return the final validation or training loss; infinite for a run that diverged."""
    loss = run.validation_losses[-1] if run.validation_losses else run.loss
    return loss if math.isfinite(loss) and run.stopped != "diverged" else math.inf


def format_cell(value: Any) -> str:
    """Format a setting or a result for tables and legends, with four digits for floats."""
    if value is None:
        return "-"
    return f"{format_number(value, 4)}" if isinstance(value, float) else str(value)


def _format_exactly(value: Any) -> str:
    """Format a setting or a result with all digits, for CSV."""
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)
