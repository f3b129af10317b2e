"""``cgprimer trace``: an evaluation step by step."""

from __future__ import annotations

from typing import Any

import click

from cgprimer.analysis.text_tables import FORMATS
from cgprimer.analysis.trace import LEVELS, trace
from cgprimer.cli.common import echo_json, graph_command
from cgprimer.cli.options import AT, JSON, method_lines, own_options
from cgprimer.expressions import ExpressionGraph


@graph_command(
    AT,
    "--of NAME  The variable to evaluate (default: the only output).",
    "--wrt NAME  Variable to seed: selects forward mode (default there: the only input).",
    method_lines(),
    f"--level {'|'.join(LEVELS)} =operations  A row per operation, or per variable.",
    f"--format {'|'.join(FORMATS)} =text  How the table is written.",
    JSON,
    with_loss=True,
)
def command(
    graph: ExpressionGraph, method: str | None, format: str, as_json: bool, **settings: Any
) -> None:
    """The evaluation step by step, as in a textbook: values with tangents or adjoints.

    \b
    Examples:
      cgprimer trace lecture --method forward --wrt xa
      cgprimer trace lecture --method path-sum --wrt xa
      cgprimer trace baydin --wrt x1 --format latex
      cgprimer trace lecture --level variables --format markdown

    Reverse mode, the default, gives the adjoint of every value, to be read from the last row up.
    Forward mode gives tangents with respect to --wrt, which alone selects it. The other methods
    show their own steps: evaluations and quotients, the derivative formula of each variable, or
    the paths and the products of the partials along them.
    """
    options = own_options(method, settings)
    found = trace(graph, method=method, **settings, **options)
    if as_json:
        echo_json(found.to_dict())
    else:
        click.echo(found.to_table(format))
