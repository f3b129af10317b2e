"""Diagrams of graphs: plain data that other modules lay out and draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cgprimer.analysis.element_graph import expand_with_point, split_point
from cgprimer.analysis.nonfinite_origin import Why
from cgprimer.analysis.nonfinite_origin import why as find_nonfinite_origin
from cgprimer.core.loss_attachment import check_point, graph_with_loss
from cgprimer.core.second_derivatives import add_element_output
from cgprimer.errors import UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.number_format import SHORT, format_number
from cgprimer.tapes import tape as tape_of
from cgprimer.visualization.diagrams.backward_graph import build_backward_diagram
from cgprimer.visualization.diagrams.diagram import Diagram
from cgprimer.visualization.diagrams.diagram_options import (
    ALL,
    LEVELS,
    PARAMETERS,
    DiagramOptions,
    parse_path,
)
from cgprimer.visualization.diagrams.element_diagrams import expand_arrays
from cgprimer.visualization.diagrams.layer_summary import summarize
from cgprimer.visualization.diagrams.level_diagrams import (
    build_operation_diagram,
    build_variable_diagram,
)
from cgprimer.visualization.diagrams.overlays import add_overlays

__all__ = ["LEVELS", "PARAMETERS", "graph_diagram"]


def graph_diagram(graph: ExpressionGraph, **options: Any) -> Diagram:
    """Build the diagram that :func:`cgprimer.draw` draws; the options and errors are the same.

    ``save_diagram`` of ``cgprimer.visualization.diagrams.diagram_formats`` writes it to a file.

    >>> from cgprimer.core.graph import parse
    >>> graph = parse("input xa = 2; xb = 3*xa; xw = xb*xa")
    >>> graph_diagram(graph, path="xa xb xw").notes[-1]
    'dxw/dxa = 6 + 6 = 12'
    """
    return build_diagram(graph, DiagramOptions(**options))


def build_diagram(graph: ExpressionGraph, options: DiagramOptions) -> Diagram:
    """Build the diagram of a graph, optionally with dropout masks or a frame for each worker."""
    graph = graph_with_loss(graph, options.loss, check_point(options.at) or None)
    options = replace(options, loss=None)
    options.check_types()
    options.check_partition()
    if options.mask is None and options.place is None:
        return _build_array_or_element_diagram(graph, options)
    full = replace(options, everything=True)
    if options.mask is None:
        diagram = _build_array_or_element_diagram(graph, full)
    else:
        from cgprimer.visualization.diagrams.dropout_diagram import mark_dropped, thin_graph

        thinned = thin_graph(graph, options.mask)
        point = split_point(graph, options.at)
        full = replace(full, at=point, scalars=False)
        diagram = mark_dropped(_build_array_or_element_diagram(thinned.graph, full), thinned)
    if options.place is not None:
        from cgprimer.visualization.diagrams.model_parallel_diagram import frame_parts

        diagram = frame_parts(diagram, graph, options.place, options.workers)
    short = diagram if options.everything else summarize_if_crowded(diagram)
    if not short.summary:
        return diagram
    note = "the summary omits single vertices and their marks"
    return replace(short, notes=(*short.notes, note))


def _build_array_or_element_diagram(graph: ExpressionGraph, options: DiagramOptions) -> Diagram:
    """Build the diagram of a graph; arrays listed in `scalars` are expanded into elements."""
    options.check_level()
    if not graph.definitions:
        raise UsageError("the graph has no expressions, so there is nothing to draw")
    scalars = options.scalars
    if scalars == ALL and ALL not in (*graph.variables, *graph.parameters):
        scalars = True
    if not scalars or not tape_of(graph).has_arrays:
        return _build_level_diagram(graph, options)
    elements, point = expand_with_point(graph, options.at, (options.of, options.tangents))
    inner = replace(options, scalars=False, why=False, mask=None, place=None, workers=None)
    if scalars is True:
        return build_diagram(elements, replace(inner, at=point))
    if options.level != "variables" or options.path is not None:
        raise UsageError(
            "array names in `scalars` require level 'variables' and do not support `path`",
            hint="draw the elements of all arrays: scalars=True (--scalars all)",
        )
    inner = replace(inner, parameters="vertices", everything=True)
    arrays = build_diagram(graph, inner)
    opened = build_diagram(elements, replace(inner, at=point))
    diagram = expand_arrays(graph, arrays, opened, parse_path(scalars))
    return diagram if options.everything else summarize_if_crowded(diagram)


def _build_level_diagram(graph: ExpressionGraph, options: DiagramOptions) -> Diagram:
    """Build the diagram at the chosen level with overlays; summarize it if it is too large."""
    graph, of = add_element_output(graph, options.of)
    options = replace(options, of=of)
    options.check_overlays()
    diagram = replace(_build_plain_diagram(graph, options), title=options.title)
    if options.backward_arrows:
        diagram = _reverse_arrows(diagram, options.level)
    if options.has_overlays:
        diagram = add_overlays(diagram, graph, options)
    if options.why:
        origin = find_nonfinite_origin(graph, options.at, of=of)
        diagram = _mark_nonfinite(diagram, origin, options.level)
    short = diagram if options.everything else summarize_if_crowded(diagram)
    if not short.summary:
        return diagram
    if options.path_vertices:  # the notes on paths do not need the vertices
        return replace(short, notes=(*short.notes, *diagram.notes))
    if not options.has_overlays and options.value_point is None:
        return short
    note = "the summary omits values and derivatives at single vertices"
    return replace(short, notes=(*short.notes, note))


def _build_plain_diagram(graph: ExpressionGraph, options: DiagramOptions) -> Diagram:
    """Build the diagram of a graph at the chosen level, without overlays."""
    at: Mapping[str, Any] | None = options.value_point
    if options.level == "backward":
        return build_backward_diagram(graph, at=at, of=options.of)
    if options.level == "operations":
        return build_operation_diagram(graph, at=at)
    marked = {options.tangents, *options.path_vertices} & {*graph.parameters}
    parameters = "vertices" if options.adjoints or marked else "edges"
    return build_variable_diagram(graph, at=at, parameters=options.parameters or parameters)


def summarize_if_crowded(diagram: Diagram) -> Diagram:
    """Summarize a diagram by layers if its vertices do not all fit on a slide."""
    from cgprimer.visualization.diagrams.slide_layout import fits_slide

    short = summarize(diagram)
    try:
        return short if short.summary or fits_slide(diagram) else summarize(diagram, max_vertices=0)
    except UsageError:  # graphlay cannot lay it out, but DOT and Mermaid need no layout
        return short


def _reverse_arrows(diagram: Diagram, level: str) -> Diagram:
    """Reverse the arrows of a diagram, so that they point from the output to the inputs."""
    if level != "backward":
        return replace(diagram, backward_arrows=True)
    edges = tuple(replace(edge, tail=edge.head, head=edge.tail) for edge in diagram.edges)
    return replace(diagram, nodes=diagram.nodes[::-1], edges=edges, backward_arrows=True)


def _mark_nonfinite(diagram: Diagram, origin: Why | None, level: str) -> Diagram:
    """Highlight the first vertex whose value or slope is not finite, and add a note."""
    if origin is None:
        return replace(diagram, notes=(*diagram.notes, "all values and derivatives are finite"))
    bad = origin.value if origin.slope is None else origin.slope
    words = f"first {'value' if origin.slope is None else 'slope'} not finite"
    if isinstance(bad, float):  # the index of an array's element is in the note
        words += f": {format_number(bad, SHORT)}"
    key = str(origin.index) if level == "operations" else origin.vertex
    nodes = tuple(
        replace(node, detail=(*node.detail, words), emphasis=True) if node.key == key else node
        for node in diagram.nodes
    )
    return replace(diagram, nodes=nodes, notes=(*diagram.notes, origin.sentence))
