"""What generated text consists of; what is said where there is no GPU."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import cgprimer
from cgprimer.backends.code_listing import code_text
from cgprimer.backends.cuda import cuda_primitives, device
from cgprimer.backends.cuda.cuda_engine import ENGINE
from cgprimer.backends.cuda.kernel_source import encode_for_device, generate_reduction_kernel
from cgprimer.backends.plans.planning import build_plan
from cgprimer.core.operations import find_primitive, primitive_registry
from cgprimer.errors import EngineError
from tests.approval import refused
from tests.cuda import cuda_tools as tools

# Names of a user that would be noticed anywhere in a text.
GRAPH = "x__import__ = zebra*xquux + tanh(okapi*xquux); xw = x__import__ + 0.123456789"
THEIRS = ("import", "zebra", "quux", "okapi", "123456789", '"', "'", "__")


def assert_only_ours(text: str) -> None:
    ast.parse(text)
    assert not [word for word in THEIRS if word in text]


def test_nothing_of_the_users_enters_the_text_of_a_kernel() -> None:
    tape = tools.gradient_tape(cgprimer.parse(GRAPH))
    for sums in (True, False):
        for straight in (-1, 100):
            found = encode_for_device(build_plan(tape, sums=sums), straight)
            assert found.straight_line == (straight > 0)
            assert_only_ours(found.generate_source())
    assert_only_ours(generate_reduction_kernel(256) + cuda_primitives.FUNCTIONS)


def test_the_forms_of_primitives_are_expressions_over_their_operands() -> None:
    for name in cuda_primitives.EXPRESSIONS:
        tree = ast.parse(cuda_primitives.format_expression(name, ("v1", "v2", "v3")))
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert {n for n in names if not n.startswith("f_")} <= {
            "v1", "v2", "v3", "m", "zero", "half", "one", "minus_root_half", "log_two",
        }  # fmt: skip


def test_a_primitive_without_a_form_is_refused_with_the_reason() -> None:
    row = replace(find_primitive("tanh"), name="tanz")
    primitive_registry._TABLE["tanz"] = row  # as if it stood in the table
    try:
        with refused(EngineError, "'tanz' ... cuda_primitives.py"):
            cuda_primitives.format_expression("tanz", ("v1",))
    finally:
        del primitive_registry._TABLE["tanz"]
    cgprimer.register_primitive("store", np.sqrt, partials="1/(2*out)")
    try:
        tape = cgprimer.tape(cgprimer.parse("xw = store(xa)"))
        with refused(EngineError, "'store'"):
            code_text(tape, "cuda-interpreter", sums=False)
        assert "call store" in code_text(tape, "cpu-interpreter", sums=False)
    finally:
        cgprimer.unregister_primitive("store")


# --- where there is no GPU -----------------------------------------------------------------------


def test_without_the_package_it_is_said_how_to_install_it(monkeypatch) -> None:
    monkeypatch.setattr(device, "find_spec", lambda name: None)
    device.unavailable.cache_clear()
    try:
        assert 'pip install "numba-cuda[cu13]"' in ENGINE.unavailable()
    finally:
        device.unavailable.cache_clear()


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        ((0, 0, 0), "no GPU"),
        ((100, 0, 0), "no GPU"),
        ((0, 100, 0), "no GPU"),
        ((999, 0, 0), "cannot be initialized (error 999)"),
        ((0, 0, 2), ""),
    ],
)
def test_what_the_driver_says(monkeypatch, codes, said: str) -> None:
    class Driver:
        def cuInit(self, flags):
            return codes[0]

        def cuDeviceGetCount(self, pointer):
            pointer._obj.value = codes[2]
            return codes[1]

    monkeypatch.setattr(device.ctypes, "CDLL", lambda name: Driver())
    found = device._explain_driver_error()
    assert said in found if said else found == ""


def test_without_a_driver_a_sentence_says_so(monkeypatch) -> None:
    def missing(name):
        raise OSError(name)

    monkeypatch.setattr(device.ctypes, "CDLL", missing)
    assert device._explain_driver_error() == "no NVIDIA driver was found on this machine"


def test_looking_for_a_gpu_loads_no_numba() -> None:
    program = (
        "import sys; from cgprimer.backends.cuda.cuda_engine import ENGINE; ENGINE.unavailable();"
        "assert not {'numba', 'llvmlite'} & set(sys.modules), 'numba is loaded'"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_choosing_it_where_it_cannot_be_used_is_an_error_with_the_reason(monkeypatch) -> None:
    reason = "there is an NVIDIA driver, but no GPU"
    monkeypatch.setattr(type(ENGINE), "unavailable", lambda self: reason)
    graph = cgprimer.parse("xw = k*xa")
    with refused(EngineError, f"'cuda' ... {reason}"):
        cgprimer.gradient(graph, {"k": 1.0, "xa": 2.0}, engine="cuda")
