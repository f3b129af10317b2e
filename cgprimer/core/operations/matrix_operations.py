"""Products of matrices and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cgprimer.core.language.syntax_tree import Shape
from cgprimer.core.operations.array_operation import (
    Array,
    ArrayOperation,
    emit_elementwise,
    reduce_last_axis,
)
from cgprimer.core.operations.array_shapes import broadcast_shapes, format_shape
from cgprimer.core.operations.operation import Builder, Value
from cgprimer.core.operations.shape_operations import reshape, transpose_matrices
from cgprimer.errors import DifferentiationError, ShapeError


@dataclass(frozen=True)
class _MatrixProduct(ArrayOperation):
    """The base class of products of two matrices (rank 2) or vectors (rank 1)."""

    left_rank: int
    right_rank: int

    @property
    def ranks(self) -> tuple[int, int]:
        """The ranks of both operands per sample."""
        return self.left_rank, self.right_rank

    def format_settings(self) -> list[str]:
        """Return the settings of the operation as strings: the ranks of both operands."""
        return list(map(str, self.ranks))

    def shape(self, *operands: Shape) -> Shape:
        """Return the shape of the product; raise ShapeError if inner dimensions differ."""
        a, b = operands
        if not a or not b:
            raise ShapeError(
                f"@ requires matrices or vectors, got {format_shape(a)} @ {format_shape(b)}",
                hint="use * for scalars, or declare a shape: parameter W[8,4]",
            )
        left, right = a[-2:], b[-2:]
        if left[-1] != right[0]:
            example = f"{format_shape((*left[:-1], right[0]))} @ {format_shape(right)}"
            raise ShapeError(
                f"cannot multiply shapes {format_shape(a)} @ {format_shape(b)}:"
                f" the inner dimensions {left[-1]} and {right[0]} differ",
                hint="the number of columns on the left must equal the number of rows on the right,"
                f" as in {example}",
            )
        return a[:-2] + left[:-1] + right[1:]

    def _multiply(self, a: Array, b: Array) -> Any:
        """Compute the matrix product for each sample; use one large product where possible."""
        if self.ranks == (1, 1):
            return np.einsum("...i,...i->...", a, b)
        if self.right_rank == 1:
            return (
                _multiply_in_blocks(b, a.T) if a.ndim == 2 else np.matmul(a, b[..., None])[..., 0]
            )
        if self.left_rank == 1:
            return (
                _multiply_in_blocks(a, b)
                if b.ndim == 2
                else np.matmul(a[..., None, :], b)[..., 0, :]
            )
        if b.ndim == 2 and a.ndim > 2:
            rows = _multiply_in_blocks(a.reshape(-1, a.shape[-1]), b)
            return rows.reshape(*a.shape[:-1], b.shape[-1])
        return np.matmul(a, b)


@dataclass(frozen=True)
class Matmul(_MatrixProduct):
    """The matrix product of two operands, computed for each sample."""

    name = "matmul"
    latex = r"{a} \, {b}"
    sums_products = True

    def run(self, *operands: Any) -> Any:
        """Compute the matrix product for each sample."""
        return self._multiply(*operands)

    def pull_back(
        self, builder: Builder, index: int, adjoint: Value, operands: Sequence[Value], result: Value
    ) -> Value:
        """Emit the product of the adjoint and the other operand, transposed where necessary."""
        left, right = operands
        match index, self.ranks:
            case _, (1, 1):
                return builder.emit("mul", adjoint, operands[1 - index])
            case 0, (2, 1):
                return outer(builder, adjoint, right)
            case 0, (1, 2):
                return matmul(builder, right, adjoint)
            case 0, _:
                return matmul(builder, adjoint, transpose_matrices(builder, right))
            case _, (1, 2):
                return outer(builder, left, adjoint)
        return matmul(builder, transpose_matrices(builder, left), adjoint)

    def scalarize(self, builder: Builder, *operands: Array) -> Array:
        """Emit the matrix product as scalar multiplications and additions."""
        a, b = operands
        left = a if self.left_rank > 1 else a[..., None, :]
        right = b if self.right_rank > 1 else b[..., None]
        pairs = left[..., :, None, :], np.swapaxes(right, -1, -2)[..., None, :, :]
        sums = reduce_last_axis(builder, "add", emit_elementwise(builder, "mul", *pairs))
        return sums.reshape(self.shape(a.shape, b.shape))


@dataclass(frozen=True)
class BatchMatmul(_MatrixProduct):
    """The sum of the matrix products of all samples, computed as one product."""

    name = "batch_matmul"
    combines_samples = True

    def run(self, *operands: Any) -> Any:
        """Sum the matrix products of all samples by a single matrix multiplication."""
        a, b = operands
        if a.ndim == self.left_rank and b.ndim == self.right_rank:
            return self._multiply(a, b)
        if a.ndim > 3 or b.ndim > 3:
            return np.sum(self._multiply(a, b), axis=0)
        if self.right_rank == 2 and a.shape[-1] == 1:  # columns or scalars times rows
            return a[..., 0].T @ b[:, 0]
        return np.tensordot(a, b, ([0, a.ndim - 1], [0, 1]))

    def pull_back(
        self, builder: Builder, index: int, adjoint: Value, operands: Sequence[Value], result: Value
    ) -> Value:
        """Raise DifferentiationError, since a sum over samples has no derivative rule."""
        raise DifferentiationError("batch_matmul has no derivative rule")


def matmul(builder: Builder, left: Value, right: Value) -> Value:
    """Emit the product of matrices, stacks of matrices or vectors, like ``@`` in numpy."""
    shapes = builder.shape(left), builder.shape(right)
    ranks = len(shapes[0]), len(shapes[1])
    if max(ranks) > 2 and min(ranks) == 1:  # a vector and a stack of matrices
        is_row = ranks[0] == 1
        if is_row:
            left = reshape(builder, left, (1, *shapes[0]))
        else:
            right = reshape(builder, right, (*shapes[1], 1))
        product = matmul(builder, left, right)
        shape = builder.shape(product)
        return reshape(builder, product, shape[:-2] + (shape[-1:] if is_row else shape[-2:-1]))
    if max(ranks) > 2 and min(ranks) > 1:  # broadcast both stacks
        name = f"{format_shape(shapes[0])} @ {format_shape(shapes[1])}"
        stack = broadcast_shapes(name, shapes[0][:-2], shapes[1][:-2])
        left = builder.broadcast(left, stack + shapes[0][-2:])
        right = builder.broadcast(right, stack + shapes[1][-2:])
    return builder.emit(Matmul.create(min(ranks[0], 2), min(ranks[1], 2)), left, right)


def outer(builder: Builder, left: Value, right: Value) -> Value:
    """Emit the outer product of two vectors."""
    column = reshape(builder, left, (*builder.shape(left), 1))
    *stack, size = builder.shape(right)
    return matmul(builder, column, reshape(builder, right, (*stack, 1, size)))


def _multiply_in_blocks(a: Array, b: Array) -> Array:
    """Multiply two matrices; if the right matrix is small, compute blocks of rows.

    OpenBLAS starts threads for more than 2**18 multiplications. On a busy machine, waiting for the
    threads takes much longer than a small product.
    """
    rows = 2**18 // max(1, b.size)
    if rows < 1024 or a.ndim != 2 or len(a) <= rows:
        return a @ b
    result = np.empty((len(a), b.shape[1]), np.result_type(a, b))
    for begin in range(0, len(a), rows):
        np.matmul(a[begin : begin + rows], b, out=result[begin : begin + rows])
    return result
