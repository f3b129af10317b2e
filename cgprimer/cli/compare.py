"""``cgprimer compare``: all methods side by side."""

from __future__ import annotations

import click

from cgprimer.cli.common import (
    at_option,
    echo_json,
    engine_option,
    graph_arguments,
    json_option,
    make_command,
    names_option,
    read_graph,
)
from cgprimer.differentiators import methods as all_methods
from cgprimer.teaching.tables import FORMATS


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
@engine_option
@json_option
def command(
    file: str | None,
    expression: str | None,
    at: dict[str, float],
    of: str | None,
    wrt: tuple[str, ...],
    methods: tuple[str, ...],
    style: str,
    engine: str,
    as_json: bool,
) -> None:
    """All methods side by side: each derivative, its error, and what it cost.

    \b
    Examples:
      cgprimer compare examples/lecture.cg
      cgprimer compare examples/lecture.cg --at xa=-0.5 --wrt xa,ab
      cgprimer compare examples/lecture.cg --method forward --method reverse --json

    Errors are relative, against a reference of fifty digits. Passes are runs over the graph
    (for path-sum: paths), operations are counted on the tape for the whole gradient, live
    values are the most that are held at one time, and the time is the least of five runs.
    """
    from cgprimer.teaching.compare import compare

    graph = read_graph(file, expression)
    found = compare(graph, at, of=of, wrt=wrt or None, methods=methods, engine=engine)
    if as_json:
        echo_json(found.to_dict())
    else:
        click.echo(str(found) if style == "text" else found.to_table(style))
