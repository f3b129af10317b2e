"""The function ``draw``: a diagram of a graph or of recorded values as a figure or a file."""

from __future__ import annotations

import inspect
import sys
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cgprimer.errors import UsageError, did_you_mean
from cgprimer.expressions import ExpressionGraph
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
from cgprimer.visualization.diagrams.recorded_diagrams import recorded_diagram

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(
    graph: Any, output: str | Path | None = None, *, dark: bool = False, **shown: Any
) -> Figure:
    """Draw a graph in layers, from inputs to outputs.

    Args:
        graph: the graph; or a recorded :class:`cgprimer.Value`, its ``grad_fn``, a
            :class:`cgprimer.Node` or a recording: values show their data and what backward passes
            have added to their gradients.
        output: a file to write; its ending is a picture format, as of ``cgprimer draw -o``.
        at: values of inputs and parameters; declared values fill the rest. With it (also with an
            empty one) every vertex shows its value.
        values: show values at the declared point.
        level: ``variables`` for the graph as written, ``operations`` for the tape's operations,
            ``backward`` for the graph of reverse mode's backward sweep.
        parameters: ``edges`` writes parameters on the edges of the variables that they multiply
            (those that multiply none are vertices), ``vertices`` draws all of them as vertices.
            ``edges`` unless given; ``vertices`` where an overlay has something to say at them.
        partials: the local partial derivative on every edge.
        tangents: a name; a forward sweep seeded with it, a tangent in each vertex.
        adjoints: a backward sweep, an adjoint in each vertex, and on each edge
            ``upstream × local = downstream``.
        of: where the backward sweep begins; the only output unless given.
        loss: a loss to put behind the outputs, as in :func:`cgprimer.graph_with_loss`.
        path: names along one path, ``"xa xx xz xw"``, which is highlighted; the product along it
            and the sum over all paths between its ends are written under the picture.
        scalars: of a graph with arrays, draw their numbers as separate vertices: True or ``"all"``
            for all of them, or the names of the arrays to open, ``"xh xr"``.
        everything: draw every vertex, also of a graph too large to read, which is otherwise
            summarised by layers.
        dark: for dark slides.
        why: mark the vertex with the first value, or slope of a backward sweep, that is not
            finite: a wide outline, and words.
        backward_arrows: point the arrows of adjoints, or of the level ``backward``, from the
            output back to the inputs, as the backward pass runs.
        mask: of a graph with dropout, draw the network that is left for a mask: for each vertex
            that applies dropout zeros (dropped) and ones (kept); or a seed, for the mask of the
            first sample of a training run with that seed. Arrays are drawn as their numbers.
        place: cut the graph for model parallelism, as training does: ``"layers:2"`` draws two
            parts, and what is sent between them.
        workers: names of the workers that have the parts, from the inputs to the output.
        title: above the picture.

    Returns:
        A matplotlib figure.

    Raises:
        UsageError: an unknown level or name, an edge that is not there, a graph with nothing to
            draw, a file that cannot be written or has an unknown ending.
        MissingValueError: values are needed and one is missing; the message names it.

    >>> from cgprimer.core.graph import parse
    >>> type(draw(parse("xw = ab*xa"))).__name__
    'Figure'
    """
    from cgprimer.visualization.diagrams.diagram_figure import draw_diagram
    from cgprimer.visualization.diagrams.diagram_formats import check_output, save_diagram
    from cgprimer.visualization.diagrams.figure_files import FORMATS, save_figure

    accepted = list(signature(graph_diagram).parameters)[1:]
    if misspelled := [name for name in shown if name not in accepted]:
        hint = did_you_mean(misspelled[0], accepted)
        hint = hint or "cgprimer.draw(graph).savefig('graph.png') writes a picture"
        raise UsageError(f"draw() has no argument {misspelled[0]!r}", hint=hint)
    path = None if output is None else check_output(output)
    if isinstance(graph, ExpressionGraph):
        diagram = graph_diagram(graph, **shown)
    else:
        diagram = recorded_diagram(graph, sys._getframe(1), **shown)
    if path is not None and path.suffix.lower().removeprefix(".") not in FORMATS:
        save_diagram(diagram, path, dark=dark)
    figure = draw_diagram(diagram, dark=dark)
    if path is not None and path.suffix.lower().removeprefix(".") in FORMATS:
        save_figure(figure, path)
    return figure


# Options are written once, and help lists them.
_SHOWN, _OWN = inspect.signature(graph_diagram).parameters, inspect.signature(draw)
_GRAPH, *_OPTIONS = _SHOWN.values()
draw.__signature__ = _OWN.replace(  # type: ignore[attr-defined]
    parameters=[_GRAPH, _OWN.parameters["output"], *_OPTIONS, _OWN.parameters["dark"]]
)
