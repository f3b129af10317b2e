"""Random coordinate descent: which parameters a step changes, and the derivatives by them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cgprimer.core.loss_expressions import LOSS
from cgprimer.errors import UsageError
from cgprimer.training.gradient_forms import Point
from cgprimer.training.objective import Objective

Array = Any
_MOST = 2000  # numbers: a program of forward mode has a seed for each, and a pass
_STREAM = 1 << 32  # keeps these random numbers apart from the orders of the samples


class CoordinateChoice:
    """The parameters of each step: each once, in a random order, before any comes again.

    So a function without mixed terms, with the step that fits each parameter, is at its minimum
    after as many steps as it has parameters.

    The objective is in forward mode, with a pass for each number; `block` of them a step changes.

    >>> import cgprimer
    >>> objective = Objective(cgprimer.parse("xw = a*xa + b*xa^2 + c"), method="forward")
    >>> choice = CoordinateChoice(objective, 1, 0)
    >>> [choice.choose_parameters(step).tolist() for step in range(6)]
    [[0], [2], [1], [1], [2], [0]]

    Raises:
        UsageError: the method makes other passes.
    """

    def __init__(self, objective: Objective, block: int, seed: int) -> None:
        self.objective, self.count = objective, len(objective.program.passes)
        free = objective.places if objective.places is not None else range(len(objective.vectors))
        if self.count != len(free):
            raise UsageError("coordinates take a pass for each parameter: leave out carry")
        self.block, self.seed = min(block, self.count), seed
        self.places = np.asarray(free)
        self._orders: dict[int, Any] = {}

    def choose_parameters(self, step: int) -> Array:
        """Which of the numbers that are not frozen; none twice."""
        first = step * self.block
        found: dict[int, None] = {}
        position = first
        while len(found) < self.block:
            found[int(self._sample_order(position // self.count)[position % self.count])] = None
            position += 1
        return np.array([*found])

    def _sample_order(self, sweep: int) -> Any:
        if sweep not in self._orders:
            self._orders.clear()
            random = np.random.default_rng([self.seed, sweep, _STREAM])
            self._orders[sweep] = random.permutation(self.count)
        return self._orders[sweep]

    def sums(
        self, columns: Mapping[str, Array], values: Array, samples: int, chosen: Array
    ) -> Point:
        """Loss and gradient summed over samples: derivatives by the chosen numbers, a pass each."""
        objective, total = self.objective, 0.0
        gradient, scalars = np.zeros(len(objective.vectors)), objective.scalars(values)
        losses = None
        if objective.function is not None:  # of Python: how much each output counts, it says
            losses, counts = objective.counts(columns, objective.vectors.values(values))
            columns = {**columns, **counts}
        for k in chosen:
            one = objective.program.passes[k]
            found = objective.runner.execute(columns, {**scalars, **one.seeds}, samples)
            total, gradient[self.places[k]] = float(found[LOSS]), found[one.reads[0].output]
        return total if losses is None else float(losses.sum()), gradient

    def apply_update(self, values: Array, updated: Array, chosen: Array) -> Array:
        """The values, the chosen ones updated: nothing else moves, whatever regularizers say."""
        made = values.copy()
        made[self.places[chosen]] = updated[self.places[chosen]]
        return made


def check_coordinate_count(numbers: int) -> None:
    """Raise UsageError where there are too many parameters for a seed and a pass each."""
    if numbers > _MOST:
        raise UsageError(
            f"coordinates are for at most {_MOST:,} numbers, and there are {numbers:,}",
            hint="with more, reverse mode gives all derivatives for the price of a few: sgd",
        )
