"""How calls are handed to other threads: each done once, none left behind, whatever interrupts."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import cgprimer
from cgprimer.backends.cpu import worker_threads
from cgprimer.core.evaluation.engines import select_engine
from cgprimer.core.registration import register_primitive, unregister_primitive

XA = np.linspace(0.0, 1.0, 5000)


@pytest.fixture(autouse=True)
def three_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call is cut in three, however small it is."""
    monkeypatch.setenv("CGPRIMER_CACHE", "off")
    monkeypatch.setenv(worker_threads.THREADS, "3")
    monkeypatch.setattr(worker_threads, "MIN_OPERATIONS", 1)


def program(text: str) -> Any:
    tape = cgprimer.tape(cgprimer.parse(text))
    return select_engine("cpu").compile(tape, reduction="sum", dtype="float64")


def compiled_function(function: Callable[[list[int]], None]) -> tuple[int, Any]:
    """The address of a function with seven arguments, and what keeps it alive."""
    made = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 7)(lambda *given: function(list(given)))
    return ctypes.cast(made, ctypes.c_void_p).value or 0, made


def test_every_list_of_arguments_is_called_once_and_before_the_end() -> None:
    done: list[list[int]] = []

    def work(arguments: list[int]) -> None:
        time.sleep(0.001 * arguments[0])
        done.append(arguments[:3])  # what is left of the seven means nothing

    address, alive = compiled_function(work)
    for count in range(6):
        done.clear()
        calls = [[number, -number, 2**40 + number] for number in reversed(range(count))]
        worker_threads.run_in_threads(address, calls)
        assert sorted(done) == sorted(calls)
    assert alive


def test_several_threads_work_at_the_same_time() -> None:
    """All of them meet: with fewer threads nobody would get past the barrier."""
    barrier = threading.Barrier(3, timeout=60)
    address, alive = compiled_function(lambda _: (barrier.wait(), None)[1])
    worker_threads.run_in_threads(address, [[1], [2], [3]])
    assert not barrier.broken
    assert alive


def test_calls_inside_of_calls() -> None:
    """The workers are busy then: whoever calls does the work itself."""
    done: list[int] = []
    inner, inner_alive = compiled_function(lambda given: done.append(given[0]))
    outer, alive = compiled_function(
        lambda given: worker_threads.run_in_threads(inner, [[10 * given[0] + k] for k in range(3)])
    )
    worker_threads.run_in_threads(outer, [[1], [2], [3]])
    assert sorted(done) == [10, 11, 12, 20, 21, 22, 30, 31, 32]
    assert inner_alive
    assert alive


@pytest.mark.slow
def test_thousands_of_calls_with_and_without_pauses() -> None:
    """Workers go to sleep between some calls and are awake for others."""
    run = program("xw = k*xa*xa")
    wanted = [run({"xa": XA}, {"k": float(k)}, 5000)["xw"] for k in range(3)]
    for number in range(3000):
        found = run({"xa": XA}, {"k": float(number % 3)}, 5000)["xw"]
        assert found == wanted[number % 3]
        if number % 100 == 0:
            time.sleep(0.0003 * (number // 100 % 10))


@pytest.fixture
def signalling() -> Iterator[list[str]]:
    """``signalling(a)``, in a thread of the engine, interrupts the process and then takes long."""
    seen: list[str] = []

    def function(a: Any) -> Any:
        if seen and threading.current_thread() is not threading.main_thread():
            seen.append("begun")
            if len(seen) == 2:
                time.sleep(0.05)  # the main thread has done its own part, and waits
                os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)
            seen.append("ended")
        return a

    register_primitive("signalling", function, partials="1")
    yield seen
    unregister_primitive("signalling")


@pytest.mark.skipif(os.name == "nt", reason="no such signals there")
def test_ctrl_c_waits_until_all_threads_are_done(signalling: list[str]) -> None:
    """Else they would write to arrays that nobody holds any more."""
    run = program("xw = signalling(xa)")
    whole = run({"xa": XA}, {}, 5000)["xw"]
    signalling.append("armed")
    with pytest.raises(KeyboardInterrupt):
        run({"xa": XA}, {}, 5000)
    assert signalling.count("begun") == signalling.count("ended") > 0
    signalling.clear()
    for _ in range(3):
        assert run({"xa": XA}, {}, 5000)["xw"] == whole
    barrier = threading.Barrier(3, timeout=20)  # and every worker is there for the next call
    address, alive = compiled_function(lambda _: (barrier.wait(), None)[1])
    worker_threads.run_in_threads(address, [[1], [2], [3]])
    assert alive


_CHILD = """
import os, sys
import numpy as np
import cgprimer
from cgprimer.core.evaluation.engines import select_engine
from cgprimer.backends.cpu import worker_threads
worker_threads.MIN_OPERATIONS = 1
tape = cgprimer.tape(cgprimer.parse("xw = sin(xa)*k"))
run = select_engine("cpu").compile(tape, reduction="sum", dtype="float64")
xa = np.linspace(0, 1, 50_000)
wanted = run({"xa": xa}, {"k": 2.0}, 50_000)["xw"]
if "fork" in sys.argv:
    child = os.fork()
    found = [run({"xa": xa}, {"k": 2.0}, 50_000)["xw"] for _ in range(50)]
    assert found == [wanted] * 50
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
run({"xa": xa}, {"k": 2.0}, 50_000)
"""


def child(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", _CHILD, *arguments],
        capture_output=True, check=False, text=True, timeout=120,
    )  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork there")
def test_a_forked_process_has_threads_of_its_own() -> None:
    done = child("fork")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_program_ends_while_the_threads_are_still_awake() -> None:
    for _ in range(4):
        done = child()
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
def test_other_exceptions_of_signal_handlers_wait_for_the_workers_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CGPRIMER_THREADS", "2")
    monkeypatch.setattr(worker_threads, "MIN_OPERATIONS", 1)
    done = threading.Event()

    @ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 7)
    def slow(which: int, *_: int) -> None:
        if which:
            threading.Event().wait(0.3)
            done.set()

    def late(*_: object) -> None:
        raise TimeoutError("too late")

    before = signal.signal(signal.SIGALRM, late)
    address = ctypes.cast(slow, ctypes.c_void_p).value
    assert address is not None
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(TimeoutError):
            worker_threads.run_in_threads(address, [(0,), (1,)])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert done.is_set()
    assert not any(worker.lock.locked() for worker in worker_threads._workers)
