"""Training of graphs of scalars in pure Python, a few updates at a time.

The module does not need numpy, so that a page can train a graph in the browser. With equal samples
in an equal order, and equal settings and start values, it computes what :func:`cgprimer.train`
computes, except for the last bits of sums. Losses, gradients, update rules and schedules are tapes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from random import Random

from cgprimer.analysis.nonfinite_origin import why
from cgprimer.core.evaluation.evaluator import (
    PreparedInstruction,
    evaluate_instructions,
    prepare_instructions,
)
from cgprimer.core.loss_attachment import graph_with_loss
from cgprimer.core.loss_expressions import LOSS, check_target
from cgprimer.core.loss_node import attach_to_tape, build_loss, input_name
from cgprimer.core.operations.float_arithmetic import float_function
from cgprimer.errors import NonFiniteError, UsageError, join_names
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.number_format import format_number
from cgprimer.support.validation import (
    check_choice,
    check_integer,
    check_named_values,
    check_real_number,
)
from cgprimer.tapes import Tape, differentiate, tape
from cgprimer.training.rule_tables import OPTIMIZER_TABLE, SCHEDULES
from cgprimer.training.scalar_samples import check_scalar_graph
from cgprimer.training.statement_tapes import (
    build_statement_tape,
    find_state_names,
    parse_statements,
)

#: The optimizers whose update rule treats each parameter separately.
SCALAR_OPTIMIZERS = tuple(name for name, row in OPTIMIZER_TABLE.items() if row.kind == "rule")
_SAMPLES_AT_A_TIME = 50  # between two readings of the clock
_DIVERGED = "try a smaller learning rate, or data inside the domains of the functions"


class _FloatTape:
    """A tape of scalars, prepared for repeated evaluation on floats.

    Args:
        lowered: the tape.
        inputs: the names of the values that a call accepts, in order; they include all leaves.
        outputs: the names of the outputs that a call returns, in order.
    """

    def __init__(self, lowered: Tape, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        slots = {name: k for k, name in enumerate(inputs)}
        self._constants = [leaf.value for leaf in lowered.leaves if leaf.kind == "constant"]
        self._order = [
            -1 if leaf.kind == "constant" else slots[leaf.name] for leaf in lowered.leaves
        ]
        self._constant_leaves = [k for k, slot in enumerate(self._order) if slot < 0]
        self._instructions: list[PreparedInstruction] = prepare_instructions(
            lowered, float_function
        )
        self._outputs = [lowered.outputs[name] for name in outputs]

    def __call__(self, values: Sequence[float]) -> list[float]:
        """Return the outputs at the given input values."""
        leaves = [values[slot] for slot in self._order]
        for k, constant in zip(self._constant_leaves, self._constants, strict=True):
            leaves[k] = constant
        computed = evaluate_instructions(self._instructions, leaves)
        return [computed[index] for index in self._outputs]


class ScalarTraining:
    """A training run of a graph of scalars.

    Args:
        graph: the graph.
        samples: a column of numbers for each input and each target, keyed by the names of inputs
            and outputs.
        loss: the name of a loss, or an expression, as in :func:`cgprimer.train`.
        optimizer: a name in `SCALAR_OPTIMIZERS`.
        learning_rate: the learning rate of the first update; by default that of the optimizer.
        schedule: the name of a learning-rate schedule.
        epochs: the number of epochs.
        batch_size: the number of samples per update; None for all samples.
        seed: seed of Python's generator for start values, uniform in [0, 1), and for the order of
            the samples.
        shuffle: shuffle the samples in every epoch, unless a batch has all samples.
        start: start values of parameters; other start values are random.

    Attributes:
        parameters: the current values of the parameters.
        epoch: the number of completed epochs.
        losses: the mean loss over the samples of each completed epoch.

    Raises:
        UsageError, SourceError: an invalid argument, a graph with arrays or layers, or a missing
            column.
        DataError: a target that is invalid for the loss.

    >>> from cgprimer.core.graph import parse
    >>> graph = parse("xw = k*xa")
    >>> data = {"xa": [1.0, -1.0, 0.5], "xw": [3.0, -3.0, 1.5]}
    >>> run = ScalarTraining(graph, data, optimizer="sgd", epochs=100, batch_size=None)
    >>> run.train_for(10_000)
    >>> run.finished, round(run.parameters["k"], 4)
    (True, 2.9993)
    """

    def __init__(
        self,
        graph: ExpressionGraph,
        samples: Mapping[str, Sequence[float]],
        *,
        loss: str = "squared-error",
        optimizer: str = "adam",
        learning_rate: float | None = None,
        schedule: str = "cosine",
        epochs: int = 100,
        batch_size: int | None = 50,
        seed: int = 0,
        shuffle: bool = True,
        start: Mapping[str, float] | None = None,
    ) -> None:
        self.graph, self.loss, self.shuffle = graph, loss, shuffle
        self.epochs = check_integer("epochs", epochs, minimum=1)
        self.seed = check_integer("the seed", seed)
        self._rows = self._prepare_rows(samples)
        size = len(self._rows) if batch_size is None else batch_size
        self.batch_size = min(check_integer("batch_size", size, minimum=1), len(self._rows))
        self._update = _compile_update_rule(optimizer, len(graph.parameters))
        row = OPTIMIZER_TABLE[optimizer]
        rate = row.rate if learning_rate is None else learning_rate
        self.learning_rate = check_real_number("the learning rate", rate, above=0)
        self._compute_rate = self._compile_schedule(schedule)
        random = Random(self.seed)
        given_values = check_named_values("start", start, "parameter", graph.parameters)
        self.parameters = {name: random.random() for name in graph.parameters} | given_values
        self.epoch, self.losses = 0, list[float]()
        self._updates = self._iterate_updates()

    @property
    def finished(self) -> bool:
        """True if all epochs are completed."""
        return self.epoch >= self.epochs

    def train_for(self, milliseconds: float) -> None:
        """Run updates for about the given time, or until all epochs are completed.

        Raises:
            NonFiniteError: the loss or the gradient is not finite; the message names the first
                vertex, and the parameters are those before the update.
        """
        end = time.perf_counter() + milliseconds / 1000
        for _ in self._updates:
            if time.perf_counter() >= end:
                break

    def _prepare_rows(self, samples: Mapping[str, Sequence[float]]) -> list[tuple[float, ...]]:
        """Build the tape of loss and gradient, and return the rows of samples for its inputs.

        Raises:
            UsageError: the graph has arrays, layers or no parameters, or a column is missing.
            DataError: a target is invalid for the loss.
        """
        graph, primal = self.graph, tape(self.graph)
        check_scalar_graph(graph)
        if not graph.parameters:
            hint = "declare one, as in `parameter k = 1`"
            raise UsageError("cannot train: the graph has no parameters", hint=hint)
        terms = build_loss(primal, self.loss)
        columns = {name: name for name in graph.inputs}
        columns |= {name: column.name for name, column in terms.columns.items()}
        if missing := [name for name in columns.values() if name not in samples]:
            raise UsageError(f"the samples have no column for {join_names(missing)}")
        for column in terms.columns.values():
            if column.is_target:
                for k, value in enumerate(samples[column.name]):
                    subject = f"the target {column.name!r} of sample {k}"
                    check_target(self.loss, value, subject, sample=False)
        program = differentiate(attach_to_tape(primal, terms), LOSS, graph.parameters)
        seeds = program.passes[0].seeds
        reads = {read.wrt: read.output for read in program.passes[0].reads}
        outputs = [LOSS, *(reads[name] for name in graph.parameters)]
        inputs = (*columns, *seeds, *graph.parameters)
        self._compute_loss_and_gradient = _FloatTape(program.executed, inputs, outputs)
        constant = tuple(float(value) for value in seeds.values())
        rows = zip(*(samples[name] for name in columns.values()), strict=True)
        return [(*map(float, row), *constant) for row in rows]

    def _compile_schedule(self, schedule: str) -> Callable[[int], float]:
        """Return a function from the index of an update to its learning rate."""
        row = SCHEDULES[check_choice("schedule", schedule, SCHEDULES)]
        per_epoch = -(-len(self._rows) // self.batch_size)
        constants = {**row.hyper, "rate": self.learning_rate, "epochs": float(self.epochs)}
        constants["steps"] = float(self.epochs * per_epoch)
        inputs = ("step", "t", "drops")
        statements = parse_statements(f"result = {row.formula}")
        formula = build_statement_tape(statements, constants, inputs=inputs)
        evaluate = _FloatTape(formula, inputs, ["result"])
        every = row.hyper.get("every", 1.0)

        def compute_rate(update: int) -> float:
            """Return the learning rate of an update, counted from 0."""
            epoch = update // per_epoch
            return evaluate((float(update), float(epoch), epoch // every))[0]

        return compute_rate

    def _iterate_updates(self) -> Generator[None, None, None]:
        """Run one update after the other until all epochs are completed."""
        update, size = 0, self.batch_size
        values = [*self.parameters.values()]
        while not self.finished:
            order = list(range(len(self._rows)))
            if self.shuffle and size < len(order):
                Random(f"{self.seed}/{self.epoch}").shuffle(order)
            total = 0.0
            for first in range(0, len(order), size):
                batch = [self._rows[k] for k in order[first : first + size]]
                loss, gradient = yield from self._add_gradients(batch, values)
                if not (math.isfinite(loss) and all(map(math.isfinite, gradient))):
                    raise self._create_nonfinite_error(batch, update)
                rate = self._compute_rate(update)
                values = [
                    self._update(k, value, slope / len(batch), rate)
                    for k, (value, slope) in enumerate(zip(values, gradient, strict=True))
                ]
                self.parameters = dict(zip(self.parameters, values, strict=True))
                total += loss
                update += 1
                if first + size >= len(order):
                    self.losses.append(total / len(order))
                    self.epoch += 1
                yield

    def _add_gradients(
        self, batch: Sequence[tuple[float, ...]], values: list[float]
    ) -> Generator[None, None, tuple[float, list[float]]]:
        """Return the loss and its gradient, both summed over a batch; pause after some samples."""
        sums = [0.0] * (1 + len(values))
        for count, row in enumerate(batch, start=1):
            results = self._compute_loss_and_gradient((*row, *values))
            sums = [total + result for total, result in zip(sums, results, strict=True)]
            if count % _SAMPLES_AT_A_TIME == 0:
                yield
        return sums[0], sums[1:]

    def _create_nonfinite_error(
        self, batch: Sequence[tuple[float, ...]], update: int
    ) -> NonFiniteError:
        """Create the error that names the first value that is not finite."""
        position = f"training stopped at step {update + 1:,} (epoch {self.epoch + 1})"
        hint = _DIVERGED if update else "the first update failed: check the data and the loss"
        origin, point = None, dict[str, float]()
        for row in batch:
            point = self._create_point(row)
            origin = why(graph_with_loss(self.graph, self.loss), {**self.parameters, **point})
            if origin is not None:
                break
        if origin is None:
            message = f"{position}: the sum over the samples is not finite"
            return NonFiniteError(message, hint=hint)
        inputs = ", ".join(f"{name} = {format_number(value, 6)}" for name, value in point.items())
        error = NonFiniteError(f"{position}: {origin.sentence} ({inputs})", hint=hint)
        error.why = origin
        return error

    def _create_point(self, row: Sequence[float]) -> dict[str, float]:
        """Return the inputs and targets of a row, keyed by their names in the graph with loss."""
        terms = build_loss(tape(self.graph), self.loss)
        targets = [input_name(self.graph, column) for column in terms.columns.values()]
        return dict(zip((*self.graph.inputs, *targets), row, strict=False))


def _compile_update_rule(
    optimizer: str, parameters: int
) -> Callable[[int, float, float, float], float]:
    """Compile the rule of an optimizer, with a separate state for each parameter.

    Returns:
        A function of the index of a parameter, its value, its gradient and the learning rate, which
        returns the new value and stores the new state.
    """
    row = OPTIMIZER_TABLE[check_choice("optimizer", optimizer, SCALAR_OPTIMIZERS)]
    statements = parse_statements(row.formula)
    names = find_state_names(statements)
    inputs = ("p", "g", "rate", "t", *names)
    evaluate = _FloatTape(
        build_statement_tape(statements, row.hyper, inputs=inputs), inputs, ["p", *names]
    )
    # For each parameter: the number of updates, and the state variables.
    state = [[0.0] * (1 + len(names)) for _ in range(parameters)]

    def update(index: int, value: float, slope: float, rate: float) -> float:
        """Return the new value of a parameter, and store its new state."""
        count, *latest = state[index]
        result, *latest = evaluate((value, slope, rate, count + 1.0, *latest))
        state[index] = [count + 1.0, *latest]
        return result

    return update
