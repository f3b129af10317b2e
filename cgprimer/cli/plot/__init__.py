"""``cgprimer plot``: curves and surfaces, one command, and one file, for each kind."""

from __future__ import annotations

import click

from cgprimer.cli.plot.cost import command as cost
from cgprimer.cli.plot.error import command as error
from cgprimer.cli.plot.function import command as function
from cgprimer.cli.plot.loss import command as loss
from cgprimer.cli.plot.parameters import command as parameters
from cgprimer.cli.plot.surface import command as surface
from cgprimer.cli.plot.swell import command as swell


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Curves for slides: losses, parameters, surfaces, errors, costs, functions.

    \b
    Examples:
      cgprimer plot error -e "xw = sin(xa)" --at xa=1 -o steps.png
      cgprimer plot cost -o cost.svg
      cgprimer plot function -e "xw = tanh(xa)" --tangent 0.5 -o tanh.pdf --dark

    Every kind has its own options: cgprimer plot error --help
    """


for _kind in (error, loss, parameters, cost, swell, surface, function):
    command.add_command(_kind)
