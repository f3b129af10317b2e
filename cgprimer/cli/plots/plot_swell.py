"""``cgprimer plot swell``."""

from __future__ import annotations

from typing import Any

import click

from cgprimer import plot
from cgprimer.cli.common import make_command
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import read_positive_integers, replace_invalid_characters
from cgprimer.cli.plots.plot_files import write_plot
from cgprimer.cli.shared_options import dark_option


@make_command()
@option(
    "--family",
    type=click.Choice(["product", "logistic", "softmax"]),
    default="product",
    help="Function that is nested in itself.",
)
@option(
    "--depths",
    metavar="N,...",
    multiple=True,
    callback=read_positive_integers,
    help="Depths of nesting to plot (default: 1 to 10, or 1 to 5 for softmax).",
)
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
    """Plot the size of symbolic derivatives against the depth of nested functions.

    \b
    Examples:
      cgprimer plot swell -o swell.png
      cgprimer plot swell --family softmax --depths 1,2,3,4 -o softmax.svg --dark
    """
    write_plot(plot.swell, output, **arguments)
