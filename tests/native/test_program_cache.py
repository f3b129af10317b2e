"""Derivative programs and code on disk: they come back unchanged, and only for the same request."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import cgprimer
from cgprimer.backends import program_cache
from cgprimer.backends.cpu import interpreter, interpreter_code, llvm_library
from cgprimer.backends.program_cache import (
    deserialize_program,
    load_or_differentiate,
    merge_passes,
    serialize_program,
)
from cgprimer.core.evaluation.runner import Runner
from cgprimer.core.methods import differentiate, methods
from cgprimer.core.methods.derivative_program import DerivativeProgram, Pass, Read
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Tape
from cgprimer.support import disk_cache
from tests.native.engine_agreement import (
    DTYPES,
    FORMS,
    REDUCTIONS,
    compiled,
    form,
    random_point,
)

TEXT = "xh = tanh(a*xa + b) + max(xa, a); xg = xh^2*c + sin(xh)/a; xw = xg*xh - 0.1; output xw, xg"
SMOOTH = TEXT.replace("max(xa, a)", "xa*a")
# Finite differences have nothing to store: their tape is the primal.
STORED = [method for method in methods() if method != "finite-difference"]
OPTIONS: list[tuple[str, dict[str, Any]]] = [
    *((method, {}) for method in STORED),
    ("forward", {"carry": True}),
    ("symbolic", {"share": False}),
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty cache folder; programs of any size are stored."""
    monkeypatch.setenv("CGPRIMER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(program_cache, "MIN_CACHED_INSTRUCTIONS", 0)
    monkeypatch.setattr(interpreter, "_MIN_CACHED_INSTRUCTIONS", 0)
    return tmp_path / "cache"


def kinds(folder: Path) -> list[str]:
    return sorted(re.split(r"-[0-9a-f]{64}", file.name)[0] for file in folder.glob("*"))


def fields(program: DerivativeProgram) -> dict[str, Any]:
    result = {name: getattr(program, name) for name in DerivativeProgram.__dataclass_fields__}
    assert isinstance(result["primal_names"], frozenset)
    result["primal_names"] = sorted(result["primal_names"])
    tape = program.executed  # without instructions that are only displayed
    result["tape"] = {name: getattr(tape, name) for name in Tape.__dataclass_fields__}
    return result


def assert_same_program(result: DerivativeProgram, expected: DerivativeProgram) -> None:
    """Compare every field, with its type and order; the text of nan equals itself."""
    assert repr(fields(result)) == repr(fields(expected))
    assert str(result) == str(expected)


@pytest.mark.parametrize(("method", "options"), OPTIONS, ids=str)
def test_a_program_is_deserialized_unchanged(method: str, options: dict[str, Any]) -> None:
    for text, wrt in (
        (SMOOTH, ("a", "b", "c")),
        (SMOOTH, ("xh", "xa", "b", "xg")),
        *((text, ("xw",)) for text in ("xw = xa", "xw = k", "xw = k*xa; xv = 2*k*xa")),
    ):
        tape = cgprimer.tape(cgprimer.parse(text))
        of = ("xw", "xg") if text is SMOOTH else "xw"
        program = differentiate(tape, of=of, wrt=wrt, method=method, **options)
        again = deserialize_program(serialize_program(program))
        assert_same_program(again, program)


def test_all_doubles_survive_serialization() -> None:
    values = (0.1, -0.0, 5e-324, 1.7976931348623157e308, float("inf"), float("-inf"), float("nan"))
    builder = Builder()
    x = builder.column("x")
    outputs = {f"v{i}": builder.emit("add", x, builder.constant(v)) for i, v in enumerate(values)}
    program = DerivativeProgram("reverse", builder.finish(outputs), ("v0",), ("x",), ())
    assert_same_program(deserialize_program(serialize_program(program)), program)


def test_a_program_is_stored_for_its_request_only(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = cgprimer.tape(cgprimer.parse(TEXT))
    request: dict[str, Any] = {"of": "xw", "wrt": ("a", "b"), "method": "reverse"}
    first = load_or_differentiate(tape, **request)
    assert kinds(folder) == ["program"]
    derived = pytest.raises(AssertionError, match="derived again")
    error = AssertionError("derived again")
    monkeypatch.setattr(program_cache, "differentiate", Mock(side_effect=error))
    assert_same_program(load_or_differentiate(tape, **request), first)
    changes: list[dict[str, Any]] = [
        {"of": "xg"}, {"wrt": ("b", "a")}, {"wrt": ("a",)}, {"method": "forward"},
        {"carry": True}, {"about": "a loss", "prepare": lambda: tape},
    ]  # fmt: skip
    for change in changes:
        with derived:
            load_or_differentiate(tape, **{**request, **change})
    for text in (TEXT.replace("0.1", "0.2"), TEXT.replace("xh", "xq"), TEXT + ", xh"):
        with derived:
            load_or_differentiate(cgprimer.tape(cgprimer.parse(text)), **request)
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    for damaged in (b"", whole[:-4], b"{}" + whole):
        file.write_bytes(damaged)
        with derived:
            load_or_differentiate(tape, **request)


def test_programs_with_custom_primitives_are_not_stored(register: Any, folder: Path) -> None:
    tape = cgprimer.tape(cgprimer.parse("xw = tanh(k*xa)"))

    def slope(graph: Tape = tape) -> float:
        program = load_or_differentiate(graph, of="xw", wrt=("k",), method="reverse")
        result = Runner(program, engine="cpu")({"xa": [1.0]}, {"k": 0.5}, 1)
        return float(result.derivatives["xw", "k"][0])

    assert slope() == pytest.approx(1 - np.tanh(0.5) ** 2)
    before = kinds(folder)
    register("twice", lambda a: 2 * a, partials="2")
    custom = cgprimer.tape(cgprimer.parse("xw = twice(k*xa)^2"))
    assert slope(custom) == pytest.approx(4.0)
    compiled(custom, "interpreted", "sum")
    assert set(kinds(folder)) <= {*before, "interpreter", "straight-line"}
    cgprimer.unregister_primitive("twice")
    cgprimer.register_primitive("twice", lambda a: 3 * a, partials="3")
    assert slope(custom) == pytest.approx(9.0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_interpreter_code_is_loaded_unchanged(reduction: Any, dtype: str, folder: Path) -> None:
    lines = [f"h{j} = tanh(a{j}*xa + b{j}*xb + c{j}*sin(xa)*cos(xa))" for j in range(6)]
    lines += [f"g{j} = p{j}*h0 + q{j}*h1 + r{j}*h2 - h3" for j in range(5)]
    graph = cgprimer.parse([*lines, "xw = g0*g1 + g2/g3 - g4*h5 + h4*k^2", "output xw, h0"])
    tape = cgprimer.tape(graph)
    columns, scalars = random_point(tape, 75, dtype=dtype)
    first = compiled(tape, "interpreted", reduction, dtype)
    assert "code" in kinds(folder)
    again = interpreter_code.InterpreterCode.from_bytes(first.code.to_bytes())
    for name in interpreter_code.InterpreterCode.__dataclass_fields__:
        result, expected = getattr(again, name), getattr(first.code, name)
        assert type(result) is type(expected), name
        np.testing.assert_array_equal(result, expected, err_msg=name)
        assert getattr(result, "dtype", None) == getattr(expected, "dtype", None), name
    second = compiled(tape, "interpreted", reduction, dtype)(columns, scalars, 75)
    np.testing.assert_equal(second, first(columns, scalars, 75))


def test_each_choice_has_separate_code(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tape = cgprimer.tape(cgprimer.parse("xg = sin(k*xa); xw = xg + xa"))
    files = 0
    monkeypatch.setattr(llvm_library, "_LOADED", {})  # as in a new process
    for reduction, dtype in ((r, d) for r in REDUCTIONS for d in DTYPES):
        compiled(tape, "straight", reduction, dtype)
        assert len(kinds(folder)) > files
        files = len(kinds(folder))
        compiled(tape, "straight", reduction, dtype)
        assert len(kinds(folder)) == files
    inner = replace(tape, outputs={"xw": tape.names["xg"]})
    for name in FORMS:  # another output of equal instructions
        result = compiled(inner, name)({"xa": np.ones(1)}, {"k": 0.5}, 1)["xw"]
        assert result == pytest.approx([np.sin(0.5)])
    files = len(kinds(folder))
    usual = llvm_library.get_target_processor()
    plain = llvm_library.TargetProcessor("", "", usual.bits, usual.registers)
    with monkeypatch.context() as patch:
        patch.setattr(llvm_library, "get_target_processor", lambda: plain)
        compiled(tape, "straight")
        assert len(kinds(folder)) == files + 1
    monkeypatch.setattr(llvm_library, "fingerprint_package", lambda: "a later version")
    monkeypatch.setattr(llvm_library, "_LOADED", {})
    compiled(tape, "straight")
    assert len(kinds(folder)) == files + 2


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="other systems have other owners")
@pytest.mark.parametrize("part", ["world", "owner", "swapped"])
def test_planted_code_is_never_run(
    part: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Object code of another tape under the right name would compute another sum."""
    if part == "owner" and os.geteuid():
        pytest.skip("only root can give files away")

    def compute(number: int) -> float:
        monkeypatch.setattr(llvm_library, "_LOADED", {})  # as in a new process
        tape = cgprimer.tape(cgprimer.parse(f"xw = xa + {number}"))
        return float(compiled(tape, "straight", "sum")({"xa": np.zeros(64)}, {}, 64)["xw"])

    assert (compute(1), compute(2)) == (64.0, 128.0)
    one, two = sorted(folder.glob("straight-line-*"), key=lambda file: file.stat().st_mtime_ns)
    if part == "swapped":
        two.write_bytes(one.read_bytes())
        assert compute(2) == 128.0
        return
    data = one.read_bytes()[len(disk_cache._MAGIC) + 32 :]
    two.write_bytes(disk_cache._create_header(two.name, data) + data)  # with a valid checksum
    assert compute(2) == 64.0  # the planted code is valid, so only its owner can be distrusted
    if part == "owner":
        os.chown(folder, 65_534, 65_534)
    else:
        folder.chmod(0o757)
    disk_cache._warn_once.cache_clear()
    with pytest.warns(UserWarning, match="the cache of compiled code is disabled"):
        assert compute(2) == 128.0


def train_as_a_new_process() -> str:
    """Train in either form of code, without code and graphs that are already in memory."""
    llvm_library._LOADED.clear()
    interpreter.load_interpreter.cache_clear()
    x = np.linspace(-1, 1, 50)
    data, printed = cgprimer.Dataset.from_arrays({"xa": x}, {"xw": np.linspace(0, 3, 50)}), ""
    for name in FORMS:
        graph = cgprimer.parse("xh = tanh(k*xa + b); xw = xh*k + xa; parameter k = 2, b = 1")
        with form(name):
            printed += str(cgprimer.loss_and_gradient(graph, data, engine="cpu")(graph.values))
            run = cgprimer.train(graph, data, engine="cpu", epochs=2, batch_size=9)
        printed += f"{run.parameters} {run.step_losses}"
    return printed


@pytest.mark.slow
def test_a_second_process_compiles_nothing_unless_files_are_damaged(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binding = pytest.importorskip("llvmlite.binding")
    parse = binding.parse_assembly

    def parse_empty(text: str, *context: Any) -> Any:
        assert text == "", "compiled again"
        return parse(text, *context)

    printed = train_as_a_new_process()
    files = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert {"straight-line", "interpreter", "epoch", "code", "program"} <= set(kinds(folder))
    with monkeypatch.context() as patch:
        patch.setattr(binding, "parse_assembly", parse_empty)
        for module, name in ((program_cache, "differentiate"), (interpreter, "build_plan")):
            patch.setattr(module, name, Mock(side_effect=AssertionError("compiled again")))
        assert train_as_a_new_process() == printed
        assert {file.name: file.read_bytes() for file in folder.iterdir()} == files
        patch.setenv("CGPRIMER_CACHE", "off")
        with pytest.raises(AssertionError, match="compiled again"):
            train_as_a_new_process()
    for number, (name, data) in enumerate(sorted(files.items())):
        damaged = (data[:-9], b"", data[:60] + b"\xff" + data[61:], b"\x7fELF" + data)[number % 4]
        (folder / name).write_bytes(damaged)
    assert train_as_a_new_process() == printed
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == files
    (tmp_path / "file").touch()
    monkeypatch.setenv("CGPRIMER_CACHE", str(tmp_path / "file" / "folder"))
    assert train_as_a_new_process() == printed


def test_a_loss_with_a_custom_primitive_is_not_loaded_from_the_cache() -> None:
    text = "; ".join(f"x{k + 1} = sin(x{k}) + k*x{k}" for k in range(100))
    data = cgprimer.Dataset.from_arrays({"x0": [0.1]}, {"x100": [0.2]})
    slopes = []
    for factor in (1, 3):
        cgprimer.register_primitive(
            "hub", lambda a, factor=factor: factor * a * a, partials=f"{2 * factor}*a"
        )
        graph = cgprimer.parse(text)
        call = cgprimer.loss_and_gradient(graph, data, loss="hub(out-target)", engine="numpy")
        slopes.append(call({"k": -0.5})[1]["k"])
        cgprimer.unregister_primitive("hub")
    assert slopes[0] != 0
    assert slopes[1] == pytest.approx(3 * slopes[0], rel=1e-12)


def test_passes_with_weights_are_added_and_some_programs_are_not_merged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    primal = cgprimer.tape(cgprimer.parse("xw = sin(k*xa)*m"))
    program = differentiate(primal, wrt=("k", "m"), method="forward")
    passes = tuple(
        Pass(tuple(Read(r.of, r.wrt, r.output, w) for r in p.reads for w in (2.0, -0.5)), p.seeds)
        for p in program.passes
    )
    tape = merge_passes(replace(program, passes=passes))
    assert tape is not None
    xa = np.linspace(0, 1, 9)
    result = compiled(tape, "numpy", "sum")({"xa": xa}, {"k": 0.5, "m": 2.0}, 9)
    assert result["xw"] == pytest.approx(np.sum(2 * np.sin(0.5 * xa)))
    assert result["d.xw.d.k"] == pytest.approx(1.5 * np.sum(2 * xa * np.cos(0.5 * xa)))
    assert result["d.xw.d.m"] == pytest.approx(1.5 * np.sum(np.sin(0.5 * xa)))
    for scheme in ("central", "complex-step"):
        differences = differentiate(primal, method="finite-difference", scheme=scheme)
        assert merge_passes(differences) is None
    monkeypatch.setattr(program_cache, "MAX_MERGED_OPERATIONS", program.operation_count)
    assert merge_passes(program) is not None
    monkeypatch.setattr(program_cache, "MAX_MERGED_OPERATIONS", program.operation_count - 1)
    assert merge_passes(program) is None
