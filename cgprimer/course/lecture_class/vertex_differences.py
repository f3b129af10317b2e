"""The lecture's way to a gradient: differences at each vertex, then the chain rule.

While the values of a sample go forward, each operand of each vertex is moved by itself, and what
that does to the vertex is divided by the move:

    d(vertex)/d(operand) = (vertex at operand + delta  -  vertex) / delta

The gradient is then the sum over all paths of the products along their edges, in one sweep back.
It is a method as others are: from a tape to a program, which any engine runs.
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
    """The program of differences at the vertices and a sweep back along the edges.

    Args:
        step: by how much each operand is moved, in its own unit.

    Raises:
        UsageError: several outputs, or a step that is not positive.
    """
    if len(of) != 1:
        raise UsageError(f"{NAME} differentiates one output, not {len(of)}")
    if not step > 0:
        raise UsageError(f"the step of the differences must be positive, not {step!r}")
    builder = Builder(simplify=False)
    value, root = builder.extend(tape), tape.index(of[0])
    sources = [tape.index(name) for name in wrt]
    edges = _differences(builder, tape, value, step, {root, *sources})
    adjoints = {root: builder.constant(1.0)}
    for tail, head in sorted(edges, key=lambda edge: edge[::-1], reverse=True):
        if head in adjoints:
            product = builder.emit("mul", adjoints[head], edges[tail, head])
            builder.add_contribution(
                adjoints, tail, product, value[tail], value[head], edges[tail, head]
            )
    zero = builder.constant(0.0)
    found = {(of[0], n): adjoints.get(s, zero) for n, s in zip(wrt, sources, strict=True)}
    return build_single_pass_program(NAME, builder, tape, wrt, {of[0]: value[root]}, found)


def vertex_differences(
    graph: ExpressionGraph, at: Mapping[str, float], step: float = 1e-4
) -> Partials:
    """The differences on every edge, of variables and of parameters.

    >>> from cgprimer import parse
    >>> graph = parse("xx=xa^2; xz=bc*xx+xa")
    >>> made = vertex_differences(graph, {"xa": 0.5, "bc": 2}, step=0.5)
    >>> made.variable_to_variable[("xx", "xa")], made.variable_to_parameter[("xz", "bc")]
    (1.5, 0.25)
    """
    primal, builder = tape(graph), Builder(simplify=False)
    edges = _differences(builder, primal, builder.extend(primal), step, set())
    labels = primal.labels
    named = {(labels[h], labels[t]): i for (t, h), i in edges.items() if t in labels}
    program = build_single_pass_program(NAME, builder, primal, (), {}, named)
    found = run_at_point(graph, at, program, "auto").derivatives
    parameters = {*graph.parameters}
    return Partials(
        {pair: v for pair, v in found.items() if pair[1] not in parameters},
        {pair: v for pair, v in found.items() if pair[1] in parameters},
    )


@contextmanager
def method_of(grad_delta: float | None) -> Iterator[dict[str, Any]]:
    """What ``train`` is given to differentiate so; None is reverse mode.

    The method is known by name only within: it belongs to the lecture's class, not to lists.
    """
    if grad_delta is None:
        yield {"method": "reverse"}
        return
    METHODS.register(NAME, differentiate)
    try:
        yield {"method": NAME, "step": grad_delta}
    finally:
        METHODS.unregister(NAME)


def _differences(
    builder: Builder, tape: Tape, value: dict[int, int], step: float, extra: set[int]
) -> dict[tuple[int, int], int]:
    """``(tail, head)`` to the difference quotient; of a vertex without a name (a loss) exact."""
    first, vertices = len(tape.leaves), {*tape.labels, *extra}
    edges = emit_edge_partials(builder, tape, value, [True] * tape.size, extra)
    delta = builder.constant(step)
    for tail, head in edges:
        if head not in tape.labels:
            continue
        moved, inner = {tail: builder.emit("add", value[tail], delta)}, [head]
        region = {head}
        while inner:
            _, operands = tape.instructions[inner.pop() - first]
            inner += {o for o in operands if o >= first and o not in vertices} - region
            region |= {*inner}
        for index in sorted(region):
            name, operands = tape.instructions[index - first]
            if any(o in moved for o in operands):
                moved[index] = builder.emit(str(name), *(moved.get(o, value[o]) for o in operands))
        change = builder.emit("sub", moved[head], value[head])
        edges[tail, head] = builder.emit("div", change, delta)
    return edges
