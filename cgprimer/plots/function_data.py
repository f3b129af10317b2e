"""A function of one variable, its derivatives over a range, and its tangent at a point.

A derivative may be written down where the function itself is not defined, such as 1/x beside log(x)
for a negative x: it is no number there. Where values jump, the place of the jump is found by
halving the interval, so that nobody draws a line through it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cgprimer.analysis.reference import is_known, reference_derivatives
from cgprimer.core.derivatives import chosen_output, single_name
from cgprimer.core.derivatives import tape as tape_of
from cgprimer.core.engines import select
from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.methods import differentiate
from cgprimer.core.tape.passes import as_columns, reachable
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import DifferentiationError, MissingValueError, UsageError, name_hint

Array = Any
HIGHEST = 6  # order of a derivative
_HALVINGS = 40  # of an interval with a jump: its place is known to 1e-12 of the interval
_STEEPER = 4.0  # times the neighbouring differences: where it is worth to look for a jump
_KEPT = 0.5  # of a difference, after all halvings: what is continuous has lost almost all of it


@dataclass(frozen=True)
class Jump:
    """A place between two neighbouring points where values jump.

    Attributes:
        after: the index of the point to the left.
        place: where; in the unit of the variable.
        left, right: the values on both sides; very large at a pole.
    """

    after: int
    place: float
    left: float
    right: float


@dataclass(frozen=True, eq=False)
class FunctionCurves:
    """A function and its derivatives over a range.

    Attributes:
        of, wrt: the output and its variable.
        formula: the output's expression.
        places: values of the variable; shape (points,).
        orders: the function, its first derivative, its second, ...; each of shape (points,);
            nan where the function is not defined.
        jumps: for each of the orders where its values jump, ascending.
        tangent: place, value and slope of the tangent; None for none.
    """

    of: str
    wrt: str
    formula: str
    places: Array
    orders: tuple[Array, ...]
    jumps: tuple[tuple[Jump, ...], ...]
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
        DifferentiationError: there is no tangent: a kink, a jump, or an edge of the domain.

    >>> from cgprimer.core.graph import parse
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
    executes = _orders(primal, target, name, max(order, tangent is not None), others)
    touch = None
    if tangent is not None:
        touch = _tangent(primal, target, name, others, float(tangent), executes)
    function = executes[0](places)
    if not np.isfinite(function).any():
        raise UsageError(f"{target} is not defined anywhere between {low:g} and {high:g}")
    defined = [_where_defined(executes[0], execute) for execute in executes[: order + 1]]
    shown = tuple(execute(places) for execute in defined)
    jumps = tuple(_jumps(e, places, values) for e, values in zip(defined, shown, strict=True))
    formula = graph.expression(target) if target in graph.definitions else target
    return FunctionCurves(target, name, formula, places, shown, jumps, touch)


Execute = Callable[[Array], Array]


def _orders(primal: Tape, of: str, wrt: str, order: int, at: Mapping[str, Any]) -> list[Execute]:
    """The values, the first derivatives, and so on: each tape is the gradient of the one before."""
    name, tape = of, replace(primal, outputs={of: primal.index(of)})
    found = [_values(tape, wrt, at)]
    for _ in range(order):
        program = differentiate(tape, name, wrt, method="reverse")
        name = program.passes[0].reads[0].output
        tape = replace(program.tape, outputs={name: program.tape.outputs[name]})
        found.append(_values(tape, wrt, at))
    return found


def _values(tape: Tape, wrt: str, at: Mapping[str, Any]) -> Execute:
    """What computes the only output of a tape at places of a variable."""
    moved = as_columns(tape, [wrt])
    execute = select("numpy").compile(moved, reduction="none", dtype="float64")
    scalars = {name: float(at.get(name, 0.0)) for name in moved.of_kind("scalar")}

    def values(places: Array) -> Array:
        columns = {
            name: np.full(len(places), float(at.get(name, 0.0))) for name in moved.of_kind("column")
        }
        columns[wrt] = places
        (found,) = execute(columns, scalars, len(places)).values()
        return np.broadcast_to(np.asarray(found, dtype=float), places.shape)

    return values


def _where_defined(function: Execute, derivative: Execute) -> Execute:
    """A derivative that is nan where its function is."""
    return lambda places: np.where(np.isnan(function(places)), np.nan, derivative(places))


def _tangent(
    primal: Tape,
    of: str,
    wrt: str,
    at: Mapping[str, Any],
    place: float,
    executes: list[Execute],
) -> tuple[float, float, float]:
    """Place, value and slope of the tangent.

    At a kink the rules of differentiation give some number, so the slopes of both sides are
    compared in many digits.
    """
    value, slope = (float(execute(np.array([place]))[0]) for execute in executes[:2])
    known = bool(np.isfinite([value, slope]).all())
    if known:
        exact = reference_derivatives(primal, of, (wrt,), {**at, wrt: place})
        if exact is not None:
            # At a jump whose value is the middle, both sides have one slope, which is enormous.
            near = 1e-6 * max(1.0, abs(slope))
            known = is_known(exact[wrt]) and abs(float(exact[wrt]) - slope) < near
        else:  # a function without a form in mpmath, or one that hides its derivative
            h = 1e-6 * max(1.0, abs(place))
            left, right = executes[0](np.array([place - h, place + h])).tolist()
            near = 1e-3 * max(1.0, abs(slope))
            known = (
                abs((value - left) / h - slope) < near and abs((right - value) / h - slope) < near
            )
    if not known:
        raise DifferentiationError(
            f"there is no tangent of {of} at {wrt} = {place:g}",
            hint="a kink, a jump, a pole, an edge of the domain, or a derivative that is hidden on"
            " purpose; choose another place (--tangent)",
        )
    return place, value, slope


def _jumps(execute: Execute, places: Array, values: Array) -> tuple[Jump, ...]:
    """Where values jump: the difference over an interval stays, however often it is halved."""
    with np.errstate(all="ignore"):
        change = np.abs(np.diff(values))
        padded = np.concatenate([[0.0], np.nan_to_num(change, posinf=0.0), [0.0]])
        # A jump at a point is two: into its value, and out of it. So the lesser neighbour counts.
        near = np.minimum(padded[:-2], padded[2:])
        noise = 1e-12 * np.nanmax(np.abs(values), initial=0.0, where=np.isfinite(values))
        found = np.flatnonzero(np.isfinite(change) & (change > _STEEPER * near) & (change > noise))
        left, right = places[found].copy(), places[found + 1].copy()
        before, after = values[found].copy(), values[found + 1].copy()
        for _ in range(_HALVINGS if found.size else 0):
            middle = 0.5 * (left + right)
            value = execute(middle)
            inside = np.isfinite(value) & (middle > left) & (middle < right)
            # The half with the greater difference: where it is equal, the left one.
            lower = np.abs(value - before) >= np.abs(after - value)
            right, after = (
                np.where(inside & lower, middle, right),
                np.where(inside & lower, value, after),
            )
            left, before = (
                np.where(inside & ~lower, middle, left),
                np.where(inside & ~lower, value, before),
            )
        kept = np.abs(after - before) > _KEPT * change[found]
    return tuple(
        Jump(int(k), float(0.5 * (a + b)), float(u), float(v))
        for k, a, b, u, v, jump in zip(found, left, right, before, after, kept, strict=True)
        if jump
    )
