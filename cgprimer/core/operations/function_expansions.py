"""Array functions of the language, expanded into operations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from cgprimer.core.language.syntax_tree import Index, Operator
from cgprimer.core.operations import layer_expansions
from cgprimer.core.operations.array_shapes import format_shape
from cgprimer.core.operations.batch_operations import BatchMean
from cgprimer.core.operations.custom_operations import CustomCall, CustomFunction
from cgprimer.core.operations.element_operations import concatenate, take
from cgprimer.core.operations.matrix_operations import matmul
from cgprimer.core.operations.operation import Builder
from cgprimer.core.operations.primitive_registry import ARRAY_FUNCTIONS, FUNCTIONS, ArrayFunction
from cgprimer.core.operations.shape_operations import (
    max_over_axes,
    reshape,
    sum_over_axes,
    transpose,
)
from cgprimer.errors import ShapeError


def emit_array_function(b: Builder, applied: str | Operator, arguments: Sequence[Any]) -> Any:
    """Emit the operations of an array function or an index.

    Args:
        b: the builder that receives the instructions.
        applied: the function's name, or the index with its entries.
        arguments: the operands, followed by integers such as axes and sizes.

    Raises:
        ShapeError: the function does not accept operands of these shapes.
    """
    if isinstance(applied, Index):
        return _emit_index(b, arguments[0], applied.entries)
    row = ARRAY_FUNCTIONS[str(applied)]
    count = row.operands or sum(b.value_of(a) is None for a in arguments)
    numbers = [b.value_of(a) for a in arguments[count:]]
    if any(n is None or not float(n).is_integer() for n in numbers):
        raise ShapeError(f"axes and sizes in {row.spelling!r} must be integers")
    if not row.operands and (not count or len(numbers) > 1):
        raise ShapeError(
            f"{row.spelling!r} requires at least one array and accepts at most one axis",
            hint="write the array as a name or an expression, not as a literal",
        )
    operands = arguments[:count] if row.operands else (arguments[:count],)
    expand = row.expand or _EXPANSIONS[row.name]
    return expand(b, *operands, *map(int, numbers))


def _emit_index(b: Builder, a: Any, entries: tuple[Any, ...]) -> Any:
    """Emit the elements that an index such as ``x[1:, 0]`` selects."""
    shape = b.shape(a)
    if not shape:
        hint = "declare an array with its shape, as in input x[3]"
        raise ShapeError("cannot index a scalar", hint=hint)
    if any(isinstance(entry, slice) and entry.step == 0 for entry in entries):
        raise ShapeError("slice step cannot be 0")
    if len(entries) > len(shape):
        raise ShapeError(
            f"too many indices for shape {format_shape(shape)}: expected at most {len(shape)},"
            f" got {len(entries)}",
            hint="write at most one index per axis",
        )
    pairs = zip(entries, shape, strict=False)
    key = (range(*e.indices(n)) if isinstance(e, slice) else e for e, n in pairs)
    return take(b, a, tuple(key))


def emit_mean(b: Builder, a: Any, *axes: int) -> Any:
    """Emit the mean along the given axes; along all axes by default."""
    total = sum_over_axes(b, a, axes or None)
    count = math.prod(b.shape(a)) / max(math.prod(b.shape(total)), 1)
    return b.emit("div", total, b.constant(float(count)))


def emit_softmax(b: Builder, a: Any, axis: int = -1) -> Any:
    """Emit the softmax along an axis; the maximum is subtracted first to prevent overflow."""
    powers = b.emit("exp", _subtract_maximum(b, a, axis))
    return b.emit("div", powers, sum_over_axes(b, powers, [axis], keep=True))


def emit_log_softmax(b: Builder, a: Any, axis: int = -1) -> Any:
    """Emit the logarithm of the softmax along an axis, without loss of precision."""
    shifted = _subtract_maximum(b, a, axis)
    total = sum_over_axes(b, b.emit("exp", shifted), [axis], keep=True)
    return b.emit("sub", shifted, b.emit("log", total))


def _subtract_maximum(b: Builder, a: Any, axis: int) -> Any:
    """Emit an array minus its maximum along an axis; no gradient flows through the maximum."""
    if 0 in b.shape(a):
        return a
    return b.emit("sub", a, b.emit("stop_gradient", max_over_axes(b, a, [axis], keep=True)))


def emit_root_of_squares(b: Builder, squares: Any) -> Any:
    """Emit the square root of a sum of squares; its derivative at 0 is 0 instead of nan.

    At 0, the result is sqrt(1) - 1.
    """
    at_zero = b.emit("equal", squares, b.constant(0.0))
    return b.emit("sub", b.emit("sqrt", b.emit("add", squares, at_zero)), at_zero)


def _emit_maximum(b: Builder, a: Any) -> Any:
    """Emit the maximum of all elements of an array.

    Raises:
        ShapeError: the operand is a scalar.
    """
    if not b.shape(a):
        raise ShapeError(
            "max and min with one argument require an array",
            hint="for two scalars, write max(a, b)",
        )
    return max_over_axes(b, a)


def add_custom_function(name: str, function: CustomFunction, count: int) -> ArrayFunction:
    """Add a function with a custom backward pass to the language.

    Args:
        name: the function's name in expressions.
        function: computes shapes, values and adjoints.
        count: the number of operands.
    """

    def expand(b: Builder, *operands: Any) -> Any:
        """Emit the custom function."""
        ranks = tuple(len(b.shape(o)) for o in operands)
        return b.emit(CustomCall(function, ranks), *operands)

    row = ArrayFunction(name, count, count, count, name, expand=expand)
    FUNCTIONS.generation += 1
    FUNCTIONS[name], ARRAY_FUNCTIONS[name] = [row], row
    return row


def remove_custom_function(name: str) -> bool:
    """Remove a function added by :func:`add_custom_function`; return whether it existed."""
    if name not in ARRAY_FUNCTIONS or name in _EXPANSIONS:
        return False
    FUNCTIONS.generation += 1
    del FUNCTIONS[name], ARRAY_FUNCTIONS[name]
    return True


_EXPANSIONS: dict[str, Callable[..., Any]] = {
    "matmul": matmul,
    "dot": lambda b, a, c: sum_over_axes(b, b.emit("mul", a, c)),
    "norm": lambda b, a: emit_root_of_squares(b, sum_over_axes(b, b.emit("mul", a, a))),
    "sum": lambda b, a, *axes: sum_over_axes(b, a, axes or None),
    "mean": emit_mean,
    "largest": _emit_maximum,
    "largest_along": lambda b, a, *axes: max_over_axes(b, a, axes or None),
    "smallest": lambda b, a: b.emit("neg", _emit_maximum(b, b.emit("neg", a))),
    "softmax": emit_softmax,
    "log_softmax": emit_log_softmax,
    "transpose": lambda b, a, *axes: transpose(b, a, axes or None),
    "reshape": lambda b, a, *sizes: reshape(b, a, sizes),
    "broadcast": lambda b, a, *sizes: b.broadcast(a, sizes),
    "concatenate": concatenate,
    "batch_mean": lambda b, a: b.emit(BatchMean.create(len(b.shape(a))), a),
    "dropout": layer_expansions.expand_dropout,
    "batchnorm": layer_expansions.expand_batchnorm,
}
