"""Kernels compiled for an H200 (sm_90) on any machine: they compile, and the code is good."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

import cgprimer
from cgprimer.core.tape.optimization import optimize
from cgprimer.native.cuda import device, interpreted, straight
from cgprimer.native.cuda.interpreter_source import Handlers, Layout
from cgprimer.native.cuda.mathematics import TEXTS
from cgprimer.native.cuda.program import PAIRS
from cgprimer.native.cuda.source import body
from cgprimer.native.encoding import ANY, encoded
from cgprimer.native.plans.making import plan
from tests.cuda import cuda_tools as tools

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
pytestmark = pytest.mark.skipif(device.simulated(), reason="the simulator makes no machine code")

HOPPER = (9, 0)


@pytest.fixture(autouse=True)
def a_hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    """numba asks the GPU that is there what to compile functions for; there may be none."""
    from numba.cuda import dispatcher

    gpu = SimpleNamespace(compute_capability=HOPPER)
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: gpu)


def ptx(kernel: Any, signature: tuple[Any, ...]) -> str:
    text, _ = device.toolkit().compile(
        kernel, signature, cc=HOPPER, output="ptx", device=False, abi="numba"
    )
    assert ".target sm_90" in text
    return str(text)


def straight_ptx(graph: Any, dtype: str, reduction: Any = "sum") -> str:
    found = body(optimize(tools.gradient_tape(graph)))
    kernel, _ = straight.straight_functions(found, reduction, dtype, 256)
    return ptx(kernel, straight.straight_signature(found, reduction, dtype))


def assert_all_in_registers(text: str) -> None:
    assert ".local" not in text  # a local array is memory
    assert not re.search(r"^\s*call", text, re.MULTILINE)


@pytest.mark.parametrize("path", tools.LEARNING, ids=lambda path: path.stem)
def test_the_kernel_of_an_example(path) -> None:
    text = straight_ptx(cgprimer.load(path), "float64")
    assert "ld.global.f64" in text
    assert_all_in_registers(text)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_lecture_example_is_multiply_adds_between_loads(dtype: str) -> None:
    kind = "f64" if dtype == "float64" else "f32"
    text = straight_ptx(cgprimer.load(tools.EXAMPLES[0].parent / "lecture.cg"), dtype)
    assert_all_in_registers(text)
    assert f"fma.rn.{kind}" in text
    assert f"div.rn.{kind}" not in text
    # Sixteen bytes a sample, or eight: as many samples in flight as make 64 bytes. All loads of a
    # round stand before its first use of one.
    first_round = re.split(r"fma\.rn|mul\.f|sub\.f|add\.f", text, maxsplit=1)
    assert len(re.findall(rf"ld\.global\.{kind}", text)) >= 8
    assert first_round[0].count("ld.param") >= 6


def test_values_of_each_sample_are_written_side_by_side() -> None:
    graph = cgprimer.load(tools.EXAMPLES[0].parent / "lecture.cg")
    text = straight_ptx(graph, "float64", "none")
    assert "st.global.f64" in text
    assert_all_in_registers(text)


def interpreter_ptx(handlers: Handlers, layout: Layout, dtype: str) -> str:
    kernel, _ = interpreted.interpreter_functions(handlers, layout, dtype)
    return ptx(kernel, interpreted.interpreter_signature(dtype, sums=True))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shared", [True, False], ids=["shared", "global"])
def test_the_interpreter_with_matrices_and_blocks_of_products(dtype: str, shared: bool) -> None:
    found = encoded(plan(tools.gradient_tape(tools.network(4, 8, 8, 1)), sums=True), tile=PAIRS)
    assert {("affine", ""), ("outer", "")} <= set(found.handlers)
    layout = Layout(64, shared, found.rows, len(found.columns), found.own_sums, 104, 9)
    text = interpreter_ptx(found.handlers, layout, dtype)
    assert_all_in_registers(text)
    kind = "f64" if dtype == "float64" else "f32"
    assert (f"ld.shared.{kind}" in text) == shared
    assert f"fma.rn.{kind}" in text
    assert "bar.sync" in text


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_interpreter_with_all_primitives(dtype: str) -> None:
    special = [(name, "") for name in ("sum", "dot", "affine", "outer", "sincos")]
    handlers = [*((name, ANY) for name in TEXTS), *special]
    assert len(interpreter_ptx(handlers, Layout(64, True, 50, 5, 20, 20, 9), dtype)) > 10_000


def test_the_second_stage_of_sums() -> None:
    text = ptx(interpreted.reduce_function(256), interpreted.reduce_signature())
    assert_all_in_registers(text)
    assert "ld.shared.f64" in text
