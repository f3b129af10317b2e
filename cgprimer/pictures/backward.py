"""The backward graph of reverse mode: what flows back, as a graph of its own.

PyTorch keeps this graph as the chain of ``grad_fn``; here every vertex is an adjoint, with the
instruction that computes it from the adjoints of what its value was used for.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from cgprimer.core.derivatives.evaluation import chosen_output, point_values
from cgprimer.core.derivatives.evaluation import tape as tape_of
from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.language.syntax import Apply, Expression, Name, Number
from cgprimer.core.methods import differentiate
from cgprimer.core.primitives.notation import unparse
from cgprimer.core.run import values_of
from cgprimer.core.tape.printing import labels
from cgprimer.core.tape.tape import Share, Tape
from cgprimer.number_format import equals, number
from cgprimer.pictures.diagram import Diagram, Edge, Node, Role


def backward_diagram(
    graph: ExpressionGraph,
    *,
    at: Mapping[str, float] | None = None,
    of: str | None = None,
    title: str = "",
) -> Diagram:
    """A vertex per adjoint of the tape, from the seed to the inputs and parameters.

    Args:
        graph: the graph.
        at: given, every adjoint shows its number there; declared values fill the rest.
        of: the variable that is differentiated; the only output unless given.
        title: above the picture.

    >>> from cgprimer.core.graph import parse
    >>> for node in backward_diagram(parse("xx = xa^2; xw = xx*k")).nodes:
    ...     print(node.label, *node.detail)
    bar_xw = 1
    bar_xx bar_xw*k
    bar_k bar_xw*xx
    bar_xa bar_xx*2*xa
    """
    target = chosen_output(graph, of)
    program = differentiate(tape_of(graph), of=target, wrt=[*graph.inputs, *graph.parameters])
    tape = program.tape
    names = labels(tape)
    root = tape.index(target)
    shares: dict[int, list[Share]] = {}
    for share in program.shares:
        shares.setdefault(share.tail, []).append(share)
    primal = {tape.index(name) for name in program.primal_names if name in tape.names}
    primal |= {end for share in program.shares for end in (share.tail, share.head)}
    known = {index: names[index] for index in primal if names[index]}
    found = values_of(tape, point_values(graph, at)) if at is not None else []

    def vertex(index: int, role: Role) -> Node:
        label = f"bar_{names[index]}"
        if index not in shares:
            return Node(str(index), label, role, ("= 1",))
        terms = [
            _times(Name(f"bar_{names[share.head]}"), _tree(tape, share.partial, known))
            for share in shares[index]
        ]
        text = unparse(reduce(lambda left, right: Apply("add", (left, right)), terms))
        if not found:
            return Node(str(index), label, role, (text,))
        total = float(found[shares[index][-1].total])
        return Node(str(index), label, role, (text, f"{equals(total)} {number(total)}"))

    nodes = [vertex(root, "seed")]
    for index in sorted(shares, reverse=True):
        nodes.append(vertex(index, "adjoint" if index >= len(tape.leaves) else "gradient"))
    ends = dict.fromkeys((str(share.head), str(share.tail)) for share in program.shares)
    note = f"bar_v is the adjoint of v: the derivative of {target} with respect to it"
    return Diagram(tuple(nodes), tuple(Edge(*pair) for pair in ends), title, (note,))


def _times(bar: Expression, partial: Expression) -> Expression:
    """The product, in the order in which people write it."""
    if isinstance(partial, Number) and partial.value == 1.0:
        return bar
    if isinstance(partial, Number) and partial.value == -1.0:
        return Apply("neg", (bar,))
    if isinstance(partial, Apply) and partial.primitive == "mul":  # a*(b*c) reads as a*b*c
        return Apply("mul", (_times(bar, partial.arguments[0]), partial.arguments[1]))
    return Apply("mul", (bar, partial))


def _tree(tape: Tape, index: int, known: Mapping[int, str]) -> Expression:
    """A value as an expression in the primal's names; a partial has only a few operations."""
    if index in known:
        return Name(known[index])
    instruction = tape.instruction(index)
    if instruction is None:
        return Number(tape.leaves[index].value)
    return Apply(instruction.primitive, tuple(_tree(tape, o, known) for o in instruction.operands))
