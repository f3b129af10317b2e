"""Reference derivatives, independent of the package: difference quotients in 60 digits.

The parsed expressions are evaluated with mpmath, without tapes, partials, methods or engines.
Steps of 1e-20 leave forty digits of a first and twenty of a second derivative.
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
    """Evaluate a primitive on mpmath numbers."""
    if name == "stop_gradient":
        return operands[0]
    return symbolic_arithmetic.mpmath_function(name)(*operands)


def evaluate_shifted(
    graph: ExpressionGraph, at: Mapping[str, object], by: Mapping[str, mpmath.mpf], of: str
) -> mpmath.mpf:
    """Return the value of ``of`` with offsets added to variables or parameters."""
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
    """Return the gradient of an output at a scalar point."""
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
    """Return the Hessian of the only output at a scalar point."""
    signs = [(1, 1), (1, -1), (-1, 1), (-1, -1)]

    def second(a: str, b: str) -> float:
        total = mpmath.mpf(0)
        for p, q in signs:
            by = {a: p * STEP, b: q * STEP} if a != b else {a: (p + q) * STEP}
            total += p * q * evaluate_shifted(graph, at, by, graph.outputs[0])
        return float(total / (4 * STEP**2))

    with mpmath.workdps(DIGITS):
        return {a: {b: second(a, b) for b in wrt} for a in wrt}
