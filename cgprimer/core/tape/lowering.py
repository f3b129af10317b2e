"""Lower a graph to a tape: every definition becomes instructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from cgprimer.core.language.syntax_tree import (
    Expression,
    Name,
    Number,
    Operator,
    Shape,
    fold,
)
from cgprimer.core.operations.primitive_registry import ARRAY_FUNCTIONS, find_primitive
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_entries import Leaf
from cgprimer.core.tape.verifier import verify
from cgprimer.errors import ShapeError
from cgprimer.support.garbage_collection import pause_garbage_collection


class LowerableGraph(Protocol):
    """The attributes of an expression graph that lowering reads."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The variables without a definition."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The learnable parameters."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """The output variables."""

    @property
    def definitions(self) -> Mapping[str, Expression]:
        """The expression of each defined variable, in execution order."""

    @property
    def shapes(self) -> Mapping[str, Shape]:
        """The declared shapes of inputs and parameters that are arrays."""

    def misfit(self, name: str, operation: int, error: ShapeError) -> ShapeError:
        """Return a shape error with the position of an operation in the graph's text."""


def lower(graph: LowerableGraph, mode: str = "") -> Tape:
    """Lower a graph to a tape: each variable becomes a separate value.

    Inputs become columns and parameters become scalars. Constants are folded, but nothing else is
    simplified, so infinities and nans appear where the expressions have them.

    Args:
        graph: the graph.
        mode: ``"training"`` to expand layers such as dropout for training; ``""`` for inference.
            See :mod:`cgprimer.core.operations.layer_expansions`.

    >>> from cgprimer.core.graph import parse
    >>> len(lower(parse("xx = xa^2; xw = ab*xx + xa^2")))
    4
    """
    builder = Builder(simplify=False)
    builder.mode = mode
    with pause_garbage_collection():
        for name in graph.inputs:
            builder.leaf("column", name, shape=graph.shapes.get(name, ()))
        for name in graph.parameters:
            builder.leaf("scalar", name, shape=graph.shapes.get(name, ()))
        for name, expression in graph.definitions.items():
            emit_vertex(builder, name, expression, graph)
        return verify(builder.finish({name: builder.names[name] for name in graph.outputs}))


def emit_function(builder: Builder, function: str | Operator, operands: list[int]) -> int:
    """Emit a node of a syntax tree: a primitive, an array function or an index."""
    if function in ARRAY_FUNCTIONS or not isinstance(function, str):
        # The module imports numpy.
        from cgprimer.core.operations.function_expansions import emit_array_function

        return int(emit_array_function(builder, function, operands))
    return builder.emit(function, *operands)


def emit_vertex(
    builder: Builder, name: str, expression: Expression, graph: LowerableGraph | None = None
) -> int:
    """Emit the expression that defines a vertex, and name and pin its value.

    Args:
        builder: the builder of the tape, with the values of all names in the expression.
        name: the name of the vertex.
        expression: its right-hand side.
        graph: the graph of the vertex, for the positions in error messages.
    """

    def emit_leaf(node: Name | Number) -> int:
        """Return the value of a name or number in the expression."""
        return builder.names[node.name] if isinstance(node, Name) else builder.constant(node.value)

    applied, builder.vertex = 0, name

    def emit_operation(function: str | Operator, operands: list[int]) -> int:
        """Emit a function applied to operands."""
        nonlocal applied
        applied += 1
        return emit_function(builder, function, operands)

    try:
        root = fold(expression, emit_leaf, emit_operation)
    except ShapeError as error:
        raise (error if graph is None else graph.misfit(name, applied - 1, error)) from None
    last = root == len(builder.entries) - 1 and root not in builder.pinned
    if last and not isinstance(builder.entries[root], Leaf):
        builder.pin(root)
    else:  # a leaf, or a value of another vertex: this vertex is a copy
        root = builder.emit("copy", root, pinned=True)
    return builder.name(root, name)


def emit_partial(
    builder: Any, name: str, index: int, operands: Sequence[Any], result: Any
) -> Any | None:
    """Emit the partial derivative of an elementwise primitive with respect to one operand.

    Args:
        builder: the builder of the tape.
        name: the name of the primitive.
        index: the position of the operand, counted from 0.
        operands: the values of all operands.
        result: the value of the primitive.

    Returns:
        The value of the partial derivative, or None if it is zero everywhere.
    """
    return find_primitive(name).emit_partial(builder, index, operands, result)
