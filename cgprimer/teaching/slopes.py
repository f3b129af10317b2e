"""A function of one variable, its derivatives over a range, and its tangent at a point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cgprimer.derivatives import chosen_output, single_name
from cgprimer.derivatives import tape as tape_of
from cgprimer.differentiators import differentiate
from cgprimer.errors import MissingValueError, UsageError, name_hint
from cgprimer.execution.contract import select
from cgprimer.graph import ExpressionGraph
from cgprimer.tapes.passes import as_columns, reachable
from cgprimer.tapes.tape import Tape

Array = Any
HIGHEST = 6  # order of a derivative


@dataclass(frozen=True, eq=False)
class FunctionCurves:
    """A function and its derivatives over a range.

    Attributes:
        of, wrt: the output and its variable.
        formula: the output's expression.
        places: values of the variable; shape (points,).
        orders: the function, its first derivative, its second, ...; each of shape (points,).
        tangent: place, value and slope of the tangent; None for none.
    """

    of: str
    wrt: str
    formula: str
    places: Array
    orders: tuple[Array, ...]
    tangent: tuple[float, float, float] | None


def function_curves(
    graph: ExpressionGraph,
    low: float = -3.0,
    high: float = 3.0,
    *,
    at: Mapping[str, float] | None = None,
    of: str | None = None,
    wrt: str | None = None,
    order: int = 1,
    tangent: float | None = None,
    points: int = 801,
) -> FunctionCurves:
    """The values of a function and of its derivatives, by repeated reverse mode.

    Args:
        graph: the graph.
        low, high: from where to where the variable goes.
        at: values of all other inputs and parameters; declared values fill the rest.
        of: the output; the only one unless given.
        wrt: the variable, an input or a parameter; the only input, or else the
            only parameter, unless given.
        order: of the highest derivative: 0 for the function alone.
        tangent: where the tangent touches.
        points: how many values of the variable.

    Raises:
        UsageError: an unknown name, an empty range, or an order that is too high.
        MissingValueError: another name has no value.

    >>> from cgprimer.graph import parse
    >>> found = function_curves(parse("xw = xa^3"), 0, 2, order=2, tangent=1.0, points=3)
    >>> [values.tolist() for values in found.orders], found.tangent
    ([[0.0, 1.0, 8.0], [0.0, 3.0, 12.0], [0.0, 6.0, 12.0]], (1.0, 1.0, 3.0))
    """
    target = chosen_output(graph, of)
    name = single_name(graph, wrt)
    known = (*graph.inputs, *graph.parameters)
    if name not in known:
        raise UsageError(
            f"{name!r} is computed: a function is of an input or a parameter",
            hint=name_hint(name, known),
        )
    if not (np.isfinite([low, high]).all() and low < high):
        raise UsageError(f"the range must ascend, not go from {low:g} to {high:g}")
    if not 0 <= order <= HIGHEST:
        raise UsageError(f"the highest derivative is one of order 0 to {HIGHEST}, not {order}")
    if points < 2:
        raise UsageError("at least two points are needed")
    if tangent is not None and not np.isfinite(tangent):
        raise UsageError(f"a tangent touches at a finite place, not at {tangent:g}")
    primal = tape_of(graph)
    needed = reachable(primal, [primal.index(target)])
    leaves = [leaf.name for leaf, n in zip(primal.leaves, needed, strict=False) if n]
    others = graph.point({**dict(at or {}), name: 0.0}, needed=leaves)
    for other, value in others.items():
        if np.ndim(value):
            raise UsageError(f"this needs numbers, and {other!r} has an array")
    for leaf in leaves:
        if leaf in (*graph.inputs, *graph.parameters) and leaf not in others:
            raise MissingValueError(f"no value for {leaf!r}", hint="at={...} (--at NAME=VALUE)")
    places = np.linspace(low, high, points)
    asked = places if tangent is None else np.append(places, tangent)
    orders = _orders(primal, target, name, max(order, tangent is not None), others, asked)
    touch = None
    if tangent is not None:
        touch = (float(tangent), float(orders[0][-1]), float(orders[1][-1]))
        if not np.isfinite(touch).all():
            raise UsageError(f"there is no tangent at {name} = {tangent:g}")
    shown = tuple(values[:points] for values in orders[: order + 1])
    if not np.isfinite(shown[0]).any():
        raise UsageError(f"{target} is not defined anywhere between {low:g} and {high:g}")
    formula = graph.expression(target) if target in graph.definitions else target
    return FunctionCurves(target, name, formula, places, shown, touch)


def _orders(
    primal: Tape, of: str, wrt: str, order: int, at: Mapping[str, Any], places: Array
) -> list[Array]:
    """The values, the first derivatives, and so on: each tape is the gradient of the one before."""
    name, tape = of, replace(primal, outputs={of: primal.index(of)})
    found = [_values(tape, wrt, at, places)]
    for _ in range(order):
        program = differentiate(tape, name, wrt, method="reverse")
        name = program.passes[0].reads[0].output
        tape = replace(program.tape, outputs={name: program.tape.outputs[name]})
        found.append(_values(tape, wrt, at, places))
    return found


def _values(tape: Tape, wrt: str, at: Mapping[str, Any], places: Array) -> Array:
    """The only output of a tape at all places of a variable."""
    moved = as_columns(tape, [wrt])
    columns = {
        name: np.full(len(places), float(at.get(name, 0.0))) for name in moved.of_kind("column")
    }
    columns[wrt] = places
    scalars = {name: float(at.get(name, 0.0)) for name in moved.of_kind("scalar")}
    execute = select("numpy").compile(moved, reduction="none", dtype="float64")
    (values,) = execute(columns, scalars, len(places)).values()
    return np.broadcast_to(np.asarray(values, dtype=float), places.shape)
