"""``cgprimer plot loss``."""

from __future__ import annotations

from typing import Any

import click

from cgprimer import plot
from cgprimer.cli.common import make_command
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import INTEGER
from cgprimer.cli.plots.plot_files import write_plot
from cgprimer.cli.shared_options import dark_option, plot_output_option, plot_title_option


@make_command()
@option(
    "--by",
    type=click.Choice(["auto", "step", "epoch"]),
    default="auto",
    help="Horizontal axis; auto selects epochs if every run has at least five.",
)
@option(
    "--smooth",
    **INTEGER,
    help="Window of the moving average, in losses (default: 1, or 1 % of more than 500 losses).",
)
@option(
    "--log",
    type=click.Choice(["auto", "none", "x", "y", "both"]),
    default="auto",
    help="Logarithmic axes; auto selects the loss axis if no loss is negative.",
)
@option("--validation/--no-validation", default=True, help="Plot validation losses.")
@dark_option
@plot_title_option
@plot_output_option
@click.argument("runs", nargs=-1, required=True, type=click.Path(), metavar="RUN...")
def command(runs: tuple[str, ...], output: str, **arguments: Any) -> None:
    """Plot the training and validation losses of one or several runs.

    \b
    Examples:
      cgprimer train lecture --validation 0.2 --save adam.json
      cgprimer train lecture --optimizer sgd --learning-rate 1e-4 --save sgd.json
      cgprimer plot loss adam.json sgd.json -o loss.png
      cgprimer plot loss adam.json --by step --smooth 50 --log both -o steps.svg

    A star marks the epoch with the lowest validation loss.
    """
    write_plot(plot.loss, output, *runs, **arguments)
