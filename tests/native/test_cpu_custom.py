"""Primitives of one's own on the CPU engine: compiled code calls Python, and Python may fail."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import cgprimer
from cgprimer.backends.cpu import worker_threads
from cgprimer.core.evaluation.engines import select_engine
from cgprimer.core.registration import register_primitive, unregister_primitive
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import EngineError, UsageError
from tests.approval import refused
from tests.native.engine_agreement import DTYPES, REDUCTIONS, assert_alike, by_numpy, check

Register = Callable[..., Any]
SAMPLES = 777
XA = np.linspace(-2.0, 3.0, SAMPLES)
XB = np.cos(XA)


@pytest.fixture(autouse=True)
def nothing_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGPRIMER_CACHE", "off")


@pytest.fixture
def registered() -> Iterator[Register]:
    """Register primitives that are gone after the test."""
    names = []

    def register(name: str, *args: Any, **kwargs: Any) -> None:
        register_primitive(name, *args, **kwargs)
        names.append(name)

    yield register
    for name in names:
        unregister_primitive(name)


def tape_of(text: str) -> Tape:
    return cgprimer.tape(cgprimer.parse(text))


def on_cpu(text: str, reduction: Any = "none", dtype: str = "float64") -> Any:
    return select_engine("cpu").compile(tape_of(text), reduction=reduction, dtype=dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_two_and_three_operands_of_every_kind(registered: Register, dtype: str) -> None:
    registered("swish", lambda a: a / (1 + np.exp(-a)), partials="out")
    registered("hypot", np.hypot, partials=("a/out", "b/out"))
    registered("mix", lambda a, b, c: a * b - c, partials=("b", "a", "-1"))
    text = """
        xw = swish(xa)*k + hypot(xa, k) + hypot(k, xb) + hypot(xa, xb)
        xv = mix(xa, k, 2) + mix(k, xb, xa) - mix(0.5, m, xb)*swish(k*m)
        xu = swish(k) + mix(k, m, 3) + hypot(swish(m), 2)
        xt = sin(swish(hypot(xa, swish(xb))))
        output xw, xv, xu, xt
    """
    for samples in (0, 1, 31, 33, 129, SAMPLES):
        columns = {"xa": XA[:samples].astype(dtype), "xb": XB[:samples].astype(dtype)}
        check(
            tape_of(text), "interpreted", columns, {"k": 1.5, "m": -0.5}, samples, dtype=dtype,
            close=1e-12 if dtype == "float64" else 1e-4,
        )  # fmt: skip


@pytest.mark.parametrize("method", ["reverse", "forward", "symbolic", "path-sum"])
def test_gradients_through_them(registered: Register, method: str) -> None:
    registered("swish", lambda a: a / (1 + np.exp(-a)), partials="sigmoid(a)*(1 + a - out)")
    graph = cgprimer.parse("xh = swish(k*xa + m); xw = (swish(xh) - xa)^2")
    at = {"xa": XA, "k": 0.7, "m": 0.1}
    found = cgprimer.gradient(graph, at, method=method, engine="cpu")
    wanted = cgprimer.gradient(graph, at, method=method, engine="numpy")
    assert_alike(found, wanted, scale=30.0)


def test_a_function_may_keep_and_change_what_it_is_given(registered: Register) -> None:
    kept: list[Any] = []

    def squanders(a: Any, b: Any) -> Any:
        kept.append(a)
        result = a * 2 + b
        a *= 0.0
        b[...] = np.nan
        return result

    registered("squanders", squanders, partials=("2", "1"))
    text = "xh = sin(xa); xg = squanders(xh, xa); xw = xg + xh*10 + xa*100; output xw, xh, xg"
    before = XA.copy()
    found = on_cpu(text)({"xa": XA}, {}, SAMPLES)
    np.testing.assert_array_equal(before, XA)
    assert_alike(found, {
        "xw": 2 * np.sin(XA) + XA + 10 * np.sin(XA) + 100 * XA, "xh": np.sin(XA),
        "xg": 2 * np.sin(XA) + XA,
    }, scale=300.0)  # fmt: skip
    gc.collect()
    assert all((array == 0.0).all() for array in kept)  # and nobody writes to what it kept
    kept[0][...] = 5.0
    again = on_cpu(text)({"xa": XA}, {}, SAMPLES)
    assert_alike(again, found, scale=300.0)


def test_a_function_may_give_its_argument_back(registered: Register) -> None:
    registered("same", lambda a: a, partials="1")
    registered("first", lambda a, b: a, partials=("1", "0"))
    found = on_cpu("xw = same(xa) + first(same(xb), xa)*2")({"xa": XA, "xb": XB}, {}, SAMPLES)
    assert_alike(found, {"xw": XA + 2 * XB}, scale=10.0)


def test_results_of_other_types_and_shapes(registered: Register) -> None:
    registered("whole", lambda a: np.floor(a).astype(np.int64), partials="0")
    registered("above", lambda a: a > 1, partials="0")
    registered("listed", lambda a: np.asarray(a).tolist(), partials="0")
    registered("seven", lambda a: 7, partials="0")
    text = "xw = whole(xa); xv = above(xa); xu = listed(xa); xt = seven(xa); output xw, xv, xu, xt"
    found = on_cpu(text)({"xa": XA}, {}, SAMPLES)
    wanted = {
        "xw": np.floor(XA), "xv": (XA > 1).astype(float), "xu": XA, "xt": np.full(SAMPLES, 7.0),
    }  # fmt: skip
    assert_alike(found, wanted, scale=0.0, close=0.0)


class Unhappy(Exception):
    """Something that only this file raises."""


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("error", [Unhappy, KeyboardInterrupt, MemoryError, SystemExit])
def test_what_the_function_raises_arrives_as_it_is(
    registered: Register, error: type[BaseException], reduction: Any
) -> None:
    raised = error("no such number")
    ready = [False]

    def picky(a: Any) -> Any:
        if ready[0] and np.any(a > 2.5):
            raise raised
        return a

    registered("picky", picky, partials="1")
    run = on_cpu("xw = picky(xa)*2", reduction)
    ready[0] = True
    with pytest.raises(error) as caught:
        run({"xa": XA}, {}, SAMPLES)
    assert caught.value is raised
    ready[0] = False  # the failure is not remembered
    found = run({"xa": XA}, {}, SAMPLES)["xw"]
    assert np.sum(found) == pytest.approx(np.sum(2 * XA))


def test_it_may_fail_on_single_numbers_and_in_another_thread(
    registered: Register, monkeypatch: pytest.MonkeyPatch
) -> None:
    def negative(a: Any) -> Any:
        if np.any(a > 2.9):
            raise Unhappy(float(np.max(a)))
        return -a

    registered("negative", negative, partials="-1")
    run = on_cpu("xw = negative(k)*xa")
    assert run({"xa": XA}, {"k": 2.0}, SAMPLES)["xw"][0] == 4.0
    with pytest.raises(Unhappy, match=r"3\.5"):
        run({"xa": XA}, {"k": 3.5}, SAMPLES)
    monkeypatch.setenv(worker_threads.THREADS, "3")
    monkeypatch.setattr(worker_threads, "MIN_OPERATIONS", 1)
    run = on_cpu("xw = negative(xa)", "sum")
    with pytest.raises(Unhappy, match=r"2\.9|3\.0"):
        run({"xa": XA}, {}, SAMPLES)
    assert run({"xa": XA[:600]}, {}, 600)["xw"] == pytest.approx(-np.sum(XA[:600]))


def test_warnings_and_results_that_do_not_fit(registered: Register) -> None:
    def warns(a: Any) -> Any:
        warnings.warn("careful", UserWarning, stacklevel=1)
        return a

    registered("warns", warns, partials="1")
    with pytest.raises(UserWarning, match="careful"):  # the tests' own rule: warnings are errors
        on_cpu("xw = warns(xa)")({"xa": XA}, {}, SAMPLES)
    registered("shorter", lambda a: a[:2], partials="1")
    with refused(EngineError, "'shorter'"):
        on_cpu("xw = shorter(xa)")({"xa": XA}, {}, SAMPLES)
    registered("imaginary", lambda a: a * 1j, partials="1")
    with refused(EngineError, "'imaginary'"):
        on_cpu("xw = imaginary(xa)")({"xa": XA}, {}, SAMPLES)


def test_nan_and_infinity_inside_the_function_are_values(registered: Register) -> None:
    registered("inverse_root", lambda a: 1 / np.sqrt(a), partials="0")
    tape = tape_of("xw = inverse_root(xa)")
    columns = {"xa": np.array([0.0, -0.0, -1.0, 4.0, np.inf, np.nan])}
    found = select_engine("cpu").compile(tape, reduction="none", dtype="float64")(columns, {}, 6)
    assert_alike(found, by_numpy(tape)(columns, {}, 6))


def test_names_of_steps_are_refused(registered: Register) -> None:
    for name in ("fma", "sum", "outer", "affine", "sincos"):
        with refused(UsageError, name):
            registered(name, lambda a: a, partials="1")
    for name in ("load", "store", "end", "call", "splat"):  # words of the interpreter's own
        registered(name, lambda a: a + 1, partials="1")
        assert on_cpu(f"xw = {name}(xa)")({"xa": [1.0, 2.0]}, {}, 2)["xw"].tolist() == [2.0, 3.0]


def test_a_function_that_runs_the_engine_itself(registered: Register) -> None:
    inner = on_cpu("xw = sin(xa)*2")
    registered("nested", lambda a: inner({"xa": a}, {}, len(a))["xw"], partials="1")
    found = on_cpu("xw = nested(xa) + xa", "sum")({"xa": XA}, {}, SAMPLES)
    assert found["xw"] == pytest.approx(np.sum(2 * np.sin(XA) + XA), rel=1e-12)


def test_the_row_at_the_time_of_compiling_is_the_one_that_runs(registered: Register) -> None:
    register_primitive("passing", lambda a: a + 1, partials="1")
    run = on_cpu("xw = passing(xa)")
    unregister_primitive("passing")
    assert run({"xa": [1.0]}, {}, 1)["xw"].tolist() == [2.0]
    registered("passing", lambda a: a + 2, partials="1")
    assert run({"xa": [1.0]}, {}, 1)["xw"].tolist() == [2.0]
    assert on_cpu("xw = passing(xa)")({"xa": [1.0]}, {}, 1)["xw"].tolist() == [3.0]


def test_a_failure_reaches_the_call_that_it_belongs_to(registered: Register) -> None:
    def picky(a: Any) -> Any:
        if np.any(a > 5):
            raise LookupError("mine")
        time.sleep(0.001)  # so that calls from two threads meet
        return a

    registered("picky", picky, partials="1")
    tape = cgprimer.tape(cgprimer.parse("xw = picky(xa)"))
    run = select_engine("cpu").compile(tape, reduction="sum", dtype="float64")
    outcomes: dict[float, set[str]] = {1.0: set(), 9.0: set()}

    def call(value: float) -> None:
        for _ in range(30):
            try:
                run({"xa": np.full(100, value)}, {}, 100)
            except LookupError:
                outcomes[value].add("raised")
            else:
                outcomes[value].add("computed")

    callers = [Thread(target=call, args=(value,)) for value in outcomes]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert outcomes == {1.0: {"computed"}, 9.0: {"raised"}}


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np, cgprimer
from cgprimer.core.evaluation.engines import select_engine
cgprimer.register_primitive("bump", lambda a: np.sin(a) + 1.0, partials="cos(a)")
run = select_engine("cpu").compile(
    cgprimer.tape(cgprimer.parse("xw=bump(bump(xa))")), reduction="none", dtype="float64"
)
xa = np.linspace(-1, 1, 1_000_000)
right = np.sin(np.sin(xa) + 1) + 1
lost = wrong = 0
for trial in range(12):
    timer = threading.Timer(0.002 + 0.001 * trial, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        found = run({"xa": xa}, {}, xa.size)["xw"]
        if not np.allclose(found, right):
            wrong += 1
        timer.join()
        time.sleep(0.05)  # the signal may come after the call
    except KeyboardInterrupt:
        pass
    timer.join()
print("wrong", wrong)
"""


def test_ctrl_c_in_a_primitive_in_python_never_leaves_wrong_numbers() -> None:
    run = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False
    )
    assert run.stdout.strip() == "wrong 0", run.stderr[-2000:]
