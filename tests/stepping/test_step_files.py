"""What `cgprimer step` and `cgprimer.step` write, and what they refuse."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result
from PIL import Image

import cgprimer
from cgprimer.cli import cli
from cgprimer.errors import CgprimerError, UsageError

LECTURE = Path(__file__).parents[2] / "examples" / "lecture.cg"


def step(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["step", *map(str, arguments)])


def test_the_page_is_whole_and_stands_alone(tmp_path: Path) -> None:
    path = tmp_path / "lecture.html"
    done = step(LECTURE, "--at", "xa=-0.5", "--method", "path-sum", "-o", path)
    assert done.exit_code == 0
    text = path.read_text(encoding="utf-8")
    assert len(text.encode()) < 150_000
    assert not re.findall(r"(?:src|href)=\"(?!data:)", text)
    assert set(re.findall(r"https?://[^\"' ]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "eval(" not in text
    assert "new Function" not in text
    data = json.loads(text.split('type="application/json">')[1].split("</script>")[0])
    assert data["point"]["xa"] == -0.5
    assert data["first"] == "path-sum"
    assert [walk["method"] for walk in data["walks"]] == [
        "forward",
        "reverse",
        "path-sum",
        "finite-difference",
    ]


def test_the_same_graph_gives_the_same_page() -> None:
    graph = cgprimer.load(LECTURE)
    assert cgprimer.step(graph) == cgprimer.step(cgprimer.load(LECTURE))


def test_a_gif_has_a_frame_for_every_step(tmp_path: Path) -> None:
    path = tmp_path / "small.gif"
    arguments = ("-e", "xx = xa^2; xw = cd*xx", "--at", "xa=2,cd=3", "--method", "reverse")
    assert step(*arguments, "-o", path, "--speed", 2).exit_code == 0
    with Image.open(path) as image:
        assert (image.size, image.n_frames) == ((1280, 720), 5)  # type: ignore[attr-defined]
        assert image.info["duration"] == 500


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_slides_are_numbered(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "slides"
    arguments = ("-e", "xw = cd*xa", "--at", "xa=2,cd=3", "--method", "forward", "--format", kind)
    assert step(*arguments, "-o", folder).exit_code == 0
    assert sorted(p.name for p in folder.iterdir()) == [f"00{k}.{kind}" for k in (1, 2, 3)]
    assert [p.name for p in tmp_path.iterdir()] == ["slides"]
    if kind == "png":
        with Image.open(folder / "002.png") as image:
            assert image.size == (1920, 1080)
    if kind == "svg":
        ElementTree.parse(folder / "002.svg")
    again = step(*arguments, "-o", folder)
    assert isinstance(again.exception, UsageError)
    assert "not empty" in str(again.exception)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "a.jpg"), ".html, .gif"),
        (("-o", "missing/a.html"), "no folder"),
        (("-o", "a.gif", "--format", "png"), "looks like a file"),
        (("--at", "xq=1", "-o", "a.html"), "xq"),
        (("--wrt", "xq", "-o", "a.html"), "xq"),
        (("--of", "xq", "-o", "a.html"), "xq"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = step(LECTURE, *arguments)
    assert isinstance(done.exception, CgprimerError)
    assert message in str(done.exception)
    assert list(tmp_path.iterdir()) == []
