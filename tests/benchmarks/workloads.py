"""Graphs with data, in a form that every contestant can use.

The loss of a workload is the squared error, summed over the samples.
"""

from __future__ import annotations

import math
import random
import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

import cgprimer

from .harness import Array, Result

KINDS = ("add", "mul", "div", "pow", "sin", "exp", "tanh")
LARGEST = 3.0  # bound of the absolute values


def random_expressions(operations: int) -> list[str]:
    """Return expressions with an exact number of operations, about as many of each kind.

    Every expression has a bound of its absolute values, so that nothing overflows. Denominators
    are at least 0.5. The last expression, the only output, uses all others, four inputs and a
    parameter for 20 operations.
    """
    rng = random.Random(0)
    names = [f"xin{i}" for i in range(4)] + [f"p{i}" for i in range(max(4, operations // 20))]
    bounds = dict.fromkeys(names, 1.0)
    unused = deque(rng.sample(names, len(names)))
    width = max(4, operations // 60)  # the number of unused values, so the graph is 60 deep
    lines: list[str] = []
    counts = dict.fromkeys(KINDS, 0)
    tiny: set[str] = set()  # possible powers of powers, which could underflow
    sines: set[str] = set()  # a second sine of the same value would be shared, and not be counted

    def add(text: str, bound: float, *kinds: str) -> str:
        """Append an expression that applies the operations ``kinds``."""
        name = f"x{len(lines)}"
        lines.append(f"{name} = {text}")
        bounds[name] = bound
        names.append(name)
        unused.append(name)
        for kind in kinds:
            counts[kind] += 1
        return name

    # The sums at the end need one operation less than there are unused values.
    while (remaining := operations - sum(counts.values()) - len(unused) + 1) > 0:
        a = unused.popleft()
        b = unused[0] if len(unused) > width else rng.choice(names[-200:])
        size, other = bounds[a], bounds[b]
        candidates = {
            "tanh": (f"tanh({a})", 1.0),
            "sin": (f"sin({a})", 1.0),
            "exp": (f"exp({a})", math.exp(size)),
            "pow": (f"{a}^2", size**2),
            "add": (f"{a} + {b}", size + other),
            "mul": (f"{a}*{b}", size * other),
            "div": (f"{a}/(1.5 + sin({b}))", 2 * size),
        }
        possible = [
            kind
            for kind, (_, bound) in candidates.items()
            if bound <= LARGEST
            and not (kind == "pow" and a in tiny)
            and not (kind == "sin" and a in sines)
            and not (kind == "div" and (b in sines or remaining < 3))
        ]
        # The rarest kind is the most likely one.
        kind = min(possible, key=lambda kind: counts[kind] + 3 * rng.random())
        kinds = ("sin", "add", "div") if kind == "div" else (kind,)
        binary = kind in ("add", "mul", "div")
        if binary and unused and b == unused[0]:
            unused.popleft()
        if kind in ("sin", "div"):
            sines.add(a if kind == "sin" else b)
        name = add(*candidates[kind], *kinds)
        if kind == "pow" or (kind not in ("add", "exp") and tiny & ({a, b} if binary else {a})):
            tiny.add(name)
    while len(unused) > 1:
        a, b = unused.popleft(), unused.popleft()
        add(f"{a} + {b}", bounds[a] + bounds[b], "add")
    return lines


Function = Callable[[Any, Sequence[Any], Sequence[Any]], Any]
LECTURE = ("xx=xa^2", "xy=ab*xx+ac*xa", "xz=bc*xx+xy", "xw=cd*xx+xz^3")
LECTURE_TRUTH = {"ab": 1.0, "bc": 2.0, "cd": 3.0, "ac": 4.0}
LECTURE_START = {"ab": 0.3, "bc": 0.5, "cd": 0.1, "ac": 0.7}


@dataclass(eq=False)
class Workload:
    """A graph with data."""

    name: str  # the heading of its column in the tables
    expressions: tuple[str, ...]  # the graph, in the language of cgprimer
    inputs: tuple[str, ...]  # in the order in which contestants receive the values
    parameters: tuple[str, ...]  # in this order, too
    columns: dict[str, Array]  # for each input, its values in float64
    target: Array  # of the only output, the last expression
    start: Array  # the values of the parameters
    layers: tuple[int, ...] = ()  # the widths of a tanh network, empty for other graphs

    @property
    def samples(self) -> int:
        return len(self.target)

    @property
    def output(self) -> str:
        return self.expressions[-1].partition("=")[0].strip()

    @cached_property
    def graph(self) -> cgprimer.ExpressionGraph:
        graph = cgprimer.parse("\n".join(self.expressions))
        assert graph.parameters == self.parameters, "all contestants rely on the order"
        return graph

    @cached_property
    def operations(self) -> int:
        """The number of operations of the output, without the loss."""
        return len(cgprimer.tape(self.graph))

    @property
    def dataset(self) -> cgprimer.Dataset:
        return cgprimer.Dataset.from_arrays(self.columns, {self.output: self.target})

    @property
    def start_by_name(self) -> dict[str, float]:
        return dict(zip(self.parameters, self.start.tolist(), strict=True))

    @cached_property
    def function(self) -> Function:
        """The graph as a Python function of a module (numpy, torch, ...), inputs and parameters."""
        lines = [
            "def function(m, inputs, parameters):",
            f"    {', '.join(self.inputs)}, = inputs",
            f"    {', '.join(self.parameters)}, = parameters",
            *(f"    {line}" for line in self.expressions),
            f"    return {self.output}",
        ]
        text = re.sub(r"\b(sin|exp|tanh)\(", r"m.\1(", "\n".join(lines).replace("^", "**"))
        space: dict[str, Any] = {}
        exec(text, space)  # noqa: S102 - the text consists of the expressions of this file
        return space["function"]

    def head(self, samples: int | None) -> Workload:
        """Return the workload with only the first samples."""
        columns = {name: column[:samples] for name, column in self.columns.items()}
        part = replace(self, columns=columns, target=self.target[:samples])
        part.__dict__.update({k: v for k, v in self.__dict__.items() if k in ("graph", "function")})
        return part

    def points(self) -> Array:
        """Return an array with one row per sample."""
        return np.ascontiguousarray(np.stack(list(self.columns.values()), axis=1))

    def matrices(self, values: Array) -> list[tuple[Array, Array]]:
        """Return the parameters of a network as weights (out, in) and biases of its layers."""
        layers, begin = [], 0
        for before, after in pairwise(self.layers):
            block = values[begin : begin + after * (before + 1)].reshape(after, before + 1)
            begin += block.size
            layers.append((block[:, :-1].copy(), block[:, -1].copy()))
        return layers

    def vector(self, matrices: Sequence[tuple[Array, Array]]) -> Array:
        """Return weights and biases as one vector, in the order of the parameters."""
        blocks = [np.hstack([w, np.reshape(b, (-1, 1))]).ravel() for w, b in matrices]
        return np.concatenate(blocks).astype(float)

    def reference(self, samples: int | None = None) -> Result:
        """Return loss and gradient of the first samples, computed by the engine ``numpy``."""
        part = self.head(samples)
        call = cgprimer.loss_and_gradient(part.graph, part.dataset, engine="numpy")
        loss, gradient = call(part.start_by_name)
        return loss, np.array([gradient[name] for name in self.parameters])


def lecture(samples: int) -> Workload:
    """Create W1, the lecture graph."""
    graph = cgprimer.parse("\n".join(LECTURE))
    data = cgprimer.make_dataset(graph, truth=LECTURE_TRUTH, samples=samples)
    start = np.array([LECTURE_START[name] for name in graph.parameters])
    columns, target = dict(data.inputs), data.targets["xw"]
    return Workload("W1", LECTURE, ("xa",), graph.parameters, columns, target, start)


def network(name: str, layers: tuple[int, ...], samples: int) -> Workload:
    """Create a network with tanh between its layers, with one scalar expression per unit."""
    graph = cgprimer.networks.mlp(layers, scalars=True, values=False)
    expressions = re.findall(r"^x.*", str(graph), re.MULTILINE)
    random = np.random.default_rng(1)
    columns = {x: random.uniform(-1.0, 1.0, samples) for x in graph.inputs}
    truth, start = (
        np.concatenate([
            random.normal(size=after * (before + 1)) / np.sqrt(before + 1)
            for before, after in pairwise(layers)
        ])
        for _ in range(2)
    )  # fmt: skip
    work = Workload(
        name, tuple(expressions), graph.inputs, graph.parameters, columns, np.zeros(samples), start,
        layers,
    )  # fmt: skip
    hidden = work.points()
    for layer, (weights, bias) in enumerate(work.matrices(truth)):
        hidden = (np.tanh(hidden) if layer else hidden) @ weights.T + bias
    work.target = np.ascontiguousarray(hidden[:, 0])
    return work


def random_graph(name: str, operations: int, samples: int) -> Workload:
    expressions = random_expressions(operations)
    graph = cgprimer.parse("\n".join(expressions))
    random, inputs = np.random.default_rng(2), tuple(sorted(graph.inputs))
    work = Workload(
        name, tuple(expressions), inputs, graph.parameters,
        {x: random.uniform(-1.0, 1.0, samples) for x in inputs},
        np.zeros(samples), random.uniform(-1.0, 1.0, len(graph.parameters)),
    )  # fmt: skip
    # The function keeps all intermediate values, so it computes a few samples at a time.
    block = max(1, 20_000_000 // (3 * operations))
    outputs = [
        work.function(np, [c[i : i + block] for c in work.columns.values()], work.start.tolist())
        for i in range(0, samples, block)
    ]
    # Noise of size 1 keeps the loss away from 0, where only rounding errors would be compared.
    work.target = np.concatenate(outputs) + random.normal(size=samples)
    return work


# The name, how to create the workload, the number of samples, and that of a quick run.
_CREATORS: dict[str, tuple[Callable[[int], Workload], int, int]] = {
    "W1": (lecture, 1_000_000, 1_000),
    "M1": (lambda n: network("M1", (4, 8, 8, 1), n), 200_000, 100),
    "M2": (lambda n: network("M2", (16, 32, 32, 1), n), 50_000, 100),
    "r100": (lambda n: random_graph("r100", 100, n), 10_000, 100),
    "r1k": (lambda n: random_graph("r1k", 1_000, n), 10_000, 100),
    "r10k": (lambda n: random_graph("r10k", 10_000, n), 10_000, 100),
    "r100k": (lambda n: random_graph("r100k", 100_000, n), 1_000, 100),
    "N64": (lambda n: network("N64", (64, 128, 128, 1), n), 10_000, 100),
}
WORKLOADS = tuple(_CREATORS)


def create_workload(name: str, *, quick: bool = False, samples: int | None = None) -> Workload:
    """Return a workload with its usual number of samples, or with another one."""
    create, usual, few = _CREATORS[name]
    return create(samples or (few if quick else usual))
