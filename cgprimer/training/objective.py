"""Loss and gradient over a dataset, compiled once and called at every step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from cgprimer.backends.interfaces import Trainer
from cgprimer.backends.plans.optimization import optimize
from cgprimer.backends.program_cache import load_or_differentiate, merge_passes
from cgprimer.core.evaluation.engine_choice import choose_engine
from cgprimer.core.evaluation.evaluator import evaluate_instructions, prepare_instructions
from cgprimer.core.evaluation.graph_cache import compute_once
from cgprimer.core.evaluation.runner import Runner
from cgprimer.core.graph import check_graph
from cgprimer.core.language.syntax_tree import Operator
from cgprimer.core.loss_expressions import LOSS
from cgprimer.core.loss_node import attach_to_tape, build_loss
from cgprimer.core.operations import find_primitive, float_arithmetic
from cgprimer.core.operations.primitive_registry import ARRAY_FUNCTIONS
from cgprimer.core.tape.scalarization import estimate_scalar_cost, split_arrays
from cgprimer.errors import DataError, TapeError, UsageError
from cgprimer.expressions import Apply, ExpressionGraph, postorder, unparse
from cgprimer.support.caller_warnings import warn_user
from cgprimer.support.disk_cache import memory_caching_enabled
from cgprimer.support.garbage_collection import pause_garbage_collection
from cgprimer.support.type_checks import check_type
from cgprimer.support.validation import check_choice, check_real_number
from cgprimer.tapes import DerivativeProgram, Tape, scalarize, tape
from cgprimer.training.data import Blocks, Dataset
from cgprimer.training.gradient_forms import FEW, Point, create_vector_runner, prefers_scalars
from cgprimer.training.layer_states import Layers
from cgprimer.training.losses import (
    compute_loss_derivatives,
    convert_sample_columns,
    find_column_shapes,
    find_loss_function,
    load_samples,
)
from cgprimer.training.parameter_vector import ParameterVectors
from cgprimer.training.update_rules import Optimizer, record_update

Array = Any
Trainers = dict[tuple[Optimizer, int, bool], Trainer | None]
_MOST_TRAINERS = 16  # of a graph; rules with regularizers and bounds are new in each run
_ENGINES = ("auto", "plain", "numpy", "cpu", "cuda")  # that nobody can register anew
_METHODS = ("reverse", "forward", "symbolic", "path-sum", "finite-difference")


def check_learnable(graph: ExpressionGraph) -> None:
    """Raise UsageError for a graph without parameters or outputs."""
    if not graph.parameters:
        hint = "names that do not begin with x, and that no expression defines, are parameters"
        raise UsageError("the graph has no parameters to learn", hint=hint)
    if not graph.outputs:
        raise UsageError("the graph has no output, so there is nothing to compare with data")


class Objective:
    """The loss of a graph over samples, and its gradient with respect to all parameters.

    Arguments are those of :func:`loss_and_gradient`; `samples` says how many there will be in all
    runs together, for ``engine="auto"`` to go by, and `mode` how layers are written out: with
    ``training``, masks are columns besides those of a dataset; `dataset` says what columns there
    are. Parameters and gradient are vectors of all their numbers, in the order of
    ``vectors.elements``. Where `free` is 0 and not 1, numbers are not differentiated, and their
    part of the gradient is zero.

    A graph with arrays runs with arrays, or written out in numbers: as the engine wants it, and
    where the engine is open, as is faster.
    """

    @pause_garbage_collection()
    def __init__(
        self,
        graph: ExpressionGraph,
        *,
        loss: str = "squared-error",
        method: str = "reverse",
        engine: str = "auto",
        dtype: str = "float64",
        options: Mapping[str, Any] | None = None,
        samples: int | None = None,
        mode: str = "batch",
        free: Array | None = None,
        dataset: Dataset | Blocks | None = None,
    ) -> None:
        check_graph(graph)
        check_type("loss", loss, str, "an expression or a name (register_loss)")
        check_type("method", method, str, "a name")
        check_type("dtype", dtype, str, "a name")
        check_type("options", options or {}, Mapping, "a mapping")
        check_learnable(graph)
        if samples is not None:
            check_real_number("samples", samples)
        self.arguments = {  # of one like it elsewhere
            "loss": loss, "method": method, "engine": engine, "dtype": dtype, "options": options,
            "samples": samples, "mode": mode, "free": free,
        }  # fmt: skip
        self.graph, self.vectors, self.dtype = graph, ParameterVectors(graph), dtype
        self.loss, self.function = loss, find_loss_function(loss)
        given = None if dataset is None else find_column_shapes(dataset)
        term = "out*target" if self.function else loss  # how much an output counts is the target
        self.whole = tape(graph, mode)
        self.terms = build_loss(self.whole, term, extra=given)
        nodes = postorder(self.terms.expression)
        rows = {node.primitive for node in nodes if isinstance(node, Apply)}
        shaped = self.whole.has_arrays
        if self.function:
            if graph.layered:
                raise UsageError(f"the loss {loss!r} cannot be recorded, as layers need it to be")
            engine = "plain" if shaped else engine
            self.counts = partial(
                compute_loss_derivatives, self.function, self.whole, self.terms.columns
            )
            said = f"the loss {loss!r} cannot be recorded; Python runs it sample by sample"
            warn_user(said)
        self.in_numbers = shaped and prefers_scalars(
            self.whole, method, options or {}, engine, samples
        )
        if shaped and not self.in_numbers and engine == "auto":
            engine = "auto" if estimate_scalar_cost(self.whole)[0] > FEW else "plain"
        self.parameters = self.vectors.elements if self.in_numbers else graph.parameters
        self.wrt, self.places = self._differentiated(free)
        about = f"loss {unparse(self.terms.expression)}"

        def derived() -> DerivativeProgram:
            return load_or_differentiate(
                self.whole,
                of=LOSS,
                wrt=self.wrt,
                method=method,
                prepare=lambda: scalarize(self.primal) if self.in_numbers else self.primal,
                about=about,
                keep=not shaped and rows.isdisjoint(ARRAY_FUNCTIONS) and all(map(_built_in, rows)),
                **(options or {}),
            )

        def compiled() -> tuple[Runner, Trainers]:
            return Runner(self.program, engine=chosen, reduction="sum", dtype=dtype), {}

        # A second run of a graph begins at once; not by names that may mean others tomorrow.
        own = engine in _ENGINES and method in _METHODS and not (options or self.function)
        own = own and memory_caching_enabled()
        key = ("objective", about, str(given), mode, method, self.in_numbers, self.wrt)
        self.program = compute_once(graph, key, derived) if own else derived()
        chosen = choose_engine(engine, self.program, samples)
        of_engine = (*key, chosen.name, dtype)  # however many samples: a curve over them is cheap
        self.runner, self._trainers = (
            compute_once(graph, of_engine, compiled) if own else compiled()
        )
        # Matrices in single precision are updated in it, too: half the memory to go through.
        self.precision = np.dtype(dtype if shaped and not self.in_numbers else float)
        self._run_vectors = create_vector_runner(
            self.runner, self.parameters, self.wrt, self.vectors
        )
        numbers = self.in_numbers
        engine_used = self.runner.selected_engine
        self.layers = Layers(graph, self.whole, self.terms, engine_used, numbers, dtype)

    def _differentiated(self, free: Array | None) -> tuple[tuple[str, ...], Array | None]:
        """Which parameters are, and their numbers' places in the vector; None where that is all.

        An array is differentiated as a whole, unless the graph is written out in numbers.
        """
        if free is None or np.all(free):
            return self.parameters, None
        if self.in_numbers or self.vectors.has_scalars_only:
            at = np.flatnonzero(free)
            return tuple(self.vectors.elements[k] for k in at), at
        whole = self.vectors.parts(np.asarray(free) != 0)
        wrt = tuple(n for n in self.graph.parameters if whole[n].any())
        places = self.vectors.parts(np.arange(len(free)))
        return wrt, np.concatenate([places[n].ravel() for n in wrt])

    def spread(self, gradient: Array) -> Array:
        """The derivatives, with zeros for what is not differentiated."""
        if self.places is None:
            return gradient
        whole = np.zeros(len(self.vectors), gradient.dtype)
        whole[self.places] = gradient
        return whole

    @cached_property
    def primal(self) -> Tape:
        """The graph's tape with the loss of a sample as its output."""
        return attach_to_tape(self.whole, self.terms)

    def columns(self, dataset: Dataset) -> dict[str, Array]:
        """The dataset's columns under the tape's names, in the dtype of the computation.

        Raises:
            DataError: as :func:`cgprimer.training.losses.convert_sample_columns`.
        """
        columns, shapes = convert_sample_columns(
            self.graph, self.loss, self.terms.columns, dataset, self.dtype
        )
        return split_arrays(columns, shapes) if self.in_numbers else columns

    def resident(self, columns: Mapping[str, Array]) -> Mapping[str, Array]:
        """The columns where the engine wants them: a GPU keeps them in its own memory."""
        move = getattr(self.runner.selected_engine, "resident", None)
        return columns if move is None else move(columns)

    def trainer(self, rule: Optimizer, batch: int, summed: bool = False) -> Trainer | None:
        """Epochs inside the engine; None where it cannot, so that the loop is Python's.

        They go down the gradient of the mean over a batch, or of the sum.
        """
        if (rule, batch, summed) in self._trainers:
            return self._trainers[rule, batch, summed]
        make: Any = getattr(self.runner.selected_engine, "trainer", None)
        arrays = make is None or self.program.tape.has_arrays or self.function
        tape = None if arrays else merge_passes(self.program)
        if tape is None:
            return None
        try:
            update = record_update(rule)
        except TapeError as error:
            warn_user(f"{error}; Python does its steps one by one")
            return None
        loss, *found = tape.outputs
        known = dict(zip(self.wrt, found, strict=True))
        gradients = [known.get(name, "") for name in self.parameters]
        made: Trainer | None = make(
            tape,
            loss=loss,
            gradients=gradients,
            parameters=self.parameters,
            rule=replace(update, summed=summed),
            dtype=self.dtype,
            batch=batch,
        )
        if len(self._trainers) < _MOST_TRAINERS:
            self._trainers[rule, batch, summed] = made
        return made

    def single(self, names: Sequence[str]) -> Callable[[Sequence[float], Array], Point]:
        """A function from a sample and the parameters' values to loss and gradient.

        It runs on Python's floats: a call of numpy takes twenty times as long as a sample. A
        sample gives the columns in the order of the names.
        """
        if self.function is not None:
            return lambda sample, values: self.sums(
                {n: np.array([v]) for n, v in zip(names, sample, strict=True)}, values, 1
            )
        tape = merge_passes(self.program)
        if tape is None:
            runner = Runner(replace(self.program, tape=optimize(self.program.executed)))

            def pass_by_pass(sample: Sequence[float], values: Array) -> Point:
                scalars = dict(zip(self.parameters, values.tolist(), strict=True))
                found = runner(dict(zip(names, sample, strict=True)), scalars, 1)
                gradient = [found.derivatives[LOSS, name] for name in self.wrt]
                return found.values[LOSS], self.spread(np.array(gradient))

            return pass_by_pass
        tape = optimize(tape)
        place = {name: k for k, name in enumerate((*names, *self.parameters))}
        order = [place[f.name] for f in tape.leaves if f.kind != "constant"]
        constants = [f.value for f in tape.leaves if f.kind == "constant"]  # they stand last
        steps, outputs = (
            prepare_instructions(tape, float_arithmetic.float_function),
            list(tape.outputs.values()),
        )

        def in_one_pass(sample: Sequence[float], values: Array) -> Point:
            point = (*sample, *values.tolist())
            found = evaluate_instructions(steps, [*[point[k] for k in order], *constants])
            loss, *gradient = [found[k] for k in outputs]
            return loss, self.spread(np.array(gradient))

        return in_one_pass

    def sums(self, columns: Mapping[str, Array], values: Array, samples: int) -> Point:
        """Loss and gradient, both summed over the samples; values and gradient as `parameters`."""
        if self.function is not None:
            losses, counts = self.counts(columns, self.vectors.values(values))
            return float(losses.sum()), self._sums({**columns, **counts}, values, samples)[1]
        return self._sums(columns, values, samples)

    def _sums(self, columns: Mapping[str, Array], values: Array, samples: int) -> Point:
        if self._run_vectors is not None:
            loss, gradient = self._run_vectors(columns, values, samples)
            return loss, self.spread(gradient)
        found = self.runner(columns, self.scalars(values), samples)
        parts: Any = [found.derivatives[LOSS, name] for name in self.wrt]
        if self.program.shapes:
            flat = [np.ravel(part) for part in parts]
            parts = np.concatenate(flat, dtype=self.precision, casting="same_kind")
        return float(found.values[LOSS]), self.spread(np.asarray(parts, self.precision))

    def scalars(self, values: Array) -> dict[str, Any]:
        """The parameters by their names on the tape."""
        if self.in_numbers or self.vectors.has_scalars_only:
            return dict(zip(self.parameters, np.asarray(values, float).tolist(), strict=True))
        return self.vectors.parts(values)

    def mean_loss(
        self, columns: Mapping[str, Array], samples: int, values: Array, running: Mapping[str, Any]
    ) -> float:
        """The mean loss over samples: of layers, as they are used with these running statistics.

        Without layers it is by the program that training runs, which is compiled.
        """
        if not self.layers:
            return self.sums(columns, values, samples)[0] / samples
        return self.layers.mean_loss(columns, {**self.scalars(values), **running}, samples)


