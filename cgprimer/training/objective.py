"""Loss and gradient over a dataset, compiled once and called for every update."""

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
from cgprimer.core.evaluation.engines import Engine
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
_MAX_TRAINERS = 16  # per graph; rules with regularizers and bounds are created for each run
_ENGINES = ("auto", "plain", "numpy", "cpu", "cuda")  # built-in engines, which nobody can replace
_METHODS = ("reverse", "forward", "symbolic", "path-sum", "finite-difference")


def check_learnable(graph: ExpressionGraph) -> None:
    """Raise UsageError if a graph cannot be trained: it has no parameters or no outputs."""
    if not graph.parameters:
        hint = "add a parameter: a name without a definition that does not begin with x"
        raise UsageError("the graph has no parameters to train", hint=hint)
    if not graph.outputs:
        raise UsageError("the graph has no output to compare with the data")


def _check_arguments(
    graph: ExpressionGraph,
    loss: str,
    method: str,
    dtype: str,
    options: Mapping[str, Any] | None,
    samples: int | None,
) -> None:
    """Check the types of the arguments of an objective, and that its graph can be trained."""
    check_graph(graph)
    check_type("loss", loss, str, "an expression or a name (register_loss)")
    check_type("method", method, str, "a name")
    check_type("dtype", dtype, str, "a name")
    check_type("options", options or {}, Mapping, "a mapping")
    check_learnable(graph)
    if samples is not None:
        check_real_number("samples", samples)


def _compute_without_cache(graph: ExpressionGraph, key: Any, compute: Callable[[], Any]) -> Any:
    """Call a function without caching its result; a substitute for :func:`compute_once`."""
    return compute()


