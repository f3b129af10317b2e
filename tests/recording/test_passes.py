"""Backward passes that are kept give what walking step by step gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cgprimer import Value, checkpoint
from cgprimer.recording import passes

X = np.linspace(-1.0, 2.0, 12).reshape(3, 4)


def _network(w: Any, b: Any) -> Any:
    out = np.tanh(X.astype(w.dtype) @ w + b)
    out = out - np.max(out.detach().data, axis=1, keepdims=True)
    return (np.log(np.exp(out).sum(1)) - out[:, 0] / 3.0).mean()


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "a network": _network,
    "repeated by numpy": lambda w, b: ((w * b) ** 2.0 + b).sum() / w.max(),
    "its own operand": lambda w, b: (w + w * 1.0 + b * 0.0).sum(),
    "one leaf is not reached": lambda w, b: (w * 3.0).relu().sum() + b.detach().sum(),
    "joined": lambda w, b: np.concatenate([w, w * b])[1:, [0, 1, 1]].sum(0).prod(),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_same_pass_again(name: str, dtype: Any) -> None:
    passes._kept.clear()
    passes._recent.clear()
    random = np.random.default_rng(0)
    for _ in range(4):
        given = [Value(random.normal(size=s).astype(dtype)) for s in ((4, 5), (5,))]
        with_steps = []
        for kept in (True, False):
            if not kept:
                before, passes._MOST_STEPS = passes._MOST_STEPS, 0
            try:
                for value in given:
                    value.zero_grad()
                FUNCTIONS[name](*given).backward()
            finally:
                if not kept:
                    passes._MOST_STEPS = before
            with_steps.append([value.grad for value in given])
        for ours, theirs in zip(*with_steps, strict=True):
            assert ours.dtype == theirs.dtype == dtype
            np.testing.assert_allclose(ours, theirs, 1e-6 if dtype == np.float32 else 1e-13)
    assert any(isinstance(p, passes.KeptPass) for p in passes._kept.values())


def test_numbers_on_the_way_and_constants_that_change() -> None:
    for rate in (1.0, 2.0, 2.0, 2.0, -0.0, 0.0):
        x = Value([1.0, 2.0])
        total = x.sum()
        (total * rate * total).backward()
        assert total.grad == 6.0 * rate
        assert x.grad.tolist() == [6.0 * rate, 6.0 * rate]


def test_gradients_are_nobody_elses_arrays_and_add_up() -> None:
    for _ in range(3):
        w, x = Value([1.0, 2.0]), Value([3.0, 4.0])
        loss = (w * x).sum()
        loss.backward(retain_graph=True)
        loss.backward()
        assert w.grad.tolist() == [6.0, 8.0]
        w.grad[0] = 9.0
        assert (x.data[0], x.grad[0]) == (3.0, 2.0)


@pytest.mark.parametrize(
    "function",
    [
        checkpoint(lambda x: (x * x).sum()),  # runs Python in its pass
        lambda x: (x * np.array([1.0, 2.0], np.float32)).sum(),  # in two precisions
    ],
)
def test_what_is_not_kept(function: Callable[[Any], Any]) -> None:
    passes._kept.clear()
    passes._recent.clear()
    for _ in range(3):
        x = Value([1.0, 2.0])
        function(x).backward()
        assert x.grad.tolist() in ([2.0, 4.0], [1.0, 2.0])
    assert not any(isinstance(p, passes.KeptPass) for p in passes._kept.values())
    assert not any("custom" in str(part) for key in passes._kept for part in key)
