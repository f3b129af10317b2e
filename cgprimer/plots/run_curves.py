"""Training runs, read and named to be compared: losses, validation, parameters over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cgprimer.core.methods.contract import Names, as_names
from cgprimer.errors import UsageError, name_hint
from cgprimer.training.checkpoint import load_run
from cgprimer.training.loop import TrainingRun
from cgprimer.training.snapshots import moments

Array: TypeAlias = npt.NDArray[np.float64]

AXES = ("auto", "step", "epoch")
_ENOUGH_EPOCHS = 5
_READABLE = 500  # values of a curve that goes up and down at each of them

Run: TypeAlias = TrainingRun | str | Path
"""A run, or the file of one."""


def named_runs(given: Sequence[Run | Mapping[str, Run]]) -> dict[str, TrainingRun]:
    """Runs by name: those of a mapping by their keys, files by theirs, others by a number.

    A file's name is its own without its ending, or the whole path where two would be the same. A
    run that comes alone and without a name is called ``training``.

    Raises:
        UsageError: no run is given, one is given twice, or a file cannot be read.
        DataError: a file holds no run.

    >>> from cgprimer.data import make_dataset
    >>> from cgprimer.core.graph import parse
    >>> from cgprimer.training.loop import train
    >>> graph = parse("xw = k*xa; parameter k = 2")
    >>> run = train(graph, make_dataset(graph, samples=9), epochs=1)
    >>> list(named_runs([run, run])), list(named_runs([{"adam": run}]))
    (['run 1', 'run 2'], ['adam'])
    """
    found: dict[str, TrainingRun] = {}
    alone = len(given) == 1
    paths = [one for one in given if isinstance(one, str | Path)]
    files = iter(read_runs(paths).items() if paths else ())
    for number, one in enumerate(given, start=1):
        if isinstance(one, str | Path):
            named = dict([next(files)])
        elif isinstance(one, Mapping):
            named = {str(name): _one(run) for name, run in one.items()}
        else:
            named = {"training" if alone else f"run {number}": _one(one)}
        for name, run in named.items():
            if name in found:
                raise UsageError(f"two runs are called {name!r}")
            found[name] = run
    if not found:
        raise UsageError("which runs? Give files that cgprimer train --save wrote, or runs")
    return found


def _one(run: Run) -> TrainingRun:
    if isinstance(run, str | Path):
        return load_run(run)
    if isinstance(run, TrainingRun):
        return run
    raise UsageError(
        f"expected a TrainingRun or a file, not {type(run).__name__}",
        hint="cgprimer.train(...) returns one, cgprimer train --save writes one",
    )


def read_runs(paths: Sequence[str | Path]) -> dict[str, TrainingRun]:
    """Runs that `cgprimer train --save` wrote, by the name of their file.

    Names are the files' own without their endings, or whole paths where two would be the same.

    Raises:
        UsageError: no file is given, one is given twice, or one cannot be read.
        DataError: a file holds no run.
    """
    if not paths:
        raise UsageError("which runs? Give files that cgprimer train --save wrote")
    if len({Path(path).resolve() for path in paths}) < len(paths):
        raise UsageError("the same run is given twice")
    stems = [Path(path).name.split(".")[0] or Path(path).name for path in paths]
    names = stems if len(set(stems)) == len(stems) else [str(path) for path in paths]
    return {name: load_run(path) for name, path in zip(names, paths, strict=True)}


def common_truth(runs: Mapping[str, TrainingRun]) -> dict[str, float]:
    """The true values on which all runs that know them agree.

    Raises:
        UsageError: two runs had different truths, so one picture cannot show both.
    """
    truth: dict[str, float] = {}
    for name, run in runs.items():
        for parameter, value in run.truth.items():
            if truth.setdefault(parameter, value) != value:
                raise UsageError(
                    f"the run {name!r} had another true value of {parameter} than the runs before",
                    hint="draw them one by one",
                )
    return truth


def histories(
    runs: Mapping[str, TrainingRun], by: str = "auto"
) -> tuple[str, dict[str, list[float]]]:
    """The losses of runs over steps or epochs, and which of the two it is.

    `auto` takes epochs where every run has at least five: their means show what batches hide.

    Raises:
        UsageError: another word than those of `AXES`, a run without a step, or no finite loss.
    """
    for name, run in runs.items():
        if not run.step_losses:
            raise UsageError(
                f"the run {name!r} has no step, so there is no loss to draw",
                hint="train it for an epoch at least (--epochs 1)",
            )
    if not any(np.isfinite(run.step_losses).any() for run in runs.values()):
        raise UsageError(
            "no loss of these runs is finite, so there is nothing to draw",
            hint="train again with a smaller learning rate (--learning-rate)",
        )
    by = axis_of(runs, by)
    if by == "step":
        return by, {name: run.step_losses for name, run in runs.items()}
    return by, {name: run.epoch_losses for name, run in runs.items()}


def axis_of(runs: Mapping[str, TrainingRun], by: str = "auto") -> str:
    """`step` or `epoch`; `auto` is epochs where every run has at least five.

    Raises:
        UsageError: another word than those of `AXES`, or by epoch for a run without a whole one.
    """
    if by not in AXES:
        raise UsageError(f"curves are drawn by {', '.join(AXES)}, not by {by!r}")
    if by == "auto":
        enough = all(len(run.epoch_losses) >= _ENOUGH_EPOCHS for run in runs.values())
        return "epoch" if enough else "step"
    for name, run in runs.items():
        if by == "epoch" and not run.epoch_losses:
            raise UsageError(f"the run {name!r} has no whole epoch", hint="by step (--by step)")
    return by


def _steps_per_epoch(run: TrainingRun) -> float:
    """Steps of an epoch; files from before this was written have whole epochs, or none."""
    return float(run.settings.get("steps_per_epoch") or run.steps / max(1, run.epochs))


def validation_curve(run: TrainingRun, by: str) -> tuple[list[float], list[float]]:
    """Validation losses, and the steps or epochs after which they were taken.

    >>> from cgprimer.data import make_dataset
    >>> from cgprimer.core.graph import parse
    >>> from cgprimer.training.loop import train
    >>> graph = parse("xw = k*xa; parameter k = 2")
    >>> data = make_dataset(graph, samples=100)
    >>> run = train(graph, data, epochs=2, batch_size=10, validation=0.2)
    >>> validation_curve(run, "step")[0], validation_curve(run, "epoch")[0]
    ([8.0, 16.0], [1.0, 2.0])
    """
    apart = 1.0 if by == "epoch" else _steps_per_epoch(run)
    losses = run.validation_losses
    return [apart * (k + 1) for k in range(len(losses))], list(losses)


@dataclass(frozen=True, slots=True)
class OverTime:
    """Parameters over time.

    Attributes:
        places: steps or epochs, ascending, from 0 where the start is known.
        values: for each parameter its value at each place.
    """

    places: list[float]
    values: dict[str, list[float]]


def over_time(
    runs: Mapping[str, TrainingRun], by: str = "auto", names: Names = ()
) -> tuple[str, dict[str, OverTime]]:
    """The parameters of runs over steps or epochs, and which of the two it is.

    Args:
        runs: by name.
        by: as for :func:`histories`.
        names: only this parameter, or these; all unless given.

    Raises:
        UsageError: a run without a step, a parameter that no run has, or a run saved before
            parameters were recorded.

    >>> from cgprimer.data import make_dataset
    >>> from cgprimer.core.graph import parse
    >>> from cgprimer.training.loop import train
    >>> graph = parse("xw = k*xa; parameter k = 2")
    >>> run = train(graph, make_dataset(graph, samples=100), epochs=6, start={"k": 1.0})
    >>> by, found = over_time({"adam": run})
    >>> by, found["adam"].places, found["adam"].values["k"][0]
    ('epoch', [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 1.0)
    """
    chosen = chosen_parameters(runs, names)
    for name, run in runs.items():
        if not run.steps:
            raise UsageError(
                f"the run {name!r} has no step, so its parameters have not moved",
                hint="train it for an epoch at least (--epochs 1)",
            )
        if not run.recorded_parameters:
            raise UsageError(
                f"the run {name!r} has no parameters over time: its file is from before they were"
                " recorded",
                hint="train it again, or draw only what it has learnt (--final)",
            )
    by = axis_of(runs, by)
    return by, {name: _over_time(run, by, chosen) for name, run in runs.items()}


def _over_time(run: TrainingRun, by: str, names: Sequence[str]) -> OverTime:
    chosen = [name for name in run.parameters if name in names]
    steps = list(run.recorded_steps)
    values = {name: list(run.recorded_parameters[name]) for name in chosen}
    if _whole(run):
        steps.insert(0, 0)
        for name in chosen:
            values[name].insert(0, run.start[name])
    if not steps or steps[-1] < run.steps:  # ended between two moments
        steps.append(run.steps)
        for name in chosen:
            values[name].append(run.parameters[name])
    apart = 1.0 if by == "step" else _steps_per_epoch(run)
    return OverTime([step / apart for step in steps], values)


def _whole(run: TrainingRun) -> bool:
    """Whether a run was recorded from its beginning: not if it took up one from before that."""
    per_epoch = int(_steps_per_epoch(run))
    planned = moments(int(run.settings.get("epochs", run.epochs)), per_epoch, len(run.parameters))
    first = planned.every * per_epoch
    return (run.recorded_steps[0] if run.recorded_steps else run.steps) <= first


def chosen_parameters(runs: Mapping[str, TrainingRun], names: Names = ()) -> tuple[str, ...]:
    """The parameter or parameters asked for; those of all runs unless given.

    Raises:
        UsageError: a parameter that no run has.
    """
    known = tuple(dict.fromkeys(name for run in runs.values() for name in run.parameters))
    if not names:
        return known
    chosen = as_names(names, "names")
    for name in chosen:
        if name not in known:
            raise UsageError(f"no run has a parameter {name!r}", hint=name_hint(name, known))
    return chosen


def usual_window(losses: Mapping[str, Sequence[float]]) -> int:
    """Over how many neighbours to take means where nobody says: 1 for curves that are readable.

    >>> usual_window({"a": [1.0] * 500}), usual_window({"a": [1.0] * 10_000})
    (1, 100)
    """
    longest = max(map(len, losses.values()), default=0)
    return 1 if longest <= _READABLE else longest // 100


def smoothed(values: Sequence[float], window: int) -> list[float]:
    """The mean over `window` neighbouring values around each; fewer at the ends.

    Values that are not finite are left out of the means.

    Raises:
        UsageError: the window is no positive number.

    >>> smoothed([1.0, 2.0, 6.0, 4.0], 3)
    [1.5, 3.0, 4.0, 5.0]
    """
    if not isinstance(window, int) or window < 1:
        raise UsageError(f"smoothing takes the mean of a positive number of values, not {window!r}")
    array = np.asarray(values, dtype=float)
    finite = np.isfinite(array)
    sums = _window_sums(np.where(finite, array, 0.0), window)
    counts = _window_sums(finite.astype(float), window)
    with np.errstate(invalid="ignore", divide="ignore"):
        means: list[float] = (sums / counts).tolist()
    return means


def _window_sums(values: Array, window: int) -> Array:
    """The sum over the window around each value, with zeros beyond the ends.

    A window is put together from blocks of 1, 2, 4, ... values. Differences of running sums would
    be faster, but a loss of 1e50 at the start would swallow all that come after it.
    """
    blocks = np.pad(values, ((window - 1) // 2, window // 2))
    found = np.zeros(len(values))
    begun, size = 0, 1
    while size <= window:
        if window & size:
            found += blocks[begun : begun + len(values)]
            begun += size
        blocks = blocks[:-size] + blocks[size:]
        size *= 2
    return found
