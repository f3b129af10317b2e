"""What callers give: arrays of all kinds come out right, or the error names the column."""

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
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import EngineError
from tests.approval import refused
from tests.native.engine_agreement import DTYPES, FORMS, REDUCTIONS, compiled

CASES = [(name, reduction) for name in FORMS for reduction in REDUCTIONS]
SAMPLES = 45
XA = np.arange(1.0, SAMPLES + 1)
XB = np.linspace(0.5, 2.0, SAMPLES)


@pytest.fixture(autouse=True)
def nothing_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGPRIMER_CACHE", "off")


@cache
def tape() -> Tape:
    return cgprimer.tape(cgprimer.parse("xw = k*xa + m*xb"))


@cache
def program(form_name: str, reduction: Any, dtype: str = "float64") -> Any:
    return compiled(tape(), form_name, reduction, dtype)


def of_kinds() -> dict[str, Any]:
    """The numbers of XA in as many ways as there are."""
    spread = np.zeros((SAMPLES, 3))
    spread[:, 1] = XA
    fortran = np.asfortranarray(np.tile(XA[:, None], (1, 2)))
    unaligned = np.frombuffer(b"\0" + XA.tobytes(), np.uint8)[1:].view(np.float64)
    read_only = XA.copy()
    read_only.flags.writeable = False
    return {
        "list": XA.tolist(),
        "tuple": tuple(XA.tolist()),
        "int64": XA.astype(np.int64),
        "int8": XA.astype(np.int8),
        "uint64": XA.astype(np.uint64),
        "float16": XA.astype(np.float16),
        "float32": XA.astype(np.float32),
        "longdouble": XA.astype(np.longdouble),
        "big-endian": XA.astype(">f8"),
        "big-endian float32": XA.astype(">f4"),
        "big-endian int": XA.astype(">i4"),
        "object": XA.astype(object),
        "large ints": [int(x) for x in XA],
        "every third of a row": spread[:, 1],
        "column of a Fortran array": fortran[:, 1],
        "row of a transposed array": np.tile(XA[:, None], (1, 2)).T[1],
        "reversed twice": XA[::-1].copy()[::-1],
        "every second": np.repeat(XA, 2)[::2],
        "read-only": read_only,
        "unaligned": unaligned,
        "memoryview": memoryview(XA),
    }


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("form_name", "reduction"), CASES)
@pytest.mark.parametrize("kind", of_kinds())
def test_arrays_of_all_kinds(kind: str, form_name: str, reduction: Any, dtype: str) -> None:
    column = of_kinds()[kind]
    before = np.array(column)
    found = program(form_name, reduction, dtype)(
        {"xa": column, "xb": XB, "not used": object()}, {"k": 2.0, "m": 3.0}, SAMPLES
    )["xw"]
    wanted = 2 * XA + 3 * XB
    wanted = wanted if reduction == "none" else np.sum(wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-14 if dtype == "float64" else 1e-6)
    np.testing.assert_array_equal(np.array(column), before)


@pytest.mark.parametrize("form_name", FORMS)
def test_truth_values_are_numbers(form_name: str) -> None:
    column = np.arange(SAMPLES) % 2 == 1
    found = program(form_name, "sum")({"xa": column, "xb": XB * 0}, {"k": True, "m": 1}, SAMPLES)
    assert float(found["xw"]) == SAMPLES // 2


@pytest.mark.parametrize("form_name", FORMS)
def test_one_number_stands_for_all_samples(form_name: str) -> None:
    for number in (2, 2.0, np.float32(2), np.array(2.0)):
        for samples in (1, 3, 33):
            found = program(form_name, "none")({"xa": number, "xb": 1.0}, {"k": 1, "m": 1}, samples)
            np.testing.assert_array_equal(found["xw"], np.full(samples, 3.0))


@pytest.mark.parametrize("form_name", FORMS)
def test_numbers_too_large_for_float32_become_infinite(form_name: str) -> None:
    columns = {"xa": np.array([1e300, -1e300, 1.0]), "xb": np.zeros(3)}
    found = program(form_name, "none", "float32")(columns, {"k": 1.0, "m": 1.0}, 3)["xw"]
    np.testing.assert_array_equal(found, [np.inf, -np.inf, 1.0])
    found = program(form_name, "none", "float32")(columns, {"k": 1e300, "m": 1.0}, 3)["xw"]
    np.testing.assert_array_equal(found, [np.inf, -np.inf, np.inf])


@pytest.mark.parametrize("form_name", FORMS)
def test_whole_numbers_beyond_64_bits(form_name: str) -> None:
    columns = {"xa": [10**30, -(10**25)], "xb": [2**63, 0]}
    found = program(form_name, "none")(columns, {"k": 10**20, "m": 1}, 2)["xw"]
    np.testing.assert_allclose(found, [1e50, -1e45], rtol=1e-15)


