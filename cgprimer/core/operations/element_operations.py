"""Operations that take, scatter or concatenate elements, and the functions that emit them.

Taking elements and scattering elements are transposes of each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from cgprimer.core.language.syntax_tree import Shape, format_index_entry
from cgprimer.core.operations.array_operation import Array, ArrayOperation
from cgprimer.core.operations.array_shapes import convert_index_entry, format_shape, normalize_axis
from cgprimer.core.operations.operation import Builder, Value
from cgprimer.errors import ShapeError

Key = tuple[Any, ...]  #: an index: an integer, a range or nested tuples of integers for each axis


@dataclass(frozen=True)
class Take(ArrayOperation):
    """Selection of the elements at an index; ``key`` has an entry for each axis."""

    key: Key
    name = "take"
    is_index = True
    moves_elements = commutes_with_sum = may_be_view = True

    def format_settings(self) -> list[str]:
        """Return the entries of the index as strings."""
        return list(map(format_index_entry, self.key))

    def shape(self, *operands: Shape) -> Shape:
        """Return the shape of the selected elements."""
        zeros = np.broadcast_to(np.float64(0.0), operands[0])
        return tuple(zeros[tuple(map(convert_index_entry, self.key))].shape)

    def run(self, *operands: Any) -> Any:
        """Select the elements at the index for each sample."""
        return operands[0][(..., *map(convert_index_entry, self.key))]

    def pull_back(
        self, builder: Builder, index: int, adjoint: Value, operands: Sequence[Value], result: Value
    ) -> Value:
        """Emit an array of zeros with the elements of the adjoint at the index."""
        return scatter(builder, adjoint, self.key, builder.shape(operands[0]))


@dataclass(frozen=True)
class Scatter(ArrayOperation):
    """An array of zeros with the elements of the operand inserted at an index."""

    key: Key
    new_shape: Shape
    name = "scatter"
    moves_elements = commutes_with_sum = True

    def format_settings(self) -> list[str]:
        """Return the settings of the operation as strings: the index and the new shape."""
        return [f"[{','.join(map(format_index_entry, self.key))}]", *map(str, self.new_shape)]

    def shape(self, *operands: Shape) -> Shape:
        """Return the shape of the array of zeros."""
        return self.new_shape

    def run(self, *operands: Any) -> Any:
        """Insert the elements into an array of zeros; add elements at repeated positions."""
        a, key = np.asarray(operands[0]), tuple(map(convert_index_entry, self.key))
        taken_rank = np.broadcast_to(np.float64(0.0), self.new_shape)[key].ndim
        result = np.zeros(a.shape[: a.ndim - taken_rank] + self.new_shape, a.dtype)
        if any(isinstance(entry, tuple) for entry in self.key):
            np.add.at(result, (..., *key), a)  # an element may have been taken more than once
        else:
            result[(..., *key)] = a
        return result

    def pull_back(
        self, builder: Builder, index: int, adjoint: Value, operands: Sequence[Value], result: Value
    ) -> Value:
        """Emit the elements of the adjoint at the index."""
        return builder.emit(Take(self.key), adjoint)

    def scalarize(self, builder: Builder, *operands: Array) -> Array:
        """Emit sums of elements at repeated positions, and zeros at all other positions."""
        shape = self.new_shape
        positions = np.arange(prod(shape)).reshape(shape)[
            (..., *map(convert_index_entry, self.key))
        ]
        values: dict[int, int] = {}
        for position, value in zip(
            positions.ravel().tolist(), operands[0].ravel().tolist(), strict=True
        ):
            earlier = values.get(position)
            values[position] = value if earlier is None else builder.emit("add", earlier, value)
        result = np.full(prod(shape), builder.constant(0.0))
        result[list(values)] = list(values.values())
        return result.reshape(shape)


@dataclass(frozen=True)
class Concatenate(ArrayOperation):
    """Concatenation of arrays along an axis."""

    axis: int
    name = "concatenate"
    moves_elements = True

    def format_settings(self) -> list[str]:
        """Return the axis as a string."""
        return [str(self.axis)]

    def shape(self, *operands: Shape) -> Shape:
        """Return the concatenated shape; raise ShapeError if other axes differ in size."""
        axis = self.axis
        rest = {(len(a), a[:axis], a[axis:][1:]) for a in operands if -axis <= len(a)}
        if len(rest) != 1 or any(-axis > len(a) for a in operands):
            shapes = " and ".join(map(format_shape, operands))
            raise ShapeError(
                f"cannot concatenate shapes {shapes}: all dimensions except the concatenation"
                " axis must be equal"
            )
        first = operands[0]
        position = len(first) + axis
        return (*first[:position], sum(a[axis] for a in operands), *first[position + 1 :])

    def run(self, *operands: Any) -> Any:
        """Concatenate the operands for each sample."""
        try:
            return np.concatenate(operands, axis=self.axis)
        except ValueError:  # some operands have sample axes, others do not
            last = [np.moveaxis(a, self.axis, -1) for a in operands]
            rest = np.broadcast_shapes(*(a.shape[:-1] for a in last))
            parts = [np.broadcast_to(a, rest + a.shape[-1:]) for a in last]
            return np.moveaxis(np.concatenate(parts, axis=-1), -1, self.axis)

    def push_forward(
        self, builder: Builder, index: int, tangent: Value, operands: Sequence[Value], result: Value
    ) -> Value:
        """Emit the tangent of one operand, padded with zeros."""
        key = self._find_part_index(builder, index, operands, result)
        return scatter(builder, tangent, key, builder.shape(result))

    def pull_back(
        self, builder: Builder, index: int, adjoint: Value, operands: Sequence[Value], result: Value
    ) -> Value:
        """Emit the part of the adjoint that belongs to one operand."""
        return take(builder, adjoint, self._find_part_index(builder, index, operands, result))

    def _find_part_index(
        self, builder: Builder, index: int, operands: Sequence[Value], result: Value
    ) -> Key:
        """Return the index that selects the elements of one operand from the result."""
        begin = sum(builder.shape(part)[self.axis] for part in operands[:index])
        key = [range(n) for n in builder.shape(result)]
        key[self.axis] = range(begin, begin + builder.shape(operands[index])[self.axis])
        return tuple(key)


def take(builder: Builder, a: Value, key: Key) -> Value:
    """Emit the selection of elements at an index; axes without an entry are selected in full."""
    shape = builder.shape(a)
    if len(key) > len(shape):
        raise ShapeError(
            f"too many indices for shape {format_shape(shape)}: expected at most {len(shape)},"
            f" got {len(key)}"
        )
    full = (*key, *map(range, shape[len(key) :]))
    fixed = [i for i, entry in enumerate(full) if not isinstance(entry, range)]
    if any(isinstance(entry, tuple) for entry in full) and fixed[-1] - fixed[0] != len(fixed) - 1:
        raise ShapeError("lists of indices must not be separated by a slice")
    full = tuple(
        _normalize_index_entry(entry, n, shape) for entry, n in zip(full, shape, strict=True)
    )
    return a if full == tuple(map(range, shape)) else builder.emit(Take(full), a)


def scatter(builder: Builder, a: Value, key: Key, shape: Shape) -> Value:
    """Emit an array of zeros with the elements of ``a`` inserted at an index."""
    return builder.emit(Scatter(key, shape), a)


def concatenate(builder: Builder, parts: Sequence[Value], axis: int = 0) -> Value:
    """Emit the concatenation of arrays along an axis."""
    if not parts:
        raise ShapeError("concatenate requires at least one array")
    normalized = normalize_axis(builder.shape(parts[0]), axis)
    return parts[0] if len(parts) == 1 else builder.emit(Concatenate(normalized), *parts)


def _normalize_index_entry(entry: Any, size: int, shape: Shape) -> Any:
    """Replace negative indices by non-negative indices; raise ShapeError if out of bounds."""
    if isinstance(entry, range):
        return range(0) if entry.start < 0 else entry  # an empty slice
    if isinstance(entry, tuple):
        positions = np.array(entry)  # checked at once: an index can be thousands of labels
        if positions.size and positions.min() >= 0 and positions.max() < size:
            return entry
        return tuple(_normalize_index_entry(part, size, shape) for part in entry)
    if not -size <= entry < size:
        raise ShapeError(
            f"index {entry} is out of bounds for shape {format_shape(shape)}",
            hint=f"the axis has indices 0 to {size - 1}" if size else "the axis is empty",
        )
    return entry % size
