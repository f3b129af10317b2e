"""Operations that reshape, transpose, broadcast or reduce arrays, and functions that emit them.

A broadcast and a sum are transposes of each other. The functions emit nothing if the operation
would not change the value, such as a reshape to the current shape.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from cgprimer.core.language.syntax_tree import MAX_ELEMENTS, Shape
from cgprimer.core.operations.array_operation import Array, ArrayOperation, reduce_last_axis
from cgprimer.core.operations.array_shapes import (
    broadcast_shapes,
    format_shape,
    normalize_axes,
    normalize_axis,
)
from cgprimer.core.operations.operation import Builder, Value
from cgprimer.errors import ShapeError


@dataclass(frozen=True)
class _ShapeChange(ArrayOperation):
    """The base class of operations that change a shape; ``rank`` is the rank of the operand."""

    rank: int
    new_shape: Shape
    moves_elements = commutes_with_sum = may_be_view = True

    def format_settings(self) -> list[str]:
        """Return the sizes of the new shape as strings."""
        return list(map(str, self.new_shape))

    def shape(self, *operands: Shape) -> Shape:
        """Return the shape to which the operand is reshaped or broadcast."""
        return self.new_shape


@dataclass(frozen=True)
class Reshape(_ShapeChange):
    """A change of shape that keeps the order of the elements."""

    name = "reshape"

    def run(self, *operands: Any) -> Any:
        """Reshape the operand for each sample."""
        (a,) = operands
        return np.asarray(a).reshape(np.shape(a)[: np.ndim(a) - self.rank] + self.new_shape)

    def pull_back(
        self, builder: Builder, index: int, adjoint: Value, operands: Sequence[Value], result: Value
    ) -> Value:
        """Emit the adjoint, reshaped to the shape of the operand."""
        return reshape(builder, adjoint, builder.shape(operands[0]))


@dataclass(frozen=True)
class Transpose(ArrayOperation):
    """A permutation of the axes."""

    axes: tuple[int, ...]
    name = "transpose"
    moves_elements = commutes_with_sum = may_be_view = True

    def format_settings(self) -> list[str]:
        """Return the axes as strings; an empty list for the transpose of a matrix."""
        return [] if self.axes == (-1, -2) else list(map(str, self.axes))

    def shape(self, *operands: Shape) -> Shape:
        """Return the shape with permuted axes."""
        (a,) = operands
        return tuple(a[axis] for axis in self.axes)

    def run(self, *operands: Any) -> Any:
        """Permute the axes of the operand for each sample."""
        (a,) = operands
        samples = a.ndim - len(self.axes)
        return a.transpose(*range(samples), *[a.ndim + axis for axis in self.axes])

    def pull_back(
        self, builder: Builder, index: int, adjoint: Value, operands: Sequence[Value], result: Value
    ) -> Value:
        """Emit the adjoint with the inverse permutation of the axes."""
        inverse = [self.axes.index(axis) for axis in range(-len(self.axes), 0)]
        return transpose(builder, adjoint, inverse)


@dataclass(frozen=True)
class Broadcast(_ShapeChange):
    """A broadcast to a new shape by numpy's rules."""

    name = "broadcast"

    def shape(self, *operands: Shape) -> Shape:
        """Return the shape of the broadcast; raise ShapeError for an incompatible operand."""
        (a,), shape = operands, self.new_shape
        if min(shape, default=0) < 0 or broadcast_shapes("a broadcast", a, shape) != shape:
            raise ShapeError(
                f"cannot broadcast shape {format_shape(a)} to shape {format_shape(shape)}",
                hint="trailing dimensions must be equal, or 1 in the original shape",
            )
        if math.prod(shape) > MAX_ELEMENTS:
            raise ShapeError(f"shape {format_shape(shape)} has more than {MAX_ELEMENTS:,} elements")
        return shape

    def run(self, *operands: Any) -> Any:
        """Broadcast the operand for each sample, without copying elements."""
        a, rank, shape = np.asarray(operands[0]), self.rank, self.new_shape
        samples = a.shape[: a.ndim - rank]
        padding = (1,) * (len(shape) - rank)
        if rank == a.ndim <= len(shape) and a.flags.c_contiguous and a.size:
            # Set the strides here: np.broadcast_to takes ten times as long.
            padded = padding + a.shape
            steps = (0,) * len(padding) + a.strides
            if all(m in (1, n) for m, n in zip(padded, shape, strict=True)):
                strides = [
                    step if m == n else 0 for step, m, n in zip(steps, padded, shape, strict=True)
                ]
                result: Array = np.ndarray(shape, a.dtype, a, 0, tuple(strides))
                result.flags.writeable = False
                return result
        filled = a.reshape(samples + padding + a.shape[a.ndim - rank :])
        return np.broadcast_to(filled, samples + shape)

    def pull_back(
        self, builder: Builder, index: int, adjoint: Value, operands: Sequence[Value], result: Value
    ) -> Value:
        """Emit the adjoint, summed over the broadcast axes."""
        return sum_to_shape(builder, adjoint, builder.shape(operands[0]))


