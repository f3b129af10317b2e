"""The largest curvature of a loss, and the largest learning rate that plain descent bears with it.

Along an eigenvector of the Hessian a step of descent multiplies the distance from the minimum by
``1 - rate*eigenvalue``: for rates above two over the largest eigenvalue it grows.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from cgprimer.core.evaluation.runner import Runner
from cgprimer.core.loss_expressions import LOSS
from cgprimer.core.second_derivatives import build_product_program
from cgprimer.core.tape.scalarization import estimate_scalar_cost
from cgprimer.errors import CgprimerError
from cgprimer.expressions import ExpressionGraph
from cgprimer.training.constraints import Constraints
from cgprimer.training.data import Blocks, Dataset
from cgprimer.training.losses import sample_columns
from cgprimer.training.objective import Objective
from cgprimer.training.runs import TrainingRun
from cgprimer.training.update_plan import UpdatePlan

Array = Any
_SAMPLES = 1_000  # of the data, at even distances: enough for two digits of an eigenvalue
_PRODUCTS = 100
_CLOSE = 1e-4  # relative, from one product to the next
_NUMBERS = 50_000_000  # operations times samples and products: a second or so


def stable_learning_rate(
    graph: ExpressionGraph,
    dataset: Dataset,
    parameters: Mapping[str, Any],
    *,
    loss: str = "squared-error",
) -> float:
    """The largest learning rate with which plain descent on the mean loss is stable at a point.

    That is 2 over the largest eigenvalue of the Hessian; infinite where no eigenvalue is positive.
    The eigenvalue comes from power iteration on Hessian-vector products, over at most 1,000 of
    the samples. Momentum bears twice as much and more; for Adam it says nothing.

    Args:
        graph, dataset, loss: as in :func:`cgprimer.train`.
        parameters: where.

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
    objective = Objective(graph, loss=loss, engine="plain", samples=len(dataset))
    curvature = largest_eigenvalue(objective, dataset, parameters)
    return 2 / curvature if curvature > 0 else float("inf")


def with_stable_rate(
    sentence: str,
    *,
    objective: Objective,
    dataset: Dataset | Blocks,
    how: UpdatePlan,
    run: TrainingRun,
) -> str:
    """A sentence on a run that diverged, and the stable rate where that was exceeded.

    Curvature is taken at the start and, where they are known, at the true values: that of what the
    steps go down, with sums instead of means, l2, scales and frozen parameters as they are.
    """
    samples, primal = min(_SAMPLES, dataset.lengths[0]), objective.primal
    work = estimate_scalar_cost(primal)[0] if primal.has_arrays else len(primal.instructions)
    points = {"at the start": run.start}
    if run.truth.keys() == run.start.keys():
        points["at the true values"] = run.truth
    found: dict[str, float] = {}
    times = how.batch_size if how.settings.reduction == "sum" else 1
    if run.steps and _PRODUCTS * samples * work < _NUMBERS:
        for place, point in points.items():
            with suppress(CgprimerError), np.errstate(all="ignore"):
                block = dataset.block(0)
                found[place] = largest_eigenvalue(objective, block, point, how.constraints, times)
    place = max((p for p, value in found.items() if value > 0), key=found.__getitem__, default="")
    if not place or 2 / found[place] > run.settings["learning_rate"]:
        return sentence
    rate = f"{2 / found[place]:.2g}"
    return f"{sentence}; {place} plain descent is stable below a learning rate of about {rate}"


def largest_eigenvalue(
    objective: Objective,
    dataset: Dataset,
    parameters: Mapping[str, Any],
    around: Constraints = Constraints(),  # noqa: B008, it is frozen
    times: float = 1.0,
) -> float:
    """The largest eigenvalue of the Hessian of so many times the mean loss, l2 added.

    Scales of the rate multiply its rows; a frozen parameter has none. So that it is symmetric, the
    root of a scale stands on either side, which has the same eigenvalues.
    """
    vectors, primal, names = objective.vectors, objective.primal, objective.graph.parameters
    vectors.vector(parameters)  # one that is missing is told
    apart = max(1, len(dataset) // _SAMPLES)
    some = dataset.where(np.arange(0, len(dataset), apart)[:_SAMPLES])
    columns, _ = sample_columns(
        objective.graph, objective.loss, objective.terms.columns, some, "float64"
    )
    known = {*columns, *names}
    for leaf in primal.leaves:
        if leaf.kind != "constant" and leaf.name not in known:
            raise CgprimerError("the loss depends on more than samples and parameters")
    program, seeds = build_product_program(primal, LOSS, names)
    run = Runner(program, engine="plain", reduction="sum")
    of = around.columns
    sides = np.sqrt(of.get("scale", 1.0) * of.get("free", np.ones(len(vectors))))
    decay = 2 * of.get("l2", 0.0)

    def product(vector: Array) -> Array:
        moved = sides * vector
        direction = {seeds[name]: part for name, part in vectors.parts(moved).items()}
        point = {name: parameters[name] for name in names}
        found = run(columns, point | direction, len(some)).derivatives
        total = np.concatenate([np.ravel(found[LOSS, name]) for name in names])
        return sides * (times / len(some) * total + decay * moved)

    value = _dominant(product, len(vectors), 0.0)
    # The one of largest size may be negative; measured from there, the largest is farthest.
    return value if value >= 0 else _dominant(product, len(vectors), value)


def _dominant(product: Any, size: int, origin: float) -> float:
    """The eigenvalue that is farthest from the origin."""
    vector = np.random.default_rng(0).normal(size=size)
    value = np.nan
    for _ in range(_PRODUCTS):
        vector /= np.linalg.norm(vector) or 1.0
        moved = product(vector) - origin * vector
        before, value = value, float(vector @ moved)
        if not np.isfinite(value) or abs(value - before) <= _CLOSE * abs(value):
            break
        vector = moved
    return value + origin
