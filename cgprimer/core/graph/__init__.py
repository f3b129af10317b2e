"""The expression graph: which variable depends on which, and which leads to which."""

from cgprimer.core.graph.construction import build_graph as build_graph
from cgprimer.core.graph.construction import parse as parse
from cgprimer.core.graph.expression_graph import ExpressionGraph as ExpressionGraph
from cgprimer.core.graph.expression_graph import check_graph as check_graph