@dataclass(frozen=True)
class _Reduction(ArrayOperation):
    """The base class of reductions; the result does not have the reduced axes."""

    axes: tuple[int, ...]

    def format_settings(self) -> list[str]:
        """Return the axes as strings."""
        return list(map(str, self.axes))

    def shape(self, *operands: Shape) -> Shape:
        """Return the shape of the operand without the reduced axes."""
        (a,) = operands
        return tuple(n for i, n in enumerate(a, -len(a)) if i not in self.axes)

    def _broadcast_result(self, builder: Builder, value: Value, shape: Shape) -> Value:
        """Emit the result of the reduction, broadcast to the shape of the operand."""
        if builder.shape(value):
            value = reshape(builder, value, _keep_reduced_axes(shape, self.axes))
        return builder.broadcast(value, shape)

    def _merge_reduced_axes(self, a: Array) -> Array:
        """Return an array in which all reduced axes are merged into the last axis."""
        rows = np.moveaxis(a, self.axes, range(-len(self.axes), 0))
        rest = rows.shape[: a.ndim - len(self.axes)]
        return rows.reshape(*rest, math.prod(rows.shape[len(rest) :]))


@dataclass(frozen=True)
class Sum(_Reduction):
    """The sum over axes."""

    name = "sum"
    commutes_with_sum = sums_products = True

    def run(self, *operands: Any) -> Any:
        """Compute the sum over the axes for each sample."""
        return np.add.reduce(operands[0], axis=self.axes)

    def pull_back(
        self, builder: Builder, index: int, adjoint: Value, operands: Sequence[Value], result: Value
    ) -> Value:
        """Emit the adjoint, broadcast to the shape of the operand."""
        return self._broadcast_result(builder, adjoint, builder.shape(operands[0]))

    def scalarize(self, builder: Builder, *operands: Array) -> Array:
        """Emit the sum as scalar additions, from left to right."""
        return reduce_last_axis(builder, "add", self._merge_reduced_axes(*operands))


@dataclass(frozen=True)
class Maximum(_Reduction):
    """The maximum over axes; elements that are equal to it share the derivative equally."""

    name = "largest"

    def run(self, *operands: Any) -> Any:
        """Compute the maximum over the axes for each sample."""
        return np.maximum.reduce(operands[0], axis=self.axes)

    def push_forward(
        self, builder: Builder, index: int, tangent: Value, operands: Sequence[Value], result: Value
    ) -> Value:
        """Emit the tangent times the partial derivative, summed over the axes."""
        partial = self._emit_partial(builder, operands[0], result)
        return builder.emit(Sum.create(self.axes), builder.emit("mul", tangent, partial))

    def pull_back(
        self, builder: Builder, index: int, adjoint: Value, operands: Sequence[Value], result: Value
    ) -> Value:
        """Emit the broadcast adjoint times the partial derivative."""
        (a,) = operands
        repeated = self._broadcast_result(builder, adjoint, builder.shape(a))
        return builder.emit("mul", repeated, self._emit_partial(builder, a, result))

    def _emit_partial(self, builder: Builder, a: Value, result: Value) -> Value:
        """Emit the partial derivative: 1/n for the n elements equal to the maximum, otherwise 0."""
        shape = builder.shape(a)
        is_maximum = builder.emit("equal", a, self._broadcast_result(builder, result, shape))
        count = sum_over_axes(builder, is_maximum, self.axes)
        return builder.emit("div", is_maximum, self._broadcast_result(builder, count, shape))

    def scalarize(self, builder: Builder, *operands: Array) -> Array:
        """Emit the maximum as scalar instructions, from left to right."""
        return reduce_last_axis(builder, "max", self._merge_reduced_axes(*operands))


