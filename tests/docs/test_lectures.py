"""The table of the lectures: every command runs, every line of Python, every program exists."""

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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files that commands of the table read."""
    place = tmp_path_factory.mktemp("lectures") / "work"
    place.mkdir()
    x = np.linspace(-2, 2, 60).tolist()
    rows = "".join(f"{v},{np.sin(3 * v)}\n" for v in x)
    (place / "sine.csv").write_text(f"x,y\n{rows}")
    (place / "one.csv").write_text("x,a\n1,0\n")
    (place / "three.csv").write_text("x,y\n0,1\n1,1.6487212707001282\n2,2.718281828459045\n")
    with workplace(place):
        pass
    return place


def test_the_table_has_its_rows() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    bodies = [li for li in lines if li.startswith("| ") and not li.startswith(("| item", "| ---"))]
    assert len(bodies) == len(ROWS) > 60
    assert len({item for item, _ in ROWS}) == len(ROWS)


@pytest.mark.parametrize(("item", "code"), ROWS, ids=[item for item, _ in ROWS])
def test_every_row_can_be_run(item: str, code: str, folder: Path) -> None:
    program, *words = shlex.split(code) if code.startswith("cgprimer ") else [code]
    if program == "cgprimer":
        written = words.index("-o") if "-o" in words else None
        good(*words, cwd=folder)
        assert written is None or (folder / words[written + 1]).stat().st_size > 0
    elif program.endswith(".py"):
        assert (ROOT / "examples" / program).is_file()
    else:
        exec(code, dict(NAMES))  # noqa: S102
