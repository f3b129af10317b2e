"""A value beside PyTorch's: several threads, Ctrl-C, long runs, and what students type first."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cgprimer import Value, grad, no_grad, register_primitive, unregister_primitive
from cgprimer.core.language.syntax import _STRUCTURAL
from cgprimer.recording.backward import _FREED
from cgprimer.recording.eager import EAGER, State


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
    assert State.plain


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


def test_a_pass_that_was_stopped_leaves_nothing_behind() -> None:
    def slope(x: Any) -> Any:
        if stop:
            raise KeyboardInterrupt
        return x

    stop = False
    register_primitive("slope", slope, partials="1")
    register_primitive("bent", lambda x: x, partials="slope(a)")
    try:
        w = Value(3.0)
        y = EAGER.emit("bent", w) * w
        stop = True
        with pytest.raises(KeyboardInterrupt):
            y.backward()
    finally:
        unregister_primitive("bent")
        unregister_primitive("slope")
    w.zero_grad()
    (w * 2.0).backward()
    assert w.grad == 2.0


def test_other_indices_in_every_turn_do_not_fill_the_memory() -> None:
    rng = np.random.default_rng(0)
    table = Value(rng.normal(size=(50, 3)))
    for _ in range(20):
        table[rng.integers(0, 50, 10_000)].sum().backward()
    assert sum(map(len, [*_STRUCTURAL.values(), *EAGER.functions, *_FREED])) < 2e6
