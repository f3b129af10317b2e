"""Derivatives written over a diagram: partials, tangents, adjoints, and one highlighted path.

Scalars show ``upstream × local = downstream`` on edges; arrays show the formula of the
contribution, such as ``outer(x, bar_xh)``, with its shape and, if there are few, its elements.
Without a path from a vertex to the output the derivative is 0, as in traces and gradients, even if
a partial is not finite.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, Protocol

from cgprimer.core.derivatives import resolve_output, resolve_wrt
from cgprimer.errors import UsageError
from cgprimer.expressions import ExpressionGraph, unparse
from cgprimer.support.number_format import format_array_lines
from cgprimer.tapes import tape as tape_of
from cgprimer.visualization.diagrams.diagram import Diagram, Edge, Node
from cgprimer.visualization.diagrams.diagram_options import DiagramOptions
from cgprimer.visualization.diagrams.level_diagrams import format_shape_suffix
from cgprimer.visualization.diagrams.path_notes import (
    check_path,
    equality_sign,
    format_array_path_notes,
    format_exact,
    format_operand,
    format_scalar_path_notes,
)
from cgprimer.visualization.diagrams.vertex_sweeps import (
    compute_local_jacobians,
    compute_sweep_numbers,
    compute_tangents,
    run_backward_sweep,
)

_MAX_EDGE_SIZE = 3  # rows and columns of a matrix on an edge
_MAX_FORMULA_LENGTH = 60  # characters; a longer formula, as of a softmax, becomes bar · ∂head/∂tail
Ends = tuple[str, str]


class _DerivativeFormatter(Protocol):
    """Formatter for the derivatives that are shown at the vertices and edges of a diagram."""

    adjoint_note: str

    def format_tangent_lines(self, key: str) -> list[str]:
        """Format the tangent of a vertex as lines of text."""
        ...

    def format_adjoint_lines(self, key: str) -> list[str]:
        """Format the adjoint of a vertex as lines of text."""
        ...

    def format_partial_lines(self, edge: Edge) -> list[str]:
        """Format the partial derivative on an edge as lines of text."""
        ...

    def format_contribution_lines(self, edge: Edge) -> list[str]:
        """Format the contribution of an edge to an adjoint as lines of text."""
        ...

    def format_path_lines(self, edges: list[Ends]) -> list[str]:
        """Format the notes about the highlighted path, one string per line."""
        ...


def add_overlays(diagram: Diagram, graph: ExpressionGraph, options: DiagramOptions) -> Diagram:
    """Add derivatives to the vertices and edges of a diagram, with explanatory notes.

    Errors are those of :func:`cgprimer.draw`.

    >>> from cgprimer.visualization.diagrams.level_diagrams import build_variable_diagram
    >>> from cgprimer.core.graph import parse
    >>> graph = parse("input xa = 3; xb = 2*xa; xw = xb^2")
    >>> result = add_overlays(build_variable_diagram(graph), graph, DiagramOptions(adjoints=True))
    >>> [node.detail[-1] for node in result.nodes], result.edges[0].label
    (['adjoint = 24', 'adjoint = 12', 'adjoint = 1'], '12 × 2 = 24')
    >>> graph = parse("input x[2] = [3, 4]; parameter w[2] = [1, 2]; xw = x @ w")
    >>> options = DiagramOptions(adjoints=True)
    >>> result = add_overlays(build_variable_diagram(graph, parameters="vertices"), graph, options)
    >>> [node.detail[-1] for node in result.nodes], result.edges[0].label.split("\\n")
    (['adjoint = [3, 4]', 'adjoint = [1, 2]', 'adjoint = 1'], ['w [2]', '= [1, 2]'])
    """
    path = options.path_vertices
    has_arrays = tape_of(graph).has_arrays
    if has_arrays and options.level == "operations" and (options.partials or path):
        raise UsageError(
            "cannot draw partials between array operations: they are Jacobians",
            hint="choose level='variables' (--level variables), or draw all elements: scalars=True"
            " (--scalars all)",
        )
    if path:
        check_path(graph, path)
    texts: _DerivativeFormatter = (_ArrayFormatter if has_arrays else _ScalarFormatter)(
        graph, options, diagram
    )
    path_edges = set(pairwise(path))

    def annotate_node(node: Node) -> Node:
        """Add the tangent and the adjoint to the text of a vertex."""
        lines = list(node.detail)
        if node.role != "constant":
            lines += texts.format_tangent_lines(node.key) if options.tangents else []
            lines += texts.format_adjoint_lines(node.key) if options.adjoints else []
        return replace(node, detail=tuple(lines), emphasis=node.key in path)

    role = {node.key: node.role for node in diagram.nodes}

    def annotate_edge(edge: Edge) -> Edge:
        """Add the partial derivative and the adjoint contribution to the label of an edge."""
        on_path = (edge.tail, edge.head) in path_edges
        lines = [edge.label] if edge.label else []
        if role[edge.tail] != "constant":
            lines += texts.format_partial_lines(edge) if options.partials or on_path else []
            lines += texts.format_contribution_lines(edge) if options.adjoints else []
        return replace(edge, label="\n".join(lines), emphasis=on_path)

    notes = list(diagram.notes)
    if options.tangents:
        seed = options.tangents if has_arrays else resolve_wrt(graph, options.tangents)[0]
        notes.append(f"tangent: derivative with respect to {seed}, computed forward from seed 1")
    if options.adjoints:
        notes.append(texts.adjoint_note)
    if path:
        notes += texts.format_path_lines([(edge.tail, edge.head) for edge in diagram.edges])
    nodes = tuple(map(annotate_node, diagram.nodes))
    edges = tuple(map(annotate_edge, diagram.edges))
    return replace(diagram, nodes=nodes, edges=edges, notes=tuple(notes))


class _ScalarFormatter:
    """Formatter for the derivatives of a graph that contains only scalars."""

    def __init__(self, graph: ExpressionGraph, options: DiagramOptions, diagram: Diagram) -> None:
        at, level = options.at, options.level
        seed = resolve_wrt(graph, options.tangents)[0] if options.tangents else None
        of = resolve_output(graph, options.of) if options.adjoints else None
        self._backward = compute_sweep_numbers(graph, at, level=level, of=of)
        forward = (
            compute_sweep_numbers(graph, at, level=level, wrt=seed) if seed else self._backward
        )
        self._tangents = forward.totals
        self._graph, self._options = graph, options
        self._labels = {node.key: node.label for node in diagram.nodes}
        self.adjoint_note = (
            f"adjoint: derivative of {of}, computed backward from seed 1; "
            "on edges: upstream × local = downstream"
        )

    def format_tangent_lines(self, key: str) -> list[str]:
        """Format the tangent of a vertex as lines of text."""
        return _format_equation("tangent", self._tangents.get(key))

    def format_adjoint_lines(self, key: str) -> list[str]:
        """Format the adjoint of a vertex as lines of text."""
        return _format_equation("adjoint", self._backward.totals.get(key))

    def format_partial_lines(self, edge: Edge) -> list[str]:
        """Format the partial derivative on an edge; show 0 if no instruction computes it."""
        local = self._backward.partials.get((edge.tail, edge.head), 0.0)
        if self._options.level == "operations":
            return [format_exact(local)]
        name = f"∂{self._labels[edge.head]}/∂{self._labels[edge.tail]}"
        return [f"{name} {equality_sign(local)} {format_exact(local)}"]

    def format_contribution_lines(self, edge: Edge) -> list[str]:
        """Format the equation ``upstream × local = downstream`` of an edge."""
        ends = (edge.tail, edge.head)
        local = self._backward.partials.get(ends, 0.0)
        upstream = self._backward.totals.get(edge.head, 0.0)
        downstream = self._backward.products.get(ends, 0.0)
        product = f"{format_exact(upstream)} × {format_operand(local)}"
        return [
            f"{product} {equality_sign(upstream, local, downstream)} {format_exact(downstream)}"
        ]

    def format_path_lines(self, edges: list[Ends]) -> list[str]:
        """Format the notes about the highlighted path, one string per line."""
        path = self._options.path_vertices
        return format_scalar_path_notes(
            compute_sweep_numbers(self._graph, self._options.at, wrt=path[0]), path, edges
        )


class _ArrayFormatter:
    """Formatter for the derivatives of a graph that contains arrays."""

    def __init__(self, graph: ExpressionGraph, options: DiagramOptions, diagram: Diagram) -> None:
        self._graph, self._path = graph, options.path_vertices
        self._jacobians: dict[Ends, Any] = {}
        if options.partials or self._path:
            self._jacobians = compute_local_jacobians(graph, options.at)
        self._tangents: Mapping[str, Any] = {}
        if options.tangents:
            self._tangents = compute_tangents(graph, options.at, options.tangents)
        self._level = options.level
        self._adjoints: dict[str, Any] = {}
        self._contributions: dict[Ends, list[str]] = {}
        self.adjoint_note = ""
        if options.adjoints:
            self._run_backward(options)

    def _run_backward(self, options: DiagramOptions) -> None:
        """Run a backward sweep to compute the adjoints, and format the contributions on edges."""
        target = resolve_output(self._graph, options.of)
        operations = options.level == "operations"
        sweep = run_backward_sweep(self._graph, options.at, target, operations=operations)
        primal = sweep.tape
        key = {i: str(i) if operations else primal.labels[i] for i in sweep.vertices}
        for (tail, head), (formula, value) in sweep.products.items():
            text = unparse(formula)
            if len(text) > _MAX_FORMULA_LENGTH:
                text = f"bar_{sweep.names[head]} · ∂{sweep.names[head]}/∂{sweep.names[tail]}"
            text += format_shape_suffix(primal.shapes[tail])
            lines = self._contributions.setdefault((key[tail], key[head]), [])
            lines += _append_elements(text, value)
        self._adjoints = {key[i]: total for i, total in sweep.totals.items()}
        self.adjoint_note = (
            f"adjoint: derivative of {target}, with the shape of its vertex; on edges: the"
            " contribution to the adjoint of the tail"
        )

    def format_tangent_lines(self, key: str) -> list[str]:
        """Format the tangent of a variable or parameter; return no lines for other operations."""
        if self._level == "operations":
            return []
        return _format_equation("tangent", self._tangents.get(key))

    def format_adjoint_lines(self, key: str) -> list[str]:
        """Format the adjoint of a vertex as lines of text."""
        return _format_equation("adjoint", self._adjoints.get(key))

    def format_partial_lines(self, edge: Edge) -> list[str]:
        """Format the Jacobian on an edge as lines of text."""
        if (value := self._jacobians.get((edge.tail, edge.head))) is None:
            return []
        name = f"∂{edge.head}/∂{edge.tail}{format_shape_suffix(value.shape)}"
        return _append_elements(name, value)

    def format_contribution_lines(self, edge: Edge) -> list[str]:
        """Format an edge's contribution to an adjoint as a formula, followed by its elements."""
        return self._contributions.get((edge.tail, edge.head), [])

    def format_path_lines(self, edges: list[Ends]) -> list[str]:
        """Format the notes about the highlighted path, one string per line."""
        return format_array_path_notes(self._graph, self._jacobians, self._path)


def _format_equation(name: str, value: Any) -> list[str]:
    """Format an equation such as ``adjoint = [1, 2]`` as lines of text; show 0 for None."""
    if value is None:
        return [f"{name} = 0"]
    first, *rest = format_array_lines(value)
    return [f"{name} {first}", *rest]


def _append_elements(text: str, value: Any) -> list[str]:
    """Append an array's elements to a line of text, or only its norm if the array is large."""
    lines = format_array_lines(value, max_size=_MAX_EDGE_SIZE)
    return [text, *(lines[-1:] if lines[-1].startswith("norm") else lines)]
