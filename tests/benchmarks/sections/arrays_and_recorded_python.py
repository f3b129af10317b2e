"""Recorded Python functions, and networks that are written with matrices."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

import cgprimer
from cgprimer import Dataset, ExpressionGraph, Value, checkpoint, no_grad, parse, record
from cgprimer.training.objective import Objective
from cgprimer.training.optimizers import SGD

from ..gradient_peers import jax_gradient, network_form, torch_gradient
from ..harness import THREADS, Array, Cell, Contestant, Result, Settings, measure, one_row_each
from ..report import Table, milliseconds

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


TABLES = (
    Table(("function", "contestant"), {"time": milliseconds}),
    Table(("network and samples", "contestant"), {"time": milliseconds}),
)
NETWORKS = (
    ((4, 8, 8, 1), 50),
    ((64, 128, 128, 1), 50),
    ((64, 128, 128, 1), 10_000),
    ((784, 128, 10), 50),
)


def measure_cells(settings: Settings) -> Iterator[Cell]:
    yield from _loop(100 if settings.quick else 10_000, settings.budget)
    yield from _training_step(settings.budget)
    yield from _quaternion_layers(8 if settings.quick else 64, settings.budget)
    for sizes, samples in NETWORKS[:1] if settings.quick else NETWORKS:
        yield from _network(sizes, samples, settings.budget)


def _loop(operations: int, budget: float) -> Iterator[Cell]:
    """Yield the times of ``x = x*b + a`` in a loop, recorded and differentiated."""
    turns = operations // 2

    def repeat(x: Any, a: Any, b: Any) -> Any:
        for _ in range(turns):
            x = x * b + a
        return x

    def with_values(load: Callable[[], Any]) -> Contestant:
        value = load()

        def run() -> Result:
            gc.enable()  # many objects are created, and their collection is a part of the time
            a, b = value(0.5), value(0.999)
            x = repeat(value(0.1), a, b)
            x.backward()
            return x.data, np.array([a.grad, b.grad])

        return Contestant(run, lambda result: result)

    def load_micrograd() -> Any:
        from micrograd.engine import Value as MicrogradValue

        sys.setrecursionlimit(max(sys.getrecursionlimit(), 40 * turns))
        return MicrogradValue

    def with_autograd() -> Contestant:
        from autograd import value_and_grad

        gradient = value_and_grad(lambda p: repeat(0.1, p[0], p[1]))

        def run() -> Any:
            gc.enable()
            return gradient((0.5, 0.999))

        return Contestant(run, lambda result: (result[0], np.array(result[1])))

    x, da, db = 0.1, 0.0, 0.0
    for _ in range(turns):
        x, da, db = x * 0.999 + 0.5, da * 0.999 + 1.0, db * 0.999 + x
    makers = {
        "cgprimer": partial(with_values, lambda: Value),
        "micrograd": partial(with_values, load_micrograd),
        "HIPS autograd": with_autograd,
    }
    limit = sys.getrecursionlimit()
    threading.stack_size(512 * 1024 * 1024)  # micrograd is recursive
    with ThreadPoolExecutor(1) as thread:
        expected = x, np.array([da, db])
        figures = thread.submit(measure, makers, budget, expected=expected).result()
    threading.stack_size(0)
    sys.setrecursionlimit(limit)
    yield from one_row_each(figures, f"a loop of {operations:,} operations")


def _training_step(budget: float) -> Iterator[Cell]:
    step = TrainingStep()
    makers = {
        "cgprimer": step.prepare_values,
        "cgprimer, recorded once": step.prepare_recorded,
        "cgprimer, from text": step.prepare_text,
        "torch eager": step.prepare_torch,
    }
    figures = measure(makers, budget, expected=step.prepare_text().result(), tolerance=1e-3)
    yield from one_row_each(figures, "784-128-10, batch 64, a training step, float32")


def _network(sizes: tuple[int, ...], samples: int, budget: float) -> Iterator[Cell]:
    """Yield the times of loss and gradient of a network with tanh between its layers."""
    random = np.random.default_rng(0)
    start: dict[str, Array] = {}
    declarations, expressions, depth = [], ["h0 = x"], len(sizes) - 1
    for k, (n, m) in enumerate(pairwise(sizes), start=1):
        start[f"W{k}"], start[f"b{k}"] = random.normal(size=(m, n)) / n**0.5, random.normal(size=m)
        declarations.append(f"W{k}[{m},{n}], b{k}[{m}]")
        layer = f"W{k} @ {f'h{k - 1}' if k > 1 else 'x'} + b{k}"
        expressions.append(f"h{k} = tanh({layer})" if k < depth else f"y = {layer}")
    header = f"input x[{sizes[0]}]; parameter {', '.join(declarations)}"
    graph = cgprimer.parse("\n".join([header, *expressions[1:], "output y"]))
    x, y = random.uniform(-1, 1, (samples, sizes[0])), random.normal(size=(samples, sizes[-1]))
    form = network_form(list(start.values()), x, y)

    def prepare_engine(engine: str) -> Contestant:
        objective = Objective(graph, engine=engine, samples=samples * 1000)
        columns = objective.columns(cgprimer.Dataset.from_arrays({"x": x}, {"y": y}))
        values = form.vector(form.start)
        return Contestant(lambda: objective.sums(columns, values, samples), lambda r: r)

    makers = {
        "cgprimer": partial(prepare_engine, "auto"),
        "cgprimer, arrays": partial(prepare_engine, "plain"),
        "cgprimer, in numbers": partial(prepare_engine, "cpu"),
        "torch eager": partial(torch_gradient, form),
        "jax": partial(jax_gradient, form),
    }
    if sizes[0] > 4:  # the engine cpu also runs large networks with arrays
        del makers["cgprimer, in numbers"]
    label = f"{'-'.join(map(str, sizes))}, {samples:,} samples"
    figures = measure(makers, budget, expected=prepare_engine("plain").result())
    for cell in one_row_each(figures, label):
        cell.table = 1
        yield cell


SIGNS = np.array([[1, -1, -1, -1], [1, 1, -1, 1], [1, 1, 1, -1], [1, -1, 1, 1]])
PARTS = np.array([[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]])


def quaternion_matrix(parts: Any) -> Any:
    """Return the real matrix (4n, 4m) of quaternion weights (4, n, m)."""
    rows = [
        np.concatenate([sign * parts[part] for sign, part in zip(*row, strict=True)], axis=1)
        for row in zip(SIGNS.tolist(), PARTS.tolist(), strict=True)
    ]
    return np.concatenate(rows)


def quaternion_layer(parts: Any, q: Any) -> Any:
    """Return a linear layer of quaternions."""
    return quaternion_matrix(parts) @ q


def _quaternion_layers(size: int, budget: float) -> Iterator[Cell]:
    random = np.random.default_rng(0)
    layers = [Value(random.normal(size=(4, size, size)) / size**0.5 / 2) for _ in range(6)]
    start = Value(random.normal(size=(4 * size, 4 * size)), requires_grad=False)

    def prepare(layer: Callable[[Any, Any], Any]) -> Contestant:
        def run() -> Any:
            x = start
            for parts in layers:
                parts.zero_grad()
                x = layer(parts, x).tanh()
            loss = (x * x).sum()
            loss.backward()
            return loss.item(), layers[0].grad

        return Contestant(run, lambda result: (result[0], np.ravel(result[1])))

    makers = {
        "keeps everything": partial(prepare, quaternion_layer),
        "computes again": partial(prepare, checkpoint(quaternion_layer)),
    }
    figures = measure(makers, budget, expected=prepare(quaternion_layer).result())
    yield from one_row_each(figures, "six quaternion layers, forward and backward")
