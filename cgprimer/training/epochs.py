"""The loop over the epochs of a run: records, checkpoints, and the end of training."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cgprimer.errors import TrainingError
from cgprimer.training.epoch_strategy import EpochStrategy, Progress
from cgprimer.training.layer_states import convert_statistics
from cgprimer.training.parameter_snapshots import MAX_STEP_LOSSES, RecordingSchedule
from cgprimer.training.runs import TrainingRun
from cgprimer.training.settings import parse_checkpoint_interval

Array = Any
Measure = Callable[[Array, Mapping[str, Array]], float]  # of parameters, running statistics


@dataclass(frozen=True)
class Callbacks:
    """The callback functions of a run.

    Attributes:
        report_progress: called with the progress after one or more updates.
        on_epoch: called with the run after each epoch.
        on_checkpoint: called with the run whenever it should be saved.
    """

    report_progress: Callable[[Progress], None]
    on_epoch: Callable[[TrainingRun], None] | None
    on_checkpoint: Callable[[TrainingRun], None] | None


class BestEpoch:
    """The parameters and statistics of the epoch with the lowest validation loss."""

    def __init__(self, run: TrainingRun, progress: Progress, learned: Array) -> None:
        self.loss, self.epoch = math.inf, 0
        self.values, self.statistics = progress.values, progress.statistics
        if run.best_epoch:
            self.loss = run.validation_losses[run.best_epoch - 1]
            self.epoch, self.values, self.statistics = run.best_epoch, learned, run.statistics

    def update(self, loss: float, epoch: int, progress: Progress) -> None:
        """Store the progress after an epoch if its validation loss is the lowest so far."""
        if loss < self.loss:
            self.loss, self.epoch = loss, epoch
            self.values, self.statistics = progress.values, progress.statistics


class EpochLoop:
    """The loop that trains and records the remaining epochs of a run.

    Args:
        run: the run, which is updated.
        strategy: computes the updates.
        progress: the progress before the first update.
        measures: name of each metric, and ``""`` for the validation loss, to a function that
            computes it.
        callbacks: the functions of the caller.
    """

    def __init__(
        self,
        run: TrainingRun,
        strategy: EpochStrategy,
        progress: Progress,
        measures: Mapping[str, Measure],
        callbacks: Callbacks,
    ) -> None:
        self.run, self.strategy, self.measures = run, strategy, measures
        self.callbacks, self.settings = callbacks, strategy.settings
        self.vectors = strategy.objective.vectors
        strategy.restore(run)
        # Progress and loss total of the epoch are assigned together, so that Ctrl-C cannot come
        # between them.
        self._position = progress, run.epoch_total
        self._snapshots: list[tuple[int, Array]] = []
        self._earlier_records = run.recorded_steps, run.recorded_parameters
        self._best = BestEpoch(run, progress, self.vectors.vector(run.parameters))
        self._start_time = time.perf_counter() - run.seconds

    def train(self, schedule: RecordingSchedule) -> Array | None:
        """Train all remaining epochs.

        Returns:
            The indices of the samples of a batch whose loss or gradient is not finite, or None.
        """
        run = self.run
        try:
            opening_time = time.perf_counter()
            self.strategy.open()
            self._start_time += time.perf_counter() - opening_time
            self._save_checkpoint()
            return self._train_epochs(schedule)
        except KeyboardInterrupt:
            run.stopped = "interrupted"
        except TrainingError as error:
            run.stopped, error.run = "interrupted", run
            raise
        finally:
            try:
                self._update_run()
            finally:
                self.strategy.close()
        return None

    def _train_epochs(self, schedule: RecordingSchedule) -> Array | None:
        """Train epochs until a stopping rule applies, or a loss or gradient is not finite."""
        run, strategy = self.run, self.strategy
        seconds, epochs = parse_checkpoint_interval(self.settings.checkpoint_every)
        checkpoint_time = time.perf_counter()
        for epoch in range(run.epochs, self.settings.epochs):
            if strategy.has_converged(epoch, self._position[0]):
                run.stopped = "converged"
                break
            recorded_steps = schedule.list_steps(epoch)
            for progress in strategy.train_epoch(epoch, self._position[0], recorded_steps):
                self._record_progress(progress, recorded_steps)
                if progress.failed_samples is not None:
                    failed_samples: Array = progress.failed_samples
                    return failed_samples
                self.callbacks.report_progress(progress)
                if time.perf_counter() - checkpoint_time > seconds:
                    self._save_checkpoint()
                    checkpoint_time = time.perf_counter()
            self._record_epoch(epoch)
            if self._has_converged() or self._is_out_of_patience():
                break
            if epochs and run.epochs % epochs == 0:
                self._save_checkpoint()
        return None

    def _record_progress(self, progress: Progress, recorded_steps: Sequence[int]) -> None:
        """Record the losses of the latest updates, and the parameters if the schedule says so."""
        earlier, total = self._position
        interval, losses = self.run.steps_apart, progress.losses
        chosen = losses[-earlier.updates % interval :: interval]
        self.run.step_losses += chosen.tolist() if isinstance(chosen, np.ndarray) else chosen
        if progress.failed_samples is None:
            if progress.updates in recorded_steps:
                self._snapshots.append((progress.updates, progress.values))
            total = self.strategy.add_losses(total, progress)
        self._position = progress, total

    def _record_epoch(self, epoch: int) -> None:
        """Record the losses and metrics of an epoch that has ended."""
        run, (progress, total) = self.run, self._position
        measuring_time = time.perf_counter()
        recorded = [*run.metrics, *([""] if run.validation_losses else [])]
        for name in dict.fromkeys([*self.measures, *recorded]):
            values = run.metrics.setdefault(name, []) if name else run.validation_losses
            values += [math.nan] * (epoch - len(values))  # epochs before the run was resumed
            measure = self.measures.get(name)
            values.append(measure(progress.values, progress.statistics) if measure else math.nan)
        if self.settings.patience:
            self._best.update(run.validation_losses[-1], epoch + 1, progress)
        run.epoch_losses.append(self.strategy.mean_loss(total))
        self._position, run.epochs = (progress, 0.0), epoch + 1
        if self.callbacks.on_epoch is not None:
            self.callbacks.on_epoch(run)
        self._start_time += time.perf_counter() - measuring_time

    def _has_converged(self) -> bool:
        """Return whether the latest loss is below ``stop_below``; if so, record the reason."""
        limit = self.settings.stop_below
        if limit is None or not self.run.epoch_losses[-1] < limit:
            return False
        self.run.stopped = "converged"
        return True

    def _is_out_of_patience(self) -> bool:
        """Return whether the validation loss has stopped falling; if so, record the reason."""
        run, patience, best = self.run, self.settings.patience, self._best.epoch
        if patience is None or run.epochs - best < patience:
            return False
        since = f"epoch {best:,}" if best else "the start"
        run.stopped, run.reason = "patience", f"the validation loss has not fallen since {since}"
        return True

    def _save_checkpoint(self) -> None:
        """Pass the run to ``on_checkpoint``, marked as interrupted in case the process dies."""
        if self.callbacks.on_checkpoint is None:
            return
        saving_time = time.perf_counter()
        self._update_run()
        self.run.stopped = "interrupted"
        self.callbacks.on_checkpoint(self.run)
        self.run.stopped = "finished"
        self._start_time += time.perf_counter() - saving_time

    def _update_run(self) -> None:
        """Copy the current progress into the run, and remove records of later updates.

        Ctrl-C can come between two records of the same epoch.
        """
        run, (progress, total) = self.run, self._position
        run.seconds = time.perf_counter() - self._start_time
        run.steps, run.epoch_total = progress.updates, total
        run.state = progress.state[: self.strategy.optimizer_state_size]
        run.team = self.strategy.worker_record(progress.updates)
        del run.step_losses[-(-run.steps // run.steps_apart) :]
        for values in (run.epoch_losses, run.validation_losses, *run.metrics.values()):
            del values[run.epochs :]
        self._update_recorded_parameters()
        run.parameters, run.last_parameters = self.vectors.values(progress.values), {}
        run.statistics, run.last_statistics = convert_statistics(progress.statistics), {}
        if 0 < self._best.epoch <= run.epochs:
            run.best_epoch, run.last_parameters = self._best.epoch, run.parameters
            run.parameters = self.vectors.values(self._best.values)
            run.last_statistics = run.statistics
            run.statistics = convert_statistics(self._best.statistics)

    def _update_recorded_parameters(self) -> None:
        """Append the parameter snapshots taken so far to the recorded parameters of the run."""
        steps, parameters = self._earlier_records
        snapshots = [
            (step, self.vectors.values(vector))
            for step, vector in self._snapshots
            if step <= self.run.steps
        ]
        self.run.recorded_steps = [*steps, *(step for step, _ in snapshots)]
        self.run.recorded_parameters = {
            name: [*earlier, *(values[name] for _, values in snapshots)]
            for name, earlier in parameters.items()
        }


def thin_records(run: TrainingRun, schedule: RecordingSchedule, steps: int) -> None:
    """Remove records of a resumed run that an uninterrupted run of equal length would lack."""
    remaining = [k for k, step in enumerate(run.recorded_steps) if step in schedule]
    run.recorded_steps = [run.recorded_steps[k] for k in remaining]
    for name, values in run.recorded_parameters.items():
        run.recorded_parameters[name] = [values[k] for k in remaining]
    while steps > MAX_STEP_LOSSES * run.steps_apart:
        run.steps_apart *= 2
        del run.step_losses[1::2], run.team.get("times", [])[1::2]
