"""The edges between vertices: their partial derivatives, and a sweep along them.

A vertex is a named value of the tape, and an edge stands for all that its expression does to one
operand. So whoever draws a graph, or sums over its paths, works with the partials of edges; the
operands of a vertex's own expression are independent of each other.
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
    """A tape that computes the partials of all edges, and a sweep along them.

    Attributes:
        tape: its shares run between vertices; adjoints are called ``bar.xz``, tangents ``dot.xz``.
        vertices: values of the primal, in order, to values of ``tape``.
        partials: ``(tail, head)``, values of the primal, to the partial's value of ``tape``. An
            edge on which it is zero everywhere has none.
        totals: values of the primal to their adjoints or tangents, where the sweep comes.

    With arrays there are no partials: an edge's would be a Jacobian, which no sweep computes. Its
    shares tell what is handed along.
    """

    tape: Tape
    vertices: dict[int, int]
    partials: dict[tuple[int, int], int]
    totals: dict[int, int]


def edge_tape(
    tape: Tape, *, of: str | None = None, wrt: str | None = None, operations: bool = False
) -> EdgeTape:
    """Return the partials of all edges, and a sweep back from ``of`` or forward from ``wrt``.

    With ``operations`` every value of the tape counts as a vertex. With arrays there is no sweep
    forward.

    >>> import cgprimer
    >>> tape = cgprimer.tape(cgprimer.parse("xb = xa^2; xw = xb*xa"))
    >>> made = edge_tape(tape, of="xw")
    >>> [[made.tape.labels[end] for end in share[:2]] for share in made.tape.shares]
    [['xb', 'xw'], ['xa', 'xw'], ['xa', 'xb']]
    """
    builder = Builder()
    value = builder.extend(tape)
    vertices = range(tape.size) if operations else sorted(tape.labels)
    arrays = tape.has_arrays
    edges = {} if arrays else emit_edge_partials(builder, tape, value, [True] * tape.size, vertices)
    totals: dict[int, int] = {}
    seed = of if of is not None else wrt
    if seed is not None:
        totals[tape.index(seed)] = builder.constant(1.0)
    if arrays:  # what each vertex hands to those that it is computed from
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
            mark = "bar" if of is not None else "dot"
            builder.names.setdefault(find_unused_name(mark, tape.labels[vertex], tape), total)
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
    """Return the partial derivative on every edge: one small reverse sweep per vertex.

    ``value`` has the primal's values in the builder, ``needed`` says which are of interest, and
    ``extra`` are values that count as vertices although they have no name. What is returned maps
    ``(tail, head)``, values of the tape, to the partial's value in the builder.
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
    """Return a function from a vertex and its adjoint to the adjoints of its operands."""
    first = len(tape.leaves)
    varies = [leaf.kind != "constant" for leaf in tape.leaves] + [True] * len(tape)

    def sweep_expression(head: int, seed: int) -> dict[int, int]:
        before, region, waiting = len(builder.shares), {head}, [head]
        while waiting:
            _, operands = tape.instructions[waiting.pop() - first]
            inner = {o for o in operands if o >= first and o not in vertices} - region
            region |= inner
            waiting += inner
        adjoints = {head: seed}
        sweep(builder, iterate_backwards(tape, value, sorted(region), varies), adjoints)
        del builder.shares[before:]  # those inside of a vertex
        return {tail: adjoints[tail] for tail in sorted((adjoints.keys() & vertices) - {head})}

    return sweep_expression
