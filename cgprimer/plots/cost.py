"""Costs as curves: a gradient against the number of parameters, a formula against its depth."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING

from cgprimer.core.number_format import number
from cgprimer.errors import UsageError
from cgprimer.pictures.frame import (
    MARKERS,
    dress,
    framed,
    headline,
    legend_below,
    linear_axis,
    log_axis,
    new_figure,
)
from cgprimer.pictures.theme import AXIS_SIZE, DASHES, FONT, Theme, theme
from cgprimer.plots.cost_data import BOUND, Cost, CostGrowth
from cgprimer.plots.swell_data import Swell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDE = 1.06  # times the only size: half the width of its band
_WORDS = {
    "network": "a network with one hidden layer",
    "neuron": "one neuron",
    "sum": "a sum of sines",
}


def draw_cost(
    growth: CostGrowth, *, bound: float = BOUND, dark: bool = False, title: str = ""
) -> Figure:
    """Draw operations, and times where there are some, against the number of parameters.

    The shaded band reaches from the function's own cost to `bound` times that: reverse mode stays
    inside it, whatever the number of parameters.

    Raises `cgprimer.errors.UsageError` for a bound that is not above 1.

    >>> from cgprimer.plots.cost_data import cost_growth
    >>> figure = draw_cost(cost_growth("sum", [1, 4], methods=["reverse"]))
    >>> figure.axes[0].get_xscale(), figure.axes[0].get_ylabel()
    ('log', 'operations for the whole gradient')
    """
    checked_bound(bound)
    look = theme(dark)
    figure = new_figure(look)
    count = 2 if growth.timed else 1
    panels = figure.subplots(1, count, squeeze=False)[0]
    for axes, what in zip(panels, ("operations", "seconds"), strict=False):
        name = "operations" if what == "operations" else "time in seconds"
        dress(axes, look, x="number of parameters", y=f"{name} for the whole gradient")
        _cost_panel(axes, growth, what, bound, look)
    heading = title or f"Cost of a gradient: {_WORDS.get(growth.family, growth.family)}"
    headline(figure, look, heading)
    legend_below(figure, panels[0], look)
    return figure


def checked_bound(bound: float) -> float:
    """The bound, if it is one: a finite number above 1.

    Raises `cgprimer.errors.UsageError` if it is none.
    """
    if not 1 < bound < float("inf"):
        raise UsageError(f"the bound is a number of times above 1, not {bound:g}")
    return bound


def _cost_panel(axes: Axes, growth: CostGrowth, what: str, bound: float, look: Theme) -> None:
    def values(costs: Sequence[Cost]) -> list[float]:
        return [float(getattr(cost, what)) for cost in costs]

    sizes = [float(cost.parameters) for cost in growth.primal]
    own = values(growth.primal)
    wide = (sizes, own)
    if len(sizes) == 1:  # a band needs a width to be seen
        wide = ([sizes[0] / _WIDE, sizes[0] * _WIDE], own * 2)
    axes.fill_between(
        wide[0],
        wide[1],
        [bound * value for value in wide[1]],
        color=look.edge,
        alpha=0.16,
        linewidth=0,
        label=f"up to {number(bound, 6)} times the function: cheap gradient",
    )
    axes.plot(
        sizes,
        own,
        color=look.ink,
        linewidth=2.0,
        marker="x",
        markersize=8,
        markeredgewidth=2.4,
        label="the function alone",
    )
    for order, (method, costs) in enumerate(growth.methods.items()):
        ends = ""
        if costs and method in growth.refused:
            last, reason = costs[-1].parameters, growth.refused[method]
            ends = f", up to {number(last, 6)}: {reason}"
            others = [growth.primal, *(c for name, c in growth.methods.items() if name != method)]
            there = [v for c in others for v, cost in zip(values(c), c, strict=True)
                     if cost.parameters == last]  # fmt: skip
            _end_mark(axes, last, values(costs)[-1], look.curves[order % len(look.curves)])
            _end_word(axes, last, values(costs)[-1], there, f"stops at {number(last, 6)}", look)
        axes.plot(
            [cost.parameters for cost in costs],
            values(costs),
            color=look.curves[order % len(look.curves)],
            linestyle=DASHES[order % len(DASHES)],
            linewidth=2.2,
            marker=MARKERS[order % len(MARKERS)],
            markersize=13 if method == "path-sum" else 8,
            markerfacecolor="none" if method == "path-sum" else None,
            markeredgewidth=2.0,
            label=method + (ends if costs else ": refused everywhere"),
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    log_axis(axes, "x")
    if len(sizes) == 1:
        axes.set_xlim(sizes[0] / 2, sizes[0] * 2)
        axes.set_xticks(sizes)
    log_axis(axes, "y")


def _end_mark(axes: Axes, x: float, y: float, colour: str) -> None:
    """An open ring around the end of a curve that others go on beyond."""
    axes.plot(
        [x],
        [y],
        linestyle="",
        marker="o",
        markersize=18,
        markerfacecolor="none",
        markeredgewidth=2.0,
        color=colour,
        label="_end",
        zorder=6,
    )


def _end_word(
    axes: Axes, x: float, y: float, others: Sequence[float], word: str, look: Theme
) -> None:
    """A word at the end of a curve, on the side where the next curve is farther away."""
    up = min((value / y for value in others if value > y), default=inf)
    down = min((y / value for value in others if 0 < value < y), default=inf)
    axes.annotate(
        word,
        (x, y),
        xytext=(0, 16 if up >= down else -16),
        textcoords="offset points",
        ha="center",
        va="bottom" if up >= down else "top",
        fontsize=AXIS_SIZE,
        color=look.ink,
        family=FONT,
        zorder=7,
    )


_SWELLING = {  # the curves, and which count of a `Swell` each shows
    "derivative as a formula (symbolic)": "formula",
    "expression as a formula": "written_out",
    "symbolic, equal parts shared": "shared",
    "reverse mode": "reverse",
    "expression, each value named once": "expression",
}


def draw_swell(
    rows: Sequence[Swell], *, dark: bool = False, title: str = "", family: str = ""
) -> Figure:
    """Draw counts of operations against the depth of nesting, on a logarithmic axis.

    Raises `cgprimer.errors.UsageError` where there is nothing to draw.

    >>> from cgprimer.plots.swell_data import swell
    >>> figure = draw_swell(swell("product", [1, 2, 3]))
    >>> figure.axes[0].get_xlabel(), figure.axes[0].get_yscale()
    ('depth of nesting', 'log')
    """
    if not rows:
        raise UsageError("there are no counts to draw")
    figure, axes, look = framed(
        dark=dark,
        title=title or f"Expression swell{': nested ' if family else ''}{family}",
        x="depth of nesting",
        y="operations",
    )
    ends: list[tuple[float, float]] = []
    for order, (name, what) in enumerate(_SWELLING.items()):
        known = [row for row in rows if getattr(row, what) is not None]
        if not known:
            continue
        depths = [row.depth for row in known]
        counts = [float(getattr(row, what)) for row in known]
        whole = depths[-1] == rows[-1].depth  # else other curves go on to the right of its end
        axes.plot(
            depths,
            counts,
            color=look.curves[order],
            linestyle=DASHES[order % len(DASHES)],
            linewidth=2.4,
            marker=MARKERS[order],
            markersize=9,
            label=name if whole else f"{name}: too large a formula beyond depth {depths[-1]}",
        )
        if whole:
            ends.append((depths[-1], counts[-1]))
        else:
            _end_mark(axes, depths[-1], counts[-1], look.curves[order])
            _end_word(axes, depths[-1], counts[-1], [], f"{counts[-1]:,.0f}", look)
    first, last = rows[0].depth, rows[-1].depth
    axes.set_xlim(first - 0.3, last + 0.06 * (last - first + 1) + 0.3)
    axes.set_yscale("log")
    axes.set_ylim(top=2 * axes.get_ylim()[1])  # room for the number over the highest point
    log_axis(axes, "y")
    linear_axis(axes, "x", most=12, whole=True)
    legend_below(figure, axes, look)
    _end_numbers(figure, axes, ends, look)
    return figure


def _end_numbers(
    figure: Figure, axes: Axes, ends: Sequence[tuple[float, float]], look: Theme
) -> None:
    """The numbers to the right of the last points, moved apart where they would overlap."""
    figure.draw_without_rendering()  # the layout says where the points are
    scale = 72.0 / figure.dpi
    ends = sorted(ends, key=lambda end: end[1])
    levels = [float(axes.transData.transform(end)[1]) * scale for end in ends]
    for end, level, moved in zip(ends, levels, apart(levels, 1.15 * AXIS_SIZE), strict=True):
        axes.annotate(
            f"{end[1]:,.0f}",
            end,
            xytext=(12, moved - level),
            textcoords="offset points",
            ha="left",
            va="center",
            fontsize=AXIS_SIZE,
            color=look.ink,
            family=FONT,
        )


def apart(levels: Sequence[float], least: float) -> list[float]:
    """Ascending levels, moved as little as is needed to be `least` from one another.

    >>> apart([0.0, 4.0, 30.0], 10.0)
    [-3.0, 7.0, 30.0]
    """
    groups: list[list[float]] = []  # levels that touch one another, centred on where they were
    for level in levels:
        groups.append([level])
        while len(groups) > 1 and _top(groups[-2], least) + least > _bottom(groups[-1], least):
            groups[-2:] = [groups[-2] + groups[-1]]
    return [_bottom(group, least) + least * k for group in groups for k in range(len(group))]


def _bottom(group: Sequence[float], least: float) -> float:
    return sum(group) / len(group) - 0.5 * least * (len(group) - 1)


def _top(group: Sequence[float], least: float) -> float:
    return sum(group) / len(group) + 0.5 * least * (len(group) - 1)
