"""Graph to tape, and the texts of partial derivatives to instructions."""

from __future__ import annotations

from typing import Any

from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.language.syntax import (
    Apply,
    Expression,
    Name,
    Number,
    Structural,
    fold,
    postorder,
)
from cgprimer.core.primitives import OPERANDS, RESULT, primitive
from cgprimer.core.primitives.registry import ARRAY_FUNCTIONS, partial_tree
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Leaf, Tape
from cgprimer.core.tape.verifier import checked
from cgprimer.errors import ShapeError
from cgprimer.garbage_collection import collector_paused


def lower(graph: ExpressionGraph, mode: str = "") -> Tape:
    """The tape of a graph: every variable a value of its own, the graph's outputs its outputs.

    ``mode`` says how layers are written out: see :mod:`cgprimer.core.primitives.layers`.

    Inputs become columns, parameters scalars. The value computed is the one written: constants
    are folded, nothing else is simplified, so infinities and nans appear where the text has them.

    >>> from cgprimer.core.graph import parse
    >>> len(lower(parse("xx = xa^2; xw = ab*xx + xa^2")))
    4
    """
    builder = Builder(simplify=False)
    builder.mode = mode
    with collector_paused():
        for name in graph.inputs:
            builder.leaf("column", name, shape=graph.shapes.get(name, ()))
        for name in graph.parameters:
            builder.leaf("scalar", name, shape=graph.shapes.get(name, ()))
        for name, expression in graph.definitions.items():
            emit_vertex(builder, name, expression, graph)
        return checked(builder.finish({name: builder.names[name] for name in graph.outputs}))


def emit_vertex(
    builder: Builder, name: str, expression: Expression, graph: ExpressionGraph | None = None
) -> int:
    """Emit an expression as a named value that no other shares."""

    def leaf(node: Name | Number) -> int:
        return builder.names[node.name] if isinstance(node, Name) else builder.constant(node.value)

    applied, builder.vertex = 0, name

    def emit(row: str, operands: list[int]) -> int:
        nonlocal applied
        applied += 1
        if row in ARRAY_FUNCTIONS or type(row) is not str:
            from cgprimer.core.primitives.array_functions import expanded

            return int(expanded(builder, row, operands))
        return builder.emit(row, *operands)

    try:
        root = fold(expression, leaf, emit)
    except ShapeError as error:
        raise (error if graph is None else graph.misfit(name, applied - 1, error)) from None
    last = root == len(builder.entries) - 1 and root not in builder.pinned
    if last and not isinstance(builder.entries[root], Leaf):
        builder.pin(root)
    else:  # a leaf, another vertex, or a part of one: this vertex is a copy of it
        root = builder.emit("copy", root, pinned=True)
    return builder.name(root, name)


def emit_flow_back(
    builder: Any, name: str, which: int, operands: tuple[Any, ...], out: Any, bar: Any
) -> tuple[Any, Any] | None:
    """What the adjoint of a result hands to that of an operand, and the partial it is made with.

    None where nothing flows. What moves elements or multiplies matrices has no single partial: its
    transpose is applied to the adjoint.
    """
    if isinstance(name, Structural):
        from cgprimer.core.primitives.shaped import pull

        return pull(builder, name, which, bar, (*operands, out)), builder.constant(1.0)
    partial = emit_partial(builder, name, which, operands, out)
    if partial is None:
        return None
    return builder.product(bar, partial), partial


def emit_flow_on(
    builder: Builder, name: str, which: int, operands: tuple[int, ...], out: int, dot: int
) -> tuple[int, int] | None:
    """What the tangent of an operand hands to that of the result, and the partial likewise."""
    if isinstance(name, Structural):
        from cgprimer.core.primitives.shaped import push

        return push(builder, name, which, dot, (*operands, out)), builder.constant(1.0)
    partial = emit_partial(builder, name, which, operands, out)
    return None if partial is None else (builder.emit("mul", partial, dot), partial)


def emit_partial(
    builder: Builder, name: str, which: int, operands: tuple[int, ...], out: int
) -> int | None:
    """The partial derivative of a primitive with respect to one operand, counted from 0.

    None where it is zero everywhere and nothing flows.
    """
    steps = builder.rules.get((name, which))
    if steps is None:
        steps = builder.rules[name, which] = _steps(primitive(name).partials[which])
    stack: list[int] = []
    for row, slot, number in steps:
        if row:
            arguments = stack[-slot:]
            del stack[-slot:]
            stack.append(builder.emit(row, *arguments))
        elif slot < 0:
            stack.append(builder.constant(number))
        else:
            stack.append(out if slot == len(OPERANDS) else operands[slot])
    return stack[0] if stack else None


def _steps(text: str) -> list[tuple[str, int, float]]:
    """A partial for a stack: a primitive and how many it takes, a slot, or a number; 0 is none."""
    slots = {name: i for i, name in enumerate((*OPERANDS, RESULT))}
    steps: list[tuple[str, int, float]] = []
    for node in postorder(partial_tree(text)) if text != "0" else ():
        if isinstance(node, Apply):
            steps.append((node.primitive, len(node.arguments), 0.0))
        elif isinstance(node, Name):
            steps.append(("", slots[node.name], 0.0))
        else:
            steps.append(("", -1, node.value))
    return steps
