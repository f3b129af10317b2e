"""Operations that combine all samples; other operations process each sample separately."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cgprimer.core.language.syntax_tree import Shape
from cgprimer.core.operations.array_operation import Array, ArrayOperation, emit_elementwise
from cgprimer.core.operations.operation import Builder, Value
from cgprimer.errors import DifferentiationError


@dataclass(frozen=True)
class _BatchReduction(ArrayOperation):
    """A reduction over all samples; ``rank`` is the rank of the operand per sample."""

    rank: int
    combines_samples = True

    def shape(self, *operands: Shape) -> Shape:
        """Return the shape of the result, which is the shape of the operand."""
        return operands[0]


@dataclass(frozen=True)
class BatchMean(_BatchReduction):
    """The mean over all samples, broadcast to all samples."""

    name = "batch_mean"

    def run(self, *operands: Any) -> Any:
        """Compute the mean over all samples and broadcast it to all samples."""
        a = np.asarray(operands[0])
        samples = a.shape[: a.ndim - self.rank]
        axes = tuple(range(len(samples)))
        total = np.add.reduce(a, axis=axes, keepdims=True)  # faster than np.mean
        return np.broadcast_to(total / max(math.prod(samples), 1), a.shape)

    def pull_back(
        self, builder: Builder, index: int, adjoint: Value, operands: Sequence[Value], result: Value
    ) -> Value:
        """Emit the mean of the adjoint over all samples."""
        return builder.emit(self, adjoint)

    def scalarize(self, builder: Builder, *operands: Array) -> Array:
        """Emit one mean over all samples for each element."""
        return emit_elementwise(builder, BatchMean.create(0), *operands)


@dataclass(frozen=True)
class BatchSum(_BatchReduction):
    """The sum over all samples, computed in double precision."""

    name = "batch_sum"
    may_be_view = True

    def format_settings(self) -> list[str]:
        """Return the rank of the operand as a string."""
        return [str(self.rank)]

    def run(self, *operands: Any) -> Any:
        """Compute the sum over all samples; a value without a sample axis stays unchanged."""
        (a,) = operands
        if np.ndim(a) <= self.rank:
            return a
        return np.add.reduce(a, axis=0, dtype=np.result_type(a, float))

    def pull_back(
        self, builder: Builder, index: int, adjoint: Value, operands: Sequence[Value], result: Value
    ) -> Value:
        """Raise DifferentiationError, since a sum over samples has no derivative rule."""
        raise DifferentiationError("batch_sum has no derivative rule")
