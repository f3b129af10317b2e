"""The numbers of a picture: local partials, and what a sweep hands along each edge.

The sweep itself is core's: a picture reads the shares of `cgprimer.core.methods.edges`, so what a
class sees is what was computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cgprimer.analysis.points import point_values
from cgprimer.core.derivatives.evaluation import tape as tape_of
from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.methods.edges import edge_tape
from cgprimer.core.run import values_of


@dataclass(frozen=True, slots=True)
class SweepNumbers:
    """What can be said at each vertex and edge.

    Attributes:
        order: the vertices' keys, operands before what is computed from them.
        partials: ``(tail, head)`` to the local partial derivative of head with respect to tail.
            An edge on which the partial is zero everywhere (as under ``sign``) has none.
        totals: adjoints or tangents, where the sweep comes.
        products: ``(tail, head)`` to what the sweep hands along the edge.
    """

    order: tuple[str, ...]
    partials: Mapping[tuple[str, str], float]
    totals: Mapping[str, float] = field(default_factory=dict)
    products: Mapping[tuple[str, str], float] = field(default_factory=dict)


def sweep_numbers(
    graph: ExpressionGraph,
    at: Mapping[str, float] | None = None,
    *,
    level: str = "variables",
    of: str | None = None,
    wrt: str | None = None,
) -> SweepNumbers:
    """Partials and a sweep: back from ``of`` (adjoints) or forward from ``wrt`` (tangents).

    Keys are names, or the tape's numbers for the level ``operations``.

    Raises `MissingValueError` where a value is missing.

    >>> from cgprimer.core.graph import parse
    >>> found = sweep_numbers(parse("input xa = 3; xb = 2*xa; xw = xb^2"), of="xw")
    >>> found.partials, found.totals
    ({('xa', 'xb'): 2.0, ('xb', 'xw'): 12.0}, {'xw': 1.0, 'xb': 12.0, 'xa': 24.0})
    """
    point = point_values(graph, at)
    primal = tape_of(graph)
    operations = level == "operations"
    made = edge_tape(primal, of=of, wrt=wrt, operations=operations)
    found = [float(value) for value in values_of(made.tape, point)]
    key = {i: str(i) if operations else primal.labels[i] for i in made.vertices}
    name = {made.vertices[i]: key[i] for i in made.vertices}
    return SweepNumbers(
        tuple(key.values()),
        {(key[t], key[h]): found[index] for (t, h), index in made.partials.items()},
        {key[i]: found[index] for i, index in made.totals.items()},
        {(name[s.tail], name[s.head]): found[s.product] for s in made.tape.shares},
    )
