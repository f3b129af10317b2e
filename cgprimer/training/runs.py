"""The result of training: parameters, losses, and the state from which the run can be resumed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from cgprimer.core.graph import check_graph
from cgprimer.core.operations.array_shapes import format_shape
from cgprimer.core.tape.scalarization import split_arrays
from cgprimer.errors import UsageError, join_names
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.files import format_json, write_atomically
from cgprimer.support.number_format import format_number
from cgprimer.support.type_checks import check_type
from cgprimer.training.data import Dataset, denormalize_outputs, normalize_data, resolve_dataset
from cgprimer.training.losses import load_samples
from cgprimer.training.objective import Objective, ResidentData
from cgprimer.training.predictions import (
    Score,
    compute_outputs,
    compute_score,
    concatenate_blocks,
)
from cgprimer.training.written_rules import State

FORMAT = "cgprimer-run"
VERSION = 1
RUN = "run.json"  #: the file of the run in the folder of a run
Array = Any
Value = Any  # a float, or an array of a parameter's shape


@dataclass(eq=False, repr=False)
class TrainingRun:
    """The result of training: learned parameters, recorded losses and settings.

    The value of a parameter is a scalar, or an array of its shape.

    Attributes:
        parameters: the learned values.
        start: the values before the first step.
        truth: the values from which the data were generated; empty for other data.
        start_loss, loss: the mean loss over the whole dataset before and after training.
        penalty: the value that l1 and l2 add to ``loss`` at the end.
        step_losses: the mean loss of the batch of each step, before the step; in runs of more than
            100,000 steps that of every second, fourth, ... step, starting with the first one.
        epoch_losses: the mean over the samples of each epoch, each at the parameters of its step.
        validation_losses: the mean loss over the validation samples after each epoch; nan for an
            epoch without validation, and where the loss is undefined. Empty without validation.
        metrics: the value of each metric after each epoch, over the validation samples if given.
        recorded_steps: the steps after which the parameters were recorded, in ascending order: the
            end of each epoch, in runs of few epochs also steps in between, in long runs the end of
            every second, fourth, ... epoch.
        recorded_parameters: the values of each parameter at these steps.
        epochs, steps: the number of epochs and steps so far.
        seconds: the time spent on training, without metrics and checkpoints.
        stopped: the reason for the end of training: ``finished``, ``converged``, ``patience`` (the
            validation loss no longer fell), ``interrupted``, or ``diverged`` (a number was not
            finite, in which case the error has this run, or the final loss is more than ten times
            the initial loss).
        reason: an explanation for runs that diverged or ran out of patience; empty otherwise.
        settings: the settings of the run, with the names of the arguments of ``train``, and some
            numbers that follow from them.
        state: the state of the optimizer, to resume the run.
        best_epoch: the epoch, counted from 1, with the lowest validation loss, whose parameters
            these are; 0 for a run without patience, whose parameters are those of the last step.
        last_parameters: the parameters of the last step if they differ.
        steps_apart: the number of steps between two recorded step losses; a power of two.
        epoch_total: the sum of the losses of an epoch that has not ended.
        statistics: the running mean and variance of each batchnorm, with names such as ``mean.xy``.
        last_statistics: the running statistics of the last step if they differ.
        scales: the mean and standard deviation of columns that were normalized (``inputs/xa``);
            losses and parameters refer to the normalized columns.
        team: the record of the workers; ``WorkerEpochs.worker_record`` explains its keys.
        graph: the graph.
    """

    parameters: dict[str, Value]
    start: dict[str, Value]
    truth: dict[str, Value]
    settings: dict[str, Any]
    start_loss: float = float("nan")
    loss: float = float("nan")
    step_losses: list[float] = field(default_factory=list)
    epoch_losses: list[float] = field(default_factory=list)
    validation_losses: list[float] = field(default_factory=list)
    recorded_steps: list[int] = field(default_factory=list)
    recorded_parameters: dict[str, list[Value]] = field(default_factory=dict)
    epochs: int = 0
    steps: int = 0
    seconds: float = 0.0
    stopped: str = "finished"
    reason: str = ""
    state: State = ()
    metrics: dict[str, list[float]] = field(default_factory=dict)
    best_epoch: int = 0
    last_parameters: dict[str, Value] = field(default_factory=dict)
    steps_apart: int = 1
    epoch_total: float = 0.0
    statistics: dict[str, Value] = field(default_factory=dict)
    penalty: float = 0.0
    last_statistics: dict[str, Value] = field(default_factory=dict)
    scales: dict[str, Value] = field(default_factory=dict)
    team: dict[str, Any] = field(default_factory=dict)
    graph: ExpressionGraph | None = None

    @property
    def point(self) -> dict[str, Value]:
        """The learned parameters and statistics, as a point for ``graph.evaluate``."""
        return {**self.parameters, **self.statistics}

    @property
    def losses_by_epoch(self) -> list[float]:
        """The loss before the first step, followed by the mean loss of each epoch."""
        return [self.start_loss, *self.epoch_losses]

    @property
    def interrupted(self) -> bool:
        """True if the run was stopped early, by Ctrl-C or because its process was killed."""
        return self.stopped == "interrupted"

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each parameter; ``()`` for a scalar."""
        return {name: np.shape(value) for name, value in self.parameters.items()}

    def save(self, path: str | Path) -> None:
        """Write the run and its graph to a JSON file, for :func:`load_run`.

        Raises:
            UsageError: the file cannot be written.
        """
        save_run(self, path)

    def predict(self, data: Any) -> dict[str, Array]:
        """Compute the outputs for new inputs with the learned parameters, one column per output.

        Args:
            data: a dataset, columns of inputs keyed by name, the path of a file, or a data frame;
                targets are ignored.

        Raises:
            DataError: the column of an input is missing.

        >>> import cgprimer
        >>> graph = cgprimer.parse("xw = k*xa; parameter k = 3")
        >>> run = cgprimer.train(graph, cgprimer.make_dataset(graph, samples=500))
        >>> run.predict({"xa": [1.0, 2.0]})["xw"].round(3)
        array([3., 6.])
        """
        graph = self.known_graph
        dataset = Dataset.from_arrays(data) if isinstance(data, Mapping) else data
        dataset = normalize_data(resolve_dataset(dataset, graph, targets=()), self.scales)
        (outputs,) = concatenate_blocks(
            dataset, lambda block: (compute_outputs(graph, block.inputs, len(block), self.point),)
        )
        return denormalize_outputs(outputs, self.scales)

    def score(self, data: Any) -> Score:
        """Return the loss, R^2 and, for classes, accuracy of the learned parameters on samples.

        >>> import cgprimer
        >>> graph = cgprimer.parse("xw = k*xa; parameter k = 3")
        >>> data = cgprimer.make_dataset(graph, samples=500)
        >>> round(cgprimer.train(graph, data).score(data).r2, 6)
        1.0
        """
        graph, loss = self.known_graph, self.settings.get("loss", "squared-error")
        data = normalize_data(load_samples(graph, data, loss), self.scales)
        objective = Objective(graph, loss=loss, samples=len(data), mode="training", dataset=data)
        values = objective.vectors.vector(self.parameters)
        mean = ResidentData(objective, data).mean_loss(values, self.statistics)
        return compute_score(graph, data, self.point, mean, self.scales, loss)

    @property
    def known_graph(self) -> ExpressionGraph:
        """The graph of the run; reading it raises UsageError if the run has no graph."""
        if self.graph is None:
            hint = "load the run with load_run(path), which reads the graph"
            raise UsageError("the run has no graph", hint=hint)
        return self.graph

    def in_numbers(self) -> TrainingRun:
        """Return a copy of the run whose array elements are scalars, such as ``W[0,1]``.

        >>> TrainingRun({"w": np.array([1.0, 2.0])}, {}, {}, {}).in_numbers().parameters
        {'w[0]': 1.0, 'w[1]': 2.0}
        """
        shapes = self.shapes
        if not any(shapes.values()):
            return self
        recorded = {
            name: np.array(values).reshape(len(values), *shapes[name])
            for name, values in self.recorded_parameters.items()
        }
        return replace(
            self,
            parameters=split_arrays(self.parameters, shapes),
            start=split_arrays(self.start, shapes),
            truth=split_arrays(self.truth, shapes),
            recorded_parameters={
                name: column.tolist() for name, column in split_arrays(recorded, shapes).items()
            },
        )

    def __repr__(self) -> str:
        """Return the status, the losses and the learned values, for display."""
        learned = join_names(
            n + (format_shape(value.shape) if np.ndim(value) else f"={format_number(value, 6)}")
            for n, value in self.parameters.items()
        )
        losses = f"loss {format_number(self.start_loss, 6)} -> {format_number(self.loss, 6)}"
        return f"<TrainingRun {self.stopped}: {self.steps} steps, {losses}, {learned}>"


