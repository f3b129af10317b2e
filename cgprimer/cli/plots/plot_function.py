"""``cgprimer plot function``."""

from __future__ import annotations

from typing import Any

from cgprimer import plot
from cgprimer.cli.common import graph_command
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import (
    ASSIGNMENTS,
    INTEGER,
    NUMBER,
    TEXT,
    read_range,
)
from cgprimer.cli.plots.plot_files import write_plot
from cgprimer.cli.shared_options import dark_option, differentiated_loss_option, plot_output_option
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
    **ASSIGNMENTS,
    help="Values of the other inputs and parameters (default: declared values).",
)
@option("--of", metavar="NAME", help="Output to plot (default: the only output).")
@option(
    "--wrt",
    metavar="NAME",
    help="Variable on the horizontal axis (default: the only input or parameter).",
)
@differentiated_loss_option
@option("--order", **INTEGER, default=1, help="Order of the highest derivative, from 0 to 6.")
@option("--tangent", **NUMBER, help="Value of the variable at which to draw the tangent.")
@dark_option
@option("--title", **TEXT, help="Title of the plot (default: the formula).")
@plot_output_option
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
