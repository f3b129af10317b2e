"""The partial derivatives on the edges of a graph, operands independent of each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cgprimer.core.derivatives import (
    Point,
    check_point,
    graph_with_loss,
    run_at_point,
    tape,
)
from cgprimer.core.evaluation.graph_cache import compute_once
from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.methods.derivative_program import (
    DerivativeProgram,
    Pass,
    Read,
    select_array_shapes,
)
from cgprimer.core.tape.tape import Tape
from cgprimer.support.array_values import Value, zeros


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
    graph: ExpressionGraph, at: Point = None, *, loss: str | None = None, engine: str = "auto"
) -> Partials:
    """Return the partial derivative on every edge, including those of a loss node.

    Arguments are those of :func:`cgprimer.gradient`.

    >>> from cgprimer.core.graph import parse
    >>> graph = parse("xx=xa^2; xz=bc*xx+xa")
    >>> edges = partials(graph, {"xa": 0.5, "bc": 2})
    >>> edges.variable_to_variable[("xz", "xx")], edges.variable_to_parameter[("xz", "bc")]
    (2.0, 0.25)
    >>> edges = partials(graph, {"xa": 0.5, "bc": 2, "target": 3}, loss="squared-error")
    >>> edges.variable_to_variable[("loss", "xz")]  # 2*(1 - 3)
    -4.0
    """
    graph = graph_with_loss(graph, loss, check_point(at))
    point = graph.point(at)
    program = compute_once(graph, "partials", lambda: _partials_program(graph))
    derivatives = run_at_point(graph, point, program, engine).derivatives
    samples = graph.samples(point)

    def zero(*pair: str) -> Value:
        """Return the partial of an edge without an instruction: zero everywhere."""
        shape = samples + tuple(n for name in pair for n in program.shapes.get(name, ()))
        return zeros(shape) if shape else 0.0

    def on_edges(tails: Mapping[str, Sequence[str]]) -> dict[tuple[str, str], Value]:
        pairs = [(head, tail) for head in graph.definitions for tail in tails.get(head, ())]
        return {pair: derivatives[pair] if pair in derivatives else zero(*pair) for pair in pairs}

    return Partials(on_edges(graph.depends_on), on_edges(graph.parameters_of))


def _partials_program(graph: ExpressionGraph) -> DerivativeProgram:
    """Return a program of one pass that reads all partials, those of arrays by element."""
    primal = tape(graph)
    if primal.has_arrays:
        from cgprimer.core.methods.elementwise import convert_to_array_program
        from cgprimer.core.tape.scalarization import scalarize

        inner = _all_partials(scalarize(primal))
        shapes = select_array_shapes(primal, (*graph.variables, *graph.parameters))
        return convert_to_array_program(inner, primal, (), (), shapes)
    return _all_partials(primal)


def _all_partials(primal: Tape) -> DerivativeProgram:
    from cgprimer.core.methods.edge_tape import edge_tape  # a gradient does without

    derived, label = edge_tape(primal), primal.labels
    outputs = {f"{label[h]}/{label[t]}": index for (t, h), index in derived.partials.items()}
    reads = tuple(Read(label[h], label[t], f"{label[h]}/{label[t]}") for t, h in derived.partials)
    return DerivativeProgram(
        "partials", replace(derived.tape, outputs=outputs, shares=()), (), (), (Pass(reads),)
    )
