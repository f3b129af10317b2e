"""A picture takes the place of an older one, and never of a text that somebody typed."""

from __future__ import annotations

from pathlib import Path

import pytest

import cgprimer
from tests.cli.cli_tools import LECTURE, bad, good

FILES = ["a.dot", "a.mmd", "a.tex", "a.png"]
PAGES = [("step", "a.html"), ("compare", "a.html")]


@pytest.mark.parametrize(("command", "name"), [*(("draw", name) for name in FILES), *PAGES])
def test_what_was_typed_stays(command: str, name: str, tmp_path: Path) -> None:
    given = [command, LECTURE, "-o", name, *(["--at", "xa=1"] if command != "draw" else [])]
    (tmp_path / name).touch()  # as mktemp leaves it: nothing is lost
    good(*given, cwd=tmp_path)
    good(*given, cwd=tmp_path)
    (tmp_path / name).write_text("my homework")
    if name.endswith(".png"):
        good(*given, cwd=tmp_path)
        return
    assert "cgprimer did not write it" in bad(*given, cwd=tmp_path)
    assert (tmp_path / name).read_text() == "my homework"


def test_python_writes_no_page_over_it_either(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("my homework")
    with pytest.raises(cgprimer.UsageError, match="is there already"):
        cgprimer.step(cgprimer.parse("xw = k*xa"), {"k": 1, "xa": 2}, output=tmp_path / "a.html")
