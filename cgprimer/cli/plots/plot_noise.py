"""``cgprimer plot noise``."""

from __future__ import annotations

from typing import Any

from cgprimer import plot
from cgprimer.cli.common import graph_command
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import (
    ASSIGNMENTS,
    INTEGER,
    NUMBER,
    PATH,
    POSITIVE_INTEGERS,
    RANGES,
    TEXT,
)
from cgprimer.cli.plots.plot_files import write_plot
from cgprimer.cli.shared_options import dark_option, plot_output_option, plot_title_option
from cgprimer.expressions import ExpressionGraph


@graph_command()
@option("--data", **PATH, help="Data file (default: 100 generated samples).")
@option("--over", **TEXT, help="Parameter to plot (default: the only parameter).")
@option("--start", **ASSIGNMENTS, help="Initial value of the parameter (required).")
@option(
    "--batch-sizes",
    **POSITIVE_INTEGERS,
    help="One to three mini-batch sizes, with one panel each (default: 1,4).",
)
@option(
    "--rate",
    **NUMBER,
    help="Learning rate (default: 0.5 divided by the maximum curvature near the start).",
)
@option("--steps", **INTEGER, default=300, help="Number of steps of each run.")
@option(
    "--seeds", **INTEGER, default=20, help="Number of runs per batch size, each with its own seed."
)
@option("--range", "ranges", **RANGES, help="Plotted range of the parameter.")
@option("--at", **ASSIGNMENTS, help="Values of parameters (default: declared values).")
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
    """Plot the paths of full-batch and mini-batch gradient descent near a local minimum.

    \b
    Examples:
      cgprimer plot noise -e "y = sin(k*x); parameter k=6" --start k=-1.8 --rate 1.6 -o noise.png
      cgprimer plot noise lecture --over cd --start cd=-5 --batch-sizes 1,8 -o noise.svg --dark
    """
    write_plot(plot.noise, output, graph, **arguments)
