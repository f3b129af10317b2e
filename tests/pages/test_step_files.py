"""What `cgprimer step` and `cgprimer.step` write, and what they refuse."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner, Result
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from PIL import Image

import cgprimer
from cgprimer.cli import cli
from cgprimer.cli.common import progress_bar
from cgprimer.errors import CgprimerError, UsageError
from cgprimer.visualization.diagrams.theme import theme
from cgprimer.visualization.pages.stepping.step_frames import stepping
from cgprimer.visualization.pages.stepping.step_page import write_steps
from cgprimer.visualization.pages.stepping.step_slides import (
    draw_slide,
    lay_out_slide,
    render_animation,
)
from cgprimer.visualization.pages.stepping.vertex_positions import lay_out_scene
from tests.approval import approved

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


@pytest.mark.slow
def test_a_gif_shows_the_slide_of_every_step() -> None:
    graph, point = cgprimer.parse("xx = xa^2; xw = cd*xx"), {"xa": 2.0, "cd": 3.0}
    shown, seen = stepping(graph, point, methods=["reverse"]), list[tuple[int, int]]()
    content = render_animation(shown, "reverse", on_frame=lambda k, total: seen.append((k, total)))
    assert seen == [(k, 5) for k in range(1, 6)]
    place, found = lay_out_slide(shown), list[float]()
    with Image.open(io.BytesIO(content)) as image:
        for frame in shown.frames("reverse"):
            image.seek(frame.number)
            canvas: Any = FigureCanvasAgg(draw_slide(shown, "reverse", frame, place))
            canvas.figure.set_dpi(96)
            canvas.draw()
            wanted = np.asarray(canvas.buffer_rgba(), dtype=float)[:, :, :3]
            apart = np.abs(wanted - np.asarray(image.convert("RGB"), dtype=float)).max(axis=2)
            white = (wanted == 255).all(axis=2)
            assert white.mean() > 0.5
            assert apart[white].max() == 0
            found.append(float((apart > 48).mean()))  # of 256: only rims of letters lose shades
    assert max(found) < 0.005


@pytest.mark.parametrize("way", [("-o", "a.gif"), ("-o", "slides", "--format", "png")])
def test_too_many_slides_are_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"x{k} = sin(x{k - 1})*p + x{k - 1}" for k in range(1, 70)]
    text = "; ".join(lines).replace("x0", "xa")
    monkeypatch.setattr(
        "cgprimer.visualization.pages.stepping.step_slides.draw_slide", None
    )  # nothing is drawn
    for method, more in (("reverse", ()), ("finite-difference", ("--wrt", "xa,p"))):
        done = step("-e", text, "--at", "xa=1,p=0.1", "--method", method, *more, *way)
        assert isinstance(done.exception, UsageError)
        shown = stepping(
            cgprimer.parse(text), {"xa": 1, "p": 0.1}, methods=[method],
            wrt=["xa", "p"] if more else None,
        )  # fmt: skip
        count = len(shown.walks[0].steps)
        assert count > 300
        message, hint = str(done.exception).splitlines()
        assert f"takes {count:,} steps, but slides and animations can have at most 300" in message
        assert "write a page, which can show all steps: -o NAME.html" in hint
        assert ("--wrt NAME" in hint) == bool(more)
        assert ("--method reverse" in hint) == (method != "reverse")
    assert list(tmp_path.iterdir()) == []


def test_a_bar_is_drawn_on_a_terminal_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("-e", "xw = cd*xa", "--at", "xa=2,cd=3", "-o", tmp_path / "a.gif")
    done = step(*arguments)
    assert done.stderr == f"wrote {tmp_path / 'a.gif'}\n"
    seen: list[tuple[int, int]] = []

    @contextmanager
    def bar(work: str, wanted: bool) -> Iterator[Callable[[int, int], None] | None]:
        yield (lambda number, total: seen.append((number, total))) if wanted else None

    monkeypatch.setattr("cgprimer.cli.step_command.progress_bar", bar)
    assert step(*arguments, "--force", "--method", "forward").exit_code == 0
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert step(*arguments[:-1], tmp_path / "a.html").exit_code == 0
    assert len(seen) == 3


def test_the_bar_counts_slides(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress_bar("drawing") as on_frame:
        assert on_frame is not None
        on_frame(1, 4)
        on_frame(4, 4)
    shown = capsys.readouterr().err
    assert "drawing" in shown
    assert "\n\n" not in shown


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        ("xw = cd*xa", "xw = cd*xa"),
        ("xx = xa^2;\n\n xw = cd*xx", "xx = xa^2; xw = cd*xx"),
        (f"xw = cd*({' + '.join(['xa'] * 30)})", f"xw = cd*(xa{' + xa' * 9} + …"),
    ],
)
def test_pages_of_expressions_have_a_heading(tmp_path: Path, text: str, heading: str) -> None:
    arguments = ("-e", text, "--at", "xa=2,cd=3", "-o", tmp_path / "a.html")
    assert step(*arguments).exit_code == 0
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert f"<title>{heading}</title>" in page
    assert f"<h1>{heading}</h1>" in page
    for title in ("mine", ""):
        assert step(*arguments, "--force", "--title", title).exit_code == 0
        assert f"<h1>{title}</h1>" in (tmp_path / "a.html").read_text(encoding="utf-8")


def test_few_names_are_listed_and_many_are_not(tmp_path: Path) -> None:
    few = step(LECTURE.with_name("olah.cg"), "--wrt", "xq", "-o", tmp_path / "a.html")
    assert isinstance(few.exception, UsageError)
    approved(str(few.exception), "c ... d ... e ... b")
    many = step(LECTURE.with_name("network.cg"), "--wrt", "xq", "-o", tmp_path / "a.html")
    assert isinstance(many.exception, UsageError)
    assert str(many.exception) == "unknown variable or parameter 'xq'"


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
    approved(str(again.exception))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-e", "xw = p*xa", "-o", "a.html"), "xa"),
        (("-e", "xw = p*xa", "--at", "xa=1", "-o", "a.gif"), "p"),
        (("-e", "", "-o", "a.html"), ""),
        (("-e", "xw = 2 + 3", "-o", "a.html"), ""),
        (("-e", "xw = 3", "-o", "a.html"), ""),
        (("-e", "xw = p*", "-o", "a.html"), ""),
    ],
)
def test_graphs_that_cannot_be_stepped_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = step(*arguments)
    assert isinstance(done.exception, CgprimerError)
    approved(str(done.exception), message)
    assert list(tmp_path.iterdir()) == []


def test_options_of_differences_belong_to_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = step(LECTURE, "-o", "a.gif", "--method", "reverse", "--step", "1e-3")
    assert done.exit_code == 2
    assert "--step requires --method finite-difference, got --method reverse" in done.output
    done = step(LECTURE, "-o", "a.html", "--scheme", "complex-step")
    assert done.exit_code == 2
    assert "'central', 'forward'" in done.output
    assert list(tmp_path.iterdir()) == []
    assert step(LECTURE, "-o", "a.html", "--scheme", "forward", "--step", "1e-3").exit_code == 0
    text = Path("a.html").read_text(encoding="utf-8")
    data = json.loads(text.split('type="application/json">')[1].split("</script>")[0])
    assert data["h"] == 1e-3
    assert [w["scheme"] for w in (data["walks"][3], data["others"][0])] == ["forward", "central"]


def test_a_folder_that_cannot_be_written_to_and_an_error_on_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("", encoding="utf-8")
    for arguments, message in (
        (("-o", "taken/a.html"), "folder"),
        (("-o", "missing/slides", "--format", "png"), "folder"),
        (("-o", "taken", "--format", "png"), "it is a file"),
    ):
        done = step(LECTURE, *arguments)
        assert isinstance(done.exception, CgprimerError), arguments
        approved(str(done.exception), message)

    def broken(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", broken)
    done = step(LECTURE, "-o", "slides", "--format", "png")
    assert isinstance(done.exception, UsageError)
    approved(str(done.exception))
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]


@pytest.mark.slow
def test_titles_are_one_line_of_text(tmp_path: Path) -> None:
    graph = cgprimer.parse("xw = cd*xa")
    title, point = "a\x07b\n\x00<c>\ud800\ufffe\x1b", {"xa": 2.0, "cd": 3.0}
    text = cgprimer.step(graph, point, title=title, output=tmp_path / "a.html")
    assert "<h1>a b  &lt;c&gt;</h1>" in text
    assert "<h1>xw step by step</h1>" in cgprimer.step(graph, point)
    assert "<h1></h1>" in cgprimer.step(graph, point, title="\x07 \n")
    shown = stepping(graph, point, title=title, methods=["reverse"])
    for kind in ("svg", "png", "pdf"):
        write_steps(shown, tmp_path / kind, method="reverse", kind=kind)
    root = ElementTree.parse(tmp_path / "svg" / "001.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    done = step("-e", "xw = cd*xa", "--at", "xa=1,cd=2", "--title", title, "-o", tmp_path / "b.gif")
    assert done.exit_code == 0


def test_shapes_on_slides_are_those_of_the_pictures() -> None:
    graph = cgprimer.load(LECTURE)
    shown = stepping(graph, methods=["reverse"])
    figure = draw_slide(shown, "reverse", shown.frames("reverse")[0], lay_out_scene(shown.scene))
    kinds = [type(patch).__name__ for patch in figure.axes[1].patches]
    assert "FancyBboxPatch" in kinds  # the round corners of an input
    colors = {patch.get_edgecolor() for patch in figure.axes[1].patches}
    assert {to_rgba(style.outline) for style in theme(False).roles.values()} & colors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "a.jpg"), ".html, .gif"),
        (("-o", "missing/a.html"), ""),
        (("-o", "a"), ".html, .gif"),
        (("-o", "."), ""),
        (("-o", "a.gif", "--format", "png"), ""),
        (("-o", "a.html", "--step", "0"), ""),
        (("-o", "a.html", "--step", "nan"), ""),
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
    approved(str(done.exception), message)
    assert list(tmp_path.iterdir()) == []


def test_only_force_overwrites_a_file(tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    page.write_text("my homework")
    refused = step(LECTURE, "-o", page)
    assert isinstance(refused.exception, UsageError)
    assert "--force" in str(refused.exception)
    assert page.read_text() == "my homework"
    assert step(LECTURE, "-o", page, "--force").exit_code == 0
    assert "<!doctype html>" in page.read_text()


def test_only_force_replaces_slides_and_nothing_else(tmp_path: Path) -> None:
    slides = tmp_path / "pages"
    arguments = ("-e", "xw = cd*xa", "--at", "xa=2,cd=3", "-o", slides, "--format", "svg")
    assert step(*arguments).exit_code == 0
    (slides / "999.svg").touch()  # of a longer derivative
    assert "--force" in str(step(*arguments).exception)
    assert step(*arguments, "--force").exit_code == 0
    assert not (slides / "999.svg").exists()
    (slides / "notes.txt").write_text("my notes")
    assert "notes.txt is not a slide" in str(step(*arguments, "--force").exception)
    assert (slides / "notes.txt").read_text() == "my notes"


def test_the_page_opens_in_reverse_mode(tmp_path: Path) -> None:
    assert step(LECTURE, "-o", tmp_path / "a.html").exit_code == 0
    assert '"first": "reverse"' in re.sub(r'":\s*"', '": "', (tmp_path / "a.html").read_text())
