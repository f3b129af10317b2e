"""Programs and code on disk: what comes back is what was kept, and only for what was asked."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import cgprimer
from cgprimer.backends import program_cache as keeping
from cgprimer.backends.cpu import interpreter, interpreter_code, llvm_library
from cgprimer.backends.program_cache import (
    deserialize_program,
    load_or_differentiate,
    serialize_program,
)
from cgprimer.core.evaluation.runner import Runner
from cgprimer.core.methods import differentiate, methods
from cgprimer.core.methods.derivative_program import DerivativeProgram
from cgprimer.core.operations import find_primitive
from cgprimer.core.registration import register_primitive, unregister_primitive
from cgprimer.core.tape.tape import Tape
from tests.native.engine_agreement import (
    DTYPES,
    REDUCTIONS,
    assert_alike,
    by_numpy,
    compiled,
    random_point,
)
from tests.primitives.row_tools import replaced

TEXT = "xh = tanh(a*xa + b) + max(xa, a); xg = xh^2*c + sin(xh)/a; xw = xg*xh - 0.1; output xw, xg"
# Finite differences have nothing to keep: their tape is the primal.
KEPT = [method for method in methods() if method != "finite-difference"]
OPTIONS: list[tuple[str, dict[str, Any]]] = [
    *((method, {}) for method in KEPT),
    ("forward", {"carry": True}),
    ("symbolic", {"share": False}),
]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own; programs of any size are kept."""
    monkeypatch.setenv("CGPRIMER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(keeping, "MIN_CACHED_INSTRUCTIONS", 0)
    monkeypatch.setattr(interpreter, "_MIN_CACHED_INSTRUCTIONS", 0)
    return tmp_path / "cache"


def kinds(place: Path) -> list[str]:
    return sorted(re.split(r"-[0-9a-f]{64}", file.name)[0] for file in place.glob("*"))


def fields(program: DerivativeProgram) -> dict[str, Any]:
    found = {name: getattr(program, name) for name in DerivativeProgram.__dataclass_fields__}
    assert isinstance(found["primal_names"], frozenset)
    found["primal_names"] = sorted(found["primal_names"])
    del found["tape"]
    tape = program.executed  # without what is there to be shown
    found["tape"] = {name: getattr(tape, name) for name in Tape.__dataclass_fields__}
    return found


def assert_same_program(found: DerivativeProgram, wanted: DerivativeProgram) -> None:
    """Every field, with its type and order, and the nan that is equal to nothing."""
    assert repr(fields(found)) == repr(fields(wanted))
    assert str(found) == str(wanted)


@pytest.mark.parametrize(("method", "options"), OPTIONS, ids=str)
def test_a_program_comes_back_as_it_was(method: str, options: dict[str, Any]) -> None:
    tape = cgprimer.tape(cgprimer.parse(TEXT.replace("max(xa, a)", "xa*a")))
    for wrt in (("a", "b", "c"), ("xh", "xa", "b", "xg")):
        program = differentiate(tape, of=("xw", "xg"), wrt=wrt, method=method, **options)
        assert_same_program(deserialize_program(serialize_program(program)), program)


@pytest.mark.parametrize("text", ["xw = xa", "xw = k", "xw = 3*k", "xw = k*xa; xv = 2*k*xa"])
def test_the_smallest_programs(text: str) -> None:
    graph = cgprimer.parse(text)
    for method in KEPT:
        program = differentiate(cgprimer.tape(graph), method=method, of="xw", wrt=("xw",))
        assert_same_program(deserialize_program(serialize_program(program)), program)


def test_numbers_that_text_cannot_hold() -> None:
    values = (0.1, -0.0, 5e-324, 1.7976931348623157e308, float("inf"), float("-inf"), float("nan"))
    from cgprimer.core.tape.builder import Builder

    builder = Builder()
    x = builder.column("x")
    outputs = {f"v{i}": builder.emit("add", x, builder.constant(v)) for i, v in enumerate(values)}
    program = DerivativeProgram("reverse", builder.finish(outputs), ("v0",), ("x",), ())
    assert_same_program(deserialize_program(serialize_program(program)), program)


def test_a_kept_program_runs_like_a_new_one() -> None:
    tape = cgprimer.tape(cgprimer.parse(TEXT.replace("max(xa, a)", "xa*a")))
    columns, scalars = random_point(tape, 11, low=0.5)
    for method, options in OPTIONS:
        made = differentiate(tape, of="xw", wrt=("a", "xh"), method=method, **options)
        found = Runner(deserialize_program(serialize_program(made)))(columns, scalars, 11)
        wanted = Runner(made)(columns, scalars, 11)
        for pair, value in wanted.derivatives.items():
            np.testing.assert_array_equal(found.derivatives[pair], value)


def test_it_is_derived_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tape = cgprimer.tape(cgprimer.parse(TEXT))
    first = load_or_differentiate(tape, of="xw", wrt=("a", "b"), method="reverse")
    assert kinds(place) == ["program"]

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("it is there already")

    with monkeypatch.context() as patch:
        patch.setattr(keeping, "differentiate", never)
        same = load_or_differentiate(tape, of="xw", wrt=("a", "b"), method="reverse")
        assert_same_program(same, first)
        asked: list[dict[str, Any]] = [
            {"of": "xg", "wrt": ("a", "b"), "method": "reverse"},
            {"of": "xw", "wrt": ("b", "a"), "method": "reverse"},
            {"of": "xw", "wrt": ("a",), "method": "reverse"},
            {"of": "xw", "wrt": ("a", "b"), "method": "forward"},
            {"of": "xw", "wrt": ("a", "b"), "method": "reverse", "carry": True},
        ]
        for other in asked:
            with pytest.raises(AssertionError, match="already"):
                load_or_differentiate(tape, **other)
        for text in (TEXT.replace("0.1", "0.2"), TEXT.replace("xh", "xq"), TEXT + ", xh"):
            changed = cgprimer.tape(cgprimer.parse(text))
            with pytest.raises(AssertionError, match="already"):
                load_or_differentiate(changed, of="xw", wrt=("a", "b"), method="reverse")


def test_a_damaged_program_is_derived_again(place: Path) -> None:
    tape = cgprimer.tape(cgprimer.parse(TEXT))
    wanted = load_or_differentiate(tape, of="xw", wrt=("a",), method="reverse")
    (file,) = place.iterdir()
    for damaged in (b"", file.read_bytes()[:-4], b"{}" + file.read_bytes()):
        file.write_bytes(damaged)
        found = load_or_differentiate(tape, of="xw", wrt=("a",), method="reverse")
        assert_same_program(found, wanted)


def test_rows_from_outside_are_not_shared(place: Path) -> None:
    register_primitive("twice", lambda a: 2 * a, partials="2")
    try:
        tape = cgprimer.tape(cgprimer.parse("xw = twice(k*xa)^2"))
        program = load_or_differentiate(tape, of="xw", wrt=("k",), method="reverse")
        run = compiled(program.tape, "interpreted", "sum")
        assert run({"xa": [1.0]}, {"k": 3.0}, 1)["xw"] == 36.0
        assert "program" not in kinds(place)
        assert "code" not in kinds(place)
    finally:
        unregister_primitive("twice")
    register_primitive("twice", lambda a: 3 * a, partials="3")
    try:
        program = load_or_differentiate(tape, of="xw", wrt=("k",), method="reverse")
        found = Runner(program, engine="cpu")({"xa": [1.0]}, {"k": 3.0}, 1)
        assert found.values["xw"] == 81.0
        assert found.derivatives["xw", "k"] == 54.0
    finally:
        unregister_primitive("twice")


def test_a_row_in_the_place_of_another_is_not_shared() -> None:
    tape = cgprimer.tape(cgprimer.parse("xw = tanh(k*xa)"))

    def slope() -> float:
        program = load_or_differentiate(tape, of="xw", wrt=("k",), method="reverse")
        found = Runner(program, engine="cpu")({"xa": [1.0]}, {"k": 0.5}, 1)
        return float(found.derivatives["xw", "k"][0])

    right = 1 - np.tanh(0.5) ** 2
    assert slope() == pytest.approx(right)
    with replaced(replace(find_primitive("tanh"), partials=("1 + out*out",))):
        assert slope() == pytest.approx(1 + np.tanh(0.5) ** 2)
    assert slope() == pytest.approx(right)
    with replaced(replace(find_primitive("tanh"), partials=("5",), function=np.tanh)):
        assert slope() == pytest.approx(5.0)
    assert slope() == pytest.approx(right)


@pytest.mark.parametrize("engine", ["interpreted", "straight"])
def test_code_is_not_shared_with_other_outputs(engine: str) -> None:
    tape = cgprimer.tape(cgprimer.parse("xg = tanh(k*xa); xw = xg + k"))
    inner = replace(tape, outputs={"xw": tape.names["xg"]})
    for one, value in ((tape, np.tanh(0.5) + 0.5), (inner, np.tanh(0.5))):
        found = compiled(one, engine, "none")({"xa": np.ones(1)}, {"k": 0.5}, 1)
        assert found["xw"] == pytest.approx([value])


# --- code ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_code_comes_back_as_it_was(reduction: Any, dtype: str, place: Path) -> None:
    lines = [f"h{j} = tanh(a{j}*xa + b{j}*xb + c{j}*sin(xa)*cos(xa))" for j in range(6)]
    lines += [f"g{j} = p{j}*h0 + q{j}*h1 + r{j}*h2 - h3" for j in range(5)]
    graph = cgprimer.parse([*lines, "xw = g0*g1 + g2/g3 - g4*h5 + h4*k^2", "output xw, h0"])
    tape = cgprimer.tape(graph)
    columns, scalars = random_point(tape, 75, dtype=dtype)
    first = compiled(tape, "interpreted", reduction, dtype)
    assert "code" in kinds(place)
    again = interpreter_code.InterpreterCode.from_bytes(first.code.to_bytes())
    for name in interpreter_code.InterpreterCode.__dataclass_fields__:
        found, wanted = getattr(again, name), getattr(first.code, name)
        assert type(found) is type(wanted), name
        if isinstance(wanted, np.ndarray):
            assert found.dtype == wanted.dtype, name
            np.testing.assert_array_equal(found, wanted, err_msg=name)
        else:
            assert found == wanted, name
    second = compiled(tape, "interpreted", reduction, dtype)
    found, wanted = (run(columns, scalars, 75) for run in (second, first))
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value)
    close = 1e-11 if dtype == "float64" else 1e-4
    reference = by_numpy(tape, reduction, dtype)(columns, scalars, 75)
    assert_alike(found, reference, scale=1000.0, close=close)


