"""Output of commands that describe graphs: results on standard output, notes on standard error."""

from __future__ import annotations

import json
import math
import shlex
import sys
import webbrowser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import cgprimer
from cgprimer.cli import file_watching
from cgprimer.cli.primitives_command import ARRAYS
from cgprimer.core.operations.primitive_registry import ARRAY_FUNCTIONS
from tests.approval import approved
from tests.cli.cli_tools import EXAMPLES, LECTURE, bad, good, read_json, run, without_times

HIDDEN = ["+".join([f"b{j}", *(f"w{j}{i}*x{i}" for i in range(4))]) for j in range(4)]
LAYERS = "; ".join([f"xh{j} = tanh({terms})" for j, terms in enumerate(HIDDEN)])
LAYERS += "; xw = v0*xh0 + v1*xh1 + v2*xh2 + v3*xh3"
CHAIN = "; ".join(f"x{i} = sin(x{i - 1})" for i in range(1, 301))
PARABOLOID = "f = 2*x^2 + 3*y^2"
# Command lines whose whole output is approved.
OUTPUTS = Path(__file__).with_name("outputs.txt").read_text("utf-8").splitlines()


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(line, marks=[pytest.mark.slow] * line.startswith("draw"), id=line[:90])
        for line in OUTPUTS
    ],
)
def test_output_is_approved(line: str, tmp_path: Path) -> None:
    process = run(*shlex.split(line), cwd=tmp_path)
    assert process.returncode == 0, process.stderr
    approved(without_times(f"{process.stdout}{process.stderr}"))


def test_a_graph_is_read_from_a_file_an_option_and_standard_input(tmp_path: Path) -> None:
    text = LECTURE.read_text()
    expected = "xw = 21.546875\nd xw / d ab = 5.671875\n"
    for arguments in (LECTURE,), ("lecture",), ("-e", text), ("-",):
        stdin = text.replace("\n", "\r\n") if arguments == ("-",) else None
        process = run("grad", *arguments, stdin=stdin)
        assert process.stdout.startswith(expected)
        assert (process.returncode, process.stderr) == (0, "")
    (tmp_path / "lecture").write_text("xw = k*xq")  # takes precedence over the example
    assert "inputs: xq" in good("info", "lecture", cwd=tmp_path)


@pytest.mark.parametrize(
    ("text", "at", "expected"),
    [
        (PARABOLOID, "x=4,y=5", ["x is an input", "y a parameter", "--wrt x,y"]),
        (f"{PARABOLOID}*z", "x=4,y=5,z=1", ["y, z parameters", "--wrt x,y,z", "all"]),
        ("f = sum(x)*x1*y; input x[2] = 1", "x[0]=4,x1=1,y=5", ["--wrt x1,y"]),
        (f"{PARABOLOID}; parameter y = 5", "x=4", []),
        ("f = 2*x^2 + 3*x1", "x=4,x1=5", []),
    ],
)
def test_grad_notes_roles_that_follow_from_letters(text: str, at: str, expected: list[str]) -> None:
    message = run("grad", "-e", text, "--at", at).stderr
    assert len(message.splitlines()) == bool(expected)
    assert all(part in message for part in expected)
    assert run("grad", "-e", text, "--at", at, "--wrt", "y" if "y" in text else "x").stderr == ""


def test_numbers_are_printed_with_all_digits() -> None:
    assert good("grad", "-e", "xw = exp(k)", "--at", "k=1").startswith(f"xw = {math.e!r}\n")


def test_long_listings_are_cut_unless_all_is_requested() -> None:
    terms = " + ".join(f"{k}*x^{k}" for k in range(1, 200))
    lines = good("tape", "-e", CHAIN).splitlines()
    assert (len(lines), lines[-2:]) == (202, ["... 102 more lines", "(--all shows all)"])
    assert len(good("tape", "-e", CHAIN, "--all").splitlines()) == 302
    assert "more lines (--all shows all)" in good("rules", terms)
    assert len(good("rules", terms, "--all").splitlines()) > len(good("rules", terms).splitlines())


def test_every_array_function_is_listed() -> None:
    printed = good("primitives")
    assert {*ARRAYS} == {*ARRAY_FUNCTIONS, "index"}
    assert all(part in printed for row in ARRAYS.values() for part in row)
    names = {row["name"] for row in read_json("primitives")}
    assert {"exp", "acsch", "gelu", "clamp", "stop_gradient", "matmul", "softmax"} <= names


def test_the_page_of_a_comparison_has_the_chosen_methods_and_variables(tmp_path: Path) -> None:
    chosen = ("--method", "reverse", "--method", "forward", "--at", "xa=-0.5", "--wrt", "ab,xa")
    good("compare", LECTURE, "-o", "a.html", "--title", "1 < 2", *chosen, cwd=tmp_path)
    page = (tmp_path / "a.html").read_text()
    for part in ("<h1>1 &lt; 2</h1>", "dxw/dab", 'aria-label="forward"', "input xa = -0.5"):
        assert part in page
    assert "dxw/dbc" not in page
    assert 'aria-label="symbolic"' not in page


