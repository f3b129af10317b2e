"""The epochs of a run: what is kept of them, when it is saved, and when they end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cgprimer.errors import TrainingError
from cgprimer.training.layer_states import as_values
from cgprimer.training.parameter_snapshots import MOST_LOSSES, Moments
from cgprimer.training.runs import TrainingRun
from cgprimer.training.settings import Settings, checkpoint_times
from cgprimer.training.training_steps import Done, Steps

Array = Any
Measure = Callable[[Array, Mapping[str, Array]], float]  # of parameters, running statistics


@dataclass
class Epochs:
    """The epochs of a run, and what is kept of them."""

    run: TrainingRun
    steps: Steps
    begin: Done
    settings: Settings
    measures: Mapping[str, Measure]
    tell: Callable[[Done], None]
    on_epoch: Callable[[TrainingRun], None] | None
    on_checkpoint: Callable[[TrainingRun], None] | None

    def __post_init__(self) -> None:
        run, held, self.vectors = self.run, self.begin, self.steps.objective.vectors
        self.steps.taken_up(run)
        # Where the run stands and the sum of the losses of its epoch's steps: they are assigned
        # together, so that Ctrl-C comes before or after it.
        self.at = held, run.epoch_total
        self.kept: list[tuple[int, Array]] = []  # parameters, to be recorded
        self.recorded = run.recorded_steps, run.recorded_parameters
        self.best = math.inf, 0, held.values, held.statistics
        if run.best_epoch:
            least = run.validation_losses[run.best_epoch - 1]
            learnt = self.vectors.vector(run.parameters)
            self.best = least, run.best_epoch, learnt, run.statistics
        self.clock = time.perf_counter() - run.seconds

    def through(self, when: Moments) -> Array | None:
        """All epochs still to do; the samples of a step that was not finite, if one was."""
        run, settings = self.run, self.settings
        seconds, epochs = checkpoint_times(settings.checkpoint_every)
        try:
            begun = time.perf_counter()
            self.steps.begin()
            self.clock += time.perf_counter() - begun
            self._checkpoint()
            saved = time.perf_counter()
            for epoch in range(run.epochs, settings.epochs):
                if self.steps.finished(epoch, self.at[0]):
                    run.stopped = "converged"
                    break
                halts = when.of_epoch(epoch)
                for done in self.steps.epoch(epoch, self.at[0], halts):
                    self._note(done, halts)
                    if done.failed is not None:
                        return done.failed
                    self.tell(done)
                    if time.perf_counter() - saved > seconds:
                        self._checkpoint()
                        saved = time.perf_counter()
                if self._ended(epoch) or self._no_longer_falls():
                    break
                if epochs and run.epochs % epochs == 0:
                    self._checkpoint()
        except KeyboardInterrupt:
            run.stopped = "interrupted"
        except TrainingError as error:
            run.stopped, error.run = "interrupted", run
            raise
        finally:
            try:
                self._up_to_date()
            finally:
                self.steps.close()
        return None

    def _note(self, done: Done, halts: Sequence[int]) -> None:
        """Keep the losses of some steps, and where the run stands after them."""
        held, total = self.at
        apart, losses = self.run.steps_apart, done.losses
        chosen = losses[-held.steps % apart :: apart]
        self.run.step_losses += chosen.tolist() if isinstance(chosen, np.ndarray) else chosen
        if done.failed is None:
            if done.steps in halts:
                self.kept.append((done.steps, done.values))
            total = self.steps.total(total, done)
        self.at = done, total

    def _ended(self, epoch: int) -> bool:
        """Take down what an epoch gave; whether it is to be the last."""
        run, (held, total) = self.run, self.at
        begun = time.perf_counter()
        more = [*run.metrics, *([""] if run.validation_losses else [])]  # of a run taken up
        for name in dict.fromkeys([*self.measures, *more]):
            of = run.metrics.setdefault(name, []) if name else run.validation_losses
            measure = self.measures.get(name)
            missing = [math.nan] * (epoch - len(of))  # taken up, and begun without
            of += [*missing, measure(held.values, held.statistics) if measure else math.nan]
        if self.settings.patience and run.validation_losses[-1] < self.best[0]:
            least = run.validation_losses[-1]
            self.best = least, epoch + 1, held.values, held.statistics
        run.epoch_losses.append(self.steps.mean(total))
        self.at, run.epochs = (held, 0.0), epoch + 1
        if self.on_epoch is not None:
            self.on_epoch(run)
        self.clock += time.perf_counter() - begun  # it is no part of the steps' time
        below = self.settings.stop_below
        if below is not None and run.epoch_losses[-1] < below:
            run.stopped = "converged"
        return run.stopped == "converged"

    def _no_longer_falls(self) -> bool:
        run, patience = self.run, self.settings.patience
        if patience is None or run.epochs - self.best[1] < patience:
            return False
        since = f"epoch {self.best[1]:,}" if self.best[1] else "the start"
        run.stopped, run.reason = "patience", f"the validation loss has not fallen since {since}"
        return True

    def _checkpoint(self) -> None:
        if self.on_checkpoint is not None:
            begun = time.perf_counter()
            self._up_to_date()
            self.run.stopped = "interrupted"  # what whoever is killed leaves behind is not finished
            self.on_checkpoint(self.run)
            self.run.stopped = "finished"
            self.clock += time.perf_counter() - begun

    def _up_to_date(self) -> None:
        """Bring the run to where it stands; what is after that, Ctrl-C has cut off."""
        run, (held, total) = self.run, self.at
        run.seconds = time.perf_counter() - self.clock
        run.steps, run.epoch_total = held.steps, total
        run.state, run.team = held.state[: self.steps.own], self.steps.told(held.steps)
        del run.step_losses[-(-run.steps // run.steps_apart) :]
        for of in (run.epoch_losses, run.validation_losses, *run.metrics.values()):
            del of[run.epochs :]
        steps, parameters = self.recorded
        kept = [(step, self.vectors.values(v)) for step, v in self.kept if step <= run.steps]
        run.recorded_steps = [*steps, *(step for step, _ in kept)]
        run.recorded_parameters = {
            name: [*of, *(values[name] for _, values in kept)] for name, of in parameters.items()
        }
        run.parameters, run.last_parameters = self.vectors.values(held.values), {}
        run.statistics, run.last_statistics = as_values(held.statistics), {}
        _, epoch, values, running = self.best
        if epoch and epoch <= run.epochs:
            run.best_epoch, run.last_parameters = epoch, run.parameters
            run.parameters, run.last_statistics = self.vectors.values(values), run.statistics
            run.statistics = as_values(running)


def thin(run: TrainingRun, when: Moments, steps: int) -> None:
    """Leave out the records of a run that a longer one has no room for."""
    left = [k for k, step in enumerate(run.recorded_steps) if step in when]
    run.recorded_steps = [run.recorded_steps[k] for k in left]
    for name, values in run.recorded_parameters.items():
        run.recorded_parameters[name] = [values[k] for k in left]
    while steps > MOST_LOSSES * run.steps_apart:
        run.steps_apart *= 2
        del run.step_losses[1::2], run.team.get("times", [])[1::2]
