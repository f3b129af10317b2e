"""``cgprimer plot gradients``."""

from __future__ import annotations

from typing import Any

import click

from cgprimer import plot
from cgprimer.cli.common import graph_command
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import read_assignments, replace_invalid_characters
from cgprimer.cli.plots.plot_files import write_plot
from cgprimer.cli.shared_options import dark_option
from cgprimer.expressions import ExpressionGraph


@graph_command()
@option(
    "--at",
    metavar="NAME=VALUE,...",
    multiple=True,
    callback=read_assignments,
    help="Values of inputs and parameters, or a saved run (default: declared values).",
)
@option("--of", metavar="NAME", help="Variable to differentiate (default: the only output).")
@option(
    "--loss",
    metavar="NAME|TEXT",
    help="Loss to differentiate instead of the output; --at target=VALUE sets its target.",
)
@dark_option
@option("--title", metavar="TEXT", callback=replace_invalid_characters, help="Title of the plot.")
@option(
    "-o",
    "--output",
    metavar="PATH",
    type=click.Path(),
    required=True,
    help="Output file: .png, .svg or .pdf.",
)
def command(graph: ExpressionGraph, output: str, **arguments: Any) -> None:
    """Plot the norms of adjoints by depth, which show vanishing and exploding gradients.

    \b
    Examples:
      cgprimer plot gradients mazur -o gradients.png
      cgprimer plot gradients mlp --loss "sum((out - target)^2)" --at "target=[1,0]" -o mlp.svg
    """
    write_plot(plot.gradients, output, graph, **arguments)
