"""A Python-Markdown extension: the tables of options that mkdocs-click makes from the commands.

The configuration of the site names this extension instead of ``mkdocs-click``, which copies help
texts into the page unchanged. Here, the examples of a help text become a block of code, characters
with a meaning in Markdown are escaped, the type of an option is its placeholder (``NAME,...``), and
options without a default have an empty cell. (mkdocs-click 0.9 prints a placeholder of click there:
https://github.com/mkdocs/mkdocs-click/pull/95.)
"""

from __future__ import annotations

import re
from inspect import cleandoc
from types import SimpleNamespace
from typing import Any

import click
from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor

_SPECIAL = re.compile(r"[\\`*_<>|~^$\[\]]")
_EXAMPLES = re.compile(r"\x08\nExamples:\n(.*?)(?=\n\n|\Z)", re.DOTALL)
_WITHOUT_DEFAULT = re.compile(r"(?<=\| )(?:None|_required) \|$")


def escape(text: str) -> str:
    """Replace characters with a meaning in Markdown by HTML entities.

    >>> escape("2*l1*|W|")
    '2&#42;l1&#42;&#124;W&#124;'
    """
    return _SPECIAL.sub(lambda match: f"&#{ord(match[0])};", text)


def format_help(text: str) -> str:
    """Convert the help text of a command to Markdown, with its examples as a block of code."""
    parts = _EXAMPLES.split(cleandoc(text))  # text, examples, text
    paragraphs = [escape(part.strip()) for part in parts]
    paragraphs[1::2] = [f"```bash\n{cleandoc(part)}\n```" for part in parts[1::2]]
    return "\n\n".join(filter(None, paragraphs))


def prepare(command: click.Command) -> None:
    """Change a command, and its subcommands, so that mkdocs-click shows them as valid Markdown."""
    command.help = format_help(command.help or "")
    command.add_help_option = False
    for option in command.params:
        if isinstance(option, click.Option):
            prepare_option(option)
    for name, subcommand in getattr(command, "commands", {}).items():
        subcommand.name = name  # the name of the function is the same for all
        prepare(subcommand)


def prepare_option(option: click.Option) -> None:
    """Change the help, the type and the default of an option for the table of mkdocs-click."""
    option.help = escape(option.help or "")
    if isinstance(option.default, bool):
        option.default = option.opts[0] if option.secondary_opts and option.default else None
    elif not isinstance(option.default, str | int | float) or option.default == "":
        option.default = None
    if option.is_flag:
        option.type = SimpleNamespace(name="flag")
    elif option.metavar and not isinstance(option.type, click.Choice | click.IntRange):
        option.type = SimpleNamespace(name=f"`{option.metavar}`".replace("|", "` or `"))


class _EmptyDefaults(Preprocessor):
    """Empty the cells of options without a default; mark options that are required."""

    def run(self, lines: list[str]) -> list[str]:
        """Return the lines of the page with changed cells in the tables of options."""
        return [_WITHOUT_DEFAULT.sub(self._replace, line) if line[:3] == "| `" else line
                for line in lines]  # fmt: skip

    @staticmethod
    def _replace(match: re.Match[str]) -> str:
        """Return the cell of an option without a default."""
        return "required |" if "required" in match[0] else " |"


class CommandTables(Extension):
    """The extension of mkdocs-click, applied to prepared commands."""

    prepared = False  # commands are modules of the process: they are changed once

    def extendMarkdown(self, md: Markdown) -> None:
        """Register the preprocessors."""
        from mkdocs_click import MKClickExtension

        from cgprimer.cli import cli

        if not CommandTables.prepared:
            prepare(cli)
            CommandTables.prepared = True
        MKClickExtension().extendMarkdown(md)
        md.preprocessors.register(_EmptyDefaults(md), "command_tables", 140)


def makeExtension(**_: Any) -> Extension:
    """Return the extension; Python-Markdown calls this function."""
    return CommandTables()
