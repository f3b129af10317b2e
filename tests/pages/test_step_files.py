"""Files of `cgprimer step` and `cgprimer.step`: pages, animations, slides, and refusals."""

from __future__ import annotations

import html
import re
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner, Result
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

import cgprimer
from cgprimer.cli import cli
from cgprimer.cli.common import progress_bar
from cgprimer.errors import CgprimerError, UsageError
from cgprimer.visualization.pages.stepping import step_page
from cgprimer.visualization.pages.stepping.method_walks import METHODS
from cgprimer.visualization.pages.stepping.step_frames import stepping
from cgprimer.visualization.pages.stepping.step_page import render_step_page, write_steps
from cgprimer.visualization.pages.stepping.step_slides import draw_slide, lay_out_slide
from tests.approval import approved, refused
from tests.pages.conftest import GRAPHS, TABLES, read_data

TINY = cgprimer.parse("input xa = 2; parameter cd = 3; xw = cd*xa")


@pytest.fixture
def short(tmp_path: Path) -> tuple[str, ...]:
    """Arguments of a derivative of three steps."""
    (tmp_path / "short.cg").write_text(TINY.text)
    return (str(tmp_path / "short.cg"), "--method", "forward")


def step(*arguments: object) -> Result:
    """Run the command `cgprimer step` in this process."""
    return CliRunner().invoke(cli, ["step", *map(str, arguments)])


def read_headings(page: str) -> list[str]:
    """Return the title and the heading of a page."""
    return [html.unescape(t) for t in re.findall(r"<(?:title|h1)\b[^>]*>(.*?)</", page, re.DOTALL)]


# --- pages ----------------------------------------------------------------------------------------


