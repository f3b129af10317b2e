"""``cgprimer plot variance``."""

from __future__ import annotations

from typing import Any

import click

from cgprimer import plot
from cgprimer.cli.common import graph_command
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import (
    read_assignments,
    read_positive_integers,
    replace_invalid_characters,
)
from cgprimer.cli.plots.plot_files import write_plot
from cgprimer.cli.shared_options import dark_option
from cgprimer.expressions import ExpressionGraph


@graph_command()
@option(
    "--data",
    metavar="PATH",
    type=click.Path(),
    help="Data file (default: 10,000 generated samples).",
)
@option(
    "--at",
    metavar="NAME=VALUE,...",
    multiple=True,
    callback=read_assignments,
    help="Values of parameters (default: initial values of a training run with the same seed).",
)
@option(
    "--sizes",
    metavar="N,...",
    multiple=True,
    callback=read_positive_integers,
    help="Mini-batch sizes (default: powers of 2 up to 1024).",
)
@option(
    "--batches", metavar="N", type=int, default=400, help="Number of mini-batches of each size."
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
    """Plot the variance of a mini-batch gradient against the batch size, with the line 1/B.

    \b
    Examples:
      cgprimer plot variance lecture -o variance.png
      cgprimer plot variance saturation --at b1=200,b2=1 --sizes 1,10,100 -o variance.svg --dark
    """
    write_plot(plot.variance, output, graph, **arguments)
