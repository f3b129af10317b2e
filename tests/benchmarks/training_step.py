"""A training step in single precision, by cgprimer and other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

from cgprimer import Dataset, ExpressionGraph, Value, no_grad, parse, record
from cgprimer.training.objective import Objective
from cgprimer.training.optimizers import SGD

from .harness import THREADS, Array, Contestant

SINGLE = np.float32
RATE = 1e-6
BATCH = 64


def _flat(arrays: Any) -> Array:
    """Return the elements of several arrays as one vector."""
    return np.concatenate([np.ravel(array) for array in arrays])


class TrainingStep:
    """A training step of 784-128-10 with ReLU and cross-entropy, in single precision."""

    TEXT = """
    input x[784]; parameter W1[784,128], b1[128], W2[128,10], b2[10]
    h = relu(x @ W1 + b1)
    y = h @ W2 + b2
    output y
    """
    LOSS = f"-sum(target*log_softmax(out))/{BATCH}"  # the mean over the batch

    def __init__(self) -> None:
        random = np.random.default_rng(0)
        self.x = random.normal(size=(BATCH, 784)).astype(SINGLE)
        self.labels = random.integers(0, 10, BATCH)
        self.classes = np.eye(10, dtype=SINGLE)[self.labels]
        shapes = [(784, 128), (128,), (128, 10), (10,)]
        self.start = [(random.normal(size=s) / s[0] ** 0.5).astype(SINGLE) for s in shapes]

    def prepare_values(self) -> Contestant:
        """Prepare ``Value`` objects, which record the step each time."""
        parameters = w1, b1, w2, b2 = [Value(p) for p in self.start]
        inputs = Value(self.x, requires_grad=False)
        classes = Value(self.classes, requires_grad=False)

        def step() -> Any:
            out = (inputs @ w1 + b1).relu() @ w2 + b2
            loss = -(out.log_softmax(1) * classes).sum() / BATCH
            for p in parameters:
                p.zero_grad()
            loss.backward()
            with no_grad():
                for p in parameters:
                    p -= RATE * p.grad  # noqa: PLW2901
            return loss.item(), [p.grad for p in parameters]

        return Contestant(step, lambda result: (result[0], _flat(result[1])))

    def prepare_recorded(self) -> Contestant:
        """Prepare a graph that is recorded once."""

        def network(x: Any, W1: Any, b1: Any, W2: Any, b2: Any) -> Any:
            return np.maximum(x @ W1 + b1, 0.0) @ W2 + b2

        sample = Value(self.x[0], requires_grad=False)
        return self._prepare_graph(record(network, sample, *self.start).graph)

    def prepare_text(self) -> Contestant:
        return self._prepare_graph(parse(self.TEXT))

    def _prepare_graph(self, graph: ExpressionGraph) -> Contestant:
        objective = Objective(graph, loss=self.LOSS, dtype="float32", samples=BATCH * 1000)
        data = Dataset.from_arrays({"x": self.x}, {graph.outputs[0]: self.classes})
        columns = objective.columns(data)
        values = _flat(self.start)

        def step() -> Any:
            nonlocal values
            loss, gradient = objective.sums(columns, values, BATCH)
            values, _ = SGD.update(values, gradient, (), RATE)
            return loss, gradient

        return Contestant(step, lambda result: result)

    def prepare_torch(self) -> Contestant:
        import torch

        torch.set_num_threads(THREADS)
        parameters = w1, b1, w2, b2 = [torch.tensor(p, requires_grad=True) for p in self.start]
        inputs, targets = torch.tensor(self.x), torch.tensor(self.labels)

        def step() -> Any:
            out = torch.relu(inputs @ w1 + b1) @ w2 + b2
            loss = torch.nn.functional.cross_entropy(out, targets)
            for p in parameters:
                p.grad = None
            loss.backward()
            with torch.no_grad():
                for p in parameters:
                    p -= RATE * p.grad  # noqa: PLW2901
            return loss.item(), [p.grad for p in parameters]

        return Contestant(step, lambda result: (result[0], _flat(result[1])))
