"""Diagrams in which some arrays of a graph are shown as their elements."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from cgprimer.analysis.element_graph import expand_elements, list_element_names
from cgprimer.errors import UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.value_names import element_hint
from cgprimer.visualization.diagrams.diagram import Diagram, Edge


def expand_arrays(
    graph: ExpressionGraph, arrays: Diagram, elements: Diagram, names: Sequence[str]
) -> Diagram:
    """Replace the vertex of each named array in a diagram by the vertices of its elements.

    Args:
        graph: the graph.
        arrays: the diagram of the graph.
        elements: the diagram of :func:`cgprimer.analysis.element_graph.expand_elements`; both
            diagrams have parameters as vertices.
        names: arrays that are opened.

    Raises:
        UsageError: a name is not in the graph.
    """
    vertices = (*graph.parameters, *graph.variables)
    for name in names:
        if name not in vertices:
            hint = element_hint(name, vertices)
            raise UsageError(f"unknown vertex {name!r} in `scalars`", hint=hint)
    rank = {name: position for position, name in enumerate(vertices)}
    array_of = _map_elements_to_arrays(graph, rank)
    key_of = _choose_vertices(graph, array_of, names)
    nodes = {node.key: node for node in (*elements.nodes, *arrays.nodes)}
    order = {node.key: position for position, node in enumerate(elements.nodes)}
    keys = sorted(order, key=lambda element: (rank[array_of[element]], order[element]))
    shown = tuple(nodes[key] for key in dict.fromkeys(key_of[element] for element in keys))
    notes = tuple(dict.fromkeys((*arrays.notes, *elements.notes)))
    return replace(arrays, nodes=shown, edges=_merge_edges(arrays, elements, key_of), notes=notes)


def _map_elements_to_arrays(graph: ExpressionGraph, rank: Mapping[str, int]) -> dict[str, str]:
    """Map each vertex of the element graph to its variable or parameter in the original graph.

    A value that several elements share, such as the sum of a softmax, belongs to its first user.
    """
    array_of = {element: name for name in rank for element in list_element_names(graph, name)}
    element_graph = expand_elements(graph)
    for inner in reversed(element_graph.variables):
        if inner not in array_of:
            users = (array_of[user] for user in element_graph.leads_to[inner])
            array_of[inner] = min(users, key=rank.__getitem__)
    return array_of


def _choose_vertices(
    graph: ExpressionGraph, array_of: Mapping[str, str], names: Collection[str]
) -> dict[str, str]:
    """Map each array element to the vertex that represents it: its own, or that of its array."""
    element_graph = expand_elements(graph)
    elements = {e for name in {*array_of.values()} for e in list_element_names(graph, name)}
    keys = {}
    for element, name in array_of.items():
        users = {array_of[user] for user in element_graph.leads_to.get(element, ())}
        is_inside = element in elements or users == {name}
        keys[element] = element if name in names or not is_inside else name
    return keys


def _merge_edges(arrays: Diagram, elements: Diagram, key_of: Mapping[str, str]) -> tuple[Edge, ...]:
    """Return the edges between the drawn vertices; edges between whole arrays keep their labels."""
    edges: dict[tuple[str, str], Edge] = {}
    for edge in elements.edges:
        ends = (key_of[edge.tail], key_of[edge.head])
        is_same = ends == (edge.tail, edge.head)
        if ends[0] != ends[1]:
            edges.setdefault(ends, edge if is_same else Edge(*ends))
    for edge in arrays.edges:
        if (edge.tail, edge.head) in edges:
            edges[edge.tail, edge.head] = edge
    return tuple(edges.values())
