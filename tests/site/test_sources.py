"""What can be said about the documentation site without building it."""

from __future__ import annotations

import re
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


def test_live_pages_are_shown_and_linked() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")}
    shown = {name for t in texts.values() for name in re.findall(r'src="[./]*live/([\w.-]+)"', t)}
    linked = {name for t in texts.values() for name in re.findall(r"\]\([./]*live/([\w.-]+)\)", t)}
    assert shown == linked <= set(BUILD["LIVE"])


def test_pictures_of_the_gallery_are_on_cards() -> None:
    text = """# Gallery

Words.

## Graphs

### Values

```console
$ cgprimer draw lecture
```

![One](a.svg)

![Two](b.svg)

More words.

![Three](c.svg)

The end.
"""
    cards = BUILD["arrange_cards"](text)
    assert cards.count('<div class="gallery" markdown>') == 1
    assert cards.count('<div class="card" markdown>') == 2
    first, second = cards.split('<div class="card" markdown>')[1:]
    assert "### Values" in first
    assert "[![Two](b.svg)](b.svg)" in first
    assert "More words." in second
    assert cards.rstrip().endswith("The end.")
    assert "\n## Graphs\n" in cards
