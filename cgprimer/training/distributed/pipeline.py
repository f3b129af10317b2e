"""Stages of a graph on a virtual clock: micro-batches pass forward, their adjoints backward.

All micro-batches of an update pass forward through all stages, then backward; a stage processes
them in order. While the first micro-batch is under way, later stages are idle, and so are earlier
stages at the end: the bubble. For p equal stages and m micro-batches, it takes the fraction
(p - 1)/(m + p - 1) of the time.

The model: the compute time of one worker for a whole batch follows the delays; a stage needs its
fraction of the operations, a third of it forward and two thirds backward; values that cross a cut
are transferred byte by byte.

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
from cgprimer.training.distributed.simulator import Trace, continue_trace

Array = Any
Inputs = Mapping[str, Array]
_WORK_FRACTIONS = {"forward": 1 / 3, "backward": 2 / 3}  # of a gradient's operations, about


class StageRunner(Interface):
    """Interface of objects that run the stages of a graph, in this process or another.

    See :class:`cgprimer.training.distributed.layer_stages.Stages`.
    """

    parts: Sequence[Stage]

    def run_forward(
        self, stage: int, values: Array, task: Task, inputs: Inputs
    ) -> dict[str, Array]:
        """Compute the outputs of a stage for the samples of a task."""

    def run_backward(
        self, stage: int, values: Array, task: Task, inputs: Inputs, adjoints: Inputs
    ) -> tuple[dict[str, Array], Array]:
        """Compute the adjoints of a stage's inputs and the gradient, summed over samples."""

    def sum_losses(self, outputs: Inputs) -> float:
        """Return the sum of the losses in the outputs of the last stage."""