def save_run(run: TrainingRun, path: str | Path, graph: ExpressionGraph | None = None) -> None:
    """Write a run and its graph to a JSON file.

    Args:
        run: the run.
        path: the path of the file, which is written atomically.
        graph: the graph to write; the graph of the run unless given.

    Raises:
        UsageError: the file cannot be written.
    """
    write_atomically(path, format_json(run_as_dict(run, graph)) + "\n")


def run_as_dict(run: TrainingRun, graph: ExpressionGraph | None = None) -> dict[str, Any]:
    """Return a run as a dict for JSON; ``docs/reference/file-formats.md`` explains the keys."""
    check_type("run", run, TrainingRun, "a TrainingRun")
    if (graph := graph or run.graph) is None:
        raise UsageError("the run has no graph", hint="pass the graph: save_run(run, path, graph)")
    check_graph(graph)
    fields = asdict(replace(run, graph=None))
    del fields["graph"]
    fields["state"] = [np.asarray(part).tolist() for part in run.state]
    mappings = ("parameters", "start", "truth", "last_parameters", "recorded_parameters")
    for name in (*mappings, "statistics", "last_statistics", "scales"):
        fields[name] = {n: np.asarray(value).tolist() for n, value in fields[name].items()}
    return {"format": FORMAT, "version": VERSION, "graph": graph.text, **fields}


