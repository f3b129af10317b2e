"""A function of one variable with its derivatives, and the tangent at a point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cgprimer.core.number_format import number
from cgprimer.pictures.frame import framed, legend_below, line_look, linear_axis, on_axis
from cgprimer.plots.function_data import FunctionCurves, Jump

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = Any
_SHORT = 40  # characters of a formula that fits into the title
_TALL = 8.0  # times the range of the middle 70 % of the values: beyond are poles, and cut off
_LATE = 1e7  # times the length of an axis: numbers on it would have too many digits


def draw_function(found: FunctionCurves, *, dark: bool = False, title: str = "") -> Figure:
    """Draw a function, its derivatives, and the tangent where there is one.

    Where a function runs off to infinity the picture is cut, so that the rest can be seen, and the
    legend says so. A line is broken where the values jump.

    >>> import cgprimer
    >>> from cgprimer.plots.function_data import function_curves
    >>> figure = draw_function(function_curves(cgprimer.parse("xw = sin(xa)"), order=2))
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['xw', 'd xw / d xa', 'd² xw / d xa²']
    """
    whole = f"{found.of} = {found.formula}"
    figure, axes, look = framed(
        dark=dark,
        title=title or (whole if len(whole) <= _SHORT else f"{found.of} and its derivatives"),
        x=found.wrt,
        y=found.of if len(found.orders) == 1 else "value",
    )
    low, high = _window(found)
    axes.axhline(0.0, color=look.edge, linewidth=1.0)
    if found.places[0] <= 0 <= found.places[-1]:
        axes.axvline(0.0, color=look.edge, linewidth=1.0)
    for order, (values, jumps) in enumerate(zip(found.orders, found.jumps, strict=True)):
        places, drawn = _broken(found.places, values, jumps, (low, high))
        axes.plot(
            places,
            # What lies far outside is drawn at a distance that matplotlib can compute with.
            np.clip(drawn, low - 9 * (high - low), high + 9 * (high - low)),
            linewidth=3.0 if order == 0 else 2.4,
            label=_name(found, order),
            **line_look(order, look, len(places)),
        )
    if found.tangent:
        place, value, slope = found.tangent
        ends = np.array([found.places[0], found.places[-1]])
        axes.plot(
            ends,
            value + slope * (ends - place),
            color=look.ink,
            linewidth=1.6,
            label=f"tangent at {found.wrt} = {number(place, 6)}, slope {number(slope, 6)}",
        )
        axes.plot([place], [value], linestyle="", marker="o", markersize=12, color=look.ink)
    axes.set_xlim(float(found.places[0]), float(found.places[-1]))
    axes.set_ylim(low, high)
    for which in ("x", "y"):
        _number(axes, which)
    for note in _notes(found, low, high):
        axes.plot([], [], linestyle="", label=note)
    legend_below(figure, axes, look)
    return figure


def _window(found: FunctionCurves) -> tuple[float, float]:
    """From where to where the values go, without the arms of poles."""
    values = np.concatenate([np.asarray(v, dtype=float) for v in found.orders])
    values = values[np.isfinite(values)]
    if found.tangent:
        values = np.append(values, found.tangent[1])
    low, high = float(values.min()), float(values.max())
    near, far = (float(v) for v in np.quantile(values, [0.15, 0.85]))
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
    index = np.repeat([jump.after + 1 for jump in jumps], 3).astype(int)
    between = np.array([[jump.place] * 3 for jump in jumps])
    ends = np.array([[jump.left, np.nan, jump.right] for jump in jumps])
    drawn = np.where(np.isfinite(values), values, np.nan)
    side = (drawn > window[1]).astype(int) - (drawn < window[0])
    poles = np.setdiff1d(np.flatnonzero(side[:-1] * side[1:] < 0) + 1, index)
    index = np.concatenate([index, poles])
    between = np.concatenate([between.ravel(), places[poles]])
    ends = np.concatenate([ends.ravel(), np.full(len(poles), np.nan)])
    return np.insert(places, index, between), np.insert(drawn, index, ends)


def _number(axes: Axes, which: str) -> None:
    """Numbers on an axis; where they differ only in late digits its name subtracts the rest."""
    from matplotlib.ticker import FuncFormatter

    linear_axis(axes, which)
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = sorted(axis.get_view_interval())
    if max(abs(low), abs(high)) < _LATE * (high - low):
        return
    rough = 10.0 ** np.floor(np.log10(high - low) + 1)
    start = float(np.round((low + high) / 2 / rough) * rough)
    axis.set_major_formatter(
        FuncFormatter(
            lambda value, _: on_axis(value - start, [p - start for p in axis.get_majorticklocs()])
        )
    )
    name = f"{axis.get_label_text()} {'-' if start > 0 else '+'} {number(abs(start), 15)}"
    axis.get_label().set_text(name)


def _notes(found: FunctionCurves, low: float, high: float) -> list[str]:
    """What the picture does not show: cut values, and values beyond the largest double."""
    every = np.concatenate([values[~np.isnan(values)] for values in found.orders])
    sides = [side for side, cut in (("top", every.max() > high), ("bottom", every.min() < low))
             if cut]  # fmt: skip
    notes = [f"cut off at the {' and the '.join(sides)}"] if sides else []
    huge = np.isinf(found.orders[0])
    for side, where in (("above", huge), ("below", huge[::-1])):
        if where[-1] and where[-2]:
            places = found.places if side == "above" else found.places[::-1]
            last = float(places[np.flatnonzero(~where)[-1]])
            notes.append(f"too large for a double {side} {found.wrt} = {number(last, 3)}")
    return notes


def _name(found: FunctionCurves, order: int) -> str:
    if order == 0:
        return found.of
    power = "" if order == 1 else "⁰¹²³⁴⁵⁶⁷⁸⁹"[order]
    return f"d{power} {found.of} / d {found.wrt}{power}"
