"""``cgprimer compare``: all methods side by side."""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from cgprimer.analysis.tables import FORMATS
from cgprimer.cli.common import (
    at_option,
    echo_json,
    engine_option,
    graph_arguments,
    json_option,
    make_command,
    names_option,
    note,
    read_graph,
)
from cgprimer.core.methods import methods as all_methods


@make_command(name="compare")
@graph_arguments
@at_option
@click.option(
    "--of", metavar="NAME", help="The variable to differentiate (default: the only output)."
)
@names_option("--wrt", "With respect to which names (default: all parameters).")
@click.option(
    "--method",
    "methods",
    multiple=True,
    type=click.Choice(all_methods()),
    help="Only these methods; may be repeated.",
)
@click.option(
    "--format",
    "style",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="How the table is written.",
)
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    type=click.Path(),
    help="A page (.html) or slides (.pdf, .png, .svg) instead of the printed table.",
)
@click.option("--dark", is_flag=True, help="With -o: for dark slides.")
@click.option(
    "--title", default="", metavar="TEXT", help="With -o: the heading (default: FILE's name)."
)
@engine_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    file: str | None,
    expression: str | None,
    at: dict[str, float],
    of: str | None,
    wrt: tuple[str, ...],
    methods: tuple[str, ...],
    style: str,
    output: str | None,
    dark: bool,
    title: str,
    engine: str,
    as_json: bool,
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

    path = None if output is None else Path(output)
    _check_output(ctx, path, dark=dark, title=title, as_json=as_json)
    graph = read_graph(file, expression)
    found = compare(graph, at, of=of, wrt=wrt or None, methods=methods, engine=engine)
    if path is not None:
        from cgprimer.pages.comparison.output import save_comparison

        named = Path(file).name if file and file != "-" else ""
        written = save_comparison(found, path, dark=dark, title=title or named)
        note(f"wrote {' and '.join(map(str, written))}")
    elif as_json:
        echo_json(found.to_dict())
    else:
        click.echo(str(found) if style == "text" else found.to_table(style))


def _check_output(
    ctx: click.Context, path: Path | None, *, dark: bool, title: str, as_json: bool
) -> None:
    """Find out before the work whether the options fit together and the file can be written."""
    if path is None:
        if dark or title:
            option = "--dark" if dark else "--title"
            raise click.UsageError(f"{option} belongs to a picture: -o lecture.html or .pdf")
        return
    from cgprimer.pages.comparison.output import check_comparison_path

    printed = "--json" if as_json else "--format"
    if as_json or ctx.get_parameter_source("style") is not ParameterSource.DEFAULT:
        raise click.UsageError(f"-o writes a picture and {printed} prints: give one of them")
    check_comparison_path(path)
