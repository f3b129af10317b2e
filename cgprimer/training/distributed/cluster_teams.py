"""Teams whose workers are processes of a cluster, for protocols and for stages of one graph."""

from __future__ import annotations

import asyncio
import queue
import time
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from cgprimer.core.loss_expressions import LOSS
from cgprimer.training.distributed.cluster import Cluster
from cgprimer.training.distributed.layer_cuts import Stage
from cgprimer.training.distributed.pipeline import add_adjoints, split_into_micro_batches
from cgprimer.training.distributed.protocols import Arrival, Task
from cgprimer.training.distributed.simulator import SPAN_KINDS, Trace, continue_trace

Array = Any
_TASKS_AHEAD = 4  # tasks per worker among which a worker looks for one of its part of the data
_POLL_SECONDS = 0.2  # between two checks for Ctrl-C


class _SentTask(NamedTuple):
    """A task that was sent to a worker, together with the current parameters.

    Attributes:
        task: the samples.
        values, version: the parameters, and the number of updates before them.
        time: the time at which the task was sent.
    """

    task: Task
    values: Array
    version: int
    time: float


class _ClockedTeam:
    """Base class for teams on a cluster, with their clock, parameters and trace.

    Args:
        cluster: the workers.
        tasks: the tasks.
        earlier_record: the result of :meth:`record` in the run that is resumed.
        kinds: the kinds of spans.
    """

    def __init__(
        self,
        cluster: Cluster,
        tasks: Iterator[Task],
        earlier_record: Mapping[str, Any],
        kinds: Sequence[str],
    ) -> None:
        self.cluster, self.tasks = cluster, tasks
        self.trace: Trace = continue_trace(earlier_record, cluster.size, kinds)
        self._start_time = time.perf_counter() - float(earlier_record.get("clock", 0.0))

    @property
    def now(self) -> float:
        """The seconds since the start of the run, without pauses before it was resumed."""
        return time.perf_counter() - self._start_time

    def set_parameters(self, values: Array, version: int) -> None:
        """Set the parameters that are sent to workers from now on."""
        self._values, self._version = values, version

    def record(self) -> dict[str, Any]:
        """Return the trace of the workers' activities as a dict for JSON."""
        return {"spans": list(map(list, self.trace.spans)), "seconds": self.trace.seconds}


