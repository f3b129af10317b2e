"""The interface of all operations that an instruction of a tape can apply.

An operation is either an elementwise :class:`Primitive`, which an instruction identifies by a
string such as ``"mul"``, or an
:class:`~cgprimer.core.operations.array_operation.ArrayOperation`, an object with settings such as
``Sum(axes=(-1,))``. Both classes implement this interface.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from cgprimer.core.language.syntax_tree import Shape

Builder = Any  #: builds a tape, or computes immediately: has emit, constant, shape, broadcast
Value = Any  #: a value of a builder: an index into a tape, or a computed value


class Operation(ABC):
    """A function of one or more values, with derivative rules for forward and reverse mode.

    Attributes:
        name: identifies the kind of operation.
        latex: a format string with ``{a}``, ``{b}``, ``{c}``; empty for the name with arguments.
        analytic: True if complex operands are allowed (complex step).
    """

    name: str
    latex: str = ""
    analytic: bool = True

    @property
    @abstractmethod
    def built_in(self) -> bool:
        """True if the operation is part of cgprimer."""

    @abstractmethod
    def shape(self, *operands: Shape) -> Shape:
        """Return the per-sample shape of the result from the shapes of the operands.

        Raises:
            ShapeError: the shapes of the operands are incompatible.
        """

    @abstractmethod
    def jvp(
        self, builder: Builder, index: int, tangent: Value, operands: Sequence[Value], result: Value
    ) -> tuple[Value, Value] | None:
        """Emit the contribution of one operand's tangent to the tangent of the result.

        Args:
            builder: the builder that receives the instructions.
            index: the index of the operand, counted from 0.
            tangent: the tangent of the operand.
            operands: the values of all operands.
            result: the value of the result.

        Returns:
            The contribution and its partial derivative (1 if the rule has no separate partial);
            None if the derivative is zero everywhere.
        """

    @abstractmethod
    def vjp(
        self, builder: Builder, index: int, adjoint: Value, operands: Sequence[Value], result: Value
    ) -> tuple[Value, Value] | None:
        """Emit the contribution of the result's adjoint to the adjoint of one operand.

        The arguments and the return value correspond to :meth:`jvp`; ``adjoint`` is the adjoint of
        the result.
        """
