"""Find the first value that is not finite after a failed update, and its origin."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from cgprimer.analysis.nonfinite_origin import Why, why
from cgprimer.core.evaluation.runner import Runner
from cgprimer.core.loss_expressions import LOSS
from cgprimer.core.tape.scalarization import split_arrays
from cgprimer.support.array_values import find_nonfinite
from cgprimer.support.number_format import format_array
from cgprimer.tapes import elements, scalarize, values_of
from cgprimer.training.data import Blocks, Dataset
from cgprimer.training.losses import create_loss_point
from cgprimer.training.objective import Objective

Array = Any
_MAX_SAMPLES = 4096  # samples that are searched at a time, with the values of all vertices
_LINE_WIDTH = 1_000  # keeps arrays in messages on one line
_MAX_DERIVATIVES = 4_000_000  # derivatives that are in memory at a time: 32 megabytes


def explain_nonfinite_update(
    objective: Objective,
    dataset: Dataset | Blocks,
    parameters: Mapping[str, Any],
    batch: Array,
    masks: Mapping[str, Array],
) -> tuple[str, Why | None]:
    """Describe the first non-finite value in the update of a batch, and explain its origin.

    Args:
        objective: the objective of the run.
        dataset: the training data.
        parameters: the parameters before the failed update.
        batch: indices of the samples of the batch.
        masks: dropout masks of the batch.

    Returns:
        A sentence with the vertex, the sample and its inputs, and the explanation, if known.
    """
    start_point, vectors = dict(parameters), objective.vectors
    for name, value in zip(vectors.elements, vectors.vector(parameters), strict=True):
        if not math.isfinite(value):
            return f"the parameter {name} is {value}", None
    graph, primal = objective.graph, objective.primal
    if objective.in_numbers:
        primal = scalarize(primal)
        parameters = split_arrays(parameters, objective.vectors.shapes)
    runner = Runner(objective.program, dtype=objective.dtype)
    at_a_time = max(1, min(_MAX_SAMPLES, _MAX_DERIVATIVES // len(objective.vectors)))
    for begin in range(0, len(batch), at_a_time):
        part = dataset.where(batch[begin : begin + at_a_time])
        columns = objective.columns(part)
        columns |= {n: mask[begin : begin + at_a_time] for n, mask in masks.items()}
        values = values_of(primal, {**columns, **parameters})
        computed = {}
        for name in sorted(graph.definitions, key=objective.primal.index):
            shape = objective.primal.shapes[objective.primal.index(name)]
            for place in elements("", shape) if objective.in_numbers else ("",):
                index = primal.index(name + place)
                ending = f" = {graph.expression(name)}"
                computed[name, place, ending] = values[index], len(primal.shapes[index])
        about = f"the loss {objective.loss}"
        computed[about, "", ""] = values[primal.index(LOSS)], 0
        if objective.function is not None:
            losses, counts = objective.counts(columns, parameters)
            computed[about, "", ""], columns = (losses, 0), {**columns, **counts}
        results = runner(columns, dict(parameters), len(part))
        for (_, wrt), value in results.derivatives.items():
            rank = 0 if objective.in_numbers else len(objective.vectors.shapes[wrt])
            computed[f"the derivative of {about} with respect to {wrt}", "", ""] = value, rank
        for (what, element, ending), (value, rank) in computed.items():
            if bad := find_nonfinite(value, rank):
                inputs = [
                    f"{n}={format_array(part.inputs[n][bad[1]], 6, width=_LINE_WIDTH)}"
                    for n in graph.inputs
                ]
                shown = f" ({', '.join(inputs)})" if inputs else ""
                sample = batch[begin + bad[1]]
                sentence = f"{what}{element}{bad[2]}{ending} is {bad[0]} for sample {sample}{shown}"
                one, needed = part.where(np.array([bad[1]])), objective.terms.columns
                point = start_point | create_loss_point(graph, objective.loss, needed, one)
                return sentence, why(
                    graph, point, loss=None if objective.function else objective.loss
                )
    return "the sum over the samples is not finite", None