def _built_in(row: str | Operator) -> bool:
    return isinstance(row, str) and find_primitive(row).built_in


class ResidentData:
    """A dataset's columns where the engine wants them, of blocks those of one at a time."""

    def __init__(self, objective: Objective, dataset: Dataset | Blocks) -> None:
        self.objective, self.dataset = objective, dataset
        self._held: tuple[int, Mapping[str, Array], Mapping[str, Array]] = -1, {}, {}
        self.block(0)  # what is wrong there is said before any work

    def block(self, number: int) -> tuple[Mapping[str, Array], Mapping[str, Array]]:
        """The columns of a block, and what the engine has of them."""
        if self._held[0] != number:
            self._held = -1, {}, {}  # its memory is free before more is taken
            columns = self.objective.columns(self.dataset.block(number))
            self._held = number, columns, self.objective.resident(columns)
        return self._held[1:]

    def sums(self, values: Array) -> tuple[float, Array]:
        """The sums over all samples of the loss and of its gradient."""
        total: Any = 0.0, 0.0
        for k, samples in enumerate(self.dataset.lengths):
            loss, gradient = self.objective.sums(self.block(k)[1], values, samples)
            total = total[0] + loss, total[1] + gradient
        return total[0], total[1]

    def mean_loss(self, values: Array, running: Mapping[str, Any]) -> float:
        """The mean loss over all samples, with these running statistics."""
        lengths, mean = self.dataset.lengths, self.objective.mean_loss
        whole = sum(lengths)
        return sum(
            mean(self.block(k)[1], samples, values, running) * (samples / whole)
            for k, samples in enumerate(lengths)
            if samples
        )


