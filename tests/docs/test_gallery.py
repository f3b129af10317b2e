"""The gallery shows every kind of picture, and its commands make what it shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cgprimer.cli.draw_command import command as draw
from cgprimer.cli.plot_command import command as plot
from tests.docs import gallery

TEXT = gallery.PAGE.read_text(encoding="utf-8")


NAMES = [page.stem for page in gallery.PAGES]


@pytest.fixture(scope="module", params=gallery.PAGES, ids=NAMES)
def page(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture(scope="module")
def made(page: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(page.stem)
    assert not gallery.make(page, folder)
    return folder


@pytest.mark.slow
def test_every_picture_is_made_by_a_command_of_the_page(page: Path, made: Path) -> None:
    assert gallery.shown(page)
    for name in gallery.shown(page):
        if name in gallery.DRAWN:
            continue
        path = made / gallery.SCREENSHOTS.get(name, name).partition("#")[0]
        assert path.is_file(), name
        content = path.read_bytes()
        if path.suffix == ".svg":
            assert content.rstrip().endswith(b"</svg>")
            assert len(re.findall(rb"<path|<use", content)) > 10
        else:
            assert len(content) > 1000


@pytest.mark.slow
def test_the_page_holds_the_chart_that_mermaid_draws(page: Path, made: Path) -> None:
    if page != gallery.PAGE:
        return
    (chart,) = gallery.MERMAID.findall(TEXT)
    assert chart == (made / "olah.mmd").read_text(encoding="utf-8")


def test_the_pictures_beside_the_page_are_those_it_shows(page: Path) -> None:
    pictures = list(page.with_suffix("").iterdir())
    assert sorted(gallery.shown(page)) == sorted(path.name for path in pictures)
    assert all(path.stat().st_size < 1_000_000 for path in pictures)


def test_every_kind_of_picture_is_shown() -> None:
    commands = gallery.commands(gallery.PAGE)
    folders = re.findall(r"!\[.*?\]\((\.\./[\w/-]+)/[\w.-]+\)", TEXT)  # of other pages
    pages = [gallery.PAGE.parent / f"{folder}.md" for folder in dict.fromkeys(folders)]
    plotted = [*commands, *(command for page in pages for command in gallery.commands(page))]
    drawn = " ".join(c for c in commands if c.startswith("cgprimer draw"))
    for option in draw.params:
        for name in option.opts:
            if name in ("--values", "--partials", "--tangents", "--adjoints", "--path", "--dark"):
                assert name in drawn
    for level in ("operations", "backward"):
        assert f"--level {level}" in drawn
    for kind in plot.commands:
        assert any(c.startswith(f"cgprimer plot {kind} ") for c in plotted), kind
    for ending in (".html", ".gif"):
        assert any(c.startswith("cgprimer step") and c.endswith(ending) for c in commands)
    assert any(c.startswith("cgprimer compare") for c in commands)


def test_every_picture_has_words_for_who_cannot_see_it(page: Path) -> None:
    for words in re.findall(r"!\[(.*?)\]\(", page.read_text(encoding="utf-8")):
        assert len(words.split()) >= 5
