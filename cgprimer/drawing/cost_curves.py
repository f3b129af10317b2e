"""Costs as curves: a gradient against the number of parameters, a formula against its depth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cgprimer.drawing.frame import (
    MARKERS,
    dress,
    framed,
    headline,
    legend_below,
    log_axis,
    new_figure,
)
from cgprimer.drawing.theme import AXIS_SIZE, DASHES, FONT, Theme, theme
from cgprimer.errors import UsageError
from cgprimer.teaching.costs import BOUND, Cost, CostGrowth
from cgprimer.teaching.swell import Swell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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

    >>> from cgprimer.teaching.costs import cost_growth
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

    sizes = [cost.parameters for cost in growth.primal]
    own = values(growth.primal)
    axes.fill_between(
        sizes,
        own,
        [bound * value for value in own],
        color=look.edge,
        alpha=0.16,
        linewidth=0,
        label=f"up to {bound:g} times the function: cheap gradient",
    )
    axes.plot(sizes, own, color=look.ink, linewidth=2.0, label="the function alone")
    for number, (method, costs) in enumerate(growth.methods.items()):
        ends = ""
        if costs and method in growth.refused:
            ends = f", up to {costs[-1].parameters}: {growth.refused[method]}"
            _end_mark(axes, costs[-1].parameters, values(costs)[-1], look)
        axes.plot(
            [cost.parameters for cost in costs],
            values(costs),
            color=look.curves[number % len(look.curves)],
            linestyle=DASHES[number % len(DASHES)],
            linewidth=2.2,
            marker=MARKERS[number % len(MARKERS)],
            markersize=10 if method == "path-sum" else 8,
            markerfacecolor="none" if method == "path-sum" else None,
            markeredgewidth=2.0,
            label=method + (ends if costs else ": refused everywhere"),
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    log_axis(axes, "x")
    log_axis(axes, "y")


def _end_mark(axes: Axes, x: float, y: float, look: Theme) -> None:
    """A bar across the end of a curve that others go on beyond."""
    axes.plot(
        [x],
        [y],
        linestyle="",
        marker="|",
        markersize=34,
        markeredgewidth=3.0,
        color=look.ink,
        label="_end",
        zorder=6,
    )


def draw_swell(
    rows: Sequence[Swell], *, dark: bool = False, title: str = "", family: str = ""
) -> Figure:
    """Draw counts of operations against the depth of nesting, on a logarithmic axis.

    Raises `cgprimer.errors.UsageError` where there is nothing to draw.

    >>> from cgprimer.teaching.swell import swell
    >>> figure = draw_swell(swell("product", [1, 2, 3]))
    >>> figure.axes[0].get_xlabel(), figure.axes[0].get_yscale()
    ('depth of nesting', 'log')
    """
    from matplotlib.ticker import MaxNLocator

    if not rows:
        raise UsageError("there are no counts to draw")
    figure, axes, look = framed(
        dark=dark,
        title=title or f"Expression swell{': nested ' if family else ''}{family}",
        x="depth of nesting",
        y="operations",
    )
    formula = [row for row in rows if row.formula is not None]
    shared = [row for row in rows if row.shared is not None]
    curves: tuple[tuple[str, list[int], list[float]], ...] = (
        (
            "derivative as a formula (symbolic)",
            [row.depth for row in formula],
            [float(row.formula or 0) for row in formula],
        ),
        (
            "expression as a formula",
            [row.depth for row in rows],
            [float(row.written_out) for row in rows],
        ),
        (
            "symbolic, equal parts shared",
            [row.depth for row in shared],
            [float(row.shared or 0) for row in shared],
        ),
        (
            "reverse mode",
            [row.depth for row in rows],
            [float(row.reverse) for row in rows],
        ),
        (
            "expression, each value named once",
            [row.depth for row in rows],
            [float(row.expression) for row in rows],
        ),
    )
    for number, (name, depths, counts) in enumerate(curves):
        if not depths:
            continue
        whole = depths[-1] == rows[-1].depth  # else other curves go on to the right of its end
        axes.plot(
            depths,
            counts,
            color=look.curves[number],
            linestyle=DASHES[number % len(DASHES)],
            linewidth=2.4,
            marker=MARKERS[number],
            markersize=9,
            label=name if whole else f"{name}: too large beyond depth {depths[-1]}",
        )
        if not whole:
            _end_mark(axes, depths[-1], counts[-1], look)
        axes.annotate(
            f"{counts[-1]:,.0f}",
            (depths[-1], counts[-1]),
            xytext=(12, 0) if whole else (-4, 12),
            textcoords="offset points",
            ha="left" if whole else "right",
            va="center" if whole else "bottom",
            fontsize=AXIS_SIZE,
            color=look.ink,
            family=FONT,
        )
    axes.set_xlim(rows[0].depth - 0.3, rows[-1].depth + 0.06 * len(rows) + 0.3)
    axes.set_yscale("log")
    axes.set_ylim(top=2 * axes.get_ylim()[1])  # room for the number over the highest point
    log_axis(axes, "y")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=12, integer=True))
    legend_below(figure, axes, look)
    return figure