def test_every_choice_has_code_of_its_own(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tape = cgprimer.tape(cgprimer.parse("xw = sin(k*xa) + xa"))
    seen = 0
    for form_name in ("straight", "interpreted"):
        for reduction in REDUCTIONS:
            for dtype in DTYPES:
                compiled(tape, form_name, reduction, dtype)
                now = kinds(place)
                assert len(now) > seen, now
                seen = len(now)
                compiled(tape, form_name, reduction, dtype)
                assert len(kinds(place)) == seen
    # Another processor, or another version of the package.
    usual = llvm_library.get_target_processor()
    plainer = llvm_library.TargetProcessor("", "", usual.bits, usual.registers)
    with monkeypatch.context() as patch:
        patch.setattr(llvm_library, "get_target_processor", lambda: plainer)
        compiled(tape, "straight")
        assert len(kinds(place)) == seen + 1
    monkeypatch.setattr(llvm_library, "fingerprint_package", lambda: "a later version")
    monkeypatch.setattr(llvm_library, "_LOADED", {})  # another process has loaded nothing yet
    compiled(tape, "straight")
    assert len(kinds(place)) == seen + 2


# --- another process -----------------------------------------------------------------------------

_SCRIPT = """
import sys
import numpy as np
import cgprimer
from llvmlite import binding
from cgprimer.backends import program_cache as keeping
from cgprimer.backends.cpu import interpreter

keeping.MIN_CACHED_INSTRUCTIONS = interpreter._MIN_CACHED_INSTRUCTIONS = 0
if sys.argv[1] == "warm":
    def never(*_, **__):
        raise AssertionError("compiled again")
    real = binding.parse_assembly
    binding.parse_assembly = lambda text, *more: never() if text else real("")
    keeping.differentiate = never
    interpreter.build_plan = never
data = cgprimer.Dataset.from_arrays({"xa": np.linspace(-1, 1, 50)}, {"xw": np.linspace(0, 3, 50)})
from cgprimer.backends.cpu import cpu_engine
for cpu_engine.STRAIGHT in (400, -1):  # with a graph of its own: one keeps what was compiled for it
    graph = cgprimer.parse("xh = tanh(k*xa + b); xw = xh*k + xa; parameter k = 2, b = 1")
    call = cgprimer.loss_and_gradient(graph, data, engine="cpu")
    print(call({"k": 1.5, "b": 0.5}))
    run = cgprimer.train(graph, data, engine="cpu", epochs=2, batch_size=9)
    print(run.parameters, run.step_losses)
"""


def in_a_process(kind: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", _SCRIPT, kind],
        env={**os.environ, **environment}, capture_output=True, check=False, text=True,
        timeout=300,
    )  # fmt: skip


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder that a process has filled, and what it printed."""
    folder = tmp_path_factory.mktemp("filled")
    done = in_a_process("cold", CGPRIMER_CACHE=str(folder))
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_a_second_process_compiles_nothing(expected: tuple[Path, str]) -> None:
    folder, printed = expected
    names = {file.name: file.stat().st_ino for file in folder.iterdir()}
    assert {"straight-line", "interpreter", "epoch", "code", "program"} <= set(kinds(folder))
    done = in_a_process("warm", CGPRIMER_CACHE=str(folder))
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed
    assert {file.name: file.stat().st_ino for file in folder.iterdir()} == names
    done = in_a_process("warm", CGPRIMER_CACHE="off")  # so the check above could have failed
    assert "compiled again" in done.stderr


def test_a_process_replaces_what_is_damaged(expected: tuple[Path, str], place: Path) -> None:
    folder, printed = expected
    place.mkdir()
    for number, file in enumerate(sorted(folder.iterdir())):
        data = file.read_bytes()
        damaged = (data[:-9], b"", data[:60] + b"\xff" + data[61:], b"\x7fELF" + data)[number % 4]
        (place / file.name).write_bytes(damaged)
    done = in_a_process("cold", CGPRIMER_CACHE=str(place))
    assert (done.returncode, done.stdout) == (0, printed), done.stderr
    for file in folder.iterdir():
        assert (place / file.name).read_bytes() == file.read_bytes()


def test_a_home_that_cannot_be_written_to(expected: tuple[Path, str], tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("a file, so that no folder can be made in it")
    environment = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "x")}
    done = in_a_process("cold", CGPRIMER_CACHE=str(home / "y"), **environment)
    assert (done.returncode, done.stdout) == (0, expected[1]), done.stderr