class Objective:
    """The loss of a graph over samples, and its gradient with respect to all parameters.

    Parameters and gradient are vectors, in the order of ``vectors.elements``. A graph with arrays
    runs on arrays or is expanded into scalars, as the engine requires, or else as is faster.

    Args:
        graph, loss, method, engine, dtype, options: as in :func:`loss_and_gradient`.
        samples: total number of samples of all calls, from which ``engine="auto"`` chooses.
        mode: how layers are expanded; with ``training``, dropout masks are columns.
        free: 1 or 0 for each element; elements with 0 are not differentiated, and their derivative
            is 0.
        dataset: a dataset with the columns that the loss can use.
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
        _check_arguments(graph, loss, method, dtype, options, samples)
        self.arguments = {  # to create an equal objective in another process
            "loss": loss, "method": method, "engine": engine, "dtype": dtype, "options": options,
            "samples": samples, "mode": mode, "free": free,
        }  # fmt: skip
        options = options or {}
        self.graph, self.vectors, self.dtype = graph, ParameterVectors(graph), dtype
        self.loss, self.function = loss, find_loss_function(loss)
        column_shapes = None if dataset is None else find_column_shapes(dataset)
        # For a Python function, the target is the derivative with respect to the output.
        term = "out*target" if self.function else loss
        self.whole = tape(graph, mode)
        self.terms = build_loss(self.whole, term, extra=column_shapes)
        if self.function:
            self._prepare_function(self.function)
        engine = self._choose_representation(method, options, engine, samples)
        self.parameters = self.vectors.elements if self.in_numbers else graph.parameters
        self.wrt, self.places = self._select_differentiated_parameters(free)
        title = f"loss {unparse(self.terms.expression)}"
        key = ("objective", title, str(column_shapes), mode, method, self.in_numbers, self.wrt)
        # A second run of a graph reuses the program, unless a user can replace what a name means.
        is_cacheable = engine in _ENGINES and method in _METHODS and not (options or self.function)
        reuse = (
            compute_once if is_cacheable and memory_caching_enabled() else _compute_without_cache
        )
        self.program: DerivativeProgram = reuse(
            graph, key, partial(self._derive_program, method, options, title)
        )
        selected = choose_engine(engine, self.program, samples)
        # The key has no number of samples, so learning curves are cheap.
        self.runner: Runner
        self._trainers: Trainers
        self.runner, self._trainers = reuse(
            graph, (*key, selected.name, dtype), partial(self._compile_program, selected)
        )
        # Matrices in single precision are also updated in it, which halves the memory traffic.
        keeps_arrays = self.whole.has_arrays and not self.in_numbers
        self.precision = np.dtype(dtype if keeps_arrays else float)
        self._run_vectors = create_vector_runner(
            self.runner, self.parameters, self.wrt, self.vectors
        )
        engine_used = self.runner.selected_engine
        self.layers = Layers(graph, self.whole, self.terms, engine_used, self.in_numbers, dtype)

    def _prepare_function(self, function: Callable[[Any, Any], Any]) -> None:
        """Set up a loss that cannot be recorded as a graph; Python computes its derivatives.

        Raises:
            UsageError: the graph has layers.
        """
        if self.graph.layered:
            raise UsageError(
                f"dropout and batchnorm require a loss that can be recorded, got {self.loss!r}"
            )
        self.counts = partial(compute_loss_derivatives, function, self.whole, self.terms.columns)
        warn_user(f"the loss {self.loss!r} cannot be recorded; Python runs it sample by sample")

    def _choose_representation(
        self, method: str, options: Mapping[str, Any], engine: str, samples: int | None
    ) -> str:
        """Choose between arrays and scalars, and return the name of a suitable engine."""
        has_arrays = self.whole.has_arrays
        if self.function and has_arrays:
            engine = "plain"
        self.in_numbers = has_arrays and prefers_scalars(
            self.whole, method, options, engine, samples
        )
        if has_arrays and not self.in_numbers and engine == "auto":
            return "auto" if estimate_scalar_cost(self.whole)[0] > FEW else "plain"
        return engine

    def _derive_program(
        self, method: str, options: Mapping[str, Any], title: str
    ) -> DerivativeProgram:
        """Differentiate the loss with respect to the parameters, or load a cached program."""
        nodes = postorder(self.terms.expression)
        operations = {node.primitive for node in nodes if isinstance(node, Apply)}
        return load_or_differentiate(
            self.whole,
            of=LOSS,
            wrt=self.wrt,
            method=method,
            prepare=lambda: scalarize(self.primal) if self.in_numbers else self.primal,
            about=title,
            keep=not self.whole.has_arrays
            and operations.isdisjoint(ARRAY_FUNCTIONS)
            and all(map(_is_built_in, operations)),
            **options,
        )

    def _compile_program(self, engine: Engine) -> tuple[Runner, Trainers]:
        """Compile the derivative program; return its runner and an empty cache of trainers."""
        return Runner(self.program, engine=engine, reduction="sum", dtype=self.dtype), {}

    def _select_differentiated_parameters(
        self, free: Array | None
    ) -> tuple[tuple[str, ...], Array | None]:
        """Return the names of the differentiated parameters and their indices; None for all.

        An array is differentiated as a whole, unless the graph is expanded into scalars.
        """
        if free is None or np.all(free):
            return self.parameters, None
        if self.in_numbers or self.vectors.has_scalars_only:
            at = np.flatnonzero(free)
            return tuple(self.vectors.elements[k] for k in at), at
        is_free = self.vectors.parts(np.asarray(free) != 0)
        wrt = tuple(n for n in self.graph.parameters if is_free[n].any())
        places = self.vectors.parts(np.arange(len(free)))
        return wrt, np.concatenate([places[n].ravel() for n in wrt])

    def spread(self, gradient: Array) -> Array:
        """Expand a gradient to all elements, with 0 for elements that are not differentiated."""
        if self.places is None:
            return gradient
        expanded = np.zeros(len(self.vectors), gradient.dtype)
        expanded[self.places] = gradient
        return expanded

    @cached_property
    def primal(self) -> Tape:
        """The tape of the graph with the loss of a sample as its output."""
        return attach_to_tape(self.whole, self.terms)

    def columns(self, dataset: Dataset) -> dict[str, Array]:
        """Convert the columns of a dataset to the dtype, keyed by their names on the tape.

        Raises:
            DataError: as :func:`cgprimer.training.losses.convert_sample_columns`.
        """
        columns, shapes = convert_sample_columns(
            self.graph, self.loss, self.terms.columns, dataset, self.dtype
        )
        return split_arrays(columns, shapes) if self.in_numbers else columns

    def resident(self, columns: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return the columns in the engine's memory; copy them if it is separate, as on a GPU."""
        move = getattr(self.runner.selected_engine, "resident", None)
        return columns if move is None else move(columns)

    def trainer(self, rule: Optimizer, batch: int, summed: bool = False) -> Trainer | None:
        """Return a trainer that runs epochs in the engine; None if a Python loop is needed.

        Args:
            rule: the optimizer.
            batch: samples per update.
            summed: whether updates use the gradient of the sum over a batch instead of the mean.
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
            warn_user(f"{error}; Python runs its updates one by one")
            return None
        loss, *evaluated = tape.outputs
        output_of = dict(zip(self.wrt, evaluated, strict=True))
        gradients = [output_of.get(name, "") for name in self.parameters]
        compiled_trainer: Trainer | None = make(
            tape,
            loss=loss,
            gradients=gradients,
            parameters=self.parameters,
            rule=replace(update, summed=summed),
            dtype=self.dtype,
            batch=batch,
        )
        if len(self._trainers) < _MAX_TRAINERS:
            self._trainers[rule, batch, summed] = compiled_trainer
        return compiled_trainer

    def single(self, names: Sequence[str]) -> Callable[[Sequence[float], Array], Point]:
        """Return a function that maps a sample and the parameters to the loss and its gradient.

        It computes with Python floats: a call to numpy takes twenty times as long as a sample.

        Args:
            names: names of the columns, in the order of the values of a sample.
        """
        if self.function is not None:
            return lambda sample, values: self.sums(
                {n: np.array([v]) for n, v in zip(names, sample, strict=True)}, values, 1
            )
        tape = merge_passes(self.program)
        if tape is None:
            runner = Runner(replace(self.program, tape=optimize(self.program.executed)))

            def run_passes(sample: Sequence[float], values: Array) -> Point:
                """Compute loss and gradient of a sample by running the passes one by one."""
                scalars = dict(zip(self.parameters, values.tolist(), strict=True))
                evaluated = runner(dict(zip(names, sample, strict=True)), scalars, 1)
                gradient = [evaluated.derivatives[LOSS, name] for name in self.wrt]
                return evaluated.values[LOSS], self.spread(np.array(gradient))

            return run_passes
        tape = optimize(tape)
        place = {name: k for k, name in enumerate((*names, *self.parameters))}
        order = [place[f.name] for f in tape.leaves if f.kind != "constant"]
        constants = [f.value for f in tape.leaves if f.kind == "constant"]  # the last leaves
        steps, outputs = (
            prepare_instructions(tape, float_arithmetic.float_function),
            list(tape.outputs.values()),
        )

        def run_merged_passes(sample: Sequence[float], values: Array) -> Point:
            """Compute loss and gradient of a sample by running all passes as one tape."""
            point = (*sample, *values.tolist())
            evaluated = evaluate_instructions(steps, [*[point[k] for k in order], *constants])
            loss, *gradient = [evaluated[k] for k in outputs]
            return loss, self.spread(np.array(gradient))

        return run_merged_passes

    def sums(self, columns: Mapping[str, Array], values: Array, samples: int) -> Point:
        """Compute the loss and its gradient at a parameter vector, both summed over the samples."""
        if self.function is not None:
            losses, counts = self.counts(columns, self.vectors.values(values))
            return float(losses.sum()), self._run_program({**columns, **counts}, values, samples)[1]
        return self._run_program(columns, values, samples)

    def _run_program(self, columns: Mapping[str, Array], values: Array, samples: int) -> Point:
        """Run the derivative program; return the summed loss and its summed gradient."""
        if self._run_vectors is not None:
            loss, gradient = self._run_vectors(columns, values, samples)
            return loss, self.spread(gradient)
        evaluated = self.runner(columns, self.scalars(values), samples)
        parts: Any = [evaluated.derivatives[LOSS, name] for name in self.wrt]
        if self.program.shapes:
            flat = [np.ravel(part) for part in parts]
            parts = np.concatenate(flat, dtype=self.precision, casting="same_kind")
        return float(evaluated.values[LOSS]), self.spread(np.asarray(parts, self.precision))

    def scalars(self, values: Array) -> dict[str, Any]:
        """Convert a parameter vector to values keyed by their names on the tape."""
        if self.in_numbers or self.vectors.has_scalars_only:
            return dict(zip(self.parameters, np.asarray(values, float).tolist(), strict=True))
        return self.vectors.parts(values)

    def mean_loss(
        self, columns: Mapping[str, Array], samples: int, values: Array, running: Mapping[str, Any]
    ) -> float:
        """Compute the mean loss over samples in inference mode, with given running statistics.

        Without layers, the compiled program of training is used.
        """
        if not self.layers:
            return self.sums(columns, values, samples)[0] / samples
        return self.layers.mean_loss(columns, {**self.scalars(values), **running}, samples)


def _is_built_in(operation: str | Operator) -> bool:
    """Return whether an operation is a built-in primitive."""
    return isinstance(operation, str) and find_primitive(operation).built_in


class ResidentData:
    """A dataset in the memory of the engine, such as a GPU, loaded one block at a time."""

    def __init__(self, objective: Objective, dataset: Dataset | Blocks) -> None:
        self.objective, self.dataset = objective, dataset
        self._loaded: tuple[int, Mapping[str, Array], Mapping[str, Array]] = -1, {}, {}
        self.block(0)  # report errors in the data before training

    def block(self, number: int) -> tuple[Mapping[str, Array], Mapping[str, Array]]:
        """Return a block's columns twice: in Python's memory and in the engine's memory."""
        if self._loaded[0] != number:
            self._loaded = -1, {}, {}  # free the memory before allocating more
            columns = self.objective.columns(self.dataset.block(number))
            self._loaded = number, columns, self.objective.resident(columns)
        return self._loaded[1:]

    def sums(self, values: Array) -> tuple[float, Array]:
        """Compute the loss and its gradient, both summed over all samples."""
        total: Any = 0.0, 0.0
        for k, samples in enumerate(self.dataset.lengths):
            loss, gradient = self.objective.sums(self.block(k)[1], values, samples)
            total = total[0] + loss, total[1] + gradient
        return total[0], total[1]

    def mean_loss(self, values: Array, running: Mapping[str, Any]) -> float:
        """Compute the mean loss over samples in inference mode, with given running statistics."""
        lengths, mean = self.dataset.lengths, self.objective.mean_loss
        total_samples = sum(lengths)
        return sum(
            mean(self.block(k)[1], samples, values, running) * (samples / total_samples)
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
    """Return a function from the parameters to the loss over a dataset and its gradient.

    The gradient with respect to a parameter has the shape of the parameter. Work that does not
    depend on the parameters is done once. Contiguous columns of the right dtype are not copied
    (except to a GPU), so do not modify them while you call the function.

    Args:
        graph: the graph.
        dataset: inputs and targets, as for :func:`cgprimer.train`.
        loss: a name (``squared-error``, ``half-squared-error``, ``absolute-error``, ``huber(1)``,
            ``cross-entropy``, ``cross-entropy-logit``, ``softmax-cross-entropy``, ``hinge``, or a
            registered loss), an expression in ``out`` and ``target`` or in names of the graph and
            of columns, or ``output`` if the output of the graph is the loss.
        reduction: ``sum`` or ``mean`` over the samples.
        method, engine, options: as in :func:`cgprimer.gradient`.
        dtype: ``float64`` or ``float32``.

    Raises:
        DataError: a column is missing, or its shape differs from that in the graph.
        UsageError: an unknown name, or a graph without parameters or outputs.

    The function raises MissingValueError for a parameter without a value, ShapeError for a wrong
    shape, and EngineError or UsageError for a value that is not a real number.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa")
    >>> data = cgprimer.Dataset.from_arrays(inputs={"xa": [1.0, 2.0]}, targets={"xw": [3.0, 6.0]})
    >>> loss_and_gradient(graph, data)({"k": 2.0})
    (5.0, {'k': -10.0})
    """
    check_graph(graph)
    check_choice("reduction", reduction, ("sum", "mean"))
    settings = {"loss": loss, "method": method, "engine": engine, "dtype": dtype}
    samples = len(dataset := load_samples(graph, dataset, loss))
    objective = Objective(graph, options=options, samples=samples, dataset=dataset, **settings)
    resident = ResidentData(objective, dataset)
    if reduction == "mean" and samples == 0:
        raise DataError("the mean loss requires at least one sample")
    scale = 1.0 / samples if reduction == "mean" else 1.0
    vectors = resident.objective.vectors

    def compute_loss_and_gradient(parameters: Mapping[str, Any]) -> tuple[float, dict[str, Any]]:
        """Compute the loss and its gradient, keyed by parameter."""
        total, gradient = resident.sums(vectors.vector(parameters))
        return total * scale, vectors.values(gradient * scale)

    return compute_loss_and_gradient
