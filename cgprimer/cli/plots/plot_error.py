"""``cgprimer plot error``."""

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
    help="Values of inputs and parameters (default: declared values).",
)
@option("--of", metavar="NAME", help="Variable to differentiate (default: the only output).")
@option(
    "--wrt",
    metavar="NAME",
    help="Variable to differentiate with respect to (default: the only input or parameter).",
)
@option(
    "--loss",
    metavar="NAME|TEXT",
    help="Loss to differentiate instead of the output; --at target=VALUE sets its target.",
)
@option(
    "--scheme",
    "schemes",
    type=click.Choice(["forward", "central", "complex-step"]),
    multiple=True,
    help="Scheme of finite differences to plot; repeatable (default: all).",
)
@dark_option
@option(
    "--title",
    metavar="TEXT",
    callback=replace_invalid_characters,
    help="Title of the plot (default: the derivative).",
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
    """Plot the error of finite differences against the step size.

    \b
    Examples:
      cgprimer plot error -e "xw = sin(xa)" --at xa=1 -o steps.png
      cgprimer plot error lecture --wrt ab -o lecture-error.svg --dark

    The reference derivative has fifty digits. A star marks the best step of each scheme.
    """
    write_plot(plot.error, output, graph, **arguments)
