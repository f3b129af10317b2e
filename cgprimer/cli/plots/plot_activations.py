"""``cgprimer plot activations``."""

from __future__ import annotations

from typing import Any

from cgprimer import plot
from cgprimer.cli.common import make_command
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import INTEGER, NUMBER, TEXT
from cgprimer.cli.plots.plot_files import write_plot
from cgprimer.cli.shared_options import dark_option, plot_output_option, plot_title_option


@make_command()
@option("--depth", **INTEGER, default=8, help="Number of hidden layers, at most 20.")
@option("--width", **INTEGER, default=32, help="Number of units per hidden layer, at most 256.")
@option("--activation", **TEXT, default="tanh", help="Activation function of the hidden units.")
@option("--std", **NUMBER, default=0.1, help="Standard deviation of the initial weights.")
@option("--epochs", **INTEGER, default=20, help="Number of epochs.")
@option("--rate", **NUMBER, default=0.05, help="Learning rate.")
@option("--seed", **INTEGER, default=0, help="Random seed.")
@dark_option
@plot_title_option
@plot_output_option
def command(output: str, **arguments: Any) -> None:
    """Plot the distributions of activations by layer, with and without batch normalization.

    \b
    Examples:
      cgprimer plot activations -o activations.png
      cgprimer plot activations --activation relu --std 0.25 --depth 10 -o relu.svg --dark
    """
    write_plot(plot.activations, output, **arguments)
