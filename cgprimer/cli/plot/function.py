"""``cgprimer plot function``: a function and its derivatives."""

from __future__ import annotations

import click

from cgprimer.cli.common import at_option, graph_arguments, make_command, read_graph
from cgprimer.cli.plot.options import check_output, picture_options, range_option, save


@make_command(name="function")
@graph_arguments
@range_option("--range", "From where to where (default: -3:3).")
@at_option
@click.option("--of", metavar="NAME", help="The output (default: the only one).")
@click.option("--wrt", metavar="NAME", help="The variable (default: the only input or parameter).")
@click.option("--order", type=click.IntRange(0), default=1, show_default=True,
              help="Of the highest derivative.")  # fmt: skip
@click.option("--tangent", type=float, metavar="X", help="Draw the tangent at this place.")
@picture_options
def command(
    file: str | None,
    expression: str | None,
    range: tuple[float, float] | None,
    at: dict[str, float],
    of: str | None,
    wrt: str | None,
    order: int,
    tangent: float | None,
    output: str,
    dark: bool,
    title: str,
) -> None:
    """A function of one variable, its derivatives, and the tangent at a point.

    \b
    Examples:
      cgprimer plot function -e "xw = tanh(xa)" --tangent 0.5 -o tanh.png
      cgprimer plot function -e "xw = sin(xa)" --order 3 --range -6:6 -o sine.svg
      cgprimer plot function lecture --range 0:1 -o lecture-function.pdf --dark
    """
    check_output(output)
    graph = read_graph(file, expression)
    from cgprimer import plot

    low, high = range or (-3.0, 3.0)
    figure = plot.function(
        graph,
        low,
        high,
        at=at,
        of=of,
        wrt=wrt,
        order=order,
        tangent=tangent,
        dark=dark,
        title=title,
    )
    save(figure, output)
