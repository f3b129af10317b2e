"""``cgprimer compare``: compare all differentiation methods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cgprimer.cli.common import echo_json, graph_command, graph_file, note
from cgprimer.cli.file_watching import watch_options
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import TEXT
from cgprimer.cli.shared_options import (
    at_option,
    engine_option,
    is_given,
    json_option,
    of_option,
    wrt_option,
)
from cgprimer.expressions import ExpressionGraph


def _check_output(context: object, parameter: object, path: str | None) -> str | None:
    """Return the path of the output file after checking its format and folder."""
    from cgprimer.visualization.diagrams.figure_files import check_picture_path
    from cgprimer.visualization.pages.comparison.comparison_slides import FORMATS as PICTURES

    if path is not None:
        check_picture_path(Path(path), PICTURES)
    return path


@graph_command(with_loss=True, with_watch=True)
@at_option
@of_option
@wrt_option
@option(
    "--method",
    "methods",
    type=click.Choice(["finite-difference", "symbolic", "forward", "reverse", "path-sum"]),
    multiple=True,
    help="Differentiation method to compare; repeatable (default: all methods).",
)
@option(
    "--scheme",
    "schemes",
    type=click.Choice(["central", "forward", "complex-step"]),
    multiple=True,
    help="Scheme of finite differences to compare; repeatable (default: central).",
)
@option(
    "--format",
    type=click.Choice(["text", "markdown", "latex", "csv"]),
    default="text",
    help="Format of the table.",
)
@option(
    "-o",
    "--output",
    metavar="PATH",
    type=click.Path(),
    callback=_check_output,
    help="Output file: a page (.html) or slides (.pdf, .png, .svg).",
)
@option("--dark", is_flag=True, help="Use a dark color theme; requires -o.")
@option("--title", **TEXT, help="Title, or '' for none (default: name of FILE); requires -o.")
@engine_option
@json_option
@watch_options
def command(
    graph: ExpressionGraph,
    format: str,
    output: str | None,
    as_json: bool,
    live: bool,
    **settings: Any,
) -> str | None:
    """Compare derivatives, errors and costs of all differentiation methods.

    \b
    Examples:
      cgprimer compare lecture
      cgprimer compare lecture --at xa=-0.5 --wrt xa,ab
      cgprimer compare lecture --method forward --method reverse --json
      cgprimer compare lecture --scheme forward --scheme central
      cgprimer compare lecture -o lecture.html
      cgprimer compare mazur -o mazur.pdf --dark

    Errors are relative to a reference with fifty digits. Passes are evaluations of the graph (for
    path-sum: paths), operations are the instructions of the tape for the complete gradient, live
    values are the maximum number of values in memory, and the time is the minimum of five runs.

    With -o, the results are shown next to the graph: on a page that works offline, or on slides;
    the second slide is written to a second .png or .svg file, such as lecture-2.png. With --watch,
    a browser shows the page and updates it when FILE changes; -o then also writes it each time.
    """
    from cgprimer.analysis.comparison import compare

    dark, title = settings.pop("dark"), settings.pop("title")
    shows = output is not None or live
    if not shows and (dark or title is not None):
        option = "--dark" if dark else "--title"
        raise click.UsageError(f"{option} requires -o, such as -o lecture.html")
    if shows and (as_json or is_given("format")):
        target = "-o" if output else "--watch"
        printed = "--json" if as_json else "--format"
        raise click.UsageError(f"{printed} cannot be used with {target}")
    if shows and settings["schemes"]:
        raise click.UsageError("--scheme cannot be used with -o or --watch")
    comparison = compare(graph, **settings)
    if not shows:
        if as_json:
            echo_json(comparison.to_dict())
        else:
            click.echo(str(comparison) if format == "text" else comparison.to_table(format))
        return None
    file = graph_file(graph)
    title = file.name if title is None and file is not None else title
    if output is not None:
        from cgprimer.visualization.pages.comparison.comparison_slides import save_comparison

        written = save_comparison(comparison, Path(output), dark=dark, title=title)
        note(f"wrote {' and '.join(map(str, written))}")
    if not live:
        return None
    from cgprimer.visualization.pages.comparison.comparison_page import comparison_page

    return comparison_page(comparison, dark=dark, title=title)