class ClusterTeam(_ClockedTeam):
    """A :class:`~cgprimer.training.distributed.protocols.Team` of processes on a cluster.

    A worker computes a dropped gradient to its end, and the result is discarded: the worker starts
    its next task late.

    Args:
        cluster: the workers, which compute gradients from parameters and a task.
        tasks: the tasks; workers stay idle when none is left.
        splits_data: whether each worker should prefer the tasks of its own part of the data.
        earlier_record: the result of :meth:`record` in the run that is resumed.
    """

    def __init__(
        self,
        cluster: Cluster,
        tasks: Iterator[Task],
        *,
        splits_data: bool = False,
        earlier_record: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        super().__init__(cluster, tasks, earlier_record, SPAN_KINDS)
        self.workers, self.splits_data = range(cluster.size), splits_data
        self._running: dict[int, _SentTask] = {}
        self._locks = [asyncio.Lock() for _ in self.workers]
        self._results: queue.Queue[tuple[int, _SentTask, Any]] = queue.Queue()
        self._unassigned_tasks: list[Task] = []

    def start_task(self, worker: int) -> None:
        """Send the parameters and the next task to a worker."""
        task = self._take_next_task(worker)
        if task is not None:
            sent = _SentTask(task, self._values, self._version, self.now)
            self._running[worker] = sent
            self.cluster.start(self._compute_gradient(worker, sent))

    def receive_gradient(self) -> Arrival:
        """Wait until the next gradient arrives, and return it; Ctrl-C ends the wait."""
        while True:
            try:
                worker, sent, result = self._results.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                continue
            if self._running.get(worker) is not sent:
                continue  # the task was dropped
            if isinstance(result, Exception):
                raise result
            self._running.pop(worker)
            (loss, gradient), seconds = result
            now, version = self.now, sent.version
            transfer = max(0.0, now - sent.time - seconds) / 2  # assumed equal in both directions
            self.trace.add_span(worker, "receive", sent.time, sent.time + transfer, version)
            self.trace.add_span(worker, "compute", sent.time + transfer, now - transfer, version)
            self.trace.add_span(worker, "send", now - transfer, now, version)
            return Arrival(worker, sent.task, version, loss, gradient, now)

    def drop_tasks(self) -> None:
        """Drop the running tasks: ignore the results of workers that are still computing."""
        for worker, sent in self._running.items():
            self.trace.add_span(worker, "dropped", sent.time, self.now, sent.version)
        self._running.clear()

    def _take_next_task(self, worker: int) -> Task | None:
        """Return the next task for a worker, preferably from its own part of the data."""
        most = _TASKS_AHEAD * len(self.workers) if self.splits_data else 1
        while True:
            for task in self._unassigned_tasks:
                if not self.splits_data or task.number % len(self.workers) == worker:
                    self._unassigned_tasks.remove(task)
                    return task
            task_limit_reached = len(self._unassigned_tasks) >= most
            further_task = None if task_limit_reached else next(self.tasks, None)
            if further_task is None:
                return self._unassigned_tasks.pop(0) if self._unassigned_tasks else None
            self._unassigned_tasks.append(further_task)

    async def _compute_gradient(self, worker: int, sent: _SentTask) -> None:
        """Compute a gradient on a worker and put it, or the error, into the queue of results."""
        async with self._locks[worker]:
            if self._running.get(worker) is not sent:
                return  # the task was dropped before it started

            def record_lost_process(worker: int, begin: float) -> None:
                """Record in the trace that the process of a worker was lost."""
                begin -= self._start_time
                self.trace.add_span(worker, "lost", begin, self.now, sent.version)

            result: Any
            try:
                result = await self.cluster.call(
                    worker, record_lost_process, "__call__", sent.values, sent.task
                )
            except Exception as error:
                result = error
            self._results.put((worker, sent, result))


class ClusterPipeline(_ClockedTeam):
    """A pipeline on a cluster: micro-batches pass through stages of a graph, one per worker.

    Values that cross a cut pass through the server. A stage receives its inputs again with the
    adjoints of its outputs, so its process may be replaced in between.

    Args:
        cluster: the workers, each of which has all stages
            (:class:`cgprimer.training.distributed.pipeline.StageRunner`).
        tasks: the tasks.
        stages: the stages.
        micro_batches: the number of micro-batches of an update.
        earlier_record: the result of :meth:`record` in the run that is resumed.
    """

    workers = range(1)

    def __init__(
        self,
        cluster: Cluster,
        tasks: Iterator[Task],
        stages: Sequence[Stage],
        micro_batches: int,
        *,
        earlier_record: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        super().__init__(cluster, tasks, earlier_record, ("forward", "backward", "lost"))
        self.stages, self.micro_batches = stages, micro_batches
        self._task: Task | None = None

    def start_task(self, worker: int) -> None:
        """Fetch the next task, whose gradient :meth:`receive_gradient` computes."""
        self._task = next(self.tasks, None)

    def drop_tasks(self) -> None:
        """Do nothing, because no task is running between two updates."""

    def receive_gradient(self) -> Arrival:
        """Run all micro-batches of a task forward, then backward, and return its gradient."""
        assert self._task is not None
        loss, gradient = self.cluster.wait(self._compute_gradient(self._task, self._values))
        return Arrival(0, self._task, self._version, loss, gradient, self.now)

    async def _compute_gradient(self, task: Task, values: Array) -> tuple[float, Array]:
        """Return the sums of loss and gradient over the samples of a task."""
        micro_batches = split_into_micro_batches(task, self.micro_batches)
        outputs: list[dict[str, Array]] = [{} for _ in micro_batches]
        adjoints: list[dict[str, Array]] = [{} for _ in micro_batches]
        stages = range(len(self.stages))

        async def run_stage(kind: str, method: str, stage: int, index: int, *more: Any) -> Any:
            """Run a stage forward or backward on a micro-batch."""

            def record_lost_process(worker: int, begin: float) -> None:
                """Record in the trace that the process of a worker was lost."""
                self.trace.add_span(worker, "lost", begin - self._start_time, self.now, index + 1)

            inputs = {name: outputs[index][name] for name in self.stages[stage].inputs}
            arguments = stage, values, micro_batches[index], inputs, *more
            result, seconds = await self.cluster.call(
                stage, record_lost_process, method, *arguments
            )
            self.trace.add_span(stage, kind, self.now - seconds, self.now, index + 1)
            return result

        async def run_forward(index: int) -> float:
            """Run all stages on a micro-batch and return the sum of its losses."""
            for stage in stages:
                outputs[index] |= await run_stage("forward", "run_forward", stage, index)
            return float(np.sum(outputs[index][LOSS]))

        async def run_backward(index: int) -> Array:
            """Run all stages backward on a micro-batch and return the sum of its gradient."""
            gradient: Any = 0.0
            for stage in reversed(stages):
                contributions, part = await run_stage(
                    "backward", "run_backward", stage, index, adjoints[index]
                )
                gradient = gradient + part
                add_adjoints(adjoints[index], contributions)
            return gradient

        indices = range(len(micro_batches))
        losses = await asyncio.gather(*map(run_forward, indices))
        return sum(losses), sum(await asyncio.gather(*map(run_backward, indices)))
