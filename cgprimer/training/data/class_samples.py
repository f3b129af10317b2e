"""Samples of two classes: what classifiers are taught with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cgprimer.core.graph import check_graph
from cgprimer.errors import UsageError, name_hint
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.type_checks import check_type
from cgprimer.support.validation import check_integer, check_real_number
from cgprimer.training.data.dataset import Dataset
from cgprimer.training.data.dataset_columns import Array, numbers_in, together


def _gaussians(random: Any, second: Array, inputs: int) -> Array:
    return random.normal(2.0 * second[:, None] - 1.0, 0.5, (len(second), inputs))


def _moons(random: Any, second: Array, inputs: int) -> Array:
    angle = random.uniform(0, np.pi, len(second))
    x, y = np.cos(angle), np.sin(angle)
    return np.stack([np.where(second, 1 - x, x), np.where(second, 0.5 - y, y)], axis=1)


def _spirals(random: Any, second: Array, inputs: int) -> Array:
    radius = np.sqrt(random.uniform(0.01, 1, len(second)))  # as many near the end as there is room
    angle = 3 * np.pi * radius + np.pi * second
    return radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _xor(random: Any, second: Array, inputs: int) -> Array:
    x, y = random.uniform(-1, 1, len(second)), random.uniform(0, 1, len(second))
    return np.stack([x, np.where(second, -1, 1) * np.sign(x) * y], axis=1)


def _neurons(random: Any, second: Array, inputs: int) -> Array:
    mean, deviation = np.where(second, 4.0, 2.0), np.where(second, 2.0, 1.0)
    return random.normal(mean[:, None], deviation[:, None], (len(second), inputs))


def _planes(random: Any, second: Array, inputs: int) -> Array:
    return random.normal(np.where(second, 5.0, 3.0)[:, None], 1.0, (len(second), 2))


class _Kind(NamedTuple):
    points: Callable[[Any, Array, int], Array]
    noise: float  # added unless another is asked for
    inputs: int = 2  # how many it has; 0 for any number
    labels: tuple[float, float] = (0.0, 1.0)


CLASSES = {
    "gaussians": _Kind(_gaussians, 0.0, inputs=0),
    "moons": _Kind(_moons, 0.1),
    "spirals": _Kind(_spirals, 0.02),
    "xor": _Kind(_xor, 0.0),
    "lecture-neurons": _Kind(_neurons, 0.0, inputs=0),
    "lecture-planes": _Kind(_planes, 0.0, labels=(1.0, 2.0)),
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
    """Samples of two classes, as many of each, in random order. Equal arguments give equal data.

    - ``gaussians``: normal, deviation 0.5, around -1 and 1 in each input.
    - ``moons``: two half circles that reach into each other (as scikit-learn's ``make_moons``).
    - ``spirals``: two arms of one and a half turns (after Lang and Witbrock 1988).
    - ``xor``: quadrants of the square from -1 to 1, the second class where signs differ.
    - ``lecture-neurons``: in each input N(2, 1) and N(4, 2^2), divided by the maximum of a batch
      (of the samples in their order, or of all), as ComputationalGraphPrimer's examples have it.
    - ``lecture-planes``: in the plane N([3, 3], I) and N([5, 5], I), with the labels 1 and 2.

    The columns are called as the graph's inputs and outputs, else ``x1``, ``x2`` and ``y``. One
    output has the label, 0 or 1. Of two the one of the class is 1, the other 0; with
    ``lecture-planes`` both have the label.

    Args:
        kind: one of these.
        graph: whose inputs and outputs give the names, and the number of inputs.
        samples: how many.
        seed: of numpy's generator (PCG64).
        noise: standard deviation of what is added to each input; 0.1 for moons, 0.02 for spirals
            and 0 for others unless given.
        batch_size: of ``lecture-neurons``.

    Raises:
        UsageError: an unknown kind, or a graph with another number of inputs or outputs.

    >>> data = make_classes("moons", samples=200)
    >>> data, data.targets["y"].mean()
    (<Dataset: 200 samples, inputs x1, x2, targets y>, np.float64(0.5))
    """
    check_type("kind", kind, str, "a name")
    if graph is not None:
        check_graph(graph)
    if kind not in CLASSES:
        raise UsageError(f"there are no classes {kind!r}", hint=name_hint(kind, CLASSES))
    points, usual, numbers, labels = CLASSES[kind]
    samples = check_integer("the number of samples", samples, minimum=1)
    noise = usual if noise is None else noise
    noise = check_real_number("the noise, a standard deviation,", noise, minimum=0)
    if batch_size is not None and kind != "lecture-neurons":
        raise UsageError("a batch_size is one of the classes lecture-neurons alone")
    batch = samples if batch_size is None else check_integer("batch_size", batch_size, minimum=1)
    inputs, outputs = ["x1", "x2"], ["y"]
    if graph is not None:
        inputs, outputs = (numbers_in(graph, names) for names in (graph.inputs, graph.outputs))
    if len(inputs) != (numbers or max(1, len(inputs))):
        wanted = numbers or "some"
        raise UsageError(f"{kind} has {wanted} inputs, and the graph has {len(inputs)}")
    if len(outputs) not in (1, 2):
        raise UsageError(f"two classes need one output or two, and the graph has {len(outputs)}")
    random = np.random.default_rng(check_integer("the seed", seed))
    second = random.permutation(samples) % 2 == 1
    x = points(random, second, len(inputs))
    if kind == "lecture-neurons":
        for first in range(0, samples, batch):
            x[first : first + batch] /= x[first : first + batch].max()
    if noise:
        x += random.normal(0.0, noise, x.shape)
    label = np.where(second, labels[1], labels[0])
    both = labels == (0.0, 1.0) and len(outputs) == 2
    y = [1 - label, label] if both else [label] * len(outputs)
    return Dataset(
        together({name: np.ascontiguousarray(x[:, k]) for k, name in enumerate(inputs)}),
        together(dict(zip(outputs, y, strict=True))),
    )
