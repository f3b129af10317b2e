"""``cgprimer plot batches``."""

from __future__ import annotations

from typing import Any

from cgprimer import plot
from cgprimer.cli.common import graph_command
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import (
    ASSIGNMENTS,
    INTEGER,
    NAMES,
    NUMBER,
    PATH,
    RANGES,
)
from cgprimer.cli.plots.plot_files import write_plot
from cgprimer.cli.shared_options import dark_option, plot_output_option, plot_title_option
from cgprimer.expressions import ExpressionGraph


@graph_command()
@option("--over", **NAMES, help="Two parameters to plot, such as k,b (default: the first two).")
@option(
    "--data", **PATH, help="Data file; only its first samples are used (default: generated data)."
)
@option("--batch-size", **INTEGER, default=4, help="Mini-batch size.")
@option("--batches", **INTEGER, default=3, help="Number of mini-batches, at most 5.")
@option("--epochs", **INTEGER, default=2, help="Number of epochs.")
@option(
    "--rate",
    **NUMBER,
    help="Learning rate (default: small enough to keep the path inside the plot).",
)
@option(
    "--range",
    "ranges",
    **RANGES,
    help="Plotted range of a parameter; repeat for the second one (default: 3 on either side of"
    " each value).",
)
@option("--at", **ASSIGNMENTS, help="Values of parameters (default: declared values).")
@option(
    "--start",
    **ASSIGNMENTS,
    help="Start of the path, such as k=0,b=0 (default: near the lower left corner).",
)
@option(
    "--noise", **NUMBER, default=0.5, help="Standard deviation of the noise in generated targets."
)
@option(
    "--loss",
    metavar="NAME|TEXT",
    default="squared-error",
    help="Loss name, or an expression in out and target.",
)
@option("--seed", **INTEGER, default=0, help="Random seed.")
@dark_option
@plot_title_option
@plot_output_option
def command(graph: ExpressionGraph, output: str, **arguments: Any) -> None:
    """Plot the loss surface of each mini-batch, and the path of SGD on each surface.

    \b
    Examples:
      cgprimer plot batches -e "xw = k*xa + b; parameter k=3, b=-1" -o batches.png
      cgprimer plot batches lecture --over ab,cd --batch-size 2 --noise 5 -o lecture.svg --dark
    """
    write_plot(plot.batches, output, graph, **arguments)
