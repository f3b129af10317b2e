"""Kernels compiled for an H200 (sm_90) on any machine: they compile, and the code is good."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

import cgprimer
from cgprimer.backends.cuda import device
from cgprimer.backends.cuda.cuda_executable import build_kernel_signature, build_reduction_signature
from cgprimer.backends.cuda.cuda_primitives import EXPRESSIONS
from cgprimer.backends.cuda.generated_functions import compile_functions
from cgprimer.backends.cuda.kernel_source import (
    DeviceCode,
    encode_for_device,
    generate_reduction_kernel,
)
from cgprimer.backends.plan_encoding import ANY
from cgprimer.backends.plans.planning import build_plan
from tests.cuda import cuda_tools as tools

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
pytestmark = pytest.mark.skipif(device.is_simulated(), reason="the simulator makes no machine code")

HOPPER = (9, 0)


@pytest.fixture(autouse=True)
def a_hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    """numba asks the GPU that is there what to compile functions for; there may be none."""
    from numba.cuda import dispatcher

    gpu = SimpleNamespace(compute_capability=HOPPER)
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: gpu)


def ptx(function: Any, signature: tuple[Any, ...]) -> str:
    text, _ = device.import_numba_cuda().compile(
        function, signature, cc=HOPPER, output="ptx", device=False, abi="numba"
    )
    assert ".target sm_90" in text
    return str(text)


def kernel_ptx(found: DeviceCode, dtype: str, *, sums: bool = True) -> str:
    kernel = compile_functions(found.generate_source(), dtype)["kernel"]
    return ptx(kernel, build_kernel_signature(dtype, sums=sums, straight_line=found.straight_line))


def straight_ptx(graph: Any, dtype: str, *, sums: bool = True) -> str:
    found = encode_for_device(build_plan(tools.gradient_tape(graph), sums=sums), 320)
    return kernel_ptx(found._replace(straight_line=True), dtype, sums=sums)


def assert_all_in_registers(text: str) -> None:
    assert ".local" not in text  # a local array is memory
    assert not re.search(r"^\s*call", text, re.MULTILINE)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(p, id=p.stem, marks=[pytest.mark.slow] * (p.stem in ("mlp", "network")))
        for p in tools.LEARNING
    ],
)
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
    assert "st.global.f64" in text  # sums are double precision


def test_values_of_each_sample_are_written_side_by_side() -> None:
    graph = cgprimer.load(tools.EXAMPLES[0].parent / "lecture.cg")
    text = straight_ptx(graph, "float64", sums=False)
    assert "st.global.f64" in text
    assert_all_in_registers(text)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_interpreter_with_matrices_and_blocks_of_products(dtype: str) -> None:
    found = encode_for_device(
        build_plan(tools.gradient_tape(tools.network(4, 8, 8, 1)), sums=True), -1
    )
    assert {("affine", ""), ("outer", "")} <= set(found.program.handlers)
    text = kernel_ptx(found, dtype)
    assert_all_in_registers(text)
    assert f"fma.rn.{'f64' if dtype == 'float64' else 'f32'}" in text
    assert "bar.sync" in text


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_interpreter_with_all_primitives(dtype: str) -> None:
    special = [(name, "") for name in ("sum", "dot", "affine", "outer", "sincos")]
    handlers = (*((name, ANY) for name in EXPRESSIONS), *special)
    found = encode_for_device(
        build_plan(tools.gradient_tape(tools.network(4, 8, 8, 1)), sums=True), -1
    )
    found = found._replace(program=found.program._replace(handlers=handlers))
    assert len(kernel_ptx(found, dtype)) > 10_000


def test_the_second_stage_of_sums() -> None:
    text = ptx(
        compile_functions(generate_reduction_kernel(256), "float64")["reduce"],
        build_reduction_signature(),
    )
    assert_all_in_registers(text)
    assert "ld.shared.f64" in text
