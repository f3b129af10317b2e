"""``cgprimer plot activations``."""

from __future__ import annotations

from typing import Any

import click

from cgprimer import plot
from cgprimer.cli.common import make_command
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import replace_invalid_characters
from cgprimer.cli.plots.plot_files import write_plot
from cgprimer.cli.shared_options import dark_option


@make_command()
@option("--depth", metavar="N", type=int, default=8, help="Number of hidden layers, at most 20.")
@option(
    "--width",
    metavar="N",
    type=int,
    default=32,
    help="Number of units per hidden layer, at most 256.",
)
@option(
    "--activation",
    metavar="TEXT",
    default="tanh",
    callback=replace_invalid_characters,
    help="Activation function of the hidden units.",
)
@option(
    "--std",
    metavar="NUMBER",
    type=float,
    default=0.1,
    help="Standard deviation of the initial weights.",
)
@option("--epochs", metavar="N", type=int, default=20, help="Number of epochs.")
@option("--rate", metavar="NUMBER", type=float, default=0.05, help="Learning rate.")
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
def command(output: str, **arguments: Any) -> None:
    """Plot the distributions of activations by layer, with and without batch normalization.

    \b
    Examples:
      cgprimer plot activations -o activations.png
      cgprimer plot activations --activation relu --std 0.25 --depth 10 -o relu.svg --dark
    """
    write_plot(plot.activations, output, **arguments)
