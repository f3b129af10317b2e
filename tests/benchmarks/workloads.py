"""What is measured: graphs with data, in a form that every contestant can use.

A workload is expressions, columns of inputs, a column of targets, and the parameters at which
loss (squared error, summed over the samples) and gradient are taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

import cgprimer

from .random_graphs import random_expressions

Array = Any
LECTURE = ("xx=xa^2", "xy=ab*xx+ac*xa", "xz=bc*xx+xy", "xw=cd*xx+xz^3")
LECTURE_TRUTH = {"ab": 1.0, "bc": 2.0, "cd": 3.0, "ac": 4.0}
LECTURE_START = {"ab": 0.3, "bc": 0.5, "cd": 0.1, "ac": 0.7}


@dataclass(eq=False)
class Workload:
    """A graph with data.

    Attributes:
        name: what it is called on the command line and in the tables.
        expressions: in cgprimer's language.
        inputs, parameters: names, in the order in which the contestants get them.
        output: the only one.
        columns: an array of shape (samples,) for each input; float64.
        target: shape (samples,).
        start: the parameters' values, in their order.
        layers: widths of a tanh network, if that is what it is.
    """

    name: str
    expressions: tuple[str, ...]
    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    output: str
    columns: dict[str, Array]
    target: Array
    start: Array
    layers: tuple[int, ...] = ()

    @property
    def samples(self) -> int:
        return len(self.target)

    @cached_property
    def graph(self) -> cgprimer.ExpressionGraph:
        graph = cgprimer.parse("\n".join(self.expressions))
        assert graph.parameters == self.parameters, "everyone relies on their order"
        return graph

    @cached_property
    def operations(self) -> int:
        """Operations of the primal, the loss not counted."""
        return len(cgprimer.tape(self.graph))

    @property
    def dataset(self) -> cgprimer.Dataset:
        return cgprimer.Dataset.from_arrays(self.columns, {self.output: self.target})

    @property
    def start_by_name(self) -> dict[str, float]:
        return dict(zip(self.parameters, self.start.tolist(), strict=True))

    def head(self, samples: int) -> Workload:
        """The same with the first samples only."""
        columns = {name: column[:samples] for name, column in self.columns.items()}
        short = replace(self, columns=columns, target=self.target[:samples])
        for known in ("graph", "operations"):
            if known in self.__dict__:
                short.__dict__[known] = self.__dict__[known]
        return short

    @cached_property
    def function(self) -> Callable[[Any, Sequence[Any], Sequence[Any]], Any]:
        """The graph as a Python function ``f(m, inputs, parameters)``, as one would write it.

        ``m`` has sin, exp and tanh: numpy, torch, jax.numpy, casadi, ...
        """
        return as_function(self.expressions, self.inputs, self.parameters, self.output)

    def points(self, dtype: str) -> Array:
        """Inputs as rows of points, shape (samples, inputs)."""
        return np.ascontiguousarray(np.stack(list(self.columns.values()), axis=1), dtype=dtype)

    def matrices(self, values: Array) -> list[tuple[Array, Array]]:
        """A network's parameters as weights (out, in) and biases (out,), layer by layer."""
        found, begin = [], 0
        for before, after in pairwise(self.layers):
            block = values[begin : begin + after * (before + 1)].reshape(after, before + 1)
            begin += block.size
            found.append((block[:, :-1].copy(), block[:, -1].copy()))
        return found

    def vector(self, matrices: Sequence[tuple[Array, Array]]) -> Array:
        """The other way round: weights and biases to parameters in their order."""
        blocks = [np.hstack([w, np.reshape(b, (-1, 1))]).ravel() for w, b in matrices]
        return np.concatenate(blocks).astype(np.float64)


def as_function(
    expressions: Sequence[str], inputs: Sequence[str], parameters: Sequence[str], output: str
) -> Callable[[Any, Sequence[Any], Sequence[Any]], Any]:
    """Expressions as a Python function."""
    body = [
        re.sub(r"\b(sin|exp|tanh)\(", r"m.\1(", line.replace("^", "**")) for line in expressions
    ]
    lines = [
        "def f(m, inputs, parameters):",
        f"    {', '.join(inputs)}, = inputs",
        f"    {', '.join(parameters)}, = parameters",
        *(f"    {line}" for line in body),
        f"    return {output}",
    ]
    space: dict[str, Any] = {}
    exec("\n".join(lines), space)  # noqa: S102 - the text is made above, from our own workloads
    return space["f"]


