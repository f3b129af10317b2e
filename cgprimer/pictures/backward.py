"""The backward graph of reverse mode: what flows back, as a graph of its own.

PyTorch keeps this graph as the chain of ``grad_fn``; here every vertex is an adjoint, with the
instruction that computes it from the adjoints of what its value was used for.
"""

from __future__ import annotations

from collections.abc import Mapping

from cgprimer.core.derivatives.evaluation import chosen_output
from cgprimer.core.derivatives.evaluation import tape as tape_of
from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.language.syntax import Apply, Expression, Name, Number
from cgprimer.core.primitives.notation import unparse
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.lowering import emit_partial
from cgprimer.core.tape.passes import reachable
from cgprimer.core.tape.printing import labels
from cgprimer.core.tape.tape import Leaf, Tape
from cgprimer.number_format import equals, number
from cgprimer.pictures.diagram import Diagram, Edge, Node, Role
from cgprimer.pictures.sweeps import adjoints, local_numbers


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
    tape = tape_of(graph)
    root = tape.index(target)
    names = labels(tape)
    shares, edges = _shares(tape, root, names)
    numbers = (
        adjoints(local_numbers(graph, at, level="operations"), str(root)) if at is not None else {}
    )
    nodes = [_vertex(root, f"bar_{names[root]}", "seed", "", numbers)]
    for index in sorted(shares, reverse=True):
        role: Role = "adjoint" if index >= len(tape.leaves) else "gradient"
        total = shares[index][0]
        for share in shares[index][1:]:
            total = Apply("add", (total, share))
        nodes.append(_vertex(index, f"bar_{names[index]}", role, unparse(total), numbers))
    note = f"bar_v is the adjoint of v: the derivative of {target} with respect to it"
    return Diagram(tuple(nodes), tuple(edges), title, (note,))


def _vertex(index: int, label: str, role: Role, text: str, numbers: Mapping[str, float]) -> Node:
    known = numbers.get(str(index))
    value = () if known is None else (f"{equals(known)} {number(known)}",)
    return Node(str(index), label, role, (text, *value) if text else ("= 1",))


def _shares(
    tape: Tape, root: int, names: list[str]
) -> tuple[dict[int, list[Expression]], list[Edge]]:
    """For each value that is reached, what its users hand back to it; and who hands it."""
    builder = Builder()
    value = builder.extend(tape)
    known = {value[index]: names[index] for index in range(tape.size) if names[index]}
    first = len(tape.leaves)
    shares: dict[int, list[Expression]] = {}
    edges: list[Edge] = []
    needed = reachable(tape, [root])
    for index in range(root, first - 1, -1):
        if not needed[index] or (index != root and index not in shares):
            continue
        primitive, operands = tape.instructions[index - first]
        values = tuple(value[operand] for operand in operands)
        for which, operand in enumerate(operands):
            if operand < first and tape.leaves[operand].kind == "constant":
                continue
            partial = emit_partial(builder, primitive, which, values, value[index])
            if partial is None:
                continue
            share = _times(Name(f"bar_{names[index]}"), _tree(builder, partial, known))
            shares.setdefault(operand, []).append(share)
            edge = Edge(str(index), str(operand))
            if edge not in edges[-len(operands) :]:
                edges.append(edge)
    return shares, edges


def _times(bar: Expression, partial: Expression) -> Expression:
    """The product, in the order in which people write it."""
    if isinstance(partial, Number) and partial.value == 1.0:
        return bar
    if isinstance(partial, Number) and partial.value == -1.0:
        return Apply("neg", (bar,))
    if isinstance(partial, Apply) and partial.primitive == "mul":  # a*(b*c) reads as a*b*c
        return Apply("mul", (_times(bar, partial.arguments[0]), partial.arguments[1]))
    return Apply("mul", (bar, partial))


def _tree(builder: Builder, index: int, known: Mapping[int, str]) -> Expression:
    """A value as an expression in the primal's names; a partial has only a few operations."""
    if index in known:
        return Name(known[index])
    entry = builder.entries[index]
    if isinstance(entry, Leaf):
        return Number(entry.value)
    return Apply(entry.primitive, tuple(_tree(builder, o, known) for o in entry.operands))
