"""The expression graph: which variable depends on which, and which leads to which."""

from cgprimer.graph.build import load, parse
from cgprimer.graph.expression_graph import ExpressionGraph, checked_graph

__all__ = ["ExpressionGraph", "checked_graph", "load", "parse"]
