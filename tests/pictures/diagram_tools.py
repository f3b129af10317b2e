"""Graphs that several tests draw, and what they look up in a diagram."""

from __future__ import annotations

import cgprimer
from cgprimer.visualization.diagrams.diagram import Diagram

F1 = """input x[2] = [1, 2]; parameter w1[2,2] = [[1, -1], [.5, -2]], w2[2] = [1, 3], y = 1
xh = x @ w1; xr = relu(xh); xp = xr @ w2; xL = (xp - y)^2"""


def load(graph: str) -> cgprimer.ExpressionGraph:
    """Load an example by its name, or parse a text."""
    return cgprimer.parse(graph) if "=" in graph else cgprimer.load(graph)


def labels_of(diagram: Diagram) -> dict[tuple[str, str], str]:
    """Return the labels of the edges."""
    return {(e.tail, e.head): e.label.replace("\n", " ") for e in diagram.edges}


def details(diagram: Diagram) -> dict[str, tuple[str, ...]]:
    """Return the detail lines of each vertex by its label."""
    return {node.label: node.detail for node in diagram.nodes}
