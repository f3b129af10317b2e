"""Helpers for tests of the primitive table: one-line graphs, points and comparisons."""

from __future__ import annotations

import math

import numpy as np

import cgprimer
from cgprimer.core.operations import Primitive, primitives

ROWS = primitives()
OPERANDS_OF_GRAPH = ("pa", "pb", "pc")

_INFIX = {
    "add": "pa + pb", "sub": "pa - pb", "mul": "pa * pb", "div": "pa / pb",
    "neg": "-pa", "copy": "pa", "pow": "pa ^ pb",
}  # fmt: skip

# Ranges of random points: inside the domain, away from its boundaries and from poles, so that
# rounding of the operands is not amplified. Boundaries are tested separately.
_RANGES: dict[str, list[tuple[float, float]]] = {
    name: ranges
    for names, *ranges in (
        ("div", (-3, 3), (0.3, 3)),
        ("pow", (0.1, 4), (-3, 3)),
        ("log_base", (0.05, 9), (1.3, 9)),
        ("xlogy", (-3, 3), (0.05, 9)),
        ("log log2 log10 sqrt", (0.05, 9)),
        ("log1p", (-0.9, 9)),
        ("tan sec", (-1.3, 1.3)),
        ("csc cot", (0.2, 2.9)),
        ("asin acos atanh", (-0.95, 0.95)),
        ("asec acsc acosh acoth", (1.05, 9)),
        ("acot acsch", (0.2, 9)),
        ("csch coth", (0.2, 4)),
        ("asech", (0.05, 0.95)),
    )
    for name in names.split()
}
_BOTH_SIGNS = ("asec", "acsc", "acot", "csc", "cot", "csch", "coth", "acsch", "acoth")


def ids(row: Primitive) -> str:
    return row.name


def one_line(row: Primitive) -> cgprimer.ExpressionGraph:
    """Return the graph of Return the graph ``xw = row(pa, pb, pc)``."""
    names = ", ".join(OPERANDS_OF_GRAPH[: row.arity])
    return cgprimer.parse(f"xw = {_INFIX.get(row.name, f'{row.spelling}({names})')}")


def random_points(row: Primitive, count: int, seed: int = 0) -> np.ndarray:
    """Return points of the domain, of shape (arity, count)."""
    generator = np.random.default_rng([seed, *row.name.encode()])
    ranges = _RANGES.get(row.name, [(-3.0, 3.0)] * row.arity)
    points = np.array([generator.uniform(low, high, count) for low, high in ranges])
    if row.name in _BOTH_SIGNS:
        points *= generator.choice([-1.0, 1.0], size=points.shape)
    if row.name == "where":  # both branches
        points[0] *= generator.integers(0, 2, count)
    return points


def at(row: Primitive, points) -> dict[str, np.ndarray]:
    return {
        name: np.asarray(p, float)[()] for name, p in zip(OPERANDS_OF_GRAPH, points, strict=False)
    }


def partials_by_reverse(row: Primitive, points) -> list[np.ndarray]:
    """Return the partial derivatives, computed by reverse mode on the one-line graph."""
    names = OPERANDS_OF_GRAPH[: row.arity]
    graph = one_line(row)
    result = cgprimer.gradient(graph, at(row, points), wrt=names, method="reverse")
    return [result[name] for name in names]


def values(row: Primitive, points) -> np.ndarray:
    return one_line(row).evaluate(at(row, points))["xw"]


def is_close(result: float, expected: float, *, tolerance: float = 0.0) -> bool:
    """Return whether two numbers are close or both nan; signs of zeros are ignored."""
    if math.isnan(expected) or math.isnan(result):
        return math.isnan(expected) and math.isnan(result)
    if math.isinf(expected) or math.isinf(result):
        return result == expected
    return abs(result - expected) <= tolerance * max(1.0, abs(expected))
