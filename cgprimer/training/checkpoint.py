"""Runs as files: JSON that a person can read and :func:`load_run` can take up again."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from dataclasses import fields as dataclass_fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from cgprimer.core.graph import ExpressionGraph, parse
from cgprimer.core.tape.scalars import elements
from cgprimer.errors import DataError, UsageError
from cgprimer.files import json_text, write_whole
from cgprimer.training.loop import TrainingRun
from cgprimer.training.vectors import Vectors

FORMAT = "cgprimer-run"
VERSION = 1


def save_run(run: TrainingRun, path: str | Path, graph: ExpressionGraph) -> None:
    """Write a run, with the text of its graph, as JSON.

    Raises:
        UsageError: the file cannot be written.
    """
    write_whole(path, json_text(run_as_dict(run, graph)) + "\n")


def run_as_dict(run: TrainingRun, graph: ExpressionGraph) -> dict[str, Any]:
    """A run as plain data; the keys are documented in ``docs/getting-started.md``."""
    fields = asdict(run)
    fields["state"] = [np.asarray(part).tolist() for part in run.state]
    for name in ("parameters", "start", "truth", "recorded_parameters"):
        fields[name] = {n: np.asarray(of).tolist() for n, of in fields[name].items()}
    return {"format": FORMAT, "version": VERSION, "graph": graph.text, **fields}


def load_run(path: str | Path, graph: ExpressionGraph | None = None) -> TrainingRun:
    """Read a run that :func:`save_run` wrote, to be given to ``train(..., resume=run)``.

    Args:
        path: where it is.
        graph: the graph that it must be a run of; the one in the file unless given.

    Raises:
        UsageError: the file cannot be read.
        DataError: it holds no run, or a run of another graph.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is not UTF-8 text") from None
    try:
        fields = json.loads(text)
        if fields["format"] != FORMAT or fields["version"] != VERSION:
            raise ValueError
        run, text = _run(fields), str(fields["graph"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        hint = "such files are written by --save"
        raise DataError(f"{path} does not hold a run of cgprimer", hint=hint) from None
    own = parse(text, name=str(path))
    names, graph = list(run.parameters), own if graph is None else graph
    if sorted(names) != sorted(graph.parameters):
        others = f"{', '.join(names)}, this graph's are {', '.join(graph.parameters)}"
        raise DataError(f"{path} is a run of another graph: its parameters are {others}")
    vectors = Vectors(graph)
    for name, shape in vectors.shapes.items():
        given = [of[name] for of in (run.parameters, run.start, run.truth) if name in of]
        for wrong in (np.shape(value) for value in given if np.shape(value) != shape):
            what = f"{name} has the shape {list(wrong)}, in this graph {list(shape)}"
            raise DataError(f"{path} is a run of another graph: {what}")
    if graph is not own and not _same_function(own, graph):
        raise DataError(f"{path} is a run of another graph: its expressions differ")
    each = (e for name in names for e in elements(name, vectors.shapes[name]))
    place = {element: k for k, element in enumerate(each)}
    order = [place[element] for element in vectors.elements]
    run.parameters = {name: run.parameters[name] for name in graph.parameters}
    run.recorded_parameters = {name: run.recorded_parameters[name] for name in graph.parameters}
    run.state = tuple(part[order] if part.ndim else part for part in run.state)
    return run


def _run(fields: dict[str, Any]) -> TrainingRun:
    """A run from a file's fields, each turned into what its annotation says or refused."""
    kinds = {field.name: str(field.type) for field in dataclass_fields(TrainingRun)}
    run = TrainingRun(**{name: _READ[kind](fields[name]) for name, kind in kinds.items()})
    recorded, steps, shapes = run.recorded_parameters, run.recorded_steps, run.shapes
    size = sum(map(np.size, run.parameters.values()))
    if not (
        all(part.shape in ((), (size,)) for part in run.state)
        and recorded.keys() == run.parameters.keys()
        and all(len(values) == len(steps) for values in recorded.values())
        and all(np.shape(v) == shapes[n] for n, values in recorded.items() for v in values)
        and all(later > step for step, later in pairwise(steps))
        and len(run.validation_losses) in (0, len(run.epoch_losses))
    ):
        raise ValueError
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
    if not isinstance(value, int) or value < 0:
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
    "dict[str, list[Value]]": lambda of: {str(n): _list(part, _value) for n, part in of.items()},
    "State": lambda parts: tuple(np.array(part, dtype=float) for part in parts),
}


def _same_function(first: ExpressionGraph, second: ExpressionGraph) -> bool:
    """Whether two graphs compute the same outputs, at some points chosen at random."""
    if {*first.outputs} != {*second.outputs} or {*first.inputs} != {*second.inputs}:
        return False
    if first.shapes != second.shapes:
        return False
    random, shapes = np.random.default_rng(0), second.shapes
    names = (*second.inputs, *second.parameters)
    point = {name: random.normal(size=(5, *shapes.get(name, ()))) for name in names}
    here, there = first.evaluate(point), second.evaluate(point)
    pairs = ((here[name], there[name]) for name in second.outputs)
    return all(np.allclose(one, other, rtol=1e-9, equal_nan=True) for one, other in pairs)
