"""Kernels compiled for an H200 (sm_90) on any machine, their source, and the simulator's tests."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import cgprimer
from cgprimer.backends.code_listing import code_text
from cgprimer.backends.cuda import cuda_primitives, device
from cgprimer.backends.cuda.cuda_engine import ENGINE
from cgprimer.backends.cuda.cuda_executable import build_kernel_signature, build_reduction_signature
from cgprimer.backends.cuda.generated_functions import compile_functions
from cgprimer.backends.cuda.kernel_source import encode_for_device, generate_reduction_kernel
from cgprimer.backends.plan_encoding import ANY
from cgprimer.backends.plans.planning import build_plan
from cgprimer.core.operations import find_primitive, primitive_registry
from cgprimer.errors import EngineError
from tests.approval import refused
from tests.cuda import cuda_tools as tools
from tests.native.engine_agreement import network

HERE = Path(__file__).parent
HOPPER = (9, 0)
NETWORK = network(4, 8, 8, 1)


def compile_to_ptx(function: Any, signature: tuple[Any, ...], patch: pytest.MonkeyPatch) -> str:
    """Compile a function for an H200; numba would ask the GPU of this machine, if there is one."""
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    from numba.cuda import dispatcher

    gpu = SimpleNamespace(compute_capability=HOPPER)
    patch.setattr(dispatcher, "get_current_device", lambda: gpu)
    text, _ = device.import_numba_cuda().compile(
        function, signature, cc=HOPPER, output="ptx", device=False, abi="numba"
    )
    assert ".target sm_90" in text
    return str(text)


def assert_all_in_registers(text: str) -> None:
    assert ".local" not in text  # a local array would be memory
    assert not re.search(r"^\s*call", text, re.MULTILINE)


KERNELS = [  # example, longest straight-line code, dtype, sums
    ("lecture", 320, "float64", True),
    ("lecture", 320, "float32", True),
    ("lecture", 320, "float64", False),
    ("matrix_backpropagation", 1000, "float64", True),
    ("", -1, "float64", True),
    ("", -1, "float32", True),
]


@pytest.mark.slow
@pytest.mark.parametrize(("example", "longest", "dtype", "sums"), KERNELS)
def test_kernels_use_registers_and_multiply_adds(
    example: str, longest: int, dtype: str, sums: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = HERE.parents[1] / "examples" / f"{example}.cg"
    graph = cgprimer.load(path) if example else NETWORK
    code = encode_for_device(build_plan(tools.gradient_tape(graph), sums=sums), longest)
    kernel = compile_functions(code.generate_source(), dtype)["kernel"]
    straight = code.straight_line
    assert straight == bool(example)
    signature = build_kernel_signature(dtype, sums=sums, straight_line=straight)
    text = compile_to_ptx(kernel, signature, monkeypatch)
    assert_all_in_registers(text)
    kind = "f64" if dtype == "float64" else "f32"
    assert f"ld.global.{kind}" in text
    assert "st.global.f64" in text or not straight  # sums are in double precision
    if example in ("lecture", ""):
        assert f"fma.rn.{kind}" in text
    if example == "lecture":
        assert f"div.rn.{kind}" not in text
    if not example:
        assert {("affine", ""), ("outer", "")} <= set(code.program.handlers)
        assert "bar.sync" in text


@pytest.mark.slow
def test_the_interpreter_with_all_primitives_and_the_reduction_compile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    special = [(name, "") for name in ("sum", "dot", "affine", "outer", "sincos")]
    handlers = (*((name, ANY) for name in cuda_primitives.EXPRESSIONS), *special)
    code = encode_for_device(build_plan(tools.gradient_tape(NETWORK), sums=True), -1)
    code = code._replace(program=code.program._replace(handlers=handlers))
    kernel = compile_functions(code.generate_source(), "float64")["kernel"]
    signature = build_kernel_signature("float64", sums=True, straight_line=False)
    assert len(compile_to_ptx(kernel, signature, monkeypatch)) > 10_000
    reduce = compile_functions(generate_reduction_kernel(256), "float64")["reduce"]
    text = compile_to_ptx(reduce, build_reduction_signature(), monkeypatch)
    assert_all_in_registers(text)
    assert "ld.shared.f64" in text


# --- source code ---------------------------------------------------------------------------------

# Names of a user that would be noticed in any text.
GRAPH = "x__import__ = zebra*xquux + tanh(okapi*xquux); xw = x__import__ + 0.123456789"
FOREIGN = ("import", "zebra", "quux", "okapi", "123456789", '"', "'", "__")


def test_the_source_of_a_kernel_contains_nothing_of_the_user() -> None:
    tape = tools.gradient_tape(cgprimer.parse(GRAPH))
    sources = [generate_reduction_kernel(256) + cuda_primitives.FUNCTIONS]
    for sums, longest in ((True, -1), (True, 100), (False, -1), (False, 100)):
        code = encode_for_device(build_plan(tape, sums=sums), longest)
        assert code.straight_line == (longest > 0)
        sources.append(code.generate_source())
    for source in sources:
        ast.parse(source)
        assert not [word for word in FOREIGN if word in source]
    constants = {"m", "zero", "half", "one", "minus_root_half", "log_two"}
    for name in cuda_primitives.EXPRESSIONS:
        tree = ast.parse(cuda_primitives.format_expression(name, ("v1", "v2", "v3")))
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert {n for n in names if not n.startswith("f_")} <= {"v1", "v2", "v3", *constants}


def test_a_primitive_without_an_expression_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    row = replace(find_primitive("tanh"), name="tanz")
    monkeypatch.setitem(primitive_registry._TABLE, "tanz", row)  # as if the table contained it
    with refused(EngineError, "'tanz' ... cuda_primitives.py"):
        cuda_primitives.format_expression("tanz", ("v1",))
    cgprimer.register_primitive("store", np.sqrt, partials="1/(2*out)")
    try:
        tape = cgprimer.tape(cgprimer.parse("xw = store(xa)"))
        with refused(EngineError, "'store'"):
            code_text(tape, "cuda-interpreter", sums=False)
        assert "call store" in code_text(tape, "cpu-interpreter", sums=False)
    finally:
        cgprimer.unregister_primitive("store")


# --- drivers -------------------------------------------------------------------------------------


def make_driver(*codes: int, gpus: int = 0, broken: bool = False) -> SimpleNamespace:
    """Return a driver library that returns fixed error codes and describes fixed devices."""

    def write(buffer: Any, value: Any, code: int = 0) -> int:
        buffer.value = value
        return code

    return SimpleNamespace(
        cuInit=lambda flags: codes[0],
        cuDeviceGetCount=lambda pointer: write(pointer._obj, gpus, codes[1]),
        cuDeviceGet=lambda pointer, index: write(pointer._obj, index + 10),
        cuDeviceGetName=lambda buffer, size, handle: write(
            buffer, f"GPU {handle.value}".encode(), 999 if broken else 0
        ),
        cuDeviceTotalMem_v2=lambda pointer, handle: write(pointer._obj, 3 * 2**29),
    )


@pytest.mark.parametrize(
    ("driver", "reason", "devices"),
    [
        (make_driver(0, 0), "no GPU", []),
        (make_driver(100, 0, gpus=1), "no GPU", []),
        (make_driver(0, 100, gpus=1), "no GPU", []),
        (make_driver(999, 0), "cannot be initialized (error 999)", []),
        (make_driver(0, 0, gpus=2), "", ["device 0: GPU 10, 1.5 GiB", "device 1: GPU 11, 1.5 GiB"]),
        (make_driver(0, 0, gpus=1, broken=True), "", ["device 0: unknown GPU (driver error 999)"]),
        (None, "no NVIDIA driver was found on this machine", []),
    ],
)
def test_the_driver_describes_gpus_or_explains_why_there_is_none(
    monkeypatch: pytest.MonkeyPatch, driver: Any, reason: str, devices: list[str]
) -> None:
    library = Mock(return_value=driver, side_effect=None if driver else OSError)
    monkeypatch.setattr(device.ctypes, "CDLL", library)
    explanation = device._explain_driver_error()
    assert reason in explanation if reason else explanation == ""
    monkeypatch.setattr(device, "is_simulated", lambda: False)
    monkeypatch.setattr(device, "load_driver", lambda: driver)
    assert ENGINE.describe().splitlines()[:-1] == devices


def test_a_missing_package_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "find_spec", lambda name: None)
    device.unavailable.cache_clear()
    try:
        assert 'pip install "numba-cuda[cu13]"' in ENGINE.unavailable()
    finally:
        device.unavailable.cache_clear()
    reason = "there is an NVIDIA driver, but no GPU"
    monkeypatch.setattr(type(ENGINE), "unavailable", lambda self: reason)
    with refused(EngineError, f"'cuda' ... {reason}"):
        cgprimer.gradient(cgprimer.parse("xw = k*xa"), {"k": 1.0, "xa": 2.0}, engine="cuda")


@pytest.mark.slow
def test_looking_for_a_gpu_imports_no_numba() -> None:
    script = (
        "import sys; from cgprimer.backends.cuda.cuda_engine import ENGINE; ENGINE.unavailable();"
        "assert not {'numba', 'llvmlite'} & set(sys.modules), 'numba is loaded'"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.slow  # a GPU thread is a Python thread there
def test_kernels_agree_with_numpy_in_the_simulator() -> None:
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "-p", "no:cacheprovider",
               "-p", "no:xdist", str(HERE / "test_device.py")]  # fmt: skip
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    process = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=HERE.parents[1], check=False
    )
    if process.returncode:
        output = f"{process.stdout[-6000:]}{process.stderr[-2000:]}"
        pytest.fail(f"in the simulator:\n{output}", pytrace=False)
    assert " passed" in process.stdout
