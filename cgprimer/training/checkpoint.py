"""Runs as files: JSON that a person can read and :func:`load_run` can take up again."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from cgprimer.errors import DataError, UsageError
from cgprimer.files import write_whole
from cgprimer.graph import ExpressionGraph
from cgprimer.training.loop import TrainingRun

FORMAT = "cgprimer-run"
VERSION = 1


def save_run(run: TrainingRun, path: str | Path, graph: ExpressionGraph) -> None:
    """Write a run, with the text of its graph, as JSON.

    Raises:
        UsageError: the file cannot be written.
    """
    write_whole(path, json.dumps(run_as_dict(run, graph), indent=1) + "\n")


def run_as_dict(run: TrainingRun, graph: ExpressionGraph) -> dict[str, Any]:
    """A run as plain data; the keys are documented in ``docs/getting-started.md``."""
    fields = asdict(run)
    fields["state"] = [np.asarray(part).tolist() for part in run.state]
    return {"format": FORMAT, "version": VERSION, "graph": str(graph), **fields}


def load_run(path: str | Path, graph: ExpressionGraph) -> TrainingRun:
    """Read a run that :func:`save_run` wrote, to be given to ``train(..., resume=run)``.

    Raises:
        UsageError: the file cannot be read.
        DataError: it holds no run, or a run of a graph with other parameters.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is not UTF-8 text") from None
    try:
        fields = json.loads(text)
        if fields.pop("format") != FORMAT or fields.pop("version") != VERSION:
            raise ValueError
        fields.pop("graph")
        fields["state"] = tuple(np.array(part, dtype=float) for part in fields["state"])
        run = TrainingRun(**fields)
        names = tuple(run.parameters)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(
            f"{path} does not hold a run of cgprimer", hint="such files are written by --save"
        ) from None
    if sorted(names) != sorted(graph.parameters):
        raise DataError(
            f"{path} is a run of another graph: its parameters are {', '.join(names)},"
            f" this graph's are {', '.join(graph.parameters)}"
        )
    return run
