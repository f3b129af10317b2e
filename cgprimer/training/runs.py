"""What training did: its parameters, its losses, and what it needs to be taken up again."""

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
from cgprimer.training.losses import samples_for
from cgprimer.training.objective import Objective, Resident
from cgprimer.training.predictions import Score, outputs_of, over_blocks, score_of
from cgprimer.training.written_rules import State

FORMAT = "cgprimer-run"
VERSION = 1
RUN = "run.json"  #: in the folder of a run
Array = Any
Value = Any  # a float, or an array of a parameter's shape


@dataclass(eq=False, repr=False)
class TrainingRun:
    """What training did.

    A parameter is a number, or an array of its shape.

    Attributes:
        parameters: learnt values.
        start: values before the first step.
        truth: values that the data were made with; empty for data that came from elsewhere.
        start_loss, loss: mean loss over the whole dataset before and after.
        penalty: what l1 and l2 add to ``loss``, which is that of the data, at the end.
        step_losses: mean loss of the batch at each step, before the step; of runs of more than
            100,000 steps every second, fourth, ... of them, from the first on.
        epoch_losses: mean over the samples of each epoch, each taken in its step.
        validation_losses: mean loss over the validation samples after each epoch; nan for an
            epoch without, and where the loss is no number, as outside the domain of a logarithm.
            Empty where no epoch had any.
        metrics: for each metric that was asked for, its value after each epoch, over the validation
            samples where there are some.
        recorded_steps: ascending; steps after which the parameters were recorded: the end of each
            epoch; in runs of few epochs moments between, too; in long ones every second, fourth...
        recorded_parameters: for each parameter its values then.
        epochs, steps: how many were done.
        seconds: time spent in steps.
        stopped: why training ended: ``finished``, ``converged``, ``patience`` (the validation loss
            no longer fell), ``interrupted``, or ``diverged``
            where a number was not finite (the error that says so has this run) or the loss ended
            ten times above that of the start.
        reason: what diverged, or no longer fell, in words; empty for other runs.
        settings: what decided the run; the keys are those of ``training/settings.py`` and some
            numbers that follow from them.
        state: the optimizer's state, for taking the run up again.
        best_epoch: the epoch, counted from 1, of the least validation loss, whose parameters these
            are; 0 of a run without patience: there they are those of the last step.
        last_parameters: those of the last step, where they are others.
        steps_apart: steps from one of the step losses to the next; a power of two.
        epoch_total: the sum of the losses of the steps of an epoch that has not ended.
        statistics: the running mean and variance of each batchnorm, by names such as ``mean.xy``.
        last_statistics: those of the last step, where they are others.
        scales: mean and standard deviation of columns that were normalised (``inputs/xa``); losses
            and parameters are those of normalised columns.
        team: the record of the workers; ``WorkerEpochs.worker_record`` explains its keys.
        graph: whose parameters they are.
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
        """What was learnt, as `at` of `graph.evaluate` and the like: parameters and statistics."""
        return {**self.parameters, **self.statistics}

    @property
    def losses_by_epoch(self) -> list[float]:
        """The curve of the run: the loss before the first step, then that of each epoch."""
        return [self.start_loss, *self.epoch_losses]

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the run, or nothing did: a file of one that was killed says so."""
        return self.stopped == "interrupted"

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each parameter; ``()`` of a number."""
        return {name: np.shape(value) for name, value in self.parameters.items()}

    def save(self, path: str | Path) -> None:
        """Write the run, with the text of its graph, as JSON that :func:`load_run` reads.

        Raises:
            UsageError: the file cannot be written.
        """
        save_run(self, path)

    def predict(self, data: Any) -> dict[str, Array]:
        """The outputs for other inputs, by the learnt parameters; a column for each output.

        Args:
            data: a dataset, columns of inputs by name, a file's path or a data frame; targets are
                not looked at.

        Raises:
            DataError: an input has no column.

        >>> import cgprimer
        >>> graph = cgprimer.parse("xw = k*xa; parameter k = 3")
        >>> run = cgprimer.train(graph, cgprimer.make_dataset(graph, samples=500))
        >>> run.predict({"xa": [1.0, 2.0]})["xw"].round(3)
        array([3., 6.])
        """
        graph = self.known_graph
        given = Dataset.from_arrays(data) if isinstance(data, Mapping) else data
        given = normalize_data(resolve_dataset(given, graph, targets=()), self.scales)
        (outputs,) = over_blocks(
            given, lambda block: (outputs_of(graph, block.inputs, len(block), self.point),)
        )
        return denormalize_outputs(outputs, self.scales)

    def score(self, data: Any) -> Score:
        """How well the learnt parameters predict samples: loss, R^2, classes where there are some.

        >>> import cgprimer
        >>> graph = cgprimer.parse("xw = k*xa; parameter k = 3")
        >>> data = cgprimer.make_dataset(graph, samples=500)
        >>> round(cgprimer.train(graph, data).score(data).r2, 6)
        1.0
        """
        graph, loss = self.known_graph, self.settings.get("loss", "squared-error")
        data = normalize_data(samples_for(graph, data, loss), self.scales)
        objective = Objective(graph, loss=loss, samples=len(data), mode="training", dataset=data)
        values = objective.vectors.vector(self.parameters)
        mean = Resident(objective, data).mean_loss(values, self.statistics)
        return score_of(graph, data, self.point, mean, self.scales, loss)

    @property
    def known_graph(self) -> ExpressionGraph:
        """The graph, or a UsageError where the run does not know it."""
        if self.graph is None:
            raise UsageError("the run does not know its graph", hint="load_run(path) reads it, too")
        return self.graph

    def in_numbers(self) -> TrainingRun:
        """The same run with a name for each number: ``W[0,1]``. What is drawn are numbers.

        >>> TrainingRun({"w": np.array([1.0, 2.0])}, {}, {}, {}).in_numbers().parameters
        {'w[0]': 1.0, 'w[1]': 2.0}
        """
        shapes = self.shapes
        if not any(shapes.values()):
            return self
        each = [
            split_arrays(values, shapes) for values in (self.parameters, self.start, self.truth)
        ]
        every = self.recorded_parameters.items()
        recorded = {n: np.array(v).reshape(len(v), *shapes[n]) for n, v in every}
        over_time = {name: part.tolist() for name, part in split_arrays(recorded, shapes).items()}
        return replace(
            self, parameters=each[0], start=each[1], truth=each[2], recorded_parameters=over_time
        )

    def __repr__(self) -> str:
        learnt = join_names(
            n + (format_shape(value.shape) if np.ndim(value) else f"={format_number(value, 6)}")
            for n, value in self.parameters.items()
        )
        losses = f"loss {format_number(self.start_loss, 6)} -> {format_number(self.loss, 6)}"
        return f"<TrainingRun {self.stopped}: {self.steps} steps, {losses}, {learnt}>"


def save_run(run: TrainingRun, path: str | Path, graph: ExpressionGraph | None = None) -> None:
    """Write a run, with the text of its graph, as JSON.

    Args:
        run: the run.
        path: the file; it is written whole or not at all.
        graph: whose text is written; the run's own unless given.

    Raises:
        UsageError: the file cannot be written.
    """
    write_atomically(path, format_json(run_as_dict(run, graph)) + "\n")


def run_as_dict(run: TrainingRun, graph: ExpressionGraph | None = None) -> dict[str, Any]:
    """A run as plain data; the keys are documented in ``docs/getting-started.md``."""
    check_type("run", run, TrainingRun, "a TrainingRun")
    if (graph := graph or run.graph) is None:
        raise UsageError("whose run is it? Give its graph: save_run(run, path, graph)")
    check_graph(graph)
    fields = asdict(replace(run, graph=None))
    del fields["graph"]
    fields["state"] = [np.asarray(part).tolist() for part in run.state]
    mappings = ("parameters", "start", "truth", "last_parameters", "recorded_parameters")
    for name in (*mappings, "statistics", "last_statistics", "scales"):
        fields[name] = {n: np.asarray(of).tolist() for n, of in fields[name].items()}
    return {"format": FORMAT, "version": VERSION, "graph": graph.text, **fields}


def differences(run: TrainingRun, graph: ExpressionGraph) -> str:
    """In words, what a graph differs in from that of a run; empty if it computes the same.

    >>> from cgprimer.core.graph import parse
    >>> run = TrainingRun({"k": 2.0}, {}, {}, {}, graph=parse("xw = k*xa"))
    >>> differences(run, parse("xw = xa*k"))
    ''
    >>> differences(run, parse("xw = k*xa^2"))
    'it has xw = k*xa, this graph xw = k*xa^2'
    """
    shapes = {name: graph.shapes.get(name, ()) for name in graph.parameters}
    if run.parameters.keys() != shapes.keys():
        here = f"this graph's are {', '.join(graph.parameters)}"
        return f"its parameters are {', '.join(run.parameters)}, {here}"
    for of in (run.parameters, run.start, run.truth):
        for name, value in of.items():
            if np.shape(value) != shapes.get(name, np.shape(value)):
                given, wanted = np.shape(value), shapes[name]
                return f"{name} has the shape {list(given)}, in this graph {list(wanted)}"
    own = run.graph
    if own is None or own.text == graph.text or _same_function(own, graph):
        return ""
    for role in ("inputs", "outputs"):
        if {*getattr(own, role)} != {*getattr(graph, role)}:
            names = [", ".join(getattr(one, role)) or "none" for one in (own, graph)]
            return f"its {role} are {names[0]}, this graph's are {names[1]}"
    texts = [{n: f"{n} = {one.expression(n)}" for n in one.definitions} for one in (own, graph)]
    other = [n for n in {**texts[0], **texts[1]} if texts[0].get(n) != texts[1].get(n)]
    has = [join_names([of.get(n, f"no {n}") for n in other], 3) for of in texts]
    return f"it has {has[0]}, this graph {has[1]}"


def _same_function(first: ExpressionGraph, second: ExpressionGraph) -> bool:
    """Whether two graphs compute the same outputs, at some points chosen at random."""
    if {*first.outputs} != {*second.outputs} or {*first.inputs} != {*second.inputs}:
        return False
    if first.shapes != second.shapes:
        return False
    random, shapes = np.random.default_rng(0), second.shapes
    names = (*second.inputs, *second.parameters)
    point = {name: random.normal(size=(5, *shapes.get(name, ()))) for name in names}
    here, there = first.evaluate(point), second.evaluate(point)
    pairs = ((here[name], there[name]) for name in second.outputs)
    return all(np.allclose(one, other, rtol=1e-9, equal_nan=True) for one, other in pairs)
