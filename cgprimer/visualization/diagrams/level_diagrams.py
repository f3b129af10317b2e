"""Diagrams of the levels `variables` and `operations`, without overlays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, TypeAlias

from cgprimer.analysis.element_graph import find_shape
from cgprimer.analysis.scalar_points import complete_point
from cgprimer.core.language.syntax_tree import operator_name
from cgprimer.core.operations import find_primitive
from cgprimer.core.operations.layer_expansions import is_statistic
from cgprimer.core.tape.tape_printing import build_expression_trees
from cgprimer.expressions import ExpressionGraph, Name, Number, Shape, fold, number_text, unparse
from cgprimer.support.number_format import SHORT, format_array_lines, mark_rounding
from cgprimer.tapes import Tape, labels, values_of
from cgprimer.tapes import tape as tape_of
from cgprimer.visualization.diagrams.diagram import Diagram, Edge, Node, Role

_REPETITIONS = {2: "twice", 3: "three times"}  # labels of the edge of a repeated operand, as in a+a
_SYMBOLS = {
    "add": "+",
    "sub": "−",
    "mul": "×",
    "div": "÷",
    "neg": "−",
    "pow": "^",
    "copy": "=",
    "matmul": "@",
}


def build_variable_diagram(
    graph: ExpressionGraph, *, at: Mapping[str, float] | None = None, parameters: str = "edges"
) -> Diagram:
    """Build a diagram with a vertex for each variable: its expression and, with ``at``, its value.

    >>> from cgprimer.core.graph import parse
    >>> [(e.tail, e.head, e.label) for e in build_variable_diagram(parse("xw = ab*xa + b")).edges]
    [('xa', 'xw', 'ab'), ('b', 'xw', '')]
    """
    values = _compute_values(graph, at)
    edge_parameters = {} if parameters == "vertices" else _find_edge_parameters(graph)
    on_edges = {name for names in edge_parameters.values() for name in names}
    # A parameter that multiplies no variable has no edge: it is drawn as a vertex.
    vertices = [name for name in graph.parameters if name not in on_edges]

    def build_node(name: str, role: Role, *lines: str) -> Node:
        """Build the diagram vertex for a variable or parameter, with its shape and its value."""
        label = name + format_shape_suffix(find_shape(graph, name))
        return Node(name, label, role, (*lines, *_format_value_lines(values, name)))

    nodes = [build_node(name, "parameter") for name in vertices]
    for name in graph.variables:
        detail = (graph.expression(name),) if name in graph.definitions else ()
        role: Role = "output" if name in graph.outputs else "inner" if detail else "input"
        nodes.append(build_node(name, role, *detail))
    edges = []
    for tail, heads in graph.leads_to.items():
        for head in heads:
            names = edge_parameters.get((tail, head), ())
            edges.append(
                Edge(tail, head, ", ".join(_format_parameter_label(n, values) for n in names))
            )
    for head, names in graph.parameters_of.items():
        edges += [Edge(name, head) for name in names if name in vertices]
    return Diagram(tuple(nodes), tuple(edges))


def build_operation_diagram(
    graph: ExpressionGraph, *, at: Mapping[str, float] | None = None
) -> Diagram:
    """Build a diagram with a vertex for each operation of the tape: its symbol and expression.

    >>> from cgprimer.core.graph import parse
    >>> [node.label for node in build_operation_diagram(parse("xw = ab*xa + 1")).nodes]
    ['xa', 'ab', '×', '1', '+']
    """
    tape = tape_of(graph)
    names, trees = labels(tape), build_expression_trees(tape)
    values = _compute_values(graph, at)
    outputs = set(tape.outputs.values())
    constants = {index for index, leaf in enumerate(tape.leaves) if leaf.kind == "constant"}
    variables = _find_variables(tape)
    nodes = []
    for index, leaf in enumerate(tape.leaves):
        if index not in constants:
            role: Role = "input" if leaf.kind == "column" else "parameter"
            role = "constant" if is_statistic(leaf.name) else role
            label = names[index] + format_shape_suffix(leaf.shape)
            lines = _format_value_lines(values, index)
            nodes.append(Node(str(index), label, role, lines, name=names[index]))
    edges: list[Edge] = []
    for (index, tree), (name, operands) in zip(trees.items(), tape.instructions, strict=True):
        kind = operator_name(name)
        spelling = find_primitive(name).spelling if isinstance(name, str) else kind
        symbol = _SYMBOLS.get(kind) or spelling
        symbol += format_shape_suffix(tape.shapes[index])
        text = f"{names[index]} = {unparse(tree)}"
        role = "output" if index in outputs else "operation"
        lines = (text, *_format_value_lines(values, index))
        variable = variables[index]
        nodes.append(Node(str(index), symbol, role, lines, name=variable))
        for operand, count in Counter(operands).items():
            tail = str(operand)
            if operand in constants:  # a vertex for each use, so that edges stay short
                tail = f"{operand}.{index}"
                text = number_text(tape.leaves[operand].value)
                nodes.insert(-1, Node(tail, text, "constant", name=variable))
            edges.append(Edge(tail, str(index), _REPETITIONS.get(count, "")))
    return Diagram(tuple(nodes), tuple(edges))


def _find_variables(tape: Tape) -> dict[int, str]:
    """Map each operation to the variable that it computes, or to the last of several variables."""
    variables: dict[int, str] = {}
    for index in range(tape.size - 1, len(tape.leaves) - 1, -1):
        name = tape.labels.get(index) or variables.get(index, "")
        variables[index] = name
        for operand in tape.instructions[index - len(tape.leaves)].operands:
            variables.setdefault(operand, name)
    return variables


def format_shape_suffix(shape: Shape) -> str:
    """Format a shape as a suffix of an array's name; return an empty string for a scalar.

    >>> format_shape_suffix((2, 3)), format_shape_suffix(())
    (' [2,3]', '')
    """
    return f" [{','.join(map(str, shape))}]" if shape else ""


def _compute_values(
    graph: ExpressionGraph, at: Mapping[str, float] | None
) -> dict[str | int, float]:
    """Compute all values on the tape of a graph at a point, keyed by index and by name."""
    if at is None:
        return {}
    tape = tape_of(graph)
    values = values_of(tape, complete_point(graph, at))
    names = (*graph.variables, *graph.parameters)
    return {**dict(enumerate(values)), **{name: values[tape.index(name)] for name in names}}


def _format_parameter_label(name: str, values: Mapping[Any, float]) -> str:
    """Format a parameter as an edge label, with its value if values are shown."""
    if name not in values:
        return name
    return f"{name}={mark_rounding(values[name], SHORT)}".replace("=≈", "≈")


def _format_value_lines(values: Mapping[Any, float], key: str | int) -> tuple[str, ...]:
    """Format a vertex's value as lines of text; return no lines if values are not shown."""
    return format_array_lines(values[key]) if key in values else ()


