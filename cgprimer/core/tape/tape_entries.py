"""The entries of a tape: leaves, instructions and contributions, as plain data."""

from __future__ import annotations

from typing import Literal, NamedTuple

from cgprimer.core.language.syntax_tree import Shape
from cgprimer.core.operations.primitive_registry import Applied

Kind = Literal["column", "scalar", "constant"]


class Leaf(NamedTuple):
    """An input of the tape: a column (one value per sample), a scalar (one for all) or a constant.

    Values are numbers; if the leaf has a shape, each value is an array of this shape.
    """

    kind: Kind
    name: str
    value: float = 0.0  # of a constant; a mask's probability of 1; a statistic's initial value
    shape: Shape = ()  # per sample


class Instruction(NamedTuple):
    """An operation applied to earlier values.

    Attributes:
        primitive: the name of an elementwise primitive, such as ``mul``, or an
            :class:`~cgprimer.core.operations.array_operation.ArrayOperation`.
        operands: the indices of the values that it is applied to.
    """

    primitive: Applied
    operands: tuple[int, ...]


class Contribution(NamedTuple):
    """A product that a derivative program adds along one edge; each field is an index of a value.

    ``total`` is a sum of products: the adjoint of ``tail`` in reverse mode, the tangent of ``head``
    in forward mode. Traces, diagrams and explanations of derivatives read contributions.

    Attributes:
        tail: an operand.
        head: the value that is computed from it.
        partial: the derivative of ``head`` with respect to ``tail``.
        product: the adjoint of ``head`` times the partial, or the partial times the tangent of
            ``tail``.
        total: the sum so far, including this product.
    """

    tail: int
    head: int
    partial: int
    product: int
    total: int
