"""The maximum curvature of a loss, and the maximum stable learning rate of gradient descent.

Along an eigenvector of the Hessian, a step of gradient descent multiplies the distance from the
minimum by ``1 - rate*eigenvalue``: it grows if the rate exceeds 2 over the maximum eigenvalue.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from cgprimer.core.evaluation.runner import Runner
from cgprimer.core.loss_expressions import LOSS
from cgprimer.core.second_derivatives import build_product_program
from cgprimer.core.tape.scalarization import estimate_scalar_cost
from cgprimer.errors import CgprimerError
from cgprimer.expressions import ExpressionGraph
from cgprimer.training.constraints import Constraints
from cgprimer.training.data import Blocks, Dataset, require_in_memory, resolve_dataset
from cgprimer.training.losses import convert_sample_columns
from cgprimer.training.objective import Objective
from cgprimer.training.runs import TrainingRun
from cgprimer.training.update_plan import UpdatePlan

Array = Any
_MAX_SAMPLES = 1_000  # evenly spaced samples, enough for two digits of an eigenvalue
_MAX_PRODUCTS = 100  # Hessian-vector products of power iteration
_TOLERANCE = 1e-4  # relative change of the eigenvalue at convergence
_MAX_OPERATIONS = 50_000_000  # of all products over all samples: about a second


def stable_learning_rate(
    graph: ExpressionGraph,
    dataset: Dataset | str | Path,
    parameters: Mapping[str, Any],
    *,
    loss: str = "squared-error",
) -> float:
    """Return the maximum learning rate for which gradient descent on the mean loss is stable.

    The rate is 2 over the maximum eigenvalue of the Hessian, or infinite if no eigenvalue is
    positive. The eigenvalue is computed by power iteration with Hessian-vector products, over at
    most 1,000 samples. Momentum is stable up to at least twice this rate; Adam has no such limit.

    Args:
        graph, dataset, loss: as in :func:`cgprimer.train`.
        parameters: the values of the parameters at which the Hessian is evaluated.

    Raises:
        UsageError, DataError: as :func:`cgprimer.loss_and_gradient`.

    Source: LeCun, Simard, Pearlmutter 1993, "Automatic learning rate maximization by on-line
    estimation of the Hessian's eigenvectors".

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa")
    >>> data = cgprimer.Dataset.from_arrays({"xa": [1.0, 3.0]}, {"xw": [2.0, 6.0]})
    >>> stable_learning_rate(graph, data, {"k": 0.0})  # the mean of xa^2 is 5, the Hessian 10
    0.2
    """
    dataset = require_in_memory(
        resolve_dataset(dataset, graph), "stable_learning_rate requires a dataset in memory"
    )
    objective = Objective(graph, loss=loss, engine="plain", samples=len(dataset))
    curvature = find_maximum_eigenvalue(objective, dataset, parameters)
    return 2 / curvature if curvature > 0 else float("inf")


def append_stable_rate(
    sentence: str,
    *,
    objective: Objective,
    dataset: Dataset | Blocks,
    plan: UpdatePlan,
    run: TrainingRun,
) -> str:
    """Append the stable learning rate to a sentence about a diverged run that exceeded it.

    The curvature is computed at the start and, if they are known, at the ground-truth parameters;
    it is that of the minimized function, with its reduction, l2, scales and frozen parameters.
    """
    samples, primal = min(_MAX_SAMPLES, dataset.lengths[0]), objective.primal
    work = estimate_scalar_cost(primal)[0] if primal.has_arrays else len(primal.instructions)
    points = {"near the start": run.start}
    if run.truth.keys() == run.start.keys():
        points["near the ground truth"] = run.truth
    eigenvalues: dict[str, float] = {}
    times = plan.batch_size if plan.settings.reduction == "sum" else 1
    if run.steps and _MAX_PRODUCTS * samples * work < _MAX_OPERATIONS:
        for location, point in points.items():
            with suppress(CgprimerError), np.errstate(all="ignore"):
                block = dataset.block(0)
                eigenvalues[location] = find_maximum_eigenvalue(
                    objective, block, point, plan.constraints, times
                )
    positive = {location: value for location, value in eigenvalues.items() if value > 0}
    location = max(positive, key=positive.__getitem__, default="")
    if not location or 2 / positive[location] > run.settings["learning_rate"]:
        return sentence
    rate = f"{2 / positive[location]:.2g}"
    return (
        f"{sentence}; {location}, gradient descent is stable below a learning rate of about {rate}"
    )


def find_maximum_eigenvalue(
    objective: Objective,
    dataset: Dataset,
    parameters: Mapping[str, Any],
    constraints: Constraints = Constraints(),  # noqa: B008, it is frozen
    factor: float = 1.0,
) -> float:
    """Compute the maximum eigenvalue of the loss Hessian, including ``factor`` and l2.

    Scales of the learning rate multiply the rows of the Hessian, and frozen parameters have scale
    0. Multiplying both sides by the square roots of the scales gives a symmetric matrix with equal
    eigenvalues.

    Args:
        objective: the loss.
        dataset: the data.
        parameters: the values of the parameters.
        constraints: scales, l2 and frozen parameters.
        factor: the factor of the mean loss.
    """
    vectors, primal, names = objective.vectors, objective.primal, objective.graph.parameters
    vectors.vector(parameters)  # raises an error if a parameter is missing
    spacing = max(1, len(dataset) // _MAX_SAMPLES)
    subset = dataset.where(np.arange(0, len(dataset), spacing)[:_MAX_SAMPLES])
    columns, _ = convert_sample_columns(
        objective.graph, objective.loss, objective.terms.columns, subset, "float64"
    )
    available = {*columns, *names}
    for leaf in primal.leaves:
        if leaf.kind != "constant" and leaf.name not in available:
            raise CgprimerError("the loss must depend only on samples and parameters")
    program, seeds = build_product_program(primal, LOSS, names)
    run = Runner(program, engine="plain", reduction="sum")
    limits = constraints.columns
    root_scales = np.sqrt(limits.get("scale", 1.0) * limits.get("free", np.ones(len(vectors))))
    decay = 2 * limits.get("l2", 0.0)

    def multiply_by_hessian(vector: Array) -> Array:
        """Multiply a vector by the scaled Hessian of the loss."""
        scaled = root_scales * vector
        direction = {seeds[name]: part for name, part in vectors.parts(scaled).items()}
        point = {name: parameters[name] for name in names}
        derivatives = run(columns, point | direction, len(subset)).derivatives
        total = np.concatenate([np.ravel(derivatives[LOSS, name]) for name in names])
        return root_scales * (factor / len(subset) * total + decay * scaled)

    value = _find_dominant_eigenvalue(multiply_by_hessian, len(vectors), 0.0)
    if value >= 0:
        return value
    # The dominant eigenvalue is negative; relative to it, the maximum is farthest from zero.
    return _find_dominant_eigenvalue(multiply_by_hessian, len(vectors), value)


def _find_dominant_eigenvalue(multiply: Any, size: int, origin: float) -> float:
    """Find the eigenvalue farthest from ``origin`` by power iteration."""
    vector = np.random.default_rng(0).normal(size=size)
    value = np.nan
    for _ in range(_MAX_PRODUCTS):
        vector /= np.linalg.norm(vector) or 1.0
        image = multiply(vector) - origin * vector
        before, value = value, float(vector @ image)
        if not np.isfinite(value) or abs(value - before) <= _TOLERANCE * abs(value):
            break
        vector = image
    return value + origin
