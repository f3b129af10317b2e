"""Distributions of activations in a deep network, with and without batch normalization.

Source: Glorot and Bengio 2010, "Understanding the difficulty of training deep feedforward neural
networks"; Ioffe and Szegedy 2015, "Batch normalization".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cgprimer.errors import NonFiniteError, UsageError
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
_HALF = 0.42  # of the distance between layers: half of the width of a distribution
_FRACTION = 0.002  # of all activations that may lie outside of the axis, on either side
_MOST_LAYERS, _MOST_UNITS = 20, 256


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
    """Distributions of activations by layer, with and without batch normalization.

    Two networks have the same weights at initialization, sampled from a normal distribution. They
    learn the same data by SGD: 400 samples of a smooth function of 8 inputs, in batches of 50. Each
    layer has its histogram at initialization (left half) and after training (right half), scaled to
    its highest bin; activations are those of all samples as one batch. Zeros, as of relu, are
    counted in the text and left out of the histograms. The axis holds 99.6 % of all activations.

    Args:
        depth: number of hidden layers, up to 20.
        width: units of each hidden layer, up to 256.
        activation: function of each hidden unit.
        std: standard deviation of the initial weights.
        epochs: number of epochs of training.
        rate: learning rate.
        seed: of weights, data and batches.

    Raises:
        UsageError: an unknown activation, or too many layers or units.
        NonFiniteError: training diverges.

    Command line:
        cgprimer plot activations -o activations.png
        cgprimer plot activations --activation relu --std 0.25 --depth 10 -o relu.svg --dark

    >>> figure = activations(depth=3, width=8, epochs=2)
    >>> [axes.get_title() for axes in figure.axes]
    ['without batch normalization', 'with batch normalization']
    """
    both = activation_distributions(depth, width, activation, std, epochs, rate, seed)
    usual = f"Activations of {activation} layers, initial weights of standard deviation {std:g}"
    figure, look = slide.new_figure(dark, title, usual)
    panels: Any = figure.subplots(1, len(both), sharey=True)
    every = np.concatenate([part.ravel() for one in both for part in (one.start, one.trained)])
    low, high = np.quantile(every, [_FRACTION, 1 - _FRACTION])
    room = 0.05 * (high - low) or 1.0
    bins = np.linspace(low - room, high + room, _BINS + 1)
    for axes, one in zip(panels, both, strict=True):
        _draw_panel(axes, one, bins, look, first=axes is panels[0])
    slide.legend_below(figure, panels[0], look)
    return figure


@dataclass(frozen=True, eq=False)
class Activations:
    """Activations of all hidden layers of one network.

    Attributes:
        name: what distinguishes the network.
        start, trained: at initialization and after training; shape (layers, samples, units).
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
        """The standard deviation of the last layer and the loss, before and after training."""
        last = (float(part[-1].std()) for part in (self.start, self.trained))
        before, after = (format_number(value, 2) for value in last)
        losses = (format_number(value, 2) for value in self.losses)
        text = (
            f"std in layer {len(self.start)}: {before}, after training {after}\n"
            f"loss: {next(losses)}, after training {next(losses)}"
        )
        zeros = [float((part[-1] == 0).mean()) for part in (self.start, self.trained)]
        if max(zeros) > 0:
            shares = " %, after training ".join(f"{100 * zero:.0f}" for zero in zeros)
            text += f"\nzeros in layer {len(self.start)}: {shares} %"
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
    """Compute what :func:`activations` draws; the arguments are the same.

    >>> plain, normalized = activation_distributions(depth=6, width=16, epochs=1)
    >>> plain.start.shape, bool(plain.start[-1].std() < 0.01 < normalized.start[-1].std())
    ((6, 400, 16), True)
    """
    depth, width = (
        check_integer("depth", depth, minimum=1),
        check_integer("width", width, minimum=1),
    )
    if depth > _MOST_LAYERS or width > _MOST_UNITS:
        raise UsageError(f"at most {_MOST_LAYERS} layers of at most {_MOST_UNITS} units are drawn")
    epochs, seed = check_integer("epochs", epochs, minimum=1), check_integer("the seed", seed)
    std, rate = check_real_number("std", std, above=0), check_real_number("the rate", rate, above=0)
    mlp([1, 1, 1], activation=activation)  # an unknown activation is refused here
    random = np.random.default_rng(seed)
    x = random.standard_normal((_SAMPLES, _INPUTS))
    data = Dataset.from_arrays({"x": x}, {"y": np.sin(x[:, 0]) + 0.5 * x[:, 1] * x[:, 2]})
    weights = {
        f"W{k}": std * random.standard_normal((width, width if k > 1 else _INPUTS))
        for k in range(1, depth + 1)
    }
    weights["w"] = std * random.standard_normal(width)
    found = []
    for normalized in (False, True):
        graph = _network(depth, width, activation, normalized)
        start = weights | {
            name: (np.ones if name[0] == "g" else np.zeros)(graph.shapes.get(name, ()))
            for name in graph.parameters
            if name not in weights
        }
        settings: dict[str, Any] = {"optimizer": "sgd", "learning_rate": rate, "batch_size": _BATCH}
        run = train(graph, data, start=start, epochs=epochs, seed=seed, **settings)
        if run.stopped == "diverged":
            raise NonFiniteError(
                "training diverges", hint="a smaller rate (--rate), or std (--std)"
            )
        first, last = (_layers(graph, x, point, depth) for point in (start, run.parameters))
        losses = (run.start_loss, run.loss)
        name = f"{'with' if normalized else 'without'} batch normalization"
        found.append(Activations(name, first, last, run.epochs, losses))
    return found[0], found[1]


