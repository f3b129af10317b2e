"""Files are whole or absent, and errors say what to do."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.figure import Figure

from cgprimer.errors import UsageError
from cgprimer.visualization.diagrams.diagram_formats import format_diagram, save_diagram
from cgprimer.visualization.diagrams.figure_files import save_figure
from cgprimer.visualization.diagrams.slide_layout import slide_layout
from tests.approval import refused
from tests.pictures.drawing_graphs import scattered

_FIRST_BYTES = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.parametrize("name", ["a.png", "a.svg", "a.pdf", "A.PNG", "with space.svg"])
def test_all_formats(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    save_figure(Figure(figsize=(2, 1)), path)
    assert path.read_bytes().startswith(_FIRST_BYTES[path.suffix[1:].lower()])
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["a.bmp", "a", "a.jpg", ".png"])
def test_unknown_extension_names_the_known_ones(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"\.png, \.svg, \.pdf"):
        save_figure(Figure(figsize=(1, 1)), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    with refused(UsageError):
        save_figure(Figure(figsize=(1, 1)), tmp_path / "file" / "a.png")
    assert [p.read_text() for p in tmp_path.iterdir()] == ["kept"]


def test_missing_folder(tmp_path: Path) -> None:
    with refused(UsageError):
        save_figure(Figure(figsize=(1, 1)), tmp_path / "missing" / "a.png")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_unwritable_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with refused(UsageError):
            save_figure(Figure(figsize=(1, 1)), tmp_path / "a.png")
    finally:
        tmp_path.chmod(0o700)
    assert not list(tmp_path.iterdir())


def test_a_failed_rename_leaves_the_old_file_and_no_partial_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.svg"
    path.write_text("old")

    def refuse(self: Path, target: Path) -> Path:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "replace", refuse)
    with refused(UsageError):
        save_figure(Figure(figsize=(1, 1)), path)
    assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]


def test_an_error_while_drawing_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figure = Figure(figsize=(1, 1))

    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(figure, "savefig", fail)
    with pytest.raises(MemoryError):
        save_figure(figure, tmp_path / "a.pdf")
    assert not list(tmp_path.iterdir())


def test_a_huge_figure_is_saved_with_fewer_dots(tmp_path: Path) -> None:
    from PIL import Image

    save_figure(Figure(figsize=(400, 2)), tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as image:
        assert max(image.size) <= 16_000


# --- geometry ------------------------------------------------------------------------------------


def test_tikz_has_the_geometry_of_the_layout() -> None:
    """Lengths are points and y goes downwards, as the axes of the picture declare."""
    diagram = scattered(12, seed=1)
    text, layout = format_diagram(diagram, "tex"), slide_layout(diagram).layout
    axes = re.search(r"\\begin\{tikzpicture\}\[x=(-?\d+)bp, y=(-?\d+)bp", text)
    assert axes
    assert axes.groups() == ("1", "-1")
    centres = re.findall(r"\\node\[align=center.*? at \((.+?),(.+?)\)", text)
    boxes = [(box.x, box.y) for box in layout.boxes.values()]
    assert np.array(centres, float) == pytest.approx(np.array(boxes), abs=0.06)
    for route, line in zip(layout.routes, re.findall(r"\\draw\[.*?\] (.*);", text), strict=True):
        points = [tuple(map(float, p)) for p in re.findall(r"\((.+?),(.+?)\)", line)]
        assert np.array(points) == pytest.approx(np.array(route), abs=0.06)


def test_svg_has_the_geometry_of_the_layout(tmp_path: Path) -> None:
    """Boxes where the layout has them, moved by the margins of the picture."""
    diagram = scattered(12, seed=1)
    save_diagram(diagram, tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    centres = []
    for path in re.findall(r'<path d="([^"]*)z\s*" clip-path', text):
        points = np.array([xy.split()[-2:] for xy in path.strip().splitlines()], float)
        centres.append((points.min(axis=0) + points.max(axis=0)) / 2)
    boxes = [(box.x, box.y) for box in slide_layout(diagram).layout.boxes.values()]
    moved = [np.array(boxes) + centre - boxes[0] for centre in centres]
    assert any(np.allclose(_nearest(each, centres), each, rtol=0, atol=0.1) for each in moved)


def _nearest(points: npt.NDArray[np.float64], among: list[npt.NDArray[np.float64]]) -> Any:
    """The nearest of some points to each."""
    distances = np.abs(points[:, None] - np.array(among)).sum(axis=2)
    return np.array(among)[distances.argmin(axis=1)]
