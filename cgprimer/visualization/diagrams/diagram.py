"""Diagrams as data: vertices and edges, without positions.

Everything that can be drawn as boxes and arrows (an expression graph, a tape, a neural
network) is first converted to a `Diagram`; `diagram_figure.draw_diagram` draws it as a figure.
This module imports neither matplotlib nor a layout library.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal, TypeAlias

Role: TypeAlias = Literal[
    "input", "inner", "output", "parameter", "constant", "operation", "seed", "adjoint", "gradient"
]  # fmt: skip
"""The role of a vertex; `theme.py` has a color and a shape for each role."""


@dataclass(frozen=True, slots=True)
class Node:
    """A vertex of a diagram; its texts are literal: `$`, `_` and `^` are not markup.

    Attributes:
        key: identifier of the vertex in edges; not shown.
        label: the large text.
        role: the role, which determines color and shape.
        detail: lines below the label, such as the expression and the value (`"= 0.25"`).
        emphasis: True for a vertex of a highlighted path.
        count: number of vertices that the node represents; several are drawn as a stack.
        dropped: True for a vertex that dropout removes, drawn faint and dashed.
        name: name of the variable that the vertex shows or helps to compute, if the key is not a
            name; not shown.
    """

    key: str
    label: str
    role: Role
    detail: tuple[str, ...] = ()
    emphasis: bool = False
    count: int = 1
    dropped: bool = False
    name: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """An arrow from the node `tail` to the node `head`; both are node keys.

    `label` can name parameters, as in `"ab, ac"`, and can have several lines. `emphasis` marks an
    edge of a highlighted path; a `dropped` edge is drawn faint and dashed.
    """

    tail: str
    head: str
    label: str = ""
    emphasis: bool = False
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """A frame around some vertices of a diagram, such as the layers of one worker.

    `label` is the text at the top of the frame; `keys` are the keys of its nodes. Parts are ordered
    from left to right.
    """

    label: str
    keys: frozenset[str]


@dataclass(frozen=True, slots=True)
class Diagram:
    """A directed graph to be drawn, with nodes in topological order; parallel edges are allowed.

    `title` is above the picture, `notes` below it, one line each. `summary` is True if nodes
    represent several vertices each; with `backward_arrows` arrow heads are at the tails. `parts`
    are frames around vertices, from left to right.

    Raises `ValueError` if two nodes have the same key, or an edge has an unknown key.

    >>> xa = Node("xa", "xa", "input", ("= 0.25",))
    >>> xb = Node("xb", "xb", "output", ("ab*xa",))
    >>> Diagram((xa, xb), (Edge("xa", "xb", "ab"),)).edges[0].label
    'ab'
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    title: str = ""
    notes: tuple[str, ...] = ()
    summary: bool = False
    backward_arrows: bool = False
    parts: tuple[Part, ...] = ()

    def __post_init__(self) -> None:
        """Check that keys are unique and that every edge connects two nodes."""
        counts = Counter(node.key for node in self.nodes)
        for key, count in counts.items():
            if count > 1:
                raise ValueError(f"two nodes have the same key {key!r}")
        for key in (key for edge in self.edges for key in (edge.tail, edge.head)):
            if key not in counts:
                raise ValueError(f"an edge ends at {key!r}, but no node has this key")
