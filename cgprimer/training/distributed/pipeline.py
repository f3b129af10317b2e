"""Layers on several workers, on a virtual clock: micro-batches go forward, their adjoints back.

All micro-batches of a step go through all stages forward, then back; a stage takes them in their
order. While the first one is on its way, later stages have nothing to do, and so it is at the end:
the bubble. Of p equal stages and m micro-batches it is (p - 1)/(m + p - 1) of the time.

The model: the whole batch takes one worker what the delays say; a stage has its share of the
operations, a third of that forward and two thirds back; what crosses a cut takes its bytes.

Source: Huang et al. 2019, "GPipe: efficient training of giant neural networks", section 2.3.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from math import prod
from types import MappingProxyType
from typing import Any
from typing import Protocol as Interface

from cgprimer.errors import UsageError
from cgprimer.expressions import Shape
from cgprimer.training.distributed.delays import Delays
from cgprimer.training.distributed.layer_cuts import Stage
from cgprimer.training.distributed.protocols import Arrival, Task
from cgprimer.training.distributed.simulator import Trace, begun_trace

Array = Any
Inputs = Mapping[str, Array]
_SHARES = {"forward": 1 / 3, "backward": 2 / 3}  # of a gradient's operations, about


class Placed(Interface):
    """Stages of a graph, run in any process.

    See :class:`cgprimer.training.distributed.layer_stages.Stages`.
    """

    parts: Sequence[Stage]

    def forward(self, stage: int, values: Array, task: Task, taken: Inputs) -> dict[str, Array]:
        """What a stage gives for a task's samples."""

    def back(
        self, stage: int, values: Array, task: Task, taken: Inputs, adjoints: Inputs
    ) -> tuple[dict[str, Array], Array]:
        """The adjoints of what a stage takes, and the sum of the gradient."""

    def loss(self, outputs: Inputs) -> float:
        """The sum of the losses that the last stage gives."""