def _network(depth: int, width: int, activation: str, normalized: bool) -> ExpressionGraph:
    """Return a deep network; its layers are called h1, h2, ..."""
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


def _layers(graph: ExpressionGraph, x: Array, point: Mapping[str, Any], depth: int) -> Array:
    """Return the activations of all layers for all samples as one batch."""
    values = graph.evaluate({"x": x, **point})
    found = np.array([values[f"h{k}"] for k in range(1, depth + 1)])
    if not np.isfinite(found).all():
        raise NonFiniteError("an activation is not finite", hint="a smaller std (--std)")
    return found


def _draw_panel(
    axes: slide.Axes, one: Activations, bins: Array, look: Theme, *, first: bool
) -> None:
    """Draw two half histograms for each layer: at initialization and after training."""
    slide.dress(axes, look, x="layer", y="activation" if first else "")
    axes.set_title(one.name, **slide.text_style(look) | {"weight": "bold"})
    epochs = f"{one.epochs} epoch{'s' if one.epochs > 1 else ''}"
    sides = (
        (-1, one.start, 0, "", "at initialization"),
        (1, one.trained, 1, "////", f"after {epochs} of training"),
    )
    for side, layers, order, hatch, label in sides:
        colour = look.curves[order]
        for k, values in enumerate(layers, 1):
            counts, _ = np.histogram(values[values != 0], bins)
            if not counts.any():
                continue
            filled = np.flatnonzero(counts)
            shown = slice(filled[0], filled[-1] + 1)
            lengths = side * _HALF * counts[shown] / counts.max()
            edges = bins[shown.start : shown.stop + 1]
            axes.stairs(
                k + lengths, edges, baseline=k, orientation="horizontal", fill=True, hatch=hatch,
                facecolor=mix(colour, look.background, 0.45), edgecolor=colour, linewidth=1.0,
                label=label if k == 1 else None,
            )  # fmt: skip
    axes.text(0.5, 0.985, one.sentence, transform=axes.transAxes, ha="center", va="top",
              **slide.text_style(look))  # fmt: skip
    axes.set_xlim(0.4, len(one.start) + 0.6)
    lines = one.sentence.count("\n") + 1
    axes.set_ylim(
        bins[0], bins[-1] + 0.08 * (lines + 0.3) * (bins[-1] - bins[0])
    )  # above, for the sentence
    slide.linear_axis(axes, "x", most=12, whole=True)
    slide.linear_axis(axes, "y", most=7)
