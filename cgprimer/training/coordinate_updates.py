"""Training by random coordinate descent: each update changes some of the parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cgprimer.training.coordinate_descent import CoordinateChoice
from cgprimer.training.gradient_forms import Point
from cgprimer.training.objective import Objective, ResidentData
from cgprimer.training.python_updates import ArrayUpdates
from cgprimer.training.update_plan import UpdatePlan

Array = Any


class CoordinateUpdates(ArrayUpdates):
    """A training strategy that differentiates with respect to a few parameters per update."""

    def __init__(self, objective: Objective, data: ResidentData, plan: UpdatePlan) -> None:
        super().__init__(objective, data, plan)
        block_size = int(plan.rule.hyper["block"])
        self._choice = CoordinateChoice(objective, block_size, plan.settings.seed)

    def _sum_gradients(
        self, columns: Mapping[str, Array], values: Array, size: int, update: int
    ) -> Point:
        """Return the loss and the chosen derivatives, both summed over a batch."""
        return self._choice.compute_sums(
            columns, values, size, self._choice.choose_parameters(update)
        )

    def _update_values(
        self, values: Array, gradient: Array, state: Any, rate: float, update: int
    ) -> tuple[Array, Any]:
        """Return the parameter vector with only the chosen elements updated, and the new state."""
        moved, state = super()._update_values(values, gradient, state, rate, update)
        return self._choice.apply_update(
            values, moved, self._choice.choose_parameters(update)
        ), state
