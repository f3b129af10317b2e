"""Reading of saved runs: every field is checked, and nothing in the file is executed."""

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
from cgprimer.tapes import elements
from cgprimer.training.data.data_sources import report_read_errors
from cgprimer.training.parameter_vector import Vectors
from cgprimer.training.runs import FORMAT, RUN, VERSION, TrainingRun, differences
from cgprimer.training.settings import SETTING_NAMES, validate_setting

_WRONG = ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError
_MOST = 2**53  # of a number of steps


def load_run(path: str | Path, graph: ExpressionGraph | None = None) -> TrainingRun:
    """Read a run that :func:`save_run` wrote, to be given to ``train(..., resume=run)``.

    Args:
        path: where it is, or the folder of a run.
        graph: the graph that it must be a run of; the one in the file unless given.

    Raises:
        UsageError: the file cannot be read.
        DataError: it holds no run, or a run of another graph.
    """
    path = convert_path(path)
    path = path / RUN if (path / RUN).is_file() else path
    with report_read_errors(path):
        text = path.read_text(encoding="utf-8")
    try:
        fields = json.loads(text)
        if fields["format"] != FORMAT or fields["version"] != VERSION:
            raise ValueError
        run = _run(fields)
        run.graph = parse(str(fields["graph"]), name=str(path))
    except (*_WRONG, CgprimerError):
        hint = "such files are written by train --save"
        if '"format": "cgprimer-fit"' in text:
            hint = f"it holds a fit, whose parameters are a point: --at {path}"
        raise DataError(f"{path} does not hold a run of cgprimer", hint=hint) from None
    names, graph = list(run.parameters), graph or run.graph
    if differs := differences(run, graph):
        raise DataError(f"{path} is a run of another graph: {differs}")
    for of in (run.statistics, run.last_statistics):
        try:
            if of.keys() != running_statistics(graph, of).keys() and of:
                raise UsageError(f"it has statistics of {join_names(of)}")
        except UsageError as error:
            raise DataError(f"{path} is a run of another graph: {error.message}") from None
    run.graph, vectors = graph, Vectors(graph)
    each = (e for name in names for e in elements(name, vectors.shapes[name]))
    place = {element: k for k, element in enumerate(each)}
    order = [place[element] for element in vectors.elements]
    run.parameters = {name: run.parameters[name] for name in graph.parameters}
    run.recorded_parameters = {name: run.recorded_parameters[name] for name in graph.parameters}
    run.last_parameters = {n: run.last_parameters[n] for n in names if run.last_parameters}
    run.state = tuple(part[order] if part.ndim else part for part in run.state)
    return run


def _run(fields: dict[str, Any]) -> TrainingRun:
    """A run from a file's fields, each turned into what its annotation says or refused.

    A field that came later than the file has its default.
    """
    own = {field.name: field for field in dataclass_fields(TrainingRun) if field.name != "graph"}
    needed = {n for n, one in own.items() if one.default is one.default_factory is MISSING}
    given = {n: fields[n] for n in own if n in fields or n in needed}
    run = TrainingRun(**{name: _READ[str(own[name].type)](of) for name, of in given.items()})
    recorded, steps, shapes = run.recorded_parameters, run.recorded_steps, run.shapes
    size = sum(map(np.size, run.parameters.values()))
    per_epoch = _count(run.settings.get("steps_per_epoch", 0)) or run.steps
    if not (
        all(part.shape in ((), (size,)) for part in run.state)
        and run.start.keys() == recorded.keys() == run.parameters.keys()
        and run.last_parameters.keys() in ({*()}, run.parameters.keys())
        and all(np.shape(v) == shapes[n] for n, v in (run.start | run.last_parameters).items())
        and all(len(values) == len(steps) for values in recorded.values())
        and all(np.shape(v) == shapes[n] for n, values in recorded.items() for v in values)
        and all(later > step for step, later in pairwise(steps))
        and len(run.epoch_losses) == run.epochs >= run.best_epoch
        and 0 <= run.steps - run.epochs * per_epoch <= per_epoch
        and run.steps_apart > 0
        and isinstance(run.settings.setdefault("loss", "squared-error"), str)
        and len(run.step_losses) == -(-run.steps // run.steps_apart)
        and all(len(of) == run.epochs for of in run.metrics.values())
        and len(run.validation_losses) in (0, run.epochs)
        and len(run.validation_losses) >= run.best_epoch
    ):
        raise ValueError
    if run.team:
        from cgprimer.training.distributed.worker_record import check_record

        check_record(run)
    for name in run.settings.keys() & {*SETTING_NAMES}:
        if isinstance(value := run.settings[name], list):
            value = run.settings[name] = tuple(value)
        validate_setting(name, value)
        if isinstance(value, int):
            _count(value)
    return run


def _list(entries: list[Any], read: Callable[[Any], Any] = float) -> list[Any]:
    if not isinstance(entries, list):
        raise TypeError
    return [read(value) for value in entries]


def _value(given: Any) -> Any:
    if not isinstance(given, list):
        return float(given)
    found = np.array(given)
    if found.dtype.kind not in "ifU":  # nan and the infinities are texts
        raise TypeError
    return found.astype(float)


def _count(value: Any) -> int:
    if not isinstance(value, int) or not 0 <= value <= _MOST:
        raise TypeError
    return value


_READ: dict[str, Callable[[Any], Any]] = {  # by annotation
    "str": str,
    "int": _count,
    "float": float,
    "list[int]": lambda entries: _list(entries, _count),
    "list[float]": _list,
    "dict[str, Any]": dict,
    "dict[str, Value]": lambda of: {str(name): _value(value) for name, value in of.items()},
    "dict[str, list[float]]": lambda of: {str(n): _list(part) for n, part in of.items()},
    "dict[str, list[Value]]": lambda of: {str(n): _list(part, _value) for n, part in of.items()},
    "State": lambda parts: tuple(np.array(part, dtype=float) for part in parts),
}
