"""The function ``draw``: a diagram of a graph or of recorded values as a figure or a file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from cgprimer.core.methods.derivative_program import Names
from cgprimer.errors import UsageError, did_you_mean
from cgprimer.expressions import ExpressionGraph
from cgprimer.visualization.diagrams.diagram import Diagram
from cgprimer.visualization.diagrams.diagram_formats import (
    check_output,
    save_diagram,
    shows_every_vertex,
)
from cgprimer.visualization.diagrams.diagram_options import DiagramOptions
from cgprimer.visualization.diagrams.figure_files import FORMATS, save_figure
from cgprimer.visualization.diagrams.graph_diagrams import build_diagram, summarize_if_crowded

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
_CALLER = 2  # frames above `draw`: the wrapper, and the code that calls it
_PASSED = "_passed"  # private argument of `draw`: names of the keyword arguments of a call
_OPTIONS = tuple(field.name for field in fields(DiagramOptions))


def _check_arguments(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Wrap a function to check its keyword argument names and to pass them on as `_passed`.

    The drawing of a recorded value depends on whether an option is given, even as its default.
    """
    public = signature(function)
    public = public.replace(parameters=[p for p in public.parameters.values() if p.name != _PASSED])
    accepted = list(public.parameters)

    @wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        """Call the function; for an unknown argument, raise UsageError with a suggestion."""
        if unknown := [name for name in kwargs if name not in accepted]:
            hint = did_you_mean(unknown[0], accepted[2:])
            hint = hint or "write a picture with cgprimer.draw(graph).savefig('graph.png')"
            raise UsageError(f"draw() got an unexpected argument {unknown[0]!r}", hint=hint)
        kwargs[_PASSED] = tuple(kwargs)
        return function(*args, **kwargs)

    call.__signature__ = public  # type: ignore[attr-defined]
    return call


@_check_arguments
def draw(
    graph: Any,
    output: str | Path | None = None,
    *,
    at: Mapping[str, float] | None = None,
    values: bool = False,
    level: str = "variables",
    parameters: str | None = None,
    partials: bool = False,
    tangents: str | None = None,
    adjoints: bool = False,
    of: str | None = None,
    loss: str | None = None,
    path: str | Sequence[str] | None = None,
    scalars: bool | str | Sequence[str] = False,
    everything: bool = False,
    why: bool = False,
    backward_arrows: bool = False,
    mask: float | Mapping[str, Any] | None = None,
    place: str | None = None,
    workers: Names | None = None,
    title: str = "",
    dark: bool = False,
    _passed: Sequence[str] = (),
) -> Figure:
    """Draw a graph in layers, from inputs to outputs.

    Args:
        graph: a graph, a recording, or a recorded :class:`cgprimer.Value`, its ``grad_fn`` or a
            :class:`cgprimer.Node`. Recorded values show their data and accumulated gradients.
        output: file to write; its suffix is a picture format, as for ``cgprimer draw -o``. A page
            (``.html``) contains every vertex of a large graph, in groups that open and close.
        at: values of inputs and parameters; other names keep their declared values. If given, even
            if empty, every vertex shows its value.
        values: show values at the declared point.
        level: ``variables`` for the graph as written, ``operations`` for the operations of the
            tape, ``backward`` for the graph of the backward sweep.
        parameters: ``edges`` shows parameters on the edges of the variables that they multiply
            (others become vertices), ``vertices`` makes every parameter a vertex. Default:
            ``edges``, or ``vertices`` if an overlay marks parameters.
        partials: show the local partial derivative on every edge.
        tangents: name of the seed of a forward sweep; vertices show tangents.
        adjoints: run a backward sweep; vertices show adjoints, and edges show
            ``upstream × local = downstream``.
        of: start of the backward sweep. Default: the only output.
        loss: loss to add after the outputs, as in :func:`cgprimer.graph_with_loss`.
        path: vertices along one path, ``"xa xx xz xw"``, to highlight; notes show its product and
            the sum over all paths between its ends.
        scalars: arrays whose elements become vertices: True or ``"all"``, or names, ``"xh xr"``.
        everything: draw every vertex of a graph that would otherwise be summarized by layers.
        why: mark the vertex with the first value or slope that is not finite.
        backward_arrows: point arrows from the output to the inputs, as the backward pass runs.
        mask: with dropout, zeros (dropped) and ones (kept) for each vertex that applies dropout, or
            the seed of a training run, whose first mask is used. Arrays are drawn as elements.
        place: partition for model parallelism; ``"layers:2"`` frames two parts and shows what they
            send.
        workers: names of the workers of the parts, from the inputs to the output.
        title: title above the picture.
        dark: use the dark theme.

    Returns:
        A matplotlib figure.

    Raises:
        UsageError: an unknown name, level or edge, an empty graph, or an unwritable file.
        MissingValueError: a required value is missing.

    >>> from cgprimer.core.graph import parse
    >>> type(draw(parse("xw = ab*xa"))).__name__
    'Figure'
    """
    arguments = locals()
    options = DiagramOptions(**{name: arguments[name] for name in _OPTIONS})
    path_to_write = None if output is None else check_output(output)
    is_page = path_to_write is not None and shows_every_vertex(path_to_write)
    options = replace(options, everything=everything or is_page)
    if isinstance(graph, ExpressionGraph):
        diagram = build_diagram(graph, options)
    else:
        from cgprimer.visualization.diagrams.recorded_diagrams import build_recorded_diagram

        passed_options = [name for name in _passed if name in _OPTIONS]
        diagram = build_recorded_diagram(graph, sys._getframe(_CALLER), options, passed_options)
    return _save_and_draw(diagram, path_to_write, dark=dark, summarizes=is_page and not everything)


def _save_and_draw(diagram: Diagram, path: Path | None, *, dark: bool, summarizes: bool) -> Figure:
    """Draw a diagram as a figure, and write it to a file if a path is given.

    With `summarizes`, the figure of a diagram that is too large for a slide is a summary.
    """
    from cgprimer.visualization.diagrams.diagram_figure import draw_diagram

    is_figure = path is not None and path.suffix.lower().removeprefix(".") in FORMATS
    figure = draw_diagram(summarize_if_crowded(diagram) if summarizes else diagram, dark=dark)
    if path is not None and is_figure:
        save_figure(figure, path)
    elif path is not None:
        save_diagram(diagram, path, dark=dark)
    return figure
