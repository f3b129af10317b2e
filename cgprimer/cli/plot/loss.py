"""``cgprimer plot loss``: the losses of saved runs."""

from __future__ import annotations

import click

from cgprimer.cli.common import make_command
from cgprimer.cli.plot.options import by_option, check_output, picture_options, save

_LOG = ("auto", "none", "x", "y", "both")


@make_command(name="loss")
@click.argument("runs", nargs=-1, required=True, type=click.Path(), metavar="RUN...")
@by_option
@click.option(
    "--smooth",
    type=click.IntRange(1),
    help="The mean of so many neighbouring losses, the losses themselves faint behind"
    " (default: 1, of more than 500 losses a hundredth).",
)
@click.option(
    "--log",
    type=click.Choice(_LOG),
    default="auto",
    show_default=True,
    help="Which axes are logarithmic; auto: the loss, where none is negative.",
)
@click.option(
    "--validation/--no-validation",
    default=True,
    help="Validation losses beside those of training, where a run has some.",
)
@picture_options
def command(
    runs: tuple[str, ...],
    by: str,
    smooth: int | None,
    log: str,
    validation: bool,
    output: str,
    dark: bool,
    title: str,
) -> None:
    """The losses of saved runs on one picture, training and validation.

    \b
    Examples:
      cgprimer train lecture --validation 0.2 --save adam.json
      cgprimer train lecture --optimizer sgd --learning-rate 1e-4 --save sgd.json
      cgprimer plot loss adam.json sgd.json -o loss.png
      cgprimer plot loss adam.json --by step --smooth 50 --log both -o steps.svg

    What the runs have learnt is drawn by: cgprimer plot parameters
    """
    check_output(output)
    from cgprimer import plot

    figure = plot.loss(
        *runs, by=by, smooth=smooth, log=log, validation=validation, dark=dark, title=title
    )
    save(figure, output)
