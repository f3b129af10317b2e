"""Start values of new runs, and checks of runs that are resumed."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from cgprimer.errors import DataError, UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.tapes import elements
from cgprimer.training.parameter_vector import ParameterVectors
from cgprimer.training.runs import TrainingRun, explain_difference
from cgprimer.training.settings import DEFAULT_SETTINGS, FIXED_ON_RESUME, RESUME_HINT
from cgprimer.training.written_rules import State


def resume_run(
    earlier: Any, settings: dict[str, Any], graph: ExpressionGraph, state: State
) -> TrainingRun:
    """Copy an earlier run so that training can continue it, after checking graph and settings.

    Args:
        earlier: the run to resume.
        settings: the recorded settings of the continuation.
        graph: the graph to train.
        state: the initial state of the optimizer, for its shapes.

    Raises:
        UsageError: another graph, or settings that must not change.
        DataError: the state of the run does not belong to the optimizer.
    """
    if not isinstance(earlier, TrainingRun):
        raise UsageError(
            f"`resume` must be a TrainingRun (from load_run), got {type(earlier).__name__}"
        )
    if reason := explain_difference(earlier, graph):
        raise UsageError(f"the run to resume belongs to another graph: {reason}")
    _check_settings(earlier, settings)
    if earlier.steps and [np.shape(p) for p in earlier.state] != [np.shape(p) for p in state]:
        name = settings["optimizer"]
        raise DataError(f"the state of the run does not match the optimizer {name!r}")
    run = deepcopy(replace(earlier, graph=None))  # a graph is immutable and large: not copied
    reorder_parameters(run, graph)
    run.settings, run.stopped, run.reason, run.graph = settings, "finished", "", graph
    return run


def reorder_parameters(run: TrainingRun, graph: ExpressionGraph) -> None:
    """Reorder the parameters and the optimizer state of a run to match a graph."""
    names, vectors = list(run.parameters), ParameterVectors(graph)
    saved_elements = (e for name in names for e in elements(name, vectors.shapes[name]))
    positions = {element: k for k, element in enumerate(saved_elements)}
    order = [positions[element] for element in vectors.elements]
    run.parameters = {name: run.parameters[name] for name in graph.parameters}
    run.recorded_parameters = {name: run.recorded_parameters[name] for name in graph.parameters}
    run.last_parameters = {n: run.last_parameters[n] for n in names if run.last_parameters}
    run.state = tuple(part[order] if part.ndim else part for part in run.state)


def _check_settings(earlier: TrainingRun, settings: dict[str, Any]) -> None:
    """Raise UsageError if a setting that a resumed run must keep has changed."""
    before = dict(earlier.settings)
    if not isinstance(before.get("validation"), float):
        before["validation"] = 0.0
    hints = dict.fromkeys((*FIXED_ON_RESUME, "samples", "validation"), RESUME_HINT)
    if settings["validation"]:  # otherwise the seed only orders the samples
        seed = before.get("seed")
        hints["seed"] = (
            "the seed determines the validation samples; with another seed, samples of the training"
            f" data would be used for validation: set seed={seed} (--seed {seed})"
        )
    for name, hint in hints.items():
        then, now = before.get(name, DEFAULT_SETTINGS.get(name)), settings[name]
        if then != now:
            what = f"{name} must be the same as in the run to resume, got {now} instead of {then}"
            raise UsageError(what, hint=hint)
