"""``cgprimer draw``: pictures of graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cgprimer.cli.common import graph_command, named_after, note
from cgprimer.cli.options import AT, DARK
from cgprimer.expressions import ExpressionGraph
from cgprimer.visualization.diagrams.diagram_formats import formats, save_diagram
from cgprimer.visualization.diagrams.figure_files import check_picture_path
from cgprimer.visualization.diagrams.graph_diagrams import LEVELS, PARAMETERS, graph_diagram
from cgprimer.visualization.diagrams.theme import READABLE_SIZE

_OVERLAYS = ("values", "partials", "tangents", "adjoints", "path")  # what can be left out


@graph_command(
    f"-o, --output PATH  The file; its ending is one of .{', .'.join(formats())}"
    " (default: FILE's name with .png).",
    AT,
    f"""\
--values  Show values at the declared point.
--partials  Show the local partial derivative on each edge.
--tangents SEED  Show the tangents of a forward sweep seeded with this variable or parameter.
--adjoints  Show the adjoints of a backward sweep; on each edge upstream × local = downstream.
--of NAME  Where the backward sweep begins: the only output.
--path "NAME ..."  Highlight one path; write its product and the sum over all paths under the
  picture.
--level {"|".join(LEVELS)} =variables  The graph as written, its operations, or the graph of the
  backward sweep.
--parameters {"|".join(PARAMETERS)}  Where learnable parameters are shown: on edges, unless an
  overlay needs vertices.
--scalars all|NAME,...  Every number of arrays as a vertex: of all, or of those that are named.
--backward-arrows  With --adjoints or --level backward: arrows from the output back to the inputs.
--mask NUMBER|NAME=VALUE,...  With dropout: the network that is left for a mask of zeros and ones,
  or for the mask that a seed (a number) gives.
--place layers:N  Cut the graph by layers into parts, each in a frame, and show what is sent.
--workers NAME,...  With --place: names of the workers that have the parts.
--why  Mark the vertex with the first value or slope that is not finite.
--all (everything)  Draw every vertex of a graph that would be summarised by layers.""",
    DARK,
    "--title TEXT  Above the picture.",
    with_loss=True,
    with_watch=True,
)
def command(
    graph: ExpressionGraph, output: str | None, dark: bool, live: bool, **settings: Any
) -> str | None:
    """Draw a graph, in layers from inputs to outputs.

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

    With --watch a browser shows the picture; -o writes it anew at every change as well.
    """
    path = Path(output) if output else named_after(graph, ".png")
    writes = output is not None or not live
    if writes:
        check_picture_path(path, formats())
    names = ",".join(settings["scalars"])
    settings["scalars"] = True if names == "all" else names
    diagram = graph_diagram(graph, **_kept(settings))
    size = save_diagram(diagram, path, dark=dark) if writes else None
    if writes:
        note(f"wrote {path}")
    if diagram.summary:
        summarised = "its layers are summarised (--all draws each vertex)"
        note(f"the graph is too large for a slide: {summarised}")
    if size is not None and round(size) < READABLE_SIZE:
        note(
            f"its smallest text has {size:.2g} points on a slide, too few for the last row, which"
            f" can read {READABLE_SIZE:.0f}: {_readable_instead(graph, settings)}"
        )
    if not live:
        return None
    from cgprimer.visualization.pages.watching.picture_page import picture_page

    return picture_page(diagram, graph.source.name, dark=dark)


def _readable_instead(graph: ExpressionGraph, settings: dict[str, Any]) -> str:
    """What to change so that the picture can be read: it is tried out."""
    from cgprimer.visualization.diagrams.slide_layout import slide_layout

    given = [name for name in _OVERLAYS if settings[name]]
    fewer: dict[str, dict[str, Any]] = {f"without --{name}": {name: None} for name in given}
    if given:
        fewer["without " + " and ".join(f"--{name}" for name in given)] = dict.fromkeys(given)
    if settings["level"] != "variables":
        fewer["with --level variables"] = {"level": "variables"}
    if settings["parameters"] == "vertices":
        fewer["with --parameters edges"] = {"parameters": None}
    for words, change in fewer.items():
        tried = settings | change
        if not tried["adjoints"] and tried["level"] != "backward":
            tried["of"], tried["backward_arrows"] = None, False
        size = slide_layout(graph_diagram(graph, **_kept(tried))).captions.smallest_text
        if round(size) >= READABLE_SIZE:
            return f"{words} it has {size:.2g}"
    return "write a .svg or .pdf and zoom in, or draw a part of the graph alone (-e)"


def _kept(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value not in (None, {}, ())}
