"""Training runs in one plot: read from files, named, and with a common horizontal axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from cgprimer.errors import UsageError
from cgprimer.training.checkpoint import load_run
from cgprimer.training.runs import TrainingRun

BY = ("auto", "step", "epoch")
FAR = 1000.0  # a run with so many times its initial loss or true values has diverged
UNNAMED = "training"  #: name of a single run without a name
_ENOUGH_EPOCHS = 5

Run: TypeAlias = TrainingRun | str | Path
"""A run, or a saved run."""


def name_runs(runs: Sequence[Run | Mapping[str, Run]]) -> dict[str, TrainingRun]:
    """Load training runs, and name each run by its mapping key, its file name or its index.

    The name of a file is its name without ``.json``, or the whole path if two names would be equal.
    A single run without a name is called ``training``.

    >>> run = TrainingRun(parameters={}, start={}, truth={}, settings={})
    >>> list(name_runs([run, run])), list(name_runs([run])), list(name_runs([{"adam": run}]))
    (['run 1', 'run 2'], ['training'], ['adam'])
    """
    paths = [Path(run) for run in runs if isinstance(run, str | Path)]
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError("the same run file is passed twice")
    stems = [path.name.removesuffix(".json") for path in paths]
    file_names = iter(stems if len(set(stems)) == len(stems) else map(str, paths))
    result: dict[str, TrainingRun] = {}
    for number, entry in enumerate(runs, start=1):
        default = UNNAMED if len(runs) == 1 else f"run {number}"
        default = next(file_names) if isinstance(entry, str | Path) else default
        for name, run in (entry if isinstance(entry, Mapping) else {default: entry}).items():
            if name in result:
                raise UsageError(f"two runs have the name {name!r}")
            loaded = load_run(run) if isinstance(run, str | Path) else run
            if not isinstance(loaded, TrainingRun):
                raise UsageError(
                    f"a run must be a TrainingRun or a file, got {type(loaded).__name__}",
                    hint="pass the result of cgprimer.train(...) or a file written by cgprimer"
                    " train --save",
                )
            result[str(name)] = loaded
    if not result:
        hint = "pass files written by cgprimer train --save, or runs"
        raise UsageError("a plot of runs requires at least one run", hint=hint)
    return result


def choose_axis(runs: Mapping[str, TrainingRun], by: str = "auto") -> str:
    """Choose the horizontal axis: `auto` selects epochs if every run has at least five epochs."""
    for name, run in runs.items():
        if not run.steps:
            raise UsageError(
                f"the run {name!r} has no training step, so there is nothing to draw over time",
                hint="train it for at least one epoch (--epochs 1)",
            )
        if by == "epoch" and not run.epoch_losses:
            hint = "draw it over steps (--by step)"
            raise UsageError(f"the run {name!r} has no complete epoch", hint=hint)
    if by == "auto":
        enough = all(len(run.epoch_losses) >= _ENOUGH_EPOCHS for run in runs.values())
        return "epoch" if enough else "step"
    return by


def steps_per_epoch(run: TrainingRun) -> float:
    """Return the number of steps per epoch, which is computed if an old file lacks it."""
    return float(run.settings.get("steps_per_epoch") or run.steps / max(1, run.epochs))


def merge_true_values(runs: Mapping[str, TrainingRun]) -> dict[str, float]:
    """Merge the true parameter values of all training runs; the values must agree between runs.

    Raises:
        UsageError: two runs have different true values of a parameter.
    """
    truth: dict[str, float] = {}
    for name, run in runs.items():
        for parameter, value in run.truth.items():
            if truth.setdefault(parameter, value) != value:
                raise UsageError(
                    f"the true value of {parameter} in the run {name!r} differs from earlier runs",
                    hint="draw each run separately",
                )
    return truth
