"""The graph of a student's values, converted to an expression graph."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import permutations, product
from math import isfinite
from typing import Any

from cgprimer.core.operations import find_primitive, float_arithmetic
from cgprimer.course.checks.stages.stage import is_close
from cgprimer.expressions import Apply, ExpressionGraph, Name, Number, parse, unparse

Node = Mapping[str, Any]  #: data, op, parents, grad and set (whether parents are a set)
OPERATIONS = ("add", "sub", "mul", "div", "pow", "neg", "exp", "log", "sin", "tanh", "relu")
_EXPONENT = r"-?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?"
_SYNONYMS = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "**": "pow", "^": "pow", "truediv": "div",
    "power": "pow", "plus": "add", "minus": "sub", "times": "mul", "multiply": "mul",
    "subtract": "sub", "divide": "div", "negative": "neg", "ln": "log",
}  # fmt: skip


def parse_operation(text: str) -> tuple[str, float | None]:
    """Parse a student's name for an operation; return the standard name and any exponent.

    >>> parse_operation("+"), parse_operation("**2"), parse_operation("ReLU")
    (('add', None), ('pow', 2.0), ('relu', None))
    """
    plain = text.strip().strip("_").casefold()
    power = re.fullmatch(rf"(?:\*\*|\^|pow) *\(?({_EXPONENT})\)?", plain)
    if power:
        return "pow", float(power[1])
    return _SYNONYMS.get(plain, plain), None


def has_finite_data(nodes: Sequence[Node]) -> bool:
    """Return whether the data of all nodes are finite floats."""
    return all(isinstance(node["data"], float) and isfinite(node["data"]) for node in nodes)


def _infer_expression(nodes: Sequence[Node], node: Node, names: Mapping[int, str]) -> str | None:
    """Return an expression that computes a node's data from its parents' data.

    The operation that the student names is tried first. Returns None if no operation matches.
    """
    operation, exponent = parse_operation(node["op"])
    parents = list(node["parents"])
    if node["set"] and len(parents) == 1 and exponent is None and _count_operands(operation) == 2:
        parents *= 2  # a set contains the operand of a*a once
    if len(parents) > 2:  # more operands than any operation has
        return None
    orders = permutations(parents) if node["set"] else [tuple(parents)]
    others = [other for other in OPERATIONS if other != operation]
    for order, name in product(orders, (operation, *others)):
        operands: list[Name | Number] = [Name(names[k]) for k in order]
        data = [nodes[k]["data"] for k in order]
        if not all(isinstance(number, float) for number in data):
            return None
        if name == "pow" and exponent is not None:
            operands, data = [*operands, Number(exponent)], [*data, exponent]
        if len(data) != _count_operands(name):
            continue
        if is_close(node["data"], float_arithmetic.float_function(name)(*data)):
            return unparse(Apply(name, tuple(operands)))
    return None


def _count_operands(name: str) -> int:
    """Return the number of operands of an operation; 0 if it is not in ``OPERATIONS``."""
    return find_primitive(name).arity if name in OPERATIONS else 0


def build_student_graph(
    nodes: Sequence[Node], names: Mapping[int, str] | None = None
) -> ExpressionGraph:
    """Build an expression graph from a student's values, for drawing and tracing.

    Args:
        nodes: the nodes that the driver reports, parents before children.
        names: names for some nodes, keyed by node; the other nodes are called ``v0``, ``v1``, ...

    Raises:
        SourceError: the nodes do not form a graph.

    >>> leaf = {"data": 3.0, "op": "", "parents": [], "set": False}
    >>> square = {"data": 9.0, "op": "*", "parents": [0, 0], "set": False}
    >>> print(build_student_graph([leaf, square]))
    input v0 = 3
    v1 = v0*v0
    output v1
    """
    all_names = {k: f"v{k}" for k in range(len(nodes))} | dict(names or {})
    lines = []
    for k, node in enumerate(nodes):
        expression = _infer_expression(nodes, node, all_names) if node["parents"] else None
        if expression:
            lines.append(f"{all_names[k]} = {expression}")
        else:  # a node whose operation is unknown is an input
            data = node["data"]
            value = f" = {data!r}" if isinstance(data, float) and abs(data) < 1e300 else ""
            lines.append(f"input {all_names[k]}{value}")
    if not lines[-1].startswith("input "):
        lines.append(f"output {all_names[len(nodes) - 1]}")
    return parse("\n".join(lines))
