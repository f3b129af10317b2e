"""Training in Python: one update after the other, on arrays or on single samples."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from cgprimer.training.epoch_strategy import Block, BlockStrategy, Progress, update_parameters
from cgprimer.training.gradient_forms import Point
from cgprimer.training.objective import Objective, ResidentData
from cgprimer.training.update_plan import UpdatePlan

Array = Any
_CHUNK_BYTES = 2**23  # bytes of samples that are copied into the order of an epoch at once


class PythonUpdates(BlockStrategy):
    """A training strategy that computes each gradient and applies each update from Python."""

    @abstractmethod
    def _read_batches(self, block: Block, updates: int) -> Iterator[Any]:
        """Yield the batches of a block that remain after a number of updates."""

    @abstractmethod
    def _compute_gradient(self, batch: Any, values: Array, update: int) -> Point:
        """Return the mean loss over a batch and the gradient of the training objective."""

    def _update_statistics(
        self, statistics: Mapping[str, Array], batch: Any, values: Array
    ) -> Mapping[str, Array]:
        """Return the running batchnorm statistics after a batch."""
        return statistics

    def _update_values(
        self, values: Array, gradient: Array, state: Any, rate: float, update: int
    ) -> tuple[Array, Any]:
        """Return the parameter vector and the state after one update."""
        return update_parameters(self.rule, values, gradient, state, rate)

    def _train_block(
        self, block: Block, progress: Progress, recorded_steps: Sequence[int]
    ) -> Iterator[Progress]:
        """Train on the remaining batches of a block, one update after the other."""
        updates, values, state, _, _, statistics = progress
        rates = self.plan.learning_rates(updates, block.end_update).tolist()
        for rate, batch in zip(rates, self._read_batches(block, updates), strict=True):
            loss, gradient = self._compute_gradient(batch, values, updates)
            if not (math.isfinite(loss) and np.isfinite(gradient).all()):
                first = block.find_first_sample(updates, self.batch_size)
                failed_samples = block.order[first : first + self.batch_size]
                yield Progress(updates, values, state, [loss], failed_samples, statistics)
                return
            if statistics:
                statistics = self._update_statistics(statistics, batch, values)
            moved, state = self._update_values(values, gradient, state, rate, updates)
            values = moved.astype(gradient.dtype, copy=False)
            updates += 1
            yield Progress(updates, values, state, [loss], None, statistics)

    def _copy_chunks(self, block: Block, updates: int) -> Iterator[tuple[Mapping[str, Array], int]]:
        """Yield the remaining samples in the order of the epoch, copied chunk by chunk.

        Each chunk comes with its number of samples.
        """
        row_bytes = sum(column.nbytes for column in block.columns.values()) / len(block.order)
        batches = max(1, int(_CHUNK_BYTES / (self.batch_size * max(row_bytes, 1))))
        size = self.batch_size * batches
        first = block.find_first_sample(updates, self.batch_size)
        for start in range(first, len(block.order), size):
            samples = block.order[start : start + size]
            yield {name: column[samples] for name, column in block.columns.items()}, len(samples)


class FloatUpdates(PythonUpdates):
    """A training strategy for single samples that uses Python floats, to avoid numpy overhead."""

    def __init__(self, objective: Objective, data: ResidentData, plan: UpdatePlan) -> None:
        super().__init__(objective, data, plan)
        self._sample_gradient = objective.single(list(data.block(0)[0]))

    def _read_batches(self, block: Block, updates: int) -> Iterator[tuple[float, ...]]:
        """Yield each remaining sample of a block as a tuple of floats."""
        for columns, count in self._copy_chunks(block, updates):
            numbers = (np.asarray(column).tolist() for column in columns.values())
            yield from zip(*numbers, strict=True) if columns else [()] * count

    def _compute_gradient(self, batch: tuple[float, ...], values: Array, update: int) -> Point:
        """Return the loss of a single sample and its gradient."""
        return self._sample_gradient(batch, values)


Batch = tuple[Mapping[str, Array], int]  # columns with their dropout masks, number of samples


class ArrayUpdates(PythonUpdates):
    """A training strategy that computes the gradient of each batch by one engine call on arrays."""

    def __init__(self, objective: Objective, data: ResidentData, plan: UpdatePlan) -> None:
        super().__init__(objective, data, plan)
        self._mean_gradient = plan.settings.reduction != "sum"

    def _read_batches(self, block: Block, updates: int) -> Iterator[Batch]:
        """Yield the columns and the number of samples of each remaining batch of a block.

        The order makes no difference if a batch has all samples; then no column is copied.
        """
        samples, batch_size = len(block.order), self.batch_size
        if batch_size >= samples and not self.masks.leaves:
            yield block.resident, samples
            return
        epoch, index = divmod(updates, self.updates_per_epoch)
        draw = self.masks.create_stream(epoch, index * batch_size)
        for columns, count in self._copy_chunks(block, updates):
            for start in range(0, count, batch_size):
                size = min(batch_size, count - start)
                batch = {n: column[start : start + size] for n, column in columns.items()}
                if self.masks.leaves:
                    batch |= self.objective.layers.split_masks(draw(size))
                yield batch, size

    def _compute_gradient(self, batch: Batch, values: Array, update: int) -> Point:
        """Return the mean loss over a batch, and the gradient of the mean or summed loss."""
        columns, size = batch
        total, gradient = self._sum_gradients(columns, values, size, update)
        gradient /= size if self._mean_gradient else 1
        return total / size, gradient

    def _sum_gradients(
        self, columns: Mapping[str, Array], values: Array, size: int, update: int
    ) -> Point:
        """Return the loss and its gradient, both summed over a batch."""
        return self.objective.sums(columns, values, size)

    def _update_statistics(
        self, statistics: Mapping[str, Array], batch: Batch, values: Array
    ) -> Mapping[str, Array]:
        """Return the running batchnorm statistics after a batch."""
        columns, size = batch
        scalars = self.objective.scalars(values)
        return self.objective.layers.update_statistics(statistics, columns, scalars, size)
