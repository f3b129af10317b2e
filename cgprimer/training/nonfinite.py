"""Where the first infinity or nan came from: which vertex, which sample."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cgprimer.core.engines import select
from cgprimer.core.primitives.notation import unparse
from cgprimer.core.run import Runner
from cgprimer.core.tape.printing import shown_name
from cgprimer.data import Dataset
from cgprimer.number_format import number
from cgprimer.training.losses import LOSS

if TYPE_CHECKING:
    from cgprimer.training.objective import Objective

Array = Any


def explain(
    objective: Objective, dataset: Dataset, parameters: Mapping[str, float], batch: Array
) -> str:
    """One sentence: the vertex, the sample, and what went into it.

    Args:
        objective: what was being minimised.
        dataset: all samples.
        parameters: values at that step.
        batch: indices of the samples that the step looked at.
    """
    bad = [name for name, value in parameters.items() if not np.isfinite(value)]
    if bad:
        return f"the parameter {bad[0]} is {parameters[bad[0]]}"
    columns = {n: c[batch] for n, c in objective.columns(dataset).items()}
    graph = objective.graph
    found = first_non_finite(objective, columns, parameters, len(batch))
    if found is None:
        single = Runner(objective.program, engine="numpy", dtype=objective.dtype)
        derivatives = single(columns, dict(parameters), len(batch)).derivatives
        for (_, wrt), values in derivatives.items():
            bad_samples = np.flatnonzero(~np.isfinite(values))
            if bad_samples.size:
                position = int(bad_samples[0])
                given = _inputs(objective, dataset, int(batch[position]))
                what = f"the derivative of the loss with respect to {wrt} is {values[position]}"
                return f"{what} for {given}"
        return "the sum over the samples is not finite"
    name, position, value = found
    sample = int(batch[position])
    given = _inputs(objective, dataset, sample)
    if name == LOSS:
        return f"the loss is {value} for {given}"
    text = unparse(graph.definitions[name]) if name in graph.definitions else ""
    return f"{shown_name(name)}{' = ' + text if text else ''} is {value} for {given}"


def _inputs(objective: Objective, dataset: Dataset, sample: int) -> str:
    values = ", ".join(
        f"{n}={number(dataset.inputs[n][sample], 6)}" for n in objective.graph.inputs
    )
    return f"sample {sample} ({values})" if values else f"sample {sample}"


def first_non_finite(
    objective: Objective,
    columns: Mapping[str, Array],
    parameters: Mapping[str, float],
    samples: int,
) -> tuple[str, int, float] | None:
    """The first vertex, in the order of the tape, that is not finite for some sample.

    Returns:
        Its name, the position of the first such sample in the columns, and the value; None if
        every vertex is finite.
    """
    from dataclasses import replace

    primal = objective.primal
    vertices = {name: i for name, i in primal.names.items() if i >= len(primal.leaves)}
    execute = select("numpy").compile(
        replace(primal, outputs=vertices), reduction="none", dtype=objective.dtype
    )
    values = execute(columns, parameters, samples)
    for name in sorted(vertices, key=vertices.__getitem__):
        bad = np.flatnonzero(~np.isfinite(values[name]))
        if bad.size:
            return name, int(bad[0]), float(values[name][bad[0]])
    return None
