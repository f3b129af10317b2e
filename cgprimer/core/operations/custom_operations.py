"""Operations that call Python functions with a custom backward pass."""

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
    """A function with a custom backward pass, defined for one sample.

    Attributes:
        name: the name of the function in expressions and messages.
        is_rule: True if the backward pass is emitted as instructions and calls no Python function.
    """

    name: str
    is_rule: bool

    def shape(self, *operands: Shape) -> Shape:
        """Return the shape of the function's result for operands with the given shapes."""

    def evaluate(self, *operands: Any, ranks: Sequence[int]) -> Any:
        """Compute the result for all samples; ``ranks`` are the operands' ranks per sample."""

    def compute_operand_adjoint(
        self, adjoint: Any, *operands: Any, index: int, ranks: Sequence[int]
    ) -> Any:
        """Compute the adjoint of one operand from the adjoint of the result.

        ``ranks`` are the ranks per sample: first of the result, then of the operands.
        """

    def emit_adjoint(
        self, builder: Builder, index: int, adjoint: Value, values: Sequence[Value]
    ) -> Value:
        """Emit the adjoint of one operand; ``values`` are the operands and then the result."""


@dataclass(frozen=True)
class CustomCall(ArrayOperation):
    """A call to a custom function; ``ranks`` are the operands' ranks per sample."""

    function: Any  # a CustomFunction
    ranks: tuple[int, ...] = ()
    name = "custom"
    runs_python = True

    @property
    def spelling(self) -> str:
        """The name of the custom function."""
        return str(self.function.name)

    def shape(self, *operands: Shape) -> Shape:
        """Return the shape of the function's result."""
        shape: Shape = self.function.shape(*operands)
        return shape

    def run(self, *operands: Any) -> Any:
        """Call the custom function for all samples."""
        return self.function.evaluate(*operands, ranks=self.ranks)

    def push_forward(
        self, builder: Builder, index: int, tangent: Value, operands: Sequence[Value], result: Value
    ) -> Value:
        """Raise DifferentiationError, since a custom function has no rule for forward mode."""
        raise create_forward_mode_error(self.function.name)

    def pull_back(
        self, builder: Builder, index: int, adjoint: Value, operands: Sequence[Value], result: Value
    ) -> Value:
        """Emit the adjoint of one operand with the custom backward pass."""
        return self.function.emit_adjoint(builder, index, adjoint, (*operands, result))

    def scalarize(self, builder: Builder, *operands: Array) -> Array:
        """Emit one call with scalar operands; raise TapeError for arrays."""
        return _emit_scalar_call(self, builder, operands)


@dataclass(frozen=True)
class CustomBackwardCall(ArrayOperation):
    """A call to the backward pass of a custom function, for the operand with index ``position``.

    The operands of this operation are the adjoint of the function's result and the operands of the
    function.
    """

    function: Any  # a CustomFunction
    position: int
    ranks: tuple[int, ...]
    name = "backward"
    runs_python = True

    @property
    def spelling(self) -> str:
        """The name of the custom function with the suffix ``_backward``."""
        return f"{self.function.name}_backward"

    def format_settings(self) -> list[str]:
        """Return the index of the operand as a string."""
        return [str(self.position)]

    def shape(self, *operands: Shape) -> Shape:
        """Return the shape of the operand whose adjoint is computed."""
        return operands[1 + self.position]

    def run(self, *operands: Any) -> Any:
        """Call the custom backward pass for all samples."""
        return self.function.compute_operand_adjoint(
            *operands, index=self.position, ranks=self.ranks
        )

    def push_forward(
        self, builder: Builder, index: int, tangent: Value, operands: Sequence[Value], result: Value
    ) -> Value:
        """Raise DifferentiationError, since a custom backward pass has no derivative rule."""
        raise self._create_second_derivative_error()

    def pull_back(
        self, builder: Builder, index: int, adjoint: Value, operands: Sequence[Value], result: Value
    ) -> Value:
        """Raise DifferentiationError, since a custom backward pass has no derivative rule."""
        raise self._create_second_derivative_error()

    def scalarize(self, builder: Builder, *operands: Array) -> Array:
        """Emit one call with scalar operands; raise TapeError for arrays."""
        return _emit_scalar_call(self, builder, operands)

    def _create_second_derivative_error(self) -> DifferentiationError:
        """Return the error for second derivatives of a custom function."""
        return DifferentiationError(
            f"cannot differentiate the custom backward pass of {self.function.name!r}"
        )


def create_forward_mode_error(name: str) -> DifferentiationError:
    """Return the error for a custom function, which has no rule for forward mode."""
    return DifferentiationError(
        f"cannot differentiate {name!r} in forward mode: it has only a custom backward pass",
        hint="use `method='reverse'`",
    )


def _emit_scalar_call(
    operation: CustomCall | CustomBackwardCall, builder: Builder, operands: Sequence[Array]
) -> Array:
    """Emit one call to a custom function of scalars; raise TapeError if an operand is an array."""
    if any(operand.ndim for operand in operands):
        raise TapeError(
            f"cannot expand {operation.function.name!r} into scalar instructions: it is a Python"
            " function of arrays"
        )
    return np.array(builder.emit(operation, *map(int, operands)))
