"""Worker threads: each call runs once and before the end, whatever interrupts the caller."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from hypothesis import given
from hypothesis import strategies as st

from cgprimer.backends.cpu import worker_threads
from cgprimer.errors import UsageError
from tests.approval import refused
from tests.native.conftest import PROGRAMS
from tests.native.engine_agreement import (
    DTYPES,
    FORMS,
    REDUCTIONS,
    TOLERANCE,
    compile_text,
    compiled,
    gradient_tape,
    network,
    random_point,
)

XA = np.linspace(0.0, 1.0, 5000)


@pytest.fixture(autouse=True)
def _three_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Split every call into three ranges of samples, however short it is."""
    monkeypatch.setenv(worker_threads.THREADS, "3")
    monkeypatch.setattr(worker_threads, "MIN_OPERATIONS", 1)


def run_in_threads(function: Callable[[list[int]], None], calls: list[list[int]]) -> None:
    """Call a function of six integers in threads; fewer arguments are padded."""
    callback = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 6)(lambda *args: function(list(args)))
    worker_threads.run_in_threads(ctypes.cast(callback, ctypes.c_void_p).value or 0, calls)


def assert_three_threads_meet() -> None:
    """Fail unless three threads run at the same time."""
    barrier = threading.Barrier(3, timeout=60)
    run_in_threads(lambda _: (barrier.wait(), None)[1], [[1], [2], [3]])
    assert not barrier.broken


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form_name", FORMS)
def test_threads_change_no_value(
    form_name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape, samples = gradient_tape(network(2, 3, 1)), 4097
    columns, scalars = random_point(tape, samples, dtype=dtype, low=-1.0)
    runs = [compiled(tape, form_name, reduction, dtype) for reduction in REDUCTIONS]
    monkeypatch.setenv(worker_threads.THREADS, "1")
    values, sums = (run(columns, scalars, samples) for run in runs)
    monkeypatch.setenv(worker_threads.THREADS, "3")
    split = Mock(wraps=worker_threads.split_samples)
    monkeypatch.setattr(worker_threads, "split_samples", split)
    threaded, once, again = (run(columns, scalars, samples) for run in (*runs, runs[1]))
    assert split.call_count == 3
    assert len(worker_threads.split_samples(*split.call_args.args)) == 3
    for name, value in values.items():
        np.testing.assert_array_equal(threaded[name], value, err_msg=name)
        assert float(once[name]) == float(again[name])
        scale = max(1.0, float(np.sum(np.abs(value))))
        assert abs(float(once[name]) - float(sums[name])) <= TOLERANCE[dtype] * scale, name


@given(samples=st.integers(0, 300), unit=st.integers(1, 40), count=st.integers(1, 9))
def test_ranges_contain_all_samples_in_order(samples: int, unit: int, count: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(worker_threads.THREADS, str(count))
        ranges = worker_threads.split_samples(samples, unit, 5)
        assert [s for begin, end in ranges for s in range(begin, end)] == list(range(samples))
        assert len(ranges) == max(1, min(count, samples // unit))
        assert all(begin % unit == 0 and begin < end for begin, end in ranges if samples)
        patch.setattr(worker_threads, "MIN_OPERATIONS", 100)  # a thread needs enough work
        ranges = worker_threads.split_samples(samples, unit, 5)
        assert len(ranges) == max(1, min(count, samples // unit, samples * 5 // 100 + 1))


def test_the_number_of_threads_is_validated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(worker_threads.THREADS)
    usual = worker_threads.get_thread_count()
    assert 1 <= usual <= (os.cpu_count() or 1)
    for value, expected in (("", usual), (" 5 ", 5)):
        monkeypatch.setenv(worker_threads.THREADS, value)
        assert worker_threads.get_thread_count() == expected
    for value in ("0", "-3", "many", "2.5"):
        monkeypatch.setenv(worker_threads.THREADS, value)
        with refused(UsageError, "CGPRIMER_THREADS"):
            worker_threads.get_thread_count()


def test_every_list_of_arguments_is_passed_once_and_before_the_end() -> None:
    done: list[list[int]] = []

    def work(arguments: list[int]) -> None:
        time.sleep(0.001 * arguments[0])
        done.append(arguments[:3])  # the others are padding

    for count in range(6):
        done.clear()
        calls = [[number, -number, 2**40 + number] for number in reversed(range(count))]
        run_in_threads(work, calls)
        assert sorted(done) == sorted(calls)
    assert_three_threads_meet()


def test_nested_calls_run_in_the_calling_thread_if_the_workers_are_busy() -> None:
    done: list[int] = []

    def call_again(arguments: list[int]) -> None:
        calls = [[10 * arguments[0] + k] for k in range(3)]
        run_in_threads(lambda inner: done.append(inner[0]), calls)

    run_in_threads(call_again, [[1], [2], [3]])
    assert sorted(done) == [10, 11, 12, 20, 21, 22, 30, 31, 32]


@pytest.mark.parametrize("form_name", FORMS)
def test_concurrent_callers_get_their_own_results(form_name: str) -> None:
    tape = gradient_tape(network(2, 3, 1))
    columns, scalars = random_point(tape, 5000)
    runs = [compiled(tape, form_name, reduction) for reduction in REDUCTIONS]
    barrier = threading.Barrier(4)

    def values_of(caller: int) -> list[Any]:
        point = {name: value + 0.1 * caller for name, value in scalars.items()}
        return [run(columns, point, 5000) for run in runs]

    def call(caller: int) -> None:
        barrier.wait()
        for _ in range(10):
            np.testing.assert_equal(values_of(caller), expected[caller])

    expected = [values_of(caller) for caller in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(call, range(4)))


@pytest.mark.slow
def test_thousands_of_calls_with_and_without_pauses() -> None:
    """Workers sleep between some calls and are awake for others."""
    run = compile_text("xw = k*xa*xa", "sum")
    expected = [run({"xa": XA}, {"k": float(k)}, 5000)["xw"] for k in range(3)]
    for number in range(2000):
        assert run({"xa": XA}, {"k": float(number % 3)}, 5000)["xw"] == expected[number % 3]
        if number % 100 == 0:
            time.sleep(0.0003 * (number // 100 % 10))


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError])
def test_exceptions_of_signal_handlers_wait_for_the_workers(error: type[BaseException]) -> None:
    """Otherwise the workers would write to arrays that have been freed."""
    done: list[int] = []
    release = threading.Event()

    def raise_error(*_: object) -> None:
        release.set()
        raise error

    def work(arguments: list[int]) -> None:
        if arguments[0]:
            release.wait(30)
            time.sleep(0.05)
            done.append(arguments[0])

    before = signal.signal(signal.SIGALRM, raise_error)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(error):
            run_in_threads(work, [[0], [1], [2]])
        assert sorted(done) == [1, 2]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        release.set()
    assert not any(worker.lock.locked() for worker in worker_threads._workers)
    assert_three_threads_meet()  # every worker is available again


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_forked_process_starts_its_own_threads() -> None:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PROGRAMS["forked"]]
    process = subprocess.run(command, capture_output=True, check=False, text=True, timeout=120)
    assert (process.returncode, process.stderr) == (0, "")