# The factors of a subexpression: the parameters that multiply all of it (all of its parameters, if
# it has no variable), and for each of its variables the parameters that multiply that variable.
_Factors: TypeAlias = tuple[frozenset[str], dict[str, frozenset[str]]]


def _find_edge_parameters(graph: ExpressionGraph) -> dict[tuple[str, str], list[str]]:
    """Map each edge to the parameters that multiply its tail in the expression of its head.

    In ``k*tanh(w*xa + b)`` the parameters ``k`` and ``w`` belong to the edge from ``xa``; ``b`` is
    added and belongs to no edge.
    """
    empty: frozenset[str] = frozenset()
    parameters = frozenset(graph.parameters)

    def list_leaf_factors(node: Name | Number) -> _Factors:
        """Return the factors of a leaf: the name itself for a parameter, none for a variable."""
        name = {node.name} if isinstance(node, Name) else empty
        factors = empty | (name & parameters)
        return factors, dict.fromkeys(name - factors, empty)

    def combine_factors(name: str, arguments: list[_Factors]) -> _Factors:
        """Return the parameters that multiply the result, and those that multiply each variable."""
        is_product = name in ("mul", "div", "pow")
        merged: dict[str, frozenset[str]] = {}
        for position, (_, variables) in enumerate(arguments):
            others = [
                factors for k, (factors, _) in enumerate(arguments) if is_product and k != position
            ]
            for variable, factors in variables.items():
                merged[variable] = merged.get(variable, empty).union(factors, *others)
        multiplies = is_product or name == "neg" or not merged
        return empty.union(*(factors for factors, _ in arguments if multiplies)), merged

    order = {name: k for k, name in enumerate(graph.parameters) if name not in graph.shapes}
    return {
        (tail, head): sorted((n for n in factors if n in order), key=order.__getitem__)
        for head, expression in graph.definitions.items()
        for tail, factors in fold(expression, list_leaf_factors, combine_factors)[1].items()
    }
