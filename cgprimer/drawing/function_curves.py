"""A function of one variable with its derivatives, and the tangent at a point."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cgprimer.drawing.frame import framed, legend_below
from cgprimer.drawing.theme import DASHES
from cgprimer.teaching.slopes import FunctionCurves

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHORT = 40  # characters of a formula that fits into the title
_TALL = 8.0  # times the range of the middle 70 % of the values: beyond are poles, and cut off


def draw_function(found: FunctionCurves, *, dark: bool = False, title: str = "") -> Figure:
    """Draw a function, its derivatives, and the tangent where there is one.

    Where a function runs off to infinity the picture is cut, so that the rest can be seen, and a
    line is broken where the values jump from one end to the other.

    >>> import cgprimer
    >>> from cgprimer.teaching.slopes import function_curves
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
    for order, values in enumerate(found.orders):
        axes.plot(
            found.places,
            _broken(values, high - low),
            color=look.curves[order % len(look.curves)],
            linestyle=DASHES[order % len(DASHES)],
            linewidth=3.0 if order == 0 else 2.4,
            label=_name(found, order),
        )
    if found.tangent:
        place, value, slope = found.tangent
        ends = np.array([found.places[0], found.places[-1]])
        axes.plot(
            ends,
            value + slope * (ends - place),
            color=look.ink,
            linewidth=1.6,
            label=f"tangent at {found.wrt} = {place:g}, slope {slope:.6g}",
        )
        axes.plot([place], [value], linestyle="", marker="o", markersize=12, color=look.ink)
    axes.set_xlim(float(found.places[0]), float(found.places[-1]))
    axes.set_ylim(low, high)
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


def _broken(values: Any, height: float) -> Any:
    """With a gap where neighbours lie more than the picture apart, on either side of a pole."""
    shown = np.array(values, dtype=float)
    with np.errstate(invalid="ignore"):
        jumps = (np.abs(np.diff(shown)) > height) & (np.sign(shown[1:]) != np.sign(shown[:-1]))
    shown[1:][jumps] = np.nan
    return shown


def _name(found: FunctionCurves, order: int) -> str:
    if order == 0:
        return found.of
    power = "" if order == 1 else "⁰¹²³⁴⁵⁶⁷⁸⁹"[order]
    return f"d{power} {found.of} / d {found.wrt}{power}"
