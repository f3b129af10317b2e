"""Where the first infinity or nan came from."""

from __future__ import annotations

import math
from collections.abc import Mapping

from cgprimer.core.derivatives.evaluation import tape
from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.methods.contract import Derivatives
from cgprimer.core.tape.passes import reachable
from cgprimer.numbers_and_arrays import Value, all_finite


def first_not_finite(
    graph: ExpressionGraph, at: Mapping[str, Value] | None, found: Derivatives
) -> str:
    """The first vertex in topological order that is not finite, else the first derivative.

    Args:
        graph: what was differentiated.
        at: where.
        found: what came out; where all of it is finite, the text is empty.

    >>> import cgprimer
    >>> from cgprimer.core.derivatives.evaluation import derivatives_at
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
            place = "" if isinstance(value, float) else f" at sample {bad[1]}"
            return f"{name}{text} is {bad[0]}{place}"
    for (target, name), value in found.derivatives.items():
        if bad := first_bad(value):
            text = f"d {target} / d {name} is {bad[0]}, though every variable is finite"
            if any(operation == "where" for operation, _ in primal.instructions):
                text += (
                    "; a branch that where() does not take counts, too: give it a harmless operand"
                )
            return text
    return ""


def first_bad(value: Value) -> tuple[float, int] | None:
    """The first number that is not finite, and its sample; None if all are finite.

    >>> first_bad(1.0), first_bad(float("inf"))
    (None, (inf, 0))
    """
    if all_finite(value):
        return None
    numbers = [value] if isinstance(value, float) else value.reshape(-1).tolist()
    return next((n, sample) for sample, n in enumerate(numbers) if not math.isfinite(n))
