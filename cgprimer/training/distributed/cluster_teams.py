"""Teams whose workers are processes of a cluster: those of protocols, and stages of one graph."""

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
from cgprimer.training.distributed.pipeline import micro_batches
from cgprimer.training.distributed.protocols import Arrival, Task
from cgprimer.training.distributed.simulator import KINDS, Trace, begun_trace

Array = Any
_AHEAD = 4  # tasks for each worker among which it looks for one of its own part


class _Sent(NamedTuple):
    """What a worker is at."""

    task: Task
    values: Array
    version: int
    when: float


class _Clocked:
    """What both have: a clock, the server's parameters, and a trace of who did what."""

    def __init__(
        self,
        cluster: Cluster,
        tasks: Iterator[Task],
        before: Mapping[str, Any],
        kinds: Sequence[str],
    ) -> None:
        self.cluster, self.tasks = cluster, tasks
        self.trace: Trace = begun_trace(before, cluster.size, kinds)
        self._begun = time.perf_counter() - float(before.get("clock", 0.0))

    @property
    def now(self) -> float:
        """Seconds since the run began, without those between two of its parts."""
        return time.perf_counter() - self._begun

    def at(self, values: Array, version: int) -> None:
        """Tell the server's parameters."""
        self._values, self._version = values, version

    def told(self) -> dict[str, Any]:
        """What the workers did, as plain data."""
        return {"spans": list(map(list, self.trace.spans)), "seconds": self.trace.seconds}


class ClusterTeam(_Clocked):
    """A team on a cluster (:class:`cgprimer.training.distributed.protocols.Team`).

    A gradient that is dropped is computed to its end, and thrown away: its worker is late for the
    next one.

    Args:
        cluster: whose workers give gradients, when they are called with parameters and a task.
        tasks: what there is to do; a worker that is sent to when nothing is left does nothing.
        parts: whether the samples of every so manieth task are in a part of the data of its own,
            which one worker alone should read.
        before: what :meth:`told` said, of a run that is taken up.
    """

    def __init__(
        self,
        cluster: Cluster,
        tasks: Iterator[Task],
        *,
        parts: bool = False,
        before: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        super().__init__(cluster, tasks, before, KINDS)
        self.workers, self.parts = range(cluster.size), parts
        self._at: dict[int, _Sent] = {}
        self._locks = [asyncio.Lock() for _ in self.workers]
        self._arrived: queue.Queue[tuple[int, _Sent, Any]] = queue.Queue()
        self._next: list[Task] = []  # that nobody has yet

    def send(self, worker: int) -> None:
        """Give a worker the parameters and the next task."""
        task = self._task_for(worker)
        if task is not None:
            sent = _Sent(task, self._values, self._version, self.now)
            self._at[worker] = sent
            self.cluster.start(self._compute(worker, sent))

    def receive(self) -> Arrival:
        """Wait for the next gradient; Ctrl-C ends that."""
        while True:
            try:
                worker, sent, found = self._arrived.get(timeout=0.2)
            except queue.Empty:
                continue
            if self._at.get(worker) is not sent:
                continue  # it was dropped
            if isinstance(found, Exception):
                raise found
            self._at.pop(worker)
            (loss, gradient), took = found
            now, version = self.now, sent.version
            way = max(0.0, now - sent.when - took) / 2  # there and back, as far as is known
            self.trace.add(worker, "receive", sent.when, sent.when + way, version)
            self.trace.add(worker, "compute", sent.when + way, now - way, version)
            self.trace.add(worker, "send", now - way, now, version)
            return Arrival(worker, sent.task, version, loss, gradient, now)

    def drop(self) -> None:
        """Whoever is still computing is not waited for."""
        for worker, sent in self._at.items():
            self.trace.add(worker, "dropped", sent.when, self.now, sent.version)
        self._at.clear()

    def _task_for(self, worker: int) -> Task | None:
        """The next task; of one's own part if there is one among the next few."""
        most = _AHEAD * len(self.workers) if self.parts else 1
        while True:
            for task in self._next:
                if not self.parts or task.number % len(self.workers) == worker:
                    self._next.remove(task)
                    return task
            more = next(self.tasks, None) if len(self._next) < most else None
            if more is None:
                return self._next.pop(0) if self._next else None
            self._next.append(more)

    async def _compute(self, worker: int, sent: _Sent) -> None:
        async with self._locks[worker]:
            if self._at.get(worker) is not sent:
                return  # it was dropped before it began

            def lost(worker: int, begun: float) -> None:
                self.trace.add(worker, "lost", begun - self._begun, self.now, sent.version)

            found: Any
            try:
                found = await self.cluster.ask(worker, lost, "__call__", sent.values, sent.task)
            except Exception as error:
                found = error
            self._arrived.put((worker, sent, found))


class ClusterPipeline(_Clocked):
    """Stages of a graph, each on a worker: micro-batches go forward, their adjoints back.

    What crosses a cut goes by way of the server. A stage is given again, when the adjoints come,
    what it was given before: so its process may die in between.

    Args:
        cluster: its workers are all stages
            (:class:`cgprimer.training.distributed.pipeline.Placed`).
        tasks: what there is to do.
        parts: the stages.
        count: micro-batches of a step.
        before: what :meth:`told` said, of a run that is taken up.
    """

    workers = range(1)

    def __init__(
        self,
        cluster: Cluster,
        tasks: Iterator[Task],
        parts: Sequence[Stage],
        count: int,
        *,
        before: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        super().__init__(cluster, tasks, before, ("forward", "backward", "lost"))
        self.parts, self.count = parts, count
        self._task: Task | None = None

    def send(self, worker: int) -> None:
        """Begin the next batch."""
        self._task = next(self.tasks, None)

    def drop(self) -> None:
        """There is no straggler."""

    def receive(self) -> Arrival:
        """All micro-batches forward, and their adjoints back."""
        assert self._task is not None
        loss, gradient = self.cluster.wait(self._step(self._task, self._values))
        return Arrival(0, self._task, self._version, loss, gradient, self.now)

    async def _step(self, task: Task, values: Array) -> tuple[float, Array]:
        micro = micro_batches(task, self.count)
        acts: list[dict[str, Array]] = [{} for _ in micro]
        bars: list[dict[str, Array]] = [{} for _ in micro]
        stages = range(len(self.parts))

        async def stage(kind: str, method: str, k: int, one: int, *given: Any) -> Any:
            """A stage's part of a micro-batch."""

            def lost(worker: int, begun: float) -> None:
                self.trace.add(worker, "lost", begun - self._begun, self.now, one + 1)

            taken = {name: acts[one][name] for name in self.parts[k].takes}
            way = k, values, micro[one], taken, *given
            found, took = await self.cluster.ask(k, lost, method, *way)
            self.trace.add(k, kind, self.now - took, self.now, one + 1)
            return found

        async def forward(one: int) -> float:
            for k in stages:
                acts[one] |= await stage("forward", "forward", k, one)
            return float(np.sum(acts[one][LOSS]))

        async def back(one: int) -> Array:
            gradient: Any = 0.0
            for k in reversed(stages):
                adjoints, own = await stage("backward", "back", k, one, bars[one])
                gradient = gradient + own
                for name, bar in adjoints.items():
                    bars[one][name] = bars[one][name] + bar if name in bars[one] else bar
            return gradient

        losses = await asyncio.gather(*map(forward, range(len(micro))))
        return sum(losses), sum(await asyncio.gather(*map(back, range(len(micro)))))
