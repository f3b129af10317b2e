"""Workers on a virtual clock: arrival times are simulated, gradients are really computed.

Events are queued by time, and by the order of their creation if times are equal: the same seed
gives the same trace. A gradient is computed when it arrives, at the parameters that were current
when its worker started; gradients that are dropped are never computed.

The model: the compute time of a task follows the delays, whatever its number of samples. Parameters
to workers, and gradients to the server, pass one after the other through the network connection of
the server; an update takes no time. A worker that fails loses its task, and restarts it when it
returns, at the parameters of that time.
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
SumGradients = Callable[[Array, Task], tuple[float, Array]]  # sums over the samples of a task
SPAN_KINDS = ("receive", "compute", "send", "dropped", "lost", "away")
MAX_SPANS = 5_000  # of a trace


class Span(NamedTuple):
    """An activity of a worker during an interval of time.

    Attributes:
        worker: the index of the worker.
        kind: the activity, one of :data:`SPAN_KINDS`, ``forward`` or ``backward``.
        begin, end: times in seconds of the team's clock.
        version: the number of updates before the parameters in use; for stages of a graph the
            index of the micro-batch, from 1.
    """

    worker: int
    kind: str
    begin: float
    end: float
    version: int


@dataclass
class Trace:
    """The recorded activities of all workers, and the total seconds of each kind of activity.

    Attributes:
        spans: the spans of all workers, in the order of their ends.
        seconds: kind of span -> seconds of each worker.
    """

    spans: list[Span] = field(default_factory=list)
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def add_span(self, worker: int, kind: str, begin: float, end: float, version: int) -> None:
        """Record an activity of a worker in the trace."""
        if end > begin:
            self.seconds[kind][worker] += end - begin
            if len(self.spans) < MAX_SPANS:
                self.spans.append(Span(worker, kind, begin, end, version))


def continue_trace(record: Mapping[str, Any], workers: int, kinds: Sequence[str]) -> Trace:
    """Create a trace that continues an earlier record, which may be empty."""
    idle = {kind: [0.0] * workers for kind in kinds}
    spans = [Span(*span) for span in record.get("spans", [])]
    return Trace(spans, idle | deepcopy(record.get("seconds", {})))


class _RunningTask(NamedTuple):
    """A task that a simulated worker has started and not finished.

    Attributes:
        task: the samples.
        values, version: the parameters, and the number of updates before them.
        sent: the time at which the server sent the parameters.
        begin: the time at which the worker received them.
        ticket: the ticket of the latest event of the task.
        absence: the times at which the worker fails during the task, and returns.
        computed: the time at which the gradient was computed, if it is under way to the server.
    """

    task: Task
    values: Array
    version: int
    sent: float
    begin: float
    ticket: int
    absence: tuple[float, float] | None
    computed: float | None = None


class SimulatedTeam:
    """A :class:`~cgprimer.training.distributed.protocols.Team` on a virtual clock.

    Args:
        workers: the number of workers.
        tasks: the tasks; workers stay idle when none is left.
        sum_gradients: computes the sums of loss and gradient from parameters and a task.
        delays: the distribution of all durations.
        seed: the seed of the delays.
        message_bytes: the size of the parameters, and of a gradient.
        earlier_record: the result of :meth:`record` in the run that is resumed.

    >>> tasks = (Task(k, 0, k, k + 1) for k in range(3))
    >>> team = SimulatedTeam(2, tasks, lambda v, t: (0.0, v), Delays(seconds=(1.0, 5.0)), 0, 8)
    >>> team.set_parameters(0.0, 0)
    >>> team.start_task(0); team.start_task(1); first = team.receive_gradient(); team.start_task(0)
    >>> first.time, team.receive_gradient().time, team.receive_gradient().worker
    (1.0, 2.0, 1)
    """

    def __init__(
        self,
        workers: int,
        tasks: Iterator[Task],
        sum_gradients: SumGradients,
        delays: Delays,
        seed: int,
        message_bytes: int,
        *,
        earlier_record: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.workers, self.tasks, self.sum_gradients = range(workers), tasks, sum_gradients
        self.now = float(earlier_record.get("clock", 0.0))
        self.transfer_seconds = delays.network * message_bytes
        self.trace = continue_trace(earlier_record, workers, SPAN_KINDS)
        self._delays = [delays.sample_seconds(worker, seed) for worker in self.workers]
        self._sampled_counts = list(earlier_record.get("drawn", [0] * workers))
        for stream, count in zip(self._delays, self._sampled_counts, strict=True):
            next(islice(stream, count, count), None)
        self._absences = [delays.list_absences(worker) for worker in self.workers]
        self._running: dict[int, _RunningTask] = {}
        self._events: list[tuple[float, int, int]] = []  # time, ticket, worker
        self._ticket = 0
        self._free_times = {"receive": self.now, "send": self.now}  # of the server's connection

    def set_parameters(self, values: Array, version: int) -> None:
        """Set the parameters that are sent to workers from now on."""
        self._server_state = values, version

    def start_task(self, worker: int) -> None:
        """Send the parameters and the next task to a worker."""
        task = next(self.tasks, None)
        if task is not None:
            self._begin_task(worker, task, self.now)

    def receive_gradient(self) -> Arrival:
        """Advance the clock to the arrival of the next gradient, and return it."""
        while True:
            time, ticket, worker = heapq.heappop(self._events)
            running = self._running.get(worker)
            if running is None or running.ticket != ticket:
                continue  # the task was dropped
            if running.absence:
                self._record_task(worker, running, "compute", time)
                self._begin_task(worker, running.task, time)
                continue
            if running.computed is None:
                self._running[worker] = running._replace(computed=time)
                arrival_time = self._transfer_message("send", time)
                heapq.heappush(self._events, (arrival_time, ticket, worker))
                continue
            del self._running[worker]
            self.now = time
            self._record_task(worker, running, "compute", running.computed)
            self.trace.add_span(worker, "send", running.computed, time, running.version)
            loss, gradient = self.sum_gradients(running.values, running.task)
            return Arrival(worker, running.task, running.version, loss, gradient, self.now)

    def drop_tasks(self) -> None:
        """Stop all workers that are still computing, and discard their messages."""
        for worker, running in self._running.items():
            self._record_task(worker, running, "dropped", self.now)
        self._running.clear()
        self._free_times = {"receive": self.now, "send": self.now}

    def record(self) -> dict[str, Any]:
        """Return the trace as a dict for JSON, with running tasks recorded as dropped."""
        trace, self.trace = self.trace, deepcopy(self.trace)
        for worker, running in self._running.items():
            self._record_task(worker, running, "dropped", self.now)
        trace, self.trace = self.trace, trace
        spans = list(map(list, trace.spans))
        return {"spans": spans, "seconds": trace.seconds, "drawn": list(self._sampled_counts)}

    def _begin_task(self, worker: int, task: Task, now: float) -> None:
        """Start a task on a worker at the current parameters, and queue the event that ends it."""
        self._ticket += 1
        values, version = self._server_state
        begin = self._transfer_message("receive", now)
        end = begin + next(self._delays[worker])
        self._sampled_counts[worker] += 1
        overlapping = (times for times in self._absences[worker] if times[0] < end)
        absence = next((times for times in overlapping if times[1] > now), None)
        self._running[worker] = _RunningTask(
            task, values, version, now, begin, self._ticket, absence
        )
        heapq.heappush(self._events, (absence[1] if absence else end, self._ticket, worker))

    def _record_task(self, worker: int, running: _RunningTask, kind: str, now: float) -> None:
        """Record the activities of a worker for a running task, up to the given time."""
        failure = running.absence[0] if running.absence else now
        add_span = partial(self.trace.add_span, worker, version=running.version)
        add_span("receive", running.sent, min(running.begin, failure, now))
        add_span("lost" if failure < now else kind, running.begin, min(failure, now))
        add_span("away", max(failure, running.sent), now)

    def _transfer_message(self, direction: str, now: float) -> float:
        """Simulate the transfer of a message to or from the server; return its arrival time."""
        if not self.transfer_seconds:
            return now
        begin = max(self._free_times[direction], now)
        self._free_times[direction] = begin + self.transfer_seconds
        return self._free_times[direction]
