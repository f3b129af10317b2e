"""The table of the lectures: its commands and its Python code run, its programs exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import cgprimer
from cgprimer import networks, plot
from tests.cli.cli_tools import good
from tests.docs.test_docs import ROOT, workplace

PAGE = ROOT / "docs" / "teach" / "lectures.md"
ROW = re.compile(r"^\| (?P<item>[^|]+) \| `(?P<code>[^`]+)` \| (?P<more>[^|]+) \|$", re.MULTILINE)
ROWS = [(m["item"], m["code"]) for m in ROW.finditer(PAGE.read_text(encoding="utf-8"))]
NAMES = {
    **{name: getattr(cgprimer, name) for name in ("Function", "Node", "Value", "primitive")},
    **{"cgprimer": cgprimer, "networks": networks, "np": np, "plot": plot},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the files that commands of the table read."""
    folder = tmp_path / "work"
    folder.mkdir()
    x = np.linspace(-2, 2, 60).tolist()
    rows = "".join(f"{v},{np.sin(3 * v)}\n" for v in x)
    (folder / "sine.csv").write_text(f"x,y\n{rows}")
    (folder / "one.csv").write_text("x,a\n1,0\n")
    (folder / "three.csv").write_text("x,y\n0,1\n1,1.6487212707001282\n2,2.718281828459045\n")
    with workplace(folder):
        pass
    return folder


def test_every_line_of_the_table_is_read() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    bodies = [li for li in lines if li.startswith("| ") and not li.startswith(("| item", "| ---"))]
    assert len(bodies) == len(ROWS) == len({item for item, _ in ROWS}) > 60


@pytest.mark.slow
@pytest.mark.parametrize(("item", "code"), ROWS, ids=[item for item, _ in ROWS])
def test_code_of_the_table_runs(item: str, code: str, folder: Path) -> None:
    program, *words = shlex.split(code) if code.startswith("cgprimer ") else [code]
    if program == "cgprimer":
        good(*words, cwd=folder)
        if "-o" in words:
            assert (folder / words[words.index("-o") + 1]).stat().st_size > 0
    elif program.endswith(".py"):
        assert (ROOT / "examples" / program).is_file()
    else:
        exec(code, dict(NAMES))  # noqa: S102
