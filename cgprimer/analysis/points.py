"""A point of plain numbers, the one name that is asked for, and what is not finite at a point."""

from __future__ import annotations

import math
from collections.abc import Mapping

from cgprimer.core.derivatives import chosen_names, element_in, statistics, tape
from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.methods.contract import Derivatives
from cgprimer.core.tape.passes import reachable
from cgprimer.core.tape.scalars import elements
from cgprimer.core.tape.tape import shape_of
from cgprimer.errors import UsageError
from cgprimer.numbers_and_arrays import Value, all_finite, as_value, axes, first_bad


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
        primal, [primal.index(element_in(graph, of)[0])] if of else range(primal.size)
    )
    leaves = zip(primal.leaves, needed, strict=False)
    point = graph.point(at, needed=[leaf.name for leaf, wanted in leaves if wanted])
    own = {name: graph.shapes.get(name, ()) for name in (*graph.inputs, *graph.parameters)}
    arrays = [name for name in own if axes(point.get(name, 0.0)) > len(own[name])]
    if arrays:
        raise UsageError(f"this needs one sample, and {arrays[0]!r} has an array of them")
    found = {name: as_value(name, point.get(name, 0.0), shape) for name, shape in own.items()}
    return found | statistics(graph, point)


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


def first_not_finite(
    graph: ExpressionGraph, at: Mapping[str, Value] | None, found: Derivatives
) -> str:
    """The first vertex in topological order that is not finite, else the first derivative.

    Args:
        graph: what was differentiated.
        at: where.
        found: what came out; where all of it is finite, the text is empty.

    >>> import cgprimer
    >>> from cgprimer.core.derivatives import derivatives_at
    >>> graph, at = cgprimer.parse("xb = log(xa); xc = p*xb"), {"xa": -1.0, "p": 2.0}
    >>> first_not_finite(graph, at, derivatives_at(graph, at))
    'xb = log(xa) is nan'
    """
    if all(map(all_finite, (*found.values.values(), *found.derivatives.values()))):
        return ""
    primal = tape(graph)
    needed = reachable(primal, [primal.index(target) for target, _ in found.derivatives])
    point = graph.point(at, needed=())
    for name in (*graph.inputs, *graph.parameters):
        point.setdefault(name, 0.0)  # nothing that is needed depends on these
    values = point | {n: v for n, v in graph.evaluate(point).items() if n in graph.definitions}
    for name, value in values.items():
        if needed[primal.index(name)] and (bad := first_bad(value)):
            text = f" = {graph.expression(name)}" if name in graph.definitions else ""
            own = shape_of(primal, primal.index(name))
            sample, number = divmod(bad[1], math.prod(own))
            place = f" at sample {sample}" if axes(value) > len(own) else ""
            return f"{list(elements(name, own))[number]}{text} is {bad[0]}{place}"
    for (target, name), value in found.derivatives.items():
        if bad := first_bad(value):
            text = f"d {target} / d {name} is {bad[0]}, though every variable is finite"
            if any(operation == "where" for operation, _ in primal.instructions):
                text += "; a branch that where() does not take counts, too:"
                text += " give it a harmless operand"
            return text
    return ""
