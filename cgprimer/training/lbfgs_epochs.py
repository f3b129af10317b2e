"""Training with L-BFGS: each epoch is one iteration over all samples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cgprimer.errors import UsageError
from cgprimer.training.epoch_strategy import EpochStrategy, Progress
from cgprimer.training.lbfgs import LbfgsIterations
from cgprimer.training.objective import Objective, ResidentData
from cgprimer.training.update_plan import UpdatePlan

Array = Any


class LbfgsEpochs(EpochStrategy):
    """A strategy that runs L-BFGS in the first epoch, and reports one iteration per epoch.

    Raises:
        UsageError: the graph has dropout or batchnorm.
    """

    def __init__(self, objective: Objective, data: ResidentData, plan: UpdatePlan) -> None:
        super().__init__(objective, data, plan)
        if objective.layers:
            raise UsageError(
                f"the optimizer {plan.rule.name!r} cannot train graphs with dropout or batchnorm",
                hint="use another optimizer (--optimizer)",
            )
        self._first_epoch = 0
        self._iterations: LbfgsIterations | None = None

    def train_epoch(
        self, epoch: int, progress: Progress, recorded_steps: Sequence[int] = ()
    ) -> Iterator[Progress]:
        """Yield the progress after the L-BFGS iteration of an epoch."""
        iterations = self._run_iterations(epoch, progress)
        index = epoch - self._first_epoch
        loss = iterations.losses[index]
        if math.isfinite(loss):
            yield Progress(epoch + 1, iterations.points[index + 1], (), [loss])
        else:
            yield Progress(epoch, progress.values, (), [loss], np.arange(self.samples))

    def has_converged(self, epoch: int, progress: Progress) -> bool:
        """Return whether L-BFGS stopped before the iteration of an epoch.

        Raises:
            KeyboardInterrupt: Ctrl-C ended it.
        """
        iterations = self._run_iterations(epoch, progress)
        next_point = epoch - self._first_epoch + 1
        if next_point < len(iterations.points) or not math.isfinite(iterations.losses[0]):
            return False
        if iterations.interrupted:
            raise KeyboardInterrupt
        return True

    def add_losses(self, total: float, progress: Progress) -> float:
        """Add the loss of the latest iteration to the loss total of an epoch."""
        return total + float(progress.losses[-1])

    def sample_masks(self, update: int, count: int) -> dict[str, Array]:
        """Return an empty dict, because graphs with dropout are rejected."""
        return {}

    def _run_iterations(self, epoch: int, progress: Progress) -> LbfgsIterations:
        """Run all iterations at the first call, and return them."""
        if self._iterations is None:
            resident = self.data.block(0)[1]

            def compute_mean_gradient(values: Array) -> tuple[float, Array]:
                """Return the mean loss over all samples and its gradient."""
                total, gradient = self.objective.sums(resident, values, self.samples)
                return total / self.samples, gradient / self.samples

            plan, epochs_left = self.plan, self.settings.epochs - epoch
            self._first_epoch = epoch
            self._iterations = LbfgsIterations(
                compute_mean_gradient, plan.rule, plan.constraints, progress.values, epochs_left
            )
        return self._iterations
