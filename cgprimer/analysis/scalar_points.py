"""A point of plain numbers, and the one name that is asked for."""

from __future__ import annotations

from collections.abc import Mapping

from cgprimer.core.derivatives import parse_element_of, resolve_wrt, running_statistics
from cgprimer.errors import UsageError, join_names
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.array_values import Value, convert_value, count_axes
from cgprimer.tapes import reachable, tape


def point_values(
    graph: ExpressionGraph, at: Mapping[str, Value] | None = None, *, of: str | None = None
) -> dict[str, Value]:
    """A value for every input and parameter; zero for those that nothing asked for needs.

    Args:
        graph: the graph.
        at: values, as in :func:`gradient`, but of one sample only.
        of: the variable that is asked for; all variables unless given.

    Raises:
        MissingValueError: a needed value is missing.
        UsageError: a value has samples.
    """
    primal = tape(graph)
    needed = reachable(
        primal, [primal.index(parse_element_of(graph, of)[0])] if of else range(primal.size)
    )
    leaves = zip(primal.leaves, needed, strict=False)
    point = graph.point(at, needed=[leaf.name for leaf, wanted in leaves if wanted])
    own = {name: graph.shapes.get(name, ()) for name in (*graph.inputs, *graph.parameters)}
    arrays = [name for name in own if count_axes(point.get(name, 0.0)) > len(own[name])]
    if arrays:
        name, batch = arrays[0], "batchnorm" in graph.layers
        one = f"give one sample: at={{{name!r}: ...}} (--at {name}=...)"
        many = "trace(method='reverse') (cgprimer trace --method reverse) shows a whole batch"
        raise UsageError(
            f"expected one sample, got an array of samples for {name!r}",
            hint=f"{one}; {many}" if batch else one,
        )
    found = {name: convert_value(name, point.get(name, 0.0), shape) for name, shape in own.items()}
    return found | running_statistics(graph, point)


def single_name(graph: ExpressionGraph, wrt: str | None) -> str:
    """The one name asked for, or the only input, or else the only parameter.

    Raises:
        UsageError: an unknown name, or none is given where there are several.

    >>> from cgprimer.core.graph import parse
    >>> single_name(parse("y = tanh(k); output y"), None)
    'k'
    """
    if wrt is not None:
        return resolve_wrt(graph, wrt)[0]
    for names in (graph.inputs, graph.parameters):
        if len(names) == 1:
            return names[0]
    known = join_names((*graph.inputs, *graph.parameters)) or "none"
    raise UsageError(f"with respect to which name? There are {known}", hint="wrt=... (--wrt NAME)")
