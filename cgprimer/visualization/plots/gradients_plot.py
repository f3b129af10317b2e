"""How large the adjoints are on their way back, layer by layer: vanishing and exploding gradients.

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
from cgprimer.visualization.diagrams.text_layout import text_width
from cgprimer.visualization.diagrams.theme import AXIS_SIZE
from cgprimer.visualization.plots import slide

LEAST = 1e-3  # of the gradient at the output that arrives: less has vanished, 1/LEAST has exploded
_ROOM = 800.0  # points for the names of the layers below the axis


@dataclass(frozen=True, slots=True)
class Layer:
    """The inner variables that are equally far from the output.

    Attributes:
        names: of these variables.
        sizes: the norm of each one's adjoint; of several samples the root of the mean square.
    """

    names: tuple[str, ...]
    sizes: tuple[float, ...]

    @property
    def size(self) -> float:
        """The norm of all their adjoints together."""
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
    """The size of each inner variable's adjoint, by its depth: does the gradient vanish or explode?

    The depth is the number of steps to the output, the longest way. The line joins the norms over
    all variables of one depth. What arrives at the deepest layer has vanished if it is less than a
    thousandth of what there is at the output, and exploded if it is more than a thousand times as
    much; the sentence in the picture says which, and the factor per layer.

    Args:
        graph: the graph.
        at: a number for each input and parameter, the file of a run for what it has learnt;
            declared values fill the rest.
        of: the variable to differentiate; the only output unless given.
        loss: a loss to differentiate instead; the point then has its targets, too.

    Raises:
        UsageError: an unknown name, or fewer than two layers.
        MissingValueError: a value is missing.

    Command line:
        cgprimer plot gradients mazur -o gradients.png
        cgprimer plot gradients mlp --loss "sum((out - target)^2)" --at "target=[1,0]" -o mlp.svg

    >>> import cgprimer
    >>> chain = cgprimer.networks.chain(20, activation="sigmoid")
    >>> gradients(chain).axes[0].texts[0].get_text()
    'shrinks by a factor of 0.067 per layer, 4.6e-23 of it arrives: vanishes'
    """
    check_graph(graph)
    if loss is not None:
        graph, of = graph_with_loss(graph, loss, at), None
    graph, of = add_element_output(graph, of)
    target = resolve_output(graph, of)
    layers = adjoint_sizes(graph, at, target)
    sizes = np.array([layer.size for layer in layers])
    usual = f"Adjoints of {target}, layer by layer"
    figure, axes, look = slide.framed(
        dark, title, usual, x=f"depth: steps from {target}", y="size of the adjoint"
    )
    points = [(k, s) for k, layer in enumerate(layers) for s in layer.sizes if 0 < s < np.inf]
    style = slide.curve_style(0, look)
    shown = np.where((sizes > 0) & np.isfinite(sizes), sizes, np.nan)
    if any(len(layer.names) > 1 for layer in layers):
        axes.plot(*zip(*points, strict=True), linestyle="", marker="^", markersize=8, alpha=0.7,
                  color=look.curves[1], label="each variable")  # fmt: skip
    axes.plot(shown, **style, linewidth=2.4, markersize=9, label="all of a depth (norm)")
    axes.set_yscale("log")
    low, high = np.nanmin([s for _, s in points]), np.nanmax([s for _, s in points])
    room = max(3.0, (high / low) ** 0.12)
    axes.set_ylim(low / room, high * room * room)  # above, for the sentence
    axes.set_xlim(-0.5, len(layers) - 0.5)
    axes.text(0.5, 0.97, sentence(layers), transform=axes.transAxes, ha="center", va="top",
              **slide.text_style(look) | {"weight": "bold"})  # fmt: skip
    slide.log_axis(axes, "y")
    slide.linear_axis(axes, "x", most=12, whole=True)
    names = [join_names(layer.names, 1) for layer in layers]
    if len(names) * (10 + max(text_width(name, AXIS_SIZE) for name in names)) < _ROOM:
        axes.set_xticks(range(len(names)), [f"{k}\n{name}" for k, name in enumerate(names)])
    if len(axes.lines) > 1:
        slide.legend_below(figure, axes, look)
    return figure


def adjoint_sizes(
    graph: ExpressionGraph, at: Mapping[str, Any] | None, target: str
) -> tuple[Layer, ...]:
    """What :func:`gradients` draws: the layers from the target on.

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
        hint = "inner variables have names of their own: xh = tanh(a*xa); xw = b*xh"
        raise UsageError(f"there is nothing between the inputs and {target}", hint=hint)
    found = compute_derivatives(graph, at, target, [*depths]).derivatives
    samples = len(graph.samples(graph.point(at, needed=())))
    layers: list[list[tuple[str, float]]] = [[] for _ in range(1 + max(depths.values()))]
    for name, depth in depths.items():
        squares = np.asarray(found[target, name], float) ** 2
        each = squares.sum(axis=tuple(range(samples, squares.ndim)))
        layers[depth].append((name, float(np.sqrt(each.mean()))))
    return tuple(Layer(*map(tuple, zip(*layer, strict=True))) for layer in layers)


def sentence(layers: tuple[Layer, ...]) -> str:
    """What happens to the adjoint on its way, in words."""
    sizes = [layer.size for layer in layers]
    for depth, size in enumerate(sizes):
        if not 0 < size < np.inf:
            where = f"from depth {depth} on ({join_names(layers[depth].names, 2)})"
            return f"nothing arrives {where}" if size == 0 else f"not finite {where}"
    left = sizes[-1] / sizes[0]
    factor, left_over = left ** (1 / (len(sizes) - 1)), format_number(left, 2)
    change = "grows" if factor > 1 else "shrinks"
    what = f"{change} by a factor of {format_number(factor, 2)} per layer"
    if LEAST <= left <= 1 / LEAST:
        return f"{what}, {left_over} of it arrives: neither vanishes nor explodes"
    return f"{what}, {left_over} of it arrives: {'explodes' if left > 1 else 'vanishes'}"
