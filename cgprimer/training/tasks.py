"""Gradients of tasks: what a worker computes, in this process or in another."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from cgprimer.training.forms import Point
from cgprimer.training.layers import Masks
from cgprimer.training.objective import Objective, Resident
from cgprimer.workers.protocols import Task

Array = Any
_EPOCHS = 2  # that are gone through at a time: one ends while another begins


class Gradients:
    """The sums of loss and gradient over the samples of a task.

    The order of an epoch is that of a run without workers: who has the same samples and the same
    seed knows which ones a task means.
    """

    def __init__(self, objective: Objective, data: Resident, *, seed: int, shuffle: bool) -> None:
        self.objective, self.data, self.seed, self.shuffle = objective, data, seed, shuffle
        (self.samples,) = data.dataset.lengths
        self.masks = Masks(objective.layers.masks, seed, objective.dtype)
        self._ordered = lru_cache(_EPOCHS)(self._in_order)

    def order(self, epoch: int) -> Array:
        """The samples of an epoch, in the order in which they are gone through."""
        if not self.shuffle:
            return np.arange(self.samples)
        return np.random.default_rng([self.seed, epoch]).permutation(self.samples)

    def drawn(self, task: Task) -> dict[str, Array]:
        """The masks of a task's samples."""
        stream = self.masks.stream(task.epoch, task.start)
        return self.objective.layers.apart(stream(task.samples))

    def __call__(self, values: Array, task: Task) -> Point:
        """The sums at some parameters; zeros for a task without samples."""
        if not task.samples:
            return 0.0, np.zeros(len(self.objective.vectors), self.objective.precision)
        return self.objective.sums(self.columns(task), values, task.samples)

    def columns(self, task: Task) -> Mapping[str, Array]:
        """The columns of a task's samples, masks among them."""
        if task.samples == self.samples and not self.masks.leaves:
            return self.data.block(0)[1]  # the order makes no difference
        part = slice(task.start, task.stop)
        found = {name: column[part] for name, column in self._ordered(task.epoch).items()}
        return {**found, **self.drawn(task)}

    def _in_order(self, epoch: int) -> dict[str, Array]:
        order = self.order(epoch)
        return {name: column[order] for name, column in self.data.block(0)[0].items()}
