"""The gallery shows every kind of picture, and the commands of a page write its pictures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cgprimer.cli.plot_command import command as plot
from tests.docs import gallery

TEXT = gallery.PAGE.read_text(encoding="utf-8")
DRAW_OPTIONS = ("--values", "--partials", "--tangents", "--adjoints", "--path", "--dark",
                "--level operations", "--level backward")  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("page", gallery.PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_write_its_pictures(page: Path, tmp_path: Path) -> None:
    assert gallery.make(page, tmp_path) == []
    for name in set(gallery.shown(page)) - set(gallery.DRAWN):
        content = (tmp_path / gallery.SCREENSHOTS.get(name, name).partition("#")[0]).read_bytes()
        if name.endswith(".svg"):
            assert len(re.findall(rb"<path|<use", content)) > 10
        assert len(content) > 1000
    if page == gallery.PAGE:
        (chart,) = gallery.MERMAID.findall(TEXT)
        assert chart == (tmp_path / "olah.mmd").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", gallery.PAGES, ids=lambda page: page.stem)
def test_a_page_shows_the_pictures_of_its_folder_with_descriptions(page: Path) -> None:
    pictures = list(page.with_suffix("").iterdir())
    assert sorted(gallery.shown(page)) == sorted(path.name for path in pictures)
    assert all(path.stat().st_size < 1_000_000 for path in pictures)
    for description in re.findall(r"!\[(.*?)\]\(", page.read_text(encoding="utf-8")):
        assert len(description.split()) >= 5


def test_every_kind_of_picture_is_shown() -> None:
    folders = re.findall(r"!\[.*?\]\((\.\./[\w/-]+)/[\w.-]+\)", TEXT)  # of other pages
    pages = [gallery.PAGE.parent / f"{folder}.md" for folder in dict.fromkeys(folders)]
    lines = [line for page in (gallery.PAGE, *pages) for line in gallery.commands(page)]
    drawn = " ".join(line for line in lines if line.startswith("cgprimer draw"))
    assert [option for option in DRAW_OPTIONS if option not in drawn] == []
    for command in (*(f"plot {kind}" for kind in plot.commands), "compare"):
        assert any(line.startswith(f"cgprimer {command} ") for line in lines), command
    for suffix in (".html", ".gif"):
        assert any(re.fullmatch(rf"cgprimer step .*\{suffix}", line) for line in lines)
