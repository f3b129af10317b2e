"""The expression graph: which variable depends on which, and which leads to which."""

from cgprimer.graph.build import load, parse
from cgprimer.graph.expression_graph import ExpressionGraph

__all__ = ["ExpressionGraph", "load", "parse"]
