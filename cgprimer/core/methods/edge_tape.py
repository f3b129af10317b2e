"""Partial derivatives on the edges between vertices, and a sweep along the edges.

A vertex is a named value of the tape. Its expression can have several operations, but the graph has
one edge for each variable in the expression. The partial on an edge treats the variables in the
expression as independent of each other. Pictures of graphs and the method path-sum use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cgprimer.core.methods.derivative_program import find_unused_name
from cgprimer.core.methods.reverse import iterate_backwards, sweep
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.verifier import verify
from cgprimer.support.value_names import internal_name


@dataclass(frozen=True, slots=True)
class EdgeTape:
    """A tape that computes the partial on each edge, and adjoints or tangents of all vertices.

    If the graph has arrays, there are no partials (they would be Jacobians), only contributions.

    Attributes:
        tape: the tape. Its contributions run between vertices. Adjoints have names such as
            ``bar.xz``, tangents such as ``dot.xz``.
        vertices: the value on ``tape`` of each vertex, keyed by its index on the original tape.
        partials: the value on ``tape`` of the partial on each edge, keyed by ``(tail, head)`` on
            the original tape. Edges whose partial is zero everywhere are omitted.
        totals: the value on ``tape`` of the adjoint or tangent of each vertex that the sweep
            reaches, keyed by its index on the original tape.
    """

    tape: Tape
    vertices: dict[int, int]
    partials: dict[tuple[int, int], int]
    totals: dict[int, int]


def edge_tape(
    tape: Tape, *, of: str | None = None, wrt: str | None = None, operations: bool = False
) -> EdgeTape:
    """Return a tape with the partial on each edge of a graph, and the adjoints or tangents.

    Args:
        tape: the tape of a graph.
        of: the value at which a reverse sweep starts.
        wrt: the variable at which a forward sweep starts, if ``of`` is None. Tapes with arrays
            do not support forward sweeps.
        operations: treat every value of the tape as a vertex, not only named values.

    >>> import cgprimer
    >>> tape = cgprimer.tape(cgprimer.parse("xb = xa^2; xw = xb*xa"))
    >>> edges = edge_tape(tape, of="xw").tape
    >>> [[edges.labels[end] for end in (c.tail, c.head)] for c in edges.shares]
    [['xb', 'xw'], ['xa', 'xw'], ['xa', 'xb']]
    """
    builder = Builder(simplify=not operations)  # every operation is a vertex, even -(-x)
    value = builder.extend(tape)
    builder.simplify = True
    vertices = range(tape.size) if operations else sorted(tape.labels)
    arrays = tape.has_arrays
    edges = {} if arrays else emit_edge_partials(builder, tape, value, [True] * tape.size, vertices)
    totals: dict[int, int] = {}
    seed = of if of is not None else wrt
    if seed is not None:
        totals[tape.index(seed)] = builder.constant(1.0)
    if arrays:  # no partials: a sweep within each vertex emits its contributions
        one = builder.constant(1.0)
        sweep_expression = _build_vertex_sweep(builder, tape, value, {*vertices})
        for head in reversed(vertices):
            if head in totals and head >= len(tape.leaves):
                for tail, product in sweep_expression(head, totals[head]).items():
                    builder.add_contribution(totals, tail, product, value[tail], value[head], one)
    by_head = sorted(edges, key=lambda edge: edge[::-1])
    for tail, head in reversed(by_head) if of is not None else by_head:
        partial, ends = edges[tail, head], (value[tail], value[head])
        if of is not None and head in totals:
            product = builder.emit("mul", totals[head], partial)
            builder.add_contribution(totals, tail, product, *ends, partial)
        elif of is None and tail in totals and tape.labels.get(head) != wrt:
            product = builder.emit("mul", partial, totals[tail])
            builder.add_contribution(totals, head, product, *ends, partial)
    for vertex, total in totals.items():
        if vertex in tape.labels:
            kind = "bar" if of is not None else "dot"
            builder.names.setdefault(find_unused_name(kind, tape.labels[vertex], tape), total)
    derived = verify(builder.finish({name: value[i] for name, i in tape.outputs.items()}))
    new = builder.moved
    return EdgeTape(
        derived,
        {vertex: new[value[vertex]] for vertex in vertices},
        {edge: new[partial] for edge, partial in edges.items()},
        {vertex: new[total] for vertex, total in totals.items()},
    )


def emit_edge_partials(
    builder: Builder,
    tape: Tape,
    value: dict[int, int],
    needed: list[bool],
    extra: Iterable[int] = (),
) -> dict[tuple[int, int], int]:
    """Emit the partial derivative on each edge, with a reverse sweep within each vertex.

    Args:
        builder: the builder, with a copy of the tape.
        tape: the tape of a graph.
        value: the value in the builder for each value of the tape.
        needed: for each value of the tape, whether edges to it are needed.
        extra: unnamed values of the tape that are treated as vertices.

    Returns:
        The value in the builder of the partial on each edge, keyed by ``(tail, head)``.
    """
    first = len(tape.leaves)
    vertices, one = {*tape.labels, *extra}, builder.constant(1.0)
    sweep_expression = _build_vertex_sweep(builder, tape, value, vertices)
    edges: dict[tuple[int, int], int] = {}
    for head in sorted(v for v in vertices if v >= first and needed[v]):
        edges |= {(tail, head): partial for tail, partial in sweep_expression(head, one).items()}
    for (tail, head), partial in edges.items():
        if tail in tape.labels and head in tape.labels:
            name = internal_name("partial", tape.labels[head], tape.labels[tail])
            builder.names.setdefault(name, partial)
    return edges


def _build_vertex_sweep(
    builder: Builder, tape: Tape, value: dict[int, int], vertices: set[int]
) -> Callable[[int, int], dict[int, int]]:
    """Return a function that propagates an adjoint from a vertex to the vertices it depends on."""
    first = len(tape.leaves)
    constants = {i for i, leaf in enumerate(tape.leaves) if leaf.kind == "constant"}
    varies = {index: index for index in range(tape.size) if index not in constants}

    def sweep_expression(head: int, seed: int) -> dict[int, int]:
        """Propagate the adjoint of a vertex through its expression; return the adjoints."""
        before, region, pending = len(builder.shares), {head}, [head]
        while pending:
            _, operands = tape.instructions[pending.pop() - first]
            inner = {o for o in operands if o >= first and o not in vertices} - region
            region |= inner
            pending += inner
        adjoints = {head: seed}
        sweep(builder, iterate_backwards(tape, value, sorted(region), varies), adjoints)
        del builder.shares[before:]  # contributions within the vertex
        return {tail: adjoints[tail] for tail in sorted((adjoints.keys() & vertices) - {head})}

    return sweep_expression
