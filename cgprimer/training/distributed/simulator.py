"""Workers on a virtual clock: what would arrive when, and gradients that are really computed.

A queue of events by time, and by the order of their making where times are equal: the same seed
gives the same trace. Gradients are computed when they arrive, at the parameters of the moment in
which their worker began; what is dropped is never computed.

The model: a task takes its worker what its delays say, however many samples it has. Parameters
reach a worker, and gradients the server, one after the other through the server's line; a step
takes no time. A worker that dies loses what it is computing, and begins it anew when it returns, at
the parameters of then.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import Any, NamedTuple

from cgprimer.training.distributed.delays import Delays
from cgprimer.training.distributed.protocols import Arrival, Task

Array = Any
Compute = Callable[[Array, Task], tuple[float, Array]]  # sums of loss and gradient
KINDS = ("receive", "compute", "send", "dropped", "lost", "away")
MOST_SPANS = 5_000  # of a trace


class Span(NamedTuple):
    """What a worker did from one time to another; in between it waits."""

    worker: int
    kind: str  # of KINDS
    begin: float
    end: float
    version: int  # of the parameters that it is about; of a stage the micro-batch, from 1


@dataclass
class Trace:
    """What workers did: the first spans, and the seconds of each kind.

    Attributes:
        spans: of all workers, as they ended.
        seconds: kind to seconds of each worker.
    """

    spans: list[Span] = field(default_factory=list)
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def add(self, worker: int, kind: str, begin: float, end: float, version: int) -> None:
        """Take down what a worker did."""
        if end > begin:
            self.seconds[kind][worker] += end - begin
            if len(self.spans) < MOST_SPANS:
                self.spans.append(Span(worker, kind, begin, end, version))


def begun_trace(before: Mapping[str, Any], workers: int, kinds: Sequence[str]) -> Trace:
    """A trace that goes on with what a run has told."""
    idle = {kind: [0.0] * workers for kind in kinds}
    spans = [Span(*one) for one in before.get("spans", [])]
    return Trace(spans, idle | deepcopy(before.get("seconds", {})))


class _Work(NamedTuple):
    """What a worker is at."""

    task: Task
    values: Array
    version: int
    sent: float
    begun: float
    ticket: int
    away: tuple[float, float] | None  # when it dies at it, and returns
    done: float | None = None  # when it was computed: it is on its way back


class SimulatedTeam:
    """A team on a virtual clock (:class:`cgprimer.training.distributed.protocols.Team`).

    Args:
        workers: how many.
        tasks: what there is to do; a worker that is sent to when nothing is left does nothing.
        compute: parameters and task to the sums of loss and gradient.
        delays: how long everything takes.
        seed: of the delays.
        size: bytes of the parameters, and of a gradient.
        before: what :meth:`told` said, of a run that is taken up.

    >>> tasks = (Task(k, 0, k, k + 1) for k in range(3))
    >>> team = SimulatedTeam(2, tasks, lambda v, t: (0.0, v), Delays(each=(1.0, 5.0)), 0, 8)
    >>> team.at(0.0, 0)
    >>> team.send(0); team.send(1); first = team.receive(); team.send(0)
    >>> first.time, team.receive().time, team.receive().worker
    (1.0, 2.0, 1)
    """

    def __init__(
        self,
        workers: int,
        tasks: Iterator[Task],
        compute: Compute,
        delays: Delays,
        seed: int,
        size: int,
        *,
        before: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.workers, self.tasks, self.compute = range(workers), tasks, compute
        self.now, self.transfer = float(before.get("clock", 0.0)), delays.network * size
        self.trace = begun_trace(before, workers, KINDS)
        self._delays = [delays.of_worker(worker, seed) for worker in self.workers]
        self._drawn = list(before.get("drawn", [0] * workers))
        for stream, drawn in zip(self._delays, self._drawn, strict=True):
            next(islice(stream, drawn, drawn), None)
        self._away = [delays.away_of(worker) for worker in self.workers]
        self._work: dict[int, _Work] = {}
        self._events: list[tuple[float, int, int]] = []  # time, ticket, worker
        self._ticket = 0
        self._line = [self.now, self.now]  # when the server's line is free, each way

    def at(self, values: Array, version: int) -> None:
        """Tell the server's parameters."""
        self._server = values, version

    def send(self, worker: int) -> None:
        """Give a worker the parameters and the next task."""
        task = next(self.tasks, None)
        if task is not None:
            self._begin(worker, task, self.now)

    def receive(self) -> Arrival:
        """Go on to the next gradient that arrives."""
        while True:
            when, ticket, worker = heapq.heappop(self._events)
            work = self._work.get(worker)
            if work is None or work.ticket != ticket:
                continue  # it was dropped
            if work.away:
                self._told(worker, work, "compute", when)
                self._begin(worker, work.task, when)
                continue
            if work.done is None:
                self._work[worker] = work._replace(done=when)
                heapq.heappush(self._events, (self._through_line(1, when), ticket, worker))
                continue
            del self._work[worker]
            self.now = when
            self._told(worker, work, "compute", work.done)
            self.trace.add(worker, "send", work.done, when, work.version)
            loss, gradient = self.compute(work.values, work.task)
            return Arrival(worker, work.task, work.version, loss, gradient, self.now)

    def drop(self) -> None:
        """Whoever is still computing stops, and what is on its way is taken off the line."""
        for worker, work in self._work.items():
            self._told(worker, work, "dropped", self.now)
        self._work.clear()
        self._line = [self.now, self.now]

    def told(self) -> dict[str, Any]:
        """What the workers did, as plain data; what they are at is dropped if the run ends now."""
        going, self.trace = self.trace, deepcopy(self.trace)
        for worker, work in self._work.items():
            self._told(worker, work, "dropped", self.now)
        going, self.trace = self.trace, going
        spans = list(map(list, going.spans))
        return {"spans": spans, "seconds": going.seconds, "drawn": list(self._drawn)}

    def _begin(self, worker: int, task: Task, now: float) -> None:
        """The worker begins, at the parameters of the server; unless it is away, or dies."""
        self._ticket += 1
        values, version = self._server
        begun = self._through_line(0, now)
        done = begun + next(self._delays[worker])
        self._drawn[worker] += 1
        # It is away already, or will be before it is done.
        away = next((one for one in self._away[worker] if one[0] < done and one[1] > now), None)
        self._work[worker] = _Work(task, values, version, now, begun, self._ticket, away)
        heapq.heappush(self._events, (away[1] if away else done, self._ticket, worker))

    def _told(self, worker: int, work: _Work, kind: str, now: float) -> None:
        """Take down what a worker was at until now."""
        dies = work.away[0] if work.away else now
        add = partial(self.trace.add, worker, version=work.version)
        add("receive", work.sent, min(work.begun, dies, now))
        add("lost" if dies < now else kind, work.begun, min(dies, now))
        add("away", max(dies, work.sent), now)

    def _through_line(self, way: int, now: float) -> float:
        """When something is through the server's line that comes to it now."""
        if not self.transfer:
            return now
        self._line[way] = max(self._line[way], now) + self.transfer
        return self._line[way]
