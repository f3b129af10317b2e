"""Steps of training: batches in an order, gradients, updates.

The samples come in blocks, of which most datasets have one: a batch is of one block. Blocks, and
the samples of each, are gone through in orders drawn from the seed, the epoch and the block alone.

Either an engine does thousands of steps by itself, or they are done here one by one. Both yield
what was done as ``Done`` and leave bookkeeping to the loop.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from cgprimer.backends.interfaces import SampleBatches, Trainer
from cgprimer.errors import UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.training.constraints import Constraints, constraints_of
from cgprimer.training.coordinate_descent import Chosen, check_count
from cgprimer.training.distributed.protocols import Plan
from cgprimer.training.layer_states import Masks
from cgprimer.training.lbfgs import Iterations
from cgprimer.training.objective import Objective, Resident
from cgprimer.training.optimizers import optimizer
from cgprimer.training.parameter_vector import Vectors
from cgprimer.training.runs import TrainingRun
from cgprimer.training.schedules import divided, rates
from cgprimer.training.settings import DEFAULTS, Settings
from cgprimer.training.update_rules import Optimizer, State
from cgprimer.training.worker_settings import plan_of

Array = Any
_PER_SECOND = 2e7  # operations, at the very least, that an engine does for single samples
_LARGE = 1e6  # operations of a step beside which what Python does for it takes no time
_IN_ORDER = 2**23  # bytes of samples that are copied into the order of an epoch at a time
_SECONDS = 0.05  # of steps between two looks at what the user wants: Ctrl-C, progress


class Done(NamedTuple):
    """Steps that were done, and values and state after them."""

    steps: int  # since the beginning of the run
    values: Array
    state: State
    losses: Sequence[float] | Array  # mean loss of each step's batch, before the step
    failed: Array | None = None  # samples of the step after, whose loss, the last, is not finite
    statistics: Mapping[str, Array] = MappingProxyType({})  # running ones, of batchnorm


@dataclass(frozen=True, eq=False)
class Change:
    """What is the same for all steps of a run."""

    rule: Optimizer
    around: Constraints  # regularizers, bounds, frozen parameters
    method: str  # of differentiation
    rate: float  # at the first step, before the schedule
    batch: int  # samples of a step
    per_epoch: int  # steps of an epoch
    rates: Callable[[int, int], Array]  # of the steps from one to before another
    settings: Settings
    plan: Plan | None = None  # of many workers, whose gradients have `batch` samples each


def change_of(settings: Settings, graph: ExpressionGraph, lengths: Sequence[int]) -> Change:
    """What settings say about the steps over blocks of so many samples each.

    Raises:
        UsageError, SourceError: an unknown name, a number out of its range, a wrong text.
    """
    of_schedule, of_rule = divided(settings.hyper or {}, settings.schedule, settings.optimizer)
    rule = optimizer(settings.optimizer, of_rule)
    rate = rule.rate if settings.learning_rate is None else settings.learning_rate
    samples, method = sum(lengths), settings.method
    plan = plan_of(settings, rule, lengths)
    together, given = plan.together if plan else 1, settings.batch_size
    lengths = [samples] if plan else lengths  # many go through blocks as if they were one
    batch = max(lengths) // together if given else -(-samples // together)
    batch = min(given or batch, batch)
    if batch < (given or 0) != DEFAULTS["batch_size"]:
        each = f" for each of {together:,} workers" if together > 1 else ""
        what = f"a batch of {given:,} samples{each} is larger than the {max(lengths):,} there are"
        hint = "fewer (--batch-size), or all of them: batch_size=None (--batch-size all)"
        raise UsageError(what, hint=hint)
    if rule.kind == "whole":
        if len(lengths) > 1:
            hint = "Dataset.load(path) if memory is enough, or another optimizer"
            raise UsageError("l-bfgs takes all samples at once, not in blocks", hint=hint)
        batch = samples
    if rule.kind == "coordinates":  # a pass for each, and no others
        check_count(len(Vectors(graph)))
        method = "forward"
    per_epoch = sum(-(-n // (batch * together)) for n in lengths)
    way = of_schedule, settings.warm_up
    of_steps = rates(settings.schedule, rate, settings.epochs, per_epoch, *way)
    around = constraints_of(settings, graph)
    return Change(rule, around, method, rate, batch, per_epoch, of_steps, settings, plan)


@dataclass
class Steps:
    """Steps over batches of so many samples: by the engine if it can, else one by one in Python."""

    objective: Objective
    data: Resident
    how: Change
    one_by_one: bool  # leave the engine out, so that somebody can look on after each step

    def __post_init__(self) -> None:
        objective, how, kind = self.objective, self.how, self.how.rule.kind
        self.batch, self.per_epoch, self.settings = how.batch, how.per_epoch, how.settings
        self.summed, self.seed = how.settings.reduction == "sum", how.settings.seed
        self.rule = how.around.around(how.rule)
        lengths = self.data.dataset.lengths
        self.samples = sum(lengths)
        self._end = 0, 0  # of a block: the number of its last step, and its samples
        for samples in lengths:
            objective.layers.check(samples, how.batch)
        self.masks = Masks(objective.layers.masks, self.seed, objective.dtype)
        in_python = self.one_by_one or kind != "rule" or bool(how.around.norms)
        work = objective.program.operation_count * how.batch
        in_python = in_python or (work > _LARGE and how.batch == max(lengths))  # nothing is copied
        self.trainer = None if in_python else objective.trainer(self.rule, how.batch, self.summed)
        alone = self.trainer is None and how.batch == 1 and objective.dtype == "float64"
        alone = alone and not (objective.program.tape.has_arrays or objective.layers.masks)
        alone = alone and kind == "rule"
        self.single = objective.single(list(self.data.block(0)[0])) if alone else None
        self.chosen: Chosen | None = None
        if kind == "coordinates":
            self.chosen = Chosen(objective, int(how.rule.hyper["block"]), self.seed)
        if kind == "whole" and objective.layers:
            raise UsageError(f"{how.rule.name} is for graphs without dropout and batchnorm")
        self._whole: tuple[int, Iterations] | None = None

    def taken_up(self, run: TrainingRun) -> None:
        """Go on with what a run says of those who did its steps."""

    def begin(self) -> None:
        """Get ready, before the first step."""

    def close(self) -> None:
        """No step is wanted any more."""

    def told(self, steps: int) -> dict[str, Any]:
        """What is to be said of those who did so many steps."""
        return {}

    def begun(self, values: Array, state: State) -> State:
        """The state of the whole rule; the optimizer's own part is the first one if it is empty."""
        first = self.rule.start(values)
        return (*(state or first[: self.own]), *first[self.own :])

    @cached_property
    def unshuffled(self) -> Array:
        """Samples in their order, as many as the longest block has."""
        return np.arange(max(self.data.dataset.lengths))

    @cached_property
    def own(self) -> int:
        """How many parts of the state are the optimizer's own."""
        return len(self.how.rule.start(np.zeros(len(self.objective.vectors))))

    def finished(self, number: int, held: Done) -> bool:
        """Whether no step is left although there are epochs: a method of its own is done."""
        if self.how.rule.kind != "whole":
            return False
        begun, found = self._iterations(number, held)
        if number - begun + 1 < len(found.points) or not math.isfinite(found.losses[0]):
            return False
        if found.interrupted:
            raise KeyboardInterrupt
        return True

    def epoch(self, number: int, held: Done, halts: Sequence[int] = ()) -> Iterator[Done]:
        """The steps of an epoch. The run stands where `held` says, perhaps in the midst of it.

        After the steps in `halts`, ascending, somebody wants to look at the values.
        """
        if self.how.rule.kind == "whole":
            yield self._of_whole(number, held)
            return
        lengths, first = self.data.dataset.lengths, number * self.per_epoch
        blocks, several, at = np.arange(len(lengths)), len(lengths) > 1, held
        if self.settings.shuffle and several:
            blocks = np.random.default_rng([self.seed, number, *lengths]).permutation(blocks)
        for block in blocks.tolist():
            last = first - (-lengths[block] // self.batch)
            if at.steps < last:
                order = self.unshuffled[: lengths[block]]
                whole = self.batch >= len(order) and not self.masks.leaves  # then no order counts
                if self.settings.shuffle and not whole:
                    stream = [self.seed, number, *([block] if several else [])]
                    order = np.random.default_rng(stream).permutation(len(order))
                self._end = last, len(order)
                for done in self._of_block(block, order, at, first, halts):
                    yield done
                    at = done
                if at.failed is not None:
                    return
            first = last

    def _of_block(
        self, block: int, order: Array, held: Done, first: int, halts: Sequence[int]
    ) -> Iterator[Done]:
        """The steps of a block's samples, the first of which has that number."""
        columns, resident = self.data.block(block)
        if self.trainer is None:
            steps = self._one_by_one(columns, resident, order, held, first)
        else:
            steps = self._by_engine(self.trainer, resident, order, held, first, halts)
        before = sum(self.data.dataset.lengths[:block])
        for done in steps:
            yield done if done.failed is None else done._replace(failed=done.failed + before)

    def total(self, before: float, done: Done) -> float:
        """The sum of an epoch's losses, the last batch's by its share of a whole one's samples.

        They are added one after the other, however many come at once: the last bit is that of a
        run that was interrupted between two of them.
        """
        first, last = done.losses[:-1], float(done.losses[-1])
        end, samples = self._end
        if done.steps == end:
            last *= 1 - (-samples % self.batch) / self.batch
        if not len(first):
            return before + last
        return float(np.add.accumulate(np.concatenate(([before], first, [last])))[-1])

    def drawn(self, step: int, count: int) -> dict[str, Array]:
        """Masks of so many samples of a step; of more than it has, what masks are on average."""
        epoch, step = divmod(step, self.per_epoch)
        more = count > self.batch
        made = self.masks.expected if more else self.masks.stream(epoch, step * self.batch)
        return self.objective.layers.apart(made(count))

    def mean(self, total: float) -> float:
        """The mean over the samples of an epoch."""
        return total * (self.batch / self.samples)

    def _by_engine(
        self,
        trainer: Trainer,
        given: Mapping[str, Array],
        order: Array,
        held: Done,
        first: int,
        halts: Sequence[int],
    ) -> Iterator[Done]:
        steps, values, state = held.steps, held.values, held.state
        last, _ = self._end
        batch = self.batch
        # At first as many as are safe to guess, then by the clock.
        work = self.objective.program.operation_count * batch
        count = max(1, int(_SECONDS * _PER_SECOND / max(work, 1)))
        epoch, step = divmod(steps, self.per_epoch)
        draw = self.masks.stream(epoch, step * batch)
        while steps < last:
            coming = bisect_right(halts, steps)
            until = halts[coming] if coming < len(halts) else last
            most = max(1, self.masks.at_once // batch)
            count = min(count, until - steps, last - steps, most)
            part = order[(steps - first) * batch : (steps - first + count) * batch]
            clock, columns, places = time.perf_counter(), given, part
            if self.masks.leaves:  # in the order of the steps, as the masks are
                columns = {name: column[part] for name, column in given.items()}
                columns |= self.objective.layers.apart(draw(len(part)))
                places = np.arange(len(part))
            values, state, losses, failed = trainer.run_updates(
                SampleBatches(columns, places, batch),
                values,
                state,
                self.how.rates(steps, steps + count),
            )
            took = time.perf_counter() - clock
            if failed >= 0:
                bad = part[failed * batch :][:batch]
                yield Done(steps + failed, values, state, losses, bad)
                return
            steps += count
            yield Done(steps, values, state, losses)
            count = max(1, int(count * min(32.0, _SECONDS / max(took, 1e-6))))

    def _one_by_one(
        self,
        given: Mapping[str, Array],
        columns: Mapping[str, Array],
        order: Array,
        held: Done,
        first: int,
    ) -> Iterator[Done]:
        steps, values, state, running = held.steps, held.values, held.state, held.statistics
        epoch, step = divmod(steps, self.per_epoch)
        draw = self.masks.stream(epoch, step * self.batch)
        batch, samples = self.batch, len(order)
        # Of the whole dataset the order makes no difference. What lies in it is a part at a time.
        ordered = batch < samples or bool(self.masks.leaves) or self.single is not None
        bytes_each = sum(column.nbytes for column in given.values()) / samples
        several = batch * max(1, int(_IN_ORDER / (batch * max(bytes_each, 1))))
        begin = end = (steps - first) * batch
        rates = self.how.rates(steps, self._end[0]).tolist()
        for rate, at in zip(rates, range(end, samples, batch), strict=True):
            if ordered and at == end:
                begin, end = end, end + several
                columns = {name: column[order[begin:end]] for name, column in given.items()}
                if self.single is not None:
                    numbers = (np.asarray(column).tolist() for column in columns.values())
                    rows = list(zip(*numbers, strict=True)) or [()] * several
            if self.single is not None:
                loss, gradient = self.single(rows[at - begin], values)
            else:
                size, part = min(batch, samples - at), columns
                if ordered:
                    here = slice(at - begin, at - begin + size)
                    part = {name: column[here] for name, column in columns.items()}
                if self.masks.leaves:
                    masks = self.objective.layers.apart(draw(size))
                    part = {**part, **masks}
                if self.chosen is not None:
                    some = self.chosen.of_step(steps)
                    total, gradient = self.chosen.sums(part, values, size, some)
                else:
                    total, gradient = self.objective.sums(part, values, size)
                loss = total / size
                gradient /= 1 if self.summed else size
            if not (math.isfinite(loss) and np.isfinite(gradient).all()):
                yield Done(steps, values, state, [loss], order[at : at + batch], running)
                return
            if running:
                scalars = self.objective.scalars(values)
                running = self.objective.layers.moved(running, part, scalars, size)
            updated, state = stepped(self.rule, values, gradient, state, rate)
            if self.chosen is not None:
                updated = self.chosen.moved(values, updated, some)
            values = updated.astype(gradient.dtype, copy=False)
            steps += 1
            yield Done(steps, values, state, [loss], None, running)

    def _iterations(self, number: int, held: Done) -> tuple[int, Iterations]:
        """The steps of a method of its own, and the epoch that they began with."""
        if self._whole is None:
            resident = self.data.block(0)[1]

            def mean(values: Array) -> tuple[float, Array]:
                total, gradient = self.objective.sums(resident, values, self.samples)
                return total / self.samples, gradient / self.samples

            how, left = self.how, self.settings.epochs - number
            self._whole = number, Iterations(mean, how.rule, how.around, held.values, left)
        return self._whole

    def _of_whole(self, number: int, held: Done) -> Done:
        begun, found = self._iterations(number, held)
        loss, after = found.losses[number - begun], number - begun + 1
        self._end = number + 1, self.samples
        if math.isfinite(loss):
            return Done(number + 1, found.points[after], (), [loss])
        return Done(number, held.values, (), [loss], np.arange(self.samples))


def stepped(
    rule: Optimizer, values: Array, gradient: Array, state: State, rate: float
) -> tuple[Array, State]:
    """A step of a rule; the state's numbers as Python's: numpy's would make single double."""
    given = tuple(part if np.ndim(part) else float(part) for part in state)
    values, made = rule.update(values, gradient, given, rate)
    return values, tuple(map(np.asarray, made))
