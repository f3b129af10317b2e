"""``cgprimer tape --code``: what the engines make of a tape."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cgprimer
from cgprimer.backends.code_listing import FORMS, code_text
from cgprimer.core.loss_expressions import LOSS
from cgprimer.core.loss_node import with_loss
from tests.approval import approved
from tests.cli.cli_tools import EXAMPLES, LECTURE, bad, good
from tests.cli.test_output import LAYERS

THREE = "xs = a*xa + b; xh = tanh(xs); xw = c*xh"
GRADIENT = ("--method", "reverse", "--loss", "squared-error")
NARROW = {"CGPRIMER_VECTORS": "128"}  # the same listing on every machine


def code(*arguments: object, form: str) -> list[str]:
    return good("tape", *arguments, "--code", form, env=NARROW).splitlines()


def gradient_tape(text: str) -> cgprimer.core.tape.tape.Tape:
    graph = cgprimer.parse(text)
    tape = with_loss(cgprimer.tape(graph), "squared-error")
    return cgprimer.differentiate(tape, of=LOSS, wrt=graph.parameters, method="reverse").tape


def test_the_command_offers_the_forms_that_there_are() -> None:
    from cgprimer.cli import tape_command as tape

    assert tape._FORMS == FORMS


def test_straight_line_code_has_the_names_of_the_tape() -> None:
    lines = code("-e", THREE, *GRADIENT, form="cpu")
    for line in (
        "; columns: xa, target_xw",
        "; scalars: a, b, c",
        "; after the sum: bar_a times 2, bar_b times 2, bar_c times 2",
        "  %v1 = fmul contract <4 x double> %a, %xa",
        "  %xs = fadd contract <4 x double> %v1, %b",
        "  %xh = call <4 x double> @cgprimer_tanh_float64_x4(<4 x double> %xs)",
        "  %v6 = fsub contract <4 x double> splat (double 1.0), %v5",
    ):
        assert line in lines, line
    assert sum(line.startswith("define") for line in lines) == 1
    assert re.fullmatch(r";   @cgprimer_tanh_float64_x4, \d+ lines", lines[-1])


def test_without_a_loss_there_is_a_value_for_each_sample() -> None:
    lines = code("-e", "xw = sin(k)*xa", form="cpu")
    assert "; results: xw" in lines
    assert any("store <4 x double> %xw" in line for line in lines)
    table = code("-e", "xw = sin(k)*xa", form="cpu-interpreter")
    assert "0  sin      u2      u0        v1 = sin(k)" in table
    assert table[-1].split() == ["2", "store", "result", "0", "r1", "xw"]


@pytest.mark.parametrize(
    "text",
    [
        THREE,
        "begin = 2*xa; xw = begin*k + columns*xa^3; entry = xw",
        "entry = sin(k*xa); xw = entry^2 + entry",
        "parameter w[2]; input x[2]; xw = sum(w*x)",
    ],
)
def test_what_is_shown_of_llvm_is_llvm(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    binding = pytest.importorskip("llvmlite.binding")
    # Nothing is compiled.
    monkeypatch.setattr("cgprimer.backends.cpu.straight_line.CompiledLibrary", None)
    shown = code_text(gradient_tape(text), "cpu", sums=True)
    called = {
        f"declare {kind} @{name}({operands})"
        for kind, name, operands in re.findall(r"call (.+?) @(\w+)\((<.+?>|double)", shown)
    }
    # Older LLVMs do not know ``splat (double 1.0)``.
    vector = re.search(r"<(\d+) x double>", shown)
    count = int(vector[1]) if vector else 1
    plain = re.sub(
        r"splat \((double [^)]+)\)", lambda found: f"<{', '.join([found[1]] * count)}>", shown
    )
    binding.parse_assembly("\n".join([plain, *called])).verify()


def test_the_interpreters_table_names_rows_and_places() -> None:
    lines = code("-e", THREE, *GRADIENT, form="cpu-interpreter")
    assert "uniform table: u0 = a, u1 = b, u2 = c, u3 = 2, u4 = 1, u5 = -0" in lines
    rows = [re.split(r"\s{2,}", line) for line in lines]
    assert ["2", "fma rss", "r2", "r0 u0 u1", "xs = a*xa + b"] in rows
    assert ["5", "dot", "sum 0", "r3 r3", "sum of v2*v2"] in rows


def run_table(lines: list[str], given: dict[str, float]) -> dict[str, float]:
    """Go through a table as the engine does, for one sample; returns the accumulators."""
    places: dict[str, float] = {}
    sums: dict[str, float] = {}
    for entry in lines[2].removeprefix("uniform table: ").split(", "):
        place, value = entry.split(" = ")
        places[place] = given[value] if value in given else float(value)
    start = lines.index("for every block of samples:") + 2
    for line in lines[start:]:
        _, handler, result, operands, *step = re.split(r"\s{2,}", line)
        name = handler.split(" ")[0]
        if name == "load":
            places[result] = given[step[0]]
            continue
        values = [places[o] for o in operands.split(" ")]
        if name in ("sum", "dot"):
            sums[result] = float(np.prod(values))
        else:
            places[result] = {
                "fma": lambda a, b, c=0.0: a * b + c,
                "fms": lambda a, b, c=0.0: a * b - c,
                "fnma": lambda a, b, c=0.0: c - a * b,
                "mul": lambda a, b: a * b,
                "tanh": np.tanh,
            }[name](*values)
    return sums


def test_the_table_computes_the_gradient() -> None:
    at = {"xa": 0.5, "a": 1.5, "b": -0.25, "c": 2.0}
    lines = code("-e", THREE, *GRADIENT, form="cpu-interpreter")
    sums = run_table(lines, at | {"target_xw": 1.0})
    graph = cgprimer.parse(THREE)
    data = cgprimer.Dataset.from_arrays(inputs={"xa": [0.5]}, targets={"xw": [1.0]})
    parameters = {name: at[name] for name in "abc"}
    loss, gradient = cgprimer.loss_and_gradient(graph, data, engine="numpy")(parameters)
    assert sorted(sums.values()) == pytest.approx(sorted([loss, *gradient.values()]), rel=1e-12)


def test_matrices_and_blocks_of_products_have_their_rows(tmp_path: Path) -> None:
    file = tmp_path / "network.cg"
    file.write_text(LAYERS)
    for form in ("cpu-interpreter", "cuda-interpreter"):
        lines = code(file, *GRADIENT, form=form)
        affine = next(line for line in lines if " affine" in line)
        assert len(re.findall(r"r\d+-r\d+", affine)) == 2
        assert "matrix 4x4 * (x0, x1, x2, x3)" in affine
        assert any(" outer" in line and " x r" in line for line in lines)


def test_a_large_tape_is_for_the_interpreter() -> None:
    text = "; ".join(f"x{i} = sin(x{i - 1}) + k*x{i - 1}" for i in range(1, 301))
    lines = code("-e", text, form="cpu")
    assert lines[0] == "code for the interpreter of the engine cpu; float64"
    assert lines[-1] == "(--all shows all)"
    whole = good("tape", "-e", text, "--code", "cpu", "--all").splitlines()
    assert len(whole) == 6 + 1 + 600 + 1  # head, load, steps, store
    kernel = good("tape", "-e", text, "--code", "cuda", "--all")
    assert "code for the interpreter of the engine cuda" in kernel


def test_a_primitive_in_python_shows_as_a_call() -> None:
    row = cgprimer.register_primitive(
        "hump", lambda a, b: a * np.exp(-b * b), partials=("exp(-b*b)", "-2*a*b*exp(-b*b)")
    )
    try:
        graph = cgprimer.parse("xw = hump(xa, k) + hump(k, k)")
        shown = code_text(cgprimer.tape(graph), "cpu", sums=False)
    finally:
        cgprimer.unregister_primitive(row.name)
    lines = [re.split(r"\s{2,}", line) for line in shown.splitlines()]
    assert ["0", "call hump", "u2", "u0 u0", "v2 = hump(k, k)"] in lines
    assert [line[1:] for line in lines if line[-1] == "v1 = hump(xa, k)"] == [
        ["call hump", "r1", "r0 r2", "v1 = hump(xa, k)"]
    ]
    assert shown.splitlines()[-1] == "functions of Python that are called: hump"


def test_the_kernel_is_python_and_needs_no_gpu() -> None:
    for form in ("cuda", "cuda-interpreter"):
        shown = "\n".join(code("-e", THREE, *GRADIENT, form=form))
        compile(shown, form, "exec")
        assert "def kernel(" in shown
    line = "        r2 = u[0] * r0 + u[1]  # xs = a*xa + b"
    assert line in code("-e", THREE, *GRADIENT, form="cuda")
    lines = code("-e", "xw = 2*k", form="cuda")
    assert lines == ["# no kernel: no output varies with the sample"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.cg")), ids=lambda path: path.stem)
def test_every_example_has_code(file: Path, form: str) -> None:
    graph = cgprimer.load(file)
    primal = cgprimer.tape(graph)
    assert code_text(primal, form, sums=False)
    if graph.parameters and graph.outputs:
        tape = with_loss(primal, "squared-error")
        program = cgprimer.differentiate(tape, of=LOSS, wrt=graph.parameters, method="reverse")
        for dtype in ("float64", "float32"):
            assert dtype in code_text(program.tape, form, sums=True, dtype=dtype)


def without(module: str, form: str) -> subprocess.CompletedProcess[str]:
    """The command in a Python that lacks a library."""
    program = (
        f"import sys; sys.modules[{module!r}] = None\n"
        f"sys.argv = ['cgprimer', 'tape', {str(LECTURE)!r}, '--code', {form!r}]\n"
        "from cgprimer.cli import main; main()"
    )
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )


def test_without_llvmlite_the_command_says_so() -> None:
    for form in ("cpu", "cpu-interpreter"):
        done = without("llvmlite", form)
        assert done.returncode == 1
        assert done.stdout == ""
        assert "llvmlite" in done.stderr
        assert "Traceback" not in done.stderr


def test_the_kernels_source_needs_no_numba() -> None:
    done = without("numba", "cuda")
    assert done.returncode == 0, done.stderr
    assert "def kernel(" in done.stdout


def test_wrong_use_is_said_in_a_line() -> None:
    approved(bad("tape", LECTURE, "--passes", "--code", "cpu"), "--passes ... --code")
    approved(bad("tape", LECTURE, "--code", "tpu"), "'tpu'")
