"""``cgprimer draw``: pictures of graphs."""

from __future__ import annotations

from pathlib import Path

import click

from cgprimer.cli.common import at_option, graph_arguments, make_command, note, read_graph
from cgprimer.drawing.diagrams import LEVELS, PARAMETERS, draw


@make_command(name="draw")
@graph_arguments
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    type=click.Path(),
    help="A .png, .svg or .pdf file (default: FILE's name with .png).",
)
@at_option
@click.option("--values", is_flag=True, help="Show values at the declared point.")
@click.option(
    "--level",
    type=click.Choice(LEVELS),
    default="variables",
    show_default=True,
    help="The graph as written, or its operations.",
)
@click.option(
    "--parameters",
    type=click.Choice(PARAMETERS),
    default="edges",
    show_default=True,
    help="Where learnable parameters are shown.",
)
@click.option("--dark", is_flag=True, help="For dark slides.")
@click.option("--title", default="", metavar="TEXT", help="Above the picture.")
def command(
    file: str | None,
    expression: str | None,
    output: str | None,
    at: dict[str, float],
    values: bool,
    level: str,
    parameters: str,
    dark: bool,
    title: str,
) -> None:
    """Draw a graph as PNG, SVG or PDF, in layers from inputs to outputs.

    \b
    Examples:
      cgprimer draw examples/lecture.cg -o lecture.svg
      cgprimer draw examples/lecture.cg -o lecture.png --at xa=-0.5
      cgprimer draw examples/lecture.cg -o tape.pdf --level operations --values
      cgprimer draw -e "xw = k*xa + b" -o line.png --parameters vertices
    """
    from cgprimer.drawing.saving import check_picture_path, save_figure

    named = file and file != "-"
    path = Path(output or (f"{Path(file).stem}.png" if named and file else "graph.png"))
    check_picture_path(path)
    graph = read_graph(file, expression)
    figure = draw(
        graph,
        at=at if at or values else None,
        level=level,
        parameters=parameters,
        dark=dark,
        title=title,
    )
    save_figure(figure, path)
    note(f"wrote {path}")
