"""The base class of array operations, which are not computed element by element.

Array operations move elements, add elements or multiply matrices. An instruction of a tape holds an
object with settings, such as ``Sum(axes=(-1,))``; objects with equal settings are equal. Axes are
counted from the end, since samples are leading axes that operations do not see.

Source: the operations of numpy; Giles 2008, "Collected matrix derivative results for forward and
reverse mode algorithmic differentiation".
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache, partial, reduce
from math import prod
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from cgprimer.core.language.syntax_tree import Operator
from cgprimer.core.operations.operation import Builder, Operation, Value

if TYPE_CHECKING:
    import numpy.typing as npt

Array: TypeAlias = "npt.NDArray[Any]"


@dataclass(frozen=True)
class ArrayOperation(Operation, Operator):
    """An operation on arrays; its dataclass fields are its settings.

    Most array operations are linear in each operand: forward mode applies the operation to the
    tangent, and reverse mode applies the transpose of the operation to the adjoint.

    Attributes:
        moves_elements: True if every element of the result is an element of an operand or 0.
        sums_products: True if each element of the result is a sum along an operand's last axis.
        commutes_with_sum: True if a sum over samples can be computed before the operation.
        may_be_view: True if the result may share memory with an operand.
        combines_samples: True if the operation requires all samples at once.
        runs_python: True if the operation calls a Python function of the user.
    """

    moves_elements = False
    sums_products = False
    commutes_with_sum = False
    may_be_view = False
    combines_samples = False
    runs_python = False

    @classmethod
    def create(cls, *settings: Any) -> Self:
        """Return the cached operation with the given settings; create it if necessary."""
        return _create_cached_operation(cls, settings)  # type: ignore[no-any-return]

    @property
    def built_in(self) -> bool:
        """True if the operation is part of cgprimer."""
        return not self.runs_python

    @property
    def settings(self) -> tuple[Any, ...]:
        """The settings of the operation, in the order of its fields."""
        return tuple([getattr(self, field.name) for field in fields(self)])

    @abstractmethod
    def run(self, *operands: Any) -> Any:
        """Compute the result of the operation with numpy; leading axes of operands are samples."""

    def push_forward(
        self, builder: Builder, index: int, tangent: Value, operands: Sequence[Value], result: Value
    ) -> Value:
        """Emit the contribution of one operand's tangent to the tangent of the result."""
        moved = [tangent if i == index else operand for i, operand in enumerate(operands)]
        return builder.emit(self, *moved)

    @abstractmethod
    def pull_back(
        self, builder: Builder, index: int, adjoint: Value, operands: Sequence[Value], result: Value
    ) -> Value:
        """Emit the contribution of the result's adjoint to the adjoint of one operand."""

    def jvp(
        self, builder: Builder, index: int, tangent: Value, operands: Sequence[Value], result: Value
    ) -> tuple[Value, Value]:
        """Emit the Jacobian-vector product of one operand; the returned partial is 1."""
        product = self.push_forward(builder, index, tangent, operands, result)
        return product, builder.constant(1.0)

    def vjp(
        self, builder: Builder, index: int, adjoint: Value, operands: Sequence[Value], result: Value
    ) -> tuple[Value, Value]:
        """Emit the vector-Jacobian product of one operand; the returned partial is 1."""
        product = self.pull_back(builder, index, adjoint, operands, result)
        return product, builder.constant(1.0)

    def scalarize(self, builder: Builder, *operands: Array) -> Array:
        """Emit the operation as scalar instructions, element by element.

        Args:
            builder: the builder that receives the instructions.
            operands: for each operand an array with the builder's values of its elements.

        Returns:
            An array with the builder's values of the elements of the result.
        """
        result: Array = self.run(*operands)
        return result


@lru_cache(maxsize=1024)
def _create_cached_operation(cls: Any, settings: tuple[Any, ...]) -> Any:
    """Create an operation of class ``cls``; results are cached."""
    return cls(*settings)


def emit_elementwise(builder: Builder, name: Any, *operands: Array) -> Array:
    """Emit one scalar instruction for each element of the broadcast operands."""
    import numpy as np

    arrays = np.broadcast_arrays(*operands)
    elements = zip(*(a.flat for a in arrays), strict=True)
    values = [builder.emit(name, *map(int, element)) for element in elements]
    return np.array(values, dtype=int).reshape(arrays[0].shape)


def reduce_last_axis(builder: Builder, name: str, rows: Array) -> Array:
    """Emit a reduction of the last axis with a binary primitive, from left to right."""
    import numpy as np

    flat = rows.reshape(prod(rows.shape[:-1]), rows.shape[-1])
    combine = partial(builder.emit, name)
    values = [reduce(combine, row) if row else builder.constant(0.0) for row in flat.tolist()]
    return np.array(values, dtype=int).reshape(rows.shape[:-1])
