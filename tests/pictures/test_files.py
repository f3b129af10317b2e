"""Files are whole or absent, and errors say what to do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from cgprimer.errors import UsageError
from cgprimer.pictures.saving import save_figure

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
    with pytest.raises(UsageError, match="cannot write"):
        save_figure(Figure(figsize=(1, 1)), tmp_path / "file" / "a.png")
    assert [p.read_text() for p in tmp_path.iterdir()] == ["kept"]


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot write"):
        save_figure(Figure(figsize=(1, 1)), tmp_path / "missing" / "a.png")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_unwritable_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(UsageError, match="cannot write"):
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
    with pytest.raises(UsageError, match="Permission denied"):
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
