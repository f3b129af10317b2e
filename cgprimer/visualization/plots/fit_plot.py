"""A fit: the data, the curve with its band, and below them the residuals."""

from __future__ import annotations

from typing import Any

import numpy as np

from cgprimer.errors import UsageError, join_names
from cgprimer.support.number_format import format_number
from cgprimer.training.fitting.fit_result import Fit
from cgprimer.visualization.diagrams.theme import Theme
from cgprimer.visualization.plots import slide

Array = Any
_POINTS = 400  # of a curve
_BEYOND = 0.03  # share of the data's range that a curve goes on at both ends
_LONGEST = 20  # letters that fit beside the upper picture
_VECTORS = 10_000  # data beyond which they are pixels in SVG and PDF, too: 79 megabytes otherwise
_MANY = 200  # data, from which on their marks are small


def fit(
    found: Fit, *, level: float = 0.95, dark: bool = False, title: str | None = None
) -> slide.Figure:
    """What :func:`cgprimer.fit` has found, and below it what it leaves of the data.

    With one input and one output it is the curve through the data, and the band in which it lies;
    with several what the graph says against what was measured. Residuals that show a pattern tell
    that the model is not the right one.

    Args:
        found: the fit.
        level: of the band.

    Raises:
        UsageError: what is given is no fit, or the level is none.

    >>> import cgprimer
    >>> graph = cgprimer.parse("y = a + b*x")
    >>> data = cgprimer.make_dataset(graph, truth={"a": 1, "b": 2}, samples=20, noise=0.1)
    >>> figure = fit(cgprimer.fit(graph, data))
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['y', 'residual']
    """
    if not isinstance(found, Fit):
        raise UsageError(f"expected a Fit, not {type(found).__name__}", hint="cgprimer.fit(...)")
    graph, problem = found.graph, found.problem
    numbers = sum(problem.columns[name][0].size for name in graph.inputs)
    one = numbers == 1 and problem.sizes == (1,)
    usual = f"Fit of {join_names(graph.outputs)}" + ("" if found.converged else ", not converged")
    figure, look = slide.new_figure(dark, title, usual)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    if one:
        places = [_curve(above, found, level, look)]
        name = graph.outputs[0]
        slide.dress(above, look, y=name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…")
        slide.dress(below, look, x=graph.inputs[0], y="residual")
    else:
        places = _against(above, found, look)
        slide.dress(above, look, y="measured")
        slide.dress(below, look, x="computed", y="residual")
    below.axhline(0.0, color=look.ink, linewidth=1.6)
    residuals = (
        problem.target - problem.outputs(found.end.values, problem.columns, problem.samples)[0]
    )
    begin = 0
    for order, place in enumerate(places):
        part = residuals[begin : begin + place.size]
        below.plot(place, part, **_marks(order, part.size, look))
        begin += place.size
    widest = float(np.abs(residuals).max(initial=0.0)) * 1.2
    if widest:
        below.set_ylim(-widest, widest)
    above.tick_params(axis="x", labelbottom=False)
    slide.linear_axis(above, "y", most=7)
    slide.linear_axis(below, "y", most=3)
    slide.linear_axis(below, "x")
    figure.align_ylabels()
    slide.legend_below(figure, above, look)
    return figure


def _curve(axes: slide.Axes, found: Fit, level: float, look: Theme) -> Array:
    """The curve with its band, and the data; returns where the data lie."""
    from matplotlib.colors import to_rgba

    name, output = found.graph.inputs[0], found.graph.outputs[0]
    shape = found.problem.columns[name].shape[1:]
    place = found.problem.columns[name].ravel()
    low, high = float(place.min()), float(place.max())
    room = _BEYOND * (high - low) or 1.0
    along = np.linspace(low - room, high + room, _POINTS)
    some = np.linspace(0, place.size - 1, min(place.size, _POINTS)).astype(int)
    along = np.unique(np.concatenate([along, np.sort(place)[some]]))
    inside = (along >= low) & (along <= high)  # beyond, a graph may have no value
    band = found.band({name: along.reshape(-1, *shape)}, level=level)
    value, least, most = (part.reshape(-1) for part in (band.value, band.low, band.high))
    if not np.isfinite(value).all():
        along, value, least, most = (part[inside] for part in (along, value, least, most))
    share = f"{format_number(100 * level, 3)} % band"
    above = 4 if place.size <= _MANY else 0.9  # many points would hide the curve and its band
    marks = _marks(0, place.size, look)
    axes.plot(place, found.problem.target, **marks, label="data", zorder=above)
    curve = slide.curve_style(1, look) | {"marker": "", "linestyle": "-"}
    axes.plot(along, value, **curve, linewidth=2.6, label=f"fitted {output}", zorder=3)
    measured = [found.problem.target.min(), found.problem.target.max(), value.min(), value.max()]
    if np.isfinite([least, most]).all():
        look_of_band = {"facecolor": to_rgba(curve["color"], 0.25), "edgecolor": curve["color"]}
        axes.fill_between(along, least, most, **look_of_band, linestyle="--", label=share)
    span = max(measured) - min(measured) or 1.0  # a band that leaves everything open goes beyond
    axes.set_ylim(
        max(axes.get_ylim()[0], min(measured) - span), min(axes.get_ylim()[1], max(measured) + span)
    )
    return place


def _against(axes: slide.Axes, found: Fit, look: Theme) -> list[Array]:
    """What was measured over what the graph computes; returns the latter, output by output."""
    problem = found.problem
    computed = problem.outputs(found.end.values, problem.columns, problem.samples)[0]
    both = np.concatenate([computed, problem.target])
    ends = [float(both.min()), float(both.max())]
    axes.plot(ends, ends, color=look.ink, linewidth=1.6, label="measured = computed")
    places, begin = [], 0
    for order, (name, size) in enumerate(zip(found.graph.outputs, problem.sizes, strict=True)):
        end = begin + size * problem.samples
        axes.plot(computed[begin:end], problem.target[begin:end],
                  **_marks(order, end - begin, look), label=slide.plain(name))  # fmt: skip
        places.append(computed[begin:end])
        begin = end
    return places


def _marks(order: int, count: int, look: Theme) -> dict[str, Any]:
    style = slide.curve_style(order, look) | {"linestyle": ""}
    return style | {"markersize": 8 if count <= _MANY else 3, "rasterized": count > _VECTORS}
