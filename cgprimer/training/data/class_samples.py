"""Synthetic samples of two classes, for teaching classification."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cgprimer.core.graph import check_graph
from cgprimer.errors import UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.type_checks import check_type
from cgprimer.support.validation import check_choice, check_integer, check_real_number
from cgprimer.training.data.dataset import Dataset
from cgprimer.training.data.dataset_columns import Array, combine_elements, list_scalar_names


def _sample_gaussians(random: Any, is_second_class: Array, inputs: int) -> Array:
    """Sample inputs from normal distributions around -1 (first class) and 1 (second class)."""
    return random.normal(2.0 * is_second_class[:, None] - 1.0, 0.5, (len(is_second_class), inputs))


def _sample_moons(random: Any, is_second_class: Array, inputs: int) -> Array:
    """Sample points on two interleaving half circles, one for each class."""
    angle = random.uniform(0, np.pi, len(is_second_class))
    x, y = np.cos(angle), np.sin(angle)
    x, y = np.where(is_second_class, 1 - x, x), np.where(is_second_class, 0.5 - y, y)
    return np.stack([x, y], axis=1)


def _sample_spirals(random: Any, is_second_class: Array, inputs: int) -> Array:
    """Sample points on two arms of a spiral, one for each class."""
    radius = np.sqrt(random.uniform(0.01, 1, len(is_second_class)))  # uniform over the area
    angle = 3 * np.pi * radius + np.pi * is_second_class
    return radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _sample_xor(random: Any, is_second_class: Array, inputs: int) -> Array:
    """Sample points with coordinates of equal sign (first class) or opposite sign (second)."""
    x, y = random.uniform(-1, 1, len(is_second_class)), random.uniform(0, 1, len(is_second_class))
    return np.stack([x, np.where(is_second_class, -1, 1) * np.sign(x) * y], axis=1)


def _sample_neurons(random: Any, is_second_class: Array, inputs: int) -> Array:
    """Sample inputs from N(2, 1) in the first class and N(4, 2^2) in the second class."""
    mean, deviation = np.where(is_second_class, 4.0, 2.0), np.where(is_second_class, 2.0, 1.0)
    return random.normal(mean[:, None], deviation[:, None], (len(is_second_class), inputs))


def _sample_planes(random: Any, is_second_class: Array, inputs: int) -> Array:
    """Sample points from N([3, 3], I) in the first class and N([5, 5], I) in the second."""
    mean = np.where(is_second_class, 5.0, 3.0)
    return random.normal(mean[:, None], 1.0, (len(is_second_class), 2))


class _ClassKind(NamedTuple):
    """A synthetic distribution of two classes: how inputs are sampled, and the default noise."""

    sample_inputs: Callable[[Any, Array, int], Array]  # generator, class mask, number of inputs
    noise: float  # default standard deviation of the noise
    inputs: int = 2  # number of inputs; 0 for any number
    labels: tuple[float, float] = (0.0, 1.0)


CLASSES = {
    "gaussians": _ClassKind(_sample_gaussians, 0.0, inputs=0),
    "moons": _ClassKind(_sample_moons, 0.1),
    "spirals": _ClassKind(_sample_spirals, 0.02),
    "xor": _ClassKind(_sample_xor, 0.0),
    "lecture-neurons": _ClassKind(_sample_neurons, 0.0, inputs=0),
    "lecture-planes": _ClassKind(_sample_planes, 0.0, labels=(1.0, 2.0)),
}


def make_classes(
    kind: str,
    graph: ExpressionGraph | None = None,
    *,
    samples: int = 10_000,
    seed: int = 0,
    noise: float | None = None,
    batch_size: int | None = None,
) -> Dataset:
    """Generate samples of two classes of equal size, in random order.

    - ``gaussians``: normal with standard deviation 0.5 around -1 and 1 in each input.
    - ``moons``: two interleaving half circles (as scikit-learn's ``make_moons``).
    - ``spirals``: two arms of one and a half turns (after Lang and Witbrock 1988).
    - ``xor``: quadrants of the square from -1 to 1; the second class is where signs differ.
    - ``lecture-neurons``: N(2, 1) and N(4, 2^2) in each input, divided by the maximum of each
      batch (or of all samples), as in the examples of ComputationalGraphPrimer.
    - ``lecture-planes``: N([3, 3], I) and N([5, 5], I) in the plane, with the labels 1 and 2.

    The columns have the names of the graph's inputs and outputs, or ``x1``, ``x2`` and ``y``
    without a graph. A single output holds the label, 0 or 1. Two outputs are one-hot encoded;
    with ``lecture-planes`` both hold the label. Equal arguments give equal data.

    Args:
        kind: the distribution, one of the names above.
        graph: the graph that determines the names and the number of inputs.
        samples: number of samples.
        seed: seed of numpy's generator (PCG64).
        noise: standard deviation of the noise added to each input; by default 0.1 for moons, 0.02
            for spirals and 0 for the others.
        batch_size: number of samples per maximum, only for ``lecture-neurons``.

    Raises:
        UsageError: an unknown kind, or a graph with an unsuitable number of inputs or outputs.

    >>> data = make_classes("moons", samples=200)
    >>> data, data.targets["y"].mean()
    (<Dataset: 200 samples, inputs x1, x2, targets y>, np.float64(0.5))
    """
    check_type("kind", kind, str, "a name")
    if graph is not None:
        check_graph(graph)
    check_choice("class distribution", kind, CLASSES)
    sample_inputs, default_noise, required_inputs, labels = CLASSES[kind]
    samples = check_integer("the number of samples", samples, minimum=1)
    noise = default_noise if noise is None else noise
    noise = check_real_number("the noise, a standard deviation,", noise, minimum=0)
    if batch_size is not None and kind != "lecture-neurons":
        raise UsageError(f"`batch_size` applies only to lecture-neurons, not to {kind}")
    batch = samples if batch_size is None else check_integer("batch_size", batch_size, minimum=1)
    inputs, outputs = ["x1", "x2"], ["y"]
    if graph is not None:
        inputs = list_scalar_names(graph, graph.inputs)
        outputs = list_scalar_names(graph, graph.outputs)
    if len(inputs) != (required_inputs or max(1, len(inputs))):
        required = required_inputs or "at least 1"
        raise UsageError(f"{kind} requires {required} inputs, but the graph has {len(inputs)}")
    if len(outputs) not in (1, 2):
        raise UsageError(f"two classes require 1 or 2 outputs, but the graph has {len(outputs)}")
    random = np.random.default_rng(check_integer("the seed", seed))
    is_second_class = random.permutation(samples) % 2 == 1
    x = sample_inputs(random, is_second_class, len(inputs))
    if kind == "lecture-neurons":
        for first in range(0, samples, batch):
            x[first : first + batch] /= x[first : first + batch].max()
    if noise:
        x += random.normal(0.0, noise, x.shape)
    label = np.where(is_second_class, labels[1], labels[0])
    one_hot = labels == (0.0, 1.0) and len(outputs) == 2
    y = [1 - label, label] if one_hot else [label] * len(outputs)
    return Dataset(
        combine_elements({name: np.ascontiguousarray(x[:, k]) for k, name in enumerate(inputs)}),
        combine_elements(dict(zip(outputs, y, strict=True))),
    )
