"""``cgprimer plot swell``: how formulas of derivatives grow."""

from __future__ import annotations

import click

from cgprimer.cli.common import make_command
from cgprimer.cli.plot.options import check_output, picture_options, save, whole_numbers

_NESTINGS = ("product", "logistic", "softmax")


@make_command(name="swell")
@click.option(
    "--family",
    type=click.Choice(_NESTINGS),
    default="product",
    show_default=True,
    help="What is nested.",
)
@click.option(
    "--depths",
    multiple=True,
    metavar="N,...",
    callback=whole_numbers,
    help="Levels of nesting (default: up to 10, for softmax up to 5).",
)
@picture_options
def command(family: str, depths: tuple[int, ...], output: str, dark: bool, title: str) -> None:
    """The growth of a symbolic derivative with the depth of nesting, beside reverse mode.

    \b
    Examples:
      cgprimer plot swell -o swell.png
      cgprimer plot swell --family softmax --depths 1,2,3,4 -o softmax.svg --dark

    Formulas of more than 20,000 operations are left out.
    """
    check_output(output)
    from cgprimer import plot

    save(plot.swell(family, depths, dark=dark, title=title), output)
