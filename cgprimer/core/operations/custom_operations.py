"""Functions with a custom backward pass, as operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cgprimer.core.language.syntax_tree import Shape
from cgprimer.core.operations.array_operation import Array, ArrayOperation
from cgprimer.core.operations.operation import Builder, Value
from cgprimer.errors import DifferentiationError, TapeError


class CustomFunction(Protocol):
    """A function with a custom backward pass, on values of one sample.

    Attributes:
        name: the function's name in expressions and messages.
        is_rule: whether its backward pass is emitted, and calls no Python function.
    """

    name: str
    is_rule: bool

    def shape(self, *operands: Shape) -> Shape:
        """Return the shape of the result."""

    def value(self, *operands: Any, ranks: Sequence[int]) -> Any:
        """Return the result for each sample; ``ranks`` are the ranks of one sample's operands."""

    def operand_adjoint(
        self, adjoint: Any, *operands: Any, index: int, ranks: Sequence[int]
    ) -> Any:
        """Return the adjoint of one operand; the first of ``ranks`` is the rank of the result."""

    def emit_adjoint(
        self, builder: Builder, index: int, adjoint: Value, values: Sequence[Value]
    ) -> Value:
        """Emit the adjoint of one operand; ``values`` are the operands and the result."""


@dataclass(frozen=True)
class Custom(ArrayOperation):
    """An operation that calls a custom function; ``ranks`` are the ranks of its operands."""

    function: Any  # a CustomFunction
    ranks: tuple[int, ...] = ()
    name = "custom"
    runs_python = True

    @property
    def spelling(self) -> str:
        return str(self.function.name)

    def shape(self, *operands: Shape) -> Shape:
        shape: Shape = self.function.shape(*operands)
        return shape

    def run(self, *operands: Any) -> Any:
        return self.function.value(*operands, ranks=self.ranks)

    def push_forward(
        self, builder: Builder, index: int, tangent: Value, operands: Sequence[Value], result: Value
    ) -> Value:
        raise create_forward_mode_error(self.function.name)

    def pull_back(
        self, builder: Builder, index: int, adjoint: Value, operands: Sequence[Value], result: Value
    ) -> Value:
        return self.function.emit_adjoint(builder, index, adjoint, (*operands, result))

    def scalarize(self, builder: Builder, *operands: Array) -> Array:
        return _emit_scalar_call(self, builder, operands)


@dataclass(frozen=True)
class CustomBackward(ArrayOperation):
    """The backward pass of a custom function, for the operand at a position.

    The operands are the adjoint of the function's result and the function's operands.
    """

    function: Any  # a CustomFunction
    position: int
    ranks: tuple[int, ...]
    name = "backward"
    runs_python = True

    @property
    def spelling(self) -> str:
        return f"{self.function.name}_backward"

    def format_settings(self) -> list[str]:
        return [str(self.position)]

    def shape(self, *operands: Shape) -> Shape:
        return operands[1 + self.position]

    def run(self, *operands: Any) -> Any:
        return self.function.operand_adjoint(*operands, index=self.position, ranks=self.ranks)

    def push_forward(
        self, builder: Builder, index: int, tangent: Value, operands: Sequence[Value], result: Value
    ) -> Value:
        raise self._second_derivative_error()

    def pull_back(
        self, builder: Builder, index: int, adjoint: Value, operands: Sequence[Value], result: Value
    ) -> Value:
        raise self._second_derivative_error()

    def scalarize(self, builder: Builder, *operands: Array) -> Array:
        return _emit_scalar_call(self, builder, operands)

    def _second_derivative_error(self) -> DifferentiationError:
        return DifferentiationError(
            f"the backward pass of {self.function.name!r} cannot be differentiated"
        )


def create_forward_mode_error(name: str) -> DifferentiationError:
    """Return the error for a function that has no rule for forward mode."""
    return DifferentiationError(
        f"{name!r} has a custom backward pass, which only reverse mode uses",
        hint="use `method='reverse'`",
    )


def _emit_scalar_call(
    operation: Custom | CustomBackward, builder: Builder, operands: Sequence[Array]
) -> Array:
    if any(operand.ndim for operand in operands):
        raise TapeError(
            f"{operation.function.name!r} is a Python function of arrays and cannot be expanded"
            " into scalar operations"
        )
    return np.array(builder.emit(operation, *map(int, operands)))
