"""Where the first infinity or nan came from: which vertex, which sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from cgprimer.core.primitives.notation import unparse
from cgprimer.core.run import Runner, values_of
from cgprimer.core.tape.printing import shown_name
from cgprimer.data import Dataset
from cgprimer.number_format import number
from cgprimer.training.losses import LOSS
from cgprimer.training.objective import Objective

Array = Any
_AT_A_TIME = 4096  # samples that are looked at: every vertex has a number for each


def explain(
    objective: Objective, dataset: Dataset, parameters: Mapping[str, float], batch: Array
) -> str:
    """One sentence: the vertex, the sample of the batch (indices), and what went into it."""
    for name, value in parameters.items():
        if not np.isfinite(value):
            return f"the parameter {name} is {value}"
    for begin in range(0, len(batch), _AT_A_TIME):
        part = dataset.where(batch[begin : begin + _AT_A_TIME])
        for what, values in _computed(objective, part, parameters):
            column = np.broadcast_to(values, (len(part),))
            bad = np.flatnonzero(~np.isfinite(column))
            if bad.size:
                inputs = [
                    f"{n}={number(part.inputs[n][bad[0]], 6)}" for n in objective.graph.inputs
                ]
                given = f" ({', '.join(inputs)})" if inputs else ""
                return f"{what} is {column[bad[0]]} for sample {batch[begin + bad[0]]}{given}"
    return "the sum over the samples is not finite"


def _computed(
    objective: Objective, dataset: Dataset, parameters: Mapping[str, float]
) -> Iterator[tuple[str, Array]]:
    """What a step computes for each sample, in its order, and what to call it."""
    columns, primal = objective.columns(dataset), objective.primal
    definitions = objective.graph.definitions
    values = values_of(primal, {**columns, **parameters})
    for name, index in sorted(primal.names.items(), key=lambda item: item[1]):
        if index >= len(primal.leaves):
            text = f" = {unparse(definitions[name])}" if name in definitions else ""
            yield "the loss" if name == LOSS else shown_name(name) + text, values[index]
    runner = Runner(objective.program, dtype=objective.dtype)
    found = runner(columns, dict(parameters), len(dataset))
    for (_, wrt), value in found.derivatives.items():
        yield f"the derivative of the loss with respect to {wrt}", value
