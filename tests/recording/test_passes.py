"""Backward passes that are kept give what walking step by step gives."""

from __future__ import annotations

from collections.abc import Callable
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


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_same_pass_again(name: str, dtype: Any) -> None:
    cached_passes._passes_by_structure.clear()
    cached_passes._recent.clear()
    random = np.random.default_rng(0)
    for _ in range(4):
        given = [Value(random.normal(size=s).astype(dtype)) for s in ((4, 5), (5,))]
        with_steps = []
        for kept in (True, False):
            if not kept:
                before, cached_passes._MAX_VALUES = cached_passes._MAX_VALUES, 0
            try:
                for value in given:
                    value.zero_grad()
                FUNCTIONS[name](*given).backward()
            finally:
                if not kept:
                    cached_passes._MAX_VALUES = before
            with_steps.append([value.grad for value in given])
        for ours, theirs in zip(*with_steps, strict=True):
            assert ours.dtype == theirs.dtype == dtype
            np.testing.assert_allclose(ours, theirs, 1e-6 if dtype == np.float32 else 1e-13)
    assert any(
        isinstance(p, cached_passes.CachedPass) for p in cached_passes._passes_by_structure.values()
    )


def _alike_but(kind: str) -> Callable[[int], Any]:
    """Graphs that begin as the one before, and differ in one thing every second time."""

    def function(turn: int) -> Any:
        odd = bool(turn % 2)
        x, y = Value([1.0 + turn, 2.0], name="x"), Value([3.0, 4.0], name="y")
        if kind == "shared":
            return (x * (x if odd else y)).sum(), x, y
        if kind == "computed twice":
            once = x * y
            return (once * (once if odd else x * y)).sum(), x, y
        if kind == "constant":
            return (x * y * (2.0 if odd else 3.0)).sum(), x, y
        if kind == "sign of zero":
            return (x * y * (-0.0 if odd else 0.0)).sum(), x, y
        if kind == "shape":
            y = Value([3.0] if odd else [3.0, 4.0])
            return (x * y).sum(), x, y
        if kind == "given":
            one, other = np.array([1.5, 2.0 + turn]), np.array([3.0, 1.25])
            if odd:
                return ((x * one) ** Value(other, requires_grad=False)).sum(), x, y
            return ((x * Value(one, requires_grad=False)) ** other).sum(), x, y
        if kind == "not wanted":
            y.requires_grad = odd
            return (x * y).sum(), x, y
        first, second = (x * 2.0, y * 3.0) if odd else reversed((y * 3.0, x * 2.0))
        return (first * second).sum(), x, y  # the order in which they were computed

    return function


@pytest.mark.parametrize(
    "kind", ["shared", "computed twice", "constant", "sign of zero", "shape",
             "given",
             "not wanted", "order"],
)  # fmt: skip
def test_a_pass_is_not_taken_for_another(kind: str) -> None:
    function = _alike_but(kind)
    for turn in (*range(8), 1, 1, 1, 0, 0, 0, 1):
        loss, x, y = function(turn)
        before, cached_passes._MAX_VALUES = cached_passes._MAX_VALUES, 0
        recent, kept = dict(cached_passes._recent), cached_passes._passes_by_structure.copy()
        cached_passes._recent.clear()
        loss.backward(retain_graph=True)
        cached_passes._MAX_VALUES = before
        cached_passes._recent.update(recent)
        cached_passes._passes_by_structure.update(kept)
        wanted = [np.copy(v.grad) if v.requires_grad else None for v in (x, y)]
        x.zero_grad(), y.zero_grad()
        loss.backward()
        for value, right in zip((x, y), wanted, strict=True):
            assert str(value.grad) == str(right)  # signs of zeros, too


def test_a_recent_pass_notices_what_was_changed_or_freed() -> None:
    def loss_of(x: Value) -> Value:
        inner = x * x
        total = (inner * 2.0).sum()
        total.inner = inner  # type: ignore[attr-defined]
        return total

    x = Value([1.0, 2.0], name="x")
    for _ in range(3):
        loss_of(x).backward()
    assert cached_passes._recent
    loss = loss_of(x)
    x.data = [7.0, 2.0]
    with refused(DifferentiationError, "'x'"):
        loss.backward()
    loss = loss_of(x)
    with no_grad():
        loss.inner -= 7.0  # type: ignore[attr-defined]
    with refused(DifferentiationError):
        loss.backward()
    loss = loss_of(x)
    loss.backward()
    with refused(DifferentiationError):
        loss.backward()
    y = Value([3.0, 4.0], name="y")
    for _ in range(3):
        doubled, trebled = x * 2.0, y * y
        (doubled * trebled).sum().backward()
    trebled = y * y  # in another order, and changed in between
    y.data = [9.0, 4.0]
    doubled = x * 2.0
    with refused(DifferentiationError, "'y'"):
        (doubled * trebled).sum().backward()


def test_a_parameter_that_is_changed_takes_nobodys_array() -> None:
    w, step = Value(np.ones((4, 5))), np.full((4, 5), 0.25)
    held = w.data
    with no_grad():
        w -= 2.0 * step
        assert held is w.data
        assert held[0, 0] == 0.5  # who has the array sees the change
        del held
        w -= 1.0 * step
        w -= step
        Value.__isub__(w, step)  # not by an operator
        steps = [step]
        w -= steps[0]
        w -= step[::-1]
        w -= np.asfortranarray(step)
    assert step.tolist() == np.full((4, 5), 0.25).tolist()
    assert w.data.tolist() == np.full((4, 5), -1.0).tolist()
    step[0, 0] = 9.0
    assert w.data[0, 0] == -1.0
