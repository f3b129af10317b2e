"""Load saved runs: every field is checked, and nothing in the file is executed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import MISSING
from dataclasses import fields as dataclass_fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from cgprimer.core.derivatives import running_statistics
from cgprimer.errors import CgprimerError, DataError, UsageError, join_names
from cgprimer.expressions import ExpressionGraph, parse
from cgprimer.support.files import convert_path
from cgprimer.training.data.data_sources import report_read_errors
from cgprimer.training.resumption import reorder_parameters
from cgprimer.training.runs import FORMAT, RUN, VERSION, TrainingRun, explain_difference
from cgprimer.training.settings import SETTING_NAMES, validate_setting

_READ_ERRORS = ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError
_MAX_COUNT = 2**53  # integers up to here are exact in JSON


def load_run(path: str | Path, graph: ExpressionGraph | None = None) -> TrainingRun:
    """Load a run saved by :func:`save_run`, for example for ``train(..., resume=run)``.

    Args:
        path: the path of the file, or the folder of a run.
        graph: the graph that the run must have; the graph in the file unless given.

    Raises:
        UsageError: the file cannot be read.
        DataError: the file does not contain a run, or a run of another graph.
    """
    path = convert_path(path)
    path = path / RUN if (path / RUN).is_file() else path
    with report_read_errors(path):
        text = path.read_text(encoding="utf-8")
    try:
        fields = json.loads(text)
        if fields["format"] != FORMAT or fields["version"] != VERSION:
            raise ValueError
        run = _parse_run(fields)
        run.graph = parse(str(fields["graph"]), name=str(path))
    except (*_READ_ERRORS, CgprimerError):
        hint = "save a run with train --save"
        if '"format": "cgprimer-fit"' in text:
            hint = f"the file contains a fit; use its parameters as a point: --at {path}"
        raise DataError(f"{path} does not contain a run saved by cgprimer", hint=hint) from None
    graph = graph or run.graph
    _check_graph(run, graph, path)
    reorder_parameters(run, graph)
    run.graph = graph
    return run


def _check_graph(run: TrainingRun, graph: ExpressionGraph, path: Path) -> None:
    """Raise DataError if a saved run belongs to another graph."""
    if reason := explain_difference(run, graph):
        raise DataError(f"{path} is a run of a different graph: {reason}")
    for statistics in (run.statistics, run.last_statistics):
        try:
            if statistics.keys() != running_statistics(graph, statistics).keys() and statistics:
                raise UsageError(f"it has batchnorm statistics for {join_names(statistics)}")
        except UsageError as error:
            raise DataError(f"{path} is a run of a different graph: {error.message}") from None


def _parse_run(entries: dict[str, Any]) -> TrainingRun:
    """Create a run from the entries of its JSON file, converting each field to its type.

    A field that older files do not have gets its default.

    Raises:
        ValueError, KeyError, TypeError, UsageError: an invalid field.
    """
    fields = {field.name: field for field in dataclass_fields(TrainingRun) if field.name != "graph"}
    required = {n for n, f in fields.items() if f.default is f.default_factory is MISSING}
    values = {n: entries[n] for n in fields if n in entries or n in required}
    run = TrainingRun(
        **{name: _READERS[str(fields[name].type)](value) for name, value in values.items()}
    )
    if not (_has_consistent_parameters(run) and _has_consistent_losses(run)):
        raise ValueError
    if run.team:
        from cgprimer.training.distributed.worker_record import check_record

        check_record(run)
    for name in run.settings.keys() & {*SETTING_NAMES}:
        if isinstance(value := run.settings[name], list):
            value = run.settings[name] = tuple(value)
        validate_setting(name, value)
        if isinstance(value, int):
            _read_count(value)
    return run


def _has_consistent_parameters(run: TrainingRun) -> bool:
    """Return whether the parameter values of a run agree in names, shapes and counts."""
    recorded, steps, shapes = run.recorded_parameters, run.recorded_steps, run.shapes
    size = sum(map(np.size, run.parameters.values()))
    return (
        all(part.shape in ((), (size,)) for part in run.state)
        and run.start.keys() == recorded.keys() == run.parameters.keys()
        and run.last_parameters.keys() in ({*()}, run.parameters.keys())
        and all(np.shape(v) == shapes[n] for n, v in (run.start | run.last_parameters).items())
        and all(len(values) == len(steps) for values in recorded.values())
        and all(np.shape(v) == shapes[n] for n, values in recorded.items() for v in values)
        and all(later > step for step, later in pairwise(steps))
    )


def _has_consistent_losses(run: TrainingRun) -> bool:
    """Return whether the numbers of losses and metrics match the epochs and steps of a run."""
    updates_per_epoch = _read_count(run.settings.get("steps_per_epoch", 0)) or run.steps
    return (
        len(run.epoch_losses) == run.epochs >= run.best_epoch
        and 0 <= run.steps - run.epochs * updates_per_epoch <= updates_per_epoch
        and run.steps_apart > 0
        and isinstance(run.settings.setdefault("loss", "squared-error"), str)
        and len(run.step_losses) == -(-run.steps // run.steps_apart)
        and all(len(values) == run.epochs for values in run.metrics.values())
        and len(run.validation_losses) in (0, run.epochs)
        and len(run.validation_losses) >= run.best_epoch
    )


def _read_list(entries: list[Any], convert: Callable[[Any], Any] = float) -> list[Any]:
    """Apply a conversion to each entry of a JSON list."""
    if not isinstance(entries, list):
        raise TypeError
    return [convert(entry) for entry in entries]


def _read_value(entry: Any) -> Any:
    """Convert a parameter value from JSON to a float or array; nan and inf may be strings."""
    if not isinstance(entry, list):
        return float(entry)
    array = np.array(entry)
    if array.dtype.kind not in "ifU":
        raise TypeError
    return array.astype(float)


def _read_count(value: Any) -> int:
    """Return a JSON value after checking that it is a non-negative integer."""
    if not isinstance(value, int) or not 0 <= value <= _MAX_COUNT:
        raise TypeError
    return value


_READERS: dict[str, Callable[[Any], Any]] = {  # annotation of a field -> its conversion
    "str": str,
    "int": _read_count,
    "float": float,
    "list[int]": lambda entries: _read_list(entries, _read_count),
    "list[float]": _read_list,
    "dict[str, Any]": dict,
    "dict[str, Value]": lambda entries: {str(n): _read_value(v) for n, v in entries.items()},
    "dict[str, list[float]]": lambda entries: {str(n): _read_list(v) for n, v in entries.items()},
    "dict[str, list[Value]]": lambda entries: {
        str(n): _read_list(values, _read_value) for n, values in entries.items()
    },
    "State": lambda parts: tuple(np.array(part, dtype=float) for part in parts),
}
