"""``cgprimer plot surface``."""

from __future__ import annotations

from typing import Any

from cgprimer import plot
from cgprimer.cli.common import graph_command
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import (
    ASSIGNMENTS,
    INTEGER,
    NAMES,
    PATH,
    RANGES,
)
from cgprimer.cli.plots.plot_files import write_plot
from cgprimer.cli.shared_options import dark_option, plot_output_option, plot_title_option
from cgprimer.expressions import ExpressionGraph


@graph_command()
@option(
    "--over",
    **NAMES,
    help="Two parameters or array elements to plot, such as W[0,1] (default: the first two).",
)
@option("--data", **PATH, help="Data file (default: 200 generated samples).")
@option("--3d", "in_3d", is_flag=True, help="Draw a surface in 3-D instead of contours.")
@option(
    "--gradient",
    **INTEGER,
    default=0,
    help="Number of arrows in the direction of steepest descent.",
)
@option(
    "--range",
    "ranges",
    **RANGES,
    help="Plotted range of a parameter; repeat for the second one (default: 3 on either side of"
    " the minimum).",
)
@option("--at", **ASSIGNMENTS, help="Values of parameters (default: declared values).")
@option(
    "--start",
    **ASSIGNMENTS,
    help="Start of the paths, such as k=0,b=0 (default: near the lower left corner).",
)
@option(
    "--optimizers",
    **NAMES,
    help="Optimizers whose paths are drawn, or 'none' (default: sgd,momentum,adam).",
)
@option(
    "--rates",
    **ASSIGNMENTS,
    help="Learning rates of optimizers, such as sgd=0.1 (default: based on the initial gradient).",
)
@option("--steps", **INTEGER, default=200, help="Number of steps of each optimizer.")
@option(
    "--loss",
    metavar="NAME|TEXT",
    help="Loss name, an expression in 'out' and 'target', or 'output' (default: squared-error,"
    " or 'output' for a graph without inputs).",
)
@option("--seed", **INTEGER, default=0, help="Random seed.")
@dark_option
@plot_title_option
@plot_output_option
def command(graph: ExpressionGraph, output: str, **arguments: Any) -> None:
    """Plot the mean loss, or a function, over two parameters, with the paths of optimizers.

    \b
    Examples:
      cgprimer plot surface lecture --over ab,cd -o surface.png
      cgprimer plot surface paraboloid --over x,y --gradient 3 -o bowl.png
      cgprimer plot surface lecture --over ab,cd --3d -o surface3d.png
      cgprimer plot surface lecture --over ab,cd --gradient 3 --optimizers sgd -o arrows.png
      cgprimer plot surface -e "xw = k*xa + b; parameter k=3, b=-1" --rates sgd=0.3 -o a.svg

    Other parameters keep their declared values or the values of --at. Each step uses all samples.
    """
    write_plot(plot.surface, output, graph, **arguments)
