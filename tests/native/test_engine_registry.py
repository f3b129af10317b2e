"""Engines that are registered by a call or found by entry point, and engines that are missing."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.backends.cpu.llvm_library import (
    TargetProcessor,
    explain_unavailability,
    get_target_processor,
)
from cgprimer.core.evaluation.engine_choice import choose_engine
from cgprimer.core.evaluation.engines import ENGINES, select_engine
from cgprimer.errors import CgprimerError, UsageError
from cgprimer.support.entry_points import read_entry_points
from cgprimer.training.gradient_forms import prefers_scalars
from tests.approval import approved, refused
from tests.checking.submissions import compute
from tests.native.conftest import PROGRAMS, TABLES

ROOT = Path(__file__).parents[2]


class Doubling:
    """An engine of another package: the required protocol, and twice the values of numpy."""

    name = "doubling"

    def unavailable(self) -> str:
        return ""

    def compile(self, tape: Any, *, reduction: Any, dtype: str) -> Any:
        inner = select_engine("numpy").compile(tape, reduction=reduction, dtype=dtype)
        return lambda *given: {name: 2 * value for name, value in inner(*given).items()}


class Package:
    """What another package contains."""

    DOUBLING = Doubling()


def assert_doubled() -> None:
    at = {"a": 2.0, "xa": np.arange(4.0)}
    gradient = cgprimer.gradient(cgprimer.parse("xw = a*xa^2"), at, engine="doubling")["a"]
    np.testing.assert_array_equal(gradient, 2 * np.arange(4.0) ** 2)


@pytest.fixture
def registered() -> Iterator[None]:
    cgprimer.register_engine(Package.DOUBLING)
    yield
    cgprimer.unregister_engine("doubling")


def test_a_registered_engine_runs_and_is_listed_once(registered: None) -> None:
    assert [engine.name for engine in cgprimer.engines()][-1] == "doubling"
    assert_doubled()
    with refused(UsageError, "'doubling'"):
        cgprimer.register_engine(Package.DOUBLING)
    with pytest.raises(UsageError) as caught:
        select_engine("gpu")
    assert "cuda" in caught.value.hint


def test_an_engine_of_another_package_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    location = f"{__name__}:Package.DOUBLING"
    installed = {**ENGINES._installed, "doubling": location, "broken": "none:ENGINE"}
    monkeypatch.setattr(ENGINES, "_installed", installed)
    try:
        assert_doubled()
        last = cgprimer.engines()[-1]
        assert (last.name, last.available) == ("broken", False)
        assert "none" in last.reason
    finally:
        ENGINES._loaded.pop("doubling", None)


def test_entry_points_are_those_of_the_standard_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (good, bad) = (tmp_path / f"{name}-1.dist-info" for name in ("good", "bad"))
    for folder, text in ((good, PROGRAMS["entry points"]), (bad, "")):
        folder.mkdir()
        (folder / "METADATA").write_text(f"Name: {folder.name}\nVersion: 1\n")
        (folder / "entry_points.txt").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    groups = read_entry_points.__wrapped__()
    for group in (ENGINES.group, "console_scripts", "pytest11", "other.group"):
        points = {p.name: [p.module, p.attr] for p in entry_points(group=group)}
        expected = {name: ":".join(filter(None, parts)) for name, parts in points.items()}
        assert groups[group] == expected
    (bad / "entry_points.txt").write_bytes(b"[cgprimer.engines]\n\xe9 = a:b\n")
    assert {"cpu", "extras"} <= {*read_entry_points.__wrapped__()[ENGINES.group]}


@pytest.mark.slow
def test_sources_without_metadata_have_the_engine_plain() -> None:
    command = [sys.executable, "-S", "-c", PROGRAMS["without metadata"]]
    process = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert "'cpu'" in approved(process.stdout), process.stderr


SAMPLES = (None, 0, 20, 1_000, 10_000_000)
REQUESTED = ("auto", "plain", "numpy", "cpu", "cuda", "doubling")
CHAIN = "; ".join(["x0 = k*xa", *(f"x{n + 1} = sin(x{n})" for n in range(300))])


class Doubled(cgprimer.Function):
    """A function with its own backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return 2 * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return 2 * grad


def by_request(choose: Callable[[str], str]) -> str:
    """Return the choice for each requested engine, or the kind of error."""
    row = []
    for engine in REQUESTED:
        try:
            row.append(choose(engine))
        except CgprimerError as error:
            row.append(type(error).__name__)
    return " ".join(f"{choice:<11}" for choice in row).rstrip()


