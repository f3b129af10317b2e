"""``cgprimer plot error``."""

from __future__ import annotations

from typing import Any

import click

from cgprimer import plot
from cgprimer.cli.common import graph_command
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import (
    ASSIGNMENTS,
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
@option("--at", **ASSIGNMENTS, help="Values of inputs and parameters (default: declared values).")
@of_option
@option(
    "--wrt",
    metavar="NAME",
    help="Variable to differentiate with respect to (default: the only input or parameter).",
)
@differentiated_loss_option
@option(
    "--scheme",
    "schemes",
    type=click.Choice(["forward", "central", "complex-step"]),
    multiple=True,
    help="Scheme of finite differences to plot; repeatable (default: all).",
)
@dark_option
@option("--title", **TEXT, help="Title of the plot (default: the derivative).")
@plot_output_option
def command(graph: ExpressionGraph, output: str, **arguments: Any) -> None:
    """Plot the error of finite differences against the step size.

    \b
    Examples:
      cgprimer plot error -e "xw = sin(xa)" --at xa=1 -o steps.png
      cgprimer plot error lecture --wrt ab -o lecture-error.svg --dark

    The reference derivative has fifty digits. A star marks the best step of each scheme.
    """
    write_plot(plot.error, output, graph, **arguments)
