"""``cgprimer plot function``."""

from __future__ import annotations

from typing import Any

import click

from cgprimer import plot
from cgprimer.cli.common import graph_command
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import read_assignments, read_range, replace_invalid_characters
from cgprimer.cli.plots.plot_files import write_plot
from cgprimer.cli.shared_options import dark_option
from cgprimer.expressions import ExpressionGraph


@graph_command()
@option(
    "--range",
    "low",
    metavar="LOW:HIGH",
    callback=read_range,
    help="Plotted range of the variable (default: -3:3, or around --tangent).",
)
@option(
    "--at",
    metavar="NAME=VALUE,...",
    multiple=True,
    callback=read_assignments,
    help="Values of the other inputs and parameters (default: declared values).",
)
@option("--of", metavar="NAME", help="Output to plot (default: the only output).")
@option(
    "--wrt",
    metavar="NAME",
    help="Variable on the horizontal axis (default: the only input or parameter).",
)
@option(
    "--loss",
    metavar="NAME|TEXT",
    help="Loss to differentiate instead of the output; --at target=VALUE sets its target.",
)
@option(
    "--order",
    metavar="N",
    type=int,
    default=1,
    help="Order of the highest derivative, from 0 to 6.",
)
@option(
    "--tangent",
    metavar="NUMBER",
    type=float,
    help="Value of the variable at which to draw the tangent.",
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
    """Plot a function of one variable, its derivatives, and the tangent at a point.

    \b
    Examples:
      cgprimer plot function -e "xw = tanh(xa)" --tangent 0.5 -o tanh.png
      cgprimer plot function -e "xw = sin(xa)" --order 3 --range -6:6 -o sine.svg
      cgprimer plot function lecture --range 0:1 -o lecture-function.pdf --dark
    """
    if (bounds := arguments.pop("low")) is not None:
        arguments["low"], arguments["high"] = bounds
    write_plot(plot.function, output, graph, **arguments)
