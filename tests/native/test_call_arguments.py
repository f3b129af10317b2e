"""Arguments of compiled tapes: arrays of all kinds are converted, or the error names the column."""

from __future__ import annotations

import weakref
from functools import cache
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import cgprimer
from cgprimer.backends.call_arguments import convert_columns
from cgprimer.backends.cpu import cpu_executable, worker_threads
from cgprimer.errors import EngineError
from tests.approval import refused
from tests.native.conftest import TABLES
from tests.native.engine_agreement import DTYPES, ENGINES, FORMS, REDUCTIONS, compiled

SAMPLES = 45
XA = np.arange(1.0, SAMPLES + 1)
XB = np.linspace(0.5, 2.0, SAMPLES)


@cache
def program(engine: str, reduction: Any, dtype: str = "float64") -> Any:
    return compiled(cgprimer.tape(cgprimer.parse("xw = k*xa + m*xb")), engine, reduction, dtype)


def columns_of_all_kinds() -> dict[str, Any]:
    """Return the numbers of XA in many types and memory layouts."""
    fortran = np.asfortranarray(np.tile(XA[:, None], (1, 2)))
    read_only = XA.copy()
    read_only.flags.writeable = False
    types = ("int8", "uint64", "float16", "float32", "longdouble", ">f8", ">f4", ">i4", "object")
    return {
        **{name: XA.astype(name) for name in types},
        "list": XA.tolist(),
        "tuple": tuple(XA.tolist()),
        "column of a Fortran array": fortran[:, 1],
        "reversed": XA[::-1].copy()[::-1],
        "every second": np.repeat(XA, 2)[::2],
        "read-only": read_only,
        "unaligned": np.frombuffer(b"\0" + XA.tobytes(), np.uint8)[1:].view(np.float64),
        "memoryview": memoryview(XA),
    }


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("engine", ENGINES)
def test_columns_may_have_any_type_and_layout(engine: str, reduction: Any, dtype: str) -> None:
    expected = 2 * XA + 3 * XB
    expected = expected if reduction == "none" else np.sum(expected)
    close = 1e-14 if dtype == "float64" else 1e-6
    for kind, column in columns_of_all_kinds().items():
        before = np.array(column)
        result = program(engine, reduction, dtype)(
            {"xa": column, "xb": XB, "not used": object()}, {"k": 2.0, "m": 3.0}, SAMPLES
        )["xw"]
        np.testing.assert_allclose(result, expected, rtol=close, err_msg=kind)
        np.testing.assert_array_equal(np.array(column), before)


@pytest.mark.parametrize("engine", ENGINES)
def test_numbers_of_any_type_are_converted(engine: str) -> None:
    run = program(engine, "none")
    for two in (2, 2.0, np.float32(2), np.int8(2), np.array(2.0), np.array(2, ">i4"), True + 1):
        for samples in (1, 3, 33):  # a number stands for all samples
            result = run({"xa": two, "xb": 1.0}, {"k": two, "m": 1, "more": None}, samples)
            np.testing.assert_array_equal(result["xw"], np.full(samples, 5.0))
    result = run({"xa": [10**30, -(10**25)], "xb": [2**63, 0]}, {"k": 10**20, "m": 1}, 2)
    np.testing.assert_allclose(result["xw"], [1e50, -1e45], rtol=1e-15)
    truth = {"xa": np.arange(SAMPLES) % 2 == 1, "xb": XB * 0}
    assert float(program(engine, "sum")(truth, {"k": True, "m": 1}, SAMPLES)["xw"]) == SAMPLES // 2
    single, wide = program(engine, "none", "float32"), np.array([1e300, -1e300, 1.0])
    for k, last in ((1.0, 1.0), (1e300, np.inf)):  # infinite in float32, without a warning
        result = single({"xa": wide, "xb": np.zeros(3)}, {"k": k, "m": 1.0}, 3)["xw"]
        np.testing.assert_array_equal(result, [np.inf, -np.inf, last])


@pytest.mark.parametrize("engine", ENGINES)
def test_invalid_columns_are_named(engine: str) -> None:
    run, scalars = program(engine, "sum"), {"k": 1.0, "m": 1.0}
    for text, message in TABLES["invalid columns"]:
        column = eval(text)  # noqa: S307
        with refused(EngineError, f"'xa' ... {message}"):
            run({"xa": column, "xb": XB}, scalars, SAMPLES)
    with refused(EngineError, "'xb' ... xa, xB"):
        run({"xa": XA, "xB": XB}, scalars, SAMPLES)
    with refused(EngineError, "'xa' ... none"):
        run({}, scalars, 0)


@pytest.mark.parametrize("engine", ENGINES)
def test_invalid_scalars_are_named(engine: str) -> None:
    run, columns = program(engine, "sum"), {"xa": XA, "xb": XB}
    for value in ("1.5", None, 1j, np.complex128(1j), [1.0, 2.0], [1.0], np.ones(2), 10**400):
        with refused(EngineError, "'m'"):
            run(columns, {"k": 1.0, "m": value}, SAMPLES)
        with refused(EngineError, "'k'"):  # two equal lists are a valid matrix
            run(columns, {"k": value, "m": value}, SAMPLES)
    with refused(EngineError, "'m'"):
        run(columns, {"k": 2.0, "mm": 1.0}, SAMPLES)


@pytest.mark.parametrize("form_name", FORMS)
def test_converted_columns_live_until_the_compiled_code_has_read_them(
    form_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    converted: list[weakref.ref[Any]] = []
    alive: list[bool] = []

    def convert(*arguments: Any) -> list[Any]:
        arrays = convert_columns(*arguments)
        converted.extend(map(weakref.ref, arrays))
        return arrays

    def run(*arguments: Any) -> None:
        alive.extend(array() is not None for array in converted)
        run_in_threads(*arguments)

    run_in_threads = worker_threads.run_in_threads
    monkeypatch.setattr(cpu_executable, "convert_columns", convert)
    monkeypatch.setattr(worker_threads, "run_in_threads", run)
    columns = {"xa": XA.tolist(), "xb": XB.tolist()}
    program(form_name, "none")(columns, {"k": 2.0, "m": 3.0}, SAMPLES)
    assert (len(converted), {*alive}) == (2, {True})
