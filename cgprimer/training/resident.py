"""The samples of a dataset where an engine wants them: all of them, or a block at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cgprimer.data import Blocks, Dataset

if TYPE_CHECKING:
    from cgprimer.training.objective import Objective

Array = Any


class Resident:
    """A dataset's columns where the engine wants them, of blocks those of one at a time."""

    def __init__(self, objective: Objective, dataset: Dataset | Blocks) -> None:
        self.objective, self.dataset = objective, dataset
        self._held: tuple[int, Mapping[str, Array], Mapping[str, Array]] = -1, {}, {}
        self.block(0)  # what is wrong there is said before any work

    def block(self, number: int) -> tuple[Mapping[str, Array], Mapping[str, Array]]:
        """The columns of a block, and what the engine has of them."""
        if self._held[0] != number:
            self._held = -1, {}, {}  # its memory is free before more is taken
            columns = self.objective.columns(self.dataset.block(number))
            self._held = number, columns, self.objective.resident(columns)
        return self._held[1:]

    def sums(self, values: Array) -> tuple[float, Array]:
        """The sums over all samples of the loss and of its gradient."""
        total: Any = 0.0, 0.0
        for k, samples in enumerate(self.dataset.lengths):
            loss, gradient = self.objective.sums(self.block(k)[1], values, samples)
            total = total[0] + loss, total[1] + gradient
        return total[0], total[1]

    def mean_loss(self, values: Array, running: Mapping[str, Any]) -> float:
        """The mean loss over all samples, with these running statistics."""
        lengths, mean = self.dataset.lengths, self.objective.mean_loss
        whole = sum(lengths)
        return sum(
            mean(self.block(k)[1], samples, values, running) * (samples / whole)
            for k, samples in enumerate(lengths)
            if samples
        )
