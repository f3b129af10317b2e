"""``cgprimer trace``: an evaluation step by step."""

from __future__ import annotations

from typing import Any

import click

from cgprimer.analysis.trace import trace
from cgprimer.cli.common import echo_json, graph_command
from cgprimer.cli.grouped_help import option
from cgprimer.cli.shared_options import at_option, json_option, method_options, take_method_options
from cgprimer.expressions import ExpressionGraph


@graph_command(with_loss=True)
@at_option
@option("--of", metavar="NAME", help="Variable to evaluate (default: the only output).")
@option(
    "--wrt",
    metavar="NAME",
    help="Variable to differentiate with respect to in forward mode (default: the only input).",
)
@method_options()
@option(
    "--level",
    type=click.Choice(["operations", "variables"]),
    default="operations",
    help="Level of detail: operations or variables.",
)
@option(
    "--format",
    type=click.Choice(["text", "markdown", "latex", "csv"]),
    default="text",
    help="Format of the table.",
)
@json_option
def command(
    graph: ExpressionGraph, method: str | None, format: str, as_json: bool, **settings: Any
) -> None:
    """Print the evaluation of a graph step by step, with tangents or adjoints.

    \b
    Examples:
      cgprimer trace lecture --method forward --wrt xa
      cgprimer trace lecture --method path-sum --wrt xa
      cgprimer trace baydin --wrt x1 --format latex
      cgprimer trace lecture --level variables --format markdown

    Reverse mode, the default, prints the adjoint of each value; read its rows from last to first.
    Forward mode prints tangents with respect to --wrt, and is the default with --wrt. The other
    methods print evaluations and difference quotients, the derivative formula of each variable, or
    the paths with the products of their partial derivatives.
    """
    options = take_method_options(method, settings)
    result = trace(graph, method=method, **settings, **options)
    if as_json:
        echo_json(result.to_dict())
    else:
        click.echo(result.to_table(format))
