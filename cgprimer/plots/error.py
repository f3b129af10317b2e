"""The V of finite differences: error against step, both axes logarithmic."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cgprimer.core.number_format import number
from cgprimer.pictures.frame import (
    MARKERS,
    framed,
    legend_below,
    log_axis,
    text_style,
)
from cgprimer.pictures.theme import DASHES, Theme
from cgprimer.plots.error_data import StepErrors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = Any

_ORDER = {"forward": 1, "central": 2, "complex-step": 2}  # of the error in the step
_WORDS = {-1: "rounding: error ~ 1/h", 1: "error ~ h", 2: "error ~ h²"}
_APART = 12.0  # times the error: how far a guide runs beside its curve
_SHORT = 30  # characters of a formula that fits into the title
_DECADES = 1.5  # the least length of a guide
_MOST = 9  # numbers on the axis of errors
_EXACT = "0 (exact)"
_STARS = (22.0, 36.0, 50.0)  # points: stars at one place lie within one another


def draw_step_errors(found: StepErrors, *, dark: bool = False, title: str = "") -> Figure:
    """Draw the error of each scheme against the step, with slopes and best steps marked.

    A star marks the best step of each scheme. Beside the curves run straight lines of the slopes
    that theory gives: 1 for forward, 2 for central differences, -1 where rounding rules. An error
    of exactly 0 has no place on a logarithmic axis: it lies on a line of its own under the others.

    >>> import cgprimer
    >>> from cgprimer.plots.error_data import step_errors
    >>> figure = draw_step_errors(step_errors(cgprimer.parse("xw = sin(xa)"), {"xa": 1}))
    >>> figure.axes[0].get_xlabel()
    'step h'
    """
    figure, axes, look = framed(
        dark=dark, title=title or _title(found), x="step h", y="absolute error of the derivative"
    )
    axes.set_xlim(float(found.steps[0]) / 2, float(found.steps[-1]) * 2)
    floor = _floor(found)
    for order, (scheme, errors) in enumerate(found.errors.items()):
        colour = look.curves[order % len(look.curves)]
        shown = np.where(errors == 0, floor, errors)
        axes.plot(
            found.steps,
            shown,
            color=colour,
            linestyle=DASHES[order % len(DASHES)],
            linewidth=2.0,
            marker=MARKERS[order],
            markersize=5,
            markevery=(order, 3),
            label=_label(found, scheme),
        )
        _star(axes, found, scheme, shown, order, look)
    for scheme in found.refused:
        axes.plot([], [], linestyle="", label=f"{scheme}: not analytic")
    axes.set_yscale("log")
    _guides(axes, found, look)
    log_axis(axes, "x")
    if any((errors == 0).any() for errors in found.errors.values()):
        axes.axhline(floor, color=look.edge, linewidth=1.0, zorder=1)
        _number_above(axes, floor)
    else:
        log_axis(axes, "y", most=_MOST)
    legend_below(figure, axes, look)
    return figure


def _floor(found: StepErrors) -> float:
    """Where errors of 0 lie: a power of ten well below all others."""
    every = np.concatenate(list(found.errors.values()))
    positive = every[every > 0]
    least = float(positive.min()) if positive.size else 2.0**-52
    return float(10.0 ** (np.floor(np.log10(least)) - 1))


def _number_above(axes: Axes, floor: float) -> None:
    """Powers of ten on the axis of errors, and a word at the line of errors that are 0."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    high = max(axes.get_ylim()[1], 1e4 * floor)
    first, last = round(np.log10(floor)) + 1, int(np.floor(np.log10(high)))
    apart = -(-(last - first + 1) // (_MOST - 1))
    powers = [10.0**power for power in range(last, first - 1, -apart)]
    axes.set_ylim(floor / 3, high)
    axes.yaxis.set_major_locator(FixedLocator([floor, *powers]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: _EXACT if value < 2 * floor else number(value, 6))
    )


def _title(found: StepErrors) -> str:
    place = f" at {found.wrt} = {number(found.at[found.wrt], 6)}" if found.wrt in found.at else ""
    formula = f"{found.of} = {found.formula}: " if len(found.formula) <= _SHORT else ""
    return f"{formula}d {found.of} / d {found.wrt}{place}"


def _label(found: StepErrors, scheme: str) -> str:
    expected = found.smoothed(scheme)
    if not np.isfinite(expected).any():
        return f"{scheme}: no number at any step"
    if not np.nanmax(expected) > 0:
        return f"{scheme}: no error at any step"
    return f"{scheme}: best h about {number(found.best(scheme), 1)}"


def _star(
    axes: Axes, found: StepErrors, scheme: str, shown: Array, order: int, look: Theme
) -> None:
    """Mark the best step, on the curve."""
    numbers = np.isfinite(shown)
    if not numbers.any() or not np.nanmax(found.errors[scheme]) > 0:
        return
    apart = np.abs(np.log(found.steps / found.best(scheme)))
    best = int(np.argmin(np.where(numbers, apart, np.inf)))
    place = (float(found.steps[best]), float(shown[best]))
    below = sum(
        str(line.get_label()).startswith("_best") and _first(line) == place for line in axes.lines
    )
    axes.plot(
        [place[0]],
        [place[1]],
        linestyle="",
        marker="*",
        markersize=_STARS[min(below, len(_STARS) - 1)],
        color=look.curves[order % len(look.curves)],
        markeredgecolor=look.background,
        zorder=5 - 0.1 * below,  # the smaller on the larger
        clip_on=False,
        label=f"_best {scheme}",
    )


def _first(line: Any) -> tuple[float, float]:
    """The first point of a drawn line."""
    return float(line.get_xdata()[0]), float(line.get_ydata()[0])


def _guides(axes: Axes, found: StepErrors, look: Theme) -> None:
    """Straight lines of the known slopes: above forward and rounding, below central."""
    drawn: set[int] = set()
    for scheme in found.errors:
        if not np.isfinite(found.smoothed(scheme)).any():
            continue
        best, order = found.best(scheme), _ORDER[scheme]
        highest = float(found.steps[-1]) / 10
        for slope, low, high, side in (
            (order, best * 20, highest, 1 / _APART if order == 2 else _APART),
            (-1, _rounding_begins(found, scheme, best), best / 30, _APART),
        ):
            if slope in drawn or (slope < 0 and scheme == "complex-step"):
                continue
            drawn |= _guide(axes, found, scheme, slope, (low, high), side, look)


def _rounding_begins(found: StepErrors, scheme: str, best: float) -> float:
    """The step above which the difference is not simply 0, and so all of the derivative missing."""
    lost = (found.errors[scheme] > 0.3 * abs(found.derivative)) & (found.steps < best)
    first = float(found.steps[0])
    if found.derivative and lost.any():
        first = float(found.steps[np.flatnonzero(lost)[-1]])
    return max(first * 3, float(found.steps[0]) * 30)


def _guide(
    axes: Axes,
    found: StepErrors,
    scheme: str,
    slope: int,
    between: tuple[float, float],
    side: float,
    look: Theme,
) -> set[int]:
    """Draw one guide where the curve really has about its slope; the slopes drawn."""
    low, high = between
    inside = (found.steps >= low) & (found.steps <= high) & (found.errors[scheme] > 0)
    if inside.any():  # not beyond the curve that it is to explain
        low, high = (float(found.steps[inside][k]) for k in (0, -1))
    if high < low * 10**_DECADES or inside.sum() < 4:
        return set()
    if abs(found.slope(scheme, low, high) - slope) > 0.35:
        return set()
    factor = float(np.median(found.errors[scheme][inside] / found.steps[inside] ** slope)) * side
    line: Callable[[float], float] = lambda h: factor * h**slope  # noqa: E731
    axes.plot(
        [low, high],
        [line(low), line(high)],
        color=look.edge,
        linewidth=1.6,
        linestyle=(0, (1, 2)),
        scalex=False,
    )
    # Level text beside the guide, on the side away from the curve.
    middle = float(np.sqrt(low * high))
    axes.annotate(
        _WORDS[slope],
        (middle, line(middle)),
        xytext=(8 if slope != 1 else -8, 2 if side > 1 else -2),
        textcoords="offset points",
        ha="right" if slope == 1 else "left",
        va="bottom" if side > 1 else "top",
        parse_math=False,
        **text_style(look),
    )
    return {slope}
