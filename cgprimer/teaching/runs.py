"""Saved training runs, read to be compared: by name, and smoothed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from cgprimer.errors import DataError, UsageError
from cgprimer.graph import parse
from cgprimer.training.checkpoint import load_run
from cgprimer.training.loop import TrainingRun

AXES = ("auto", "step", "epoch")
_ENOUGH_EPOCHS = 5


def read_runs(paths: Sequence[str | Path]) -> dict[str, TrainingRun]:
    """Runs that `cgprimer train --save` wrote, by the name of their file.

    Names are the files' own without their endings, or whole paths where two would be the same.

    Raises:
        UsageError: no file is given, one is given twice, or one cannot be read.
        DataError: a file holds no run.
    """
    if not paths:
        raise UsageError("which runs? Give files that cgprimer train --save wrote")
    if len({str(path) for path in paths}) < len(paths):
        raise UsageError("the same run is given twice")
    stems = [Path(path).name.split(".")[0] for path in paths]
    names = stems if len(set(stems)) == len(stems) else [str(path) for path in paths]
    return {name: _read(path) for name, path in zip(names, paths, strict=True)}


def _read(path: str | Path) -> TrainingRun:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is not UTF-8 text") from None
    try:
        graph = str(json.loads(text)["graph"])
    except (ValueError, KeyError, TypeError):
        raise DataError(
            f"{path} does not hold a run of cgprimer", hint="such files are written by --save"
        ) from None
    return load_run(path, parse(graph, name=str(path)))


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
        UsageError: another word than those of `AXES`, or a run without a step.
    """
    if by not in AXES:
        raise UsageError(f"losses are shown by {', '.join(AXES)}, not by {by!r}")
    for name, run in runs.items():
        if not run.step_losses:
            raise UsageError(f"the run {name!r} has no step, so there is no loss to draw")
    if by == "auto":
        enough = all(len(run.epoch_losses) >= _ENOUGH_EPOCHS for run in runs.values())
        by = "epoch" if enough else "step"
    if by == "step":
        return by, {name: run.step_losses for name, run in runs.items()}
    for name, run in runs.items():
        if not run.epoch_losses:
            raise UsageError(f"the run {name!r} has no whole epoch", hint="by step (--by step)")
    return by, {name: run.epoch_losses for name, run in runs.items()}


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
    sums = np.concatenate([[0.0], np.cumsum(np.where(finite, array, 0.0))])
    counts = np.concatenate([[0], np.cumsum(finite)])
    middle = np.arange(len(array))
    low = np.maximum(0, middle - (window - 1) // 2)
    high = np.minimum(len(array), middle + window // 2 + 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        means: list[float] = ((sums[high] - sums[low]) / (counts[high] - counts[low])).tolist()
    return means
