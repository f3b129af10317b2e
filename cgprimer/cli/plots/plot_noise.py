"""``cgprimer plot noise``."""

from __future__ import annotations

from typing import Any

import click

from cgprimer import plot
from cgprimer.cli.common import graph_command
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import (
    read_assignments,
    read_positive_integers,
    read_ranges,
    replace_invalid_characters,
)
from cgprimer.cli.plots.plot_files import write_plot
from cgprimer.cli.shared_options import dark_option
from cgprimer.expressions import ExpressionGraph


@graph_command()
@option(
    "--data", metavar="PATH", type=click.Path(), help="Data file (default: 100 generated samples)."
)
@option(
    "--over",
    metavar="TEXT",
    callback=replace_invalid_characters,
    help="Parameter to plot (default: the only parameter).",
)
@option(
    "--start",
    metavar="NAME=VALUE,...",
    multiple=True,
    callback=read_assignments,
    help="Initial value of the parameter (required).",
)
@option(
    "--batch-sizes",
    metavar="N,...",
    multiple=True,
    callback=read_positive_integers,
    help="One to three mini-batch sizes, with one panel each (default: 1,4).",
)
@option(
    "--rate",
    metavar="NUMBER",
    type=float,
    help="Learning rate (default: 0.5 divided by the maximum curvature near the start).",
)
@option("--steps", metavar="N", type=int, default=300, help="Number of steps of each run.")
@option(
    "--seeds",
    metavar="N",
    type=int,
    default=20,
    help="Number of runs per batch size, each with its own seed.",
)
@option(
    "--range",
    "ranges",
    metavar="LOW:HIGH",
    multiple=True,
    callback=read_ranges,
    help="Plotted range of the parameter.",
)
@option(
    "--at",
    metavar="NAME=VALUE,...",
    multiple=True,
    callback=read_assignments,
    help="Values of parameters (default: declared values).",
)
@option(
    "--loss",
    metavar="NAME|TEXT",
    default="squared-error",
    help="Loss name, or an expression in out and target.",
)
@option("--seed", metavar="N", type=int, default=0, help="Random seed.")
@dark_option
@option("--title", metavar="TEXT", callback=replace_invalid_characters, help="Title of the plot.")
@option(
    "-o",
    "--output",
    metavar="PATH",
    type=click.Path(),
    required=True,
    help="Output file: .png, .svg or .pdf.",
)
def command(graph: ExpressionGraph, output: str, **arguments: Any) -> None:
    """Plot the paths of full-batch and mini-batch gradient descent near a local minimum.

    \b
    Examples:
      cgprimer plot noise -e "y = sin(k*x); parameter k=6" --start k=-1.8 --rate 1.6 -o noise.png
      cgprimer plot noise lecture --over cd --start cd=-5 --batch-sizes 1,8 -o noise.svg --dark
    """
    write_plot(plot.noise, output, graph, **arguments)
