"""Hypothesis strategies for random graphs and points, with a scale for rounding errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

import cgprimer
from cgprimer.core.graph import ExpressionGraph

INPUTS = ("xa", "xb", "xc")
PARAMETERS = ("p", "q", "r", "s")
# Smooth functions that are defined for all real arguments.
FUNCTIONS = (
    "sin({})", "cos({})", "tanh({})", "sigmoid({})", "atan({})", "exp(0.5*{})", "softplus({})",
    "log(1 + ({})^2)", "sqrt(1 + ({})^2)", "erf({})", "asinh({})",
)  # fmt: skip
LARGEST = 1e3  # maximum magnitude: points with larger values or partials are discarded


@dataclass(frozen=True)
class Case:
    """A graph, a point, and the scale of the numbers that rounding errors are relative to."""

    graph: ExpressionGraph
    at: dict[str, float]
    scale: float

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.graph.variables, *self.graph.parameters)


@st.composite
def expressions(draw, names: tuple[str, ...], depth: int = 2) -> str:
    """Generate the text of one right-hand side over some names."""
    kind = draw(st.integers(0, 9)) if depth else 0
    if kind <= 1:
        if draw(st.integers(0, 4)):
            return draw(st.sampled_from(names))
        return draw(st.sampled_from(("1", "2", "0.5", "3", "0.25")))
    if kind == 2:
        inner = draw(expressions(names, depth - 1))
        return f"({inner})^{draw(st.sampled_from(('2', '3', '-1', '1')))}"
    if kind == 3:
        return draw(st.sampled_from(FUNCTIONS)).format(draw(expressions(names, depth - 1)))
    if kind == 4:
        return f"-({draw(expressions(names, depth - 1))})"
    operator = draw(st.sampled_from("++--***/"))
    left, right = draw(expressions(names, depth - 1)), draw(expressions(names, depth - 1))
    return f"({left}){operator}({right})"


@st.composite
def graphs(draw, *, most: int = 8) -> ExpressionGraph:
    """Generate graphs of 1 to 3 inputs, 0 to 4 parameters and 1 to 8 expressions."""
    names = [*INPUTS[: draw(st.integers(1, 3))], *PARAMETERS[: draw(st.integers(0, 4))]]
    lines = []
    count = draw(st.integers(1, most))
    for number in range(1, count + 1):
        text = draw(expressions(tuple(names)))
        # Reuse earlier vertices so that the graph has long paths.
        if number == 1 or draw(st.integers(0, 3)):
            earlier = f"v{draw(st.integers(1, number - 1))}" if number > 1 else names[0]
            text = f"({text}) {draw(st.sampled_from('+-*'))} {earlier}"
        lines.append(f"v{number} = {text}")
        names.append(f"v{number}")
    lines.append(f"output v{count}")
    return cgprimer.parse(lines)


@st.composite
def cases(draw, *, most: int = 8) -> Case:
    """Generate a graph and a point at which all values are of moderate size."""
    graph = draw(graphs(most=most))
    coordinate = st.floats(-2.0, 2.0).map(lambda x: round(x, 3))
    at = {name: draw(coordinate) for name in (*graph.inputs, *graph.parameters)}
    scale = magnitude(graph, at)
    assume(scale <= LARGEST)
    return Case(graph, at, scale)


def magnitude(graph: ExpressionGraph, at: dict[str, float]) -> float:
    """Return the maximum of 1, all values, partials, adjoints and their products.

    Methods add the same products in different orders, so their rounding errors are relative to
    the largest term, not to the result, in which terms may cancel.
    """
    values = graph.evaluate(at)
    edges = cgprimer.partials(graph, at)
    partials = {**edges.variable_to_variable, **edges.variable_to_parameter}
    adjoints = cgprimer.gradient(graph, at, wrt=(*graph.variables, *graph.parameters))
    products = [partial * adjoints[head] for (head, _), partial in partials.items()]
    numbers = np.abs([1.0, *values.values(), *partials.values(), *adjoints.values(), *products])
    return float(np.max(numbers)) if np.all(np.isfinite(numbers)) else np.inf
