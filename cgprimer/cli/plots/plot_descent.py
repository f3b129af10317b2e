"""``cgprimer plot descent``."""

from __future__ import annotations

from typing import Any

from cgprimer import plot
from cgprimer.cli.common import graph_command
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import (
    ASSIGNMENTS,
    INTEGER,
    NAMES,
    PATH,
)
from cgprimer.cli.plots.plot_files import write_plot
from cgprimer.cli.shared_options import dark_option, plot_output_option, plot_title_option
from cgprimer.expressions import ExpressionGraph


@graph_command()
@option("--data", **PATH, help="Data file (default: 100 generated samples).")
@option("--start", **ASSIGNMENTS, help="Initial values of parameters (default: random values).")
@option(
    "--optimizers", **NAMES, help="Optimizers to compare with Levenberg-Marquardt (default: adam)."
)
@option(
    "--rates",
    **ASSIGNMENTS,
    help="Learning rates of optimizers, such as sgd=0.1 (default: as in cgprimer train).",
)
@option("--steps", **INTEGER, default=10000, help="Number of steps of each optimizer.")
@option("--seed", **INTEGER, default=0, help="Random seed.")
@dark_option
@plot_title_option
@plot_output_option
def command(graph: ExpressionGraph, output: str, **arguments: Any) -> None:
    """Plot the losses of Levenberg-Marquardt and of optimizers from the same start.

    \b
    Examples:
      cgprimer data saturation --samples 20 --low 0 --high 3 --noise 5 -o rise.csv
      cgprimer plot descent saturation --data rise.csv --start b1=500,b2=0.1 -o descent.png
      cgprimer plot descent lecture --optimizers sgd,adam --rates sgd=1e-4 -o lecture.svg --dark
    """
    write_plot(plot.descent, output, graph, **arguments)
