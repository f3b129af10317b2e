"""A fit: the data, the fitted curve with its confidence band, and the residuals."""

from __future__ import annotations

from typing import Any

import numpy as np

from cgprimer.errors import UsageError, join_names
from cgprimer.support.number_format import format_number
from cgprimer.training.fitting.fit_result import Fit
from cgprimer.visualization.diagrams.theme import Theme
from cgprimer.visualization.plots import slide

Array = Any
_CURVE_POINTS = 400
_EXTENSION = 0.03  # of the range of the data, by which the curve is longer at both ends
_MAX_LABEL_LENGTH = 20  # characters that fit next to the upper axes
_MAX_VECTORS = 10_000  # with more data, markers are pixels in SVG and PDF: 79 megabytes otherwise
_MANY = 200  # with more data, markers are small


def fit(
    found: Fit, *, level: float = 0.95, dark: bool = False, title: str | None = None
) -> slide.Figure:
    """Draw the result of :func:`cgprimer.fit` with the residuals below it.

    With one input and one output, the data, the fitted curve and its confidence band are drawn;
    otherwise measured values over computed values. A pattern in the residuals indicates a wrong
    model.

    Args:
        found: the fit.
        level: confidence level of the band.

    Raises:
        UsageError: an object of another type, or a level outside of 0 to 1.

    >>> import cgprimer
    >>> graph = cgprimer.parse("y = a + b*x")
    >>> data = cgprimer.make_dataset(graph, truth={"a": 1, "b": 2}, samples=20, noise=0.1)
    >>> figure = fit(cgprimer.fit(graph, data))
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['y', 'residual']
    """
    if not isinstance(found, Fit):
        hint = "pass the result of cgprimer.fit(...)"
        raise UsageError(f"`found` must be a Fit, got {type(found).__name__}", hint=hint)
    graph, problem = found.graph, found.problem
    sizes = [problem.columns[name][0].size for name in graph.inputs]
    is_curve = sum(sizes) == 1 and problem.sizes == (1,)
    default_title = f"Fit of {join_names(graph.outputs)}"
    default_title += "" if found.converged else ", not converged"
    figure, look = slide.create_figure(dark, title, default_title)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    if is_curve:
        positions = [_draw_curve(top, found, level, look)]
        name = graph.outputs[0]
        label = name if len(name) <= _MAX_LABEL_LENGTH else f"{name[: _MAX_LABEL_LENGTH - 1]}…"
        slide.style_axes(top, look, y=label)
        slide.style_axes(bottom, look, x=graph.inputs[0], y="residual")
    else:
        positions = _draw_measured_against_computed(top, found, look)
        slide.style_axes(top, look, y="measured")
        slide.style_axes(bottom, look, x="computed", y="residual")
    _draw_residuals(bottom, found, positions, look)
    top.tick_params(axis="x", labelbottom=False)
    slide.use_linear_axis(top, "y", max_ticks=7)
    slide.use_linear_axis(bottom, "y", max_ticks=3)
    slide.use_linear_axis(bottom, "x")
    figure.align_ylabels()
    slide.draw_legend_below(figure, top, look)
    return figure


def _draw_residuals(axes: slide.Axes, result: Fit, positions: list[Array], look: Theme) -> None:
    """Draw the residuals of each output at the given horizontal positions."""
    problem = result.problem
    axes.axhline(0.0, color=look.ink, linewidth=1.6)
    computed = problem.compute_outputs(result.end.values, problem.columns, problem.samples)[0]
    residuals = problem.target - computed
    begin = 0
    for order, position in enumerate(positions):
        part = residuals[begin : begin + position.size]
        axes.plot(position, part, **_choose_marker_style(order, part.size, look))
        begin += position.size
    limit = float(np.abs(residuals).max(initial=0.0)) * 1.2
    if limit:
        axes.set_ylim(-limit, limit)


def _draw_curve(axes: slide.Axes, result: Fit, level: float, look: Theme) -> Array:
    """Draw the data and the fitted curve with its confidence band; return the input values."""
    from matplotlib.colors import to_rgba

    name, output = result.graph.inputs[0], result.graph.outputs[0]
    shape = result.problem.columns[name].shape[1:]
    inputs = result.problem.columns[name].ravel()
    low, high = float(inputs.min()), float(inputs.max())
    margin = _EXTENSION * (high - low) or 1.0
    x = np.linspace(low - margin, high + margin, _CURVE_POINTS)
    chosen = np.linspace(0, inputs.size - 1, min(inputs.size, _CURVE_POINTS)).astype(int)
    x = np.unique(np.concatenate([x, np.sort(inputs)[chosen]]))
    inside = (x >= low) & (x <= high)  # outside, the graph may be undefined
    band = result.band({name: x.reshape(-1, *shape)}, level=level)
    value, least, most = (part.reshape(-1) for part in (band.value, band.low, band.high))
    if not np.isfinite(value).all():
        x, value, least, most = (part[inside] for part in (x, value, least, most))
    zorder = 4 if inputs.size <= _MANY else 0.9  # many points would hide the curve and its band
    style = _choose_marker_style(0, inputs.size, look)
    axes.plot(inputs, result.problem.target, **style, label="data", zorder=zorder)
    curve = slide.choose_curve_style(1, look) | {"marker": "", "linestyle": "-"}
    axes.plot(x, value, **curve, linewidth=2.6, label=f"fitted {output}", zorder=3)
    measured = [result.problem.target.min(), result.problem.target.max(), value.min(), value.max()]
    if np.isfinite([least, most]).all():
        band_style = {"facecolor": to_rgba(curve["color"], 0.25), "edgecolor": curve["color"]}
        label = f"{format_number(100 * level, 3)} % confidence band"
        axes.fill_between(x, least, most, **band_style, linestyle="--", label=label)
    span = max(measured) - min(measured) or 1.0  # a very wide band is cut off
    axes.set_ylim(
        max(axes.get_ylim()[0], min(measured) - span), min(axes.get_ylim()[1], max(measured) + span)
    )
    return inputs


def _draw_measured_against_computed(axes: slide.Axes, result: Fit, look: Theme) -> list[Array]:
    """Plot measured against computed values; return the computed values for each output."""
    problem = result.problem
    computed = problem.compute_outputs(result.end.values, problem.columns, problem.samples)[0]
    both = np.concatenate([computed, problem.target])
    ends = [float(both.min()), float(both.max())]
    axes.plot(ends, ends, color=look.ink, linewidth=1.6, label="measured = computed")
    positions, begin = [], 0
    for order, (name, size) in enumerate(zip(result.graph.outputs, problem.sizes, strict=True)):
        end = begin + size * problem.samples
        style = _choose_marker_style(order, end - begin, look) | {"label": slide.format_label(name)}
        axes.plot(computed[begin:end], problem.target[begin:end], **style)
        positions.append(computed[begin:end])
        begin = end
    return positions


def _choose_marker_style(order: int, count: int, look: Theme) -> dict[str, Any]:
    """Choose the marker style for an output with `count` data points."""
    style = slide.choose_curve_style(order, look) | {"linestyle": ""}
    return style | {"markersize": 8 if count <= _MANY else 3, "rasterized": count > _MAX_VECTORS}
