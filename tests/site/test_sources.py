"""What can be said about the documentation site without building it."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import completeness
import pytest

from tests.site.conftest import ROOT

DOCS = ROOT / "docs"
BUILD = runpy.run_path(str(DOCS / "site" / "build.py"))


def test_the_navigation_lists_every_page_once() -> None:
    assert str(completeness.CONFIGURATION["project"]["nav"]).count(".md") > 50
    assert completeness.find_unlisted_pages() == []


def test_every_public_name_is_in_the_reference_once() -> None:
    assert len(completeness.list_public_names()) > 150
    assert completeness.find_unlisted_names() == []


@pytest.mark.slow
def test_every_public_name_has_a_docstring() -> None:
    pytest.importorskip("griffe", reason="griffe is missing: pip install -e .[docs]")
    assert completeness.find_undocumented_names() == []


def test_old_addresses_lead_to_pages() -> None:
    for old, new in completeness.CONFIGURATION["redirects"].items():
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


def test_broken_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<p id="here"><a href="b.html#there">b</a>', "utf-8")
    (tmp_path / "b.html").write_text(
        '<a href="a.html#here"></a> <a id="x" href="c.html"></a> <img alt="" src="d.png">'
        ' <a href="https://example.org"></a> <a href="#x"></a> <a href="#y"></a>',
        "utf-8",
    )
    assert sorted(completeness.find_broken_links(tmp_path)) == [
        "a.html: b.html#there leads nowhere",
        "b.html: #y leads nowhere",
        "b.html: c.html leads nowhere",
        "b.html: d.png leads nowhere",
    ]


def test_a_folder_with_other_files_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("precious", "utf-8")
    command = [sys.executable, "docs/site/build.py", "--output", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "choose another folder" in done.stderr
    assert (tmp_path / "notes.txt").exists()
