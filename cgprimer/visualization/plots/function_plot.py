"""A function of one variable, its derivatives over a range, and its tangent at a point.

The formula of a derivative can have values outside of the domain of the function, such as 1/x, the
derivative of log(x), at a negative x: these values become nan. Jumps are located by bisection, so
no line is drawn across a jump.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from cgprimer.analysis.element_graph import expand_with_point
from cgprimer.analysis.reference import compute_reference_derivatives, is_defined
from cgprimer.analysis.scalar_points import choose_variable, complete_point
from cgprimer.core.derivatives import resolve_output
from cgprimer.core.loss_attachment import graph_with_loss
from cgprimer.errors import DifferentiationError, UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.number_format import format_number, mark_rounding
from cgprimer.support.validation import check_integer, check_real_number
from cgprimer.support.value_names import element_hint
from cgprimer.tapes import Tape, differentiate, values_of
from cgprimer.tapes import tape as tape_of
from cgprimer.visualization.diagrams.theme import Theme
from cgprimer.visualization.plots import slide

Array = Any
Function = Callable[[Array], Array]
_MAX_ORDER = 6
_BISECTIONS = 40  # of an interval with a jump, whose place is then known to 1e-12 of the interval
_STEEPER = 4.0  # ratio of a difference and its neighbors from which on it can be a jump
_JUMP_FRACTION = 0.5  # of a difference that remains at a jump after all bisections
_MAX_FORMULA = 40  # characters of a formula in the title
_POLE_FACTOR = 8.0  # values outside so many times the range of the middle 70 % are cut off
_HALF_RANGES = (3.0, 2.0, 1.5, 1.0, 0.5, 0.25)  # around a tangent; the first suitable one is used
_MIDDLE_FRACTION = 0.24  # of the heights in a range, required in its middle half around a tangent
_POINTS = 201
_OFFSET_FACTOR = 1e7  # ratio of values and the length of their axis from which on ticks are offsets


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
    """Draw a function of one variable, its derivatives, and the tangent at a point.

    Near poles the plot is cut off, and the legend says so. Lines have gaps where values jump.

    Args:
        graph: the graph.
        low, high: range of the variable, in its unit. Default: -3 to 3, or a range around the
            tangent in which the tangent differs from the curve.
        at: values of all other inputs and parameters; other names keep their declared values.
        of: output to draw. Default: the only output.
        wrt: variable on the horizontal axis: an input, a parameter or an array element, `W[0,1]`.
            Default: the only input, or else the only parameter.
        loss: loss to draw instead; `at` then has its targets as well.
        order: order of the highest derivative, up to 6; 0 for the function only.
        tangent: point of tangency.
        title: title above the plot. Default: the function.

    Raises:
        UsageError: an unknown name, an empty range, or an order that is too high.
        MissingValueError: a value is missing.
        DifferentiationError: the function has no tangent at the point.

    >>> import cgprimer
    >>> figure = function(cgprimer.parse("xw = sin(xa)"), -6, 6, order=2)
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['xw', 'd xw / d xa', 'd² xw / d xa²']
    """
    curves = function_curves(
        graph, low, high, at=at, of=of, wrt=wrt, loss=loss, order=order, tangent=tangent
    )
    formula = f"{curves.of} = {curves.formula}"
    default_title = formula if len(formula) <= _MAX_FORMULA else f"{curves.of} and its derivatives"
    y = curves.of if len(curves.orders) == 1 else "value"
    figure, axes, look = slide.create_plot(dark, title, default_title, x=curves.wrt, y=y)
    low, high = _choose_limits(curves)
    axes.axhline(0.0, color=look.edge, linewidth=1.0)
    if curves.places[0] <= 0 <= curves.places[-1]:
        axes.axvline(0.0, color=look.edge, linewidth=1.0)
    _draw_derivatives(axes, curves, (low, high), look)
    if curves.tangent:
        _draw_tangent(axes, curves, curves.tangent, look)
    _finish_axes(axes, curves, (low, high))
    slide.draw_legend_below(figure, axes, look)
    return figure


def _finish_axes(axes: slide.Axes, curves: FunctionCurves, limits: tuple[float, float]) -> None:
    """Set limits and ticks, and add legend entries for values that are cut off."""
    axes.set_xlim(float(curves.places[0]), float(curves.places[-1]))
    axes.set_ylim(*limits)
    for which in ("x", "y"):
        _use_offset_axis(axes, which)
    for note in _describe_cut_values(curves, *limits):
        axes.plot([], [], linestyle="", label=note)


def _draw_derivatives(
    axes: slide.Axes, curves: FunctionCurves, limits: tuple[float, float], look: Theme
) -> None:
    """Draw the function and its derivatives, with gaps at jumps."""
    low, high = limits
    for k, (values, jumps) in enumerate(zip(curves.orders, curves.jumps, strict=True)):
        x, y = _insert_gaps(curves.places, values, jumps, limits)
        # Values far outside are drawn at a distance that matplotlib can compute with.
        y = np.clip(y, low - 9 * (high - low), high + 9 * (high - low))
        power = "⁰¹²³⁴⁵⁶"[k] if k > 1 else ""
        name = f"d{power} {curves.of} / d {curves.wrt}{power}" if k else curves.of
        style = slide.choose_line_style(k, look, len(x))
        axes.plot(x, y, linewidth=2.4 if k else 3.0, label=name, **style)


def _draw_tangent(
    axes: slide.Axes, curves: FunctionCurves, tangent: tuple[float, float, float], look: Theme
) -> None:
    """Draw the tangent to the function at a point, and mark the point."""
    place, value, slope = tangent
    ends = curves.places[[0, -1]]
    at = f"{curves.wrt} = {format_number(place, 6)}"
    label = f"tangent at {at}, slope {mark_rounding(slope, 6)}"
    axes.plot(ends, value + slope * (ends - place), color=look.ink, linewidth=1.6, label=label)
    axes.plot(place, value, linestyle="", marker="o", markersize=12, color=look.ink)


class Jump(NamedTuple):
    """A jump discontinuity of a function between two neighboring sample points.

    Attributes:
        after: index of the point to the left.
        place: location of the jump, in the unit of the variable.
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
        of: the output.
        wrt: the variable.
        formula: the expression of ``of``.
        places: values of the variable; shape (points,).
        orders: values of the function, its first derivative, and so on; nan outside the domain.
        jumps: the jumps of the function and of each derivative, ascending.
        tangent: place, value and slope of the tangent.
    """

    of: str
    wrt: str
    formula: str
    places: Array
    orders: tuple[Array, ...]
    jumps: tuple[tuple[Jump, ...], ...]
    tangent: tuple[float, float, float] | None


def function_curves(
    graph: ExpressionGraph, low: float | None = None, high: float | None = None, *,
    at: Mapping[str, float] | None = None, of: str | None = None, wrt: str | None = None,
    loss: str | None = None, order: int = 1, tangent: float | None = None, points: int = 801,
) -> FunctionCurves:  # fmt: skip
    """Compute a function and its derivatives at equidistant points by repeated reverse mode.

    >>> from cgprimer.core.graph import parse
    >>> curves = function_curves(parse("xw = xa^3"), 0, 2, order=2, tangent=1.0, points=3)
    >>> [values.tolist() for values in curves.orders], curves.tangent
    ([[0.0, 1.0, 8.0], [0.0, 3.0, 12.0], [0.0, 6.0, 12.0]], (1.0, 1.0, 3.0))
    """
    graph, at = expand_with_point(graph_with_loss(graph, loss, at), at, (of, wrt))
    target = resolve_output(graph, of)
    name = choose_variable(graph, wrt)
    leaves = (*graph.inputs, *graph.parameters)
    if name not in leaves:
        raise UsageError(
            f"the variable of a function must be an input or a parameter, but {name!r} is computed",
            hint=element_hint(name, leaves),
        )
    if check_integer("the order of the highest derivative", order) > _MAX_ORDER:
        raise UsageError(f"`order` must be an integer from 0 to {_MAX_ORDER}, got {order}")
    if tangent is not None:
        tangent = check_real_number("the point of tangency", tangent)
    others = complete_point(graph, {**graph.point(at, needed=()), name: 0.0}, of=target)
    primal = tape_of(graph)
    functions = _build_derivatives(primal, target, name, max(order, tangent is not None), others)
    low, high = _choose_range(functions[0], low, high, tangent)
    places = np.linspace(low, high, points)
    touch = None
    if tangent is not None:
        value, slope = (float(function(np.array([tangent]))[0]) for function in functions[:2])
        exact = compute_reference_derivatives(primal, target, (name,), {**others, name: tangent})
        if not _is_tangent(functions[0], tangent, value, slope, exact and exact[name]):
            raise DifferentiationError(
                f"{target} has no tangent at {name} = {tangent:g}",
                hint="choose another point (--tangent): this may be a kink, a jump, a pole, the"
                " boundary of the domain, or a point with a custom derivative",
            )
        touch = (tangent, value, slope)
    orders = tuple(function(places) for function in functions[: order + 1])
    if not np.isfinite(orders[0]).any():
        raise UsageError(f"{target} is undefined everywhere between {low:g} and {high:g}")
    pairs = zip(functions, orders, strict=False)
    jumps = tuple(_find_jumps(function, places, values) for function, values in pairs)
    formula = graph.expression(target) if target in graph.definitions else target
    return FunctionCurves(target, name, formula, places, orders, jumps, touch)


def _choose_range(
    function: Function, low: float | None, high: float | None, tangent: float | None
) -> tuple[float, float]:
    """Return the given range, or a range in which the tangent differs visibly from the curve.

    If the curve is steep far from the tangent, everything near the tangent looks flat: the middle
    half of the range must contain about a quarter of the heights, as for a parabola.
    """
    middle = 0.0 if tangent is None or (low, high) != (None, None) else tangent
    half = _HALF_RANGES[0]
    low = check_real_number("the start of the range", middle - half if low is None else low)
    high = check_real_number("the end of the range", middle + half if high is None else high)
    if not low < high:
        raise UsageError(f"the range must be ascending, got {low:g} to {high:g}")
    if middle != tangent:
        return low, high
    for half in _HALF_RANGES:
        heights = function(np.linspace(middle - half, middle + half, _POINTS))
        near = heights[_POINTS // 4 : _POINTS - _POINTS // 4]
        if not np.isfinite(heights).any() or np.isinf(heights).any():
            continue
        if np.ptp(near[~np.isnan(near)]) >= _MIDDLE_FRACTION * np.ptp(heights[~np.isnan(heights)]):
            return middle - half, middle + half
    return middle - _HALF_RANGES[-1], middle + _HALF_RANGES[-1]


def _build_derivatives(
    primal: Tape, of: str, wrt: str, order: int, at: Mapping[str, float]
) -> list[Function]:
    """Build the output as a function of one variable, and its derivatives up to an order.

    The tape of each derivative is the gradient of the previous tape. Derivatives are nan where the
    function is nan.
    """
    name, tapes = of, [replace(primal, outputs={of: primal.index(of)})]
    for _ in range(order):
        program = differentiate(tapes[-1], name, wrt, method="reverse")
        name = program.passes[0].reads[0].output
        tapes.append(replace(program.tape, outputs={name: program.tape.outputs[name]}))

    def evaluate(tape: Tape, places: Array) -> Array:
        """Evaluate a tape at the given values of the variable."""
        (root,) = tape.outputs.values()
        result = values_of(tape, {**at, wrt: places}, roots=[root])[root]
        values = np.broadcast_to(np.asarray(result, dtype=float), places.shape)
        if tape is tapes[0]:
            return values
        return np.where(np.isnan(evaluate(tapes[0], places)), np.nan, values)

    return [partial(evaluate, tape) for tape in tapes]


def _is_tangent(function: Function, place: float, value: float, slope: float, exact: Any) -> bool:
    """Return whether the left and right derivatives both equal `slope`; at a kink they do not."""
    if not np.isfinite([value, slope]).all():
        return False
    if exact is not None:
        # At a jump whose value is the middle of the limits, both sides have the same huge slope.
        return is_defined(exact) and abs(float(exact) - slope) < 1e-6 * max(1.0, abs(slope))
    # The function has no reference, or a custom derivative.
    h, near = 1e-6 * max(1.0, abs(place)), 1e-3 * max(1.0, abs(slope))
    left, right = function(np.array([place - h, place + h])).tolist()
    return all(abs(side / h - slope) < near for side in (value - left, right - value))


def _find_jumps(function: Function, places: Array, values: Array) -> tuple[Jump, ...]:
    """Find the jump discontinuities of a function by repeated bisection."""
    with np.errstate(all="ignore"):
        change = np.abs(np.diff(values))
        padded = np.concatenate([[0.0], np.nan_to_num(change, posinf=0.0), [0.0]])
        # A jump at a grid point has two differences, so the smaller neighbor counts.
        near = np.minimum(padded[:-2], padded[2:])
        noise = 1e-12 * np.nanmax(np.abs(values), initial=0.0, where=np.isfinite(values))
        steep = np.flatnonzero(np.isfinite(change) & (change > _STEEPER * near) & (change > noise))
        left, right = places[steep].copy(), places[steep + 1].copy()
        before, after = values[steep].copy(), values[steep + 1].copy()
        for _ in range(_BISECTIONS if steep.size else 0):
            middle = 0.5 * (left + right)
            value = function(middle)
            inside = np.isfinite(value) & (middle > left) & (middle < right)
            # Choose the half with the larger difference; the left half if they are equal.
            lower = np.abs(value - before) >= np.abs(after - value)
            upper, lower = inside & ~lower, inside & lower
            right[lower], after[lower] = middle[lower], value[lower]
            left[upper], before[upper] = middle[upper], value[upper]
        is_jump = np.abs(after - before) > _JUMP_FRACTION * change[steep]
    rows = np.stack([steep, 0.5 * (left + right), before, after], axis=1)[is_jump].tolist()
    return tuple(Jump(int(k), *rest) for k, *rest in rows)


def _choose_limits(curves: FunctionCurves) -> tuple[float, float]:
    """Choose limits for the vertical axis that cut off poles."""
    values = np.concatenate(curves.orders)
    values = values[np.isfinite(values)]
    if curves.tangent:
        values = np.append(values, curves.tangent[1])
    low, high = float(values.min()), float(values.max())
    near, far = np.quantile(values, [0.15, 0.85]).tolist()
    if 0 < _POLE_FACTOR * (far - near) < high - low:
        low, high = max(low, 1.75 * near - 0.75 * far), min(high, 1.75 * far - 0.75 * near)
    margin = 0.06 * (high - low) or 1.0
    return low - margin, high + margin


def _insert_gaps(
    places: Array, values: Array, jumps: Sequence[Jump], limits: tuple[float, float]
) -> tuple[Array, Array]:
    """Insert gaps into the points of a curve at each jump and at each pole.

    At a jump, the curve continues on both sides up to the jump. At a pole, it leaves the plot at
    the top and returns at the bottom, or vice versa.
    """
    drawn = np.where(np.isfinite(values), values, np.nan)
    side = (drawn > limits[1]).astype(int) - (drawn < limits[0])
    poles = {*(np.flatnonzero(side[:-1] * side[1:] < 0) + 1)} - {jump.after + 1 for jump in jumps}
    gaps = [(k, places[k], np.nan) for k in poles]
    for after, place, left, right in jumps:
        gaps += [(after + 1, place, end) for end in (left, np.nan, right)]
    index, positions, ends = np.array(gaps).reshape(-1, 3).T
    index = index.astype(int)
    return np.insert(places, index, positions), np.insert(drawn, index, ends)


def _use_offset_axis(axes: slide.Axes, which: str) -> None:
    """Set the ticks of an axis; subtract an offset from ticks that differ only in late digits."""
    slide.use_linear_axis(axes, which)
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = sorted(axis.get_view_interval())
    if max(abs(low), abs(high)) < _OFFSET_FACTOR * (high - low):
        return
    unit = 10.0 ** np.floor(np.log10(high - low) + 1)
    offset = float(np.round((low + high) / 2 / unit) * unit)
    axis.set_major_formatter(
        lambda value, _: slide.format_tick(value - offset, axis.get_majorticklocs() - offset)
    )
    sign = "-" if offset > 0 else "+"
    name = f"{axis.get_label_text()} {sign} {format_number(abs(offset), 15)}"
    axis.get_label().set_text(name)


def _describe_cut_values(curves: FunctionCurves, low: float, high: float) -> list[str]:
    """Describe the values that are not drawn: outside the limits or beyond the float range."""
    every = np.concatenate([values[~np.isnan(values)] for values in curves.orders])
    sides = ["top"] * bool(every.max() > high) + ["bottom"] * bool(every.min() < low)
    notes = [f"cut off at the {' and the '.join(sides)}"] if sides else []
    is_huge = np.isinf(curves.orders[0])
    for side, direction in {"above": 1, "below": -1}.items():
        ordered = is_huge[::direction]
        if ordered[-1] and ordered[-2]:
            last = float(curves.places[::direction][~ordered][-1])
            notes.append(f"too large for a double {side} {curves.wrt} = {format_number(last, 3)}")
    return notes
