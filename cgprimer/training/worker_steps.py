"""Steps of training by many workers: a protocol says which gradients make a step.

The optimizers, schedules and constraints are those of one worker, and so are epochs, checkpoints
and all that is told of a run: only where the gradients come from differs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cgprimer.errors import UsageError
from cgprimer.training.distributed.delays import delays_of
from cgprimer.training.distributed.layer_cuts import stages_of
from cgprimer.training.distributed.pipeline import SimulatedPipeline, SimulatedReplicas
from cgprimer.training.distributed.protocols import Arrival, Task, Team
from cgprimer.training.distributed.protocols import Steps as Protocol
from cgprimer.training.distributed.simulator import SimulatedTeam
from cgprimer.training.gradient_tasks import Gradients, gradients_of
from cgprimer.training.layer_stages import Stages, stages_on
from cgprimer.training.runs import TrainingRun
from cgprimer.training.training_steps import Done, Steps, stepped

if TYPE_CHECKING:
    from cgprimer.training.distributed.cluster import Cluster

Array = Any
_FIRST, _EACH, _NUMBERS = 48, 16, 8  # steps that are kept whole, gradients of each, parameters


class TeamSteps(Steps):
    """Steps of a team.

    Tasks have `batch` samples each, in the order of an epoch; a step of a protocol that takes so
    many together has as many tasks, of which the last ones of an epoch may have fewer or none.
    """

    def __post_init__(self) -> None:
        self.one_by_one = True
        super().__post_init__()
        if self.objective.layers.statistics:
            what = "each of many workers would have statistics of its own of a batchnorm"
            raise UsageError(what, hint="one worker, or a graph without batchnorm")
        plan = self.how.plan
        assert plan is not None
        self.plan, self.size = plan, self.batch
        self.batch *= plan.together  # of all samples that a step has
        settings = self.settings
        self.parts = bool(settings.cluster) and len(self.data.dataset.lengths) > 1
        self.order: dict[str, Any] = {
            "seed": self.seed, "shuffle": settings.shuffle, "size": self.size,
            "parts": plan.workers if self.parts else 1,
        }  # fmt: skip
        self.gradients = Gradients(self.objective, self.data, **self.order)
        self.cluster: Cluster | None = None
        self.stale: Counter[int] = Counter()
        self.times: list[float] = []
        self.pending: dict[int, None] = {}  # tasks under way, if they outlive a step
        self.apart, self._before, self._failed = 1, dict[str, Any](), Task(0, 0, 0, 0)
        self.team: Team | None = None
        self.made: tuple[int, Sequence[Arrival]] = 0, ()  # the last step
        self.first: list[Any] = []  # what the first steps were made of

    def taken_up(self, run: TrainingRun) -> None:
        """Go on with what a run has recorded of its workers."""
        self.apart, self._before = run.steps_apart, dict(run.team)
        self.stale.update({int(k): int(n) for k, n in self._before.get("staleness", [])})
        self.times = list(self._before.get("times", []))
        self.first = list(self._before.get("first", []))

    def begin(self) -> None:
        """Meet the workers of a cluster, who get the graph and the samples."""
        settings, objective, place = self.settings, self.objective, self.settings.place
        if settings.cluster:
            from cgprimer.training.distributed.cluster import Cluster

            given = objective.graph, self.data.dataset, objective.arguments, self.order
            gradients, workers = partial(gradients_of, *given), self.plan.workers
            make: Any = gradients
            if place:
                workers = stages_of(place)
                make = partial(stages_on, gradients, workers)
            self.cluster = Cluster(settings.cluster, workers, make)

    def close(self) -> None:
        """Let the workers of a cluster go."""
        if self.cluster is not None:
            self.cluster.close()

    def epoch(self, number: int, held: Done, halts: Sequence[int] = ()) -> Iterator[Done]:
        """The steps of an epoch; gradients may be on their way over its end."""
        values, state, steps = held.values, held.state, held.steps
        if self.team is None:
            self.team = self._team(steps, len(values))
            self.team.at(values, steps)
            self.going: Protocol = self.plan.steps(self.team)
        last = (number + 1) * self.per_epoch
        for rate in self.how.rates(steps, last).tolist():
            # In the order of the tasks: then sums do not depend on who was first.
            arrived = sorted(next(self.going), key=lambda one: one.task.number)
            samples = sum(one.task.samples for one in arrived)
            loss = sum(one.loss for one in arrived) / samples
            gradient = sum(one.gradient for one in arrived) / (1 if self.summed else samples)
            if not (math.isfinite(loss) and np.isfinite(gradient).all()):
                yield self._not_finite(arrived, Done(steps, values, state, [loss]))
                return
            values, state = stepped(self.rule, values, gradient, state, rate)
            values = values.astype(gradient.dtype, copy=False)
            self._note(arrived, steps, samples, values)
            steps += 1
            self.team.at(values, steps)
            yield Done(steps, values, state, [loss])

    def total(self, before: float, done: Done) -> float:
        """The sum of an epoch's losses, each by its share of a whole step's samples."""
        return before + done.losses[-1] * self._share

    def drawn(self, step: int, count: int) -> dict[str, Array]:
        """Masks of the task that was not finite."""
        return self.gradients.drawn(self._failed)

    def told(self, steps: int) -> dict[str, Any]:
        """What is known of the workers, as a run's file has it.

        The keys: ``clock``, the seconds so far; ``times`` of the steps whose losses the run has;
        ``staleness``, pairs of an age in steps and of how many gradients had it; ``pending``, the
        tasks that were under way; ``first``, of the first steps time, parameters and gradients;
        and what the team tells: ``spans`` and ``seconds``
        (:class:`cgprimer.training.distributed.simulator.Trace`), ``drawn``.
        """
        if self.team is None:
            return self._before
        made, arrived = self.made
        pending = {*self.pending, *(one.task.number for one in arrived if made > steps)}
        return {
            "clock": self.team.now,
            "times": self.times[: -(-steps // self.apart)],  # Ctrl-C may have cut off the last
            "staleness": sorted(map(list, self.stale.items())),
            "pending": [] if self.plan.resumes else sorted(pending),
            "first": self.first,
            **self.team.told(),
        }

    def _team(self, steps: int, numbers: int) -> Team:
        settings, before = self.settings, self._before
        tasks = self._tasks(steps * self.plan.together, before.get("pending", []))
        size = np.dtype(settings.dtype).itemsize
        if self.cluster is not None:
            from cgprimer.training.distributed.cluster_teams import ClusterPipeline, ClusterTeam

            if settings.place:
                parts = Stages(self.gradients, self.cluster.size).parts
                count = settings.micro_batches
                return ClusterPipeline(self.cluster, tasks, parts, count, before=before)
            return ClusterTeam(self.cluster, tasks, parts=self.parts, before=before)
        if settings.place:
            stages = Stages(self.gradients, count := stages_of(settings.place))
            delays = delays_of(settings.delays, count * self.plan.workers)
            way = settings.seed, settings.micro_batches, size

            def pipeline(part: Iterator[Task], first: int, of: Any) -> SimulatedPipeline:
                return SimulatedPipeline(part, stages, delays, *way, before=of, first=first)

            if self.plan.workers == 1:
                return pipeline(tasks, 0, before)
            return SimulatedReplicas(self.plan.workers, tasks, pipeline, count, before=before)
        workers = self.plan.workers
        delays, size = delays_of(settings.delays, workers), numbers * size
        gradients, seed = self.gradients, settings.seed
        return SimulatedTeam(workers, tasks, gradients, delays, seed, size, before=before)

    def _tasks(self, first: int, pending: Sequence[int]) -> Iterator[Task]:
        """Tasks to the end of the run, those first that were under way when it ended before."""
        per_epoch = self.per_epoch * self.plan.together
        last = self.settings.epochs * per_epoch
        for number in (*pending, *range(first + len(pending), last)):
            epoch, place = divmod(number, per_epoch)
            start = min(place * self.size, self.samples)
            if not self.plan.resumes:
                self.pending[number] = None
            yield Task(number, epoch, start, min(start + self.size, self.samples))

    def _note(self, arrived: Sequence[Arrival], steps: int, samples: int, values: Array) -> None:
        """Take down how old the gradients of a step were, when it was made, and of what."""
        self.made = steps + 1, arrived
        if steps == len(self.first) < _FIRST and len(arrived) <= _EACH and len(values) <= _NUMBERS:
            gradients = [
                [one.worker, one.version, (one.gradient / max(1, one.task.samples)).tolist()]
                for one in sorted(arrived, key=lambda one: one.time)
            ]
            self.first.append([max(one.time for one in arrived), values.tolist(), gradients])
        for one in arrived:
            self.stale[steps - one.version] += 1
            self.pending.pop(one.task.number, None)
        if steps % self.apart == 0:
            self.times.append(max(one.time for one in arrived))
        if self.plan.resumes:  # what is dropped counts as well
            begin = steps % self.per_epoch * self.batch
            samples = min(begin + self.batch, self.samples) - begin
        self._share = samples / self.batch

    def _not_finite(self, arrived: Sequence[Arrival], done: Done) -> Done:
        """The samples of the first gradient that is not."""
        bad = next(
            (a for a in arrived if not (math.isfinite(a.loss) and np.isfinite(a.gradient).all())),
            arrived[0],
        )
        self._failed = bad.task
        return done._replace(failed=self.gradients.chosen(bad.task))
