"""The bootstrap: what parameters come out if the data are drawn again from themselves.

Source: Efron and Tibshirani 1993, "An Introduction to the Bootstrap", chapter 9: residuals are
drawn and put on the fitted curve, or pairs of inputs and targets are drawn, where the scatter is
not everywhere the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cgprimer.errors import TrainingError
from cgprimer.support.validation import check_integer
from cgprimer.training.fitting.damping import DAMPINGS
from cgprimer.training.fitting.least_squares_descent import Descent, levenberg_marquardt
from cgprimer.training.fitting.residuals import Local, Residuals

Array = Any
_STEPS = 200  # of each fit, which begins at the one of all data


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Fits of resampled data.

    Attributes:
        names: of the parameters, one for each column.
        parameters: one row for each fit that converged.
        failed: how many did not, and are left out.
    """

    names: tuple[str, ...]
    parameters: Array
    failed: int

    @property
    def standard_errors(self) -> dict[str, float]:
        """The standard deviation over the fits."""
        spread = self.parameters.std(axis=0, ddof=1)
        return dict(zip(self.names, spread.tolist(), strict=True))

    def intervals(self, level: float = 0.95) -> dict[str, tuple[float, float]]:
        """Percentiles: between them lie so many of the fits."""
        ends = np.quantile(self.parameters, [(1 - level) / 2, (1 + level) / 2], axis=0)
        low, high = ends.tolist()
        return dict(zip(self.names, zip(low, high, strict=True), strict=True))


def bootstrap(
    problem: Residuals,
    end: Local,
    names: tuple[str, ...],
    samples: int = 1000,
    *,
    seed: int = 0,
    pairs: bool = False,
) -> Bootstrap:
    """Fit resampled data, beginning at the fit of all.

    Residuals are drawn, or samples (`pairs`); `samples` says how many fits, two at least.

    Raises:
        TrainingError: fewer than two of the fits converged.

    >>> import cgprimer
    >>> graph = cgprimer.parse("y = k*x")
    >>> data = cgprimer.Dataset.from_arrays({"x": [1, 2, 3]}, {"y": [2.1, 3.9, 6.0]})
    >>> found = cgprimer.fit(graph, data).bootstrap(200)
    >>> found.parameters.shape, found.failed
    ((200, 1), 0)
    """
    samples = check_integer("the number of fits (bootstrap)", samples, minimum=2)
    random, found = np.random.default_rng(check_integer("the seed", seed)), []
    count = len(end.residuals)
    # A residual's spread is less than an error's, by what the parameters took away.
    wide = np.sqrt(count / max(1, count - end.rank)) * (end.residuals - end.residuals.mean())
    fitted = problem.outputs(end.values, problem.columns, problem.samples)[0]
    weights = np.broadcast_to(problem.weights, count)
    for _ in range(samples):
        if pairs:  # a sample that is drawn twice counts twice
            drawn = np.bincount(
                random.integers(problem.samples, size=problem.samples), minlength=problem.samples
            )
            times = np.sqrt(np.concatenate([np.repeat(drawn, n) for n in problem.sizes]))
            again = replace(problem, weights=weights * times)
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                noise = np.where(weights > 0, wide[random.integers(count, size=count)] / weights, 0)
            again = replace(problem, target=fitted + noise)
        way = Descent(Local(again, end.values), [], _STEPS)
        levenberg_marquardt(again, way, DAMPINGS["tens"], 0.0)
        if way.settled:
            found.append(way.here.values)
    if len(found) < 2:
        raise TrainingError(f"only {len(found)} of {samples} fits of resampled data converged")
    places = [problem.vectors.elements.index(name) for name in names]
    return Bootstrap(names, np.array(found)[:, places], samples - len(found))
