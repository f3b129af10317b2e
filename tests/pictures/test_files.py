"""Files of pictures are complete or absent, equal for equal graphs, and the command writes them."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
import xml.etree.ElementTree
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from matplotlib.figure import Figure
from PIL import Image

import cgprimer
from cgprimer.cli.draw_command import command
from cgprimer.errors import UsageError
from cgprimer.visualization.diagrams.diagram import Diagram, Node
from cgprimer.visualization.diagrams.diagram_formats import formats, save_diagram
from cgprimer.visualization.diagrams.figure_files import save_figure
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
from tests.approval import approved, refused, warned

ROOT = Path(__file__).parents[2]
_FIRST_BYTES = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


PROGRAM = """
import hashlib, pathlib, sys, cgprimer
import cgprimer.visualization.diagrams.diagram_figure
print([n for n in ("matplotlib", "graphlay") if n in sys.modules])
graph = cgprimer.parse("xv = k*xa + m*xb; xw = xv*xa + n; xu = xw + xv")
for name in ("a.svg", "a.pdf"):
    cgprimer.draw(graph, path := pathlib.Path(sys.argv[1], name))
    print(hashlib.sha256(path.read_bytes()).hexdigest())
print("matplotlib.pyplot" in sys.modules)
"""


def draw(*arguments: object) -> Result:
    """Run the command `cgprimer draw` in this process."""
    return CliRunner().invoke(command, [*map(str, arguments)])


@pytest.mark.parametrize("name", ["a.png", "with space.svg", "A.PDF"])
def test_the_suffix_selects_the_format(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    save_figure(Figure(figsize=(2, 1)), path)
    assert path.read_bytes().startswith(_FIRST_BYTES[path.suffix[1:].lower()])
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["a.bmp", "a", ".png", "missing/a.png", "file/a.png", "."])
def test_paths_that_cannot_be_written_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("kept")
    with refused(UsageError):
        save_figure(Figure(figsize=(1, 1)), tmp_path / name)
    assert [p.read_text() for p in tmp_path.iterdir()] == ["kept"]


def test_draw_refuses_outputs_and_names_the_known_formats(tmp_path: Path) -> None:
    for output in ("a.docx", {"xa": 1}, 3):
        with refused(UsageError):
            cgprimer.draw(cgprimer.load("lecture"), output)
    done = draw("-e", "xw = k*xa", "-o", tmp_path / "a.docx")
    assert isinstance(done.exception, UsageError)


@pytest.mark.parametrize("failure", ["drawing", "renaming"])
def test_a_failure_leaves_the_old_file_and_no_partial_one(
    failure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, figure = tmp_path / "a.svg", Figure(figsize=(1, 1))
    path.write_text("old")

    def fail(*_: object, **__: object) -> None:
        raise MemoryError if failure == "drawing" else PermissionError(13, "Permission denied")

    owner = (figure, "savefig") if failure == "drawing" else (Path, "replace")
    monkeypatch.setattr(*owner, fail)
    with pytest.raises(MemoryError if failure == "drawing" else UsageError):
        save_figure(figure, path)
    assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]


def test_a_huge_figure_is_saved_with_fewer_dots(tmp_path: Path) -> None:
    save_figure(Figure(figsize=(400, 1)), tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as image:
        assert 15_000 <= max(image.size) <= 16_000


@pytest.mark.parametrize("kind", formats())
def test_equal_diagrams_have_equal_files(kind: str, tmp_path: Path) -> None:
    graph = cgprimer.parse("input xa = 2; parameter k = 3; xb = k*xa")
    diagram = graph_diagram(graph, path="xa xb", values=True, title='A "title" & more_$1')
    for name in ("one", "two"):
        save_diagram(diagram, tmp_path / f"{name}.{kind}", dark=kind == "pdf")
    assert (tmp_path / f"one.{kind}").read_bytes() == (tmp_path / f"two.{kind}").read_bytes()


@pytest.mark.slow
def test_files_do_not_depend_on_the_hash_seed_and_need_no_pyplot(tmp_path: Path) -> None:
    answers = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, check=True,
            text=True, env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
        ).stdout.splitlines()
        for seed in ("0", "4242")
    ]  # fmt: skip
    assert answers[0] == answers[1]
    assert (answers[0][0], len(answers[0]), answers[0][-1]) == ("[]", 4, "False")


def test_letters_that_no_font_has_are_named_once(tmp_path: Path) -> None:
    never = "\U0001f9ff\ue123"  # no text font has the second: it is for private use
    diagram = Diagram((Node("a", f"a{never}", "input"),), (), title=never)
    with warned(UserWarning) as seen:
        save_diagram(diagram, tmp_path / "a.png")
    assert len(seen) == 1
    assert str(seen[0].message).count("\ue123") == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save_diagram(Diagram((Node("a", "größe α ж", "input"),), ()), tmp_path / "b.png")


def test_text_is_shown_as_written_and_files_are_well_formed(tmp_path: Path) -> None:
    details, title = (r"a_b^2 $\frac{1}{2}$", "a\x07"), "$$ _^ \x00\x1b title"
    diagram = Diagram((Node("n", r"$x_1$", "inner", details),), (), title=title)
    save_diagram(diagram, tmp_path / "a.svg")
    builder = xml.etree.ElementTree.TreeBuilder(insert_comments=True)
    parser = xml.etree.ElementTree.XMLParser(target=builder)
    tree = xml.etree.ElementTree.parse(tmp_path / "a.svg", parser)
    comments = {str(e.text) for e in tree.iter() if e.tag is xml.etree.ElementTree.Comment}
    assert comments >= {r" $x_1$ ", rf" {details[0]} ", " $$ _^ ?? title ", " a? "}
    assert cgprimer.draw(cgprimer.parse("input xa = 0; xw = 1/xa"), at={}).axes  # infinity


@pytest.mark.parametrize(
    "options",
    [["--partials", "--values"], ["--tangents", "ab"], ["--adjoints", "--backward-arrows"],
     ["--level", "backward"], ["--path", "xa -> xx -> xz -> xw"], ["--all"]],
)  # fmt: skip
def test_the_command_draws_like_the_library(options: list[str], tmp_path: Path) -> None:
    done = draw("lecture", "-o", tmp_path / "a.dot", *options)
    assert done.exit_code == 0, done.output
    assert "slide" not in done.stderr  # a text format has no size
    arguments: dict[str, Any] = {}
    for name, value in pairwise([*options, "--"]):
        if name.startswith("--"):
            key = "everything" if name == "--all" else name[2:].replace("-", "_")
            arguments[key] = True if value.startswith("--") else value
    cgprimer.draw(cgprimer.load("lecture"), tmp_path / "b.dot", **arguments)
    assert (tmp_path / "a.dot").read_bytes() == (tmp_path / "b.dot").read_bytes()


@pytest.mark.slow
def test_the_command_reports_text_that_is_too_small_for_a_slide(tmp_path: Path) -> None:
    assert "slide" not in draw("lecture", "-o", tmp_path / "a.svg").stderr
    for arguments in (
        ("mazur", "--level", "operations"),
        ("network", "--level", "operations"),
        ("mazur", "--adjoints"),
        ("mazur", "--adjoints", "--level", "operations", "--values", "--all"),
    ):
        done = draw(*arguments, "-o", tmp_path / "a.svg")
        assert done.exit_code == 0
        approved(done.stderr)
