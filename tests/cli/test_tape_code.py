"""``cgprimer tape --code``: the code that the engines generate from a tape."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import cgprimer
from cgprimer.backends.code_listing import FORMS, code_text
from cgprimer.cli import tape_command
from cgprimer.core.loss_expressions import LOSS
from cgprimer.core.loss_node import with_loss
from tests.approval import approved
from tests.cli.cli_tools import EXAMPLES, LECTURE, bad, good, vectors_of
from tests.cli.test_output import LAYERS

THREE = "xs = a*xa + b; xh = tanh(xs); xw = c*xh"
GRADIENT = ("--method", "reverse", "--loss", "squared-error")


def gradient_tape(text: str) -> cgprimer.core.tape.tape.Tape:
    """Return the tape of the squared error and its gradient."""
    graph = cgprimer.parse(text)
    tape = with_loss(cgprimer.tape(graph), "squared-error")
    return cgprimer.differentiate(tape, of=LOSS, wrt=graph.parameters, method="reverse").tape


def split_columns(line: str) -> list[str]:
    return re.split(r"\s{2,}", line)


@pytest.mark.parametrize("form", FORMS)
def test_code_is_approved(form: str) -> None:
    assert tape_command._FORMS == FORMS
    with vectors_of("128"):  # those of every machine
        text = good("tape", "-e", THREE, *GRADIENT, "--code", form)
    approved(re.sub(r"x4, \d+ lines", "x4, N lines", text))
    if form.startswith("cuda"):
        compile(text, form, "exec")


@pytest.mark.parametrize(
    "text",
    [
        THREE,
        "begin = 2*xa; xw = begin*k + columns*xa^3; entry = xw",
        "parameter w[2]; input x[2]; xw = sum(w*x)",
    ],
)
def test_llvm_accepts_the_code(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    binding = pytest.importorskip("llvmlite.binding")
    monkeypatch.setattr("cgprimer.backends.cpu.straight_line.CompiledLibrary", None)
    shown = code_text(gradient_tape(text), "cpu", sums=True)  # nothing is compiled
    called = {
        f"declare {kind} @{name}({operands})"
        for kind, name, operands in re.findall(r"call (.+?) @(\w+)\((<.+?>|double)", shown)
    }
    # Older LLVMs do not know ``splat (double 1.0)``.
    vector = re.search(r"<(\d+) x double>", shown)
    count = int(vector[1]) if vector else 1
    plain = re.sub(
        r"splat \((double [^)]+)\)", lambda match: f"<{', '.join([match[1]] * count)}>", shown
    )
    binding.parse_assembly("\n".join([plain, *called])).verify()


def test_primitives_in_python_are_calls() -> None:
    row = cgprimer.register_primitive(
        "hump", lambda a, b: a * np.exp(-b * b), partials=("exp(-b*b)", "-2*a*b*exp(-b*b)")
    )
    try:
        graph = cgprimer.parse("xw = hump(xa, k) + hump(k, k)")
        lines = code_text(cgprimer.tape(graph), "cpu", sums=False).splitlines()
    finally:
        cgprimer.unregister_primitive(row.name)
    rows = [split_columns(line) for line in lines]
    assert ["0", "call hump", "u2", "u0 u0", "v2 = hump(k, k)"] in rows
    assert ["call hump", "r1", "r0 r2", "v1 = hump(xa, k)"] in [row[1:] for row in rows]
    assert lines[-1] == "functions of Python that are called: hump"


def test_layers_and_large_tapes_are_tables() -> None:
    for form in ("cpu-interpreter", "cuda-interpreter"):
        lines = good("tape", "-e", LAYERS, *GRADIENT, "--code", form).splitlines()
        affine = next(line for line in lines if " affine" in line)
        assert len(re.findall(r"r\d+-r\d+", affine)) == 2
        assert "matrix 4x4 * (x0, x1, x2, x3)" in affine
        assert any(" outer" in line and " x r" in line for line in lines)
    text = "; ".join(f"x{i} = sin(x{i - 1}) + k*x{i - 1}" for i in range(1, 301))
    lines = good("tape", "-e", text, "--code", "cpu").splitlines()
    assert lines[0] == "code for the interpreter of the engine cpu; float64"
    assert lines[-1] == "(--all shows all)"
    lines = good("tape", "-e", text, "--code", "cpu", "--all").splitlines()
    assert len(lines) == 6 + 1 + 600 + 1  # head, load, steps, store


@pytest.mark.slow
@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.cg")), ids=lambda path: path.stem)
def test_every_example_has_code(file: Path) -> None:
    graph = cgprimer.load(file)
    for form in FORMS:
        assert code_text(cgprimer.tape(graph), form, sums=False)
        if graph.parameters and graph.outputs:
            tape = gradient_tape(file.read_text(encoding="utf-8"))
            for dtype in ("float64", "float32"):
                assert dtype in code_text(tape, form, sums=True, dtype=dtype)


def test_kernels_need_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    assert "def kernel(" in good("tape", LECTURE, "--code", "cuda")
    shown = good("tape", "-e", "xw = 2*k", "--code", "cuda")
    assert shown == "# no kernel: no output varies with the sample\n"


def test_a_missing_llvmlite_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("llvmlite")]:
        monkeypatch.setitem(sys.modules, name, None)
    message = bad("tape", "-e", "xw = tanh(k)*xa*3", "--code", "cpu-interpreter", code=1)
    assert "llvmlite" in message
