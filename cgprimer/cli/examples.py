"""``cgprimer examples``: the graphs that come with the package."""

from __future__ import annotations

from pathlib import Path

import click

from cgprimer.checked_numbers import one_of
from cgprimer.cli.common import make_command, note
from cgprimer.errors import UsageError
from cgprimer.files import examples, write_whole


@make_command("--copy (name) NAME  Write this one as NAME.cg into this folder.")
def command(name: str | None) -> None:
    """The graphs that come with cgprimer; each name can be given as FILE.

    \b
    Examples:
      cgprimer examples
      cgprimer examples --copy lecture
      cgprimer train lecture
    """
    found = examples()
    if name is None:
        for known, path in found.items():
            about = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
            click.echo(f"{known:<22}  {about}")
        return
    one_of("example", name, found)
    path = Path(f"{name}.cg")
    if path.exists():
        raise UsageError(f"cannot write {path}: there is one already")
    write_whole(path, found[name].read_bytes())
    note(f"wrote {path}")
