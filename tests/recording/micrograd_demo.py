"""A network of single neurons as micrograd's demo trains one: only the import of Value differs."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable
from typing import Any


class Neuron:
    def __init__(self, kind: Any, inputs: int, *, bends: bool) -> None:
        self.w = [kind(random.uniform(-1, 1)) for _ in range(inputs)]
        self.b, self.bends = kind(0), bends

    def __call__(self, x: Iterable[Any]) -> Any:
        act = sum((wi * xi for wi, xi in zip(self.w, x, strict=True)), self.b)
        return act.relu() if self.bends else act


class Network:
    def __init__(self, kind: Any, sizes: list[int]) -> None:
        pairs = list(itertools.pairwise(sizes))
        self.layers = [
            [Neuron(kind, n, bends=i < len(pairs) - 1) for _ in range(m)]
            for i, (n, m) in enumerate(pairs)
        ]

    def __call__(self, x: list[Any]) -> Any:
        for layer in self.layers:
            x = [neuron(x) for neuron in layer]
        return x[0]

    def parameters(self) -> list[Any]:
        return [p for layer in self.layers for n in layer for p in [*n.w, n.b]]

    def zero_grad(self) -> None:
        for p in self.parameters():
            p.grad = 0


def trained(kind: Any, steps: int = 4) -> tuple[list[float], list[float], Network]:
    """Losses, and the parameters after the last step: a margin loss and weight decay."""
    random.seed(1337)
    model = Network(kind, [2, 8, 8, 1])
    points = [(math.cos(i) + i % 2, math.sin(2.1 * i)) for i in range(12)]
    labels = [1 if i % 2 else -1 for i in range(12)]
    losses = []
    for k in range(steps):
        inputs = [list(map(kind, point)) for point in points]
        scores = list(map(model, inputs))
        margins = [(1 + -yi * si).relu() for yi, si in zip(labels, scores, strict=True)]
        data_loss = sum(margins) * (1.0 / len(margins))
        reg_loss = 1e-4 * sum(p * p for p in model.parameters())
        total = data_loss + reg_loss
        model.zero_grad()
        total.backward()
        rate = 1.0 - 0.9 * k / 100
        for p in model.parameters():
            p.data -= rate * p.grad
        losses.append(total.data)
    return losses, [p.data for p in model.parameters()], model


def ancestors(root: Any) -> tuple[set[Any], set[tuple[Any, Any]]]:
    """Nodes and edges as micrograd's drawing finds them."""
    nodes, edges = set(), set()

    def build(v: Any) -> None:
        if v not in nodes:
            nodes.add(v)
            for child in v._prev:
                edges.add((child, v))
                build(child)

    build(root)
    return nodes, edges
