"""``cgprimer plot surface``: the loss over two parameters."""

from __future__ import annotations

import click

from cgprimer.cli.common import (
    assignments_option,
    at_option,
    graph_arguments,
    make_command,
    names_option,
    read_graph,
)
from cgprimer.cli.plot.options import check_output, picture_options, range_option, save


@make_command(name="surface")
@graph_arguments
@names_option("--over", "The two parameters (default: the first two).")
@range_option(
    "--range",
    "From where to where, once for each of the two (default: three to either side).",
    multiple=True,
)
@click.option("--3d", "in_3d", is_flag=True, help="As a landscape in 3-D.")
@at_option
@assignments_option("--start", "Where the paths begin.")
@names_option("--optimizers", "Whose paths (default: all); none for no path.")
@assignments_option("--rates", "Learning rates, optimizer=value (default: by steepness).")
@click.option("--steps", type=click.IntRange(1), default=200, show_default=True, help="Of a path.")
@click.option("--data", metavar="PATH", type=click.Path(), help="A .csv or .npz file.")
@click.option(
    "--loss",
    "loss_name",
    default="squared-error",
    metavar="NAME|TEXT",
    show_default=True,
    help="As for train.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the data.")
@picture_options
def command(
    file: str | None,
    expression: str | None,
    over: tuple[str, ...],
    range: tuple[tuple[float, float], ...],
    in_3d: bool,
    at: dict[str, float],
    start: dict[str, float],
    optimizers: tuple[str, ...],
    rates: dict[str, float],
    steps: int,
    data: str | None,
    loss_name: str,
    seed: int,
    output: str,
    dark: bool,
    title: str,
) -> None:
    """The loss over two parameters, with the path of each optimizer on it.

    \b
    Examples:
      cgprimer plot surface lecture --over ab,cd -o surface.png
      cgprimer plot surface lecture --over ab,cd --3d -o surface3d.png
      cgprimer plot surface -e "xw = k*xa + b; parameter k=3, b=-1" --rates sgd=0.3 -o a.svg

    All other parameters keep the values declared or given with --at. Each step sees all samples.
    """
    check_output(output)
    graph = read_graph(file, expression)
    from cgprimer import plot
    from cgprimer.data import Dataset

    chosen = () if optimizers == ("none",) else optimizers or None
    figure = plot.surface(
        graph,
        over,
        Dataset.load(data, inputs=graph.inputs, targets=graph.outputs) if data else None,
        in_3d=in_3d,
        ranges=range,
        at=at,
        start=start,
        optimizers=chosen,
        rates=rates,
        steps=steps,
        loss=loss_name,
        seed=seed,
        dark=dark,
        title=title,
    )
    save(figure, output)
