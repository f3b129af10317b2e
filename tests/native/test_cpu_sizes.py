"""Numbers of samples around every boundary; threads; memory; many callers at once."""

from __future__ import annotations

import threading
import tracemalloc
from functools import cache
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from hypothesis import given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.backends.cpu import worker_threads
from cgprimer.backends.cpu.llvm_library import get_target_processor
from cgprimer.backends.cpu.straight_line import TILE
from cgprimer.core.loss_expressions import LOSS
from cgprimer.core.loss_node import with_loss
from cgprimer.core.methods import differentiate
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import UsageError
from tests.approval import refused
from tests.native.engine_agreement import (
    CLOSE,
    DTYPES,
    FORMS,
    REDUCTIONS,
    assert_alike,
    compiled,
    directly,
    random_point,
)

CASES = [(form_name, dtype) for form_name in FORMS for dtype in DTYPES]
MOST = 20_000  # samples, more than any boundary below


@pytest.fixture(autouse=True)
def nothing_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGPRIMER_CACHE", "off")


@cache
def tape() -> Tape:
    """A small network's loss and gradient: matrices, products that are summed, plain sums."""
    lines = [f"h{j} = tanh(a{j}*xa + b{j}*xb + c{j}*xc)" for j in range(3)]
    graph = cgprimer.parse([*lines, "xw = h0*h1 + d*h2 + max(xa, xb)", "output xw"])
    primal = with_loss(cgprimer.tape(graph), "squared-error")
    return differentiate(primal, of=LOSS, wrt=graph.parameters, method="reverse").tape


def long_chain(operations: int) -> Tape:
    """So many live values that a block has few samples."""
    lines = [f"v{i} = sin({i + 1}*xa)" for i in range(operations)]
    total = " + ".join(f"v{i}*v{(i * 7 + 3) % operations}" for i in range(operations))
    return cgprimer.tape(cgprimer.parse([*lines, f"xw = {total}", "output xw"]))


@cache
def program(form_name: str, reduction: str, dtype: str) -> Any:
    return compiled(tape(), form_name, reduction, dtype)


@cache
def everything(form_name: str, dtype: str) -> Any:
    """A point with as many samples as there are anywhere here, and the values at it."""
    columns, scalars = random_point(tape(), MOST, dtype=dtype, low=-1.0)
    return columns, scalars, program(form_name, "none", dtype)(columns, scalars, MOST)


