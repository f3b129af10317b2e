"""Training runs that are to be drawn together: read, named, and over steps or epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from cgprimer.errors import UsageError
from cgprimer.training.checkpoint import load_run
from cgprimer.training.runs import TrainingRun

BY = ("auto", "step", "epoch")
FAR = 1000.0  # times the loss of the start, or the size of the truth: a run that has diverged
UNNAMED = "training"  #: name of a run that comes alone and without a name
_ENOUGH_EPOCHS = 5

Run: TypeAlias = TrainingRun | str | Path
"""A run, or the file of one."""


def named_runs(given: Sequence[Run | Mapping[str, Run]]) -> dict[str, TrainingRun]:
    """Runs by name: those of a mapping by their keys, files by theirs, others by a number.

    A file's name is its own without ``.json``, or the whole path where two would be the same. A
    run that comes alone and without a name is called ``training``.

    >>> run = TrainingRun(parameters={}, start={}, truth={}, settings={})
    >>> list(named_runs([run, run])), list(named_runs([run])), list(named_runs([{"adam": run}]))
    (['run 1', 'run 2'], ['training'], ['adam'])
    """
    paths = [Path(one) for one in given if isinstance(one, str | Path)]
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError("the same run is given twice")
    stems = [path.name.removesuffix(".json") for path in paths]
    files = iter(stems if len(set(stems)) == len(stems) else map(str, paths))
    found: dict[str, TrainingRun] = {}
    for number, one in enumerate(given, start=1):
        usual = UNNAMED if len(given) == 1 else f"run {number}"
        usual = next(files) if isinstance(one, str | Path) else usual
        for name, run in (one if isinstance(one, Mapping) else {usual: one}).items():
            if name in found:
                raise UsageError(f"two runs are called {name!r}")
            read = load_run(run) if isinstance(run, str | Path) else run
            if not isinstance(read, TrainingRun):
                raise UsageError(
                    f"expected a TrainingRun or a file, not {type(read).__name__}",
                    hint="cgprimer.train(...) returns one, cgprimer train --save writes one",
                )
            found[str(name)] = read
    if not found:
        raise UsageError("which runs? Give files that cgprimer train --save wrote, or runs")
    return found


def axis_of(runs: Mapping[str, TrainingRun], by: str = "auto") -> str:
    """`step` or `epoch`; `auto` is epochs where every run has at least five."""
    for name, run in runs.items():
        if not run.steps:
            raise UsageError(
                f"the run {name!r} has no step, so there is nothing to draw over time",
                hint="train it for an epoch at least (--epochs 1)",
            )
        if by == "epoch" and not run.epoch_losses:
            raise UsageError(f"the run {name!r} has no whole epoch", hint="by step (--by step)")
    if by == "auto":
        enough = all(len(run.epoch_losses) >= _ENOUGH_EPOCHS for run in runs.values())
        return "epoch" if enough else "step"
    return by


def steps_per_epoch(run: TrainingRun) -> float:
    """Steps of an epoch; files from before this was written have whole epochs, or none."""
    return float(run.settings.get("steps_per_epoch") or run.steps / max(1, run.epochs))


def common_truth(runs: Mapping[str, TrainingRun]) -> dict[str, float]:
    """The true values on which all runs that know them agree: one picture cannot show others."""
    truth: dict[str, float] = {}
    for name, run in runs.items():
        for parameter, value in run.truth.items():
            if truth.setdefault(parameter, value) != value:
                raise UsageError(
                    f"the run {name!r} had another true value of {parameter} than the runs before",
                    hint="draw them one by one",
                )
    return truth
