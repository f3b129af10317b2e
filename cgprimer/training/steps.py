"""Steps of training: batches in an order, gradients, updates.

Either an engine does thousands of steps by itself, or they are done here one by one. Both yield
what was done as ``Done`` and leave bookkeeping to the loop.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from cgprimer.core.run import Runner
from cgprimer.core.tape.optimization import optimize
from cgprimer.native.contract import Trainer
from cgprimer.training.losses import LOSS
from cgprimer.training.objective import Objective
from cgprimer.training.optimizers import Optimizer, State

Array = Any
Rates = Callable[[int, int], Array]
SCHEDULES = ("cosine", "constant")
_SECONDS = 0.05  # of steps between two looks at what the user wants: Ctrl-C, progress


class Done(NamedTuple):
    """Steps that were done.

    Attributes:
        steps: since the beginning of the run.
        values, state: after them.
        losses: mean loss of each step's batch, before the step.
        failed: whether the step after them had a loss or a gradient that is not finite; its loss
            is then the last of ``losses``.
    """

    steps: int
    values: Array
    state: State
    losses: list[float]
    failed: bool = False


def order_of(samples: int, seed: int, epoch: int) -> Array:
    """The order of an epoch: from the seed and the epoch's number alone."""
    return np.random.default_rng([seed, epoch]).permutation(samples)


def rates(rate: float, schedule: str, steps: int) -> Rates:
    """The learning rates of a run: a function from the first and the last step to an array.

    >>> [round(float(r), 3) for r in rates(1.0, "cosine", 4)(0, 4)]
    [1.0, 0.854, 0.5, 0.146]
    """

    def of(first: int, last: int) -> Array:
        if schedule != "cosine":
            return np.full(last - first, rate)
        share = [0.5 + 0.5 * math.cos(math.pi * k / steps) for k in range(first, last)]
        return rate * np.array(share)

    return of


class Steps:
    """Steps over batches: by the engine if it can, else one by one in Python.

    Args:
        objective: loss and gradient.
        columns: of the dataset.
        rule: the optimizer.
        batch: samples per step.
        rate: the learning rates of the run's steps.
        one_by_one: leave the engine out, so that somebody can look on after each step.

    Attributes:
        resident: the columns where the engine wants them.
        per_epoch: number of steps.
    """

    def __init__(
        self,
        objective: Objective,
        columns: Mapping[str, Array],
        rule: Optimizer,
        batch: int,
        rate: Rates,
        *,
        one_by_one: bool = False,
    ) -> None:
        samples = len(next(iter(columns.values())))
        self.rule, self.batch, self.rate = rule, batch, rate
        self.samples, self.per_epoch = samples, -(-samples // batch)
        self.resident = objective.resident(columns)
        self.trainer = None if one_by_one else objective.trainer(rule, batch)
        given = self.resident if batch >= samples > 1 else columns  # else in another order
        self.batches = Batches(objective, given, samples, batch) if self.trainer is None else None

    def epoch(
        self, order: Array, held: Done, first: int, halts: Sequence[int] = ()
    ) -> Iterator[Done]:
        """The steps of an epoch.

        Args:
            order: of its samples.
            held: where the run stands; it may be in the midst of the epoch.
            first: steps before this epoch.
            halts: ascending; steps after which somebody wants to look at the values.
        """
        if self.trainer is not None:
            return self._by_engine(self.trainer, order, held, first, halts)
        return self._one_by_one(order, held, first)

    def mean(self, losses: list[float]) -> float:
        """The mean over the samples of an epoch, of its batches' means; the last may be short."""
        short = self.per_epoch * self.batch - self.samples
        total = sum(losses) * self.batch - (losses[-1] * short if short else 0.0)
        return total / self.samples

    def _by_engine(
        self, trainer: Trainer, order: Array, held: Done, first: int, halts: Sequence[int]
    ) -> Iterator[Done]:
        steps, values, state = held.steps, held.values, held.state
        last = first + self.per_epoch
        batch, count = self.batch, 1
        while steps < last:
            coming = bisect_right(halts, steps)
            until = halts[coming] if coming < len(halts) else last
            count = min(count, until - steps)
            part = order[(steps - first) * batch : (steps - first + count) * batch]
            clock = time.perf_counter()
            values, state, losses, failed = trainer.epoch(
                self.resident, part, batch, values, state, self.rate(steps, steps + count)
            )
            took = time.perf_counter() - clock
            if failed >= 0:
                yield Done(steps + failed, values, state, losses.tolist(), failed=True)
                return
            steps += count
            yield Done(steps, values, state, losses.tolist())
            count = max(1, int(count * min(32.0, _SECONDS / max(took, 1e-6))))

    def _one_by_one(self, order: Array, held: Done, first: int) -> Iterator[Done]:
        assert self.batches is not None
        steps, values, state = held.steps, held.values, held.state
        for mean, gradient in self.batches(order, held, first):
            if not (np.isfinite(mean) and np.isfinite(gradient).all()):
                yield Done(steps, values, state, [mean], failed=True)
                return
            values, state = self.rule.update(
                values, gradient, state, float(self.rate(steps, steps + 1)[0])
            )
            self.batches.values = values
            steps += 1
            yield Done(steps, values, state, [mean])


class Batches:
    """Mean loss and gradient of one batch after another.

    Samples one at a time go through Python's floats (twenty times less overhead than a numpy
    call); anything larger through the engine.
    """

    def __init__(
        self, objective: Objective, columns: Mapping[str, Array], samples: int, batch: int
    ) -> None:
        self.objective = objective
        self.columns = columns
        self.samples = samples
        self.batch = batch
        self.values: Array = None  # of the parameters; whoever makes a step sets them
        self.point: Runner | None = None
        if batch == 1 and objective.dtype == "float64":
            program = objective.program
            self.point = Runner(replace(program, tape=optimize(program.tape)))

    def __call__(self, order: Array, held: Done, first: int) -> Iterator[tuple[float, Array]]:
        """The batches of an epoch that began after ``first`` steps, from where the run stands."""
        self.values = held.values
        begin = (held.steps - first) * self.batch
        whole = self.batch >= self.samples  # then the order makes no difference
        columns = self.columns if whole else {n: c[order] for n, c in self.columns.items()}
        if self.point is not None:
            yield from self._points(self.point, {n: c[begin:] for n, c in columns.items()})
            return
        for at in range(begin, self.samples, self.batch):
            size = min(self.batch, self.samples - at)
            part = columns if whole else {n: c[at : at + size] for n, c in columns.items()}
            total, gradient = self.objective.sums(part, self.values, size)
            yield total / size, gradient / size

    def _points(self, point: Runner, columns: Mapping[str, Array]) -> Iterator[tuple[float, Array]]:
        names, parameters = list(columns), self.objective.parameters
        for row in zip(*(column.tolist() for column in columns.values()), strict=True):
            scalars = dict(zip(parameters, self.values.tolist(), strict=True))
            found = point(dict(zip(names, row, strict=True)), scalars, 1)
            gradient = [found.derivatives[LOSS, name] for name in parameters]
            yield found.values[LOSS], np.array(gradient)
