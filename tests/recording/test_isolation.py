"""Values in several threads and after interrupts; names of PyTorch and micrograd."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cgprimer import Function, UsageError, Value, checkpoint, grad, no_grad, record
from cgprimer.recording.recording_state import State


def run_concurrently(*functions: Callable[[], Any]) -> list[Any]:
    """Return the results of functions that run concurrently with frequent thread switches."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(len(functions)) as pool:
            return [future.result() for future in [*map(pool.submit, functions)]]
    finally:
        sys.setswitchinterval(before)


def test_no_grad_is_thread_local() -> None:
    first, second, last = threading.Event(), threading.Event(), threading.Event()
    x = Value([1.0, 2.0])

    def early() -> bool:
        with no_grad():
            first.set()
            second.wait(5)
        last.set()
        return (x * x).requires_grad

    def late() -> bool:
        first.wait(5)
        recorded = (x * x).requires_grad  # while the other thread does not record
        with no_grad():
            second.set()
            last.wait(5)  # until the other thread has left no_grad()
            recorded = recorded and not (x * x).requires_grad
        return recorded and (x * x).requires_grad

    assert run_concurrently(early, late) == [True, True]
    assert (x * x).requires_grad
    assert State.fast_path


def test_concurrent_backward_accumulates_into_shared_parameters() -> None:
    w, table = Value(0.5), Value([0.5, 0.5])

    def train() -> float:
        for _ in range(150):
            own = y = Value(1.0)
            for _ in range(20):
                y = y * w + own
            y.backward()
            (table * 2.0).sum().backward()
        return own.grad

    slope = sum(0.5**i for i in range(21))
    assert run_concurrently(train, train, train) == [slope] * 3
    assert table.grad.tolist() == [900.0, 900.0]


def test_concurrent_grad_calls_are_independent() -> None:
    inside, done = threading.Event(), threading.Event()

    def outer(x: Any) -> Any:
        inside.set()
        done.wait(5)
        return x * x

    def beside() -> Any:
        inside.wait(5)
        result = grad(lambda x: x**3)(2.0)
        done.set()
        return result

    result = run_concurrently(lambda: grad(outer)(3.0), beside)
    assert result == [6.0, 12.0]
    assert [type(one) for one in result] == [float, float]


class Interrupted(BaseException):
    """Stands in for KeyboardInterrupt."""


def completes(work: Callable[[], Any], events: int) -> bool:
    """Return whether work completes before a number of profiling events, or interrupt it there.

    The events are calls and returns from C, where Python checks for signals.
    """

    def watch(frame: Any, event: str, arg: Any) -> None:
        nonlocal events
        events -= event in ("call", "c_return")
        if events < 0:
            raise Interrupted

    sys.setprofile(watch)
    try:
        work()
    except Interrupted:
        return False
    finally:
        sys.setprofile(None)
    return True


