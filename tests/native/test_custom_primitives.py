"""Custom primitives on the compiled engines: Python functions that may fail, block or misbehave."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import cgprimer
from cgprimer.backends.cpu import worker_threads
from cgprimer.core.registration import register_primitive, unregister_primitive
from cgprimer.errors import EngineError, UsageError
from tests.approval import refused
from tests.native.conftest import PROGRAMS
from tests.native.engine_agreement import DTYPES, assert_close, check, compile_text

Register = Callable[..., None]
SAMPLES = 777
XA = np.linspace(-2.0, 3.0, SAMPLES)
XB = np.cos(XA)


@pytest.mark.parametrize("dtype", DTYPES)
def test_operands_of_every_kind(register: Register, dtype: str) -> None:
    register("swish", lambda a: a / (1 + np.exp(-a)), partials="out")
    register("hypot", np.hypot, partials=("a/out", "b/out"))
    register("mix", lambda a, b, c: a * b - c, partials=("b", "a", "-1"))
    text = """
        xw = swish(xa)*k + hypot(xa, k) + hypot(k, xb) + hypot(xa, xb)
        xv = mix(xa, k, 2) + mix(k, xb, xa) - mix(0.5, m, xb)*swish(k*m)
        xu = swish(k) + mix(k, m, 3) + hypot(swish(m), 2)
        xt = sin(swish(hypot(xa, swish(xb))))
        output xw, xv, xu, xt
    """
    tape = cgprimer.tape(cgprimer.parse(text))
    for samples in (0, 1, 33, SAMPLES):
        columns = {"xa": XA[:samples].astype(dtype), "xb": XB[:samples].astype(dtype)}
        tolerance = 1e-12 if dtype == "float64" else 1e-4
        check(tape, "interpreted", columns, {"k": 1.5, "m": -0.5}, samples, dtype=dtype,
              tolerance=tolerance)  # fmt: skip


@pytest.mark.parametrize("engine", ["cpu", "numpy"])
def test_a_function_may_change_keep_and_return_its_operands(
    engine: str, register: Register
) -> None:
    kept: list[Any] = []

    def keep(a: Any, b: Any) -> Any:
        kept.append(a)
        result = a * 2 + b
        a *= 0.0
        b[...] = np.nan
        return result

    register("keep", keep, partials=("2", "1"))
    register("first", lambda a, b: a, partials=("1", "0"))
    text = "xh = sin(xa); xg = keep(xh, xa); xw = first(xg, xh) + xh*10 + xa*100; output xw, xg"
    expected = {"xw": 12 * np.sin(XA) + 101 * XA, "xg": 2 * np.sin(XA) + XA}
    for _ in range(2):
        column = XA.copy()
        result = compile_text(text, engine=engine)({"xa": column}, {}, SAMPLES)
        assert_close(result, expected, scale=300.0)
        np.testing.assert_array_equal(column, XA)
        gc.collect()
        assert all((array == 0.0).all() for array in kept)  # nobody writes to the kept array
        kept.clear()
    gradient = cgprimer.gradient(
        cgprimer.parse("xw = keep(k*xa, xa)*(k*xa)"), {"k": 3.0, "xa": XA}, engine=engine
    )
    assert_close(gradient, {"k": (4 * 3.0 * XA + XA) * XA}, scale=100.0)


@pytest.mark.parametrize("engine", ["cpu", "numpy"])
def test_results_of_other_types_are_converted_and_others_refused(
    engine: str, register: Register
) -> None:
    functions: dict[str, tuple[Callable[[Any], Any], Any]] = {
        "whole": (lambda a: np.floor(a).astype(np.int64), np.floor(XA)),
        "above": (lambda a: a > 1, (XA > 1).astype(float)),
        "listed": (lambda a: np.asarray(a).tolist(), XA),
        "seven": (lambda a: 7, np.full(SAMPLES, 7.0)),
        "inverse": (lambda a: 1 / np.sqrt(a), None),  # infinities and nans are values
        "short": (lambda a: np.ones(3), EngineError),
        "nothing": (lambda a: None, EngineError),
        "imaginary": (lambda a: a * 1j, EngineError),
        "warns": (lambda a: warnings.warn("careful", UserWarning, stacklevel=1), UserWarning),
    }
    for name, (function, expected) in functions.items():
        register(name, function, partials="0")
        run = compile_text(f"xw = {name}(xa)", engine=engine)
        if expected is EngineError:
            with refused(EngineError, f"'{name}'"):
                run({"xa": np.ones(64)}, {}, 64)  # full vectors: the message has one length
        elif expected is UserWarning:
            with pytest.raises(UserWarning, match="careful"):
                run({"xa": XA}, {}, SAMPLES)
        elif expected is None:
            special = np.array([0.0, -1.0, 4.0, np.inf, np.nan])
            result = run({"xa": special}, {}, 5)["xw"]
            np.testing.assert_array_equal(result, [np.inf, np.nan, 0.5, 0.0, np.nan])
        else:
            np.testing.assert_array_equal(run({"xa": XA}, {}, SAMPLES)["xw"], expected)


class CustomError(Exception):
    """An exception that only this file raises."""


@pytest.mark.parametrize("error", [CustomError, KeyboardInterrupt, SystemExit])
def test_exceptions_of_the_function_are_raised_unchanged(
    register: Register, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    raised, ready = error("no such number"), [False]

    def picky(a: Any) -> Any:
        if ready[0] and np.any(a > 2.5):
            raise raised
        return a

    register("picky", picky, partials="1")
    monkeypatch.setattr(worker_threads, "MIN_OPERATIONS", 1)
    for text, threads in (("picky(xa)*2", "1"), ("picky(xa)*2", "3"), ("picky(k)*xa", "1")):
        monkeypatch.setenv(worker_threads.THREADS, threads)
        run = compile_text(f"xw = {text}", "sum")
        expected = run({"xa": XA}, {"k": 3.0}, SAMPLES)
        ready[0] = True
        with pytest.raises(error) as caught:
            run({"xa": XA}, {"k": 3.0}, SAMPLES)
        assert caught.value is raised
        ready[0] = False  # the failure is not remembered
        assert run({"xa": XA}, {"k": 3.0}, SAMPLES) == expected


def test_concurrent_calls_raise_only_their_own_exceptions(register: Register) -> None:
    def picky(a: Any) -> Any:
        if np.any(a > 5):
            raise LookupError("mine")
        return a

    register("picky", picky, partials="1")
    run = compile_text("xw = picky(xa)", "sum")

    def call(value: float) -> str:
        try:
            run({"xa": np.full(100, value)}, {}, 100)
        except LookupError:
            return "raised"
        return "computed"

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(call, [1.0, 9.0] * 30)) == ["computed", "raised"] * 30


def test_a_function_may_run_the_engine(register: Register) -> None:
    inner = compile_text("xw = sin(xa)*2")
    register("nested", lambda a: inner({"xa": a}, {}, len(a))["xw"], partials="1")
    result = compile_text("xw = nested(xa) + xa", "sum")({"xa": XA}, {}, SAMPLES)
    assert result["xw"] == pytest.approx(np.sum(2 * np.sin(XA) + XA), rel=1e-12)


def test_names_of_plan_steps_are_refused_and_names_of_handlers_are_free(
    register: Register,
) -> None:
    for name in ("fma", "sum", "outer", "affine", "sincos"):
        with refused(UsageError, name):
            register(name, lambda a: a, partials="1")
    for name in ("load", "store", "end", "call", "splat"):
        register(name, lambda a: a + 1, partials="1")
        assert compile_text(f"xw = {name}(xa)")({"xa": [1.0, 2.0]}, {}, 2)["xw"].tolist() == [2, 3]


def test_compiled_code_keeps_the_function_of_its_compilation(register: Register) -> None:
    register_primitive("passing", lambda a: a + 1, partials="1")
    run = compile_text("xw = passing(xa)")
    unregister_primitive("passing")
    register("passing", lambda a: a + 2, partials="1")
    assert run({"xa": [1.0]}, {}, 1)["xw"].tolist() == [2.0]
    assert compile_text("xw = passing(xa)")({"xa": [1.0]}, {}, 1)["xw"].tolist() == [3.0]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
def test_an_interrupt_in_a_custom_primitive_leaves_no_wrong_numbers() -> None:
    subprocess.run([sys.executable, "-c", PROGRAMS["interrupted"]], check=True, timeout=120)
