"""A picture takes the place of an older one, and never of a text that somebody typed."""

from __future__ import annotations

from pathlib import Path

import pytest

import cgprimer
from tests.approval import approved, refused
from tests.cli.cli_tools import LECTURE, bad, good

FILES = ["a.dot", "a.mmd", "a.tex", "a.png"]
PAGES = [("step", "a.html"), ("compare", "a.html")]


@pytest.mark.parametrize(("command", "name"), [*(("draw", name) for name in FILES), *PAGES])
def test_what_was_typed_stays(command: str, name: str, tmp_path: Path) -> None:
    given = [command, LECTURE, "-o", name, *(["--at", "xa=1"] if command != "draw" else [])]
    if command != "step":
        (tmp_path / name).touch()  # as mktemp leaves it: nothing is lost
        good(*given, cwd=tmp_path)
    good(*given, cwd=tmp_path)
    (tmp_path / name).write_text("my homework")
    if name.endswith(".png"):
        good(*given, cwd=tmp_path)
        return
    approved(bad(*given, cwd=tmp_path))
    assert (tmp_path / name).read_text() == "my homework"


def test_python_writes_no_page_over_it_either(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("my homework")
    with refused(cgprimer.UsageError):
        cgprimer.step(cgprimer.parse("xw = k*xa"), {"k": 1, "xa": 2}, output=tmp_path / "a.html")


@pytest.mark.parametrize(
    "command",
    [
        "predict run.json --data d.csv -o d.csv",
        "train g.cg --data d.csv --save ./g.cg",
        "check gradient g.cg sub.py --csv sub.py",
        "check gradient g.cg sub.py --csv new --page new",
    ],
)
def test_nothing_is_written_over_what_the_same_command_reads_or_writes(
    command: str, tmp_path: Path
) -> None:
    good("data", "lecture", "--samples", 20, "-o", "d.csv", cwd=tmp_path)
    made = {"g.cg": "xw = k*xa", "sub.py": "def gradient(xa, k): return xa", "run.json": "{}"}
    for name, text in made.items():
        (tmp_path / name).write_text(text)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    approved(bad(*command.split(), "--force", cwd=tmp_path))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
