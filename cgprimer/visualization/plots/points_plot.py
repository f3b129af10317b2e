"""A value and its derivatives at many points: curves with a marker at each of them."""

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
    """A value and its derivatives over the points of a range.

    The first name with several values is the horizontal axis; others go along with it.

    Args:
        graph: the graph.
        at: a number for each input and parameter, or several, such as 0:6.283:25 for 25 from 0
            to 6.283; declared values fill the rest.
        of: the variable to differentiate; the only output unless given.
        wrt: with respect to which names; those that vary unless given.
        loss: a loss of which it is shown instead; the point then has its targets, too.
        method: how to differentiate.
        title: above the picture; the formula unless given.

    Raises:
        UsageError: an unknown name, nothing varies, or what is drawn has more than one number.
        MissingValueError: a value is missing.

    Command line:
        cgprimer plot points sine_chain --at w=0:6.283:25,b=0:6.283:25 -o chain.png
        cgprimer plot points lecture --at xa=-1:1:21 --wrt ab,cd -o lecture.svg --dark

    >>> import cgprimer, numpy as np
    >>> turn = np.linspace(0, 2*np.pi, 25)
    >>> figure = points(cgprimer.parse("y = sin(3*w + b); output y"), {"w": turn, "b": turn})
    >>> [[round(float(y), 3) for y in line.get_ydata()[:3]] for line in figure.axes[0].lines]
    [[0.0, 0.866, 0.866], [3.0, 1.5, -1.5], [1.0, 0.5, -0.5]]
    """
    graph = graph_with_loss(graph, loss, at)
    target = resolve_output(graph, of)
    varied = varied_names(graph, at)
    if not varied:
        first = next((n for n in graph.inputs if n not in graph.shapes), "NAME")
        hint = f"--at {first}=0:1:25"
        raise UsageError("nothing varies: every value is one number", hint=hint)
    along = np.asarray((at or {})[varied[0]], float)
    found = compute_derivatives(graph, at, target, wrt or varied, method=method)
    curves = {target: found.values[target]}
    curves |= {f"d {target} / d {name}": value for (_, name), value in found.derivatives.items()}
    alike = [n for n in varied[1:] if np.array_equal((at or {})[n], along)]
    ends = [
        f"{name} from {format_number(value[0])} to {format_number(value[-1])}"
        for name in varied[1:]
        if name not in alike and len(value := np.ravel((at or {})[name]))
    ]
    axis = " = ".join([varied[0], *alike]) + (f"   (with {join_names(ends)})" if ends else "")
    text = graph.expression(target) if target in graph.definitions else target
    figure, axes, look = slide.framed(dark, title, f"{target} = {text}", x=axis, y="")
    for order, (name, values) in enumerate(curves.items()):
        shown = np.asarray(values, float)
        if shown.ndim and shown.shape != along.shape:
            raise UsageError(f"{name} is an array at each point", hint="choose an element: W[0,0]")
        shown = np.broadcast_to(shown, along.shape)
        axes.plot(along, np.where(np.isfinite(shown), shown, np.nan), linewidth=2.0, markersize=8,
                  label=slide.plain(name), **slide.curve_style(order, look))  # fmt: skip
    for which in "xy":
        slide.linear_axis(axes, which)
    slide.legend_below(figure, axes, look)
    return figure


def varied_names(graph: ExpressionGraph, at: Mapping[str, Any] | None) -> list[str]:
    """The names of numbers that a point has several values of, in one row."""
    free = {*graph.inputs, *graph.parameters}
    several = [name for name, value in (at or {}).items() if np.ndim(value) == 1]
    places = [(name, *parse_element(name)) for name in several]  # of W[0,1] a number
    return [n for n, own, at in places if own in free and len(at) == len(graph.shapes.get(own, ()))]
