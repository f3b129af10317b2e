"""The prose check: wording that the writing guide avoids, in pages, help texts and templates."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click

from cgprimer.cli import cli
from tests.approval import lines_with_values
from tests.docs.test_docs import FENCE, FILES, ROOT, named

# What to avoid, each followed by what to write.
PHRASES = lines_with_values(Path(__file__).with_name("phrases.txt"))
PATTERNS = {re.compile(pattern, re.IGNORECASE): advice for pattern, advice in PHRASES}
HISTORY = re.compile(r"\bno longer\b", re.IGNORECASE)  # what a changelog is for
PROJECT_PAGES = sorted((ROOT / ".github").rglob("*.md"))
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
TEMPLATES = [p for p in (ROOT / "cgprimer").rglob("*") if p.suffix in (".j2", ".html", ".tex")]


def offences(text: str, *, history: bool = False) -> Iterator[str]:
    """Yield each phrase to avoid with its line number and advice."""
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, advice in PATTERNS.items():
            for match in pattern.finditer(line):
                if not (history and HISTORY.fullmatch(match[0])):
                    yield f"{number}: {match[0]!r}; write: {advice}"


def page_text(path: Path) -> str:
    """Return the prose of a page: its code is blanked, and keeps its lines."""
    text = path.read_text(encoding="utf-8")
    text = FENCE.sub(lambda m: "\n" * m[0].count("\n"), text)
    return re.sub(r"`[^`\n]*`|\]\([^)]*\)|<[^>\n]*>", "", text)


def notebook_text(path: Path) -> str:
    """Return the text cells of a notebook, without code."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return re.sub(r"`[^`\n]*`", "", text)


def template_text(path: Path) -> str:
    """Return the visible text of a template, without markup, scripts and styles."""
    text = path.read_text(encoding="utf-8")
    for pattern in (r"<(script|style)\b.*?</\1>", r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", r"<[^>]*>"):
        text = re.sub(pattern, lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL)
    return text


def help_texts(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    """Yield the help texts of a command, its options and its subcommands."""
    yield name, command.help or ""
    for parameter in command.params:
        yield f"{name} {parameter.opts[0]}", getattr(parameter, "help", None) or ""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for word in command.list_commands(context):
            subcommand = command.get_command(context, word)
            assert subcommand is not None
            yield from help_texts(subcommand, f"{name} {word}")


def offences_by_text() -> dict[str, list[str]]:
    """Return the offences of pages, notebooks, templates and help texts, keyed by their names."""
    texts = {named(path): page_text(path) for path in [*FILES, *PROJECT_PAGES]}
    texts |= {named(path): notebook_text(path) for path in NOTEBOOKS}
    texts |= {named(path): template_text(path) for path in TEMPLATES}
    texts |= dict(help_texts(cli, "cgprimer"))
    return {
        name: list(offences(text, history=name.endswith("changelog.md")))
        for name, text in texts.items()
    }


def test_texts_avoid_what_the_writing_guide_avoids() -> None:
    found = offences_by_text()
    assert len(found) > 400
    assert {name: lines for name, lines in found.items() if lines} == {}
