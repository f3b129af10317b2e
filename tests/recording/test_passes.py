"""Backward passes that are kept give what walking step by step gives."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from cgprimer import Value, no_grad
from cgprimer.errors import DifferentiationError
from cgprimer.recording import cached_passes
from tests.approval import refused

X = np.linspace(-1.0, 2.0, 12).reshape(3, 4)


def _network(w: Any, b: Any) -> Any:
    out = np.tanh(X.astype(w.dtype) @ w + b)
    out = out - np.max(out.detach().data, axis=1, keepdims=True)
    return (np.log(np.exp(out).sum(1)) - out[:, 0] / 3.0).mean()


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "a network": _network,
    "a network of PyTorch's words": lambda w, b: (
        -((X.astype(w.dtype) @ w + b).log_softmax(1) * X[:, :1].astype(w.dtype)).sum() / 3
    ),
    "repeated by numpy": lambda w, b: ((w * b) ** 2.0 + b).sum() / w.max(),
    "its own operand": lambda w, b: (w + w * 1.0 + b * 0.0).sum(),
    "one leaf is not reached": lambda w, b: (w * 3.0).relu().sum() + b.detach().sum(),
    "joined": lambda w, b: np.concatenate([w, w * b])[1:, [0, 1, 1]].sum(0).prod(),
}


@contextlib.contextmanager
def step_by_step() -> Iterator[None]:
    """Keep no passes, and use none that are kept."""
    recent, cached_passes._recent = cached_passes._recent, {}
    largest, cached_passes._MAX_VALUES = cached_passes._MAX_VALUES, 0
    try:
        yield
    finally:
        cached_passes._recent, cached_passes._MAX_VALUES = recent, largest


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_same_pass_again(name: str, dtype: Any) -> None:
    cached_passes._passes_by_structure.clear()
    cached_passes._recent.clear()
    random = np.random.default_rng(0)
    for _ in range(4):
        leaves = [Value(random.normal(size=s).astype(dtype)) for s in ((4, 5), (5,))]
        gradients = []
        for context in (contextlib.nullcontext(), step_by_step()):
            for leaf in leaves:
                leaf.zero_grad()
            with context:
                FUNCTIONS[name](*leaves).backward()
            gradients.append([leaf.grad for leaf in leaves])
        for ours, theirs in zip(*gradients, strict=True):
            assert ours.dtype == theirs.dtype == dtype
            np.testing.assert_allclose(ours, theirs, 1e-6 if dtype == np.float32 else 1e-13)
    kept = cached_passes._passes_by_structure.values()
    assert any(isinstance(p, cached_passes.CachedPass) for p in kept)


def _computed_in_turn(odd: bool, x: Value, y: Value) -> Value:
    first, second = (x * 2.0, y * 3.0) if odd else reversed((y * 3.0, x * 2.0))
    return first * second


def _computed_twice(odd: bool, x: Value, y: Value) -> Value:
    once = x * y
    return once * (once if odd else x * y)


def _given(odd: bool, x: Value, y: Value) -> Value:
    base, exponent = x.data + 0.5, np.array([3.0, 1.25])
    if odd:
        return (x * base) ** Value(exponent, requires_grad=False)
    return (x * Value(base, requires_grad=False)) ** exponent


ALIKE: dict[str, Callable[[bool, Value, Value], Value]] = {
    "shared": lambda odd, x, y: x * (x if odd else y),
    "computed twice": _computed_twice,
    "constant": lambda odd, x, y: x * y * (2.0 if odd else 3.0),
    "sign of zero": lambda odd, x, y: x * y * (-0.0 if odd else 0.0),
    "shape": lambda odd, x, y: x * y,
    "given": _given,
    "not wanted": lambda odd, x, y: x * y,
    "order": _computed_in_turn,
}


@pytest.mark.parametrize("kind", ALIKE)
def test_a_pass_is_not_taken_for_another(kind: str) -> None:
    """Graphs begin as the one before, and differ in one thing every second time."""
    for turn in (*range(8), 1, 1, 1, 0, 0, 0, 1):
        odd = bool(turn % 2)
        x = Value([1.0 + turn, 2.0], name="x")
        y = Value([3.0] if odd and kind == "shape" else [3.0, 4.0], name="y")
        y.requires_grad = odd or kind != "not wanted"
        loss = ALIKE[kind](odd, x, y).sum()
        with step_by_step():
            loss.backward(retain_graph=True)
        expected = [np.copy(v.grad) if v.requires_grad else None for v in (x, y)]
        x.zero_grad(), y.zero_grad()
        loss.backward()
        assert [str(v.grad) for v in (x, y)] == [*map(str, expected)]  # signs of zeros, too


def test_a_recent_pass_notices_what_was_changed_or_freed() -> None:
    x, y = Value([1.0, 2.0], name="x"), Value([3.0, 4.0], name="y")

    def computed() -> tuple[Value, Value]:
        inner = x * x
        return inner, (inner * 2.0).sum()

    for _ in range(3):
        computed()[1].backward()
    assert cached_passes._recent
    _, loss = computed()
    x.data = [7.0, 2.0]
    with refused(DifferentiationError, "'x'"):
        loss.backward()
    inner, loss = computed()
    with no_grad():
        inner -= 7.0
    with refused(DifferentiationError):
        loss.backward()
    _, loss = computed()
    loss.backward()
    with refused(DifferentiationError):
        loss.backward()
    for _ in range(3):
        doubled, squared = x * 2.0, y * y
        (doubled * squared).sum().backward()
    squared = y * y  # in another order, and changed in between
    y.data = [9.0, 4.0]
    doubled = x * 2.0
    with refused(DifferentiationError, "'y'"):
        (doubled * squared).sum().backward()


def test_a_parameter_that_is_changed_takes_nobodys_array() -> None:
    w, step = Value(np.ones((4, 5))), np.full((4, 5), 0.25)
    with no_grad():
        w -= 1.0 * step
        w -= step
        Value.__isub__(w, step)  # not by an operator
        steps = [step]
        w -= steps[0]
        w -= step[::-1]
        w -= np.asfortranarray(step)
    assert step.tolist() == np.full((4, 5), 0.25).tolist()
    assert w.data.tolist() == np.full((4, 5), -0.5).tolist()
    step[0, 0] = 9.0
    assert w.data[0, 0] == -0.5
