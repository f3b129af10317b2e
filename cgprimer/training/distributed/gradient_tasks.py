"""Gradients of tasks, as a worker computes them, in this process or in another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from cgprimer.expressions import ExpressionGraph
from cgprimer.training.data import Blocks, Dataset
from cgprimer.training.data.dataset import concatenate_columns
from cgprimer.training.distributed.protocols import Task
from cgprimer.training.gradient_forms import Point
from cgprimer.training.layer_states import Masks
from cgprimer.training.objective import Objective, ResidentData

Array = Any
_CACHED_ORDERS = 2  # an epoch, or block, can end while another begins


class _BlockPart(NamedTuple):
    """A range of samples in a block, from ``first`` up to but not including ``last``."""

    block: int
    first: int
    last: int


class Gradients:
    """A callable that sums loss and gradient over the samples of a task.

    The order of an epoch is that of a run without workers: the same samples and the same seed
    determine the samples of a task. Blocks are read one after the other, and can be divided into
    parts of adjacent samples: then every n-th task has samples of the same part, so that a worker
    with these tasks reads only that part.

    Args:
        objective: the loss and its gradient.
        data: the samples.
        seed: the seed of the order of the samples.
        shuffle: whether each epoch has a new order.
        parts: the number of parts into which blocks are divided.
        size: the number of samples of a task, except for the last tasks of an epoch.
    """

    def __init__(
        self,
        objective: Objective,
        data: ResidentData,
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
        self._order_samples = lru_cache(_CACHED_ORDERS)(self._compute_order)
        tasks = -(-self.samples // size)
        part_lengths = [len(range(part, tasks, parts)) * size for part in range(parts)]
        part_lengths[(tasks - 1) % parts] -= tasks * size - self.samples
        self._part_starts = np.cumsum([0, *part_lengths]).tolist()
        self._block_starts = np.cumsum([0, *data.dataset.lengths]).tolist()

    def sample_indices(self, task: Task) -> Array:
        """Return the indices of the samples of a task."""
        indices = [
            self._block_starts[piece.block] + self._order_samples(task.epoch, *piece)[begin:end]
            for piece, begin, end in self._locate_task(task)
        ]
        return np.concatenate(indices) if indices else np.arange(0)

    def sample_masks(self, task: Task) -> dict[str, Array]:
        """Return the dropout masks of the samples of a task."""
        draw = self.masks.create_stream(task.epoch, task.start)
        return self.objective.layers.split_masks(draw(task.samples))

    def __call__(self, values: Array, task: Task) -> Point:
        """Return the sums at the given parameters; zeros for a task without samples."""
        if not task.samples:
            return 0.0, np.zeros(len(self.objective.vectors), self.objective.precision)
        return self.objective.sums(self.read_columns(task), values, task.samples)

    def read_columns(self, task: Task) -> Mapping[str, Array]:
        """Read the data columns, including dropout masks, for the samples of a task.

        The order makes no difference if the task has all samples; then no column is copied.
        """
        if self.blocks == 1 and task.samples == self.samples and not self.masks.leaves:
            return self.data.block(0)[1]
        parts: list[dict[str, Array]] = []
        for piece, begin, end in self._locate_task(task):
            indices = self._order_samples(task.epoch, *piece)[begin:end]
            columns = self.data.block(piece.block)[0]
            parts.append({name: column[indices] for name, column in columns.items()})
        joined = parts[0] if len(parts) == 1 else concatenate_columns(parts)
        return {**joined, **self.sample_masks(task)}

    def _locate_task(self, task: Task) -> Iterator[tuple[_BlockPart, int, int]]:
        """Yield each block part that contains samples of a task, with their range of positions."""
        turn, part = divmod(task.start // self.size, self.parts)
        begin = turn * self.size + task.start % self.size
        end = begin + task.samples
        for piece in self._order_block_parts(task.epoch, part):
            length = piece.last - piece.first
            if begin < length and end > 0:
                yield piece, max(begin, 0), min(end, length)
            begin, end = begin - length, end - length

    def _order_block_parts(self, epoch: int, part: int) -> list[_BlockPart]:
        """Return the block parts that belong to one part of the data, in the order of an epoch."""
        begin, end = self._part_starts[part : part + 2]
        pieces = [
            _BlockPart(block, max(begin, low) - low, min(end, high) - low)
            for block, (low, high) in enumerate(pairwise(self._block_starts))
            if begin < high and end > low
        ]
        if self.shuffle and len(pieces) > 1:
            order = np.random.default_rng([self.seed, epoch, part]).permutation(len(pieces))
            pieces = [pieces[k] for k in order]
        return pieces

    def _compute_order(self, epoch: int, block: int, first: int, last: int) -> Array:
        """Return the sample indices in a block part, in the order of an epoch."""
        if not self.shuffle:
            return np.arange(first, last)
        stream = [self.seed, epoch, *([block, first] if self.blocks > 1 else [])]
        return first + np.random.default_rng(stream).permutation(last - first)


def create_gradients(
    graph: ExpressionGraph,
    dataset: Dataset | Blocks,
    objective_arguments: Mapping[str, Any],
    order_arguments: Mapping[str, Any],
) -> Gradients:
    """Create a :class:`Gradients` object in the calling process, where the engine is chosen.

    Args:
        graph: the graph.
        dataset: the samples.
        objective_arguments: further arguments of :class:`cgprimer.training.objective.Objective`.
        order_arguments: further arguments of :class:`Gradients`.
    """
    objective = Objective(graph, dataset=dataset, **objective_arguments)
    return Gradients(objective, ResidentData(objective, dataset), **order_arguments)
