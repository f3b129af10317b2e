"""The graph of the backward sweep of reverse mode: its vertices are adjoints.

PyTorch keeps this graph as the chain of ``grad_fn``. In this picture every vertex is an adjoint,
with the instruction that computes it from the adjoints of the values that use the variable.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from cgprimer.core.derivatives import resolve_output
from cgprimer.expressions import Apply, Expression, ExpressionGraph, Name, Number, unparse
from cgprimer.support.number_format import format_array_lines
from cgprimer.tapes import labels
from cgprimer.tapes import tape as tape_of
from cgprimer.visualization.diagrams.diagram import Diagram, Edge, Node, Role
from cgprimer.visualization.diagrams.level_diagrams import format_shape_suffix
from cgprimer.visualization.diagrams.vertex_sweeps import BackwardSweep

_NOTE = "bar_v is the adjoint of v: the derivative of {} with respect to v"


def build_backward_diagram(
    graph: ExpressionGraph, *, at: Mapping[str, float] | None = None, of: str | None = None
) -> Diagram:
    """Build a diagram of the backward pass through a graph, with a vertex for each adjoint.

    Arguments are those of :func:`cgprimer.draw`; with ``at`` every adjoint shows its value.

    >>> from cgprimer.core.graph import parse
    >>> for node in build_backward_diagram(parse("xx = xa^2; xw = xx*k")).nodes:
    ...     print(node.label, *node.detail)
    bar_xw = 1
    bar_xx bar_xw*k
    bar_k bar_xw*xx
    bar_xa bar_xx*2*xa
    """
    target = resolve_output(graph, of)
    tape = tape_of(graph)
    names, root = labels(tape), tape.index(target)
    sweep = BackwardSweep(tape, target, operations=True)
    adjoints = sweep.evaluate(graph, at).totals if at is not None else {}
    terms: dict[int, list[Expression]] = {}
    for contribution in sweep.contributions:
        tail, head = contribution.tail, contribution.head
        if tape.has_arrays:
            terms.setdefault(tail, []).append(sweep.build_product_formula(contribution))
            continue
        partial = sweep.build_partial_formula(contribution)
        instruction = tape.instruction(head)
        is_repeated = instruction is not None and instruction.operands.count(tail) > 1
        adjoint = Name(f"bar_{names[head]}")
        partials = _list_summands(partial) if is_repeated else [partial]
        terms.setdefault(tail, []).extend(_build_product(adjoint, part) for part in partials)
    nodes = [Node(str(root), f"bar_{names[root]}", "seed", ("= 1",))]
    for index in sorted(terms, reverse=True):
        role: Role = "adjoint" if index >= len(tape.leaves) else "gradient"
        text = unparse(reduce(lambda left, right: Apply("add", (left, right)), terms[index]))
        lines = format_array_lines(adjoints[index]) if adjoints else ()
        label = f"bar_{names[index]}{format_shape_suffix(tape.shapes[index])}"
        nodes.append(Node(str(index), label, role, (text, *lines)))
    edges = tuple(Edge(str(c.head), str(c.tail)) for c in sweep.contributions)
    return Diagram(tuple(nodes), edges, notes=(_NOTE.format(target),))


def _list_summands(partial: Expression) -> list[Expression]:
    """List the summands of a partial derivative; repeated operands contribute one summand each."""
    if isinstance(partial, Apply) and partial.primitive == "add":
        return [part for side in partial.arguments for part in _list_summands(side)]
    return [partial]


def _build_product(adjoint: Expression, partial: Expression) -> Expression:
    """Build the expression ``adjoint * partial``; omit factors of 1 and parentheses in products."""
    if isinstance(partial, Number) and partial.value == 1.0:
        return adjoint
    if isinstance(partial, Number) and partial.value == -1.0:
        return Apply("neg", (adjoint,))
    if isinstance(partial, Apply) and partial.primitive == "mul":  # a*(b*c) becomes a*b*c
        return Apply("mul", (_build_product(adjoint, partial.arguments[0]), partial.arguments[1]))
    return Apply("mul", (adjoint, partial))
