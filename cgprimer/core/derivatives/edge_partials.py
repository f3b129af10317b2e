"""The partial derivatives on the edges of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cgprimer.core.derivatives.evaluation import arguments, kept, shaped, tape
from cgprimer.core.graph import ExpressionGraph, checked_graph
from cgprimer.core.methods.edges import edge_tape
from cgprimer.core.run import engine_for
from cgprimer.core.tape.tape import Tape
from cgprimer.numbers_and_arrays import Value


@dataclass(frozen=True, slots=True)
class Partials:
    """The partial derivatives on the edges of the graph, operands independent of each other.

    Attributes:
        variable_to_variable: ``(head, tail)`` to the partial of one variable with respect to
            another that stands in its expression.
        variable_to_parameter: ``(variable, parameter)`` to the partial.
    """

    variable_to_variable: dict[tuple[str, str], Value]
    variable_to_parameter: dict[tuple[str, str], Value]


def partials(
    graph: ExpressionGraph, at: Mapping[str, Value] | None = None, *, engine: str = "auto"
) -> Partials:
    """The partial derivative on every edge.

    >>> from cgprimer.core.graph import parse
    >>> graph = parse("xx=xa^2; xz=bc*xx+xa")
    >>> edges = partials(graph, {"xa": 0.5, "bc": 2})
    >>> edges.variable_to_variable[("xz", "xx")], edges.variable_to_parameter[("xz", "bc")]
    (2.0, 0.25)
    """
    checked_graph(graph)
    shape, columns, scalars, samples, program = arguments(
        graph, graph.point(at), kept(graph, "partials", lambda: _edges_tape(graph))
    )
    chosen = engine_for(engine, len(program), samples, shape=shape)
    execute = kept(
        graph,
        ("partials", tuple(columns), chosen.name),
        lambda: chosen.compile(program, reduction="none", dtype="float64"),
    )
    found = execute(columns, scalars, samples)
    zero: Value = 0.0  # of an edge whose partial is zero everywhere, and has no instruction
    if shape:
        import numpy as np

        zero = np.zeros(samples)

    def on_edges(tails: Mapping[str, Sequence[str]]) -> dict[tuple[str, str], Value]:
        return {
            (head, tail): shaped(found.get(f"{head}/{tail}", zero), shape)
            for head in graph.definitions
            for tail in tails.get(head, ())
        }

    return Partials(on_edges(graph.depends_on), on_edges(graph.parameters_of))


def _edges_tape(graph: ExpressionGraph) -> Tape:
    """A tape whose outputs are the partials, called ``head/tail``."""
    primal = tape(graph)
    made, label = edge_tape(primal), primal.labels
    outputs = {f"{label[h]}/{label[t]}": index for (t, h), index in made.partials.items()}
    return replace(made.tape, outputs=outputs)
