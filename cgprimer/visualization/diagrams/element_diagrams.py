"""Some vertices of a graph with arrays opened into their numbers, the others left as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cgprimer.analysis.element_graph import elements_of, in_elements
from cgprimer.errors import UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.value_names import element_hint
from cgprimer.visualization.diagrams.diagram import Diagram, Edge


def opened(
    graph: ExpressionGraph, arrays: Diagram, numbers: Diagram, names: Sequence[str]
) -> Diagram:
    """A picture of both: of the vertices that are named, the numbers.

    Args:
        graph: the graph.
        arrays: its picture.
        numbers: the picture of :func:`cgprimer.analysis.element_graph.in_elements`; both have
            parameters as vertices.
        names: what is opened.

    Raises:
        UsageError: a name that the graph has not.
    """
    known = (*graph.parameters, *graph.variables)
    for name in names:
        if name not in known:
            hint = element_hint(name, known)
            raise UsageError(f"the graph has no vertex {name!r} to open", hint=hint)
    home = {element: name for name in known for element in elements_of(graph, name)}
    own = {*home}
    rank = {name: number for number, name in enumerate(known)}
    written_out = in_elements(graph)
    for inner in reversed(written_out.variables):  # a shared part belongs to its first user
        if inner not in home:
            first = (home[user] for user in written_out.leads_to[inner])
            home[inner] = min(first, key=rank.__getitem__)
    place = {}
    for element, name in home.items():
        users = {home[user] for user in written_out.leads_to.get(element, ())}
        alone = element in own or users == {name}
        place[element] = element if name in names or not alone else name
    nodes = {node.key: node for node in (*numbers.nodes, *arrays.nodes)}
    order = {node.key: number for number, node in enumerate(numbers.nodes)}
    keys = sorted(order, key=lambda element: (rank[home[element]], order[element]))
    edges: dict[tuple[str, str], Edge] = {}
    for whole, diagram in ((False, numbers), (True, arrays)):
        for edge in diagram.edges:
            ends = (edge.tail, edge.head) if whole else (place[edge.tail], place[edge.head])
            same = ends == (edge.tail, edge.head)
            if whole and ends in edges:  # what is written between two arrays
                edges[ends] = edge
            elif not whole and ends[0] != ends[1]:
                edges.setdefault(ends, edge if same else Edge(*ends))
    shown = tuple(nodes[key] for key in dict.fromkeys(place[element] for element in keys))
    notes = tuple(dict.fromkeys((*arrays.notes, *numbers.notes)))
    return replace(arrays, nodes=shown, edges=tuple(edges.values()), notes=notes)