def _evaluate(work: Workload, values: Array) -> Array:
    """The output at given parameters, a few samples at a time: Python keeps every intermediate."""
    block = max(1, 20_000_000 // max(1, sum(line.count("*") + 2 for line in work.expressions)))
    parts = [
        work.function(
            np, [c[begin : begin + block] for c in work.columns.values()], values.tolist()
        )
        for begin in range(0, work.samples, block)
    ]
    return np.concatenate([np.atleast_1d(part) for part in parts])


def lecture(samples: int) -> Workload:
    """W1: the lecture DAG."""
    graph = cgprimer.parse("\n".join(LECTURE))
    data = cgprimer.make_dataset(graph, truth=LECTURE_TRUTH, samples=samples)
    names = graph.parameters
    return Workload(
        "W1", LECTURE, ("xa",), names, "xw", dict(data.inputs), data.targets["xw"],
        np.array([LECTURE_START[name] for name in names]),
    )  # fmt: skip


def network(name: str, layers: tuple[int, ...], samples: int) -> Workload:
    """A network with tanh between linear layers, written as one scalar expression per unit."""
    expressions: list[str] = []
    names: list[str] = []
    before = inputs = [f"xin{i}" for i in range(layers[0])]
    for layer, width in enumerate(layers[1:], start=1):
        after = []
        for unit in range(width):
            weights = [f"w{layer}_{unit}_{i}" for i in range(len(before))]
            products = [f"{w}*{x}" for w, x in zip(weights, before, strict=True)]
            total = " + ".join([*products, f"b{layer}_{unit}"])
            after.append(f"xh{layer}_{unit}" if layer < len(layers) - 1 else "xout")
            last = layer == len(layers) - 1
            expressions.append(f"{after[-1]} = {total}" if last else f"{after[-1]} = tanh({total})")
            names += [*weights, f"b{layer}_{unit}"]
        before = after
    random = np.random.default_rng(1)
    columns = {x: random.uniform(-1.0, 1.0, samples) for x in inputs}

    def draw() -> Array:
        blocks = [
            random.normal(size=(after, before + 1)) / np.sqrt(before + 1)
            for before, after in pairwise(layers)
        ]
        return np.concatenate([block.ravel() for block in blocks])

    truth, start = draw(), draw()
    work = Workload(
        name, tuple(expressions), tuple(inputs), tuple(names), "xout", columns,
        np.zeros(samples), start, layers,
    )  # fmt: skip
    hidden = work.points("float64")
    for layer, (weights, bias) in enumerate(work.matrices(truth)):
        hidden = (np.tanh(hidden) if layer else hidden) @ weights.T + bias
    work.target = np.ascontiguousarray(hidden[:, 0])
    return work


def random_graph(operations: int, samples: int) -> Workload:
    """rN: a random DAG of N mixed operations."""
    expressions, inputs, parameters = random_expressions(operations)
    # In the order in which a graph lists them: of appearance.
    seen = re.findall(r"\bp\d+\b", "\n".join(expressions))
    parameters = sorted(parameters, key={p: i for i, p in reversed(list(enumerate(seen)))}.get)
    random = np.random.default_rng(2)
    name = f"r{operations // 1_000_000}M" if operations % 1_000_000 == 0 else f"r{operations}"
    if operations % 1000 == 0 and operations < 1_000_000:
        name = f"r{operations // 1000}k"
    output = expressions[-1].partition(" ")[0]
    work = Workload(
        name, tuple(expressions), tuple(inputs), tuple(parameters), output,
        {x: random.uniform(-1.0, 1.0, samples) for x in inputs},
        np.zeros(samples), random.uniform(-1.0, 1.0, len(parameters)),
    )  # fmt: skip
    # Noise of size 1 keeps the error away from 0, where loss and gradient would be all rounding.
    work.target = _evaluate(work, work.start) + random.normal(size=samples)
    return work


# Name: (how to make it, samples, samples for --quick; 0 leaves it out there)
WORKLOADS: dict[str, tuple[Callable[[int], Workload], int, int]] = {
    "W1": (lecture, 1_000_000, 20_000),
    "M1": (lambda n: network("M1", (4, 8, 8, 1), n), 200_000, 2_000),
    "M2": (lambda n: network("M2", (16, 32, 32, 1), n), 50_000, 200),
    "r100": (lambda n: random_graph(100, n), 10_000, 1_000),
    "r1k": (lambda n: random_graph(1_000, n), 10_000, 200),
    "r10k": (lambda n: random_graph(10_000, n), 10_000, 0),
    "r100k": (lambda n: random_graph(100_000, n), 1_000, 0),
    "N64": (lambda n: network("N64", (64, 128, 128, 1), n), 10_000, 0),
}
TITLES = {
    "W1": "lecture DAG",
    "M1": "4-8-8-1 tanh network",
    "M2": "16-32-32-1 tanh network",
    "N64": "64-128-128-1 tanh network",
}


def make_workload(name: str, *, quick: bool = False, samples: int | None = None) -> Workload:
    """A workload by name, with its usual number of samples unless told otherwise."""
    make, usual, few = WORKLOADS[name]
    return make(samples or (few if quick and few else usual))