def split_into_micro_batches(task: Task, count: int) -> list[Task]:
    """Split a task into at most ``count`` micro-batches of nearly equal size.

    >>> [(part.start, part.stop) for part in split_into_micro_batches(Task(0, 0, 10, 20), 3)]
    [(10, 13), (13, 16), (16, 20)]
    """
    ends = [task.start + task.samples * k // count for k in range(count + 1)]
    parts = (task._replace(start=start, stop=stop) for start, stop in pairwise(ends))
    return [part for part in parts if part.samples]


def add_adjoints(adjoints: dict[str, Array], contributions: Mapping[str, Array]) -> None:
    """Add contributions to a dictionary of adjoints; its arrays are not modified."""
    for name, contribution in contributions.items():
        if name in adjoints:
            adjoints[name] = adjoints[name] + contribution
        else:
            adjoints[name] = contribution


class SimulatedPipeline:
    """A simulated pipeline of stages, which computes the gradient of one task at a time.

    Args:
        tasks: the tasks.
        runner: runs the stages.
        delays: the distribution of the compute time of a whole batch.
        seed: the seed of the delays.
        micro_batches: the number of micro-batches of an update.
        number_bytes: the size of a number.
        earlier_record: the result of :meth:`record` in the run that is resumed.
        first_worker: the index of the worker of the first stage, for its delays.

    Raises:
        UsageError: the delays include failures.
    """

    workers = range(1)

    def __init__(
        self,
        tasks: Iterator[Task],
        runner: StageRunner,
        delays: Delays,
        seed: int,
        micro_batches: int,
        number_bytes: int,
        *,
        earlier_record: Mapping[str, Any] = MappingProxyType({}),
        first_worker: int = 0,
    ) -> None:
        if delays.absences:
            raise UsageError(
                "a worker with a stage of the graph cannot fail: no other worker has its layers",
                hint="leave out 'dies' in the delays, or use --workers without --place",
            )
        stages = len(runner.parts)
        self.tasks, self.runner, self.micro_batches = tasks, runner, micro_batches
        self.now = float(earlier_record.get("clock", 0.0))
        self.transfer_seconds = delays.network * number_bytes
        self.trace: Trace = continue_trace(earlier_record, stages, tuple(_WORK_FRACTIONS))
        count = self._sampled_count = int(earlier_record.get("drawn", 0))
        self._delays = [
            islice(delays.sample_seconds(first_worker + k, seed), count, None)
            for k in range(stages)
        ]
        self._task: Task | None = None

    def set_parameters(self, values: Array, version: int) -> None:
        """Set the parameters; each stage uses only its own parameters."""
        self._values, self._version = values, version

    def start_task(self, worker: int) -> None:
        """Fetch the next task, whose gradient :meth:`receive_gradient` computes."""
        self._task = next(self.tasks, None)

    def drop_tasks(self) -> None:
        """Do nothing, because no task is running between two updates."""

    def record(self) -> dict[str, Any]:
        """Return the trace of the stages' activities as a dict for JSON."""
        spans = list(map(list, self.trace.spans))
        return {"spans": spans, "seconds": self.trace.seconds, "drawn": self._sampled_count}

    def receive_gradient(self) -> Arrival:
        """Run all micro-batches of a task forward, then backward, and return its gradient."""
        assert self._task is not None
        task, values, stages = self._task, self._values, self.runner.parts
        micro_batches = split_into_micro_batches(task, self.micro_batches)
        outputs: list[dict[str, Array]] = [{} for _ in micro_batches]
        adjoints: list[dict[str, Array]] = [{} for _ in micro_batches]
        schedule = _StageSchedule(self, task, micro_batches)
        gradient: Any = 0.0
        for k, stage in enumerate(stages):
            for index, samples in enumerate(micro_batches):
                inputs = {name: outputs[index][name] for name in stage.inputs}
                outputs[index] |= self.runner.run_forward(k, values, samples, inputs)
                schedule.add_work("forward", k, index, stage.outputs)
        for k in reversed(range(len(stages))):
            for index, samples in enumerate(micro_batches):
                inputs = {name: outputs[index][name] for name in stages[k].inputs}
                contributions, part = self.runner.run_backward(
                    k, values, samples, inputs, adjoints[index]
                )
                gradient = gradient + part
                add_adjoints(adjoints[index], contributions)
                schedule.add_work("backward", k, index, stages[k].inputs)
        self.now = schedule.compute_end_time()
        loss = sum(map(self.runner.sum_losses, outputs))
        return Arrival(0, task, self._version, loss, gradient, self.now)

    def sample_stage_seconds(self) -> list[float]:
        """Sample the compute time of a whole batch for the worker of each stage."""
        self._sampled_count += 1
        return [next(stream) for stream in self._delays]


class _StageSchedule:
    """The simulated times at which the stages of a pipeline process micro-batches."""

    def __init__(
        self, pipeline: SimulatedPipeline, task: Task, micro_batches: Sequence[Task]
    ) -> None:
        self.pipeline, self.task, self.micro_batches = pipeline, task, micro_batches
        self._batch_seconds = pipeline.sample_stage_seconds()
        self._stage_free = [pipeline.now] * len(pipeline.runner.parts)
        self._input_arrival = [pipeline.now] * len(micro_batches)

    def add_work(
        self, kind: str, stage: int, micro_batch: int, sent_shapes: Mapping[str, Shape]
    ) -> None:
        """Schedule the forward or backward pass of a stage for one micro-batch.

        Args:
            kind: ``forward`` or ``backward``.
            stage: the index of the stage.
            micro_batch: the index of the micro-batch.
            sent_shapes: the shapes of the values that are sent to the next stage.
        """
        samples = self.micro_batches[micro_batch].samples
        work = self.pipeline.runner.parts[stage].work
        fraction = samples / self.task.samples * work * _WORK_FRACTIONS[kind]
        begin = max(self._stage_free[stage], self._input_arrival[micro_batch])
        end = self._stage_free[stage] = begin + self._batch_seconds[stage] * fraction
        self.pipeline.trace.add_span(stage, kind, begin, end, micro_batch + 1)
        numbers = samples * sum(prod(shape) for shape in sent_shapes.values())
        self._input_arrival[micro_batch] = end + numbers * self.pipeline.transfer_seconds

    def compute_end_time(self) -> float:
        """Return the time at which the last stage has finished."""
        return max(self._stage_free)


class SimulatedReplicas:
    """A team of simulated pipelines: data and model parallelism combined.

    A replica has the role of a worker in a protocol: it computes the gradient of a task at the
    parameters that were current when it started. Its stages are workers with consecutive indices.

    Args:
        count: the number of replicas.
        tasks: the tasks.
        create_pipeline: creates the pipeline of a replica from its tasks, the index of its first
            worker and its earlier record.
        stages: the number of stages of a replica.
        earlier_record: the result of :meth:`record` in the run that is resumed.
    """

    def __init__(
        self,
        count: int,
        tasks: Iterator[Task],
        create_pipeline: Callable[[Iterator[Task], int, Mapping[str, Any]], SimulatedPipeline],
        stages: int,
        *,
        earlier_record: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.workers, self.tasks, self.stages = range(count), tasks, stages
        self.now = float(earlier_record.get("clock", 0.0))
        self._pipelines = [
            create_pipeline(iter(()), k * stages, _select_replica(earlier_record, k, stages))
            for k in self.workers
        ]
        self._arrivals: list[tuple[float, int, Arrival]] = []
        self._ticket = 0

    def set_parameters(self, values: Array, version: int) -> None:
        """Set the parameters of all replicas."""
        for pipeline in self._pipelines:
            pipeline.set_parameters(values, version)

    def start_task(self, worker: int) -> None:
        """Start the next task on the replica of a worker."""
        task = next(self.tasks, None)
        if task is None:
            return
        pipeline = self._pipelines[worker]
        pipeline.tasks, pipeline.now = iter((task,)), self.now
        pipeline.start_task(0)
        arrival = pipeline.receive_gradient()._replace(worker=worker)
        self._ticket += 1
        heapq.heappush(self._arrivals, (arrival.time, self._ticket, arrival))

    def receive_gradient(self) -> Arrival:
        """Advance the clock to the arrival of the next gradient, and return it."""
        self.now, _, arrival = heapq.heappop(self._arrivals)
        return arrival

    def drop_tasks(self) -> None:
        """Do nothing, because protocols that drop gradients cannot have replicas."""

    def record(self) -> dict[str, Any]:
        """Return the trace of the stages of all replicas as a dict for JSON."""
        records = [pipeline.record() for pipeline in self._pipelines]
        spans = [
            [worker + k * self.stages, *rest]
            for k, record in enumerate(records)
            for worker, *rest in record["spans"]
        ]
        spans.sort(key=lambda span: float(span[3]))
        seconds = {
            kind: [value for record in records for value in record["seconds"][kind]]
            for kind in _WORK_FRACTIONS
        }
        sampled_counts = [record["drawn"] for record in records for _ in range(self.stages)]
        return {"spans": spans, "seconds": seconds, "drawn": sampled_counts}


def _select_replica(record: Mapping[str, Any], replica: int, stages: int) -> dict[str, Any]:
    """Return the part of a record that describes the stages of one replica."""
    if not record:
        return {}
    first = replica * stages
    workers = range(first, first + stages)
    return {
        "clock": record.get("clock", 0.0),
        "spans": [[w - first, *rest] for w, *rest in record.get("spans", []) if w in workers],
        "seconds": {kind: list(s[first : workers.stop]) for kind, s in record["seconds"].items()},
        "drawn": record["drawn"][first],
    }
