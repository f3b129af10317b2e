"""The pages of the commands: each command of the program has a section with its options."""

from __future__ import annotations

import copy
import importlib
import importlib.util
import re
from types import ModuleType

import click
import pytest

from cgprimer.cli import cli
from tests.docs.test_docs import ROOT

PAGES = sorted((ROOT / "docs" / "reference" / "commands").glob("*.md"))
DIRECTIVE = re.compile(r"^::: mkdocs-click\n((?:    :\w+:.*\n?)+)", re.MULTILINE)
SETTING = re.compile(r"^    :(\w+): (.+)$", re.MULTILINE)


def sections() -> dict[str, str]:
    """The sections of all pages, keyed by their headings of the second level."""
    pages = [page.read_text(encoding="utf-8") for page in PAGES]
    texts = [text for page in pages for text in re.split(r"^## ", page, flags=re.MULTILINE)]
    return {text.partition("\n")[0]: text for text in texts}


@pytest.mark.parametrize("name", list(cli.commands))
def test_every_command_has_a_section_that_ends_with_its_options(name: str) -> None:
    text = sections()[name]
    (block,) = DIRECTIVE.findall(text)
    assert text.rstrip().endswith(block.rstrip())
    settings = dict(SETTING.findall(block))
    module = importlib.import_module(settings["module"])
    assert getattr(module, settings["command"]) is cli.commands[name]
    assert settings["prog_name"] == f"cgprimer {name}"
    assert (settings["style"], settings["depth"]) == ("table", "2")
    kinds = getattr(cli.commands[name], "commands", {})
    assert settings.get("list_subcommands") == ("true" if kinds else None)
    assert re.findall(rf"^### {name} (\w+)$", text, re.MULTILINE) == list(kinds)


def test_the_first_page_links_to_every_command() -> None:
    text = (PAGES[0].parent / "index.md").read_text("utf-8")
    linked = re.findall(r"\[`(\w+)`\]\([\w-]+\.md#(\w+)\)", text)
    assert sorted(linked) == sorted((name, name) for name in cli.commands)


# --- the tables of options on the site ------------------------------------------------------------


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    pytest.importorskip("markdown")
    path = ROOT / "docs" / "site" / "command_tables.py"
    spec = importlib.util.spec_from_file_location("command_tables", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_help_texts_become_markdown(tables: ModuleType) -> None:
    text = "Add a*b.\n\n\b\nExamples:\n  cgprimer x a*b\n  cgprimer y\n\nNot *x*."
    shown = "Add a&#42;b.\n\n```bash\ncgprimer x a*b\ncgprimer y\n```\n\nNot &#42;x&#42;."
    assert tables.format_help(text) == shown
    assert tables.format_help("Add.") == "Add."


@pytest.mark.parametrize("name", list(cli.commands))
def test_options_are_shown_with_their_types_and_defaults(tables: ModuleType, name: str) -> None:
    command = copy.deepcopy(cli.commands[name])
    tables.prepare(command)
    kinds = getattr(command, "commands", {})
    assert [kind.name for kind in kinds.values()] == list(kinds)
    commands = [command, *kinds.values()]
    for option in (o for c in commands for o in c.params if isinstance(o, click.Option)):
        assert option.default is None or isinstance(option.default, str | int | float)
        assert "|" not in f"{option.help}{option.type.name}"
    assert all("\b" not in c.help for c in commands)
