"""``cgprimer examples``: the graphs and programs that come with the package."""

from __future__ import annotations

from pathlib import Path

import click

from cgprimer.cli.common import make_command, note
from cgprimer.cli.grouped_help import option
from cgprimer.errors import UsageError
from cgprimer.support.files import find_examples, write_atomically
from cgprimer.support.validation import check_choice


@make_command()
@option(
    "--copy",
    "names",
    metavar="NAME",
    multiple=True,
    help="Example to copy into the current folder; repeatable.",
)
def command(names: tuple[str, ...]) -> None:
    """List or copy the example graphs and programs of cgprimer.

    \b
    Examples:
      cgprimer examples
      cgprimer examples --copy lecture
      cgprimer train lecture
    """
    examples = find_examples() | {path.name: path for path in find_examples("*.py").values()}
    if not names:
        for example, path in examples.items():
            about = path.read_text(encoding="utf-8").partition("\n")[0].lstrip('# "')
            click.echo(f"{example:<23}  {about}")
        return
    for name in names:
        check_choice("example", name, examples)
        path = Path(examples[name].name)
        if path.exists():
            raise UsageError(f"cannot write {path}: the file already exists")
        write_atomically(path, examples[name].read_bytes())
        note(f"wrote {path}")
