"""``cgprimer plot boundary``."""

from __future__ import annotations

from typing import Any

import click

from cgprimer import plot
from cgprimer.cli.common import make_command
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import PATH, TEXT
from cgprimer.cli.plots.plot_files import write_plot
from cgprimer.cli.shared_options import columns_option, dark_option


@make_command()
@option("--data", **PATH, required=True, help="Data file: .csv, .npz or .parquet.")
@columns_option
@dark_option
@option("--title", **TEXT, help="Title of the plot (default: step, loss and accuracy).")
@option(
    "-o", "--output", **PATH, required=True, help="Output file: .png, .svg, .pdf, .gif or .html."
)
@click.argument("run", type=click.Path())
def command(run: str, output: str, **arguments: Any) -> None:
    """Plot the predictions of a run over the plane of its two inputs, with the samples.

    \b
    Examples:
      cgprimer new mlp 2-4-1 --output sigmoid -o net.cg
      cgprimer data net.cg --classes moons --samples 200 -o moons.csv
      cgprimer train net.cg --data moons.csv --learning-rate 0.05 --save run.json
      cgprimer plot boundary run.json --data moons.csv -o boundary.png
      cgprimer plot boundary run.json --data moons.csv -o boundary.gif --dark
      cgprimer plot boundary run.json --data moons.csv -o boundary.html

    A .gif shows the decision boundary during training; a .html page adds loss and parameters.
    """

    from cgprimer.visualization.pages.learning.learning_page import (
        learning_animation,
        learning_page,
    )

    creators = {"gif": learning_animation, "html": learning_page}
    write_plot(plot.boundary, output, run, creators=creators, **arguments)