def boundaries(form_name: str, dtype: str) -> list[int]:
    """Samples that a vector, a unit, a block or a tile of sums holds."""
    run = program(form_name, "sum", dtype)
    lanes = get_target_processor().count_lanes(dtype)
    if form_name == "straight":
        return [lanes, run.lanes, TILE * run.lanes]
    itemsize = np.dtype(dtype).itemsize
    return [lanes, run.code.unit // itemsize, run.code.stride // itemsize]


def check_size(form_name: str, dtype: str, samples: int) -> None:
    """The first samples of many have the values that they have among the many, bit for bit."""
    columns, scalars, known = everything(form_name, dtype)
    columns = {name: column[:samples] for name, column in columns.items()}
    found = program(form_name, "none", dtype)(columns, scalars, samples)
    sums = program(form_name, "sum", dtype)(columns, scalars, samples)
    for name, value in known.items():
        np.testing.assert_array_equal(found[name], value[:samples], err_msg=name)
        wanted = np.sum(value[:samples], dtype=float)
        scale = max(1.0, float(np.sum(np.abs(value[:samples]))))
        assert abs(float(sums[name]) - wanted) <= CLOSE[dtype] * scale, (name, samples)


@pytest.mark.parametrize(("form_name", "dtype"), CASES)
def test_the_values_of_many_samples_are_right(form_name: str, dtype: str) -> None:
    columns, scalars, found = everything(form_name, dtype)
    wanted = directly(tape(), columns, scalars, MOST)
    assert_alike(found, wanted, scale=20.0, close=CLOSE[dtype])


@pytest.mark.parametrize(("form_name", "dtype"), CASES)
def test_every_small_number_of_samples(form_name: str, dtype: str) -> None:
    for samples in range(70):
        check_size(form_name, dtype, samples)


@pytest.mark.parametrize(("form_name", "dtype"), CASES)
def test_around_every_boundary(form_name: str, dtype: str) -> None:
    for edge in boundaries(form_name, dtype):
        for times in (1, 2, 3):
            for more in (-1, 0, 1):
                if edge * times + more <= MOST:
                    check_size(form_name, dtype, edge * times + more)


@pytest.mark.parametrize(("form_name", "dtype"), CASES)
@given(data=st.data())
@settings(max_examples=25)
def test_any_number_of_samples(form_name: str, dtype: str, data: st.DataObject) -> None:
    edge = data.draw(st.sampled_from(boundaries(form_name, dtype)))
    samples = edge * data.draw(st.integers(0, 6)) + data.draw(st.integers(-edge, edge))
    check_size(form_name, dtype, min(max(0, samples), MOST))


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_blocks_of_few_samples(reduction: Any) -> None:
    """With a thousand live values a block has few samples: two units of AVX-512, four of AVX2."""
    wide = long_chain(1000)
    run = compiled(wide, "interpreted", reduction)
    assert run.code.stride == 512
    for samples in (0, 1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 500):
        columns, scalars = random_point(wide, samples)
        found = run(columns, scalars, samples)
        wanted = directly(wide, columns, scalars, samples)["xw"]
        wanted = wanted if reduction == "none" else np.sum(wanted)
        assert_alike(found, {"xw": wanted}, scale=1000.0 * max(1, samples))


# --- threads -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("form_name", "dtype"), CASES)
@pytest.mark.parametrize("samples", [1, 40, 129, 4097, MOST])
def test_threads_make_no_difference(
    form_name: str, dtype: str, samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns, scalars, known = everything(form_name, dtype)
    columns = {name: column[:samples] for name, column in columns.items()}
    monkeypatch.setenv(worker_threads.THREADS, "1")
    alone = program(form_name, "sum", dtype)(columns, scalars, samples)
    monkeypatch.setenv(worker_threads.THREADS, "3")
    monkeypatch.setattr(worker_threads, "MIN_OPERATIONS", 1)
    cut = []
    split = worker_threads.split_samples

    def counted(*given_arguments: int) -> list[tuple[int, int]]:
        cut.append(split(*given_arguments))
        return cut[-1]

    monkeypatch.setattr(worker_threads, "split_samples", counted)
    once, again = (program(form_name, "sum", dtype)(columns, scalars, samples) for _ in range(2))
    each = program(form_name, "none", dtype)(columns, scalars, samples)
    assert samples < 4097 or all(len(pieces) == 3 for pieces in cut)
    for name, value in known.items():
        assert float(once[name]) == float(again[name])
        scale = max(1.0, float(np.sum(np.abs(value[:samples]))))
        assert abs(float(once[name]) - float(alone[name])) <= CLOSE[dtype] * scale, name
        np.testing.assert_array_equal(each[name], value[:samples], err_msg=name)


@given(samples=st.integers(0, 300), unit=st.integers(1, 40), count=st.integers(1, 9))
def test_parts_are_all_samples_in_their_order(samples: int, unit: int, count: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(worker_threads.THREADS, str(count))
        patch.setattr(worker_threads, "MIN_OPERATIONS", 1)
        pieces = worker_threads.split_samples(samples, unit, 5)
    assert [s for begin, end in pieces for s in range(begin, end)] == list(range(samples))
    assert len(pieces) == max(1, min(count, samples // unit))
    assert all(begin % unit == 0 and begin < end for begin, end in pieces if samples)


def test_an_empty_number_of_threads_is_none_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(worker_threads.THREADS, raising=False)
    usual = worker_threads.get_thread_count()
    monkeypatch.setenv(worker_threads.THREADS, "")
    assert worker_threads.get_thread_count() == usual >= 1


@pytest.mark.parametrize("asked", ["0", "-3", "many", "2.5"])
def test_a_number_of_threads_that_is_none_is_refused(
    asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(worker_threads.THREADS, asked)
    with refused(UsageError, "CGPRIMER_THREADS"):
        worker_threads.get_thread_count()


@pytest.mark.parametrize(("form_name", "dtype"), CASES)
def test_several_callers_at_once(
    form_name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One executable, called from several threads that each have samples of their own."""
    monkeypatch.setenv(worker_threads.THREADS, "2")
    monkeypatch.setattr(worker_threads, "MIN_OPERATIONS", 1000)
    columns, scalars, _ = everything(form_name, dtype)
    runs = [program(form_name, reduction, dtype) for reduction in REDUCTIONS]
    points = []
    for caller in range(4):
        size = 900 + 137 * caller
        mine = {n: c[caller * 1000 : caller * 1000 + size] for n, c in columns.items()}
        shared = {n: v + 0.1 * caller for n, v in scalars.items()}
        points.append((mine, shared, size))
    wanted = [[run(*point) for run in runs] for point in points]
    wrong: list[str] = []
    barrier = threading.Barrier(4)

    def call(caller: int) -> None:
        barrier.wait()
        for _ in range(15):
            for run, expected in zip(runs, wanted[caller], strict=True):
                found = run(*points[caller])
                wrong.extend(n for n in found if not np.array_equal(found[n], expected[n]))

    callers = [threading.Thread(target=call, args=(number,)) for number in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert wrong == []


# --- memory --------------------------------------------------------------------------------------


@pytest.mark.parametrize("form_name", FORMS)
def test_sums_over_many_samples_need_no_memory_for_them(form_name: str) -> None:
    samples = 2**18
    columns, scalars = random_point(tape(), samples)
    peaks = []
    for reduction in REDUCTIONS:
        run = program(form_name, reduction, "float64")
        tracemalloc.start()
        try:
            run(columns, scalars, samples)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[0] > samples * 8  # values per sample do: so the measure sees what it should
    assert peaks[1] < samples * 8  # not as much as one more column


def test_a_block_does_not_grow_with_the_tape_beyond_a_limit() -> None:
    for operations in (10, 100, 1000):
        run = compiled(long_chain(operations), "interpreted")
        assert run.code.buffer % run.code.stride == 0
        assert run.code.buffer <= max(2**20, 2 * run.code.unit * (operations * 2 + 10))
