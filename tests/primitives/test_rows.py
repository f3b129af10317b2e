"""Every row of the table: its derivative texts, its Python, numpy and sympy spellings agree."""

from __future__ import annotations

import numpy as np
import pytest

import cgprimer
from cgprimer.core.operations import (
    Primitive,
    numpy_arithmetic,
)
from cgprimer.core.operations.symbolic_arithmetic import get_sympy_form
from tests.methods.slopes import second_slopes, slopes
from tests.primitives.row_tools import (
    OPERANDS_OF_GRAPH,
    ROWS,
    at,
    check_partials,
    ids,
    one_line,
    partials_by_reverse,
    random_points,
    same,
    values,
)

# What flows back through it is not the slope of its value, on purpose.
HONEST = [row for row in ROWS if row.name != "stop_gradient"]


@pytest.mark.parametrize("row", HONEST, ids=ids)
def test_partials_are_the_slopes(row):
    check_partials(row, random_points(row, 25))


@pytest.mark.parametrize("row", [r for r in ROWS if get_sympy_form(r) is not None], ids=ids)
def test_sympy_agrees(row):
    import sympy

    symbols = sympy.symbols("a b c", real=True)[: row.arity]
    expression = get_sympy_form(row)(sympy, *symbols)
    derivatives = [sympy.diff(expression, symbol) for symbol in symbols]
    points = random_points(row, 4, seed=2)
    found = [values(row, points), *partials_by_reverse(row, points)]
    for sample, operands in enumerate(points.T):
        exact = {s: sympy.Float(float(o), 40) for s, o in zip(symbols, operands, strict=True)}
        for quantity, formula in zip(found, [expression, *derivatives], strict=True):
            expected = float(sympy.re(formula.subs(exact).doit().evalf(30)))
            assert same(float(quantity[sample]), expected, tolerance=1e-12), (
                list(operands),
                formula,
            )


def error(found: float, expected: float) -> float:
    return abs(found - expected) / max(1.0, abs(expected))


def smooth(row: Primitive) -> tuple[str, ...]:
    """The operands with slopes: the condition of ``where``, drawn at 0 too, jumps there."""
    return OPERANDS_OF_GRAPH[row.name == "where" : row.arity]


@pytest.mark.parametrize("row", HONEST, ids=ids)
def test_every_method_gives_the_slope(row):
    """Inside a product and a square, so that value and derivative both count."""
    names = smooth(row)
    graph = cgprimer.parse(f"{one_line(row)}; xs = xw^2 + pa*xw; output xs")
    points = random_points(row, 5, seed=4)
    expected = [slopes(graph, at(row, p), names) for p in points.T]
    for method in cgprimer.methods():
        found = cgprimer.gradient(graph, at(row, points), wrt=names, method=method)
        tolerance = 1e-5 if method == "finite-difference" else 1e-12
        for name in names:
            pairs = zip(found[name], expected, strict=True)
            assert max(error(f, e[name]) for f, e in pairs) <= tolerance, (method, name)


@pytest.mark.parametrize("row", HONEST, ids=ids)
def test_second_derivatives_of_every_row(row):
    """The texts are differentiated again, by several routes."""
    names = smooth(row)
    graph, points = one_line(row), random_points(row, 4, seed=5)
    expected = [second_slopes(graph, at(row, p), names) for p in points.T]
    for method in (
        "forward-over-reverse",
        "reverse-over-forward",
        "path-sum",
        "symbolic",
        "finite-difference-over-reverse",
    ):
        found = cgprimer.hessian(graph, at(row, points), wrt=names, method=method)
        tolerance = 1e-5 if method.startswith("finite") else 1e-11
        for a in names:
            for b in names:
                pairs = zip(found[a][b], expected, strict=True)
                assert max(error(f, e[a][b]) for f, e in pairs) <= tolerance, (method, a, b)


@pytest.mark.parametrize("row", ROWS, ids=ids)
def test_single_precision_stays_single(row):
    points = random_points(row, 4, seed=6).astype(np.float32)
    with np.errstate(all="ignore"):
        found = numpy_arithmetic.numpy_function(row.name)(*points)
        exact = numpy_arithmetic.numpy_function(row.name)(*points.astype(np.float64))
    assert found.dtype == np.float32, "a function that widens its operands makes an engine slow"
    np.testing.assert_allclose(found, exact, rtol=3e-5, atol=3e-6)
