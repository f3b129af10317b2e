"""``cgprimer compare``: all methods side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from cgprimer.analysis.tables import FORMATS
from cgprimer.cli.common import echo_json, file_of, graph_command, note
from cgprimer.cli.options import AT, ENGINE, JSON, WRT
from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.methods import methods


def _output(ctx: click.Context, parameter: click.Parameter, path: str | None) -> Path | None:
    """The path, after a look, before any work, whether it can be written."""
    from cgprimer.pages.comparison.slides import check_comparison_path

    if path is not None:
        check_comparison_path(Path(path))
    return None if path is None else Path(path)


@graph_command(
    "compare",
    AT,
    "--of NAME  The variable to differentiate (default: the only output).",
    WRT,
    f"--method (methods) {'|'.join(methods())}...  Only these methods; may be repeated.",
    f"--format {'|'.join(FORMATS)} =text  How the table is written.",
    "-o, --output PATH  A page (.html) or slides (.pdf, .png, .svg) instead of the printed table.",
    "--dark  With -o: for dark slides.",
    "--title TEXT  With -o: the heading, '' for none (default: FILE's name).",
    ENGINE,
    JSON,
    output=_output,
)
def command(
    graph: ExpressionGraph,
    format: str,
    output: Path | None,
    dark: bool,
    title: str | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """All methods side by side: each derivative, its error, and what it cost.

    \b
    Examples:
      cgprimer compare lecture
      cgprimer compare lecture --at xa=-0.5 --wrt xa,ab
      cgprimer compare lecture --method forward --method reverse --json
      cgprimer compare lecture -o lecture.html
      cgprimer compare mazur -o mazur.pdf --dark

    Errors are relative, against a reference of fifty digits. Passes are runs over the graph
    (for path-sum: paths), operations are counted on the tape for the whole gradient, live
    values are the most that are held at one time, and the time is the least of five runs.

    With -o the same numbers beside the graph: a page that needs no network, or slides, of which
    the second .png or .svg stands beside the first, as lecture-2.png.
    """
    from cgprimer.analysis.comparison import compare

    style = click.get_current_context().get_parameter_source("format")
    if output is None and (dark or title is not None):
        option = "--dark" if dark else "--title"
        raise click.UsageError(f"{option} belongs to a picture: -o lecture.html or .pdf")
    if output is not None and (as_json or style is not ParameterSource.DEFAULT):
        printed = "--json" if as_json else "--format"
        raise click.UsageError(f"-o writes a picture and {printed} prints: give one of them")
    found = compare(graph, **settings)
    if output is not None:
        from cgprimer.pages.comparison.slides import save_comparison

        file = file_of(graph)
        if title is None and file is not None:
            title = file.name
        written = save_comparison(found, output, dark=dark, title=title)
        note(f"wrote {' and '.join(map(str, written))}")
    elif as_json:
        echo_json(found.to_dict())
    else:
        click.echo(str(found) if format == "text" else found.to_table(format))
