"""``cgprimer plot gradients``."""

from __future__ import annotations

from typing import Any

from cgprimer import plot
from cgprimer.cli.common import graph_command
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import ASSIGNMENTS
from cgprimer.cli.plots.plot_files import write_plot
from cgprimer.cli.shared_options import (
    dark_option,
    differentiated_loss_option,
    of_option,
    plot_output_option,
    plot_title_option,
)
from cgprimer.expressions import ExpressionGraph


@graph_command()
@option(
    "--at",
    **ASSIGNMENTS,
    help="Values of inputs and parameters, or a saved run (default: declared values).",
)
@of_option
@differentiated_loss_option
@dark_option
@plot_title_option
@plot_output_option
def command(graph: ExpressionGraph, output: str, **arguments: Any) -> None:
    """Plot the norms of adjoints by depth, which show vanishing and exploding gradients.

    \b
    Examples:
      cgprimer plot gradients mazur -o gradients.png
      cgprimer plot gradients mlp --loss "sum((out - target)^2)" --at "target=[1,0]" -o mlp.svg
    """
    write_plot(plot.gradients, output, graph, **arguments)
