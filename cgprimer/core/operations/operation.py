"""The interface of the operations that an instruction of a tape can apply.

An operation is either an elementwise :class:`Primitive` (a row of the table, which an
instruction names by a text such as ``"mul"``) or an
:class:`~cgprimer.core.operations.array_operation.ArrayOperation` (an object with settings, such as
``Sum(axes=(-1,))``). Both have the same methods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from cgprimer.core.language.syntax_tree import Shape

Builder = Any  #: of a tape, or one that computes at once: it has emit, constant, shape, broadcast
Value = Any  #: a value of a builder: an index into a tape, or a number


class Operation(ABC):
    """A function of one or more values, with its derivative rules.

    Attributes:
        name: identifies the kind of operation.
        latex: a format string with ``{a}``, ``{b}``, ``{c}``; empty for the name with arguments.
        analytic: whether it may be evaluated at complex numbers (complex step).
    """

    name: str
    latex: str = ""
    analytic: bool = True

    @property
    @abstractmethod
    def built_in(self) -> bool:
        """True if the operation belongs to the package."""

    @abstractmethod
    def shape(self, *operands: Shape) -> Shape:
        """Return the shape of the result for operands of these shapes, per sample.

        Raises:
            ShapeError: the operation does not accept operands of these shapes.
        """

    @abstractmethod
    def jvp(
        self, builder: Builder, index: int, tangent: Value, operands: Sequence[Value], result: Value
    ) -> tuple[Value, Value] | None:
        """Emit the contribution of one operand's tangent to the tangent of the result.

        Args:
            builder: the builder that receives the instructions.
            index: the operand's position, counted from 0.
            tangent: the tangent of that operand.
            operands: the operands' values.
            result: the result's value.

        Returns:
            The contribution, and the partial derivative in it (1 where there is no single one);
            None where the derivative is zero everywhere.
        """

    @abstractmethod
    def vjp(
        self, builder: Builder, index: int, adjoint: Value, operands: Sequence[Value], result: Value
    ) -> tuple[Value, Value] | None:
        """Emit the contribution of the result's adjoint to the adjoint of one operand.

        Arguments and return value are those of :meth:`jvp`, with the adjoint of the result.
        """
