"""Random coordinate descent: choose the parameters of an update, and differentiate for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cgprimer.core.loss_expressions import LOSS
from cgprimer.errors import UsageError
from cgprimer.training.gradient_forms import Point
from cgprimer.training.objective import Objective

Array = Any
_MAX_ELEMENTS = 2000  # a program of forward mode has a seed and a pass for each element
_STREAM = 1 << 32  # a random stream that the order of the samples does not use


class CoordinateChoice:
    """Random choice of the elements of the parameter vector that each update changes.

    Each element is chosen once, in random order, before any element is chosen again. A quadratic
    function without mixed terms reaches its minimum after one update per parameter, with suitable
    rates.

    Args:
        objective: an objective in forward mode, with one pass per element.
        block: number of elements per update.
        seed: random seed.

    >>> import cgprimer
    >>> objective = Objective(cgprimer.parse("xw = a*xa + b*xa^2 + c"), method="forward")
    >>> choice = CoordinateChoice(objective, 1, 0)
    >>> [choice.choose_parameters(step).tolist() for step in range(6)]
    [[0], [2], [1], [1], [2], [0]]

    Raises:
        UsageError: the program does not have one pass per element.
    """

    def __init__(self, objective: Objective, block: int, seed: int) -> None:
        self.objective, self.count = objective, len(objective.program.passes)
        free = objective.places if objective.places is not None else range(len(objective.vectors))
        if self.count != len(free):
            raise UsageError(
                "the optimizer 'coordinates' requires one pass per parameter"
                " and cannot be used with `carry`"
            )
        self.block, self.seed = min(block, self.count), seed
        self.places = np.asarray(free)
        self._orders: dict[int, Any] = {}

    def choose_parameters(self, step: int) -> Array:
        """Return the positions, among the free elements, of the elements to update."""
        first = step * self.block
        indices: dict[int, None] = {}
        position = first
        while len(indices) < self.block:
            indices[int(self._sample_order(position // self.count)[position % self.count])] = None
            position += 1
        return np.array([*indices])

    def _sample_order(self, sweep: int) -> Any:
        """Return the random order in which a sweep updates all elements of the vector."""
        if sweep not in self._orders:
            self._orders.clear()
            random = np.random.default_rng([self.seed, sweep, _STREAM])
            self._orders[sweep] = random.permutation(self.count)
        return self._orders[sweep]

    def compute_sums(
        self, columns: Mapping[str, Array], values: Array, samples: int, chosen: Array
    ) -> Point:
        """Compute the loss and the chosen derivatives, summed over samples, in forward mode."""
        objective, total = self.objective, 0.0
        gradient, scalars = np.zeros(len(objective.vectors)), objective.scalars(values)
        losses = None
        if (
            objective.function is not None
        ):  # a Python function computes derivatives with respect to outputs
            losses, counts = objective.counts(columns, objective.vectors.values(values))
            columns = {**columns, **counts}
        for k in chosen:
            one = objective.program.passes[k]
            indices = objective.runner.execute(columns, {**scalars, **one.seeds}, samples)
            total, gradient[self.places[k]] = float(indices[LOSS]), indices[one.reads[0].output]
        return total if losses is None else float(losses.sum()), gradient

    def apply_update(self, values: Array, updated: Array, chosen: Array) -> Array:
        """Return the parameters with only the chosen elements updated."""
        result = values.copy()
        result[self.places[chosen]] = updated[self.places[chosen]]
        return result


def check_coordinate_count(count: int) -> None:
    """Raise UsageError if a parameter vector has too many elements for coordinate descent."""
    if count > _MAX_ELEMENTS:
        raise UsageError(
            f"the optimizer 'coordinates' supports at most {_MAX_ELEMENTS:,} elements,"
            f" got {count:,}",
            hint="use sgd, which computes all derivatives in a single backward pass",
        )