def test_a_page_is_complete_loads_nothing_and_is_reproducible(tmp_path: Path) -> None:
    path = tmp_path / "lecture.html"
    assert step("lecture", "--at", "xa=-0.5", "--method", "path-sum", "-o", path).exit_code == 0
    text = path.read_text(encoding="utf-8")
    assert len(text.encode()) < 150_000
    sources = re.findall(r"<\w[^>]*\b(?:src|href)=[\"']?([^\"'>]*)", text)
    assert {source.partition(":")[0] for source in sources} == {"data"}
    assert set(re.findall(r"https?://[^\"' ]+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"eval\(|new Function", text)
    data = read_data(text)
    assert (data["point"]["xa"], data["first"], data["arrays"]) == (-0.5, "path-sum", False)
    assert [walk["method"] for walk in data["walks"]] == [*METHODS]
    page = cgprimer.step(TINY)
    assert page == cgprimer.step(TINY)
    assert read_data(page)["first"] == "reverse"


def test_a_page_of_arrays_shows_matrices_and_refers_to_scalars() -> None:
    data = read_data(render_step_page(stepping(cgprimer.parse(GRAPHS["F1"]))))
    assert (data["first"], data["arrays"]) == ("reverse", True)
    assert data["point"]["w1"] == {"text": "[[1, -1], [0.5, -2]]", "shape": "[2,2]"}
    refusals = {walk["method"]: walk["refusal"] for walk in data["walks"]}
    assert all(("--scalars" in text) == (method != "reverse") for method, text in refusals.items())


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        ("xx = xa^2;\n\n xw = cd*xx", "xx = xa^2; xw = cd*xx"),
        (f"xw = cd*({' + '.join(['xa'] * 30)})", f"xw = cd*(xa{' + xa' * 9} + …"),
    ],
)
def test_pages_have_a_heading(tmp_path: Path, text: str, heading: str) -> None:
    path = tmp_path / "a.html"
    assert step("-e", text, "--at", "xa=2,cd=3", "-o", path).exit_code == 0
    assert read_headings(path.read_text(encoding="utf-8")) == [heading, heading]


def test_titles_have_no_control_characters() -> None:
    for title, heading in (
        (None, "xw step by step"), ("\x07 \n", ""), ("a\x07b\n\x00<c>\ud800\ufffe\x1b", "a b  <c>"),
    ):  # fmt: skip
        assert read_headings(cgprimer.step(TINY, title=title))[1] == heading


def test_options_of_finite_differences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    done = step(*short, "-o", "a.gif", "--step", "1e-3")
    assert done.exit_code == 2
    assert "--step requires --method finite-difference, got --method forward" in done.output
    assert step(*short, "-o", "a.html", "--scheme", "complex-step").exit_code == 2
    assert step(*short, "-o", "a.html", "--scheme", "forward", "--step", "1e-3").exit_code == 0
    data = read_data(Path("a.html").read_text(encoding="utf-8"))
    assert data["h"] == 1e-3
    assert [w["scheme"] for w in (data["walks"][3], data["others"][0])] == ["forward", "central"]


# --- slides and animations ------------------------------------------------------------------------


@pytest.mark.slow
def test_an_animation_shows_the_slide_of_every_step(tmp_path: Path) -> None:
    path, shown = tmp_path / "small.gif", stepping(TINY, methods=["forward"])
    calls: list[tuple[int, int]] = []
    write_steps(shown, path, method="forward", speed=2, on_frame=lambda *c: calls.append(c))
    assert calls == [(1, 3), (2, 3), (3, 3)]
    place = lay_out_slide(shown, "forward")
    with Image.open(path) as image:
        assert (image.size, image.n_frames) == ((1280, 720), 3)  # type: ignore[attr-defined]
        assert image.info["duration"] == 500
        for frame in shown.frames("forward")[::2]:
            image.seek(frame.number)
            canvas: Any = FigureCanvasAgg(draw_slide(shown, "forward", frame, place))
            canvas.figure.set_dpi(96)
            canvas.draw()
            wanted = np.asarray(canvas.buffer_rgba(), dtype=float)[:, :, :3]
            difference = np.abs(wanted - np.asarray(image.convert("RGB"), dtype=float))
            assert difference[wanted == 255].max() == 0
            assert (difference > 48).mean() < 0.005  # only rims of letters lose shades


@pytest.mark.parametrize("kind", ["svg", pytest.param("png", marks=pytest.mark.slow)])
def test_slides_are_numbered_and_only_force_replaces_them(
    tmp_path: Path, kind: str, short: tuple[str, ...]
) -> None:
    slides = tmp_path / "slides"
    arguments = (*short, "--format", kind, "-o", slides)
    assert step(*arguments).exit_code == 0
    assert sorted(p.name for p in slides.iterdir()) == [f"00{k}.{kind}" for k in (1, 2, 3)]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["short.cg", "slides"]
    if kind == "png":
        with Image.open(slides / "002.png") as image:
            assert image.size == (1920, 1080)
    else:
        ElementTree.parse(slides / "002.svg")
    (slides / f"999.{kind}").touch()  # of a longer derivative
    approved(str(step(*arguments).exception), "--force")
    assert step(*arguments, "--force").exit_code == 0
    assert not (slides / f"999.{kind}").exists()
    (slides / "notes.txt").write_text("my notes")
    assert "notes.txt is not a slide" in str(step(*arguments, "--force").exception)
    assert (slides / "notes.txt").read_text() == "my notes"


@pytest.mark.slow
def test_slides_of_arrays_and_of_titles_with_control_characters(tmp_path: Path) -> None:
    graph = cgprimer.parse("input x[2] = [1, 2]; xl = sum(x^2)")
    shown = stepping(graph, wrt="x", methods=("reverse",), title="a\x07b\n\x00<c>\ud800\ufffe\x1b")
    write_steps(shown, tmp_path / "svg", method="reverse", kind="svg")
    last = sorted((tmp_path / "svg").iterdir())[-1]
    assert ElementTree.parse(last).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    assert "[2, 4]" in last.read_text(encoding="utf-8")
    write_steps(shown, tmp_path / "steps.gif", method="reverse", dark=True)


@pytest.mark.parametrize(
    ("method", "wrt"), [("reverse", ["cd"]), ("finite-difference", ["cd", "xa"])]
)
def test_too_many_slides_are_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, wrt: list[str]
) -> None:
    shown = stepping(TINY, methods=[method], wrt=wrt)
    n_steps, module = len(shown.walks[0].steps), "cgprimer.visualization.pages.stepping.step_slides"
    drawn: list[object] = []
    monkeypatch.setattr(f"{module}.draw_slide", lambda *_, **__: drawn.append(1) or 1 / 0)
    for path, kind in ((tmp_path / "a.gif", None), (tmp_path / "slides", "png")):
        monkeypatch.setattr(step_page, "MAX_DRAWN", n_steps - 1)
        with refused(UsageError):
            write_steps(shown, path, method=method, kind=kind)
        assert not drawn
        monkeypatch.setattr(step_page, "MAX_DRAWN", n_steps)
        with pytest.raises(ZeroDivisionError):
            write_steps(shown, path, method=method, kind=kind)
        drawn.clear()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_shown_on_a_terminal_only(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    with progress_bar("drawing") as on_frame, progress_bar("more", wanted=False) as unwanted:
        assert unwanted is None
        assert (on_frame is not None) == terminal
        if on_frame:
            on_frame(4, 4)
    assert ("drawing" in capsys.readouterr().err) == terminal


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("command", "words"), TABLES["wrong use of step"])
def test_wrong_use_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("my homework", encoding="utf-8")
    done = step(*command.split(" "))
    assert isinstance(done.exception, CgprimerError)
    approved(str(done.exception), words)
    assert [p.read_text() for p in tmp_path.iterdir()] == ["my homework"]


def test_a_full_disk_leaves_no_slides_and_only_force_overwrites_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, shown = tmp_path / "a.html", stepping(TINY, methods=["reverse"])
    page.write_text("my homework")
    with pytest.raises(UsageError, match="was not written by cgprimer"):
        write_steps(shown, page, method="reverse")
    assert page.read_text() == "my homework"
    write_steps(shown, page, method="reverse", force=True)
    assert read_data(page.read_text(encoding="utf-8"))["first"] == "reverse"

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fail)
    with refused(UsageError, "No space left"):
        write_steps(shown, tmp_path / "slides", method="reverse", kind="png")
    assert [p.name for p in tmp_path.iterdir()] == ["a.html"]
