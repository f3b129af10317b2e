"""``cgprimer plot cost``."""

from __future__ import annotations

from typing import Any

import click

from cgprimer import plot
from cgprimer.cli.common import make_command
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import (
    NAMES,
    NUMBER,
    POSITIVE_INTEGERS,
)
from cgprimer.cli.plots.plot_files import write_plot
from cgprimer.cli.shared_options import dark_option, plot_output_option, plot_title_option


@make_command()
@option(
    "--family",
    type=click.Choice(["network", "neuron", "sum"]),
    default="network",
    help="Family of functions: network with one hidden layer, single neuron, or sum of sines.",
)
@option(
    "--sizes",
    **POSITIVE_INTEGERS,
    help="Numbers of hidden units, inputs or terms to compare (default: powers of 2 up to 128).",
)
@option(
    "--methods",
    **NAMES,
    help="Differentiation methods to compare (default: all; symbolic only up to 256 parameters).",
)
@option("--time", "timed", is_flag=True, help="Plot the time per sample next to the operations.")
@option(
    "--bound",
    **NUMBER,
    default=5.0,
    help="Upper end of the shaded band, as a multiple of the cost of the function.",
)
@dark_option
@plot_title_option
@plot_output_option
def command(output: str, **arguments: Any) -> None:
    """Plot the operations per gradient against the number of parameters, for each method.

    \b
    Examples:
      cgprimer plot cost -o cost.png
      cgprimer plot cost --family sum --sizes 1,10,100 --methods forward,reverse -o sum.svg
      cgprimer plot cost --family neuron --sizes 1,4,16 --time --bound 3 -o neuron.pdf

    The shaded band reaches from the cost of the function to --bound times that cost.
    """
    write_plot(plot.cost, output, **arguments)
