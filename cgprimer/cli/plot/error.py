"""``cgprimer plot error``: the V of finite differences."""

from __future__ import annotations

import click

from cgprimer.cli.common import at_option, graph_arguments, make_command, read_graph
from cgprimer.cli.plot.options import check_output, picture_options, save


@make_command(name="error")
@graph_arguments
@at_option
@click.option("--of", metavar="NAME", help="The variable to differentiate (default: the output).")
@click.option(
    "--wrt", metavar="NAME", help="With respect to what (default: the only input or parameter)."
)
@click.option(
    "--scheme",
    "schemes",
    multiple=True,
    type=click.Choice(("forward", "central", "complex-step")),
    help="Only these schemes; may be repeated.",
)
@picture_options
def command(
    file: str | None,
    expression: str | None,
    at: dict[str, float],
    of: str | None,
    wrt: str | None,
    schemes: tuple[str, ...],
    output: str,
    dark: bool,
    title: str,
) -> None:
    """The error of finite differences against their step: the V.

    \b
    Examples:
      cgprimer plot error -e "xw = sin(xa)" --at xa=1 -o steps.png
      cgprimer plot error lecture --wrt ab -o lecture-error.svg --dark

    Errors are against a derivative of fifty digits. A star marks the best step.
    """
    check_output(output)
    graph = read_graph(file, expression)
    from cgprimer import plot

    save(plot.error(graph, at, of=of, wrt=wrt, schemes=schemes, dark=dark, title=title), output)
