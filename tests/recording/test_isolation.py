"""A value beside PyTorch's: several threads, Ctrl-C, long runs, and what students type first."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest

from cgprimer import (
    Function,
    UsageError,
    Value,
    checkpoint,
    grad,
    no_grad,
    record,
)
from cgprimer.recording.recording_state import State


def in_threads(*functions: Callable[[], Any]) -> list[Any]:
    """What functions return that run beside each other, with many changes from one to the next."""
    found: list[Any] = [None] * len(functions)

    def run(place: int) -> None:
        try:
            found[place] = functions[place]()
        except Exception as error:
            found[place] = error

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=run, args=(i,)) for i in range(len(functions))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    return found


def test_no_grad_is_of_its_thread_and_is_over_when_it_is_over() -> None:
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
        recorded = (x * x).requires_grad  # while the other one does not record
        with no_grad():
            second.set()
            last.wait(5)  # it leaves first, though it came first
            recorded = recorded and not (x * x).requires_grad
        return recorded and (x * x).requires_grad

    assert in_threads(early, late) == [True, True]
    assert (x * x).requires_grad
    assert State.fast_path


def test_threads_pass_through_shared_parameters_one_after_the_other() -> None:
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
    assert in_threads(train, train, train) == [slope] * 3
    assert table.grad.tolist() == [900.0, 900.0]


def test_a_derivative_is_not_nested_in_that_of_another_thread() -> None:
    inside, done = threading.Event(), threading.Event()

    def outer(x: Any) -> Any:
        inside.set()
        done.wait(5)
        return x * x

    def beside() -> Any:
        inside.wait(5)
        found = grad(lambda x: x**3)(2.0)
        done.set()
        return found

    found = in_threads(lambda: grad(outer)(3.0), beside)
    assert found == [6.0, 12.0]
    assert [type(one) for one in found] == [float, float]


class Stopped(BaseException):
    """What comes in the place of Ctrl-C."""


def ends(work: Callable[[], Any], events: int) -> bool:
    """Whether work ends before so many functions were entered, or left in C: it is stopped there.

    These are the places where Python looks for Ctrl-C.
    """

    def watch(frame: Any, event: str, arg: Any) -> None:
        nonlocal events
        events -= event in ("call", "c_return")
        if events < 0:
            raise Stopped

    sys.setprofile(watch)
    try:
        work()
    except Stopped:
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
def test_ctrl_c_anywhere_leaves_everything_as_it_was(work: Any) -> None:
    w, table = Value(0.5), Value(np.ones((3, 3)))
    errors = np.geterr()
    for _ in range(3):
        work(w, table)
    for events in count():
        finished = ends(lambda: work(w, table), events)
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


def test_what_functions_of_pythons_have_saved_goes_with_their_graph() -> None:
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
    for turn in range(3):
        w = Value(np.ones(3))
        (Times.apply(w, float(turn)) + checkpoint(squared)(w * 2.0)).sum().backward()
    gc.collect()
    assert not any(array() is not None for array in seen)


X = Value(np.arange(6.0).reshape(2, 3) + 1.0)


@pytest.mark.parametrize(
    ("torchs", "numpys"),
    [
        (lambda x: x.view(-1, 2), lambda x: x.reshape(-1, 2)),
        (lambda x: x.view((3, 2)).t(), lambda x: x.reshape(3, 2).T),
        (lambda x: x.permute(1, 0), lambda x: x.transpose(1, 0)),
        (lambda x: x.unsqueeze(1), lambda x: x[:, None]),
        (lambda x: x.sum(1, keepdim=True), lambda x: x.sum(1, keepdims=True)),
        (lambda x: x.mean(dim=0), lambda x: x.mean(0)),
        (lambda x: x.mean(dim=(0, 1), keepdim=True), lambda x: x.mean((0, 1), keepdims=True)),
        (lambda x: x.pow(2).add(x).sub(1.0), lambda x: x**2 + x - 1.0),
        (lambda x: x.square().neg().div(x).mul(3.0), lambda x: -(x**2) / x * 3.0),
        (lambda x: x.matmul(x.t()).mm(x), lambda x: x @ x.T @ x),
        (lambda x: x.max(dim=1, keepdim=True), lambda x: x.max(1, keepdims=True)),
        (lambda x: x.std(dim=0, correction=1), lambda x: (x[1] - x[0]) / 2**0.5),
        (lambda x: x.norm(p=2, dim=1), lambda x: (x * x).sum(1) ** 0.5),
        (lambda x: x.unsqueeze(dim=0), lambda x: x[None]),
        (lambda x: x.norm(), lambda x: (x * x).sum() ** 0.5),
        (lambda x: x.clamp(min=2.5), lambda x: np.maximum(x, 2.5)),
        (lambda x: x.log1p() + x.expm1() + x.log2() + x.log10(),
         lambda x: np.log(1 + x) + np.exp(x) - 1 + np.log(x) * (1 / np.log(2) + 1 / np.log(10))),
        (lambda x: x.tan() + x.sinh() * x.cosh(),
         lambda x: np.sin(x) / np.cos(x) + np.sinh(2 * x) / 2),
        (lambda x: x.clone(), lambda x: x * 1.0),
    ],
)  # fmt: skip
def test_pytorchs_names_are_what_numpys_are(torchs: Any, numpys: Any) -> None:
    made, data = torchs(X), numpys(X.data)
    np.testing.assert_allclose(made.data, data, 1e-12)
    assert made.shape == data.shape
    slopes = [grad(lambda x, f=f: (f(x) ** 2).sum())(X.data) for f in (torchs, numpys)]
    np.testing.assert_allclose(*slopes, 1e-12)


def test_what_pytorch_and_micrograd_call_a_value() -> None:
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


def test_no_grad_is_written_over_a_function_with_and_without_parentheses() -> None:
    for over in (no_grad, no_grad()):
        square = over(lambda x: x * x)
        assert [square(Value(2.0)).requires_grad for _ in range(2)] == [False, False]
    assert (X * X).requires_grad
