"""The data a picture is drawn from: vertices, edges, and nothing about where they go.

Everything that can be drawn as boxes and arrows (an expression graph, a tape, a neural
network) is first turned into a `Diagram`; `figure.draw_diagram` turns that into a figure.
This module imports neither matplotlib nor a layout library.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal, TypeAlias

Role: TypeAlias = Literal[
    "input", "inner", "output", "parameter", "constant", "operation", "seed", "adjoint", "gradient"
]  # fmt: skip
"""What a vertex is for; every role has a colour and a shape of its own in `theme.py`."""


@dataclass(frozen=True, slots=True)
class Node:
    """One vertex of a picture.

    `key` names it in edges and is not shown; `label` is the large text; `detail` holds further
    lines under it, such as the expression and the value (`"= 0.25"`); `emphasis` marks a vertex
    of a highlighted path; a node that stands for a `count` of vertices is drawn as a stack; a
    `dropped` one is drawn faint and dashed. All text is shown as it is written: `$`, `_` and `^`
    have no meaning.
    """

    key: str
    label: str
    role: Role
    detail: tuple[str, ...] = ()
    emphasis: bool = False
    count: int = 1
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class Edge:
    """An arrow from `tail` to `head` (node keys).

    `label` may name parameters, as in `"ab, ac"`; a line break in it begins a new line.
    `emphasis` marks an edge of a highlighted path; a `dropped` edge is drawn faint and dashed.
    """

    tail: str
    head: str
    label: str = ""
    emphasis: bool = False
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """Vertices that are drawn in one frame, such as the layers of one worker.

    `label` stands above them; `keys` are those of the nodes. Parts stand from left to right.
    """

    label: str
    keys: frozenset[str]


@dataclass(frozen=True, slots=True)
class Diagram:
    """A directed graph to draw. Nodes stand in topological order; parallel edges are allowed.

    `title` stands above the picture, `notes` under it, a line each. `summary` says that the nodes
    stand for many vertices each; with `backward_arrows` arrow heads are at the tails. `parts` are
    frames around vertices, from left to right.

    Raises `ValueError` where two nodes share a key or an edge names a key that no node has.

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
        """Check that every edge ends at nodes that exist."""
        known = Counter(node.key for node in self.nodes)
        for key, count in known.items():
            if count > 1:
                raise ValueError(f"two nodes have the key {key!r}")
        for key in (key for edge in self.edges for key in (edge.tail, edge.head)):
            if key not in known:
                raise ValueError(f"an edge names {key!r}, which is no node of the diagram")
