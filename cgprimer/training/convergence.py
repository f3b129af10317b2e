"""Convergence of a run: how far its loss could still fall.

For squared errors a linear model answers this whatever the optimizer did. The projection of the
residuals onto the columns of the Jacobian is what one Gauss-Newton step would remove. At a minimum
the residuals are orthogonal to these columns, with noise in the data as well as without. For other
losses the history of the run decides: whether the loss fell in its second half.

Source: Bates and Watts 1981, "A relative offset orthogonality convergence criterion for nonlinear
least squares".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cgprimer.expressions import ExpressionGraph
from cgprimer.training.data import Blocks, Dataset, normalize_data
from cgprimer.training.identifiability import compute_jacobian_matrix, select_spaced_samples
from cgprimer.training.runs import TrainingRun

_SQUARED = ("squared-error", "half-squared-error")
_LARGE = 0.2  # of the loss: a run whose loss could fall by more has not converged
_TINY = 1e-6  # of the loss at the start: a run whose loss is below has converged
_SAMPLES_PER_PARAMETER = 5  # with fewer, a step would fit the noise of the data
_MAX_PARAMETERS = 500
_RANK_TOLERANCE = 1e-9  # of the largest singular value
_STANDARD_ERRORS = 3  # that a difference of mean losses must have


def has_converged(run: TrainingRun, graph: ExpressionGraph, dataset: Dataset | Blocks) -> bool:
    """Return whether a run has converged: further training could hardly lower its loss.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
    >>> data = cgprimer.make_dataset(graph, samples=500, noise=0.1)
    >>> [has_converged(cgprimer.train(graph, data, epochs=n), graph, data) for n in (2, 300)]
    [False, True]
    """
    return run.loss <= _TINY * run.start_loss or estimate_decrease(run, graph, dataset) <= _LARGE


def estimate_decrease(run: TrainingRun, graph: ExpressionGraph, dataset: Dataset | Blocks) -> float:
    """Estimate the fraction by which further training could lower the loss of a run."""
    if run.settings["loss"] in _SQUARED:
        fraction = _estimate_gauss_newton_decrease(
            run, graph, normalize_data(dataset, run.scales).block(0)
        )
        if fraction is not None:
            return fraction
    return _measure_recent_decrease(run)


def _estimate_gauss_newton_decrease(
    run: TrainingRun, graph: ExpressionGraph, dataset: Dataset
) -> float | None:
    """Return the fraction of the squared error that one Gauss-Newton step would remove.

    None if there are too few samples for the parameters, or a number is not finite.
    """
    chosen = select_spaced_samples(dataset)
    count = sum(np.size(value) for value in run.parameters.values())
    if count > min(_MAX_PARAMETERS, len(chosen) / _SAMPLES_PER_PARAMETER):
        return None
    inputs = {name: dataset.inputs[name][chosen] for name in graph.inputs}
    matrix = compute_jacobian_matrix(graph, inputs, run.parameters)
    if matrix is None or not inputs:
        return None
    values = graph.evaluate({**inputs, **run.point})
    residuals = np.concatenate(
        [_compute_residuals(values[name], dataset.targets[name][chosen]) for name in graph.outputs]
    )
    total = float(residuals @ residuals)
    if not np.isfinite(total) or total == 0.0:
        return None if total else 0.0
    norms = np.linalg.norm(matrix, axis=0)
    left, singular, _ = np.linalg.svd(matrix / np.where(norms > 0, norms, 1.0), full_matrices=False)
    basis = left[:, singular > _RANK_TOLERANCE * max(singular.max(initial=0.0), 1e-300)]
    projection = basis.T @ residuals
    return float(projection @ projection) / total


def _compute_residuals(values: Any, targets: Any) -> Any:
    """Return the differences between values and targets, flattened to a vector."""
    return np.ravel(np.broadcast_to(values, np.shape(targets)) - targets)


def _measure_recent_decrease(run: TrainingRun) -> float:
    """Return the fraction by which the loss fell in the second half of a run.

    The mean loss of the last tenth of the steps is compared with that of as many steps in the
    middle. The fraction is 0 where the difference is within three standard errors, and nan where
    there are too few steps to tell.
    """
    losses = np.array(run.step_losses)
    count = max(2, len(losses) // 10)
    middle, last = losses[len(losses) // 2 - count :][:count], losses[-count:]
    if len(losses) < 2 * count or run.loss <= 0 or not np.all(np.isfinite([middle, last])):
        return float("nan")
    error = np.sqrt((middle.var(ddof=1) + last.var(ddof=1)) / count)
    difference = float(middle.mean() - last.mean())
    return difference / float(middle.mean()) if difference > _STANDARD_ERRORS * error else 0.0
