"""The examples are at hand wherever the package is installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import cgprimer
from cgprimer.support.files import find_examples
from cgprimer.visualization.diagrams.slide_layout import slide_layout
from tests.approval import approved
from tests.cli.cli_tools import EXAMPLES, bad, good, run


def test_all_are_listed_with_a_line_each() -> None:
    lines = good("examples").splitlines()
    programs = find_examples("*.py")
    assert [line.split()[0] for line in lines] == [
        *sorted(p.stem for p in EXAMPLES.glob("*.cg")),
        *sorted(p.name for p in EXAMPLES.glob("*.py")),
    ]
    for line, path in zip(lines, [*find_examples().values(), *programs.values()], strict=True):
        first = path.read_text(encoding="utf-8").splitlines()[0]
        begin = '"""' if path.suffix == ".py" else "# "
        assert first.startswith(begin)
        assert line.endswith(first.removeprefix(begin))
        assert len(first) > 10


def test_one_is_copied_and_nothing_overwritten(tmp_path: Path) -> None:
    assert "wrote lecture.cg" in run("examples", "--copy", "lecture", cwd=tmp_path).stderr
    copied = tmp_path / "lecture.cg"
    assert copied.read_bytes() == (EXAMPLES / "lecture.cg").read_bytes()
    good("examples", "--copy", "sine", "--copy", "quantization.py", cwd=tmp_path)
    assert (tmp_path / "sine.cg").exists()
    program = tmp_path / "quantization.py"
    assert program.read_bytes() == (EXAMPLES / "quantization.py").read_bytes()
    copied.write_text("xw = xa")
    approved(bad("examples", "--copy", "lecture", cwd=tmp_path))
    assert copied.read_text() == "xw = xa"
    approved(bad("examples", "--copy", "lectur", cwd=tmp_path), "'lecture'")


def test_a_name_is_an_example_unless_a_file_has_it(tmp_path: Path) -> None:
    assert "inputs: xa" in good("info", "lecture", cwd=tmp_path)
    (tmp_path / "lecture").write_text("xw = k*xq")
    assert "inputs: xq" in good("info", "lecture", cwd=tmp_path)
    assert str(cgprimer.load("mazur")) == str(cgprimer.load(EXAMPLES / "mazur.cg"))


def test_a_name_that_comes_near_is_pointed_out(tmp_path: Path) -> None:
    for name in ("lectur", "lecture.cg", "examples/lecture.cg"):
        message = bad("grad", name, cwd=tmp_path)
        approved(message, name)
        approved(message, "'lecture'")
    assert "hint" not in bad("grad", "nosuch.cg", cwd=tmp_path)


def test_without_graphlay_drawing_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "graphlay", None)
    slide_layout.cache_clear()  # the layout of an earlier test needs no library
    message = bad("draw", "lecture", "-o", tmp_path / "a.png")
    approved(message)
    assert run("draw", "lecture", "-o", tmp_path / "a.mmd").returncode == 0  # as its hint says
    assert run("draw", "lecture", "-o", tmp_path / "a.dot").returncode == 0