def explain_difference(run: TrainingRun, graph: ExpressionGraph) -> str:
    """Describe how a graph differs from a run's graph; return '' if their outputs are equal.

    >>> from cgprimer.core.graph import parse
    >>> run = TrainingRun({"k": 2.0}, {}, {}, {}, graph=parse("xw = k*xa"))
    >>> explain_difference(run, parse("xw = xa*k"))
    ''
    >>> explain_difference(run, parse("xw = k*xa^2"))
    'it has xw = k*xa, this graph xw = k*xa^2'
    """
    shapes = {name: graph.shapes.get(name, ()) for name in graph.parameters}
    if run.parameters.keys() != shapes.keys():
        names = f"this graph has {', '.join(graph.parameters)}"
        return f"it has the parameters {', '.join(run.parameters)}, {names}"
    for values in (run.parameters, run.start, run.truth):
        for name, value in values.items():
            if np.shape(value) != shapes.get(name, np.shape(value)):
                shape = list(np.shape(value))
                return f"{name} has shape {shape}, in this graph {list(shapes[name])}"
    own_graph = run.graph
    if own_graph is None or own_graph.text == graph.text or _have_equal_outputs(own_graph, graph):
        return ""
    return _compare_definitions(own_graph, graph)


def _compare_definitions(first: ExpressionGraph, second: ExpressionGraph) -> str:
    """Explain how the inputs, outputs or definitions of two graphs differ."""
    for role in ("inputs", "outputs"):
        if {*getattr(first, role)} != {*getattr(second, role)}:
            names = [", ".join(getattr(graph, role)) or "none" for graph in (first, second)]
            return f"it has the {role} {names[0]}, this graph has {names[1]}"
    definitions = [
        {name: f"{name} = {graph.expression(name)}" for name in graph.definitions}
        for graph in (first, second)
    ]
    names = [
        name
        for name in {**definitions[0], **definitions[1]}
        if definitions[0].get(name) != definitions[1].get(name)
    ]
    lists = [join_names([texts.get(n, f"no {n}") for n in names], 3) for texts in definitions]
    return f"it has {lists[0]}, this graph {lists[1]}"


def _have_equal_outputs(first: ExpressionGraph, second: ExpressionGraph) -> bool:
    """Return whether two graphs compute the same outputs at a few random points."""
    if {*first.outputs} != {*second.outputs} or {*first.inputs} != {*second.inputs}:
        return False
    if first.shapes != second.shapes:
        return False
    generator, shapes = np.random.default_rng(0), second.shapes
    names = (*second.inputs, *second.parameters)
    point = {name: generator.normal(size=(5, *shapes.get(name, ()))) for name in names}
    values, other_values = first.evaluate(point), second.evaluate(point)
    return all(
        np.allclose(values[name], other_values[name], rtol=1e-9, equal_nan=True)
        for name in second.outputs
    )
