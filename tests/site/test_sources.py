"""What can be said about the documentation site without building it."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BUILD = runpy.run_path(str(DOCS / "site" / "build.py"))


def test_the_navigation_lists_every_page_once() -> None:
    assert str(BUILD["CONFIGURATION"]["project"]["nav"]).count(".md") > 50
    assert BUILD["find_unlisted_pages"]() == []


def test_every_public_name_is_in_the_reference_once() -> None:
    assert len(BUILD["list_public_names"]()) > 150
    assert BUILD["find_unlisted_names"]() == []


def test_every_public_name_has_a_docstring() -> None:
    pytest.importorskip("griffe", reason="griffe is missing: pip install -e .[docs]")
    assert BUILD["find_undocumented_names"]() == []


def test_old_addresses_lead_to_pages() -> None:
    for old, new in BUILD["CONFIGURATION"]["redirects"].items():
        assert not (DOCS / old).with_suffix(".md").exists(), old
        assert (DOCS / new.partition("#")[0]).with_suffix(".md").exists(), new


def test_live_pages_are_shown() -> None:
    texts = [path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")]
    shown = {name for text in texts for _, _, _, name in BUILD["PICTURE"].findall(text)}
    assert set(BUILD["LIVE"]) <= shown


def test_pictures_on_cards_are_links_and_pictures_of_pages_are_frames() -> None:
    def show(text: str) -> str:
        return str(BUILD["PICTURE"].sub(BUILD["show_picture"], text))

    assert show("![A graph](gallery/graph.svg)") == "![A graph](gallery/graph.svg)"
    assert show("-   ![A graph](a/b.svg)") == "-   [![A graph](a/b.svg)](a/b.svg)"
    card = "-   [![A page](a/step-page.png)](../live/step-page.html)"
    assert show("-   ![A page](a/step-page.png)") == card
    frame = show('![A "page"](a/step-page.png)')
    assert 'src="../live/step-page.html" title="A &quot;page&quot;"' in frame
    assert frame.endswith("](../live/step-page.html)")
