"""The backward graph of reverse mode: what flows back, as a graph of its own.

PyTorch keeps this graph as the chain of ``grad_fn``; here every vertex is an adjoint, with the
instruction that computes it from the adjoints of what its value was used for.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from cgprimer.core.derivatives import resolve_output
from cgprimer.expressions import Apply, Expression, ExpressionGraph, Name, Number, unparse
from cgprimer.support.number_format import format_array_lines
from cgprimer.tapes import labels
from cgprimer.tapes import tape as tape_of
from cgprimer.visualization.diagrams.array_overlays import BackFlow, shape_text, value_tree
from cgprimer.visualization.diagrams.diagram import Diagram, Edge, Node, Role

_NOTE = "bar_v is the adjoint of v: the derivative of {} with respect to it"


def backward_diagram(
    graph: ExpressionGraph, *, at: Mapping[str, float] | None = None, of: str | None = None
) -> Diagram:
    """A vertex per adjoint of the tape, from the seed to the inputs and parameters.

    Arguments are those of :func:`cgprimer.draw`; with ``at`` every adjoint shows its number there.

    >>> from cgprimer.core.graph import parse
    >>> for node in backward_diagram(parse("xx = xa^2; xw = xx*k")).nodes:
    ...     print(node.label, *node.detail)
    bar_xw = 1
    bar_xx bar_xw*k
    bar_k bar_xw*xx
    bar_xa bar_xx*2*xa
    """
    target = resolve_output(graph, of)
    tape = tape_of(graph)
    names, root = labels(tape), tape.index(target)
    flow = BackFlow(tape, target, operations=True)
    found = flow.at(graph, at).totals if at is not None else {}
    terms: dict[int, list[Expression]] = {}
    for (tail, head, product), share in zip(flow.shares, flow.made.tape.shares, strict=True):
        if tape.has_arrays:
            terms.setdefault(tail, []).append(flow.written(head, product))
            continue
        partial = value_tree(flow.made.tape, share.partial, flow.known)
        instruction = tape.instruction(head)
        again = instruction is not None and instruction.operands.count(tail) > 1
        bar, parts = Name(f"bar_{names[head]}"), _summands(partial) if again else [partial]
        terms.setdefault(tail, []).extend(_times(bar, part) for part in parts)
    nodes = [Node(str(root), f"bar_{names[root]}", "seed", ("= 1",))]
    for index in sorted(terms, reverse=True):
        role: Role = "adjoint" if index >= len(tape.leaves) else "gradient"
        text = unparse(reduce(lambda left, right: Apply("add", (left, right)), terms[index]))
        lines = format_array_lines(found[index]) if found else ()
        label = f"bar_{names[index]}{shape_text(tape.shapes[index])}"
        nodes.append(Node(str(index), label, role, (text, *lines)))
    edges = tuple(Edge(str(head), str(tail)) for tail, head, _ in flow.shares)
    return Diagram(tuple(nodes), edges, notes=(_NOTE.format(target),))


def _summands(partial: Expression) -> list[Expression]:
    """Of an operand that stands in several places: what each place adds to its partial."""
    if isinstance(partial, Apply) and partial.primitive == "add":
        return [part for side in partial.arguments for part in _summands(side)]
    return [partial]


def _times(bar: Expression, partial: Expression) -> Expression:
    """The product, in the order in which people write it."""
    if isinstance(partial, Number) and partial.value == 1.0:
        return bar
    if isinstance(partial, Number) and partial.value == -1.0:
        return Apply("neg", (bar,))
    if isinstance(partial, Apply) and partial.primitive == "mul":  # a*(b*c) reads as a*b*c
        return Apply("mul", (_times(bar, partial.arguments[0]), partial.arguments[1]))
    return Apply("mul", (bar, partial))
