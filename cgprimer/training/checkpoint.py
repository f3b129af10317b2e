"""Runs as files: JSON that a person can read and :func:`load_run` can take up again."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from cgprimer.core.graph import ExpressionGraph, parse
from cgprimer.errors import DataError, UsageError
from cgprimer.files import json_text, write_whole
from cgprimer.training.loop import TrainingRun

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
    return {"format": FORMAT, "version": VERSION, "graph": str(graph), **fields}


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
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(
            f"{path} does not hold a run of cgprimer", hint="such files are written by --save"
        ) from None
    own = parse(text, name=str(path))
    names, graph = list(run.parameters), own if graph is None else graph
    if sorted(names) != sorted(graph.parameters):
        raise DataError(
            f"{path} is a run of another graph: its parameters are {', '.join(names)},"
            f" this graph's are {', '.join(graph.parameters)}"
        )
    if graph is not own and not _same_function(own, graph):
        raise DataError(f"{path} is a run of another graph: its expressions differ")
    order = [names.index(name) for name in graph.parameters]
    run.parameters = {name: run.parameters[name] for name in graph.parameters}
    run.recorded_parameters = {
        name: run.recorded_parameters[name] for name in graph.parameters if run.recorded_parameters
    }
    run.state = tuple(part[order] if part.ndim else part for part in run.state)
    return run


def _run(fields: dict[str, Any]) -> TrainingRun:
    """A run from a file's fields, each turned into what it must be or refused.

    Validation and records came later: a file without them holds a run without them.
    """
    run = TrainingRun(
        parameters=_numbers(fields["parameters"]),
        start=_numbers(fields["start"]),
        # Files from before called what the graph declares the truth of any data.
        truth={} if fields["settings"].get("data") else _numbers(fields["truth"]),
        settings=dict(fields["settings"]),
        start_loss=float(fields["start_loss"]),
        loss=float(fields["loss"]),
        step_losses=_list(fields["step_losses"]),
        epoch_losses=_list(fields["epoch_losses"]),
        validation_losses=_list(fields.get("validation_losses", [])),
        recorded_steps=[_count(step) for step in _list_of(fields.get("recorded_steps", []))],
        recorded_parameters={
            str(name): _list(values)
            for name, values in fields.get("recorded_parameters", {}).items()
        },
        epochs=_count(fields["epochs"]),
        steps=_count(fields["steps"]),
        seconds=float(fields["seconds"]),
        stopped=str(fields["stopped"]),
        reason=str(fields.get("reason", "")),
        state=tuple(np.array(part, dtype=float) for part in fields["state"]),
    )
    if any(part.shape not in ((), (len(run.parameters),)) for part in run.state):
        raise ValueError
    recorded = run.recorded_parameters
    if recorded and recorded.keys() != run.parameters.keys():
        raise ValueError
    if any(len(values) != len(run.recorded_steps) for values in recorded.values()):
        raise ValueError
    if any(later <= step for step, later in pairwise(run.recorded_steps)):
        raise ValueError
    if run.validation_losses and len(run.validation_losses) != len(run.epoch_losses):
        raise ValueError
    return run


def _numbers(entries: dict[str, Any]) -> dict[str, float]:
    return {str(name): float(value) for name, value in entries.items()}


def _list(entries: object) -> list[float]:
    return [float(value) for value in _list_of(entries)]


def _list_of(entries: object) -> list[Any]:
    if not isinstance(entries, list):
        raise TypeError
    return entries


def _count(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise TypeError
    return value


def _same_function(first: ExpressionGraph, second: ExpressionGraph) -> bool:
    """Whether two graphs compute the same outputs, at some points chosen at random."""
    if set(first.outputs) != set(second.outputs) or set(first.inputs) != set(second.inputs):
        return False
    random = np.random.default_rng(0)
    point = {name: random.normal(size=5) for name in (*second.inputs, *second.parameters)}
    here, there = first.evaluate(point), second.evaluate(point)
    return all(
        np.allclose(here[name], there[name], rtol=1e-9, equal_nan=True) for name in second.outputs
    )
