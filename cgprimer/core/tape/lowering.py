"""Graph to tape, and the texts of partial derivatives to instructions."""

from __future__ import annotations

from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.language.syntax import Apply, Expression, Name, Number, fold, postorder
from cgprimer.core.primitives import OPERANDS, RESULT, primitive
from cgprimer.core.primitives.registry import partial_tree
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Leaf, Tape
from cgprimer.core.tape.verifier import checked
from cgprimer.garbage_collection import collector_paused


def lower(graph: ExpressionGraph) -> Tape:
    """The tape of a graph: every variable a value of its own, the graph's outputs its outputs.

    Inputs become columns, parameters scalars. The value computed is the one written: constants
    are folded, nothing else is simplified, so infinities and nans appear where the text has them.

    >>> from cgprimer.core.graph import parse
    >>> len(lower(parse("xx = xa^2; xw = ab*xx + xa^2")))
    4
    """
    builder = Builder(simplify=False)
    with collector_paused():
        for name in graph.inputs:
            builder.column(name)
        for name in graph.parameters:
            builder.scalar(name)
        for name, expression in graph.definitions.items():
            emit_vertex(builder, name, expression)
        return checked(builder.finish({name: builder.names[name] for name in graph.outputs}))


def emit_vertex(builder: Builder, name: str, expression: Expression) -> int:
    """Emit an expression as a named value that no other shares."""

    def leaf(node: Name | Number) -> int:
        return builder.names[node.name] if isinstance(node, Name) else builder.constant(node.value)

    root = fold(expression, leaf, lambda row, operands: builder.emit(row, *operands))
    is_leaf = isinstance(builder.entries[root], Leaf)
    if is_leaf or root in builder.pinned or root != len(builder.entries) - 1:
        # A leaf, another vertex, or a part of one: this vertex is a copy of it.
        root = builder.emit("copy", root, pinned=True)
    else:
        builder.pin(root)
    return builder.name(root, name)


Rule = int | float | tuple[tuple[str, int, float], ...]


def _rule(text: str) -> Rule:
    """The text of a partial, ready to be emitted.

    Returns:
        The slot of an operand or the result, -1 where it is zero everywhere; a constant; or steps
        for a stack: (primitive, argument count), a slot, or a number.
    """
    slots = {name: i for i, name in enumerate((*OPERANDS, RESULT))}
    if text == "0" or text in slots:  # as in the product: the partial is an operand itself
        return slots.get(text, -1)
    steps: list[tuple[str, int, float]] = []
    for node in postorder(partial_tree(text)):
        if isinstance(node, Apply):
            steps.append((node.primitive, len(node.arguments), 0.0))
        elif isinstance(node, Name):
            steps.append(("", slots[node.name], 0.0))
        else:
            steps.append(("", -1, node.value))
    return steps[0][2] if len(steps) == 1 else tuple(steps)


def emit_partial(
    builder: Builder, name: str, which: int, operands: tuple[int, ...], out: int
) -> int | None:
    """Emit the partial derivative of a primitive with respect to one operand.

    Args:
        builder: where to.
        name: the primitive.
        which: the operand's number, from 0.
        operands: the operands' values.
        out: the result's value.

    Returns:
        The value of the partial, or None where it is zero everywhere and nothing flows.
    """
    rule = builder.rules.get((name, which))
    if rule is None:
        rule = builder.rules[name, which] = _rule(primitive(name).partials[which])
    if type(rule) is int:
        return None if rule < 0 else out if rule == len(OPERANDS) else operands[rule]
    if type(rule) is float:
        return builder.constant(rule)
    stack: list[int] = []
    for row, count, number in rule:  # type: ignore[union-attr]
        if row:
            arguments = stack[-count:]
            del stack[-count:]
            stack.append(builder.emit(row, *arguments))
        elif count < 0:
            stack.append(builder.constant(number))
        else:
            stack.append(out if count == len(OPERANDS) else operands[count])
    return stack[0]
