"""``cgprimer plot batches``."""

from __future__ import annotations

from typing import Any

import click

from cgprimer import plot
from cgprimer.cli.common import graph_command
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import (
    read_assignments,
    read_names,
    read_ranges,
    replace_invalid_characters,
)
from cgprimer.cli.plots.plot_files import write_plot
from cgprimer.cli.shared_options import dark_option
from cgprimer.expressions import ExpressionGraph


@graph_command()
@option(
    "--over",
    metavar="NAME,...",
    multiple=True,
    callback=read_names,
    help="Two parameters to plot, such as k,b (default: the first two).",
)
@option(
    "--data",
    metavar="PATH",
    type=click.Path(),
    help="Data file; only its first samples are used (default: generated data).",
)
@option("--batch-size", metavar="N", type=int, default=4, help="Mini-batch size.")
@option("--batches", metavar="N", type=int, default=3, help="Number of mini-batches, at most 5.")
@option("--epochs", metavar="N", type=int, default=2, help="Number of epochs.")
@option(
    "--rate",
    metavar="NUMBER",
    type=float,
    help="Learning rate (default: small enough to keep the path inside the plot).",
)
@option(
    "--range",
    "ranges",
    metavar="LOW:HIGH",
    multiple=True,
    callback=read_ranges,
    help="Plotted range of a parameter; repeat for the second one (default: 3 on either side of"
    " each value).",
)
@option(
    "--at",
    metavar="NAME=VALUE,...",
    multiple=True,
    callback=read_assignments,
    help="Values of parameters (default: declared values).",
)
@option(
    "--start",
    metavar="NAME=VALUE,...",
    multiple=True,
    callback=read_assignments,
    help="Start of the path, such as k=0,b=0 (default: near the lower left corner).",
)
@option(
    "--noise",
    metavar="NUMBER",
    type=float,
    default=0.5,
    help="Standard deviation of the noise in generated targets.",
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
    """Plot the loss surface of each mini-batch, and the path of SGD on each surface.

    \b
    Examples:
      cgprimer plot batches -e "xw = k*xa + b; parameter k=3, b=-1" -o batches.png
      cgprimer plot batches lecture --over ab,cd --batch-size 2 --noise 5 -o lecture.svg --dark
    """
    write_plot(plot.batches, output, graph, **arguments)
