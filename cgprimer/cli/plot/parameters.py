"""``cgprimer plot parameters``: learnt against true values, over time or in the end."""

from __future__ import annotations

import click

from cgprimer.cli.common import make_command, names_option
from cgprimer.cli.plot.options import by_option, check_output, picture_options, save


@make_command(name="parameters")
@click.argument("runs", nargs=-1, required=True, type=click.Path(), metavar="RUN...")
@names_option("--names", "Only these parameters (default: all; over time the first nine).")
@click.option("--final", is_flag=True, help="What was learnt in the end, side by side, instead.")
@by_option
@click.option("--log-steps", is_flag=True, help="A logarithmic axis of steps or epochs.")
@picture_options
def command(
    runs: tuple[str, ...],
    names: tuple[str, ...],
    final: bool,
    by: str,
    log_steps: bool,
    output: str,
    dark: bool,
    title: str,
) -> None:
    """The parameters of saved runs over time, their true values as dashed levels.

    \b
    Examples:
      cgprimer train lecture --save adam.json
      cgprimer train lecture --optimizer sgd --learning-rate 1e-4 --save sgd.json
      cgprimer plot parameters adam.json sgd.json -o parameters.png
      cgprimer plot parameters adam.json --names cd,ac --log-steps -o two.svg --dark
      cgprimer plot parameters adam.json sgd.json --final -o learnt.pdf
    """
    check_output(output)
    if final and log_steps:
        raise click.UsageError("--final has no axis of steps: leave --log-steps out")
    from cgprimer import plot

    figure = plot.parameters(
        *runs, names=names, final=final, by=by, log_steps=log_steps, dark=dark, title=title
    )
    save(figure, output)
