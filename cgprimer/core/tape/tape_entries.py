"""The entries of a tape: leaves, instructions and contributions, as plain data."""

from __future__ import annotations

from typing import Literal, NamedTuple

from cgprimer.core.language.syntax_tree import Shape
from cgprimer.core.operations.primitive_registry import Applied

Kind = Literal["column", "scalar", "constant"]


class Leaf(NamedTuple):
    """A leaf of a tape: a value that is not computed, but passed in or constant.

    Attributes:
        kind: ``"column"`` for an input with one value per sample, ``"scalar"`` for an input with
            one value for all samples, or ``"constant"``.
        name: the name of the input.
        value: the value of a constant, the probability of 1 in a dropout mask, or the initial
            value of a running statistic.
        shape: the shape of the value of one sample; ``()`` for a scalar.
    """

    kind: Kind
    name: str
    value: float = 0.0
    shape: Shape = ()


class Instruction(NamedTuple):
    """One operation of a tape, applied to earlier values of the tape.

    Attributes:
        primitive: the name of an elementwise primitive, such as ``mul``, or an
            :class:`~cgprimer.core.operations.array_operation.ArrayOperation`.
        operands: the indices of the values that the operation is applied to.
    """

    primitive: Applied
    operands: tuple[int, ...]


class Contribution(NamedTuple):
    """A product that the chain rule adds to an adjoint or tangent, for one edge of a graph.

    Each field is the index of a value of the tape that computes the derivative.

    ``total`` is a sum of products: the adjoint of ``tail`` in reverse mode, the tangent of ``head``
    in forward mode. Traces, diagrams and explanations of derivatives read contributions.

    Attributes:
        tail: the operand from which the edge starts.
        head: the value that is computed from ``tail``.
        partial: the derivative of ``head`` with respect to ``tail``.
        product: the adjoint of ``head`` times the partial, or the partial times the tangent of
            ``tail``.
        total: the sum of the products up to and including this product.
    """

    tail: int
    head: int
    partial: int
    product: int
    total: int
