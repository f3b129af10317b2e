"""``cgprimer trace``: an evaluation step by step."""

from __future__ import annotations

from typing import Any

import click

from cgprimer.analysis.tables import FORMATS
from cgprimer.analysis.trace import LEVELS, trace
from cgprimer.cli.common import (
    at_option,
    echo_json,
    graph_arguments,
    json_option,
    make_command,
    method_options,
    own_options,
    read_graph,
)


@make_command(name="trace")
@graph_arguments
@at_option
@click.option("--of", metavar="NAME", help="The variable to evaluate (default: the only output).")
@click.option("--wrt", metavar="NAME", help="The variable to seed (default: the only input).")
@method_options("forward")
@click.option(
    "--level",
    type=click.Choice(LEVELS),
    default="operations",
    show_default=True,
    help="A row per operation, or per variable.",
)
@click.option(
    "--format",
    "style",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="How the table is written.",
)
@json_option
def command(
    file: str | None,
    expression: str | None,
    at: dict[str, float],
    of: str | None,
    wrt: str | None,
    method: str,
    level: str,
    style: str,
    as_json: bool,
    **own: Any,
) -> None:
    """The evaluation step by step, as in a textbook: values with tangents or adjoints.

    \b
    Examples:
      cgprimer trace lecture --method forward --wrt xa
      cgprimer trace lecture --method reverse
      cgprimer trace baydin --wrt x1 --format latex
      cgprimer trace lecture --level variables --format markdown

    Reverse mode gives the adjoint of every value, to be read from the last row up; every other
    method gives tangents with respect to --wrt.
    """
    graph = read_graph(file, expression)
    options = own_options(method, own)
    found = trace(graph, at, of=of, wrt=wrt, method=method, level=level, **options)
    if as_json:
        echo_json(found.to_dict())
    else:
        click.echo(found.to_table(style))
