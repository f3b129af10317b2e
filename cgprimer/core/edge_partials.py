"""The local partial derivatives on the edges of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cgprimer.core.derivatives import Point, run_at_point, tape
from cgprimer.core.evaluation.graph_cache import compute_once
from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.loss_attachment import check_point, graph_with_loss
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
    """The local partial derivatives on the edges of a graph; operands are independent variables.

    Attributes:
        variable_to_variable: the partial derivative of the variable ``head`` with respect to a
            variable ``tail`` in its expression, keyed by ``(head, tail)``.
        variable_to_parameter: the partial derivative of a variable with respect to a parameter in
            its expression, keyed by ``(variable, parameter)``.
    """

    variable_to_variable: dict[tuple[str, str], Value]
    variable_to_parameter: dict[tuple[str, str], Value]


def partials(
    graph: ExpressionGraph, at: Point = None, *, loss: str | None = None, engine: str = "auto"
) -> Partials:
    """Return the local partial derivatives on all edges, including the edges of a loss node.

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
    program = compute_once(graph, "partials", lambda: _build_partials_program(graph))
    derivatives = run_at_point(graph, point, program, engine).derivatives
    samples = graph.samples(point)

    def build_zeros(*pair: str) -> Value:
        """Return zeros in the shape of a partial derivative that is constantly zero."""
        shape = samples + tuple(n for name in pair for n in program.shapes.get(name, ()))
        return zeros(shape) if shape else 0.0

    def select_partials(tails: Mapping[str, Sequence[str]]) -> dict[tuple[str, str], Value]:
        """Return the partial derivatives of each variable with respect to its tails."""
        pairs = [(head, tail) for head in graph.definitions for tail in tails.get(head, ())]
        return {
            pair: derivatives[pair] if pair in derivatives else build_zeros(*pair) for pair in pairs
        }

    return Partials(select_partials(graph.depends_on), select_partials(graph.parameters_of))


def _build_partials_program(graph: ExpressionGraph) -> DerivativeProgram:
    """Return a derivative program with a single pass that computes all edge partials.

    The partials of arrays are computed element by element.
    """
    primal = tape(graph)
    if primal.has_arrays:
        from cgprimer.core.methods.elementwise import convert_to_array_program
        from cgprimer.core.tape.scalarization import scalarize

        inner = _differentiate_edges(scalarize(primal))
        shapes = select_array_shapes(primal, (*graph.variables, *graph.parameters))
        return convert_to_array_program(inner, primal, (), (), shapes)
    return _differentiate_edges(primal)


def _differentiate_edges(primal: Tape) -> DerivativeProgram:
    """Return a derivative program that computes the partials on all edges of a tape."""
    from cgprimer.core.methods.edge_tape import edge_tape  # not needed by a gradient

    derived, label = edge_tape(primal), primal.labels
    outputs = {f"{label[h]}/{label[t]}": index for (t, h), index in derived.partials.items()}
    reads = tuple(Read(label[h], label[t], f"{label[h]}/{label[t]}") for t, h in derived.partials)
    return DerivativeProgram(
        "partials", replace(derived.tape, outputs=outputs, shares=()), (), (), (Pass(reads),)
    )
