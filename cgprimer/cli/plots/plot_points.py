"""``cgprimer plot points``."""

from __future__ import annotations

from typing import Any

import click

from cgprimer import plot
from cgprimer.cli.common import graph_command
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import read_assignments, read_names, replace_invalid_characters
from cgprimer.cli.plots.plot_files import write_plot
from cgprimer.cli.shared_options import dark_option
from cgprimer.expressions import ExpressionGraph


@graph_command()
@option(
    "--at",
    metavar="NAME=VALUE,...",
    multiple=True,
    callback=read_assignments,
    help="Values of inputs and parameters; at least one must be a range LOW:HIGH:COUNT.",
)
@option("--of", metavar="NAME", help="Variable to differentiate (default: the only output).")
@option(
    "--wrt",
    metavar="NAME,...",
    multiple=True,
    callback=read_names,
    help="Variables to differentiate with respect to (default: those with ranges in --at).",
)
@option(
    "--loss",
    metavar="NAME|TEXT",
    help="Loss to differentiate instead of the output; --at target=VALUE sets its target.",
)
@option(
    "--method",
    metavar="TEXT",
    default="reverse",
    callback=replace_invalid_characters,
    help="Differentiation method.",
)
@dark_option
@option(
    "--title",
    metavar="TEXT",
    callback=replace_invalid_characters,
    help="Title of the plot (default: the formula).",
)
@option(
    "-o",
    "--output",
    metavar="PATH",
    type=click.Path(),
    required=True,
    help="Output file: .png, .svg or .pdf.",
)
def command(graph: ExpressionGraph, output: str, **arguments: Any) -> None:
    """Plot a variable and its derivatives at the points of a range.

    \b
    Examples:
      cgprimer plot points sine_chain --at w=0:6.283:25,b=0:6.283:25 -o chain.png
      cgprimer plot points lecture --at xa=-1:1:21 --wrt ab,cd -o lecture.svg --dark
    """
    write_plot(plot.points, output, graph, **arguments)
