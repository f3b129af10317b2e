"""``cgprimer draw``: pictures of graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cgprimer.cli.common import default_output_path, graph_command, note
from cgprimer.cli.file_watching import watch_options
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import (
    NAMES,
    PATH,
    TEXT,
    read_number_or_assignments,
)
from cgprimer.cli.shared_options import at_option, dark_option, of_option
from cgprimer.expressions import ExpressionGraph
from cgprimer.visualization.diagrams.diagram_formats import (
    format_diagram,
    formats,
    save_diagram,
    shows_every_vertex,
)
from cgprimer.visualization.diagrams.figure_files import check_picture_path
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
from cgprimer.visualization.diagrams.theme import READABLE_SIZE

_OVERLAYS = ("values", "partials", "tangents", "adjoints", "path")  # optional annotations


@graph_command(with_loss=True, with_watch=True)
@option(
    "-o",
    "--output",
    **PATH,
    help="Output file: .png, .svg, .pdf, .html, .dot, .gv, .mmd or .tex (default: NAME.png).",
)
@at_option
@option("--values", is_flag=True, help="Show the value of each variable.")
@option("--partials", is_flag=True, help="Show the local partial derivative on each edge.")
@option("--tangents", metavar="SEED", help="Show tangents with respect to this input or parameter.")
@option(
    "--adjoints",
    is_flag=True,
    help="Show adjoints, and upstream × local = downstream on each edge.",
)
@of_option
@option(
    "--path",
    metavar='"NAME ..."',
    help="Path to highlight, with its product of partial derivatives and the sum over all paths.",
)
@option(
    "--level",
    type=click.Choice(["variables", "operations", "backward"]),
    default="variables",
    help="Level of detail: variables, operations, or the operations of the backward pass.",
)
@option(
    "--parameters",
    type=click.Choice(["edges", "vertices"]),
    help="Draw parameters on edges or as vertices (default: on edges if possible).",
)
@option(
    "--scalars",
    metavar="all|NAME,...",
    multiple=True,
    help="Arrays whose elements are drawn as separate vertices, or 'all'.",
)
@option(
    "--backward-arrows",
    is_flag=True,
    help="Draw arrows from outputs to inputs; requires --adjoints or --level backward.",
)
@option(
    "--mask",
    metavar="NUMBER|NAME=VALUE,...",
    multiple=True,
    callback=read_number_or_assignments,
    help="Dropout masks of zeros and ones, such as h=[1,0,1], or the random seed of the masks.",
)
@option(
    "--place",
    metavar="layers:N",
    help="Cut the graph between layers into N stages, and show the values sent between them.",
)
@option("--workers", **NAMES, help="Names of the workers that run the stages of --place.")
@option(
    "--why",
    is_flag=True,
    help="Highlight the vertex with the first non-finite value or derivative.",
)
@option(
    "--all",
    "everything",
    is_flag=True,
    help="Draw all vertices of a large graph instead of a summary by layers.",
)
@dark_option
@option("--title", **TEXT, help="Title of the picture.")
@watch_options
def command(
    graph: ExpressionGraph, output: str | None, dark: bool, live: bool, **settings: Any
) -> str | None:
    """Draw a graph in layers, from inputs to outputs.

    \b
    Examples:
      cgprimer draw lecture -o lecture.svg
      cgprimer draw lecture -o lecture.png --at xa=-0.5
      cgprimer draw lecture -o tape.pdf --level operations --values
      cgprimer draw lecture -o path.png --path "xa xx xz xw"
      cgprimer draw log_sine -o backward.tex --values --adjoints --backward-arrows
      cgprimer draw -e "xw = k*xa + b" -o line.png --parameters vertices
      cgprimer draw matrix_backpropagation -o numbers.png --scalars all
      cgprimer draw dropout -o thinned.png --mask "xh=[1,0,1]"
      cgprimer draw lecture -o parts.png --place layers:2 --workers gpu0,gpu1
      cgprimer draw network -o network.html

    A page (.html) contains every vertex of a large graph, in groups that open and close.

    With --watch, a browser shows the picture; -o then also writes it after each change.
    """
    path = Path(output) if output else default_output_path(graph, ".png")
    writes = output is not None or not live
    if writes:
        check_picture_path(path, formats())
    names = ",".join(settings["scalars"])
    settings["scalars"] = True if names == "all" else names
    is_page = writes and shows_every_vertex(path)
    settings["everything"] |= is_page
    diagram = graph_diagram(graph, **_remove_empty_values(settings))
    size = save_diagram(diagram, path, dark=dark) if writes else None
    if writes:
        note(f"wrote {path}")
    if diagram.summary:
        summary = "its layers are summarized (-o NAME.html writes a page with all vertices)"
        note(f"the graph is too large for a slide: {summary}")
    if size is not None and round(size) < READABLE_SIZE:
        note(
            f"the smallest text has {size:.2g} points on a slide, but must have"
            f" {READABLE_SIZE:.0f} to be readable in the last row of a lecture hall:"
            f" {_suggest_readable_picture(graph, settings)}"
        )
    if not live:
        return None
    if is_page:
        return format_diagram(diagram, "html", dark=dark)
    from cgprimer.visualization.pages.watching.picture_page import picture_page

    return picture_page(diagram, graph.source.name, dark=dark)


def _suggest_readable_picture(graph: ExpressionGraph, settings: dict[str, Any]) -> str:
    """Suggest options that make the smallest text of a picture readable."""
    from cgprimer.visualization.diagrams.slide_layout import slide_layout

    overlays = [name for name in _OVERLAYS if settings[name]]
    fewer: dict[str, dict[str, Any]] = {f"without --{name}": {name: None} for name in overlays}
    if overlays:
        fewer["without " + " and ".join(f"--{name}" for name in overlays)] = dict.fromkeys(overlays)
    if settings["level"] != "variables":
        fewer["with --level variables"] = {"level": "variables"}
    if settings["parameters"] == "vertices":
        fewer["with --parameters edges"] = {"parameters": None}
    for words, change in fewer.items():
        tried = settings | change
        if not tried["adjoints"] and tried["level"] != "backward":
            tried["of"], tried["backward_arrows"] = None, False
        size = slide_layout(
            graph_diagram(graph, **_remove_empty_values(tried))
        ).captions.smallest_text
        if round(size) >= READABLE_SIZE:
            return f"{words} it has {size:.2g}"
    return "write a .svg or .pdf and zoom in, or draw a part of the graph alone (-e)"


def _remove_empty_values(settings: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of the settings without empty values."""
    return {name: value for name, value in settings.items() if value not in (None, {}, ())}
