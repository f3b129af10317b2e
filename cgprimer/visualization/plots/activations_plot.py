"""Distributions of activations in a deep network, with and without batch normalization.

Source: Glorot and Bengio 2010, "Understanding the difficulty of training deep feedforward neural
networks"; Ioffe and Szegedy 2015, "Batch normalization".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cgprimer.errors import NonFiniteError, UsageError, pluralize
from cgprimer.expressions import ExpressionGraph, parse
from cgprimer.networks import mlp
from cgprimer.support.number_format import format_number
from cgprimer.support.validation import check_integer, check_real_number
from cgprimer.training.data import Dataset
from cgprimer.training.loop import train
from cgprimer.visualization.diagrams.theme import Theme, mix
from cgprimer.visualization.plots import slide

Array = Any
_INPUTS = 8
_SAMPLES = 400
_BATCH = 50
_BINS = 61
_HALF_WIDTH = 0.42  # of a distribution, over the distance between layers
_OUTSIDE = 0.002  # fraction of all activations outside of the axis, on either side
_MAX_LAYERS, _MAX_UNITS = 20, 256


def activations(
    *,
    depth: int = 8,
    width: int = 32,
    activation: str = "tanh",
    std: float = 0.1,
    epochs: int = 20,
    rate: float = 0.05,
    seed: int = 0,
    dark: bool = False,
    title: str | None = None,
) -> slide.Figure:
    """Draw the distribution of activations in each layer, with and without batch normalization.

    Two networks have the same initial weights, sampled from a normal distribution. They are trained
    on the same data by SGD: 400 samples of a smooth function of 8 inputs, in batches of 50. Each
    layer has a histogram at initialization (left half) and after training (right half), scaled to
    its highest bin; activations are those of all samples as one batch. Zeros, as of relu, are
    counted in the text and omitted from the histograms. The axis shows 99.6 % of all activations.

    Args:
        depth: number of hidden layers, up to 20.
        width: units of each hidden layer, up to 256.
        activation: activation function of the hidden units.
        std: standard deviation of the initial weights.
        epochs: number of epochs.
        rate: learning rate.
        seed: random seed of weights, data and batches.

    Raises:
        UsageError: an unknown activation, or too many layers or units.
        NonFiniteError: training diverges.

    >>> figure = activations(depth=2, width=4, epochs=1)
    >>> [axes.get_title() for axes in figure.axes]
    ['without batch normalization', 'with batch normalization']
    """
    networks = activation_distributions(depth, width, activation, std, epochs, rate, seed)
    default_title = f"Activations of {activation} layers, initial weights with std {std:g}"
    figure, look = slide.create_figure(dark, title, default_title)
    panels: Any = figure.subplots(1, len(networks), sharey=True)
    every = np.concatenate([part.ravel() for n in networks for part in (n.start, n.trained)])
    low, high = np.quantile(every, [_OUTSIDE, 1 - _OUTSIDE])
    margin = 0.05 * (high - low) or 1.0
    bins = np.linspace(low - margin, high + margin, _BINS + 1)
    for axes, network in zip(panels, networks, strict=True):
        _draw_panel(axes, network, bins, look, first=axes is panels[0])
    slide.draw_legend_below(figure, panels[0], look)
    return figure


@dataclass(frozen=True, eq=False)
class Activations:
    """The activations of all hidden layers of one network, before and after training.

    Attributes:
        name: name of the network, with or without batch normalization.
        start, trained: activations at initialization and after training; shape (layers, samples,
            units).
        epochs: number of epochs of training.
        losses: mean loss before and after training.
    """

    name: str
    start: Array
    trained: Array
    epochs: int
    losses: tuple[float, float]

    @property
    def sentence(self) -> str:
        """Sentence that compares the activations and the loss before and after training."""
        last = (float(part[-1].std()) for part in (self.start, self.trained))
        before, after = (format_number(value, 2) for value in last)
        losses = (format_number(value, 2) for value in self.losses)
        text = (
            f"std in layer {len(self.start)}: {before}, after training {after}\n"
            f"loss: {next(losses)}, after training {next(losses)}"
        )
        zeros = [float((part[-1] == 0).mean()) for part in (self.start, self.trained)]
        if max(zeros) > 0:
            percentages = " %, after training ".join(f"{100 * zero:.0f}" for zero in zeros)
            text += f"\nzeros in layer {len(self.start)}: {percentages} %"
        return text


def activation_distributions(
    depth: int = 8,
    width: int = 32,
    activation: str = "tanh",
    std: float = 0.1,
    epochs: int = 20,
    rate: float = 0.05,
    seed: int = 0,
) -> tuple[Activations, Activations]:
    """Compute the distributions of activations that :func:`activations` draws.

    >>> plain, normalized = activation_distributions(depth=4, width=8, epochs=1)
    >>> plain.start.shape, bool(plain.start[-1].std() < 0.01 < normalized.start[-1].std())
    ((4, 400, 8), True)
    """
    depth, width = (
        check_integer("depth", depth, minimum=1),
        check_integer("width", width, minimum=1),
    )
    if depth > _MAX_LAYERS or width > _MAX_UNITS:
        raise UsageError(
            f"`depth` must be at most {_MAX_LAYERS} and `width` at most {_MAX_UNITS},"
            f" got {depth} and {width}"
        )
    epochs, seed = check_integer("epochs", epochs, minimum=1), check_integer("the seed", seed)
    std, rate = check_real_number("std", std, above=0), check_real_number("the rate", rate, above=0)
    mlp([1, 1, 1], activation=activation)  # raises an error for an unknown activation
    random = np.random.default_rng(seed)
    x = random.standard_normal((_SAMPLES, _INPUTS))
    data = Dataset.from_arrays({"x": x}, {"y": np.sin(x[:, 0]) + 0.5 * x[:, 1] * x[:, 2]})
    weights = {
        f"W{k}": std * random.standard_normal((width, width if k > 1 else _INPUTS))
        for k in range(1, depth + 1)
    }
    weights["w"] = std * random.standard_normal(width)
    networks = []
    for normalized in (False, True):
        graph = _build_network(depth, width, activation, normalized)
        start = weights | {
            name: (np.ones if name[0] == "g" else np.zeros)(graph.shapes.get(name, ()))
            for name in graph.parameters
            if name not in weights
        }
        settings: dict[str, Any] = {"optimizer": "sgd", "learning_rate": rate, "batch_size": _BATCH}
        run = train(graph, data, start=start, epochs=epochs, seed=seed, **settings)
        if run.stopped == "diverged":
            hint = "choose a smaller learning rate (--rate) or std (--std)"
            raise NonFiniteError("training diverges", hint=hint)
        first, last = (
            _compute_activations(graph, x, point, depth) for point in (start, run.parameters)
        )
        losses = (run.start_loss, run.loss)
        name = f"{'with' if normalized else 'without'} batch normalization"
        networks.append(Activations(name, first, last, run.epochs, losses))
    return networks[0], networks[1]


def _build_network(depth: int, width: int, activation: str, normalized: bool) -> ExpressionGraph:
    """Build a deep network with hidden layers h1, h2, ..., optionally with batch normalization."""
    lines = [f"input x[{_INPUTS}]", f"parameter w[{width}], b"]
    for k in range(1, depth + 1):
        before = f"h{k - 1}" if k > 1 else "x"
        lines.append(f"parameter W{k}[{width},{width if k > 1 else _INPUTS}], b{k}[{width}]")
        total = f"W{k} @ {before}"
        if normalized:
            lines.append(f"parameter g{k}[{width}]")
            total = f"batchnorm({total}, g{k}, b{k})"
        else:
            total += f" + b{k}"
        lines.append(f"h{k} = {total if activation == 'none' else f'{activation}({total})'}")
    return parse("\n".join([*lines, f"y = w @ h{depth} + b", "output y"]))


def _compute_activations(
    graph: ExpressionGraph, x: Array, point: Mapping[str, Any], depth: int
) -> Array:
    """Compute the activations of all hidden layers, with all samples as one batch."""
    values = graph.evaluate({"x": x, **point})
    activations = np.array([values[f"h{k}"] for k in range(1, depth + 1)])
    if not np.isfinite(activations).all():
        hint = "choose a smaller std (--std)"
        raise NonFiniteError("activations must be finite", hint=hint)
    return activations


def _draw_panel(
    axes: slide.Axes, network: Activations, bins: Array, look: Theme, *, first: bool
) -> None:
    """Draw two half histograms for each layer of a network: for initial and for trained weights."""
    slide.style_axes(axes, look, x="layer", y="activation" if first else "")
    axes.set_title(network.name, **slide.text_style(look) | {"weight": "bold"})
    epochs = pluralize(network.epochs, "epoch")
    sides = (
        (-1, network.start, 0, "", "at initialization"),
        (1, network.trained, 1, "////", f"after {epochs} of training"),
    )
    for side, layers, order, hatch, label in sides:
        color = look.curves[order]
        for k, values in enumerate(layers, 1):
            counts, _ = np.histogram(values[values != 0], bins)
            if not counts.any():
                continue
            filled = np.flatnonzero(counts)
            shown = slice(filled[0], filled[-1] + 1)
            lengths = side * _HALF_WIDTH * counts[shown] / counts.max()
            edges = bins[shown.start : shown.stop + 1]
            axes.stairs(
                k + lengths, edges, baseline=k, orientation="horizontal", fill=True, hatch=hatch,
                facecolor=mix(color, look.background, 0.45), edgecolor=color, linewidth=1.0,
                label=label if k == 1 else None,
            )  # fmt: skip
    axes.text(0.5, 0.985, network.sentence, transform=axes.transAxes, ha="center", va="top",
              **slide.text_style(look))  # fmt: skip
    axes.set_xlim(0.4, len(network.start) + 0.6)
    lines = network.sentence.count("\n") + 1
    axes.set_ylim(
        bins[0], bins[-1] + 0.08 * (lines + 0.3) * (bins[-1] - bins[0])
    )  # with room for the sentence
    slide.use_linear_axis(axes, "x", max_ticks=12, integers=True)
    slide.use_linear_axis(axes, "y", max_ticks=7)
