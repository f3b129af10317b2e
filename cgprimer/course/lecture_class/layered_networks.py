"""The lecture's two network models: neurons with bias and sigmoid, two classes, batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cgprimer.errors import DataError, UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.training.data import Dataset
from cgprimer.training.data.class_samples import CLASSES

Array = Any
BIAS = "bias_"


def with_neurons(expressions: Sequence[str]) -> list[str]:
    """Bias and sigmoid written into each expression.

    >>> with_neurons(["xw = ab*xa + bc*xb"])
    ['xw = sigmoid(ab*xa + bc*xb + bias_xw)']
    """
    made = []
    for expression in expressions:
        name, equals, body = (part.strip() for part in expression.partition("="))
        neuron = f"{name} = sigmoid({body} + {BIAS}{name})"
        made.append(neuron if equals and name.isidentifier() and body else expression)
    return made


def layers_of(graph: ExpressionGraph) -> list[list[str]]:
    """Variables by layers: inputs, those computed from them, ...

    >>> from cgprimer import parse
    >>> layers_of(parse("xw=ap*xp+aq*xq; xo=cp*xw"))
    [['xp', 'xq'], ['xw'], ['xo']]
    """
    depth: dict[str, int] = {}
    for name in graph.variables:
        depth[name] = max((1 + depth[n] for n in graph.depends_on.get(name, ())), default=0)
    found: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for name, layer in depth.items():
        found[layer].append(name)
    return found


def check_layers(
    layers: list[list[str]], num_layers: int | None, config: Sequence[int] | None
) -> None:
    """That the expressions are the network that was said.

    Raises:
        UsageError: they have other layers.
    """
    sizes = [len(layer) for layer in layers]
    told = "-".join(map(str, sizes))
    if num_layers is not None and num_layers != len(sizes):
        what = f"num_layers is {num_layers}, and the expressions have {len(sizes)}: {told}"
        raise UsageError(what, hint="inputs are a layer, too")
    if config is not None and list(config) != sizes:
        names = "; ".join(", ".join(layer) for layer in layers)
        raise UsageError(
            f"layers_config is {list(config)}, and the expressions have {sizes}", hint=names
        )


def two_classes(inputs: int, samples: int, seed: int) -> dict[int, list[Array]]:
    """Class to its samples, half of them each: N(2, 1) in each input for 0, N(4, 2^2) for 1."""
    second = np.arange(samples) >= samples // 2
    x = CLASSES["lecture-neurons"].sample_inputs(np.random.default_rng(seed), second, inputs)
    return {0: [*x[~second]], 1: [*x[second]]}


def batches(
    training_data: Mapping[int, Any], graph: ExpressionGraph, many: int, size: int, seed: int
) -> Dataset:
    """Batches one behind the other, drawn from the two classes, each divided by its maximum.

    Raises:
        DataError: the data are not two classes of as many numbers as the graph has inputs.
        UsageError: the graph has more than two outputs.
    """
    if len(graph.outputs) not in (1, 2):
        what = f"two classes need one output or two, and there are {len(graph.outputs)}"
        raise UsageError(what, hint="output_vars says which they are")
    if not isinstance(training_data, Mapping) or {0, 1} - {*training_data}:
        hint = "training_data = cgp.gen_training_data()"
        raise DataError("training data are samples by class: {0: [...], 1: [...]}", hint=hint)
    given = []
    for label in (0, 1):
        try:
            samples = np.asarray(training_data[label], dtype=float)
        except (TypeError, ValueError):
            samples = np.empty(0)
        if samples.ndim != 2 or not len(samples) or samples.shape[1] != len(graph.inputs):
            what = f"the samples of class {label} are not lists of {len(graph.inputs)} numbers"
            raise DataError(what, hint=f"one for each of {', '.join(graph.inputs)}")
        given.append(samples)
    random = np.random.default_rng(seed)
    second = random.random(many * size) < 0.5
    x = np.empty((many * size, len(graph.inputs)))
    for label, samples in enumerate(given):
        rows = second == bool(label)
        x[rows] = samples[random.integers(len(samples), size=int(rows.sum()))]
    in_batches = x.reshape(many, -1)
    in_batches /= in_batches.max(axis=1, keepdims=True)
    targets = [second * 1.0] if len(graph.outputs) == 1 else [~second * 1.0, second * 1.0]
    return Dataset.from_arrays(
        inputs={name: x[:, k].copy() for k, name in enumerate(graph.inputs)},
        targets=dict(zip(graph.outputs, targets, strict=True)),
    )
