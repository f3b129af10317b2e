"""``cgprimer plot variance``."""

from __future__ import annotations

from typing import Any

from cgprimer import plot
from cgprimer.cli.common import graph_command
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import (
    ASSIGNMENTS,
    INTEGER,
    PATH,
    POSITIVE_INTEGERS,
)
from cgprimer.cli.plots.plot_files import write_plot
from cgprimer.cli.shared_options import dark_option, plot_output_option, plot_title_option
from cgprimer.expressions import ExpressionGraph


@graph_command()
@option("--data", **PATH, help="Data file (default: 10,000 generated samples).")
@option(
    "--at",
    **ASSIGNMENTS,
    help="Values of parameters (default: initial values of a training run with the same seed).",
)
@option("--sizes", **POSITIVE_INTEGERS, help="Mini-batch sizes (default: powers of 2 up to 1024).")
@option("--batches", **INTEGER, default=400, help="Number of mini-batches of each size.")
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
    """Plot the variance of a mini-batch gradient against the batch size, with the line 1/B.

    \b
    Examples:
      cgprimer plot variance lecture -o variance.png
      cgprimer plot variance saturation --at b1=200,b2=1 --sizes 1,10,100 -o variance.svg --dark
    """
    write_plot(plot.variance, output, graph, **arguments)
