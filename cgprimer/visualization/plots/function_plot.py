"""A function of one variable, its derivatives over a range, and its tangent at a point.

A derivative may be written down where the function itself is not defined, such as 1/x beside log(x)
for a negative x: it is no number there. Where values jump, the place of the jump is found by
halving the interval, so that nobody draws a line through it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from cgprimer.analysis.element_graph import numbers_of
from cgprimer.analysis.reference import is_known, reference_derivatives
from cgprimer.analysis.scalar_points import point_values, single_name
from cgprimer.core.derivatives import resolve_output
from cgprimer.core.loss_attachment import graph_with_loss
from cgprimer.errors import DifferentiationError, UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.number_format import format_number, mark_rounding
from cgprimer.support.validation import check_integer, check_real_number
from cgprimer.support.value_names import element_hint
from cgprimer.tapes import Tape, differentiate, values_of
from cgprimer.tapes import tape as tape_of
from cgprimer.visualization.plots import slide

Array = Any
Execute = Callable[[Array], Array]
_HIGHEST = 6  # order of a derivative
_HALVINGS = 40  # of an interval with a jump: its place is known to 1e-12 of the interval
_STEEPER = 4.0  # times the neighbouring differences: where it is worth to look for a jump
_KEPT = 0.5  # of a difference, after all halvings: what is continuous has lost almost all of it
_SHORT = 40  # characters of a formula that fits into the title
_TALL = 8.0  # times the range of the middle 70 % of the values: beyond are poles, and cut off
_HALVES = (3.0, 2.0, 1.5, 1.0, 0.5, 0.25)  # of a range around a tangent, the first that suits
_MIDDLE = 0.24  # of the heights in a range: those in its middle half, around a tangent
_POINTS = 201
_LATE = 1e7  # times the length of an axis: numbers on it would have too many digits


def function(
    graph: ExpressionGraph,
    low: float | None = None,
    high: float | None = None,
    *,
    at: Mapping[str, float] | None = None,
    of: str | None = None,
    wrt: str | None = None,
    loss: str | None = None,
    order: int = 1,
    tangent: float | None = None,
    dark: bool = False,
    title: str | None = None,
) -> slide.Figure:
    """A function of one variable, its derivatives, and the tangent at a point.

    Where a function runs off to infinity the picture is cut, so that the rest can be seen, and the
    legend says so. A line is broken where the values jump.

    Args:
        graph: the graph.
        low, high: from where to where the variable goes, in its unit; unless given -3 to 3, or as
            far around the tangent as it can be told from the curve.
        at: values of all other inputs and parameters; declared values fill the rest.
        of: the output; the only one unless given.
        wrt: the variable, an input or a parameter, of an array one of its numbers, `W[0,1]`; the
            only input, or else the only parameter, unless given.
        loss: a loss of which it is shown instead; the point then has its targets, too.
        order: of the highest derivative, up to 6: 0 for the function alone.
        tangent: where the tangent touches.
        title: above the picture; the function unless given.

    Raises:
        UsageError: an unknown name, an empty range, or an order that is too high.
        MissingValueError: another name has no value.
        DifferentiationError: there is no tangent: a kink, a jump, or an edge of the domain.

    Command line:
        cgprimer plot function -e "xw = tanh(xa)" --tangent 0.5 -o tanh.png
        cgprimer plot function -e "xw = sin(xa)" --order 3 --range -6:6 -o sine.svg
        cgprimer plot function lecture --range 0:1 -o lecture-function.pdf --dark

    >>> import cgprimer
    >>> figure = function(cgprimer.parse("xw = sin(xa)"), -6, 6, order=2)
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['xw', 'd xw / d xa', 'd² xw / d xa²']
    """
    found = function_curves(
        graph, low, high, at=at, of=of, wrt=wrt, loss=loss, order=order, tangent=tangent
    )
    places, place = found.places, found.wrt
    whole = f"{found.of} = {found.formula}"
    usual = whole if len(whole) <= _SHORT else f"{found.of} and its derivatives"
    named = found.of if len(found.orders) == 1 else "value"
    figure, axes, look = slide.framed(dark, title, usual, x=place, y=named)
    low, high = _window(found)
    axes.axhline(0.0, color=look.edge, linewidth=1.0)
    if places[0] <= 0 <= places[-1]:
        axes.axvline(0.0, color=look.edge, linewidth=1.0)
    for k, (values, jumps) in enumerate(zip(found.orders, found.jumps, strict=True)):
        x, y = _broken(places, values, jumps, (low, high))
        # What lies far outside is drawn at a distance that matplotlib can compute with.
        y = np.clip(y, low - 9 * (high - low), high + 9 * (high - low))
        power = "⁰¹²³⁴⁵⁶"[k] if k > 1 else ""
        name = f"d{power} {found.of} / d {place}{power}" if k else found.of
        style = slide.line_style(k, look, len(x))
        axes.plot(x, y, linewidth=2.4 if k else 3.0, label=name, **style)
    if found.tangent:
        touch, value, slope = found.tangent
        ends = places[[0, -1]]
        label = f"tangent at {place} = {format_number(touch, 6)}, slope {mark_rounding(slope, 6)}"
        axes.plot(ends, value + slope * (ends - touch), color=look.ink, linewidth=1.6, label=label)
        axes.plot(touch, value, linestyle="", marker="o", markersize=12, color=look.ink)
    axes.set_xlim(float(places[0]), float(places[-1]))
    axes.set_ylim(low, high)
    for which in ("x", "y"):
        _number_axis(axes, which)
    for note in _notes(found, low, high):
        axes.plot([], [], linestyle="", label=note)
    slide.legend_below(figure, axes, look)
    return figure


class Jump(NamedTuple):
    """A place between two neighbouring points where values jump."""

    after: int  # the index of the point to the left
    place: float  # where; in the unit of the variable
    left: float  # the values on both sides; very large at a pole
    right: float


@dataclass(frozen=True, eq=False)
class FunctionCurves:
    """A function and its derivatives over a range."""

    of: str
    wrt: str
    formula: str  # the expression of ``of``
    places: Array  # values of ``wrt``; shape (points,)
    orders: tuple[Array, ...]  # the function, its first derivative, ...; nan where not defined
    jumps: tuple[tuple[Jump, ...], ...]  # of each of the orders, ascending
    tangent: tuple[float, float, float] | None  # place, value and slope


def function_curves(
    graph: ExpressionGraph, low: float | None = None, high: float | None = None, *,
    at: Mapping[str, float] | None = None, of: str | None = None, wrt: str | None = None,
    loss: str | None = None, order: int = 1, tangent: float | None = None, points: int = 801,
) -> FunctionCurves:  # fmt: skip
    """Values at so many points, by repeated reverse mode: what :func:`function` draws.

    >>> from cgprimer.core.graph import parse
    >>> found = function_curves(parse("xw = xa^3"), 0, 2, order=2, tangent=1.0, points=3)
    >>> [values.tolist() for values in found.orders], found.tangent
    ([[0.0, 1.0, 8.0], [0.0, 3.0, 12.0], [0.0, 6.0, 12.0]], (1.0, 1.0, 3.0))
    """
    graph, at = numbers_of(graph_with_loss(graph, loss, at), at, (of, wrt))
    target = resolve_output(graph, of)
    name = single_name(graph, wrt)
    known = (*graph.inputs, *graph.parameters)
    if name not in known:
        raise UsageError(
            f"{name!r} is computed: a function is of an input or a parameter",
            hint=element_hint(name, known),
        )
    if check_integer("the order of the highest derivative", order) > _HIGHEST:
        raise UsageError(f"the highest derivative is one of order 0 to {_HIGHEST}, not {order}")
    if tangent is not None:
        tangent = check_real_number("the place of the tangent", tangent)
    others = point_values(graph, {**graph.point(at, needed=()), name: 0.0}, of=target)
    primal = tape_of(graph)
    executes = _orders(primal, target, name, max(order, tangent is not None), others)
    low, high = _range(executes[0], low, high, tangent)
    places = np.linspace(low, high, points)
    touch = None
    if tangent is not None:
        value, slope = (float(execute(np.array([tangent]))[0]) for execute in executes[:2])
        exact = reference_derivatives(primal, target, (name,), {**others, name: tangent})
        if not _touches(executes[0], tangent, value, slope, exact and exact[name]):
            raise DifferentiationError(
                f"there is no tangent of {target} at {name} = {tangent:g}",
                hint="a kink, a jump, a pole, an edge of the domain, or a derivative that is hidden"
                " on purpose; choose another place (--tangent)",
            )
        touch = (tangent, value, slope)
    shown = tuple(execute(places) for execute in executes[: order + 1])
    if not np.isfinite(shown[0]).any():
        raise UsageError(f"{target} is not defined anywhere between {low:g} and {high:g}")
    jumps = tuple(_jumps(e, places, values) for e, values in zip(executes, shown, strict=False))
    formula = graph.expression(target) if target in graph.definitions else target
    return FunctionCurves(target, name, formula, places, shown, jumps, touch)


def _range(
    function: Execute, low: float | None, high: float | None, tangent: float | None
) -> tuple[float, float]:
    """Return the range given, or else one that suits a tangent: its ends are told from the curve.

    Where the curve is steep far from the tangent, everything near the tangent looks flat: the
    middle half of the range must keep about a quarter of the heights, as it does of a parabola.
    """
    middle = 0.0 if tangent is None or (low, high) != (None, None) else tangent
    low = check_real_number("the range's beginning", middle - _HALVES[0] if low is None else low)
    high = check_real_number("the range's end", middle + _HALVES[0] if high is None else high)
    if not low < high:
        raise UsageError(f"the range must ascend, not go from {low:g} to {high:g}")
    if middle != tangent:
        return low, high
    for half in _HALVES:
        heights = function(np.linspace(middle - half, middle + half, _POINTS))
        near = heights[_POINTS // 4 : _POINTS - _POINTS // 4]
        if not np.isfinite(heights).any() or np.isinf(heights).any():
            continue
        if np.ptp(near[~np.isnan(near)]) >= _MIDDLE * np.ptp(heights[~np.isnan(heights)]):
            return middle - half, middle + half
    return middle - _HALVES[-1], middle + _HALVES[-1]


def _orders(primal: Tape, of: str, wrt: str, order: int, at: Mapping[str, float]) -> list[Execute]:
    """The function and its derivatives, which are nan where the function is.

    Each tape is the gradient of the one before.
    """
    name, tapes = of, [replace(primal, outputs={of: primal.index(of)})]
    for _ in range(order):
        program = differentiate(tapes[-1], name, wrt, method="reverse")
        name = program.passes[0].reads[0].output
        tapes.append(replace(program.tape, outputs={name: program.tape.outputs[name]}))

    def values(tape: Tape, places: Array) -> Array:
        (root,) = tape.outputs.values()
        found = values_of(tape, {**at, wrt: places}, roots=[root])[root]
        whole = np.broadcast_to(np.asarray(found, dtype=float), places.shape)
        if tape is tapes[0]:
            return whole
        return np.where(np.isnan(values(tapes[0], places)), np.nan, whole)

    return [partial(values, tape) for tape in tapes]


def _touches(function: Execute, place: float, value: float, slope: float, exact: Any) -> bool:
    """Whether this is the slope of both sides; at a kink the rules give some number."""
    if not np.isfinite([value, slope]).all():
        return False
    if exact is not None:
        # At a jump whose value is the middle, both sides have one slope, which is enormous.
        return is_known(exact) and abs(float(exact) - slope) < 1e-6 * max(1.0, abs(slope))
    # A function without a form in mpmath, or one that hides its derivative.
    h, near = 1e-6 * max(1.0, abs(place)), 1e-3 * max(1.0, abs(slope))
    left, right = function(np.array([place - h, place + h])).tolist()
    return all(abs(side / h - slope) < near for side in (value - left, right - value))


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
            upper, lower = inside & ~lower, inside & lower
            right[lower], after[lower] = middle[lower], value[lower]
            left[upper], before[upper] = middle[upper], value[upper]
        kept = np.abs(after - before) > _KEPT * change[found]
    rows = np.stack([found, 0.5 * (left + right), before, after], axis=1)[kept].tolist()
    return tuple(Jump(int(k), *between) for k, *between in rows)


def _window(found: FunctionCurves) -> tuple[float, float]:
    """From where to where the values go, without the arms of poles."""
    values = np.concatenate(found.orders)
    values = values[np.isfinite(values)]
    if found.tangent:
        values = np.append(values, found.tangent[1])
    low, high = float(values.min()), float(values.max())
    near, far = np.quantile(values, [0.15, 0.85]).tolist()
    if 0 < _TALL * (far - near) < high - low:
        low, high = max(low, 1.75 * near - 0.75 * far), min(high, 1.75 * far - 0.75 * near)
    room = 0.06 * (high - low) or 1.0
    return low - room, high + room


def _broken(
    places: Array, values: Array, jumps: Sequence[Jump], window: tuple[float, float]
) -> tuple[Array, Array]:
    """With a gap at each jump, up to which the line goes from both sides, and at each pole.

    A pole is where the line leaves the picture at one side and comes in at the other.
    """
    drawn = np.where(np.isfinite(values), values, np.nan)
    side = (drawn > window[1]).astype(int) - (drawn < window[0])
    poles = {*(np.flatnonzero(side[:-1] * side[1:] < 0) + 1)} - {jump.after + 1 for jump in jumps}
    gaps = [(k, places[k], np.nan) for k in poles]
    for after, place, left, right in jumps:
        gaps += [(after + 1, place, end) for end in (left, np.nan, right)]
    index, between, ends = np.array(gaps).reshape(-1, 3).T
    index = index.astype(int)
    return np.insert(places, index, between), np.insert(drawn, index, ends)


def _number_axis(axes: slide.Axes, which: str) -> None:
    """Numbers on an axis; where they differ only in late digits its name subtracts the rest."""
    slide.linear_axis(axes, which)
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = sorted(axis.get_view_interval())
    if max(abs(low), abs(high)) < _LATE * (high - low):
        return
    rough = 10.0 ** np.floor(np.log10(high - low) + 1)
    start = float(np.round((low + high) / 2 / rough) * rough)
    axis.set_major_formatter(
        lambda value, _: slide.on_axis(value - start, axis.get_majorticklocs() - start)
    )
    name = f"{axis.get_label_text()} {'-' if start > 0 else '+'} {format_number(abs(start), 15)}"
    axis.get_label().set_text(name)


def _notes(found: FunctionCurves, low: float, high: float) -> list[str]:
    """What the picture does not show: cut values, and values beyond the largest double."""
    every = np.concatenate([values[~np.isnan(values)] for values in found.orders])
    sides = ["top"] * bool(every.max() > high) + ["bottom"] * bool(every.min() < low)
    notes = [f"cut off at the {' and the '.join(sides)}"] if sides else []
    huge = np.isinf(found.orders[0])
    for side, way in {"above": 1, "below": -1}.items():
        where = huge[::way]
        if where[-1] and where[-2]:
            last = float(found.places[::way][~where][-1])
            notes.append(f"too large for a double {side} {found.wrt} = {format_number(last, 3)}")
    return notes
