"""Losses in training: registered losses, and the columns of a dataset that a loss needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cgprimer.core.loss_expressions import (
    LOSSES,
    OUTPUT,
    SOFTMAX,
    check_class_indices,
    check_target,
    check_values,
    parse_loss,
    parse_loss_name,
)
from cgprimer.core.loss_node import Column, build_loss, input_name
from cgprimer.core.operations.array_shapes import format_shape
from cgprimer.errors import DataError, TapeError, UsageError, name_hint
from cgprimer.expressions import (
    Apply,
    Expression,
    ExpressionGraph,
    Name,
    Number,
    Shape,
    names_in,
    unparse,
)
from cgprimer.support.array_values import all_finite, find_nonfinite
from cgprimer.support.caller_warnings import warn_user
from cgprimer.tapes import Builder, Tape, elements, tape, values_of
from cgprimer.training.data import Blocks, Dataset, resolve_dataset
from cgprimer.training.data.data_sources import list_column_names
from cgprimer.training.data.dataset_columns import find_column
from cgprimer.training.recorded_values import RecordedValue

Settings = Any  #: of :mod:`cgprimer.training.settings`, which imports this module
Array = Any
DEFAULT = "squared-error"
LossFunction = Callable[[Any, Any], Any]
_TRIALS = ((0.25, 1.0), (0.75, 0.0), (2.0, -1.0), (-1.5, 1.0), (0.5, 0.5))  # out and target
_MAX_NODES = 1_000  # nodes of the expression of a recorded function


def register_loss(name: str, loss: str | LossFunction) -> None:
    """Register a loss, so that ``train(..., loss=name)`` finds it.

    A function is called once with values that record its operations, and becomes an expression. If
    it cannot be recorded (because of an ``if``, for example), Python calls it for each sample of
    each update with a :class:`cgprimer.Value`, and a warning says so. Packages register losses by
    an entry point of the group ``cgprimer.losses`` that refers to the expression or the function.

    Args:
        name: the new name.
        loss: the loss of a sample: an expression in ``out`` (the output) and ``target``, or a
            function of both.

    Raises:
        UsageError: the name is in use, the expression contains other names, or the function does
            not return a number for two numbers.
        SourceError: the string is not a valid expression.

    >>> register_loss("log-cosh", lambda out, target: np.log(np.cosh(out - target)))
    >>> unparse(parse_loss("log-cosh"))
    'log(cosh(out - target))'
    >>> import cgprimer
    >>> data = cgprimer.Dataset.from_arrays({"xa": [1.0]}, {"xw": [1.0]})
    >>> cgprimer.loss_and_gradient(cgprimer.parse("xw = k*xa"), data, loss="log-cosh")({"k": 1.0})
    (0.0, {'k': 0.0})
    >>> unregister_loss("log-cosh")
    """
    if callable(loss):
        LOSSES.register(name, _record_loss(name, loss) or loss)
        return
    tree = parse_loss(loss)
    names = () if callable(tree) else names_in(tree)
    if "out" not in names or (stray := sorted({*names} - {"out", "target"})):
        wrong = f"{loss!r} also names {stray[0]!r}" if "out" in names else f"{loss!r} is not"
        hint = name_hint(stray[0], ("out", "target")) if "out" in names else ""
        message = f"a registered loss must be an expression in 'out' and 'target'; {wrong}"
        raise UsageError(message, hint=hint)
    LOSSES.register(name, loss)


def unregister_loss(name: str) -> None:
    """Remove a loss that was added by :func:`register_loss`.

    Raises:
        UsageError: no loss was registered under this name.
    """
    LOSSES.unregister(name)


def _record_loss(name: str, function: LossFunction) -> str:
    """Record a loss function as an expression; return an empty string if that is impossible."""
    try:
        values = [float(function(*numbers)) for numbers in _TRIALS]
    except Exception as error:
        message = f"the loss {name!r} fails on two numbers: {type(error).__name__}: {error}"
        hint = "define the loss so that it returns a number for two numbers, out and target"
        raise UsageError(message, hint=hint) from error
    builder = Builder(simplify=False)
    operands = [RecordedValue(builder, builder.column(n)) for n in ("out", "target")]
    try:
        recorded_loss = function(*operands)
        if not isinstance(recorded_loss, RecordedValue):
            raise TapeError("the loss does not depend on the output")
        recorded = builder.finish({"loss": recorded_loss.index})
        for (out, target), value in zip(_TRIALS, values, strict=True):
            evaluated = values_of(recorded, {"out": out, "target": target})[
                recorded.outputs["loss"]
            ]
            if not np.isclose(evaluated, value, rtol=1e-9, equal_nan=True):
                raise TapeError("the loss contains operations that cannot be recorded")
        return _format_expression(recorded)
    except Exception:  # Python can still run the function
        return ""


def _format_expression(recorded: Tape) -> str:
    """Convert the output ``loss`` of a scalar tape to an expression string."""
    trees: list[Expression] = [
        Number(leaf.value) if leaf.kind == "constant" else Name(leaf.name)
        for leaf in recorded.leaves
    ]
    sizes = [1] * len(trees)
    for row, operands in recorded.instructions:
        trees.append(Apply(row, tuple(trees[o] for o in operands)))
        sizes.append(1 + sum(sizes[o] for o in operands))
    index = recorded.outputs["loss"]
    if sizes[index] > _MAX_NODES:
        raise TapeError(f"the expression of the loss has more than {_MAX_NODES:,} nodes")
    return unparse(trees[index])


def find_loss_function(loss: str) -> LossFunction | None:
    """Return the Python function of a registered loss; None if the loss is an expression."""
    evaluated = LOSSES[loss] if isinstance(loss, str) and loss in LOSSES else None
    return evaluated if callable(evaluated) else None


def compute_loss_derivatives(
    function: LossFunction,
    graph_tape: Tape,
    needed: Mapping[str, Column],
    columns: Mapping[str, Array],
    parameters: Mapping[str, Any],
) -> tuple[Array, dict[str, Array]]:
    """Compute the loss of each sample and its derivatives with respect to the outputs.

    Args:
        function: the loss as a function of ``out`` and ``target``.
        graph_tape: the tape of the graph.
        needed: the columns with the targets, keyed by leaf.
        columns, parameters: the values of all leaves.

    Returns:
        The losses, and the derivatives keyed by the leaves of the targets.
    """
    from cgprimer.recording.value import Value  # recording is loaded only for such losses

    evaluated = values_of(graph_tape, {**columns, **parameters})
    total, counts = np.zeros(()), dict[str, Array]()
    for leaf, column in needed.items():
        target, one = columns[leaf], float if not column.shape else np.array
        out = np.broadcast_to(evaluated[graph_tape.outputs[column.name]], target.shape)
        losses, counts[leaf] = np.zeros(len(target)), np.zeros(target.shape)
        for k in range(len(target)):
            value = Value(one(out[k]))
            try:
                loss = function(value, one(target[k]))
            except Exception as error:
                message = f"the loss fails for out={out[k]}, target={target[k]}: {error}"
                hint = "for an array output, out and target are arrays" if column.shape else ""
                raise UsageError(message, hint=hint) from error
            losses[k] = np.sum(loss.data if isinstance(loss, Value) else loss)
            if isinstance(loss, Value) and loss.requires_grad:
                (loss.sum() if loss.shape else loss).backward()
                counts[leaf][k] = 0.0 if value.grad is None else value.grad
        total = total + losses
    return total, counts


# --- the columns that a loss needs ---------------------------------------------------------------


def load_training_data(
    graph: ExpressionGraph, source: Any, settings: Settings
) -> tuple[Dataset | Blocks, Settings]:
    """Load a dataset for training; return the dataset and the resolved settings.

    For data without targets, the default loss is replaced by ``output``, with a warning.
    """
    data = load_samples(graph, source, settings.loss)
    targets = data.targets if isinstance(data, Dataset) else data.roles["targets"]
    if settings.loss != DEFAULT or targets or len(graph.outputs) != 1 or not graph.parameters:
        return data, settings
    notice = f"the data have no targets, so the output {graph.outputs[0]!r} is the loss"
    warn_user(f"{notice} (loss={OUTPUT!r})")
    return data, replace(settings, loss=OUTPUT)


def load_samples(
    graph: ExpressionGraph,
    source: Any,
    loss: str | Sequence[str],
    columns: Mapping[str, str] | None = None,
) -> Dataset | Blocks:
    """Load a dataset with the columns that one or more losses need.

    For arguments and errors, see :func:`cgprimer.training.data.resolve_dataset`.
    """
    if isinstance(source, Dataset | Blocks):
        return source
    targets = find_target_columns(graph, source, loss, columns)
    return resolve_dataset(source, graph, columns=columns, targets=targets)


def find_column_shapes(data: Dataset | Blocks) -> dict[str, Shape]:
    """Return the shape of each dataset column for one sample."""
    return {name: column.shape[1:] for name, column in data.block(0).columns.items()}


def find_target_columns(
    graph: ExpressionGraph,
    source: Any,
    loss: str | Sequence[str],
    columns: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    """Return the names of the columns that one or more losses need in addition to the inputs.

    The result is empty for the default loss if the data have only inputs.

    Args:
        graph: the graph.
        source: a file or a data frame.
        loss: a loss or several losses.
        columns: names of the graph for columns of the data.
    """
    if not isinstance(loss, str):
        column_lists = (find_target_columns(graph, source, one, columns) for one in loss)
        return tuple(dict.fromkeys(name for names in column_lists for name in names))
    available = list_column_names(source, columns)
    others = [name for name in available if name not in graph.inputs]
    if loss == DEFAULT and len(graph.outputs) == 1 and not others:
        return ()
    if loss == DEFAULT or find_loss_function(loss) is not None:
        return graph.outputs
    needed = build_loss(tape(graph), loss, extra=dict.fromkeys(available, ())).columns
    names = [c.name for c in needed.values() if c.name not in graph.inputs]
    if parse_loss_name(loss) == SOFTMAX and not {*names} <= {*others} and len(others) == 1:
        return (others[0],)
    return tuple(names)


def find_loss_column(graph: ExpressionGraph, loss: str, column: Column, dataset: Dataset) -> Array:
    """Return a column that a loss needs, after checking its values.

    Class indices for ``softmax-cross-entropy`` are converted to one-hot vectors.

    Raises:
        DataError: the column is missing, or a value is not a valid target of the loss.
    """
    source: Mapping[str, Array] = dataset.targets if column.is_target else dataset.columns
    name = column.name
    if column.is_target and parse_loss_name(loss) == SOFTMAX:
        outputs = graph.outputs
        has_only_target = len(source) == 1 and not {*outputs} & {*source}  # classes have any name
        label = next(iter(source)) if has_only_target else name
        if has_only_target and len(outputs) > 1 and not column.shape:
            check_class_indices(source[label], len(outputs), f"the target {label!r}")
            return (source[label] == outputs.index(name)).astype(float)
        if label in source and len(column.shape) == 1 and source[label].ndim == 1:
            check_class_indices(source[label], column.shape[0], f"the target {label!r}")
            return np.equal.outer(source[label], np.arange(column.shape[0])).astype(float)
    values = find_column(source, name, "target" if column.is_target else "column")
    if column.is_target:
        check_target(loss, values, f"the target {name!r}")
        if parse_loss_name(loss) == SOFTMAX:
            graph_tape = (
                values.sum(axis=-1) if column.shape else sum(source[o] for o in graph.outputs)
            )
            notice = (
                f"the probabilities of the target {name!r} must add up to 1, got a sum that{{}}"
            )
            check_values(graph_tape, abs(graph_tape - 1) <= 1e-6, notice)
    return values


def create_loss_point(
    graph: ExpressionGraph, loss: str, needed: Mapping[str, Column], sample: Dataset
) -> dict[str, Any]:
    """Return the inputs and targets of one sample, keyed by their names in the loss graph."""
    point = {name: sample.inputs[name][0] for name in graph.inputs}
    targets = {
        input_name(graph, c): find_loss_column(graph, loss, c, sample) for c in needed.values()
    }
    return point | {name: column[0] for name, column in targets.items()}


def align_targets(graph: ExpressionGraph, loss: str, block: Dataset) -> dict[str, Array]:
    """Return the target of each output, keyed by the name of the output.

    Class indices for ``softmax-cross-entropy`` are converted to one-hot vectors.

    Raises:
        DataError: an output has no target, for example because the loss uses other columns.

    >>> import cgprimer
    >>> data = cgprimer.Dataset.from_arrays({"x": [1.0, 2.0]}, {"label": [1, 0]})
    >>> found = align_targets(cgprimer.parse("xa = a*x; xb = b*x"), "softmax-cross-entropy", data)
    >>> {name: column.tolist() for name, column in found.items()}
    {'xa': [0.0, 1.0], 'xb': [1.0, 0.0]}
    """
    graph_tape = tape(graph)
    shapes = {name: graph_tape.shapes[index] for name, index in graph_tape.outputs.items()}
    columns = {name: Column(name, shape, is_target=True) for name, shape in shapes.items()}
    return {name: find_loss_column(graph, loss, column, block) for name, column in columns.items()}


def convert_sample_columns(
    graph: ExpressionGraph, loss: str, needed: Mapping[str, Column], dataset: Dataset, dtype: str
) -> tuple[dict[str, Array], dict[str, Shape]]:
    """Convert the inputs and the columns that a loss needs to arrays of the given dtype.

    Returns:
        The columns, and the shape of each column for one sample.

    Raises:
        DataError: a column is missing, its shape differs from that in the graph, or a value is not
            a valid target of the loss.
    """
    shapes = {name: graph.shapes.get(name, ()) for name in graph.inputs}
    shapes |= {leaf: column.shape for leaf, column in needed.items()}
    columns = {}
    for name, shape in shapes.items():
        if column := needed.get(name):
            role, column_name = "target" if column.is_target else "column", column.name
            values = find_loss_column(graph, loss, column, dataset)
        else:
            role, column_name, values = "input", name, find_column(dataset.inputs, name, "input")
        with np.errstate(over="ignore"):
            columns[name] = np.ascontiguousarray(values, dtype=dtype)
        check_column_shape(role, column_name, columns[name].shape[1:], shape)
        bad = dtype == "float32" and find_nonfinite(columns[name], len(shape))
        if bad and all_finite(np.asarray(values)):
            message = (
                f"sample {bad[1]} of the {role} {column_name + bad[2]!r} is too large for {dtype}"
            )
            hint = "use dtype='float64' (--dtype float64), or scale the data"
            raise DataError(message, hint=hint)
    return columns, shapes


def check_column_shape(role: str, name: str, shape: Shape, expected: Shape) -> None:
    """Raise DataError if the shape of a column differs from the shape in the graph."""
    if shape == expected:
        return
    available = set(elements(name, shape))
    missing = next((e for e in elements(name, expected) if e not in available), None)
    hint = (
        f"add the column {missing}"
        if missing
        else "remove the elements that the graph does not have"
    )
    if math.prod(shape) == math.prod(expected):  # as (samples, 1) for a scalar
        hint = f"change the shape with .reshape({', '.join(map(str, (-1, *expected)))})"
    rule = f"have shape {format_shape(expected)}" if expected else "be a scalar"
    raise DataError(
        f"the {role} {name!r} must {rule}, as in the graph, got {format_shape(shape)}",
        hint=hint,
    )
