"""Training by several workers: a protocol determines which gradients are combined in an update.

Optimizers, schedules, constraints, epochs and checkpoints are those of a run without workers; only
the source of the gradients differs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cgprimer.errors import UsageError
from cgprimer.training.distributed.delays import parse_delays
from cgprimer.training.distributed.gradient_tasks import Gradients, create_gradients
from cgprimer.training.distributed.layer_stages import Stages, create_stages
from cgprimer.training.distributed.pipeline import SimulatedPipeline, SimulatedReplicas
from cgprimer.training.distributed.protocols import Arrival, Task, Team, UpdateGradients
from cgprimer.training.distributed.simulator import SimulatedTeam
from cgprimer.training.distributed.team_plan import plan_team
from cgprimer.training.epoch_strategy import EpochStrategy, Progress, update_parameters
from cgprimer.training.objective import Objective, ResidentData
from cgprimer.training.runs import TrainingRun
from cgprimer.training.update_plan import UpdatePlan
from cgprimer.training.worker_options import WorkerOptions

if TYPE_CHECKING:
    from cgprimer.training.distributed.cluster import Cluster

Array = Any
_RECORDED_UPDATES = 48  # the first updates, which are recorded with their gradients
_RECORDED_GRADIENTS = 16  # updates of more gradients are not recorded
_RECORDED_PARAMETERS = 8  # updates of more parameters are not recorded


class WorkerEpochs(EpochStrategy):
    """A training strategy that computes gradients with a team of workers.

    A task is the gradient of one batch. An update combines the gradients of as many tasks as the
    protocol says; at the end of an epoch tasks may have fewer samples, or none.

    Raises:
        UsageError: the graph has batchnorm.
    """

    def __init__(
        self, objective: Objective, data: ResidentData, plan: UpdatePlan, options: WorkerOptions
    ) -> None:
        super().__init__(objective, data, plan)
        if objective.layers.statistics:
            raise UsageError(
                "multiple workers cannot train a graph with batchnorm: each would have its own"
                " running statistics",
                hint="use one worker, or a graph without batchnorm",
            )
        self.options, self.task_size = options, plan.batch_size
        self.team_plan = plan_team(options, self.settings, self.block_lengths)
        self.splits_data = bool(options.cluster) and len(self.block_lengths) > 1
        self.order: dict[str, Any] = {
            "seed": self.settings.seed,
            "shuffle": self.settings.shuffle,
            "size": self.task_size,
            "parts": self.team_plan.workers if self.splits_data else 1,
        }
        self.gradients = Gradients(objective, data, **self.order)
        self.cluster: Cluster | None = None
        self.team: Team | None = None
        self._updates: UpdateGradients = iter(())
        self._stalenesses: Counter[int] = Counter()
        self._times: list[float] = []
        self._pending_tasks: dict[int, None] = {}  # if they outlive an update, in this order
        self._steps_apart, self._earlier_record = 1, dict[str, Any]()
        self._failed_task = Task(0, 0, 0, 0)
        self._latest_update: tuple[int, Sequence[Arrival]] = 0, ()
        self._first_updates: list[Any] = []
        self._loss_weight = 1.0

    def restore(self, run: TrainingRun) -> None:
        """Continue the worker record of a resumed run."""
        record = dict(run.team)
        self._steps_apart, self._earlier_record = run.steps_apart, record
        self._stalenesses.update({int(age): int(n) for age, n in record.get("staleness", [])})
        self._times = list(record.get("times", []))
        self._first_updates = list(record.get("first", []))

    def open(self) -> None:
        """Connect to the workers of a cluster and send them the graph and the samples."""
        if not self.options.cluster:
            return
        from cgprimer.training.distributed.cluster import Cluster

        objective = self.objective
        arguments = objective.graph, self.data.dataset, objective.arguments, self.order
        workers = self.team_plan.workers
        create: Callable[[], Any] = partial(create_gradients, *arguments)
        if self.options.place:
            workers = self.options.stages
            create = partial(create_stages, create, workers)
        self.cluster = Cluster(self.options.cluster, workers, create)

    def close(self) -> None:
        """Disconnect from the cluster, if the run uses one."""
        if self.cluster is not None:
            self.cluster.close()

    def train_epoch(
        self, epoch: int, progress: Progress, recorded_steps: Sequence[int] = ()
    ) -> Iterator[Progress]:
        """Train an epoch; workers may still be computing gradients when it ends."""
        updates, values, state, *_ = progress
        if self.team is None:
            self.team = self._create_team(updates, len(values))
            self.team.set_parameters(values, updates)
            self._updates = self.team_plan.gather_gradients(self.team)
        end_update = (epoch + 1) * self.updates_per_epoch
        for rate in self.plan.learning_rates(updates, end_update).tolist():
            # In the order of the tasks, so that sums do not depend on the order of arrival.
            arrivals = sorted(next(self._updates), key=lambda arrival: arrival.task.number)
            samples = sum(arrival.task.samples for arrival in arrivals)
            loss = sum(arrival.loss for arrival in arrivals) / samples
            divisor = 1 if self.settings.reduction == "sum" else samples
            gradient = sum(arrival.gradient for arrival in arrivals) / divisor
            if not (math.isfinite(loss) and np.isfinite(gradient).all()):
                failed_samples = self._find_failed_samples(arrivals)
                yield Progress(updates, values, state, [loss], failed_samples)
                return
            values, state = update_parameters(self.rule, values, gradient, state, rate)
            values = values.astype(gradient.dtype, copy=False)
            self._record_update(arrivals, updates, samples, values)
            updates += 1
            self.team.set_parameters(values, updates)
            yield Progress(updates, values, state, [loss])

    def add_losses(self, total: float, progress: Progress) -> float:
        """Add the loss of the latest update, times its number of samples, to the epoch's total."""
        return total + progress.losses[-1] * self._loss_weight

    def sample_masks(self, update: int, count: int) -> dict[str, Array]:
        """Return the dropout masks for the task whose gradient was not finite."""
        return self.gradients.sample_masks(self._failed_task)

    def worker_record(self, updates: int) -> dict[str, Any]:
        """Return the record of the workers, as saved in the file of a run.

        The keys: ``clock``, the elapsed seconds; ``times`` of the updates whose losses the run has;
        ``staleness``, pairs of a staleness in updates and the number of gradients with it;
        ``pending``, the tasks under way; ``first``, for the first updates time, parameters and
        gradients; and the record of the team: ``spans`` and ``seconds``
        (:class:`cgprimer.training.distributed.simulator.Trace`), ``drawn``.
        """
        if self.team is None:
            return self._earlier_record
        latest, arrivals = self._latest_update
        pending = {*self._pending_tasks}
        if latest > updates:  # interrupted: the latest update is lost, so its tasks are repeated
            pending |= {arrival.task.number for arrival in arrivals}
        return {
            "clock": self.team.now,
            "times": self._times[: -(-updates // self._steps_apart)],
            "staleness": sorted(map(list, self._stalenesses.items())),
            "pending": [] if self.team_plan.is_resumable else sorted(pending),
            "first": self._first_updates,
            **self.team.record(),
        }

    def _create_team(self, updates: int, parameters: int) -> Team:
        """Create the team that computes all gradients after a number of updates."""
        options, record, settings = self.options, self._earlier_record, self.settings
        workers = self.team_plan.workers
        pending = record.get("pending", [])
        tasks = self._generate_tasks(updates * self.plan.gradients_per_update, pending)
        if self.cluster is not None:
            from cgprimer.training.distributed.cluster_teams import ClusterPipeline, ClusterTeam

            if options.place:
                parts = Stages(self.gradients, self.cluster.size).parts
                count = options.micro_batches
                return ClusterPipeline(self.cluster, tasks, parts, count, earlier_record=record)
            return ClusterTeam(
                self.cluster, tasks, splits_data=self.splits_data, earlier_record=record
            )
        if options.place:
            return self._create_simulated_stages(tasks)
        delays = parse_delays(options.delays, workers)
        message_bytes = parameters * np.dtype(settings.dtype).itemsize
        return SimulatedTeam(
            workers,
            tasks,
            self.gradients,
            delays,
            settings.seed,
            message_bytes,
            earlier_record=record,
        )

    def _create_simulated_stages(self, tasks: Iterator[Task]) -> Team:
        """Create the simulated team for a graph that is divided into stages."""
        settings, options, record = self.settings, self.options, self._earlier_record
        replicas, count = self.team_plan.workers, options.stages
        stages = Stages(self.gradients, count)
        delays = parse_delays(options.delays, count * replicas)
        number_bytes = np.dtype(settings.dtype).itemsize

        def create_pipeline(
            tasks: Iterator[Task], first_worker: int, record: Mapping[str, Any]
        ) -> SimulatedPipeline:
            """Create the simulated pipeline of one replica."""
            return SimulatedPipeline(
                tasks,
                stages,
                delays,
                settings.seed,
                options.micro_batches,
                number_bytes,
                earlier_record=record,
                first_worker=first_worker,
            )

        if replicas == 1:
            return create_pipeline(tasks, 0, record)
        return SimulatedReplicas(replicas, tasks, create_pipeline, count, earlier_record=record)

    def _generate_tasks(self, first: int, pending: Sequence[int]) -> Iterator[Task]:
        """Yield the interrupted tasks of a resumed run, then all remaining tasks of the run."""
        tasks_per_epoch = self.updates_per_epoch * self.plan.gradients_per_update
        last = self.settings.epochs * tasks_per_epoch
        for number in (*pending, *range(first + len(pending), last)):
            epoch, index = divmod(number, tasks_per_epoch)
            start = min(index * self.task_size, self.samples)
            if not self.team_plan.is_resumable:
                self._pending_tasks[number] = None
            yield Task(number, epoch, start, min(start + self.task_size, self.samples))

    def _record_update(
        self, arrivals: Sequence[Arrival], updates: int, samples: int, values: Array
    ) -> None:
        """Record the time of an update, its gradients and their staleness."""
        self._latest_update = updates + 1, arrivals
        time = max(arrival.time for arrival in arrivals)
        few = len(arrivals) <= _RECORDED_GRADIENTS and len(values) <= _RECORDED_PARAMETERS
        if updates == len(self._first_updates) < _RECORDED_UPDATES and few:
            gradients = [
                [a.worker, a.version, (a.gradient / max(1, a.task.samples)).tolist()]
                for a in sorted(arrivals, key=lambda arrival: arrival.time)
            ]
            self._first_updates.append([time, values.tolist(), gradients])
        for arrival in arrivals:
            self._stalenesses[updates - arrival.version] += 1
            self._pending_tasks.pop(arrival.task.number, None)
        if updates % self._steps_apart == 0:
            self._times.append(time)
        if self.team_plan.is_resumable:  # samples of dropped gradients count as well
            first = updates % self.updates_per_epoch * self.batch_size
            samples = min(first + self.batch_size, self.samples) - first
        self._loss_weight = samples / self.batch_size

    def _find_failed_samples(self, arrivals: Sequence[Arrival]) -> Array:
        """Return the indices of the samples of the first gradient that is not finite."""
        self._failed_task = next(
            (
                arrival.task
                for arrival in arrivals
                if not (math.isfinite(arrival.loss) and np.isfinite(arrival.gradient).all())
            ),
            arrivals[0].task,
        )
        return self.gradients.sample_indices(self._failed_task)
