"""Summaries of large graphs by layers: the numbers of vertices of each role, and of edges."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from cgprimer.errors import pluralize
from cgprimer.visualization.diagrams.diagram import Diagram, Edge, Node, Role

READABLE = 60  # vertices of a sparse graph; with more, text on a slide is too small to read
_GROUPS = 3  # groups of layers in the summary of a deep graph
_MAX_LAYERS = 4  # layers that are not grouped
_MAX_LAYER_SIZE = 25  # vertices of one layer, which are stacked vertically
_MAX_NAMES = 3


def is_readable(diagram: Diagram, max_vertices: int = READABLE) -> bool:
    """Return whether all vertices and edges of a diagram fit legibly on a slide.

    A graph can have as many edges as vertices; three more edges count as one vertex.

    >>> nodes = tuple(Node(str(k), f"x{k}", "inner") for k in range(20))
    >>> edges = tuple(Edge(a.key, b.key) for a in nodes for b in nodes if a.key < b.key)
    >>> is_readable(Diagram(nodes, edges[:50])), is_readable(Diagram(nodes, edges))
    (True, False)
    """
    vertices, edges = len(diagram.nodes), len(diagram.edges)
    if vertices + max(0, edges - vertices) / 3 > max_vertices:
        return False
    joined = {key for edge in diagram.edges for key in (edge.tail, edge.head)}
    layer = assign_layers([n.key for n in diagram.nodes], [(e.tail, e.head) for e in diagram.edges])
    return max(Counter(layer[key] for key in joined).values(), default=0) <= _MAX_LAYER_SIZE


def summarize(diagram: Diagram, max_vertices: int = READABLE) -> Diagram:
    """Summarize a diagram by layers if it is too large for a slide; otherwise return it unchanged.

    The layer of a vertex is the length of the longest path to it; a vertex without a path to it is
    in the layer before its first user. Neighboring layers are merged until few enough remain. Each
    layer has one vertex per role, and edges show the number of edges that they represent.

    >>> nodes = tuple(Node(str(k), f"x{k}", "inner") for k in range(100))
    >>> chain = Diagram(nodes, tuple(Edge(str(k), str(k + 1)) for k in range(99)))
    >>> summary = summarize(chain)
    >>> len(summary.nodes), summary.nodes[0].label, summary.nodes[0].detail[0]
    (3, '34 variables', 'layers 1 to 34')
    """
    if is_readable(diagram, max_vertices):
        return diagram
    layer = assign_layers([n.key for n in diagram.nodes], [(e.tail, e.head) for e in diagram.edges])
    count = max(layer.values()) + 1
    groups = count if count <= _MAX_LAYERS else _GROUPS
    group = {key: number * groups // count for key, number in layer.items()}
    members: dict[tuple[int, Role], list[Node]] = defaultdict(list)
    for node in diagram.nodes:
        members[group[node.key], node.role].append(node)
    place = {node.key: f"{g} {role}" for (g, role), nodes in members.items() for node in nodes}
    nodes = [
        _build_summary_vertex(f"{g} {role}", role, members[g, role], layer)
        for g, role in sorted(members)
    ]
    ends = ((place[edge.tail], place[edge.head]) for edge in diagram.edges)
    counts = Counter((tail, head) for tail, head in ends if tail != head)
    edges = tuple(Edge(*ends, f"{number:,}") for ends, number in counts.items())
    note = (
        f"{pluralize(len(diagram.nodes), 'vertex', 'vertices')} and "
        f"{pluralize(len(diagram.edges), 'edge')}, summarized by layers; "
        "labels show numbers of edges"
    )
    if inside := len(diagram.edges) - counts.total():
        note += f", {pluralize(inside, 'more edge')} inside the boxes"
    short = Diagram(tuple(nodes), edges, diagram.title, (note,), summary=True)
    return replace(short, backward_arrows=diagram.backward_arrows)


def _build_summary_vertex(
    key: str, role: Role, members: list[Node], layer: Mapping[str, int]
) -> Node:
    """Build a vertex that represents all vertices with the same role in a group of layers."""
    numbers = [layer[node.key] + 1 for node in members]
    first, last = min(numbers), max(numbers)
    where = f"layer {first}" if first == last else f"layers {first} to {last}"
    kinds = Counter(node.label for node in members)
    if role == "operation":
        names = [f"{number} {label}" for label, number in kinds.most_common(_MAX_NAMES)]
    else:
        names = [", ".join([*list(kinds)[:_MAX_NAMES], *["…"][: len(kinds) > _MAX_NAMES]])]
    noun = "variable" if role == "inner" else role
    lines = (where, *names)
    return Node(key, pluralize(len(members), noun), role, lines, count=len(members))


def assign_layers(keys: Iterable[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Return the layer index of each vertex; `keys` are in topological order."""
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
