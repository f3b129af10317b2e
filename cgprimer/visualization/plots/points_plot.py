"""A value and its derivatives at many points, as curves with a marker at each point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cgprimer.core.derivatives import compute_derivatives, resolve_output
from cgprimer.core.loss_attachment import graph_with_loss
from cgprimer.core.methods.derivative_program import Names
from cgprimer.errors import UsageError, join_names
from cgprimer.expressions import ExpressionGraph, parse_element
from cgprimer.support.number_format import format_number
from cgprimer.visualization.plots import slide


def points(
    graph: ExpressionGraph,
    at: Mapping[str, Any] | None = None,
    *,
    of: str | None = None,
    wrt: Names = (),
    loss: str | None = None,
    method: str = "reverse",
    dark: bool = False,
    title: str | None = None,
) -> slide.Figure:
    """Plot a value and its derivatives over a range of points.

    The first name with several values is the horizontal axis; other names vary with it.

    Args:
        graph: the graph.
        at: one or several values for each input and parameter, such as 0:6.283:25 for 25 values
            from 0 to 6.283; other names keep their declared values.
        of: variable to differentiate. Default: the only output.
        wrt: names to differentiate with respect to. Default: the names that vary.
        loss: loss to draw instead; `at` then has its targets as well.
        method: method of differentiation.
        title: title above the plot. Default: the formula.

    Raises:
        UsageError: an unknown name, no name varies, or the value or a derivative is an array.
        MissingValueError: a value is missing.

    >>> import cgprimer, numpy as np
    >>> turn = np.linspace(0, 2*np.pi, 25)
    >>> figure = points(cgprimer.parse("y = sin(3*w + b); output y"), {"w": turn, "b": turn})
    >>> [[round(float(y), 3) for y in line.get_ydata()[:3]] for line in figure.axes[0].lines]
    [[0.0, 0.866, 0.866], [3.0, 1.5, -1.5], [1.0, 0.5, -0.5]]
    """
    graph = graph_with_loss(graph, loss, at)
    target = resolve_output(graph, of)
    varied = _require_varied_names(graph, at)
    x = np.asarray((at or {})[varied[0]], float)
    result = compute_derivatives(graph, at, target, wrt or varied, method=method)
    curves = {target: result.values[target]}
    curves |= {f"d {target} / d {name}": value for (_, name), value in result.derivatives.items()}
    axis = _format_axis_label(varied, at or {})
    text = graph.expression(target) if target in graph.definitions else target
    figure, axes, look = slide.create_plot(dark, title, f"{target} = {text}", x=axis, y="")
    for order, (name, values) in enumerate(curves.items()):
        shown = np.asarray(values, float)
        if shown.ndim and shown.shape != x.shape:
            hint = "choose an element, such as W[0,0]"
            raise UsageError(f"{name} must be a scalar at each point", hint=hint)
        shown = np.broadcast_to(shown, x.shape)
        visible = np.where(np.isfinite(shown), shown, np.nan)
        style = {"label": slide.format_label(name), **slide.choose_curve_style(order, look)}
        axes.plot(x, visible, linewidth=2.0, markersize=8, **style)
    for which in "xy":
        slide.use_linear_axis(axes, which)
    slide.draw_legend_below(figure, axes, look)
    return figure


def _format_axis_label(varied: list[str], at: Mapping[str, Any]) -> str:
    """Format the label of the horizontal axis: the first varied name, followed by the others."""
    x = np.asarray(at[varied[0]], float)
    equal = [name for name in varied[1:] if np.array_equal(at[name], x)]
    ranges = [
        f"{name} from {format_number(value[0])} to {format_number(value[-1])}"
        for name in varied[1:]
        if name not in equal and len(value := np.ravel(at[name]))
    ]
    return " = ".join([varied[0], *equal]) + (f"   (with {join_names(ranges)})" if ranges else "")


def _require_varied_names(graph: ExpressionGraph, at: Mapping[str, Any] | None) -> list[str]:
    """Return the names that have several values; raise UsageError if no name has."""
    varied = find_varied_names(graph, at)
    if not varied:
        first = next((n for n in graph.inputs if n not in graph.shapes), "NAME")
        hint = f"vary a name: --at {first}=0:1:25"
        raise UsageError("`at` must have several values for at least one name", hint=hint)
    return varied


def find_varied_names(graph: ExpressionGraph, at: Mapping[str, Any] | None) -> list[str]:
    """Return the names of the scalars that have several values in `at`."""
    free = {*graph.inputs, *graph.parameters}
    rows = [name for name, value in (at or {}).items() if np.ndim(value) == 1]
    elements = [(name, *parse_element(name)) for name in rows]
    return [
        name
        for name, array, index in elements
        if array in free and len(index) == len(graph.shapes.get(array, ()))
    ]
