"""Graphs too large to read, by layers: how many vertices of which kind, and how many edges."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from cgprimer.errors import pluralize
from cgprimer.visualization.diagrams.diagram import Diagram, Edge, Node, Role

READABLE = 60  # vertices of a sparse graph; with more, text on a slide is too small to read
_GROUPS = 3  # into which the layers are put together if there are more than a slide has room for
_MOST_LAYERS = 4
_MOST_SIDE_BY_SIDE = 25  # vertices of one layer, which stand under each other
_NAMED = 3


def is_readable(diagram: Diagram, readable: int = READABLE) -> bool:
    """Tell whether a slide has room for every vertex and edge of a diagram.

    A graph may have as many edges as vertices; three more count as much as a vertex.

    >>> nodes = tuple(Node(str(k), f"x{k}", "inner") for k in range(20))
    >>> edges = tuple(Edge(a.key, b.key) for a in nodes for b in nodes if a.key < b.key)
    >>> is_readable(Diagram(nodes, edges[:50])), is_readable(Diagram(nodes, edges))
    (True, False)
    """
    vertices, edges = len(diagram.nodes), len(diagram.edges)
    if vertices + max(0, edges - vertices) / 3 > readable:
        return False
    joined = {key for edge in diagram.edges for key in (edge.tail, edge.head)}
    layer = assign_layers([n.key for n in diagram.nodes], [(e.tail, e.head) for e in diagram.edges])
    return max(Counter(layer[key] for key in joined).values(), default=0) <= _MOST_SIDE_BY_SIDE


def summarize(diagram: Diagram, readable: int = READABLE) -> Diagram:
    """A diagram that can be read: itself, or its layers with counts.

    A vertex's layer is the length of the longest way to it; what has no way to it stands in the
    layer before its first user. Neighbouring layers are put together until few enough are left.
    Each layer has one vertex for each role in it, and edges say how many edges they stand for.

    >>> nodes = tuple(Node(str(k), f"x{k}", "inner") for k in range(100))
    >>> chain = Diagram(nodes, tuple(Edge(str(k), str(k + 1)) for k in range(99)))
    >>> found = summarize(chain)
    >>> len(found.nodes), found.nodes[0].label, found.nodes[0].detail[0]
    (3, '34 variables', 'layers 1 to 34')
    """
    if is_readable(diagram, readable):
        return diagram
    layer = assign_layers([n.key for n in diagram.nodes], [(e.tail, e.head) for e in diagram.edges])
    count = max(layer.values()) + 1
    groups = count if count <= _MOST_LAYERS else _GROUPS
    group = {key: number * groups // count for key, number in layer.items()}
    members: dict[tuple[int, Role], list[Node]] = defaultdict(list)
    for node in diagram.nodes:
        members[group[node.key], node.role].append(node)
    place = {node.key: f"{g} {role}" for (g, role), found in members.items() for node in found}
    nodes = [
        _summary_vertex(f"{g} {role}", role, members[g, role], layer) for g, role in sorted(members)
    ]
    ends = ((place[edge.tail], place[edge.head]) for edge in diagram.edges)
    counts = Counter((tail, head) for tail, head in ends if tail != head)
    edges = tuple(Edge(*ends, f"{number:,}") for ends, number in counts.items())
    note = (
        f"{pluralize(len(diagram.nodes), 'vertex', 'vertices')} and "
        f"{pluralize(len(diagram.edges), 'edge')}, summarised by layers; "
        "numbers on edges count them"
    )
    if inside := len(diagram.edges) - counts.total():
        note += f", {pluralize(inside, 'more edge')} inside the boxes"
    short = Diagram(tuple(nodes), edges, diagram.title, (note,), summary=True)
    return replace(short, backward_arrows=diagram.backward_arrows)


def _summary_vertex(key: str, role: Role, found: list[Node], layer: Mapping[str, int]) -> Node:
    assign_layers = [layer[node.key] + 1 for node in found]
    first, last = min(assign_layers), max(assign_layers)
    where = f"layer {first}" if first == last else f"layers {first} to {last}"
    kinds = Counter(node.label for node in found)
    if role == "operation":
        named = [f"{number} {label}" for label, number in kinds.most_common(_NAMED)]
    else:
        named = [", ".join([*list(kinds)[:_NAMED], *["…"][: len(kinds) > _NAMED]])]
    noun = "variable" if role == "inner" else role
    return Node(key, pluralize(len(found), noun), role, (where, *named), count=len(found))


def assign_layers(keys: Iterable[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """The layer of each vertex, counted from 0; they come in topological order."""
    heads: dict[str, list[str]] = defaultdict(list)
    for tail, head in edges:
        heads[tail].append(head)
    layer = dict.fromkeys(keys, 0)
    for key in layer:
        for head in heads[key]:
            layer[head] = max(layer[head], layer[key] + 1)
    for key in layer.keys() - {head for _, head in edges}:
        layer[key] = min((layer[head] for head in heads[key]), default=1) - 1
    return layer