def test_pictures_are_named_after_the_graph_and_survive_errors(tmp_path: Path) -> None:
    good("draw", EXAMPLES / "olah.cg", cwd=tmp_path)
    good("draw", "-", stdin="xw = k*xa", cwd=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph.png", "olah.png"]
    (tmp_path / "olah.png").write_text("older")
    for arguments in (["xw = nosuch(xa)"], ["xw = k*xa", "--values"]):
        bad("draw", "-e", *arguments, "-o", "olah.png", cwd=tmp_path)
    assert (tmp_path / "olah.png").read_text() == "older"


def test_only_graphical_browsers_are_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    for name, expected in (("firefox", True), ("w3m", False), ("lynx", False)):
        browser = SimpleNamespace(name=name, open=lambda address: not opened.append(address))
        monkeypatch.setattr(webbrowser, "get", lambda browser=browser: browser)
        assert file_watching._open_browser("http://127.0.0.1") is expected
    assert len(opened) == 1


def test_a_class_is_the_number_of_its_output() -> None:
    text = "x0 = a*x; x1 = b*x; x2 = c*x; parameter a = 1, b = 2, c = 3; input x = 1"
    line = ("grad", "-e", text, "--loss", "softmax-cross-entropy", "--at")
    by_class = read_json(*line, "target=2")["gradient"]["loss"]
    scores = np.exp([1.0, 2.0, 3.0])
    expected = scores / scores.sum() - [0, 0, 1]
    assert list(by_class.values()) == pytest.approx(expected)
    assert read_json(*line, "target_x0=0,target_x1=0,target_x2=1")["gradient"]["loss"] == (
        pytest.approx(by_class)
    )


def test_examples_are_listed_with_topics_and_sources() -> None:
    rows = json.loads(good("examples", "--json"))
    files = [path for path in EXAMPLES.iterdir() if path.suffix in (".cg", ".py")]
    names = {path.stem if path.suffix == ".cg" else path.name for path in files}
    assert {row["name"] for row in rows} == names
    assert [row for row in rows if not row["title"].endswith((".", ":"))] == []
    assert [row for row in rows if min(len(row["teaches"]), len(row["source"])) <= 10] == []
    assert "Topic:" not in str(rows)


def test_examples_are_copied_and_nothing_is_overwritten(tmp_path: Path) -> None:
    process = run("examples", "--copy", "lecture", "--copy", "quantization.py", cwd=tmp_path)
    assert process.stderr == "wrote lecture.cg\nwrote quantization.py\n"
    for name in ("lecture.cg", "quantization.py"):
        assert (tmp_path / name).read_bytes() == (EXAMPLES / name).read_bytes()
    (tmp_path / "lecture.cg").write_text("xw = xa")
    approved(bad("examples", "--copy", "lecture", cwd=tmp_path), "lecture.cg")
    assert (tmp_path / "lecture.cg").read_text() == "xw = xa"


def test_engines_are_described_with_their_settings(tmp_path: Path) -> None:
    settings = {"CGPRIMER_CACHE": str(tmp_path), "CGPRIMER_THREADS": "3", "CGPRIMER_VECTORS": "128"}
    found = read_json("info", env=settings)
    assert found["methods"] == list(cgprimer.methods())
    assert found["details"]["numpy"] == {"version": np.__version__}
    cpu = found["details"]["cpu"]
    assert list(cpu) == ["processor", "vectors", "threads", "cache"]
    assert cpu["vectors"].startswith("128 bits (CGPRIMER_VECTORS")
    assert cpu["threads"].startswith("3 (CGPRIMER_THREADS")
    assert cpu["cache"] == f"{tmp_path} (CGPRIMER_CACHE=off disables the cache)"
    for name, state in found["engines"].items():
        assert (name in found["details"]) == (state == "available"), name


def test_the_engine_cpu_without_llvmlite_gives_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGPRIMER_CACHE", "off")
    assert "    cache: disabled" in good("info")
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    cpu = next(engine for engine in cgprimer.engines() if engine.name == "cpu")
    assert (cpu.available, cpu.detail) == (False, "")
    assert "llvmlite" in cpu.reason


def test_pictures_and_pages_show_the_loss(tmp_path: Path) -> None:
    text = "input x = 2; parameter w = 0.5; z = w*x"
    good("draw", "-e", text, "--loss", "(z - y)^2", "-o", "g.dot", cwd=tmp_path)
    assert "loss" in (tmp_path / "g.dot").read_text()
    line = ("step", "-e", text, "--loss", "squared-error", "--at", "target=1", "--quiz")
    good(*line, "-o", "s.html", cwd=tmp_path)
    assert '"target":"loss"' in (tmp_path / "s.html").read_text()
