"""``cgprimer examples``: the graphs and programs that come with the package."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

import click

from cgprimer.cli.common import make_command, note
from cgprimer.cli.grouped_help import option
from cgprimer.errors import UsageError
from cgprimer.support.example_files import LEVELS, TOPICS, Example, load_examples
from cgprimer.support.files import format_json, write_atomically
from cgprimer.support.validation import check_choice

_WIDTH = 100


@make_command()
@option("--topic", metavar="TEXT", help="List only topics that contain this text.")
@option("--level", type=click.Choice(LEVELS), help="List only the examples of one level.")
@option("--json", "as_json", is_flag=True, help="Print JSON.")
@option(
    "--copy",
    "names",
    metavar="NAME",
    multiple=True,
    help="Example to copy into the current folder; repeatable.",
)
def command(topic: str | None, level: str | None, as_json: bool, names: tuple[str, ...]) -> None:
    """List or copy the example graphs and programs of cgprimer.

    \b
    Examples:
      cgprimer examples
      cgprimer examples --topic arrays --level advanced
      cgprimer examples --copy lecture
      cgprimer train lecture
    """
    examples = load_examples()
    if names:
        for name in names:
            check_choice("example", name, examples)
            _copy_example(examples[name])
        return
    if topic and not any(topic.lower() in choice.lower() for choice in TOPICS):
        check_choice("topic", topic, TOPICS)
    selected = [
        example
        for example in examples.values()
        if (topic or "").lower() in example.topic.lower() and level in (None, example.level)
    ]
    if as_json:
        fields = ("name", "title", "topic", "level", "teaches", "source")
        rows = [{field: getattr(example, field) for field in fields} for example in selected]
        click.echo(format_json(rows))
    else:
        click.echo(_format_list(selected))


def _copy_example(example: Example) -> None:
    """Copy the file of an example into the current folder unless a file has its name."""
    path = Path(example.path.name)
    if path.exists():
        raise UsageError(f"cannot write {path}: the file already exists")
    write_atomically(path, example.path.read_bytes())
    note(f"wrote {path}")


def _format_list(examples: Iterable[Example]) -> str:
    """Format examples as text, with a heading for each topic and level."""
    blocks = []
    for (topic, level), group in groupby(examples, lambda example: (example.topic, example.level)):
        entries = []
        for example in group:
            entries += [f"  {example.name}: {example.title}"]
            first_sentence = re.split(r"(?<=\.) (?=[A-Z])", example.teaches)[0]
            for label, text in (("teaches", first_sentence), ("source", example.source)):
                entries += textwrap.wrap(
                    f"{label}: {text}",
                    _WIDTH,
                    initial_indent="      ",
                    subsequent_indent="        ",
                    break_long_words=False,
                    break_on_hyphens=False,
                )
        blocks.append("\n".join([click.style(f"{topic}, {level}", bold=True), *entries]))
    return "\n\n".join(blocks)
