"""Primitives of the table: derivatives and the Python, numpy and sympy forms agree."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import cgprimer
from cgprimer.core.operations import Primitive, numpy_arithmetic
from cgprimer.core.operations.symbolic_arithmetic import get_sympy_form
from tests.methods.slopes import reference_gradient, reference_hessian
from tests.primitives.row_tools import (
    OPERANDS_OF_GRAPH,
    ROWS,
    at,
    ids,
    is_close,
    one_line,
    partials_by_reverse,
    random_points,
    values,
)

# The gradient of stop_gradient is not the derivative of its value, by definition.
DIFFERENTIABLE = [row for row in ROWS if row.name != "stop_gradient"]


def error(result: float, expected: float) -> float:
    """Return the error relative to the larger of 1 and the expected number."""
    return abs(result - expected) / max(1.0, abs(expected))


@pytest.mark.parametrize("row", DIFFERENTIABLE, ids=ids)
def test_partials_match_difference_quotients(row):
    """Compare with difference quotients in mpmath.

    The tolerance is relative to the larger of 1 and the derivative: ``1 - out*out`` is accurate to
    a few roundings of numbers of size one.
    """
    points, names = random_points(row, 12), OPERANDS_OF_GRAPH[: row.arity]
    result = np.transpose(partials_by_reverse(row, points))
    for operands, partials in zip(points.T, result, strict=True):
        expected = [*reference_gradient(one_line(row), at(row, operands), names).values()]
        assert max(map(error, partials, expected)) <= 1e-13, (operands, partials, expected)


@pytest.mark.parametrize("row", [r for r in ROWS if get_sympy_form(r) is not None], ids=ids)
def test_sympy_form_matches_numpy(row):
    """Its derivatives are checked by test_gradients_by_every_method."""
    import sympy

    symbols = sympy.symbols("a b c", real=True)[: row.arity]
    formula = get_sympy_form(row)(sympy, *symbols)
    points = random_points(row, 3, seed=2)
    for operands, value in zip(points.T, values(row, points), strict=True):
        exact = {s: sympy.Float(float(o), 40) for s, o in zip(symbols, operands, strict=True)}
        expected = float(sympy.re(formula.subs(exact).doit().evalf(30)))
        assert is_close(float(value), expected, tolerance=1e-12), operands


def differentiable_operands(row: Primitive) -> tuple[str, ...]:
    """Return the operands to differentiate: the condition of ``where`` has a jump at 0."""
    return OPERANDS_OF_GRAPH[row.name == "where" : row.arity]


@pytest.mark.parametrize("row", DIFFERENTIABLE, ids=ids)
def test_gradients_by_every_method(row):
    """Embed the primitive in a product and a square, so that value and derivative both matter."""
    names = differentiable_operands(row)
    graph = cgprimer.parse(f"{one_line(row)}; xs = xw^2 + pa*xw; output xs")
    points = random_points(row, 5, seed=4)
    expected = [reference_gradient(graph, at(row, p), names) for p in points.T]
    for method in cgprimer.methods():
        result = cgprimer.gradient(graph, at(row, points), wrt=names, method=method)
        tolerance = 1e-5 if method == "finite-difference" else 1e-12
        for name in names:
            pairs = zip(result[name], expected, strict=True)
            assert max(error(f, e[name]) for f, e in pairs) <= tolerance, (method, name)


@pytest.mark.parametrize("row", DIFFERENTIABLE, ids=ids)
def test_second_derivatives_by_several_methods(row):
    """Differentiate the derivative expressions again by several methods."""
    names = differentiable_operands(row)
    graph, points = one_line(row), random_points(row, 4, seed=5)
    expected = [reference_hessian(graph, at(row, p), names) for p in points.T]
    for method in ("forward-over-reverse", "reverse-over-forward", "path-sum", "symbolic",
                   "finite-difference-over-reverse"):  # fmt: skip
        result = cgprimer.hessian(graph, at(row, points), wrt=names, method=method)
        tolerance = 1e-5 if method.startswith("finite") else 1e-11
        for a, b in itertools.product(names, names):
            pairs = zip(result[a][b], expected, strict=True)
            assert max(error(f, e[a][b]) for f, e in pairs) <= tolerance, (method, a, b)


@pytest.mark.parametrize("row", ROWS, ids=ids)
def test_float32_is_preserved(row):
    points = random_points(row, 4, seed=6).astype(np.float32)
    with np.errstate(all="ignore"):
        result = numpy_arithmetic.numpy_function(row.name)(*points)
        exact = numpy_arithmetic.numpy_function(row.name)(*points.astype(np.float64))
    assert result.dtype == np.float32, "a function that widens its operands makes an engine slow"
    np.testing.assert_allclose(result, exact, rtol=3e-5, atol=3e-6)
