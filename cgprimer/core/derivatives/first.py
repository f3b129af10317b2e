"""First derivatives: gradient, Jacobian, and the partials on the edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cgprimer.core.derivatives.evaluation import (
    arguments,
    chosen_output,
    derivatives_at,
    kept,
    shaped,
    tape,
)
from cgprimer.core.graph import ExpressionGraph, checked_graph
from cgprimer.core.methods.contract import Names
from cgprimer.core.methods.edges import edge_tape
from cgprimer.core.run import engine_for
from cgprimer.core.tape.tape import Tape

Value = Any  # a float or an ndarray of samples


def gradient(
    graph: ExpressionGraph,
    at: Mapping[str, Value] | None = None,
    *,
    of: str | None = None,
    wrt: Names | None = None,
    method: str = "reverse",
    engine: str = "auto",
    **options: Any,
) -> dict[str, Value]:
    """The gradient of a variable.

    Args:
        graph: the graph.
        at: values of inputs and parameters, numbers or arrays; declared values fill the rest.
        of: the variable to differentiate; the only output unless given.
        wrt: parameters, inputs or inner variables; all parameters unless given. The derivative
            with respect to an inner variable treats it as if it could be moved by itself.
        method: one of :func:`cgprimer.methods`.
        engine: one of :func:`cgprimer.engines`, or ``auto``.
        options: of the method, see :func:`cgprimer.differentiate`.

    Returns:
        For each name a float, or an array of the samples' shape. Unit: that of ``of`` divided by
        that of the name.

    Raises:
        UsageError: an unknown name, method, engine or option.
        MissingValueError: a name that the output needs has no value.
        DifferentiationError: the method cannot do it.

    >>> from cgprimer.core.graph import parse
    >>> graph = parse("xx=xa^2; xy=ab*xx+ac*xa; xz=bc*xx+xy; xw=cd*xx+xz^3")
    >>> at = {"xa": 0.5, "ab": 1, "bc": 2, "cd": 3, "ac": 4}
    >>> gradient(graph, at)
    {'ab': 5.671875, 'ac': 11.34375, 'bc': 5.671875, 'cd': 0.25}
    >>> gradient(graph, at, wrt="xa", method="forward")
    {'xa': 161.8125}
    """
    target = chosen_output(graph, of)
    found = derivatives_at(graph, at, of=target, wrt=wrt, method=method, engine=engine, **options)
    return {name: value for (_, name), value in found.derivatives.items()}


def jacobian(
    graph: ExpressionGraph,
    at: Mapping[str, Value] | None = None,
    *,
    of: Names | None = None,
    wrt: Names | None = None,
    method: str = "reverse",
    engine: str = "auto",
    **options: Any,
) -> dict[str, dict[str, Value]]:
    """The derivatives of several variables: ``jacobian(graph, at)["xw"]["ab"]``.

    ``of`` is all outputs unless given; everything else is as in :func:`gradient`.

    >>> from cgprimer.core.graph import parse
    >>> jacobian(parse("xb = p*xa; xc = p^2"), {"p": 3, "xa": 2})
    {'xb': {'p': 2.0}, 'xc': {'p': 6.0}}
    """
    found = derivatives_at(graph, at, of=of, wrt=wrt, method=method, engine=engine, **options)
    rows: dict[str, dict[str, Value]] = {name: {} for name in found.values}
    for (target, name), value in found.derivatives.items():
        rows[target][name] = value
    return rows


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
