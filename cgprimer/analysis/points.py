"""A point of plain numbers, and the one name that is asked for."""

from __future__ import annotations

from collections.abc import Mapping

from cgprimer.core.derivatives.evaluation import chosen_names, tape
from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.tape.passes import reachable
from cgprimer.errors import UsageError


def point_values(
    graph: ExpressionGraph, at: Mapping[str, float] | None = None, *, of: str | None = None
) -> dict[str, float]:
    """A number for every input and parameter; zero for those that nothing asked for needs.

    Args:
        graph: the graph.
        at: values, as in :func:`gradient`, but numbers only.
        of: the variable that is asked for; all variables unless given.

    Raises:
        MissingValueError: a needed value is missing.
        UsageError: a value is an array.
    """
    primal = tape(graph)
    needed = reachable(primal, [primal.index(of)] if of else range(primal.size))
    point = graph.point(
        at, needed=[leaf.name for leaf, n in zip(primal.leaves, needed, strict=False) if n]
    )
    arrays = [name for name, value in point.items() if not isinstance(value, float)]
    if arrays:
        raise UsageError(f"this needs numbers, and {arrays[0]!r} has an array")
    return {name: float(point.get(name, 0.0)) for name in (*graph.inputs, *graph.parameters)}


def single_name(graph: ExpressionGraph, wrt: str | None) -> str:
    """The one name asked for, or the only input, or else the only parameter.

    Raises:
        UsageError: an unknown name, or none is given where there are several.

    >>> from cgprimer.core.graph import parse
    >>> single_name(parse("y = tanh(k); output y"), None)
    'k'
    """
    if wrt is not None:
        return chosen_names(graph, wrt)[0]
    for names in (graph.inputs, graph.parameters):
        if len(names) == 1:
            return names[0]
    known = ", ".join((*graph.inputs, *graph.parameters)) or "none"
    raise UsageError(f"with respect to which name? There are {known}", hint="wrt=... (--wrt NAME)")