def loss_and_gradient(
    graph: ExpressionGraph,
    dataset: Any,
    *,
    loss: str = "squared-error",
    reduction: str = "sum",
    method: str = "reverse",
    engine: str = "auto",
    dtype: str = "float64",
    **options: Any,
) -> Callable[[Mapping[str, Any]], tuple[float, dict[str, Any]]]:
    """A function from parameters to the loss over a dataset and its gradient.

    A parameter is a number or an array of its shape, and so is its part of the gradient.

    Everything that does not depend on the parameters is done once, here. Columns that are
    contiguous and of the computation's type are not copied (a GPU has its own copy): leave the
    arrays alone as long as the function is called.

    Args:
        graph: the graph.
        dataset: inputs and targets, as for :func:`cgprimer.train`.
        loss: a name (``squared-error``, ``half-squared-error``, ``absolute-error``, ``huber(1)``,
            ``cross-entropy``, ``cross-entropy-logit``, ``softmax-cross-entropy``, ``hinge``, or one
            that was registered), an expression in ``out`` and ``target``, or in names of the graph
            and of the dataset's columns, or ``output`` where the graph's output is the loss.
        reduction: ``sum`` or ``mean`` over the samples.
        method, engine, options: as in :func:`cgprimer.gradient`.
        dtype: ``float64`` or ``float32``.

    Raises:
        DataError: the dataset lacks a column, or one has another shape than the graph says.
        UsageError: an unknown name, or a graph without parameters or outputs.

    The function raises MissingValueError for a parameter without a value, ShapeError for one of
    another shape, and EngineError or UsageError for a value that is no real number.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa")
    >>> data = cgprimer.Dataset.from_arrays(inputs={"xa": [1.0, 2.0]}, targets={"xw": [3.0, 6.0]})
    >>> loss_and_gradient(graph, data)({"k": 2.0})
    (5.0, {'k': -10.0})
    """
    check_graph(graph)
    check_choice("reduction", reduction, ("sum", "mean"))
    given = {"loss": loss, "method": method, "engine": engine, "dtype": dtype}
    samples = len(dataset := load_samples(graph, dataset, loss))
    objective = Objective(graph, options=options, samples=samples, dataset=dataset, **given)
    resident = ResidentData(objective, dataset)
    if reduction == "mean" and samples == 0:
        raise DataError("the mean over no samples is not defined")
    scale = 1.0 / samples if reduction == "mean" else 1.0
    vectors = resident.objective.vectors

    def call(parameters: Mapping[str, Any]) -> tuple[float, dict[str, Any]]:
        total, gradient = resident.sums(vectors.vector(parameters))
        return total * scale, vectors.values(gradient * scale)

    return call
