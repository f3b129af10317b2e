"""Machines with fewer vectors, and machines without LLVM."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cgprimer.backends.cpu.llvm_library import (
    TargetProcessor,
    explain_unavailability,
    get_target_processor,
)
from cgprimer.core.operations import primitives
from cgprimer.errors import UsageError
from tests.approval import approved, refused

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
COUNT = sum(row.built_in for row in primitives())


def python(
    *arguments: str, path: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    places = [str(place) for place in (path, HERE, ROOT) if place is not None]
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places), **environment},
        capture_output=True, check=False, text=True, timeout=300, cwd=HERE,
    )  # fmt: skip


needs_llvm = pytest.mark.skipif(bool(explain_unavailability()), reason="LLVM is not here")


@needs_llvm
@pytest.mark.parametrize(
    "bits", ["64", *(pytest.param(bits, marks=pytest.mark.slow) for bits in ("128", "256"))]
)
def test_with_fewer_vectors(bits: str, tmp_path: Path) -> None:
    done = python("plainer_machine.py", CGPRIMER_VECTORS=bits, CGPRIMER_CACHE=str(tmp_path))
    assert done.returncode == 0, done.stderr[-3000:]
    found, _, rest = done.stdout.partition(" ")
    assert int(found) <= int(bits)
    assert bits in ("256", found)
    assert rest.strip() == f"bits, {COUNT} primitives"


@needs_llvm
def test_code_for_one_machine_is_not_taken_for_another(tmp_path: Path) -> None:
    script = (
        "import cgprimer\n"
        "from cgprimer.core.evaluation.engines import select_engine\n"
        "tape = cgprimer.tape(cgprimer.parse('xw = xa*2'))\n"
        "run = select_engine('cpu').compile(tape, reduction='sum', dtype='float64')\n"
        "print(run({'xa': [1.0, 2.0]}, {}, 2)['xw'])"
    )
    counts = []
    for bits in ("64", "128", "64", "512"):
        done = python("-c", script, CGPRIMER_VECTORS=bits, CGPRIMER_CACHE=str(tmp_path))
        assert done.stdout == "6.0\n", done.stderr
        counts.append(len(list(tmp_path.iterdir())))
    assert counts[0] < counts[1] == counts[2]


@pytest.mark.parametrize(
    ("bits", "double", "single"), [(64, 1, 1), (128, 2, 4), (256, 4, 8), (512, 8, 16)]
)
def test_lanes(bits: int, double: int, single: int) -> None:
    chosen = TargetProcessor("", "", bits, 16)
    assert (chosen.count_lanes("float64"), chosen.count_lanes("float32")) == (double, single)


@needs_llvm
def test_words_that_are_no_number_of_bits_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    anew = get_target_processor.__wrapped__  # what is asked for is read once a process
    monkeypatch.delenv("CGPRIMER_VECTORS", raising=False)
    assert isinstance(anew(), TargetProcessor)
    monkeypatch.setenv("CGPRIMER_VECTORS", "")
    assert isinstance(anew(), TargetProcessor)
    for bits in ("many", "0", "-5", "1000000"):
        monkeypatch.setenv("CGPRIMER_VECTORS", bits)
        with refused(UsageError, f"CGPRIMER_VECTORS ... '{bits}'"):
            anew()


# --- where LLVM is to be had ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("platform", "machine", "wanted"),
    [
        ("linux", "x86_64", ">=0.44"),
        ("linux", "aarch64", ">=0.44"),
        ("linux", "ppc64le", ""),
        ("darwin", "arm64", ">=0.44"),
        ("darwin", "x86_64", "==0.44.*"),
        ("win32", "AMD64", ">=0.44"),
        ("win32", "ARM64", ">=0.44"),
        ("win32", "x86", ""),
        ("emscripten", "wasm32", ""),
    ],
)
def test_it_is_asked_for_where_there_is_a_wheel(platform: str, machine: str, wanted: str) -> None:
    requirements = pytest.importorskip("packaging.requirements")
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    where = {"sys_platform": platform, "platform_machine": machine, "python_version": "3.12"}
    found = [
        str(r.specifier)
        for r in map(requirements.Requirement, listed)
        if r.name == "llvmlite" and (r.marker is None or r.marker.evaluate(where))
    ]
    assert found == ([wanted] if wanted else [])


# --- without LLVM --------------------------------------------------------------------------------

_WITHOUT = """
import sys
import numpy as np
import cgprimer
from cgprimer.cli import main
from cgprimer.errors import EngineError
from cgprimer.core.evaluation.engine_choice import choose_engine
graph = cgprimer.parse("xw = sin(k*xa); parameter k = 2")
program = cgprimer.differentiate(cgprimer.tape(graph))
assert choose_engine("auto", program, 10**6).name == "numpy"
data = cgprimer.make_dataset(graph, samples=3000)
print(cgprimer.gradient(graph, {"k": 0.0, "xa": 2.0}, engine="auto"))
run = cgprimer.train(graph, data, engine="auto", epochs=2)
print(run.settings["engine"], run.stopped)
for call in (
    lambda: cgprimer.gradient(graph, {"k": 0.0, "xa": 2.0}, engine="cpu"),
    lambda: cgprimer.train(graph, data, engine="cpu"),
):
    try:
        call()
    except EngineError as error:
        print(error)
for words in (["info"], ["train", "../../examples/lecture.cg", "--engine", "cpu"]):
    sys.argv = ["cgprimer", *words]
    print("---")
    try:
        main()
    except SystemExit as end:
        print("exit code", end.code)
"""


@pytest.mark.parametrize(
    "stub",
    [
        "raise ImportError('not for this machine')",
        "raise OSError('libllvmlite.so: not for this machine')",
        "raise RuntimeError('not for this machine')",
        "__version__ = '0.0'  # no binding: 'not for this machine' is what the test looks for",
    ],
    ids=["missing", "broken library", "anything else", "half installed"],
)
def test_without_llvm(stub: str, tmp_path: Path) -> None:
    package = tmp_path / "llvmlite"
    package.mkdir()
    (package / "__init__.py").write_text(stub + "\n")
    done = python("-c", _WITHOUT, path=tmp_path)
    assert done.returncode == 0, done.stderr
    called, info, wrong = done.stdout.split("---\n")
    assert called.splitlines()[:2] == ["{'k': 2.0}", "numpy finished"]
    why = "llvmlite" if "version" in stub else "not for this machine"
    assert called.count("the engine 'cpu' is not available") == 2
    assert called.count(why) >= 2
    assert info.endswith("exit code 0\n")
    (line,) = [text for text in info.splitlines() if text.strip().startswith("cpu:")]
    assert why in line
    assert wrong == "exit code 1\n"
    approved(done.stderr)
    assert "Traceback" not in done.stderr
