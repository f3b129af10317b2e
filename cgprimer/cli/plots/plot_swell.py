"""``cgprimer plot swell``."""

from __future__ import annotations

from typing import Any

import click

from cgprimer import plot
from cgprimer.cli.common import make_command
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import (
    POSITIVE_INTEGERS,
)
from cgprimer.cli.plots.plot_files import write_plot
from cgprimer.cli.shared_options import dark_option, plot_output_option, plot_title_option


@make_command()
@option(
    "--family",
    type=click.Choice(["product", "logistic", "softmax"]),
    default="product",
    help="Function that is nested in itself.",
)
@option(
    "--depths",
    **POSITIVE_INTEGERS,
    help="Depths of nesting to plot (default: 1 to 10, or 1 to 5 for softmax).",
)
@dark_option
@plot_title_option
@plot_output_option
def command(output: str, **arguments: Any) -> None:
    """Plot the size of symbolic derivatives against the depth of nested functions.

    \b
    Examples:
      cgprimer plot swell -o swell.png
      cgprimer plot swell --family softmax --depths 1,2,3,4 -o softmax.svg --dark
    """
    write_plot(plot.swell, output, **arguments)