@pytest.mark.parametrize(
    "work",
    [
        lambda w, table: (w * w + w).backward(),
        lambda w, table: ((table @ table).tanh() ** 2).sum().backward(),
        lambda w, table: no_grad(lambda: table * 2.0)(),
        lambda w, table: grad(grad(lambda x: x**3))(2.0),
        lambda w, table: checkpoint(lambda x: (x @ x).sum())(table).backward(),
        lambda w, table: record(lambda x: x * x, 3.0),
    ],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupt_at_any_point_restores_state(work: Any) -> None:
    w, table = Value(0.5), Value(np.ones((3, 3)))
    errors = np.geterr()
    for _ in range(3):
        work(w, table)
    for events in count():
        finished = completes(lambda: work(w, table), events)
        here = State.thread
        assert (here.recording, here.with_lines, here.depth) == (True, False, 0)
        assert gc.isenabled()
        assert sys.gettrace() is None
        assert np.geterr() == errors
        w.grad = table.grad = None
        (w * w + w).backward()
        (table * table).sum().backward()
        assert (w.grad, table.grad.tolist()) == (2.0, [[2.0] * 3] * 3)
        if finished:
            break


def test_saved_arrays_are_freed_with_the_graph() -> None:
    class Times(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, by: float) -> Any:
            ctx.save(x * by)
            seen.append(weakref.ref(ctx.saved[0]))
            return x * by

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad, None

    def squared(x: Value) -> Value:
        seen.append(weakref.ref(x))
        return x * x

    seen: list[Any] = []
    gc.collect()
    gc.freeze()  # makes the second collection fast
    try:
        for turn in range(3):
            w = Value(np.ones(3))
            (Times.apply(w, float(turn)) + checkpoint(squared)(w * 2.0)).sum().backward()
        gc.collect()
        assert not any(array() is not None for array in seen)
    finally:
        gc.unfreeze()


X = Value(np.arange(6.0).reshape(2, 3) + 1.0)
NAMES = Path(__file__).with_name("pytorch_names.txt").read_text("utf-8").splitlines()[1:]


@pytest.mark.parametrize("calls", NAMES)
def test_pytorch_names_match_numpy(calls: str) -> None:
    torchs, numpys = (eval(f"lambda x: {call}", {"np": np}) for call in calls.split(" | "))  # noqa: S307
    made, data = torchs(X), numpys(X.data)
    np.testing.assert_allclose(made.data, data, 1e-12)
    assert made.shape == data.shape
    slopes = [grad(lambda x, f=f: (f(x) ** 2).sum())(X.data) for f in (torchs, numpys)]
    np.testing.assert_allclose(*slopes, 1e-12)


def test_pytorch_and_micrograd_attributes() -> None:
    x = Value([1.0, 2.0], label="x")
    y = x * 2.0
    y.label = "y"
    assert (x.name, y.label, x.is_leaf, y.is_leaf, x.numel(), y.dim()) == (
        "x", "y", True, False, 2, 1,
    )  # fmt: skip
    assert repr(y) == "Value([2., 4.], grad_fn=<Mul>)"
    assert y.tolist() == [2.0, 4.0]
    total = y.sum()
    total.backward()
    assert repr(total) == "Value(6.0, grad=1.0, grad_fn=<Sum>)"
    with pytest.raises(UsageError, match=r"detach\(\)"):
        y.numpy()
    assert y.detach().numpy().tolist() == [2.0, 4.0]
    assert not (x.requires_grad_(False) * 2.0).requires_grad
    assert (x.requires_grad_() * 2.0).requires_grad


def test_no_grad_as_decorator() -> None:
    for over in (no_grad, no_grad()):
        square = over(lambda x: x * x)
        assert [square(Value(2.0)).requires_grad for _ in range(2)] == [False, False]
    assert (X * X).requires_grad


def test_micrograd_example() -> None:
    a, b = Value(-4.0), Value(2.0)
    c = a + b
    d = a * b + b**3
    c += c + 1
    c += 1 + c + (-a)
    d += d * 2 + (b + a).relu()
    d += 3 * d + (b - a).relu()
    e = c - d
    f = e**2
    g = f / 2.0
    g += 10.0 / f
    g.backward()
    assert g.data == pytest.approx(24.70408163265306, rel=1e-14)
    assert a.grad == pytest.approx(138.83381924198252, rel=1e-14)
    assert b.grad == pytest.approx(645.5772594752186, rel=1e-14)
    assert f.grad == pytest.approx(0.4958350687213661, rel=1e-14)  # of an intermediate value
    nodes, pending = set(), [g]  # as micrograd's drawing traverses the graph
    while pending:
        node = pending.pop()
        if node not in nodes:
            nodes.add(node)
            pending += node._prev
    assert {a, b, c, e, f} <= nodes
    assert e in f._prev
    assert {v._op for v in nodes} == {"", "+", "-", "*", "/", "**2", "**3", "ReLU", "neg"}
