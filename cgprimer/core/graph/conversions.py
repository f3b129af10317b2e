"""A graph as other libraries see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cgprimer.core.graph.expression_graph import ExpressionGraph
from cgprimer.core.language.syntax import Name, Number, fold
from cgprimer.core.primitives.formulas import symbolic_call
from cgprimer.core.primitives.registry import primitive

if TYPE_CHECKING:
    import networkx
    import sympy


def to_networkx(graph: ExpressionGraph) -> networkx.DiGraph:
    """See :meth:`ExpressionGraph.to_networkx`."""
    import networkx

    found = networkx.DiGraph()
    for name in graph.variables:
        found.add_node(
            name,
            role=graph.role(name),
            expression=graph.expression(name) if name in graph.definitions else None,
            parameters=tuple(graph.parameters_of.get(name, ())),
        )
    found.add_edges_from((u, v) for u, heads in graph.leads_to.items() for v in heads)
    return found


def to_sympy(graph: ExpressionGraph) -> dict[str, sympy.Expr]:
    """See :meth:`ExpressionGraph.to_sympy`."""
    import sympy

    def leaf(node: Name | Number) -> Any:
        if isinstance(node, Name):
            return sympy.Symbol(node.name, real=True)
        whole = node.value % 1 == 0
        return sympy.Integer(int(node.value)) if whole else sympy.Rational(repr(node.value))

    return {
        name: fold(e, leaf, lambda row, args: symbolic_call(primitive(row), sympy, args))
        for name, e in graph.definitions.items()
    }
