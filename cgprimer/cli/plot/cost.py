"""``cgprimer plot cost``: gradients against the number of parameters."""

from __future__ import annotations

import click

from cgprimer.cli.common import make_command, names_option
from cgprimer.cli.plot.options import check_output, picture_options, save, whole_numbers

_FAMILIES = ("network", "neuron", "sum")


@make_command(name="cost")
@click.option(
    "--family",
    type=click.Choice(_FAMILIES),
    default="network",
    show_default=True,
    help="A network with one hidden layer, one neuron, or a sum of sines.",
)
@click.option(
    "--sizes",
    multiple=True,
    metavar="N,...",
    callback=whole_numbers,
    help="Hidden neurons, inputs or terms (default: 1 to 128, doubling).",
)
@names_option("--methods", "Only these methods (default: all).")
@click.option("--time", "timed", is_flag=True, help="Times beside operations.")
@click.option(
    "--bound", type=float, default=5.0, show_default=True, help="Upper end of the shaded band."
)
@picture_options
def command(
    family: str,
    sizes: tuple[int, ...],
    methods: tuple[str, ...],
    timed: bool,
    bound: float,
    output: str,
    dark: bool,
    title: str,
) -> None:
    """The cost of a gradient against the number of parameters, for each method.

    \b
    Examples:
      cgprimer plot cost -o cost.png
      cgprimer plot cost --family sum --sizes 1,10,100 --methods forward,reverse -o sum.svg
      cgprimer plot cost --family neuron --sizes 1,4,16 --time --bound 3 -o neuron.pdf

    Operations are counted on the tapes. The band reaches from the function's own cost to
    --bound times that: the cheap gradient of reverse mode lies inside it.
    """
    check_output(output)
    from cgprimer import plot

    figure = plot.cost(
        family, sizes, methods=methods, timed=timed, bound=bound, dark=dark, title=title
    )
    save(figure, output)
