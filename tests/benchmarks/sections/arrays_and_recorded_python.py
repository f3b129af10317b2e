"""Recorded Python functions, and networks that are written with matrices."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import cgprimer
from cgprimer import Dataset, ExpressionGraph, Value, checkpoint, no_grad, parse, record
from cgprimer.training.objective import Objective
from cgprimer.training.optimizers import SGD

from ..gradient_peers import jax_gradient, network_form, torch_gradient
from ..harness import THREADS, Array, Cell, Contestant, Result, Settings, measure, one_row_each
from ..report import PROGRAMS, Table, milliseconds

TEXT = (PROGRAMS / "relu_network.cg").read_text()
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

        sys.setrecursionlimit(max(sys.getrecursionlimit(), 40 * turns))  # it is recursive
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
    figures = measure(makers, budget, expected=(x, np.array([da, db])))
    sys.setrecursionlimit(limit)
    yield from one_row_each(figures, f"a loop of {operations:,} operations")


def _training_step(budget: float) -> Iterator[Cell]:
    """Yield the times of a step of 784-128-10 with ReLU and cross-entropy, in float32."""
    random, rate, n = np.random.default_rng(0), 1e-6, 64
    x = random.normal(size=(n, 784)).astype("float32")
    labels = random.integers(0, 10, n)
    classes = np.eye(10, dtype="float32")[labels]
    shapes = [(784, 128), (128,), (128, 10), (10,)]
    start = [(random.normal(size=s) / s[0] ** 0.5).astype("float32") for s in shapes]

    def flat(arrays: Any) -> Array:
        return np.concatenate([np.ravel(array) for array in arrays])

    def descend(parameters: Any) -> None:
        for p in parameters:
            p -= rate * p.grad  # noqa: PLW2901

    def with_values() -> Contestant:
        parameters = w1, b1, w2, b2 = [Value(p) for p in start]
        inputs, targets = (Value(v, requires_grad=False) for v in (x, classes))

        def step() -> Any:
            out = (inputs @ w1 + b1).relu() @ w2 + b2
            loss = -(out.log_softmax(1) * targets).sum() / n
            for p in parameters:
                p.zero_grad()
            loss.backward()
            with no_grad():
                descend(parameters)
            return loss.item(), [p.grad for p in parameters]

        return Contestant(step, lambda result: (result[0], flat(result[1])))

    def network(x: Any, W1: Any, b1: Any, W2: Any, b2: Any) -> Any:
        return np.maximum(x @ W1 + b1, 0.0) @ W2 + b2

    def with_graph(graph: ExpressionGraph) -> Contestant:
        loss = f"-sum(target*log_softmax(out))/{n}"  # the mean over the batch
        objective = Objective(graph, loss=loss, dtype="float32", samples=n * 1000)
        columns = objective.columns(Dataset.from_arrays({"x": x}, {graph.outputs[0]: classes}))
        values = flat(start)

        def step() -> Any:
            nonlocal values
            loss, gradient = objective.sums(columns, values, n)
            values, _ = SGD.update(values, gradient, (), rate)
            return loss, gradient

        return Contestant(step, lambda result: result)

    def with_torch() -> Contestant:
        import torch

        torch.set_num_threads(THREADS)
        parameters = w1, b1, w2, b2 = [torch.tensor(p, requires_grad=True) for p in start]
        inputs, targets = torch.tensor(x), torch.tensor(labels)

        def step() -> Any:
            out = torch.relu(inputs @ w1 + b1) @ w2 + b2
            loss = torch.nn.functional.cross_entropy(out, targets)
            for p in parameters:
                p.grad = None
            loss.backward()
            with torch.no_grad():
                descend(parameters)
            return loss.item(), [p.grad for p in parameters]

        return Contestant(step, lambda result: (result[0], flat(result[1])))

    sample = Value(x[0], requires_grad=False)
    makers = {
        "cgprimer": with_values,
        "cgprimer, recorded once": partial(with_graph, record(network, sample, *start).graph),
        "cgprimer, from text": partial(with_graph, parse(TEXT)),
        "torch eager": with_torch,
    }
    expected = with_graph(parse(TEXT)).result()
    figures = measure(makers, budget, expected=expected, tolerance=1e-3)
    yield from one_row_each(figures, "784-128-10, batch 64, a training step, float32")


def _network(sizes: tuple[int, ...], samples: int, budget: float) -> Iterator[Cell]:
    """Yield the times of loss and gradient of a network with tanh between its layers."""
    random = np.random.default_rng(0)
    graph = cgprimer.networks.mlp(sizes)
    x, y = random.uniform(-1, 1, (samples, sizes[0])), random.normal(size=(samples, sizes[-1]))
    start = [np.reshape(graph.values[name], graph.shapes[name]) for name in graph.parameters]
    form = network_form(start, x, y)

    def prepare_engine(engine: str) -> Contestant:
        objective = Objective(graph, engine=engine, samples=samples * 1000)
        columns = objective.columns(Dataset.from_arrays({"x": x}, {graph.outputs[0]: y}))
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
    yield from one_row_each(figures, label, table=1)


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
