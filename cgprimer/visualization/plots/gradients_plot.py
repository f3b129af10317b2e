"""The norms of adjoints in the layers of a graph: vanishing and exploding gradients.

Source: Hochreiter 1991, "Untersuchungen zu dynamischen neuronalen Netzen"; Bengio, Simard and
Frasconi 1994, "Learning long-term dependencies with gradient descent is difficult".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cgprimer.core.derivatives import compute_derivatives, resolve_output
from cgprimer.core.graph import check_graph
from cgprimer.core.loss_attachment import graph_with_loss
from cgprimer.core.second_derivatives import add_element_output
from cgprimer.errors import UsageError, join_names
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.number_format import format_number
from cgprimer.tapes import tape
from cgprimer.visualization.diagrams.text_layout import measure_text
from cgprimer.visualization.diagrams.theme import AXIS_SIZE, Theme
from cgprimer.visualization.plots import slide

LEAST = 1e-3  # a gradient vanishes if a smaller fraction arrives, and explodes above 1/LEAST
_NAMES_WIDTH = 800.0  # points for the names of the layers below the axis


@dataclass(frozen=True, slots=True)
class Layer:
    """The inner variables at one depth, which is their distance from the output.

    Attributes:
        names: names of the variables.
        sizes: norms of their adjoints; for several samples, the root mean square.
    """

    names: tuple[str, ...]
    sizes: tuple[float, ...]

    @property
    def size(self) -> float:
        """The norm of the adjoints of all variables in the layer."""
        return float(np.linalg.norm(self.sizes))


def gradients(
    graph: ExpressionGraph,
    at: Mapping[str, Any] | None = None,
    *,
    of: str | None = None,
    loss: str | None = None,
    dark: bool = False,
    title: str | None = None,
) -> slide.Figure:
    """Plot the norm of the adjoint of each inner variable against its depth.

    The plot shows whether the gradient vanishes or explodes. The depth of a variable is the length
    of the longest path to the output. The line connects the norms over all variables of a depth.
    The gradient vanishes if less than a thousandth of it arrives at the deepest layer, and explodes
    if more than a thousand times as much arrives; a sentence says which, and the factor per layer.

    Args:
        graph: the graph.
        at: scalars for inputs and parameters, or a saved run for its learned values; other
            names keep their declared values.
        of: variable to differentiate. Default: the only output.
        loss: loss to differentiate instead; `at` then has its targets as well.

    Raises:
        UsageError: an unknown name, or fewer than two layers.
        MissingValueError: a value is missing.

    >>> import cgprimer
    >>> chain = cgprimer.networks.chain(20, activation="sigmoid")
    >>> gradients(chain).axes[0].texts[0].get_text()
    'shrinks by a factor of 0.067 per layer, to 4.6e-23 of its norm: vanishes'
    """
    check_graph(graph)
    if loss is not None:
        graph, of = graph_with_loss(graph, loss, at), None
    graph, of = add_element_output(graph, of)
    target = resolve_output(graph, of)
    layers = adjoint_sizes(graph, at, target)
    default_title = f"Adjoints by layer, for output {target}"
    figure, axes, look = slide.create_plot(
        dark, title, default_title, x=f"depth: distance from {target}", y="norm of the adjoint"
    )
    _draw_norms(axes, layers, look)
    slide.use_log_axis(axes, "y")
    slide.use_linear_axis(axes, "x", max_ticks=12, integers=True)
    names = [join_names(layer.names, 1) for layer in layers]
    if len(names) * (10 + max(measure_text(name, AXIS_SIZE) for name in names)) < _NAMES_WIDTH:
        axes.set_xticks(range(len(names)), [f"{k}\n{name}" for k, name in enumerate(names)])
    if len(axes.lines) > 1:
        slide.draw_legend_below(figure, axes, look)
    return figure


def _draw_norms(axes: slide.Axes, layers: tuple[Layer, ...], look: Theme) -> None:
    """Plot the norms of adjoints against depth, with a sentence on how the norms change."""
    sizes = np.array([layer.size for layer in layers])
    points = [(k, s) for k, layer in enumerate(layers) for s in layer.sizes if 0 < s < np.inf]
    style = slide.choose_curve_style(0, look)
    shown = np.where((sizes > 0) & np.isfinite(sizes), sizes, np.nan)
    if any(len(layer.names) > 1 for layer in layers):
        axes.plot(*zip(*points, strict=True), linestyle="", marker="^", markersize=8, alpha=0.7,
                  color=look.curves[1], label="each variable")  # fmt: skip
    axes.plot(shown, **style, linewidth=2.4, markersize=9, label="all variables of a depth")
    axes.set_yscale("log")
    low, high = np.nanmin([s for _, s in points]), np.nanmax([s for _, s in points])
    margin = max(3.0, (high / low) ** 0.12)
    axes.set_ylim(low / margin, high * margin * margin)  # with room for the sentence
    axes.set_xlim(-0.5, len(layers) - 0.5)
    axes.text(0.5, 0.97, describe_change(layers), transform=axes.transAxes, ha="center", va="top",
              **slide.text_style(look) | {"weight": "bold"})  # fmt: skip


def adjoint_sizes(
    graph: ExpressionGraph, at: Mapping[str, Any] | None, target: str
) -> tuple[Layer, ...]:
    """Compute the norms of the adjoints in each layer, starting at the target.

    >>> from cgprimer.core.graph import parse
    >>> graph = parse("xb = 3*xa; xc = 3*xb; xd = 3*xc; output xd")
    >>> [layer.size for layer in adjoint_sizes(graph, {"xa": 1}, "xd")]
    [1.0, 3.0, 9.0]
    """
    depths = {target: 0}
    for name in sorted(graph.definitions, key=tape(graph).index, reverse=True):
        for operand in graph.depends_on.get(name, ()) if name in depths else ():
            if operand in graph.definitions:
                depths[operand] = max(depths.get(operand, 0), depths[name] + 1)
    if len({*depths.values()}) < 2:
        hint = "name inner variables: xh = tanh(a*xa); xw = b*xh"
        raise UsageError(f"the graph has no variable between the inputs and {target}", hint=hint)
    derivatives = compute_derivatives(graph, at, target, [*depths]).derivatives
    samples = len(graph.samples(graph.point(at, needed=())))
    layers: list[list[tuple[str, float]]] = [[] for _ in range(1 + max(depths.values()))]
    for name, depth in depths.items():
        squares = np.asarray(derivatives[target, name], float) ** 2
        norms = squares.sum(axis=tuple(range(samples, squares.ndim)))
        layers[depth].append((name, float(np.sqrt(norms.mean()))))
    return tuple(Layer(*map(tuple, zip(*layer, strict=True))) for layer in layers)


def describe_change(layers: tuple[Layer, ...]) -> str:
    """Describe in one sentence how the adjoint changes from the output to the deepest layer."""
    sizes = [layer.size for layer in layers]
    for depth, size in enumerate(sizes):
        if not 0 < size < np.inf:
            where = f"from depth {depth} on ({join_names(layers[depth].names, 2)})"
            return f"the adjoint is {'0' if size == 0 else 'not finite'} {where}"
    ratio = sizes[-1] / sizes[0]
    factor, fraction = ratio ** (1 / (len(sizes) - 1)), format_number(ratio, 2)
    change = "grows" if factor > 1 else "shrinks"
    what = f"{change} by a factor of {format_number(factor, 2)} per layer"
    if LEAST <= ratio <= 1 / LEAST:
        return f"{what}, to {fraction} of its norm: neither vanishes nor explodes"
    return f"{what}, to {fraction} of its norm: {'explodes' if ratio > 1 else 'vanishes'}"
