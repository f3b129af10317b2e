"""What `cgprimer step` and `cgprimer.step` write, and what they refuse."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from PIL import Image

import cgprimer
from cgprimer.cli import cli
from cgprimer.drawing.theme import theme
from cgprimer.errors import CgprimerError, UsageError
from cgprimer.stepping.frames import stepping
from cgprimer.stepping.placing import placed
from cgprimer.stepping.slides import slide

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
        (("-e", "xw = p*xa", "-o", "a.html"), "xa"),
        (("-e", "xw = p*xa", "--at", "xa=1", "-o", "a.gif"), "p"),
        (("-e", "", "-o", "a.html"), "no expressions"),
        (("-e", "xw = 2 + 3", "-o", "a.html"), ""),
        (("-e", "xw = p*", "-o", "a.html"), ""),
    ],
)
def test_graphs_that_cannot_be_stepped_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = step(*arguments)
    assert isinstance(done.exception, CgprimerError)
    assert message in str(done.exception)
    assert list(tmp_path.iterdir()) == []


def test_options_of_differences_belong_to_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = step(LECTURE, "-o", "a.gif", "--method", "reverse", "--step", "1e-3")
    assert done.exit_code == 2
    assert "--step belongs to --method finite-difference, not to reverse" in done.output
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
        (("-o", "taken/a.html"), "no folder"),
        (("-o", "missing/slides", "--format", "png"), "no folder"),
        (("-o", "taken", "--format", "png"), "it is a file"),
    ):
        done = step(LECTURE, *arguments)
        assert isinstance(done.exception, CgprimerError), arguments
        assert message in str(done.exception)

    def broken(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", broken)
    done = step(LECTURE, "-o", "slides", "--format", "png")
    assert isinstance(done.exception, UsageError)
    assert "No space left" in str(done.exception)
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]


def test_text_on_slides_is_large_and_inside(tmp_path: Path) -> None:
    for name in ("lecture", "mazur", "log_sine", "cs231n_neuron", "olah"):
        graph = cgprimer.load(LECTURE.with_name(f"{name}.cg"))
        shown = stepping(graph, of=graph.outputs[0], title=name)
        place = placed(shown.scene)
        for walk in shown.walks:
            frames = shown.frames(walk.method)
            for frame in (frames[0], frames[len(frames) // 2], frames[-1]):
                figure = slide(shown, walk.method, frame, place)
                assert tuple(figure.get_size_inches() * 72) == (960.0, 540.0)
                canvas = FigureCanvasAgg(figure)
                for axes in figure.axes:
                    for text in axes.texts:
                        assert text.get_fontsize() >= 14.0
                        if axes is figure.axes[0] and text.get_text():
                            box = text.get_window_extent(canvas.get_renderer())
                            assert min(box.x0, box.y0) >= 0, text
                            assert box.x1 <= figure.bbox.x1, text
                            assert box.y1 <= figure.bbox.y1, text


def test_shapes_on_slides_are_those_of_the_pictures() -> None:
    graph = cgprimer.load(LECTURE)
    shown = stepping(graph, methods=["reverse"])
    figure = slide(shown, "reverse", shown.frames("reverse")[0], placed(shown.scene))
    kinds = [type(patch).__name__ for patch in figure.axes[1].patches]
    assert "FancyBboxPatch" in kinds  # the round corners of an input
    colours = {patch.get_edgecolor() for patch in figure.axes[1].patches}
    assert {to_rgba(style.outline) for style in theme(False).roles.values()} & colours


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "a.jpg"), ".html, .gif"),
        (("-o", "missing/a.html"), "no folder"),
        (("-o", "a"), ".html, .gif"),
        (("-o", "."), "cannot tell what to write"),
        (("-o", "a.gif", "--format", "png"), "looks like a file"),
        (("-o", "a.html", "--step", "0"), "must be positive"),
        (("-o", "a.html", "--step", "nan"), "must be positive"),
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
