"""``cgprimer plot points``."""

from __future__ import annotations

from typing import Any

from cgprimer import plot
from cgprimer.cli.common import graph_command
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import (
    ASSIGNMENTS,
    NAMES,
    TEXT,
)
from cgprimer.cli.plots.plot_files import write_plot
from cgprimer.cli.shared_options import (
    dark_option,
    differentiated_loss_option,
    of_option,
    plot_output_option,
)
from cgprimer.expressions import ExpressionGraph


@graph_command()
@option(
    "--at",
    **ASSIGNMENTS,
    help="Values of inputs and parameters; at least one must be a range LOW:HIGH:COUNT.",
)
@of_option
@option(
    "--wrt",
    **NAMES,
    help="Variables to differentiate with respect to (default: those with ranges in --at).",
)
@differentiated_loss_option
@option("--method", **TEXT, default="reverse", help="Differentiation method.")
@dark_option
@option("--title", **TEXT, help="Title of the plot (default: the formula).")
@plot_output_option
def command(graph: ExpressionGraph, output: str, **arguments: Any) -> None:
    """Plot a variable and its derivatives at the points of a range.

    \b
    Examples:
      cgprimer plot points sine_chain --at w=0:6.283:25,b=0:6.283:25 -o chain.png
      cgprimer plot points lecture --at xa=-1:1:21 --wrt ab,cd -o lecture.svg --dark
    """
    write_plot(plot.points, output, graph, **arguments)