WRONG: dict[str, tuple[Any, str]] = {
    "too short": (XA[:-1], "44 values"),
    "too long": (np.append(XA, 1.0), "46 values"),
    "empty": ([], "0 values"),
    "one value": ([1.0], "1 values"),
    "two dimensions": (XA[None, :], "shape"),
    "a column vector": (XA[:, None], "shape"),
    "words": (["one"] * SAMPLES, "real numbers"),
    "digits": (["1.5"] * SAMPLES, "real numbers"),
    "bytes": ([b"1"] * SAMPLES, "real numbers"),
    "a word": ("one", "real numbers"),
    "complex": (XA + 1j, "real numbers"),
    "complex objects": ([1j] * SAMPLES, "real numbers"),
    "nothing": (None, "real numbers"),
    "nothings": ([None] * SAMPLES, "real numbers"),
    "objects": ([object()] * SAMPLES, "real numbers"),
    "ragged": ([[1.0], [1.0, 2.0]], "real numbers"),
    "a mapping": ({"a": 1.0}, "real numbers"),
    "dates": (np.full(SAMPLES, "2020-01-01", "datetime64[D]"), "real numbers"),
    "durations": (np.full(SAMPLES, 3, "timedelta64[s]"), "real numbers"),
    "records": (np.zeros(SAMPLES, [("a", float)]), "real numbers"),
    "a whole number without end": ([10**400] * SAMPLES, "real numbers"),
}


@pytest.mark.parametrize("form_name", FORMS)
@pytest.mark.parametrize("what", WRONG)
def test_a_column_that_is_none_is_named(what: str, form_name: str) -> None:
    column, message = WRONG[what]
    for reduction in REDUCTIONS:
        with refused(EngineError, message) as caught:
            program(form_name, reduction)({"xa": column, "xb": XB}, {"k": 1.0, "m": 1.0}, SAMPLES)
        assert "'xa'" in str(caught.value)


@pytest.mark.parametrize("form_name", FORMS)
def test_a_column_that_is_missing_is_named(form_name: str) -> None:
    with refused(EngineError, "'xb'"):
        program(form_name, "sum")({"xa": XA, "xB": XB}, {"k": 1.0, "m": 1.0}, SAMPLES)
    with refused(EngineError, "'xa' ... none"):
        program(form_name, "sum")({}, {"k": 1.0, "m": 1.0}, 0)


@pytest.mark.parametrize("form_name", FORMS)
@pytest.mark.parametrize(
    "value",
    ["two", "1.5", None, 1j, np.complex128(1j), [1.0, 2.0], [1.0], np.ones(2), 10**400, object()],
    ids=lambda value: type(value).__name__,
)
def test_a_scalar_that_is_none_is_named(value: Any, form_name: str) -> None:
    with refused(EngineError, "'m'"):
        program(form_name, "sum")({"xa": XA, "xb": XB}, {"k": 1.0, "m": value}, SAMPLES)


@pytest.mark.parametrize("form_name", FORMS)
@pytest.mark.parametrize(
    "values", [(np.ones(2),), ([2.0],), (np.ones(2), np.ones(2)), ([1.0],) * 2]
)
def test_scalars_that_are_all_arrays(values: tuple[Any, ...], form_name: str) -> None:
    """Together they are a fine matrix; none of them is one number."""
    text = "xw = xa*" + "*".join("km"[: len(values)])
    run = compiled(cgprimer.tape(cgprimer.parse(text)), form_name, "sum")
    with refused(EngineError, "'k'"):
        run({"xa": XA}, dict(zip("km", values, strict=False)), SAMPLES)


@pytest.mark.parametrize("form_name", FORMS)
def test_scalars_of_all_kinds_and_a_missing_one(form_name: str) -> None:
    columns = {"xa": XA, "xb": XB}
    run = program(form_name, "sum")
    wanted = run(columns, {"k": 2.0, "m": 3.0}, SAMPLES)["xw"]
    for two in (2, np.float32(2), np.int8(2), np.array(2.0), np.array(2, ">i4"), np.longdouble(2)):
        assert run(columns, {"k": two, "m": 3, "more": None}, SAMPLES)["xw"] == wanted
    with refused(EngineError, "'m'"):
        run(columns, {"k": 2.0, "mm": 1.0}, SAMPLES)


@pytest.mark.parametrize(("form_name", "reduction"), CASES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_nothing_that_is_given_is_changed(form_name: str, reduction: Any, dtype: str) -> None:
    text = "xh = sin(xa)*xb; xg = exp(xh) + xa; xw = xg*k + xh; xv = xa; output xw, xv, xg"
    run = compiled(cgprimer.tape(cgprimer.parse(text)), form_name, reduction, dtype)
    columns = {"xa": XA.astype(dtype), "xb": XB.astype(dtype)}
    scalars = {"k": 2.0}
    before = {name: column.copy() for name, column in columns.items()}
    found = run(columns, scalars, SAMPLES)
    assert list(columns) == list(before)
    assert scalars == {"k": 2.0}
    for name, column in before.items():
        np.testing.assert_array_equal(columns[name], column)
        for value in found.values():
            assert not np.shares_memory(columns[name], value)


@pytest.mark.parametrize(("form_name", "reduction"), CASES)
def test_converted_columns_live_until_the_compiled_code_has_read_them(
    form_name: str, reduction: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    converted: list[weakref.ref[Any]] = []
    calls: list[int] = []

    def convert(*arguments: Any) -> list[Any]:
        arrays = convert_columns(*arguments)
        converted.extend(map(weakref.ref, arrays))
        return arrays

    def run(*arguments: Any) -> None:
        assert all(array() is not None for array in converted)
        calls.append(1)
        run_in_threads(*arguments)

    run_in_threads = worker_threads.run_in_threads
    monkeypatch.setattr(cpu_executable, "convert_columns", convert)
    monkeypatch.setattr(worker_threads, "run_in_threads", run)
    columns = {"xa": XA.tolist(), "xb": XB.tolist()}
    program(form_name, reduction)(columns, {"k": 2.0, "m": 3.0}, SAMPLES)
    assert len(converted) == 2
    assert calls
