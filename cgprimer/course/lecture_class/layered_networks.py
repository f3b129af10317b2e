"""The network models of the lecture: neurons with bias and sigmoid, two classes, batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cgprimer.errors import DataError, UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.training.data import Dataset
from cgprimer.training.data.class_samples import CLASSES

Array = Any
BIAS = "bias_"  #: prefix of the names of biases


def add_neurons(expressions: Sequence[str]) -> list[str]:
    """Convert expressions to neurons: add a bias and a sigmoid to each.

    >>> add_neurons(["xw = ab*xa + bc*xb"])
    ['xw = sigmoid(ab*xa + bc*xb + bias_xw)']
    """
    neurons = []
    for expression in expressions:
        name, equals, body = (part.strip() for part in expression.partition("="))
        neuron = f"{name} = sigmoid({body} + {BIAS}{name})"
        is_definition = equals and name.isidentifier() and body
        neurons.append(neuron if is_definition else expression)
    return neurons


def group_by_layer(graph: ExpressionGraph) -> list[list[str]]:
    """Group the variables of a network into layers, from the inputs to the outputs.

    >>> from cgprimer import parse
    >>> group_by_layer(parse("xw=ap*xp+aq*xq; xo=cp*xw"))
    [['xp', 'xq'], ['xw'], ['xo']]
    """
    depth: dict[str, int] = {}
    for name in graph.variables:
        depth[name] = max((1 + depth[n] for n in graph.depends_on.get(name, ())), default=0)
    layers: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for name, layer in depth.items():
        layers[layer].append(name)
    return layers


def check_layers(
    layers: list[list[str]], num_layers: int | None, config: Sequence[int] | None
) -> None:
    """Raise UsageError unless a network has the expected number and sizes of layers.

    Args:
        layers: the variables of each layer.
        num_layers: the expected number of layers, including the inputs; None for any number.
        config: the expected sizes of the layers; None for any sizes.

    Raises:
        UsageError: the network has other layers.
    """
    sizes = [len(layer) for layer in layers]
    structure = "-".join(map(str, sizes))
    if num_layers is not None and num_layers != len(sizes):
        raise UsageError(
            f"`num_layers` is {num_layers}, but the network has {len(sizes)} layers: {structure}",
            hint="count the inputs as a layer",
        )
    if config is not None and list(config) != sizes:
        names = "; ".join(", ".join(layer) for layer in layers)
        raise UsageError(
            f"`layers_config` is {list(config)}, but the layers have sizes {sizes}", hint=names
        )


def sample_two_classes(inputs: int, samples: int, seed: int) -> dict[int, list[Array]]:
    """Sample the inputs of two classes, from N(2, 1) for class 0 and N(4, 2^2) for class 1.

    Samples are keyed by class.
    """
    second = np.arange(samples) >= samples // 2
    x = CLASSES["lecture-neurons"].sample_inputs(np.random.default_rng(seed), second, inputs)
    return {0: [*x[~second]], 1: [*x[second]]}


def sample_batches(
    training_data: Mapping[int, Any], graph: ExpressionGraph, number: int, size: int, seed: int
) -> Dataset:
    """Sample batches from two classes, and divide each batch by its maximum.

    Args:
        training_data: samples keyed by class.
        graph: the network.
        number: the number of batches.
        size: the number of samples in a batch.
        seed: the random seed.

    Raises:
        DataError: the data are not two classes of samples with one number for each input.
        UsageError: the graph has more than two outputs.
    """
    if len(graph.outputs) not in (1, 2):
        problem = f"two classes require one or two outputs, got {len(graph.outputs)}"
        raise UsageError(problem, hint="set `output_vars`")
    if not isinstance(training_data, Mapping) or {0, 1} - {*training_data}:
        hint = "pass the result of `cgp.gen_training_data()`"
        raise DataError("`training_data` must have two classes: {0: [...], 1: [...]}", hint=hint)
    classes = []
    for label in (0, 1):
        try:
            samples = np.asarray(training_data[label], dtype=float)
        except (TypeError, ValueError):
            samples = np.empty(0)
        if samples.ndim != 2 or not len(samples) or samples.shape[1] != len(graph.inputs):
            problem = f"samples of class {label} must be lists of {len(graph.inputs)} numbers"
            raise DataError(problem, hint=f"pass one number for each of {', '.join(graph.inputs)}")
        classes.append(samples)
    random = np.random.default_rng(seed)
    second = random.random(number * size) < 0.5
    x = np.empty((number * size, len(graph.inputs)))
    for label, samples in enumerate(classes):
        rows = second == bool(label)
        x[rows] = samples[random.integers(len(samples), size=int(rows.sum()))]
    in_batches = x.reshape(number, -1)
    in_batches /= in_batches.max(axis=1, keepdims=True)
    targets = [second * 1.0] if len(graph.outputs) == 1 else [~second * 1.0, second * 1.0]
    return Dataset.from_arrays(
        inputs={name: x[:, k].copy() for k, name in enumerate(graph.inputs)},
        targets=dict(zip(graph.outputs, targets, strict=True)),
    )
