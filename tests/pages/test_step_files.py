"""Files of `cgprimer step` and `cgprimer.step`: pages, animations, slides, and refusals."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
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
from cgprimer.visualization.pages.stepping.step_frames import stepping
from cgprimer.visualization.pages.stepping.step_page import render_step_page, write_steps
from cgprimer.visualization.pages.stepping.step_slides import (
    draw_slide,
    lay_out_slide,
    render_animation,
)
from tests.approval import approved
from tests.pages.conftest import read_data
from tests.pages.test_stepping import F1

SHORT = ("-e", "xw = cd*xa", "--at", "xa=2,cd=3")


def step(*arguments: object) -> Result:
    """Run the command `cgprimer step` in this process."""
    return CliRunner().invoke(cli, ["step", *map(str, arguments)])


class Reader(HTMLParser):
    """The tags of a page with their attributes, and its title and heading."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.headings = {"title": "", "h1": ""}
        self.open = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.open = tag

    def handle_data(self, data: str) -> None:
        if self.open in self.headings:
            self.headings[self.open] += data

    def handle_endtag(self, tag: str) -> None:
        self.open = ""


# --- pages ----------------------------------------------------------------------------------------


def test_a_page_is_complete_loads_nothing_and_is_reproducible(tmp_path: Path) -> None:
    path = tmp_path / "lecture.html"
    assert step("lecture", "--at", "xa=-0.5", "--method", "path-sum", "-o", path).exit_code == 0
    text = path.read_text(encoding="utf-8")
    assert len(text.encode()) < 150_000
    for tag, attributes in Reader(text).tags:
        for name in ("src", "href"):
            assert (attributes.get(name) or "data:").startswith("data:"), tag
    assert set(re.findall(r"https?://[^\"' ]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "eval(" not in text
    assert "new Function" not in text
    data = read_data(text)
    assert (data["point"]["xa"], data["first"], data["arrays"]) == (-0.5, "path-sum", False)
    assert [walk["method"] for walk in data["walks"]] == [
        "forward", "reverse", "path-sum", "finite-difference",
    ]  # fmt: skip
    pages = [cgprimer.step(cgprimer.load("lecture")) for _ in range(2)]
    assert pages[0] == pages[1]
    assert read_data(pages[0])["first"] == "reverse"


def test_a_page_of_arrays_shows_matrices_and_refers_to_scalars() -> None:
    data = read_data(render_step_page(stepping(cgprimer.parse(F1))))
    assert (data["first"], data["arrays"]) == ("reverse", True)
    assert data["point"]["w1"] == {"text": "[[1, -1], [0.5, -2]]", "shape": "[2,2]"}
    refusals = {walk["method"]: walk["refusal"] for walk in data["walks"]}
    assert all(("--scalars" in text) == (method != "reverse") for method, text in refusals.items())
    graph = cgprimer.parse("input x[3] = [1, -2, 0.5]; parameter W[4,3] = 0.1; xl = sum(W @ x)")
    walks = read_data(render_step_page(stepping(graph)))["walks"]
    (numbers,) = (walk["numbers"] for walk in walks if walk["method"] == "reverse")
    whole = "[[1, -2, 0.5], [1, -2, 0.5], [1, -2, 0.5], [1, -2, 0.5]]"
    assert {"text": "[4,3], norm ≈4.58", "shape": "[4,3]", "whole": whole} in numbers


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        ("xw = cd*xa", "xw = cd*xa"),
        ("xx = xa^2;\n\n xw = cd*xx", "xx = xa^2; xw = cd*xx"),
        (f"xw = cd*({' + '.join(['xa'] * 30)})", f"xw = cd*(xa{' + xa' * 9} + …"),
    ],
)
def test_pages_have_a_heading(tmp_path: Path, text: str, heading: str) -> None:
    arguments = ("-e", text, "--at", "xa=2,cd=3", "-o", tmp_path / "a.html", "--force")
    for title, expected in ((None, heading), ("a\x07b\n\x00<c>\ud800\ufffe\x1b", "a b  <c>")):
        graph, point = cgprimer.parse(text), {"xa": 2.0, "cd": 3.0}
        if title is None:
            assert step(*arguments).exit_code == 0
            page = (tmp_path / "a.html").read_text(encoding="utf-8")
        else:
            page = cgprimer.step(graph, point, title=title)
        assert Reader(page).headings == {"title": expected, "h1": expected}
    assert Reader(cgprimer.step(graph, point)).headings["h1"] == "xw step by step"
    assert Reader(cgprimer.step(graph, point, title="\x07 \n")).headings["h1"] == ""


def test_options_of_finite_differences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = step("lecture", "-o", "a.gif", "--method", "reverse", "--step", "1e-3")
    assert done.exit_code == 2
    assert "--step requires --method finite-difference, got --method reverse" in done.output
    done = step("lecture", "-o", "a.html", "--scheme", "complex-step")
    assert done.exit_code == 2
    assert "'central', 'forward'" in done.output
    assert list(tmp_path.iterdir()) == []
    assert step("lecture", "-o", "a.html", "--scheme", "forward", "--step", "1e-3").exit_code == 0
    data = read_data(Path("a.html").read_text(encoding="utf-8"))
    assert data["h"] == 1e-3
    assert [w["scheme"] for w in (data["walks"][3], data["others"][0])] == ["forward", "central"]
    page = cgprimer.step(cgprimer.load("lecture"), method="finite-difference", h=1.0)
    assert read_data(page)["h"] == 1.0


# --- slides and animations ------------------------------------------------------------------------


def test_an_animation_has_a_frame_for_every_step(tmp_path: Path) -> None:
    path = tmp_path / "small.gif"
    arguments = (*SHORT, "--method", "forward")
    assert step(*arguments, "-o", path, "--speed", 2).exit_code == 0
    with Image.open(path) as image:
        assert (image.size, image.n_frames) == ((1280, 720), 3)  # type: ignore[attr-defined]
        assert image.info["duration"] == 500


@pytest.mark.slow
def test_an_animation_shows_the_slide_of_every_step() -> None:
    graph, point = cgprimer.parse("xx = xa^2; xw = cd*xx"), {"xa": 2.0, "cd": 3.0}
    shown, calls = stepping(graph, point, methods=["reverse"]), list[tuple[int, int]]()
    content = render_animation(shown, "reverse", on_frame=lambda k, total: calls.append((k, total)))
    assert calls == [(k, 5) for k in range(1, 6)]
    place, shares = lay_out_slide(shown), list[float]()
    with Image.open(io.BytesIO(content)) as image:
        for frame in shown.frames("reverse"):
            image.seek(frame.number)
            canvas: Any = FigureCanvasAgg(draw_slide(shown, "reverse", frame, place))
            canvas.figure.set_dpi(96)
            canvas.draw()
            wanted = np.asarray(canvas.buffer_rgba(), dtype=float)[:, :, :3]
            difference = np.abs(wanted - np.asarray(image.convert("RGB"), dtype=float)).max(axis=2)
            white = (wanted == 255).all(axis=2)
            assert white.mean() > 0.5
            assert difference[white].max() == 0
            shares.append(float((difference > 48).mean()))  # only rims of letters lose shades
    assert max(shares) < 0.005


@pytest.mark.parametrize(
    "kind", ["svg", *(pytest.param(k, marks=pytest.mark.slow) for k in ("png", "pdf"))]
)
def test_slides_are_numbered_and_only_force_replaces_them(tmp_path: Path, kind: str) -> None:
    slides = tmp_path / "slides"
    arguments = (*SHORT, "--method", "forward", "--format", kind, "-o", slides)
    assert step(*arguments).exit_code == 0
    assert sorted(p.name for p in slides.iterdir()) == [f"00{k}.{kind}" for k in (1, 2, 3)]
    assert [p.name for p in tmp_path.iterdir()] == ["slides"]
    if kind == "png":
        with Image.open(slides / "002.png") as image:
            assert image.size == (1920, 1080)
    if kind == "svg":
        ElementTree.parse(slides / "002.svg")
    (slides / f"999.{kind}").touch()  # of a longer derivative
    again = step(*arguments)
    assert isinstance(again.exception, UsageError)
    approved(str(again.exception), "--force")
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


@pytest.mark.parametrize("way", [("-o", "a.gif"), ("-o", "slides", "--format", "png")])
def test_too_many_slides_are_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"x{k} = sin(x{k - 1})*p + x{k - 1}" for k in range(1, 70)]
    text = "; ".join(lines).replace("x0", "xa")
    module = "cgprimer.visualization.pages.stepping.step_slides"
    monkeypatch.setattr(f"{module}.draw_slide", None)  # nothing is drawn
    for method, names in (("reverse", ()), ("finite-difference", ("--wrt", "xa,p"))):
        done = step("-e", text, "--at", "xa=1,p=0.1", "--method", method, *names, *way)
        assert isinstance(done.exception, UsageError)
        shown = stepping(cgprimer.parse(text), {"xa": 1, "p": 0.1}, methods=[method],
                         wrt=["xa", "p"] if names else None)  # fmt: skip
        count = len(shown.walks[0].steps)
        assert count > 300
        message, hint = str(done.exception).splitlines()
        assert f"takes {count:,} steps, but slides and animations can have at most 300" in message
        assert ("--wrt NAME" in hint) == bool(names)
        assert ("--method reverse" in hint) == (method != "reverse")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_progress_is_shown_on_a_terminal_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = (*SHORT, "--method", "forward", "-o", tmp_path / "a.gif")
    assert step(*arguments).stderr == f"wrote {tmp_path / 'a.gif'}\n"
    calls: list[tuple[int, int]] = []

    @contextmanager
    def bar(work: str, wanted: bool) -> Iterator[Callable[[int, int], None] | None]:
        yield (lambda number, total: calls.append((number, total))) if wanted else None

    monkeypatch.setattr("cgprimer.cli.step_command.progress_bar", bar)
    assert step(*arguments, "--force").exit_code == 0
    assert calls == [(1, 3), (2, 3), (3, 3)]
    assert step(*SHORT, "-o", tmp_path / "a.html").exit_code == 0
    assert len(calls) == 3
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    capsys.readouterr()
    with progress_bar("drawing") as on_frame:
        assert on_frame is not None
        on_frame(1, 4)
        on_frame(4, 4)
    shown = capsys.readouterr().err
    assert "drawing" in shown
    assert "\n\n" not in shown


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-e", "xw = p*xa", "-o", "a.html"), "xa"),
        (("-e", "xw = p*xa", "--at", "xa=1", "-o", "a.gif"), "p"),
        (("-e", "", "-o", "a.html"), ""),
        (("-e", "xw = 2 + 3", "-o", "a.html"), ""),
        (("-e", "xw = p*", "-o", "a.html"), ""),
        (("lecture", "-o", "a.jpg"), ".html, .gif"),
        (("lecture", "-o", "missing/a.html"), "folder"),
        (("lecture", "-o", "file/a.html"), "folder"),
        (("lecture", "-o", "file", "--format", "png"), "it is a file"),
        (("lecture", "-o", "a"), ".html, .gif"),
        (("lecture", "-o", "."), ""),
        (("lecture", "-o", "a.gif", "--format", "png"), ""),
        (("lecture", "-o", "a.html", "--step", "nan"), ""),
        (("lecture", "--at", "xq=1", "-o", "a.html"), "xq"),
        (("lecture", "--of", "xq", "-o", "a.html"), "xq"),
        (("olah", "--wrt", "xq", "-o", "a.html"), "c ... d ... e ... b"),
        (("network", "--wrt", "xq", "-o", "a.html"), "xq"),  # its names are too many to list
    ],
)
def test_wrong_use_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("my homework", encoding="utf-8")
    done = step(*arguments)
    assert isinstance(done.exception, CgprimerError)
    approved(str(done.exception), words)
    assert [p.read_text() for p in tmp_path.iterdir()] == ["my homework"]


def test_a_full_disk_leaves_no_slides_and_only_force_overwrites_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "a.html"
    page.write_text("my homework")
    done = step("lecture", "-o", page)
    assert isinstance(done.exception, UsageError)
    assert "--force" in str(done.exception)
    assert page.read_text() == "my homework"
    assert step("lecture", "-o", page, "--force").exit_code == 0
    assert json.dumps(read_data(page.read_text(encoding="utf-8")))

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fail)
    done = step("lecture", "-o", tmp_path / "slides", "--format", "png")
    assert isinstance(done.exception, UsageError)
    approved(str(done.exception).replace(str(tmp_path), "<folder>"))
    assert [p.name for p in tmp_path.iterdir()] == ["a.html"]
