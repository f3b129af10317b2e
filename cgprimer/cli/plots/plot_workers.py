"""``cgprimer plot workers``."""

from __future__ import annotations

from typing import Any

import click

from cgprimer import plot
from cgprimer.cli.common import make_command
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import NUMBER, PATH
from cgprimer.cli.plots.plot_files import write_plot
from cgprimer.cli.shared_options import dark_option, plot_title_option


@make_command()
@option(
    "--show",
    type=click.Choice(["auto", "timeline", "loss", "staleness"]),
    default="auto",
    help="Contents of the plot; auto selects the timeline of one run or the losses of"
    " several runs.",
)
@option("--until", **NUMBER, help="End of the timeline, in seconds.")
@dark_option
@plot_title_option
@option("-o", "--output", **PATH, required=True, help="Output file: .png, .svg, .pdf or .html.")
@click.argument("runs", nargs=-1, required=True, type=click.Path(), metavar="RUN...")
def command(runs: tuple[str, ...], output: str, **arguments: Any) -> None:
    """Plot the timeline, the losses or the staleness of training with multiple workers.

    \b
    Examples:
      cgprimer train lecture --workers 4 --simulate --save sync.json
      cgprimer train lecture --workers 4 --simulate --protocol async --save async.json
      cgprimer plot workers sync.json -o timeline.png
      cgprimer plot workers sync.json async.json -o losses.svg --dark
      cgprimer plot workers async.json --show staleness -o staleness.png
    """

    from cgprimer.visualization.pages.rounds.rounds_page import rounds_page

    write_plot(plot.workers, output, *runs, creators={"html": rounds_page}, **arguments)
