"""Gradients of tasks: what a worker computes, in this process or in another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from cgprimer.expressions import ExpressionGraph
from cgprimer.training.data import Blocks, Dataset
from cgprimer.training.data.dataset import concatenate_columns
from cgprimer.training.distributed.protocols import Task
from cgprimer.training.gradient_forms import Point
from cgprimer.training.layer_states import Masks
from cgprimer.training.objective import Objective, Resident

Array = Any
_HELD = 2  # orders of samples: one epoch, or block, ends while another begins


class Gradients:
    """The sums of loss and gradient over the samples of a task.

    The order of an epoch is that of a run without workers: who has the same samples and the same
    seed knows which ones a task means. Blocks are gone through one after the other, and may be
    divided: then every so manieth task has the samples of one part, which lie together, so that
    whoever has those tasks alone reads only that part.

    Args:
        objective, data: what is computed, and of what.
        seed, shuffle: of the order of the samples.
        parts: into how many blocks are divided.
        size: samples of a task, all but the last ones of an epoch.
    """

    def __init__(
        self,
        objective: Objective,
        data: Resident,
        *,
        seed: int,
        shuffle: bool,
        parts: int = 1,
        size: int = 1,
    ) -> None:
        self.objective, self.data, self.seed, self.shuffle = objective, data, seed, shuffle
        self.samples, self.blocks = len(data.dataset), len(data.dataset.lengths)
        self.parts, self.size = parts, size
        self.masks = Masks(objective.layers.masks, seed, objective.dtype)
        self._order = lru_cache(_HELD)(self._in_order)
        tasks = -(-self.samples // size)
        of_parts = [len(range(part, tasks, parts)) * size for part in range(parts)]
        of_parts[(tasks - 1) % parts] -= tasks * size - self.samples
        self._starts = np.cumsum([0, *of_parts]).tolist()

    def chosen(self, task: Task) -> Array:
        """The numbers of a task's samples."""
        starts = np.cumsum([0, *self.data.dataset.lengths])
        found = [
            starts[block] + self._order(task.epoch, block, first, last)[begin:end]
            for block, first, last, begin, end in self._where(task)
        ]
        return np.concatenate(found) if found else np.arange(0)

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
        if self.blocks == 1 and task.samples == self.samples and not self.masks.leaves:
            return self.data.block(0)[1]  # the order makes no difference
        found: list[dict[str, Array]] = []
        for block, first, last, begin, end in self._where(task):
            rows = self._order(task.epoch, block, first, last)[begin:end]
            of_block = self.data.block(block)[0]
            found.append({name: column[rows] for name, column in of_block.items()})
        whole = found[0] if len(found) == 1 else concatenate_columns(found)
        return {**whole, **self.drawn(task)}

    def _where(self, task: Task) -> Iterator[tuple[int, int, int, int, int]]:
        """A task's samples: block, first and last of the part there, places in their order."""
        turn, part = divmod(task.start // self.size, self.parts)
        begin = turn * self.size + task.start % self.size
        end = begin + task.samples
        for block, first, last in self._pieces(task.epoch, part):
            if begin < last - first and end > 0:
                yield block, first, last, max(begin, 0), min(end, last - first)
            begin, end = begin - (last - first), end - (last - first)

    def _pieces(self, epoch: int, part: int) -> list[tuple[int, int, int]]:
        """The blocks that a part of the samples lies in, in the order of an epoch."""
        begin, end = self._starts[part : part + 2]
        bounds = pairwise(np.cumsum([0, *self.data.dataset.lengths]).tolist())
        pieces = [
            (block, max(begin, low) - low, min(end, high) - low)
            for block, (low, high) in enumerate(bounds)
            if begin < high and end > low
        ]
        if self.shuffle and len(pieces) > 1:
            order = np.random.default_rng([self.seed, epoch, part]).permutation(len(pieces))
            pieces = [pieces[k] for k in order]
        return pieces

    def _in_order(self, epoch: int, block: int, first: int, last: int) -> Array:
        if not self.shuffle:
            return np.arange(first, last)
        several = [block, first] if self.blocks > 1 else []
        numbers = np.random.default_rng([self.seed, epoch, *several])
        return first + numbers.permutation(last - first)


def gradients_of(
    graph: ExpressionGraph,
    dataset: Dataset | Blocks,
    objective: Mapping[str, Any],
    order: Mapping[str, Any],
) -> Gradients:
    """Gradients, made where they are computed: the engine is chosen there.

    Args:
        graph, dataset: of which.
        objective: further arguments of :class:`cgprimer.training.objective.Objective`.
        order: those of :class:`Gradients`.
    """
    made = Objective(graph, dataset=dataset, **objective)
    return Gradients(made, Resident(made, dataset), **order)
