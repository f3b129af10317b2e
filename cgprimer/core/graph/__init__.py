"""The expression graph: which variable depends on which, and which leads to which."""

from cgprimer.core.graph.build import parse
from cgprimer.core.graph.expression_graph import ExpressionGraph, checked_graph

__all__ = ["ExpressionGraph", "checked_graph", "parse"]