def rows(text: str, method: str, options: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what is asked about a program, and the answers."""
    primal = cgprimer.tape(cgprimer.parse(text))
    program = cgprimer.differentiate(primal, method=method, **options)

    def engine(samples: int | None, shape: tuple[int, ...] | None, requested: str) -> str:
        return choose_engine(requested, program, samples, shape).name

    def form(samples: int | None, requested: str) -> str:
        scalars = prefers_scalars(primal, method, options, requested, samples)
        return "scalars" if scalars else "arrays"

    work = [f"{name} {ENGINES[name].minimum_work(primal):g}" for name in ("numpy", "cpu", "cuda")]
    yield "minimum work", ", ".join(work)  # as in docs/internals/engines.md
    yield "single point", by_request(partial(engine, 1, ()))
    for count in SAMPLES:
        yield f"{count} samples", by_request(partial(engine, count, None))
        if count is not None:
            yield f"{count} samples, one call", by_request(partial(engine, count, (count,)))
        if primal.has_arrays:
            yield f"{count} samples, form", by_request(partial(form, count))


def test_the_engine_of_every_case_is_approved(
    registered: None, register: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pretend that all engines can be used, also those of other packages."""
    for name in ENGINES.names():
        monkeypatch.setattr(type(ENGINES[name]), "unavailable", lambda self: "")
    register("doubled", Doubled)
    lines = [f"{'':<60} {' '.join(f'{name:<11}' for name in REQUESTED)}"]
    for kind, text, method, given in TABLES["programs of engines"]:
        options, graph = compute(given), CHAIN if text == "chain" else text
        case = ", ".join((kind, method, *map(str, options)))
        lines += [f"{f'{case}, {asked}':<60} {row}" for asked, row in rows(graph, method, options)]
    approved("\n".join(lines))


@pytest.mark.skipif(bool(explain_unavailability()), reason="LLVM is missing")
def test_the_width_of_vectors_can_be_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    detect = get_target_processor.__wrapped__
    monkeypatch.delenv("CGPRIMER_VECTORS", raising=False)
    host = detect()
    assert host.bits in (128, 256, 512)
    for bits, double, single in ((64, 1, 1), (128, 2, 4), (256, 4, 8), (512, 8, 16)):
        lanes = TargetProcessor("", "", bits, 16).count_lanes
        assert (lanes("float64"), lanes("float32")) == (double, single)
    for value in ("", "64", "128", "256", "512"):
        monkeypatch.setenv("CGPRIMER_VECTORS", value)
        assert detect().bits == min(int(value or 512), host.bits)
    assert detect() == host
    monkeypatch.setenv("CGPRIMER_VECTORS", "256")
    if host.bits == 512:
        assert "-avx512f" in detect().features
        assert "+avx2" in detect().features
    for value in ("many", "0", "-5", "1000000"):
        monkeypatch.setenv("CGPRIMER_VECTORS", value)
        with refused(UsageError, f"CGPRIMER_VECTORS ... '{value}'"):
            detect()


def test_the_engine_cpu_describes_its_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("llvmlite")
    monkeypatch.setenv("CGPRIMER_THREADS", "3")
    monkeypatch.setenv("CGPRIMER_CACHE", str(tmp_path))
    for processor in (TargetProcessor("zen", "", 256, 16), TargetProcessor("", "", 64, 16)):
        monkeypatch.setattr(
            "cgprimer.backends.cpu.llvm_library.get_target_processor", lambda p=processor: p
        )
        approved(ENGINES["cpu"].describe())


def test_llvmlite_is_required_where_a_wheel_exists() -> None:
    requirement = pytest.importorskip("packaging.requirements").Requirement
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    lines = []
    for system in (
        "linux x86_64", "linux aarch64", "linux ppc64le", "darwin arm64", "darwin x86_64",
        "win32 AMD64", "win32 ARM64", "emscripten wasm32",
    ):  # fmt: skip
        values = dict(zip(("sys_platform", "platform_machine"), system.split(), strict=True))
        all_required = [r for r in map(requirement, listed) if r.name == "llvmlite"]
        required = [r for r in all_required if r.marker is None or r.marker.evaluate(values)]
        lines.append(f"{system}: {', '.join(str(r.specifier) for r in required)}")
    approved("\n".join(lines))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stub", "reason"),
    [
        ("raise ImportError('not for this machine')", "not for this machine"),
        ("raise OSError('lib.so: missing')", "lib.so: missing"),
        ("__version__ = '0.0'", "llvmlite"),
    ],
)
def test_without_llvm_the_other_engines_work(stub: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "llvmlite.py").write_text(stub)
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    command = [sys.executable, "-W", "error", "-c", PROGRAMS["without llvm"]]
    environment = {**os.environ, "PYTHONPATH": path}
    output = subprocess.check_output(command, env=environment, text=True, timeout=300)
    assert output.count("the engine 'cpu' is not available") == 2
    assert output.count(reason) >= 2
