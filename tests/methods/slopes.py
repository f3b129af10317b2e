"""Derivatives that nothing of the package had a hand in: quotients of differences in 60 digits.

A graph's expressions are folded over mpmath numbers as they were parsed: no tape, no partial of
the table, no method, no engine. Steps of 1e-20 leave forty digits of a first and twenty of a
second derivative.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import mpmath

from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.language.syntax_tree import Name, fold
from cgprimer.core.operations import symbolic_arithmetic

DIGITS = 60
STEP = mpmath.mpf("1e-20")


def apply_primitive(name: str, operands: Sequence[object]) -> object:
    """A primitive on mpmath's numbers."""
    if name == "stop_gradient":
        return operands[0]
    return symbolic_arithmetic.mpmath_function(name)(*operands)


def evaluate_shifted(
    graph: ExpressionGraph, at: Mapping[str, object], by: Mapping[str, mpmath.mpf], of: str
) -> mpmath.mpf:
    """The value of ``of`` when some variables or parameters are moved: inner ones, too."""
    values = {
        name: mpmath.mpf(float(at[name])) + by.get(name, 0)
        for name in (*graph.inputs, *graph.parameters)
        if name in at
    }
    for name, expression in graph.definitions.items():
        values[name] = by.get(name, 0) + fold(
            expression,
            lambda leaf: values[leaf.name] if isinstance(leaf, Name) else mpmath.mpf(leaf.value),
            apply_primitive,
        )
    return values[of]


def reference_gradient(
    graph: ExpressionGraph, at: Mapping[str, float], wrt: Sequence[str], of: str | None = None
) -> dict[str, float]:
    """The gradient of an output at a point of numbers."""
    of = of or graph.outputs[0]
    with mpmath.workdps(DIGITS):
        return {
            name: float(
                (
                    evaluate_shifted(graph, at, {name: STEP}, of)
                    - evaluate_shifted(graph, at, {name: -STEP}, of)
                )
                / (2 * STEP)
            )
            for name in wrt
        }


def reference_hessian(
    graph: ExpressionGraph, at: Mapping[str, float], wrt: Sequence[str]
) -> dict[str, dict[str, float]]:
    """The Hessian of the only output at a point of numbers."""
    signs = [(1, 1), (1, -1), (-1, 1), (-1, -1)]

    def second(a: str, b: str) -> float:
        total = mpmath.mpf(0)
        for p, q in signs:
            by = {a: p * STEP, b: q * STEP} if a != b else {a: (p + q) * STEP}
            total += p * q * evaluate_shifted(graph, at, by, graph.outputs[0])
        return float(total / (4 * STEP**2))

    with mpmath.workdps(DIGITS):
        return {a: {b: second(a, b) for b in wrt} for a in wrt}
