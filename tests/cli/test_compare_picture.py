"""``cgprimer compare -o``: pages and slides, and what it says when something is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.approval import approved
from tests.cli.cli_tools import LECTURE, bad, good, run


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("a.html", b"<!doctype html>"),
        ("a.pdf", b"%PDF"),
        ("a.png", b"\x89PNG"),
        ("a.svg", b"<?xml"),
    ],
)
def test_every_format(name: str, begins: bytes, tmp_path: Path) -> None:
    done = run("compare", LECTURE, "-o", name, "--dark", "--at", "xa=-0.5", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"wrote {name}\n")
    assert (tmp_path / name).read_bytes().startswith(begins)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_the_page_has_the_title_the_point_and_the_methods(tmp_path: Path) -> None:
    good("compare", LECTURE, "-o", "a.html", "--at", "xa=-0.5", "--wrt", "ab,xa",
         "--method", "reverse", "--method", "forward", cwd=tmp_path)  # fmt: skip
    page = (tmp_path / "a.html").read_text()
    assert "<h1>lecture.cg</h1>" in page
    assert "dxw/dab" in page
    assert "dxw/dbc" not in page
    assert 'aria-label="forward"' in page
    assert 'aria-label="symbolic"' not in page
    assert "input xa = -0.5" in page
    good("compare", "-e", "xw = xa^2", "--at", "xa=1", "-o", "b.html", cwd=tmp_path)
    assert "<h1>The derivative of xw, by five methods</h1>" in (tmp_path / "b.html").read_text()
    good("compare", LECTURE, "-o", "a.html", "--title", "", cwd=tmp_path)
    assert "<h1></h1>" in (tmp_path / "a.html").read_text(encoding="utf-8")
    good("compare", LECTURE, "-o", "a.html", "--title", "1 < 2", cwd=tmp_path)
    assert "<h1>1 &lt; 2</h1>" in (tmp_path / "a.html").read_text()


@pytest.mark.slow
def test_two_slides_are_two_pictures(tmp_path: Path) -> None:
    mazur = LECTURE.with_name("mazur.cg")
    done = run("compare", mazur, "-o", "m.png", cwd=tmp_path)
    assert done.stderr == "wrote m.png and m-2.png\n"
    assert {path.name for path in tmp_path.iterdir()} == {"m.png", "m-2.png"}


WRONG = {
    "ending": (["-o", "a.gif"], "a.gif", ".html, .pdf, .png, .svg"),
    "no ending": (["-o", "a"], ".html, .pdf"),
    "folder": (["-o", "missing/a.pdf"], "folder missing"),
    "json": (["-o", "a.pdf", "--json"], "-o", "--json"),
    "format": (["-o", "a.pdf", "--format", "text"], "-o", "--format"),
    "dark alone": (["--dark"], "--dark requires -o"),
    "title alone": (["--title", "a"], "--title requires -o"),
    "name": (["-o", "a.pdf", "--wrt", "xq"], "xq"),
    "method": (["-o", "a.pdf", "--method", "backwards"], "backwards"),
}


@pytest.mark.parametrize(
    ("options", "fragments"), [(v[0], v[1:]) for v in WRONG.values()], ids=WRONG
)
def test_mistakes_leave_no_file(
    options: list[str], fragments: tuple[str, ...], tmp_path: Path
) -> None:
    message = bad("compare", LECTURE, *options, cwd=tmp_path)
    for fragment in fragments:
        assert fragment in message
    assert list(tmp_path.iterdir()) == []


def test_what_is_missing_is_named_and_the_older_file_stays(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_text("old")
    message = bad("compare", "-e", "xw = k*xa", "--at", "k=1", "-o", "a.pdf", cwd=tmp_path)
    approved(message, "xa")
    message = bad(
        "compare", "-e", "xw = xa; xv = 2*xa", "--at", "xa=1", "-o", "a.pdf", cwd=tmp_path
    )
    approved(message, "xw ... xv")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_the_ending_is_looked_at_before_the_graph(tmp_path: Path) -> None:
    message = bad("compare", tmp_path / "no.cg", "-o", tmp_path / "a.gif")
    assert "a.gif" in message
