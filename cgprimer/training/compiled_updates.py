"""Compiled training: the engine runs many updates in one call."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence

import numpy as np

from cgprimer.backends.interfaces import SampleBatches, Trainer
from cgprimer.training.epoch_strategy import Block, BlockStrategy, Progress
from cgprimer.training.objective import Objective, ResidentData
from cgprimer.training.update_plan import UpdatePlan

_OPERATIONS_PER_SECOND = 2e7  # a lower bound for the speed of an engine
_CALL_SECONDS = 0.05  # duration of a call, so that Ctrl-C and progress reports are prompt
_LARGEST_GROWTH = 32.0  # of the number of updates from one call to the next


class CompiledUpdates(BlockStrategy):
    """A training strategy that runs many updates per engine call, on single samples or batches.

    Args:
        objective: the loss and its gradient.
        data: the samples.
        plan: the batch size, learning rates and update rule.
        trainer: the compiled updates.
    """

    def __init__(
        self, objective: Objective, data: ResidentData, plan: UpdatePlan, trainer: Trainer
    ) -> None:
        super().__init__(objective, data, plan)
        self.trainer = trainer

    def _train_block(
        self, block: Block, progress: Progress, recorded_steps: Sequence[int]
    ) -> Iterator[Progress]:
        """Train on a block, adapting the number of updates per call to their measured duration."""
        updates, values, state = progress.updates, progress.values, progress.state
        batch_size = self.batch_size
        work = self.objective.program.operation_count * batch_size
        count = max(1, int(_CALL_SECONDS * _OPERATIONS_PER_SECOND / max(work, 1)))
        epoch, index = divmod(updates, self.updates_per_epoch)
        draw = self.masks.create_stream(epoch, index * batch_size)
        while updates < block.end_update:
            next_halt = bisect_right(recorded_steps, updates)
            until = (
                recorded_steps[next_halt] if next_halt < len(recorded_steps) else block.end_update
            )
            most = max(1, self.masks.max_samples // batch_size)
            count = min(count, until - updates, block.end_update - updates, most)
            first = block.find_first_sample(updates, batch_size)
            samples = block.order[first : first + count * batch_size]
            start, columns, order = time.perf_counter(), block.resident, samples
            if self.masks.leaves:  # masks are in the order of the updates, so copy the columns
                columns = {name: column[samples] for name, column in columns.items()}
                columns |= self.objective.layers.split_masks(draw(len(samples)))
                order = np.arange(len(samples))
            values, state, losses, failed = self.trainer.run_updates(
                SampleBatches(columns, order, batch_size),
                values,
                state,
                self.plan.learning_rates(updates, updates + count),
            )
            seconds = time.perf_counter() - start
            if failed >= 0:
                failed_samples = samples[failed * batch_size :][:batch_size]
                yield Progress(updates + failed, values, state, losses, failed_samples)
                return
            updates += count
            yield Progress(updates, values, state, losses)
            growth = min(_LARGEST_GROWTH, _CALL_SECONDS / max(seconds, 1e-6))
            count = max(1, int(count * growth))
