"""A page on which a reader zooms into a large graph, searches it, and opens and closes groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cgprimer.errors import pluralize
from cgprimer.visualization.diagrams.diagram import Diagram
from cgprimer.visualization.diagrams.theme import LIGHT, list_roles
from cgprimer.visualization.pages.exploring.vertex_groups import (
    MAX_MEMBERS,
    VertexGroup,
    choose_open_groups,
    group_vertices,
)
from cgprimer.visualization.pages.page_rendering import encode_script_data, render_page

_MAX_PARAMETERS = 8  # learnable parameters of a large graph without a group for them


def explorer_page(diagram: Diagram, *, dark: bool = False) -> str:
    """Render a page that shows a diagram of any size.

    >>> from cgprimer.visualization.diagrams.diagram import Node
    >>> page = explorer_page(Diagram((Node("xa", "xa", "input"),), ()))
    >>> "<title>Graph of 1 vertex and 0 edges</title>" in page
    True
    """
    vertices = pluralize(len(diagram.nodes), "vertex", "vertices")
    edges = pluralize(len(diagram.edges), "edge")
    return render_page(
        "visualization/pages/exploring/explorer_page.html",
        diagram.title or f"Graph of {vertices} and {edges}",
        dark=dark,
        summary=f"{vertices} and {edges}",
        notes=diagram.notes,
        data=encode_script_data(collect_explorer_data(diagram)),
    )


def collect_explorer_data(diagram: Diagram) -> dict[str, Any]:
    """Collect the data of the page: vertices, groups and edges with indices instead of names.

    The vertices are ordered such that each group consists of consecutive vertices. The entries of
    a group are its label, the index of its first vertex, the index after its last vertex, and 1 if
    the group is open at the start. Outer groups precede inner groups; the first contains all.

    >>> from cgprimer.visualization.diagrams.diagram import Edge, Node
    >>> nodes = (Node("xa", "xa", "input", ("= 2",)), Node("xb", "xb", "output", ("3*xa", "= 6")))
    >>> data = collect_explorer_data(Diagram(nodes, (Edge("xa", "xb"),)))
    >>> data["vertices"]["details"], data["groups"], data["edges"]["ends"]
    (['= 2', '3*xa\\n= 6'], [['', 0, 2, 1]], [0, 1])
    """
    index = {node.key: number for number, node in enumerate(diagram.nodes)}
    ends = [(index[edge.tail], index[edge.head]) for edge in diagram.edges]
    names = [node.name or node.label.partition(" ")[0] for node in diagram.nodes]
    parts = [(part.label, [index[key] for key in part.keys]) for part in diagram.parts]
    parameters = [k for k, node in enumerate(diagram.nodes) if node.role == "parameter"]
    closed = not parts and len(names) > MAX_MEMBERS and len(parameters) > _MAX_PARAMETERS
    if closed:  # the picture starts with the flow of the data
        parts = [("learnable parameters", parameters)]
    root = group_vertices(names, ends, parts, closed)
    opened = {id(group) for group in choose_open_groups(root)} | {id(root)}
    order, groups = _list_groups(root, opened)
    nodes = [diagram.nodes[number] for number in order]
    positions = {number: position for position, number in enumerate(order)}
    roles = list_roles(diagram)
    labels = [edge.label for edge in diagram.edges]
    return {
        "roles": [
            {"name": role, "label": style.label, "shape": style.shape, "width": style.line_width}
            for role, style in ((role, LIGHT.roles[role]) for role in roles)
        ],
        "vertices": {
            "labels": [node.label for node in nodes],
            "roles": [roles.index(node.role) for node in nodes],
            "details": ["\n".join(node.detail) for node in nodes],
            "emphasis": [position for position, node in enumerate(nodes) if node.emphasis],
            "dropped": [position for position, node in enumerate(nodes) if node.dropped],
        },
        "groups": groups,
        "edges": {
            "ends": [positions[number] for pair in ends for number in pair],
            "labels": labels if any(labels) else [],
            "emphasis": [number for number, edge in enumerate(diagram.edges) if edge.emphasis],
            "dropped": [number for number, edge in enumerate(diagram.edges) if edge.dropped],
        },
        "backward": diagram.backward_arrows,
    }


def _list_groups(root: VertexGroup, opened: set[int]) -> tuple[list[int], list[list[Any]]]:
    """Return the vertices in the order of the groups, and the entry of each group."""
    order: list[int] = []
    entries: list[list[Any]] = []
    stack: list[tuple[list[Any], Iterator[int | VertexGroup]]] = []

    def enter(group: VertexGroup) -> None:
        """Begin the entry of a group."""
        entries.append([group.label, len(order), 0, int(id(group) in opened)])
        stack.append((entries[-1], iter(group.members)))

    enter(root)
    while stack:
        entry, members = stack[-1]
        member = next(members, None)
        if member is None:
            entry[2] = len(order)
            stack.pop()
        elif isinstance(member, VertexGroup):
            enter(member)
        else:
            order.append(member)
    return order, entries
