"""The bootstrap: the distribution of the parameters over fits of resampled data.

Either residuals are resampled and added to the fitted curve, or pairs of inputs and targets are
resampled, which is valid even if the variance of the residuals is not constant.

Source: Efron and Tibshirani 1993, "An Introduction to the Bootstrap", chapter 9.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cgprimer.errors import TrainingError
from cgprimer.support.validation import check_integer
from cgprimer.training.fitting.damping import DAMPINGS
from cgprimer.training.fitting.least_squares_descent import Descent, levenberg_marquardt
from cgprimer.training.fitting.residuals import Linearization, Residuals

Array = Any
_MAX_STEPS = 200  # per fit, from the parameters that fit all data


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """The parameters that were fitted to resampled data, and their spread.

    Attributes:
        names: names of the parameters, the columns of `parameters`.
        parameters: one row per fit that converged.
        failed: number of fits that did not converge; they are left out.
    """

    names: tuple[str, ...]
    parameters: Array
    failed: int

    @property
    def standard_errors(self) -> dict[str, float]:
        """The standard deviation of each parameter over the bootstrap fits."""
        spread = self.parameters.std(axis=0, ddof=1)
        return dict(zip(self.names, spread.tolist(), strict=True))

    def intervals(self, level: float = 0.95) -> dict[str, tuple[float, float]]:
        """Return each parameter's percentile interval, which contains ``level`` of the fits."""
        ends = np.quantile(self.parameters, [(1 - level) / 2, (1 + level) / 2], axis=0)
        low, high = ends.tolist()
        return dict(zip(self.names, zip(low, high, strict=True), strict=True))


def bootstrap(
    problem: Residuals,
    end: Linearization,
    names: tuple[str, ...],
    samples: int = 1000,
    *,
    seed: int = 0,
    pairs: bool = False,
) -> Bootstrap:
    """Fit resampled data many times to estimate the uncertainty of the parameters.

    Args:
        problem: the residuals of all data.
        end: their linearization at the fitted parameters.
        names: names of the estimated parameters.
        samples: number of fits, at least 2.
        seed: the random seed.
        pairs: resample pairs of inputs and targets instead of residuals.

    Raises:
        TrainingError: fewer than two of the fits converged.

    >>> import cgprimer
    >>> graph = cgprimer.parse("y = k*x")
    >>> data = cgprimer.Dataset.from_arrays({"x": [1, 2, 3]}, {"y": [2.1, 3.9, 6.0]})
    >>> result = cgprimer.fit(graph, data).bootstrap(200)
    >>> result.parameters.shape, result.failed
    ((200, 1), 0)
    """
    samples = check_integer("the number of fits (bootstrap)", samples, minimum=2)
    generator, rows = np.random.default_rng(check_integer("the seed", seed)), []
    n = len(end.residuals)
    # Fitting reduces the variance of residuals below that of the errors; this factor restores it.
    inflation = np.sqrt(n / max(1, n - end.rank))
    errors = inflation * (end.residuals - end.residuals.mean())
    fitted = problem.compute_outputs(end.values, problem.columns, problem.samples)[0]
    weights = np.broadcast_to(problem.weights, n)
    for _ in range(samples):
        if pairs:  # a sample that is drawn twice has twice the weight
            indices = generator.integers(problem.samples, size=problem.samples)
            counts = np.bincount(indices, minlength=problem.samples)
            factors = np.sqrt(np.concatenate([np.repeat(counts, size) for size in problem.sizes]))
            resampled = replace(problem, weights=weights * factors)
        else:
            drawn = errors[generator.integers(n, size=n)]
            with np.errstate(divide="ignore", invalid="ignore"):
                noise = np.where(weights > 0, drawn / weights, 0)
            resampled = replace(problem, target=fitted + noise)
        descent = Descent(Linearization(resampled, end.values), [], _MAX_STEPS)
        levenberg_marquardt(resampled, descent, DAMPINGS["tens"], 0.0)
        if descent.converged:
            rows.append(descent.current.values)
    if len(rows) < 2:
        raise TrainingError(f"only {len(rows)} of {samples} fits of resampled data converged")
    columns = [problem.vectors.elements.index(name) for name in names]
    return Bootstrap(names, np.array(rows)[:, columns], samples - len(rows))