def micro_batches(task: Task, count: int) -> list[Task]:
    """A task in so many parts, as even as can be; those without samples are left out.

    >>> [(one.start, one.stop) for one in micro_batches(Task(0, 0, 10, 20), 3)]
    [(10, 13), (13, 16), (16, 20)]
    """
    ends = [task.start + task.samples * k // count for k in range(count + 1)]
    parts = (task._replace(start=a, stop=b) for a, b in pairwise(ends))
    return [part for part in parts if part.samples]


class SimulatedPipeline:
    """A team whose only gradient at a time is computed by all stages together.

    Args:
        tasks: what there is to do.
        placed: the stages.
        delays: how long a whole batch takes; each stage's own, with its share of the work.
        seed: of the delays.
        count: micro-batches of a step.
        size: bytes of a number.
        before: what :meth:`told` said, of a run that is taken up.
        first: the number of the first stage's worker, for its delays.

    Raises:
        UsageError: a worker dies, and nobody else has its layers.
    """

    workers = range(1)

    def __init__(
        self,
        tasks: Iterator[Task],
        placed: Placed,
        delays: Delays,
        seed: int,
        count: int,
        size: int,
        *,
        before: Mapping[str, Any] = MappingProxyType({}),
        first: int = 0,
    ) -> None:
        if delays.away:
            what = "of a worker that dies nobody else has the layers"
            raise UsageError(what, hint="delays without dies, or --workers without --place")
        stages = len(placed.parts)
        self.tasks, self.placed, self.count = tasks, placed, count
        self.now, self.transfer = float(before.get("clock", 0.0)), delays.network * size
        self.trace: Trace = begun_trace(before, stages, tuple(_SHARES))
        self._drawn = int(before.get("drawn", 0))
        self._delays = [
            islice(delays.of_worker(first + k, seed), self._drawn, None) for k in range(stages)
        ]
        self._task: Task | None = None

    def at(self, values: Array, version: int) -> None:
        """Tell the parameters, of which each stage keeps its own."""
        self._values, self._version = values, version

    def send(self, worker: int) -> None:
        """Begin the next batch."""
        self._task = next(self.tasks, None)

    def drop(self) -> None:
        """There is no straggler."""

    def told(self) -> dict[str, Any]:
        """What the stages did, as plain data."""
        spans = list(map(list, self.trace.spans))
        return {"spans": spans, "seconds": self.trace.seconds, "drawn": self._drawn}

    def receive(self) -> Arrival:
        """All micro-batches forward, and their adjoints back."""
        assert self._task is not None
        parts, placed, task = self.placed.parts, self.placed, self._task
        micro, values = micro_batches(task, self.count), self._values
        acts: list[dict[str, Array]] = [{} for _ in micro]
        bars: list[dict[str, Array]] = [{} for _ in micro]
        free, there = [self.now] * len(parts), [self.now] * len(micro)
        takes = [next(stream) for stream in self._delays]
        self._drawn += 1
        gradient: Any = 0.0

        def step(kind: str, k: int, one: int, crossing: Mapping[str, Shape]) -> None:
            """A stage's part of a micro-batch, on the clock."""
            share = micro[one].samples / task.samples * parts[k].work * _SHARES[kind]
            begin = max(free[k], there[one])
            free[k] = begin + takes[k] * share
            self.trace.add(k, kind, begin, free[k], one + 1)
            numbers = micro[one].samples * sum(prod(shape) for shape in crossing.values())
            there[one] = free[k] + numbers * self.transfer

        for k, part in enumerate(parts):
            for one, samples in enumerate(micro):
                taken = {name: acts[one][name] for name in part.takes}
                acts[one] |= placed.forward(k, values, samples, taken)
                step("forward", k, one, part.gives)
        for k in reversed(range(len(parts))):
            for one, samples in enumerate(micro):
                taken = {name: acts[one][name] for name in parts[k].takes}
                adjoints, own = placed.back(k, values, samples, taken, bars[one])
                gradient = gradient + own
                for name, bar in adjoints.items():
                    bars[one][name] = bars[one][name] + bar if name in bars[one] else bar
                step("backward", k, one, parts[k].takes)
        self.now = max(free)
        loss = sum(map(placed.loss, acts))
        return Arrival(0, task, self._version, loss, gradient, self.now)


class SimulatedReplicas:
    """Data and model parallelism together: several pipelines, each with all layers of the graph.

    A replica is for a protocol what a worker is: it computes the gradient of a task at the
    parameters of the moment in which it began. Its stages are workers with numbers in a row.

    Args:
        count: the number of replicas.
        tasks: what there is to do.
        pipeline: makes the pipeline of a replica from its tasks, its first worker's number and what
            :meth:`told` said of it.
        stages: workers of a replica.
        before: what :meth:`told` said, of a run that is taken up.
    """

    def __init__(
        self,
        count: int,
        tasks: Iterator[Task],
        pipeline: Callable[[Iterator[Task], int, Mapping[str, Any]], SimulatedPipeline],
        stages: int,
        *,
        before: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.workers, self.tasks, self.stages = range(count), tasks, stages
        self.now = float(before.get("clock", 0.0))
        self._pipelines = [
            pipeline(iter(()), k * stages, _of_replica(before, k, stages)) for k in self.workers
        ]
        self._arrivals: list[tuple[float, int, Arrival]] = []
        self._ticket = 0

    def at(self, values: Array, version: int) -> None:
        """Tell the server's parameters."""
        for pipeline in self._pipelines:
            pipeline.at(values, version)

    def send(self, worker: int) -> None:
        """Begin the next task on a replica."""
        task = next(self.tasks, None)
        if task is None:
            return
        pipeline = self._pipelines[worker]
        pipeline.tasks, pipeline.now = iter((task,)), self.now
        pipeline.send(0)
        arrival = pipeline.receive()._replace(worker=worker)
        self._ticket += 1
        heapq.heappush(self._arrivals, (arrival.time, self._ticket, arrival))

    def receive(self) -> Arrival:
        """Go on to the next gradient that arrives."""
        self.now, _, arrival = heapq.heappop(self._arrivals)
        return arrival

    def drop(self) -> None:
        """Stop nothing: protocols that drop gradients are refused for replicas."""

    def told(self) -> dict[str, Any]:
        """What the stages of all replicas did, as plain data."""
        parts = [pipeline.told() for pipeline in self._pipelines]
        spans = [
            [worker + k * self.stages, *rest]
            for k, part in enumerate(parts)
            for worker, *rest in part["spans"]
        ]
        spans.sort(key=lambda span: float(span[3]))
        seconds = {kind: [s for part in parts for s in part["seconds"][kind]] for kind in _SHARES}
        drawn = [part["drawn"] for part in parts for _ in range(self.stages)]
        return {"spans": spans, "seconds": seconds, "drawn": drawn}


def _of_replica(before: Mapping[str, Any], replica: int, stages: int) -> dict[str, Any]:
    """Return what is known of one replica's stages."""
    if not before:
        return {}
    first = replica * stages
    own = range(first, first + stages)
    return {
        "clock": before.get("clock", 0.0),
        "spans": [[w - first, *rest] for w, *rest in before.get("spans", []) if w in own],
        "seconds": {kind: list(s[first : own.stop]) for kind, s in before["seconds"].items()},
        "drawn": before["drawn"][first],
    }
