"""Graphs that several tests draw."""

from __future__ import annotations

import cgprimer

F1 = """input x[2] = [1, 2]; parameter w1[2,2] = [[1, -1], [.5, -2]], w2[2] = [1, 3], y = 1
xh = x @ w1; xr = relu(xh); xp = xr @ w2; xL = (xp - y)^2"""


def load(graph: str) -> cgprimer.ExpressionGraph:
    """Load an example by its name, or parse a text."""
    return cgprimer.parse(graph) if "=" in graph else cgprimer.load(graph)
