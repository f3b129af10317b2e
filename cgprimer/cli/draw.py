"""``cgprimer draw``: pictures of graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cgprimer.cli.common import at_option, graph_arguments, make_command, note, read_graph
from cgprimer.pictures.diagrams import LEVELS, PARAMETERS, graph_diagram
from cgprimer.pictures.formats import FORMATS
from cgprimer.pictures.theme import READABLE_SIZE

_ENDINGS = ", ".join(f".{kind}" for kind in FORMATS)


@make_command(name="draw")
@graph_arguments
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    type=click.Path(),
    help=f"The file; its ending is one of {_ENDINGS} (default: FILE's name with .png).",
)
@at_option
@click.option("--values", is_flag=True, help="Show values at the declared point.")
@click.option("--partials", is_flag=True, help="Show the local partial derivative on each edge.")
@click.option(
    "--tangents",
    metavar="SEED",
    help="Show the tangents of a forward sweep seeded with this variable or parameter.",
)
@click.option(
    "--adjoints",
    is_flag=True,
    help="Show the adjoints of a backward sweep; on each edge upstream × local = downstream.",
)
@click.option("--of", metavar="NAME", help="Where the backward sweep begins: the only output.")
@click.option(
    "--path",
    metavar='"NAME ..."',
    help="Highlight one path; write its product and the sum over all paths under the picture.",
)
@click.option(
    "--level",
    type=click.Choice(LEVELS),
    default="variables",
    show_default=True,
    help="The graph as written, its operations, or the graph of the backward sweep.",
)
@click.option(
    "--parameters",
    type=click.Choice(PARAMETERS),
    help="Where learnable parameters are shown: on edges, unless an overlay needs vertices.",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Draw every vertex of a graph that would be summarised by layers.",
)
@click.option("--dark", is_flag=True, help="For dark slides.")
@click.option("--title", default="", metavar="TEXT", help="Above the picture.")
def command(
    file: str | None, expression: str | None, output: str | None, dark: bool, **settings: Any
) -> None:
    """Draw a graph, in layers from inputs to outputs.

    \b
    Examples:
      cgprimer draw lecture -o lecture.svg
      cgprimer draw lecture -o lecture.png --at xa=-0.5
      cgprimer draw lecture -o tape.pdf --level operations --values
      cgprimer draw lecture -o path.png --path "xa xx xz xw"
      cgprimer draw log_sine -o backward.tex --values --adjoints
      cgprimer draw -e "xw = k*xa + b" -o line.png --parameters vertices
    """
    from cgprimer.pictures.formats import check_diagram_path, save_diagram

    named = file and file != "-"
    path = Path(output or (f"{Path(file).stem}.png" if named and file else "graph.png"))
    check_diagram_path(path)
    graph = read_graph(file, expression)
    settings["at"] = settings["at"] or None
    diagram = graph_diagram(graph, **settings)
    size = save_diagram(diagram, path, dark=dark)
    note(f"wrote {path}")
    if diagram.summary:
        note(
            "the graph is too large for a slide: its layers are summarised"
            " (--all draws each vertex)"
        )
    if size is not None and round(size) < READABLE_SIZE:
        note(
            f"its smallest text has {size:.2g} points on a slide, and the last row can read"
            f" {READABLE_SIZE:.0f}: show less at once, or zoom into a .svg or .pdf"
        )
