"""Means and sums over all samples; other operations process each sample separately."""

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
    """An operation that combines all samples; ``rank`` is the rank of one sample's value."""

    rank: int
    combines_samples = True

    def shape(self, *operands: Shape) -> Shape:
        return operands[0]


@dataclass(frozen=True)
class BatchMean(_BatchReduction):
    """The mean over the samples, repeated for each of them."""

    name = "batch_mean"

    def run(self, *operands: Any) -> Any:
        a = np.asarray(operands[0])
        samples = a.shape[: a.ndim - self.rank]
        axes = tuple(range(len(samples)))
        total = np.add.reduce(a, axis=axes, keepdims=True)  # faster than np.mean
        return np.broadcast_to(total / max(math.prod(samples), 1), a.shape)

    def pull_back(
        self, builder: Builder, index: int, adjoint: Value, operands: Sequence[Value], result: Value
    ) -> Value:
        return builder.emit(self, adjoint)

    def scalarize(self, builder: Builder, *operands: Array) -> Array:
        return emit_elementwise(builder, BatchMean.create(0), *operands)


@dataclass(frozen=True)
class BatchSum(_BatchReduction):
    """The sum over the samples, in double precision."""

    name = "batch_sum"
    may_be_view = True

    def format_settings(self) -> list[str]:
        return [str(self.rank)]

    def run(self, *operands: Any) -> Any:
        (a,) = operands
        if np.ndim(a) <= self.rank:
            return a
        return np.add.reduce(a, axis=0, dtype=np.result_type(a, float))

    def pull_back(
        self, builder: Builder, index: int, adjoint: Value, operands: Sequence[Value], result: Value
    ) -> Value:
        raise DifferentiationError("batch_sum has no derivative rule")
