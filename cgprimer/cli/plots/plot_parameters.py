"""``cgprimer plot parameters``."""

from __future__ import annotations

from typing import Any

import click

from cgprimer import plot
from cgprimer.cli.common import make_command
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import NAMES
from cgprimer.cli.plots.plot_files import write_plot
from cgprimer.cli.shared_options import dark_option, plot_output_option, plot_title_option


@make_command()
@option(
    "--names",
    **NAMES,
    help="Parameters or array elements to plot, such as W or W[0,1] (default: all).",
)
@option("--final", is_flag=True, help="Plot the final values side by side instead of curves.")
@option(
    "--by",
    type=click.Choice(["auto", "step", "epoch"]),
    default="auto",
    help="Horizontal axis; auto selects epochs if every run has at least five.",
)
@option("--log-steps", is_flag=True, help="Use a logarithmic horizontal axis.")
@dark_option
@plot_title_option
@plot_output_option
@click.argument("runs", nargs=-1, required=True, type=click.Path(), metavar="RUN...")
def command(runs: tuple[str, ...], output: str, **arguments: Any) -> None:
    """Plot the parameters of one or several runs over time, with their true values.

    \b
    Examples:
      cgprimer train lecture --save adam.json
      cgprimer train lecture --optimizer sgd --learning-rate 1e-4 --save sgd.json
      cgprimer plot parameters adam.json sgd.json -o parameters.png
      cgprimer plot parameters adam.json --names cd,ac --log-steps -o two.svg --dark
      cgprimer plot parameters adam.json sgd.json --final -o learned.pdf
    """
    write_plot(plot.parameters, output, *runs, **arguments)
