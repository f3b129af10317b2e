"""Recording running Python: a loop of numbers, a training step of arrays, and computing again."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from cgprimer import Function, Value, checkpoint, memory, no_grad, record
from cgprimer.core.graph import parse
from cgprimer.training.data import Dataset
from cgprimer.training.objective import Objective
from cgprimer.training.optimizers import SGD

from ..measuring import Entry, Result, Row, add_ratios, contest
from ..settings import Settings, quietly

SINGLE = np.float32
TEXT = """
input x[784]; parameter W1[784,128], b1[128], W2[128,10], b2[10]
h = relu(x @ W1 + b1)
y = h @ W2 + b2
output y
"""
NOTE = "with Python's collector of garbage, as in any program"


def recorded(settings: Settings) -> list[Row]:
    """Our values beside micrograd and autograd, and beside PyTorch."""
    rows = loop(5_000 if not settings.quick else 100, settings)
    rows += training_step(settings)
    return rows + computed_again(settings)


def _collecting(run: Callable[[], Any]) -> Callable[[], Any]:
    """A run with the collector of garbage, which the others are measured without."""

    def collected() -> Any:
        gc.enable()
        try:
            return run()
        finally:
            gc.disable()

    return collected


def loop(turns: int, settings: Settings) -> list[Row]:
    """``x = x*b + a``, recorded and differentiated: two operations in each turn."""

    def by_values(kind: Callable[[], Any]) -> Callable[[], Entry]:
        def make() -> Entry:
            value = kind()

            def run() -> Result:
                a, b, x = value(0.5), value(0.999), value(0.1)
                for _ in range(turns):
                    x = x * b + a
                x.backward()
                return x.data, np.array([a.grad, b.grad])

            return Entry(_collecting(run), lambda found: found, note=NOTE)

        return make

    def micrograd() -> Any:
        from micrograd.engine import Value as Theirs

        sys.setrecursionlimit(max(sys.getrecursionlimit(), 40 * turns))  # it recurses
        return Theirs

    def autograd() -> Entry:
        from autograd import value_and_grad

        def function(parameters: Any) -> Any:
            x = 0.1
            for _ in range(turns):
                x = x * parameters[1] + parameters[0]
            return x

        both = value_and_grad(function)
        return Entry(_collecting(lambda: both((0.5, 0.999))), lambda f: (f[0], np.array(f[1])),
                     note=NOTE)  # fmt: skip

    def expected(part: int | None) -> Result:
        x, da, db = 0.1, 0.0, 0.0
        for _ in range(turns):
            x, da, db = x * 0.999 + 0.5, da * 0.999 + 1.0, db * 0.999 + x
        return x, np.array([da, db])

    makers = {"cgprimer": by_values(lambda: Value), "micrograd": by_values(micrograd),
              "HIPS autograd": autograd}  # fmt: skip
    found: list[Row] = []

    def work() -> None:
        found.extend(
            contest("recorded", f"a loop of {2 * turns:,} operations", makers, expected,
                    budget=settings.budget, progress=quietly)
        )  # fmt: skip

    threading.stack_size(512 * 1024 * 1024)  # for micrograd's recursion
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    threading.stack_size(0)
    for row in found:
        if row.seconds is not None:  # the median: where the collector runs is chance
            row.seconds = row.median
            row.extra["us per operation"] = row.seconds / (2 * turns) * 1e6
    add_ratios(found, lambda row: row.who == "micrograd")
    return found


def training_step(settings: Settings) -> list[Row]:
    """One step of 784-128-10 with ReLU and cross-entropy, batch 64, single precision."""
    random = np.random.default_rng(0)
    x = random.normal(size=(64, 784)).astype(SINGLE)
    labels = random.integers(0, 10, 64)
    shapes = [(784, 128), (128,), (128, 10), (10,)]
    start = [(random.normal(size=s) / s[0] ** 0.5).astype(SINGLE) for s in shapes]
    flat = lambda grads: np.concatenate([np.ravel(g) for g in grads])  # noqa: E731

    def ours() -> Entry:
        parameters = w1, b1, w2, b2 = [Value(p) for p in start]
        inputs = Value(x, requires_grad=False)
        chosen = Value(np.eye(10, dtype=SINGLE)[labels], requires_grad=False)

        def step(rate: float = 1e-6) -> Any:
            out = (inputs @ w1 + b1).relu() @ w2 + b2
            loss = -(out.log_softmax(1) * chosen).sum() / 64
            for p in parameters:
                p.zero_grad()
            loss.backward()
            with no_grad():
                for p in parameters:
                    p -= rate * p.grad  # noqa: PLW2901
            return loss.item(), parameters

        return Entry(step, lambda found: (found[0], flat(p.grad for p in found[1])))

    def network(x: Any, W1: Any, b1: Any, W2: Any, b2: Any) -> Any:
        return np.maximum(x @ W1 + b1, 0.0) @ W2 + b2

    def compiled(graph: Any) -> Entry:
        loss = "-sum(target*log_softmax(out))/64"  # the mean of this batch
        objective = Objective(graph, loss=loss, dtype="float32", samples=64_000)
        classes = np.eye(10, dtype=SINGLE)[labels]
        columns = objective.columns(Dataset.from_arrays({"x": x}, {graph.outputs[0]: classes}))
        values = flat(start)

        def step(rate: float = 1e-6) -> Any:
            nonlocal values
            total, gradient = objective.sums(columns, values, 64)
            values, _ = SGD.update(values, gradient, (), rate)
            return total, gradient

        return Entry(step, lambda found: found)

    def torch() -> Entry:
        import torch

        parameters = w1, b1, w2, b2 = [torch.tensor(p, requires_grad=True) for p in start]
        inputs, targets = torch.tensor(x), torch.tensor(labels)

        def step(rate: float = 1e-6) -> Any:
            out = torch.relu(inputs @ w1 + b1) @ w2 + b2
            loss = torch.nn.functional.cross_entropy(out, targets)
            for p in parameters:
                p.grad = None
            loss.backward()
            with torch.no_grad():
                for p in parameters:
                    p -= rate * p.grad  # noqa: PLW2901
            return loss.item(), parameters

        return Entry(step, lambda found: (found[0], flat(p.grad.numpy() for p in found[1])))

    def numpy() -> Entry:
        w1, b1, w2, b2 = [p.copy() for p in start]
        chosen = np.eye(10, dtype=SINGLE)[labels]

        def step(rate: float = 1e-6) -> Any:
            z = x @ w1 + b1
            h = np.maximum(z, 0)
            out = h @ w2 + b2
            out -= out.max(1, keepdims=True)
            powers = np.exp(out)
            sums = powers.sum(1, keepdims=True)
            loss = (np.log(sums)[:, 0] - (out * chosen).sum(1)).mean()
            bar = (powers / sums - chosen) / SINGLE(64)
            below = bar @ w2.T
            below *= z > 0
            grads = x.T @ below, below.sum(0), h.T @ bar, bar.sum(0)
            for p, g in zip((w1, b1, w2, b2), grads, strict=True):
                p -= SINGLE(rate) * g  # noqa: PLW2901
            return loss, grads

        return Entry(step, lambda found: (found[0], flat(found[1])))

    def once() -> Any:
        return record(network, Value(x[0], requires_grad=False), *start).graph

    makers = {"cgprimer": ours, "cgprimer, recorded once": lambda: compiled(once()),
              "cgprimer, from text": lambda: compiled(parse(TEXT)), "torch eager": torch,
              "numpy by hand": numpy}  # fmt: skip
    reference: list[Result] = []

    def expected(part: int | None) -> Result:
        if not reference:
            entry = numpy()
            assert entry.read is not None
            reference.append(entry.read(entry.run()))
        return reference[0]

    rows = contest("recorded", "784-128-10, batch 64, a training step, float32", makers, expected,
                   budget=settings.budget, dtype="float32", tolerance=1e-3,
                   progress=quietly)  # fmt: skip
    torchs = any(r.seconds and "torch" in r.who for r in rows)
    add_ratios(rows, lambda row: row.who == ("torch eager" if torchs else "numpy by hand"))
    return rows


SIGNS = np.array([[1, -1, -1, -1], [1, 1, -1, 1], [1, 1, 1, -1], [1, -1, 1, 1]])
PARTS = np.array([[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]])


def real_matrix(parts: Any) -> Any:
    """The 4n x 4m matrix of 4nm weights."""
    rows = [np.concatenate([s * parts[i] for s, i in zip(*two, strict=True)], axis=1)
            for two in zip(SIGNS.tolist(), PARTS.tolist(), strict=True)]  # fmt: skip
    return np.concatenate(rows)


def hamilton(parts: Any, q: Any) -> Any:
    """A layer of quaternions."""
    return real_matrix(parts) @ q


class Layer(Function):
    """The same layer by hand: it saves weights and input, and makes the matrix again."""

    @staticmethod
    def forward(ctx: Any, parts: Any, q: Any) -> Any:
        ctx.save(parts, q)
        return hamilton(parts, q)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        parts, q = ctx.saved
        blocks = (grad @ q.T).reshape(4, parts.shape[1], 4, parts.shape[2])
        slopes = np.zeros_like(parts)
        for row, column in np.ndindex(4, 4):
            slopes[PARTS[row, column]] += SIGNS[row, column] * blocks[row, :, column]
        return slopes, real_matrix(parts).T @ grad


def computed_again(settings: Settings) -> list[Row]:
    """Six layers of quaternions that keep their matrices, and that make them again."""
    size = 16 if settings.quick else 64
    random = np.random.default_rng(0)
    layers = [Value(random.normal(size=(4, size, size)) / size**0.5 / 2) for _ in range(6)]
    start = Value(random.normal(size=(4 * size, 4 * size)), requires_grad=False)

    def run(layer: Any) -> Any:
        x = start
        for parts in layers:
            x = layer(parts, x).tanh()
        return (x * x).sum()

    def entry(layer: Any) -> Callable[[], Entry]:
        return lambda: Entry(lambda: run(layer).backward())

    kinds = {"keeps everything": hamilton, "computes again": checkpoint(hamilton),
             "a Function that makes the matrix again": Layer.apply}  # fmt: skip
    rows = contest("recorded", "six quaternion layers, forward and backward",
                   {name: entry(layer) for name, layer in kinds.items()}, None,
                   budget=settings.budget, progress=quietly)  # fmt: skip
    for row in rows:
        row.extra["MB kept"] = memory(run(kinds[row.who])).kept / 1e6
    add_ratios(rows, lambda row: row.who == "keeps everything")
    return rows
