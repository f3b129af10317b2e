"""The pages of the commands: each command of the program has a section with its help."""

from __future__ import annotations

import re

import pytest

from cgprimer.cli import cli
from tests.docs.test_docs import ROOT

PAGES = sorted((ROOT / "docs" / "reference" / "commands").glob("*.md"))
HELP = re.compile(r"^<!-- help: cgprimer (.+) -->$", re.MULTILINE)  # docs/site/build.py inserts it


def sections() -> dict[str, str]:
    """The sections of all pages, keyed by their headings of the second level."""
    pages = [page.read_text(encoding="utf-8") for page in PAGES]
    texts = [text for page in pages for text in re.split(r"^## ", page, flags=re.MULTILINE)]
    return {text.partition("\n")[0]: text for text in texts}


@pytest.mark.parametrize("name", list(cli.commands))
def test_every_command_has_a_section_that_ends_with_its_help(name: str) -> None:
    text = sections()[name]
    kinds = [f"{name} {kind}" for kind in getattr(cli.commands[name], "commands", {})]
    assert re.findall(r"^### (.+)$", text, re.MULTILINE)[: len(kinds)] == kinds
    assert HELP.findall(text) == (kinds or [name])
    for part in re.split(r"^### ", text, flags=re.MULTILINE)[1 if kinds else 0 :]:
        assert part.rstrip().endswith("-->")


def test_the_first_page_links_to_every_command() -> None:
    text = (PAGES[0].parent / "index.md").read_text("utf-8")
    linked = re.findall(r"\[`(\w+)`\]\([\w-]+\.md#(\w+)\)", text)
    assert sorted(linked) == sorted((name, name) for name in cli.commands)
