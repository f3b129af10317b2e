"""What a graph can be turned into: values, text, and graphs and expressions of other libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cgprimer.core.graph.expression_graph import ExpressionGraph
from cgprimer.core.language.syntax import Definition, Name, Number, fold
from cgprimer.core.language.unparse import number_text
from cgprimer.core.primitives import floats
from cgprimer.core.primitives.notation import unparse
from cgprimer.core.primitives.registry import primitive
from cgprimer.numbers_and_arrays import Value, common_shape

if TYPE_CHECKING:
    import networkx
    import sympy


def values(graph: ExpressionGraph, point: dict[str, Value]) -> dict[str, Value]:
    """See :meth:`ExpressionGraph.evaluate`; the point is complete."""
    shape = common_shape(point.values())
    if not shape:
        return _values(graph, point, floats.function)
    import numpy as np

    from cgprimer.core.primitives import arrays

    with np.errstate(all="ignore"):
        found = _values(graph, point, arrays.function)
    return {name: np.array(np.broadcast_to(value, shape)) for name, value in found.items()}


def _values(
    graph: ExpressionGraph, known: dict[str, Value], function: Callable[[str], Callable[..., Any]]
) -> dict[str, Value]:
    for name, expression in graph.definitions.items():
        known[name] = fold(
            expression,
            lambda leaf: known[leaf.name] if isinstance(leaf, Name) else leaf.value,
            lambda row, arguments: function(row)(*arguments),
        )
    return {name: known[name] for name in graph.variables}


def to_text(graph: ExpressionGraph) -> str:
    """Text that parses to the same graph."""
    lines: list[str] = []
    role = ""
    for statement in graph.program.statements:
        if isinstance(statement, Definition):
            lines.append(f"{statement.name} = {unparse(statement.expression)}")
            role = ""
            continue
        name = statement.name
        text = name if statement.value is None else f"{name} = {number_text(statement.value)}"
        if statement.role == role:
            lines[-1] += f", {text}"
        else:
            lines.append(f"{statement.role} {text}")
        role = statement.role
    return "\n".join(lines)


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

    from cgprimer.core.primitives.formulas import symbolic_call

    def leaf(node: Name | Number) -> Any:
        if isinstance(node, Name):
            return sympy.Symbol(node.name, real=True)
        whole = node.value % 1 == 0
        return sympy.Integer(int(node.value)) if whole else sympy.Rational(repr(node.value))

    return {
        name: fold(e, leaf, lambda row, args: symbolic_call(primitive(row), sympy, args))
        for name, e in graph.definitions.items()
    }
