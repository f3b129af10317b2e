"""The differentiation method of the lecture: differences at vertices, then the chain rule.

In the forward pass of a sample, each operand of each vertex is shifted separately, and the change
of the vertex is divided by the shift:

    d(vertex)/d(operand) = (vertex at operand + delta  -  vertex) / delta

The gradient is the sum over all paths of the products along their edges, computed in one backward
sweep. Like every method, this one turns a tape into a program, which any engine runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from cgprimer.core.derivatives import run_at_point
from cgprimer.core.edge_partials import Partials
from cgprimer.core.methods import METHODS
from cgprimer.core.methods.edge_tape import emit_edge_partials
from cgprimer.core.methods.single_pass import build_single_pass_program
from cgprimer.errors import UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.tapes import Builder, DerivativeProgram, Tape, tape

NAME = "vertex-differences"


def differentiate(
    tape: Tape, of: tuple[str, ...], wrt: tuple[str, ...], *, step: float = 1e-4
) -> DerivativeProgram:
    """Build a derivative program that uses difference quotients at the vertices.

    A backward sweep along the edges combines the quotients.

    Args:
        tape: the tape to differentiate.
        of: the name of one output.
        wrt: the names of variables with respect to which the output is differentiated.
        step: the absolute shift of each operand.

    Raises:
        UsageError: several outputs, or a step that is not positive.
    """
    if len(of) != 1:
        raise UsageError(f"{NAME} supports only one output, got {len(of)}")
    if not step > 0:
        raise UsageError(f"`step` of {NAME} must be positive, got {step!r}")
    builder = Builder(simplify=False)
    value, root = builder.extend(tape), tape.index(of[0])
    sources = [tape.index(name) for name in wrt]
    edges = _emit_differences(builder, tape, value, step, {root, *sources})
    adjoints = {root: builder.constant(1.0)}
    for tail, head in sorted(edges, key=lambda edge: edge[::-1], reverse=True):
        if head in adjoints:
            product = builder.emit("mul", adjoints[head], edges[tail, head])
            builder.add_contribution(
                adjoints, tail, product, value[tail], value[head], edges[tail, head]
            )
    zero = builder.constant(0.0)
    gradient = {(of[0], n): adjoints.get(s, zero) for n, s in zip(wrt, sources, strict=True)}
    return build_single_pass_program(NAME, builder, tape, wrt, {of[0]: value[root]}, gradient)


def vertex_differences(
    graph: ExpressionGraph, at: Mapping[str, float], step: float = 1e-4
) -> Partials:
    """Compute the local partials of a graph by difference quotients at its vertices.

    >>> from cgprimer import parse
    >>> graph = parse("xx=xa^2; xz=bc*xx+xa")
    >>> quotients = vertex_differences(graph, {"xa": 0.5, "bc": 2}, step=0.5)
    >>> quotients.variable_to_variable[("xx", "xa")], quotients.variable_to_parameter[("xz", "bc")]
    (1.5, 0.25)
    """
    primal, builder = tape(graph), Builder(simplify=False)
    edges = _emit_differences(builder, primal, builder.extend(primal), step, set())
    labels = primal.labels
    labeled = {(labels[h], labels[t]): i for (t, h), i in edges.items() if t in labels}
    program = build_single_pass_program(NAME, builder, primal, (), {}, labeled)
    quotients = run_at_point(graph, at, program, "auto").derivatives
    parameters = {*graph.parameters}
    return Partials(
        {pair: v for pair, v in quotients.items() if pair[1] not in parameters},
        {pair: v for pair, v in quotients.items() if pair[1] in parameters},
    )


@contextmanager
def select_method(grad_delta: float | None) -> Iterator[dict[str, Any]]:
    """Yield ``train`` arguments that select vertex differences, or reverse mode for None.

    The method is registered only inside the ``with`` block, as only the lecture's class uses it.
    """
    if grad_delta is None:
        yield {"method": "reverse"}
        return
    METHODS.register(NAME, differentiate)
    try:
        yield {"method": NAME, "step": grad_delta}
    finally:
        METHODS.unregister(NAME)


def _emit_differences(
    builder: Builder, tape: Tape, value: dict[int, int], step: float, extra: set[int]
) -> dict[tuple[int, int], int]:
    """Emit the difference quotient along each edge, keyed by ``(tail, head)``.

    The edges to a vertex without a name (a loss) get exact partials.
    """
    first, vertices = len(tape.leaves), {*tape.labels, *extra}
    edges = emit_edge_partials(builder, tape, value, [True] * tape.size, extra)
    delta = builder.constant(step)
    for tail, head in edges:
        if head not in tape.labels:
            continue
        shifted, pending = {tail: builder.emit("add", value[tail], delta)}, [head]
        region = {head}
        while pending:
            _, operands = tape.instructions[pending.pop() - first]
            pending += {o for o in operands if o >= first and o not in vertices} - region
            region |= {*pending}
        for index in sorted(region):
            name, operands = tape.instructions[index - first]
            if any(o in shifted for o in operands):
                arguments = (shifted.get(o, value[o]) for o in operands)
                shifted[index] = builder.emit(str(name), *arguments)
        change = builder.emit("sub", shifted[head], value[head])
        edges[tail, head] = builder.emit("div", change, delta)
    return edges
