"""``cgprimer playground``: a folder with a page that runs cgprimer in the browser."""

from __future__ import annotations

import shlex

from cgprimer.cli.common import make_command, note
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import PATH
from cgprimer.cli.shared_options import force_option


@make_command()
@option("-o", "--output", **PATH, required=True, help="Output folder: new, empty or a playground.")
@option(
    "--pyodide",
    **PATH,
    help="Folder with npm's package pyodide, to be copied (default: browsers load it online).",
)
@force_option
def command(output: str, pyodide: str | None, force: bool) -> None:
    """Write a page that runs cgprimer in the browser, without an installation.

    \b
    Examples:
      cgprimer playground -o playground

    Any web server can deliver the folder; nothing that users type leaves their browsers. By
    default, browsers load Python from cdn.jsdelivr.net. With --pyodide, the folder contains
    everything, and the page works without the internet: run npm pack pyodide@314.0.7, unpack the
    archive, and pass its folder "package".
    """
    from cgprimer.visualization.playground.playground_builder import write_playground

    write_playground(output, pyodide=pyodide, force=force)
    note(f"wrote {output}")
    note(f"next: python -m http.server -d {shlex.quote(output)}, then open http://localhost:8000")
