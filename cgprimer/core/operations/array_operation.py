"""The base class of operations on arrays: those that are not computed element by element.

They move elements, add them up or multiply matrices. An instruction of a tape holds an object with
its settings, ``Sum(axes=(-1,))``; equal settings make equal objects. Axes are counted from the end,
since samples are leading axes that no operation sees.

Source: the operations of numpy; Giles 2008, "Collected matrix derivative results for forward and
reverse mode algorithmic differentiation".
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache, partial, reduce
from math import prod
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from cgprimer.core.language.syntax_tree import Operator
from cgprimer.core.operations.operation import Builder, Operation, Value

Array = npt.NDArray[Any]
A = TypeVar("A", bound="ArrayOperation")
Emit = Callable[..., int]  #: emits an elementwise primitive of values of a tape


@dataclass(frozen=True)
class ArrayOperation(Operation, Operator):
    """An operation on arrays; its dataclass fields are its settings.

    Most are linear in every operand, so that forward mode applies the operation to the tangent and
    reverse mode applies its transpose to the adjoint.

    Attributes:
        moves_elements: whether every element of the result is an element of an operand (or 0).
        sums_products: whether each element of the result is a sum along an operand's last axis.
        commutes_with_sum: whether a sum over the samples may be taken of the operand instead.
        may_be_view: whether numpy's result may share memory with an operand.
        over_samples: whether it combines all samples, so that they must be computed together.
        runs_python: whether it calls a Python function from outside, with its own backward pass.
    """

    moves_elements = False
    sums_products = False
    commutes_with_sum = False
    may_be_view = False
    combines_samples = False
    runs_python = False

    @classmethod
    def create(cls: type[A], *settings: Any) -> A:
        """Return the operation with these settings; recently created objects are reused."""
        return _create_cached(cls, settings)  # type: ignore[no-any-return]

    @property
    def built_in(self) -> bool:
        """True if the operation belongs to the package."""
        return not self.runs_python

    @property
    def settings(self) -> tuple[Any, ...]:
        """The values of all fields."""
        return tuple([getattr(self, field.name) for field in fields(self)])

    @abstractmethod
    def run(self, *operands: Any) -> Any:
        """Return the result for arrays; leading axes of the operands count the samples."""

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
        """Emit :meth:`push_forward`; the returned partial is 1, since it is already applied."""
        product = self.push_forward(builder, index, tangent, operands, result)
        return product, builder.constant(1.0)

    def vjp(
        self, builder: Builder, index: int, adjoint: Value, operands: Sequence[Value], result: Value
    ) -> tuple[Value, Value]:
        """Emit :meth:`pull_back`; the returned partial is 1, since it is already applied."""
        product = self.pull_back(builder, index, adjoint, operands, result)
        return product, builder.constant(1.0)

    def scalarize(self, builder: Builder, *operands: Array) -> Array:
        """Emit the operation element by element, as scalar instructions.

        Args:
            builder: the builder that receives the instructions.
            operands: arrays of values of the builder, one for each element.

        Returns:
            The values of the result's elements.
        """
        result: Array = self.run(*operands)
        return result


@lru_cache(maxsize=1024)
def _create_cached(cls: Any, settings: tuple[Any, ...]) -> Any:
    return cls(*settings)


def emit_elementwise(builder: Builder, name: Any, *operands: Array) -> Array:
    """Emit an elementwise primitive once for each element of the broadcast operands."""
    arrays = np.broadcast_arrays(*operands)
    elements = zip(*(a.flat for a in arrays), strict=True)
    values = [builder.emit(name, *map(int, element)) for element in elements]
    return np.array(values, dtype=int).reshape(arrays[0].shape)


def reduce_last_axis(builder: Builder, name: str, rows: Array) -> Array:
    """Emit a reduction of the last axis by a primitive with two operands, from left to right."""
    flat = rows.reshape(prod(rows.shape[:-1]), rows.shape[-1])
    combine = partial(builder.emit, name)
    values = [reduce(combine, row) if row else builder.constant(0.0) for row in flat.tolist()]
    return np.array(values, dtype=int).reshape(rows.shape[:-1])
