"""``cgprimer compare``: all methods side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cgprimer.analysis.text_tables import FORMATS
from cgprimer.cli.common import echo_json, file_of, graph_command, note
from cgprimer.cli.options import AT, ENGINE, JSON, WRT, is_given
from cgprimer.core.methods import methods
from cgprimer.core.methods.finite_difference import SCHEMES
from cgprimer.expressions import ExpressionGraph


def _output(path: str | None) -> str | None:
    """The path, after a look, before any work, whether it can be written."""
    from cgprimer.visualization.diagrams.figure_files import check_picture_path
    from cgprimer.visualization.pages.comparison.comparison_slides import FORMATS as PICTURES

    if path is not None:
        check_picture_path(Path(path), PICTURES)
    return path


@graph_command(
    AT,
    "--of NAME  The variable to differentiate (default: the only output).",
    WRT,
    f"--method (methods) {'|'.join(methods())}...  Only these methods; may be repeated.",
    f"--scheme (schemes) {'|'.join(SCHEMES)}...  A row for this difference quotient; repeatable.",
    f"--format {'|'.join(FORMATS)} =text  How the table is written.",
    "-o, --output PATH  A page (.html) or slides (.pdf, .png, .svg) instead of the printed table.",
    "--dark  With -o: for dark slides.",
    "--title TEXT  With -o: the heading, '' for none (default: FILE's name).",
    ENGINE,
    JSON,
    output=_output,
    with_loss=True,
    with_watch=True,
)
def command(
    graph: ExpressionGraph,
    format: str,
    output: str | None,
    as_json: bool,
    live: bool,
    **settings: Any,
) -> str | None:
    """All methods side by side: each derivative, its error, and what it cost.

    \b
    Examples:
      cgprimer compare lecture
      cgprimer compare lecture --at xa=-0.5 --wrt xa,ab
      cgprimer compare lecture --method forward --method reverse --json
      cgprimer compare lecture --scheme forward --scheme central
      cgprimer compare lecture -o lecture.html
      cgprimer compare mazur -o mazur.pdf --dark

    Errors are relative, against a reference of fifty digits. Passes are runs over the graph
    (for path-sum: paths), operations are counted on the tape for the whole gradient, live
    values are the most that are held at one time, and the time is the least of five runs.

    With -o the same numbers beside the graph: a page that needs no network, or slides, of which
    the second .png or .svg stands beside the first, as lecture-2.png. With --watch a browser shows
    the page, made anew whenever FILE changes; -o writes it at every change as well.
    """
    from cgprimer.analysis.comparison import compare

    dark, title = settings.pop("dark"), settings.pop("title")
    shows = output is not None or live
    if not shows and (dark or title is not None):
        option = "--dark" if dark else "--title"
        raise click.UsageError(f"{option} belongs to a picture: -o lecture.html or .pdf")
    if shows and (as_json or is_given("format")):
        picture = "-o writes a picture" if output else "--watch shows a page"
        printed = "--json" if as_json else "--format"
        raise click.UsageError(f"{picture} and {printed} prints: give one of them")
    if shows and settings["schemes"]:
        raise click.UsageError("--scheme is for the printed table: leave it out, or -o and --watch")
    found = compare(graph, **settings)
    if not shows:
        if as_json:
            echo_json(found.to_dict())
        else:
            click.echo(str(found) if format == "text" else found.to_table(format))
        return None
    file = file_of(graph)
    title = file.name if title is None and file is not None else title
    if output is not None:
        from cgprimer.visualization.pages.comparison.comparison_slides import save_comparison

        written = save_comparison(found, Path(output), dark=dark, title=title)
        note(f"wrote {' and '.join(map(str, written))}")
    if not live:
        return None
    from cgprimer.visualization.pages.comparison.comparison_page import comparison_page

    return comparison_page(found, dark=dark, title=title)
