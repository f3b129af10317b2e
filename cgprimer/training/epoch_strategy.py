"""The interface of all ways to train an epoch, and the base class of those that train by blocks.

A strategy yields its progress after each update, or after many. The loop in ``epochs.py`` records
the progress and does not know how the updates are computed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from cgprimer.training.layer_states import Masks
from cgprimer.training.objective import Objective, ResidentData
from cgprimer.training.runs import TrainingRun
from cgprimer.training.update_plan import UpdatePlan
from cgprimer.training.update_rules import Optimizer
from cgprimer.training.written_rules import State

Array = Any


class Progress(NamedTuple):
    """The state of a run after some updates, and the losses of the latest updates.

    Attributes:
        updates: the number of updates since the start of the run.
        values: the parameter vector.
        state: the state of the optimizer.
        losses: the mean loss of the batch of each of the latest updates, before the update.
        failed_samples: the indices of the samples of the next batch if its loss, which is then the
            last of the losses, or its gradient is not finite.
        statistics: the running statistics of batchnorm.
    """

    updates: int
    values: Array
    state: State
    losses: Sequence[float] | Array
    failed_samples: Array | None = None
    statistics: Mapping[str, Array] = MappingProxyType({})


class EpochStrategy(ABC):
    """Base class for strategies that train an epoch, such as compiled or distributed updates.

    Args:
        objective: the loss and its gradient.
        data: the samples.
        plan: the batch size, learning rates and update rule.
    """

    def __init__(self, objective: Objective, data: ResidentData, plan: UpdatePlan) -> None:
        self.objective, self.data, self.plan = objective, data, plan
        self.settings = plan.settings
        self.updates_per_epoch = plan.updates_per_epoch
        self.batch_size = plan.batch_size * plan.gradients_per_update
        self.block_lengths = data.dataset.lengths
        self.samples = sum(self.block_lengths)
        for length in self.block_lengths:
            objective.layers.check_batches(length, plan.batch_size)
        self.rule = plan.constrained_rule
        self.masks = Masks(objective.layers.masks, self.settings.seed, objective.dtype)

    @abstractmethod
    def train_epoch(
        self, epoch: int, progress: Progress, recorded_steps: Sequence[int] = ()
    ) -> Iterator[Progress]:
        """Train the rest of an epoch and yield the progress after one or more updates.

        Args:
            epoch: the index of the epoch.
            progress: the progress of the run so far.
            recorded_steps: the steps, counted over the run and ascending, after which the
                parameters are recorded; the progress is yielded after each of them.
        """

    @abstractmethod
    def add_losses(self, total: float, progress: Progress) -> float:
        """Add the losses of the latest updates to the loss total of an epoch."""

    @abstractmethod
    def sample_masks(self, update: int, count: int) -> dict[str, Array]:
        """Return the dropout masks of the first ``count`` samples of an update."""

    def mean_loss(self, total: float) -> float:
        """Convert the loss total of an epoch to the mean loss over its samples."""
        return total * (self.batch_size / self.samples)

    def has_converged(self, epoch: int, progress: Progress) -> bool:
        """Return whether the optimizer has converged, so that no updates are left."""
        return False

    def restore(self, run: TrainingRun) -> None:  # noqa: B027, optional
        """Load records that the strategy continues from a resumed run, such as worker records."""

    def open(self) -> None:  # noqa: B027, optional
        """Acquire resources, such as a cluster, before the first update."""

    def close(self) -> None:  # noqa: B027, optional
        """Release the resources that :meth:`open` acquired."""

    def worker_record(self, updates: int) -> dict[str, Any]:
        """Return the record of the workers up to an update; empty for a run without workers."""
        return {}

    @cached_property
    def optimizer_state_size(self) -> int:
        """The number of leading entries of the state that belong to the optimizer."""
        return len(self.plan.rule.start(np.zeros(len(self.objective.vectors))))

    def initial_state(self, values: Array, optimizer_state: State) -> State:
        """Return the initial state of the optimizer and its constraints.

        Args:
            values: the parameter vector.
            optimizer_state: the optimizer's part of the state; its initial state if empty.
        """
        state, size = self.rule.start(values), self.optimizer_state_size
        return (*(optimizer_state or state[:size]), *state[size:])


class Block(NamedTuple):
    """A block of the dataset, with the order of its samples in an epoch.

    Attributes:
        columns: the columns in the memory of Python.
        resident: the columns in the memory of the engine.
        order: the indices of the samples in the order of the epoch.
        first_update: the number of updates before the block.
        end_update: the number of updates after the block.
    """

    columns: Mapping[str, Array]
    resident: Mapping[str, Array]
    order: Array
    first_update: int
    end_update: int

    def find_first_sample(self, updates: int, batch_size: int) -> int:
        """Return the position in the block of the first sample that the next update uses."""
        return (updates - self.first_update) * batch_size


class BlockStrategy(EpochStrategy):
    """A strategy that trains on one block of samples after another.

    The orders of the blocks and of the samples in each depend only on the seed, the epoch and the
    block.
    """

    _block: Block

    @abstractmethod
    def _train_block(
        self, block: Block, progress: Progress, recorded_steps: Sequence[int]
    ) -> Iterator[Progress]:
        """Train on the remaining samples of a block, yielding the progress."""

    def train_epoch(
        self, epoch: int, progress: Progress, recorded_steps: Sequence[int] = ()
    ) -> Iterator[Progress]:
        """Train an epoch block by block."""
        first_update, latest = epoch * self.updates_per_epoch, progress
        for index in self._order_blocks(epoch):
            length = self.block_lengths[index]
            end_update = first_update - (-length // self.batch_size)
            if latest.updates < end_update:
                order = self._order_samples(epoch, index)
                columns, resident = self.data.block(index)
                self._block = Block(columns, resident, order, first_update, end_update)
                offset = sum(self.block_lengths[:index])
                progresses = self._train_block(self._block, latest, recorded_steps)
                for latest in progresses:
                    if latest.failed_samples is not None:
                        yield latest._replace(failed_samples=latest.failed_samples + offset)
                        return
                    yield latest
            first_update = end_update

    def _order_blocks(self, epoch: int) -> list[int]:
        """Return the indices of the blocks in the order of an epoch."""
        lengths = self.block_lengths
        if not self.settings.shuffle or len(lengths) == 1:
            return list(range(len(lengths)))
        generator = np.random.default_rng([self.settings.seed, epoch, *lengths])
        order: list[int] = generator.permutation(np.arange(len(lengths))).tolist()
        return order

    def _order_samples(self, epoch: int, block: int) -> Array:
        """Return the sample indices of a block in the order of an epoch."""
        length = self.block_lengths[block]
        single_batch = self.batch_size >= length and not self.masks.leaves
        if not self.settings.shuffle or single_batch:
            return self._ascending_indices[:length]
        stream = [self.settings.seed, epoch, *([block] if len(self.block_lengths) > 1 else [])]
        return np.random.default_rng(stream).permutation(length)

    @cached_property
    def _ascending_indices(self) -> Array:
        """The indices of the samples of the longest block, in ascending order."""
        return np.arange(max(self.block_lengths))

    def add_losses(self, total: float, progress: Progress) -> float:
        """Add the losses of the latest updates, weighted by batch size, to the epoch's total.

        The losses are added one by one, whatever their number, so that the total of an interrupted
        run has the same bits.
        """
        losses, last = progress.losses[:-1], float(progress.losses[-1])
        if progress.updates == self._block.end_update:
            last *= 1 - (-len(self._block.order) % self.batch_size) / self.batch_size
        if not len(losses):
            return total + last
        return float(np.add.accumulate(np.concatenate(([total], losses, [last])))[-1])

    def sample_masks(self, update: int, count: int) -> dict[str, Array]:
        """Return the dropout masks of an update, or expected masks if ``count`` exceeds a batch."""
        epoch, index = divmod(update, self.updates_per_epoch)
        if count > self.batch_size:
            return self.objective.layers.split_masks(self.masks.compute_expected_masks(count))
        draw = self.masks.create_stream(epoch, index * self.batch_size)
        return self.objective.layers.split_masks(draw(count))


def update_parameters(
    rule: Optimizer, values: Array, gradient: Array, state: State, rate: float
) -> tuple[Array, State]:
    """Return the parameters and the state after one update.

    Scalars of the state are passed as Python floats: numpy's would turn single precision into
    double.
    """
    parts = [
        part if (type(part) is np.ndarray and part.ndim) or np.ndim(part) else float(part)
        for part in state
    ]
    values, updated = rule.update(values, gradient, tuple(parts), rate)
    return values, tuple([p if type(p) is np.ndarray else np.asarray(p) for p in updated])