def reshape(builder: Builder, a: Value, shape: Shape) -> Value:
    """Emit a reshaped value; a size of -1 is computed from the number of elements."""
    old = builder.shape(a)
    size = math.prod(n for n in shape if n != -1)
    full = tuple(math.prod(old) // max(size, 1) if n == -1 else n for n in shape)
    if shape.count(-1) > 1 or math.prod(full) != math.prod(old) or min(full, default=1) < 0:
        raise ShapeError(
            f"cannot reshape {format_shape(old)} ({math.prod(old)} elements)"
            f" to {format_shape(shape)}"
        )
    return a if full == old else builder.emit(Reshape.create(len(old), full), a)


def transpose(builder: Builder, a: Value, axes: Sequence[int] | None = None) -> Value:
    """Emit a value with permuted axes; by default, the order of the axes is reversed."""
    shape = builder.shape(a)
    order = tuple(
        normalize_axis(shape, i) for i in (range(len(shape))[::-1] if axes is None else axes)
    )
    unchanged = tuple(range(-len(shape), 0))
    if sorted(order) != list(unchanged):
        raise ShapeError(
            f"transpose axes must be a permutation of the axes of shape {format_shape(shape)},"
            f" got {list(axes or ())}"
        )
    return a if order == unchanged else builder.emit(Transpose.create(order), a)


def transpose_matrices(builder: Builder, a: Value) -> Value:
    """Emit the transpose of each matrix in a stack of matrices."""
    rank = len(builder.shape(a))
    return transpose(builder, a, (*range(rank - 2), rank - 1, rank - 2))


def sum_over_axes(builder: Builder, a: Value, axes: Any = None, *, keep: bool = False) -> Value:
    """Emit the sum over axes, by default all; ``keep`` leaves reduced axes with length 1."""
    return _emit_reduction(builder, Sum, a, axes, keep=keep)


def max_over_axes(builder: Builder, a: Value, axes: Any = None, *, keep: bool = False) -> Value:
    """Emit the maximum over axes, by default all; ``keep`` leaves reduced axes with length 1."""
    if 0 in builder.shape(a):
        raise ShapeError(
            f"cannot take the maximum of an empty array of shape {format_shape(builder.shape(a))}"
        )
    return _emit_reduction(builder, Maximum, a, axes, keep=keep)


def sum_to_shape(builder: Builder, adjoint: Value, shape: Shape) -> Value:
    """Emit the sum of an adjoint over broadcast axes, which restores the operand's shape."""
    repeated = builder.shape(adjoint)
    if repeated == shape:
        return adjoint
    added = len(repeated) - len(shape)
    axes = [i for i, n in enumerate(repeated) if i < added or (shape[i - added] == 1 and n != 1)]
    return reshape(builder, sum_over_axes(builder, adjoint, axes), shape)


def _emit_reduction(
    builder: Builder, kind: type[_Reduction], a: Value, axes: Any, *, keep: bool
) -> Value:
    """Emit a reduction of class ``kind`` over axes; ``keep`` leaves axes with length 1."""
    shape = builder.shape(a)
    axes = _normalize_axes_cached(shape, tuple(axes) if hasattr(axes, "__iter__") else axes)
    result = builder.emit(kind.create(axes), a) if axes else a
    return reshape(builder, result, _keep_reduced_axes(shape, axes)) if keep else result


@lru_cache(maxsize=4096, typed=True)
def _normalize_axes_cached(shape: Shape, axes: Any) -> tuple[int, ...]:
    """Return axes as sorted negative indices; results are cached."""
    return normalize_axes(shape, axes)


def _keep_reduced_axes(shape: Shape, axes: tuple[int, ...]) -> Shape:
    """Return a shape in which the given axes have length 1."""
    return tuple(1 if i in axes else n for i, n in enumerate(shape, -len(shape)))
