"""Awkward points: kinks, ties, edges of domains, signed zeros, infinities, nan, huge numbers."""

from __future__ import annotations

import itertools
import math
import warnings

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.core.operations import (
    find_primitive,
    float_arithmetic,
    numpy_arithmetic,
    symbolic_arithmetic,
)
from tests.methods.slopes import DIGITS
from tests.primitives.row_tools import (
    OPERANDS_OF_GRAPH,
    ROWS,
    at,
    ids,
    one_line,
    partials_by_reverse,
    same,
    values,
)

inf, nan = math.inf, math.nan

# row, operands, value, partial derivatives; None where the row promises nothing.
EDGES = [
    # kinks and ties, as each row's ``edges`` has them
    ("relu", (0.0,), 0.0, (0.0,)),
    ("relu", (-0.0,), 0.0, (0.0,)),
    ("relu", (5e-324,), 5e-324, (1.0,)),
    ("relu", (inf,), inf, (1.0,)),
    ("relu", (-inf,), 0.0, (0.0,)),
    ("relu", (nan,), nan, (None,)),
    ("leaky_relu", (0.0, 0.01), 0.0, (1.0, 0.0)),
    ("leaky_relu", (-0.0, 0.01), 0.0, (1.0, 0.0)),
    ("leaky_relu", (-2.0, 0.25), -0.5, (0.25, -2.0)),
    ("leaky_relu", (2.0, 0.25), 2.0, (1.0, 0.0)),
    ("abs", (0.0,), 0.0, (0.0,)),
    ("abs", (-0.0,), 0.0, (0.0,)),
    ("abs", (-inf,), inf, (-1.0,)),
    ("abs", (nan,), nan, (nan,)),
    ("sign", (0.0,), 0.0, (0.0,)),
    ("sign", (-0.0,), 0.0, (0.0,)),
    ("sign", (-inf,), -1.0, (0.0,)),
    ("heaviside", (0.0,), 0.5, (0.0,)),
    ("heaviside", (-0.0,), 0.5, (0.0,)),
    ("heaviside", (-1e-300,), 0.0, (0.0,)),
    ("heaviside", (1e-300,), 1.0, (0.0,)),
    ("heaviside", (nan,), nan, (0.0,)),
    ("step", (0.0,), 0.5, (0.0,)),
    ("max", (2.0, 2.0), 2.0, (0.5, 0.5)),
    ("max", (0.0, -0.0), 0.0, (0.5, 0.5)),
    ("max", (inf, inf), inf, (0.5, 0.5)),
    ("max", (1.0, 2.0), 2.0, (0.0, 1.0)),
    ("max", (nan, 2.0), nan, (None, None)),
    ("max", (2.0, nan), nan, (None, None)),
    ("min", (2.0, 2.0), 2.0, (0.5, 0.5)),
    ("min", (0.0, -0.0), 0.0, (0.5, 0.5)),
    ("min", (1.0, 2.0), 1.0, (1.0, 0.0)),
    ("min", (nan, 2.0), nan, (None, None)),
    ("min", (2.0, nan), nan, (None, None)),
    ("clamp", (-1.0, -1.0, 1.0), -1.0, (1.0, 0.0, 0.0)),
    ("clamp", (1.0, -1.0, 1.0), 1.0, (1.0, 0.0, 0.0)),
    ("clamp", (0.0, -1.0, 1.0), 0.0, (1.0, 0.0, 0.0)),
    ("clamp", (-2.0, -1.0, 1.0), -1.0, (0.0, 1.0, 0.0)),
    ("clamp", (2.0, -1.0, 1.0), 1.0, (0.0, 0.0, 1.0)),
    ("clamp", (inf, -1.0, 1.0), 1.0, (0.0, 0.0, 1.0)),
    ("clamp", (0.0, 1.0, -1.0), -1.0, (0.0, 0.0, 1.0)),  # low > high: min(max(a, low), high)
    ("where", (0.0, 2.0, 3.0), 3.0, (0.0, 0.0, 1.0)),
    ("where", (-0.0, 2.0, 3.0), 3.0, (0.0, 0.0, 1.0)),
    ("where", (5e-324, 2.0, 3.0), 2.0, (0.0, 1.0, 0.0)),
    ("where", (nan, 2.0, 3.0), 2.0, (0.0, 1.0, 0.0)),
    ("where", (1.0, 2.0, nan), 2.0, (0.0, 1.0, 0.0)),
    ("where", (0.0, inf, 3.0), 3.0, (0.0, 0.0, 1.0)),
    ("less", (1.0, 1.0), 0.0, (0.0, 0.0)),
    ("less", (-0.0, 0.0), 0.0, (0.0, 0.0)),
    ("less", (nan, 1.0), 0.0, (0.0, 0.0)),
    ("equal", (-0.0, 0.0), 1.0, (0.0, 0.0)),
    ("equal", (nan, nan), 0.0, (0.0, 0.0)),
    ("stop_gradient", (inf,), inf, (0.0,)),
    # the power, after the table of awkward points in ChainRules.jl
    ("pow", (0.0, 0.0), 1.0, (0.0, 0.0)),
    ("pow", (-0.0, 0.0), 1.0, (0.0, 0.0)),
    ("pow", (3.0, 0.0), 1.0, (0.0, math.log(3.0))),
    ("pow", (inf, 0.0), 1.0, (0.0, None)),
    ("pow", (nan, 0.0), 1.0, (nan, nan)),
    ("pow", (0.0, 1.0), 0.0, (1.0, 0.0)),
    ("pow", (-0.0, 1.0), -0.0, (1.0, 0.0)),
    ("pow", (0.0, 2.0), 0.0, (0.0, 0.0)),
    ("pow", (-0.0, 2.0), 0.0, (0.0, 0.0)),
    ("pow", (0.0, 3.0), 0.0, (0.0, 0.0)),
    ("pow", (0.0, 0.5), 0.0, (inf, 0.0)),
    ("pow", (0.0, 1.5), 0.0, (0.0, 0.0)),
    ("pow", (0.0, -1.0), inf, (-inf, -inf)),
    ("pow", (-0.0, -1.0), -inf, (-inf, None)),
    ("pow", (0.0, -2.0), inf, (-inf, -inf)),
    ("pow", (-0.0, -2.0), inf, (inf, None)),
    ("pow", (inf, 1.0), inf, (1.0, inf)),
    ("pow", (inf, 2.0), inf, (inf, inf)),
    ("pow", (inf, -1.0), 0.0, (0.0, None)),
    ("pow", (-inf, 2.0), inf, (-inf, nan)),
    ("pow", (-inf, 3.0), -inf, (inf, nan)),
    ("pow", (-2.0, 3.0), -8.0, (12.0, nan)),
    ("pow", (-2.0, 0.0), 1.0, (0.0, nan)),
    ("pow", (-2.0, 0.5), nan, (nan, nan)),
    ("pow", (nan, 2.0), nan, (nan, nan)),
    ("pow", (2.0, nan), nan, (nan, nan)),
    ("pow", (1.0, 5.0), 1.0, (5.0, 0.0)),
    # poles and edges of domains
    ("div", (1.0, 0.0), inf, (inf, -inf)),
    ("div", (1.0, -0.0), -inf, (-inf, -inf)),
    ("div", (0.0, 0.0), nan, (None, nan)),
    ("div", (1.0, inf), 0.0, (0.0, 0.0)),
    ("log", (0.0,), -inf, (inf,)),
    ("log", (inf,), inf, (0.0,)),
    ("log", (-1.0,), nan, (None,)),
    ("log", (5e-324,), math.log(5e-324), (inf,)),
    ("log1p", (-1.0,), -inf, (inf,)),
    ("log2", (0.0,), -inf, (inf,)),
    ("log2", (8.0,), 3.0, (1 / (8 * math.log(2)),)),
    ("log10", (0.0,), -inf, (inf,)),
    ("log10", (1000.0,), 3.0, (1 / (1000 * math.log(10)),)),
    ("sqrt", (0.0,), 0.0, (inf,)),
    ("sqrt", (-1.0,), nan, (nan,)),
    ("sqrt", (inf,), inf, (0.0,)),
    ("exp", (-inf,), 0.0, (0.0,)),
    ("exp", (1000.0,), inf, (inf,)),
    ("expm1", (-inf,), -1.0, (0.0,)),
    ("asin", (1.0,), math.pi / 2, (inf,)),
    ("asin", (-1.0,), -math.pi / 2, (inf,)),
    ("asin", (2.0,), nan, (nan,)),
    ("acos", (1.0,), 0.0, (-inf,)),
    ("acos", (-1.0,), math.pi, (-inf,)),
    ("atan", (inf,), math.pi / 2, (0.0,)),
    ("atan", (1e200,), math.pi / 2, (0.0,)),
    ("asec", (1.0,), 0.0, (inf,)),
    ("asec", (-1.0,), math.pi, (inf,)),
    ("asec", (inf,), math.pi / 2, (0.0,)),
    ("asec", (0.5,), nan, (nan,)),
    ("acsc", (1.0,), math.pi / 2, (-inf,)),
    ("acsc", (-1.0,), -math.pi / 2, (-inf,)),
    ("acsc", (0.5,), nan, (nan,)),
    ("acot", (inf,), 0.0, (0.0,)),
    ("acot", (0.0,), math.pi / 2, (-1.0,)),
    ("acot", (-0.0,), -math.pi / 2, (-1.0,)),
    ("tan", (inf,), nan, (nan,)),
    ("csc", (0.0,), inf, (-inf,)),
    ("cot", (0.0,), inf, (-inf,)),
    ("sech", (1000.0,), 0.0, (0.0,)),
    ("sech", (0.0,), 1.0, (0.0,)),
    ("csch", (0.0,), inf, (-inf,)),
    ("csch", (-0.0,), -inf, (-inf,)),
    ("csch", (1000.0,), 0.0, (0.0,)),
    ("coth", (0.0,), inf, (-inf,)),
    ("coth", (1000.0,), 1.0, (0.0,)),
    ("tanh", (1000.0,), 1.0, (0.0,)),
    ("tanh", (-inf,), -1.0, (0.0,)),
    ("asinh", (inf,), inf, (0.0,)),
    ("acosh", (1.0,), 0.0, (inf,)),
    ("acosh", (0.5,), nan, (nan,)),  # "nan below 1"
    ("acosh", (-1.0,), nan, (nan,)),
    ("acosh", (-2.0,), nan, (nan,)),
    ("atanh", (1.0,), inf, (inf,)),
    ("atanh", (-1.0,), -inf, (inf,)),
    ("asech", (1.0,), 0.0, (-inf,)),
    ("asech", (0.0,), inf, (-inf,)),
    ("acsch", (0.0,), inf, (-inf,)),
    ("acsch", (-0.0,), -inf, (-inf,)),
    ("acoth", (0.5,), nan, (nan,)),  # "nan where |a| < 1"
    ("acoth", (-0.5,), nan, (nan,)),
    ("acoth", (inf,), 0.0, (0.0,)),
    # no overflow
    ("sigmoid", (1000.0,), 1.0, (0.0,)),
    ("sigmoid", (-1000.0,), 0.0, (0.0,)),
    ("sigmoid", (0.0,), 0.5, (0.25,)),
    ("sigmoid", (-inf,), 0.0, (0.0,)),
    ("softplus", (1000.0,), 1000.0, (1.0,)),
    ("softplus", (-1000.0,), 0.0, (0.0,)),
    ("softplus", (inf,), inf, (1.0,)),
    ("softplus", (-inf,), 0.0, (0.0,)),
    ("softplus", (0.0,), math.log(2.0), (0.5,)),
    ("logaddexp", (1000.0, 1000.0), 1000.0 + math.log(2.0), (0.5, 0.5)),
    ("logaddexp", (-1000.0, -1000.0), -1000.0 + math.log(2.0), (0.5, 0.5)),
    ("logaddexp", (1000.0, -1000.0), 1000.0, (1.0, 0.0)),
    ("logaddexp", (-inf, 1.0), 1.0, (0.0, 1.0)),
    ("xlogy", (0.0, 0.0), 0.0, (-inf, 0.0)),
    ("xlogy", (0.0, 2.0), 0.0, (math.log(2.0), 0.0)),
    ("xlogy", (2.0, 0.0), -inf, (-inf, inf)),
    ("xlogy", (0.0, -1.0), nan, (nan, 0.0)),
    ("erf", (inf,), 1.0, (0.0,)),
    ("erfc", (-inf,), 2.0, (0.0,)),
    ("erf", (0.0,), 0.0, (2 / math.sqrt(math.pi),)),
    ("gelu", (0.0,), 0.0, (0.5,)),
    ("gelu", (-100.0,), 0.0, (0.0,)),
    ("gelu", (100.0,), 100.0, (1.0,)),
]


@pytest.mark.parametrize(("name", "operands", "value", "slopes"), EDGES)
def test_edge(name, operands, value, slopes):
    row = find_primitive(name)
    points = [[operand] for operand in operands]
    # Numbers take another way through the package than arrays do.
    assert same(float(values(row, operands)), value, tolerance=1e-12)
    for slope, expected in zip(partials_by_reverse(row, operands), slopes, strict=True):
        assert expected is None or same(float(slope), expected, tolerance=1e-12), slope
    found = float(values(row, points)[0])
    assert same(found, value, tolerance=1e-12), f"value {found!r}"
    for which, (slope, expected) in enumerate(
        zip(partials_by_reverse(row, points), slopes, strict=True)
    ):
        if expected is not None:
            assert same(float(slope[0]), expected, tolerance=1e-12), (
                f"d/d{'abc'[which]} {slope[0]!r}"
            )


@pytest.mark.parametrize("method", ["forward", "reverse", "path-sum"])
@pytest.mark.parametrize(("name", "operands", "value", "slopes"), EDGES[::5])
def test_methods_that_read_the_table_share_its_edges(name, operands, value, slopes, method):
    row = find_primitive(name)
    names = OPERANDS_OF_GRAPH[: row.arity]
    # One name at a time: a pass of forward mode multiplies the other partials by a seed of zero,
    # and zero times an infinite partial is nan.
    for wrt, expected in zip(names, slopes, strict=True):
        found = cgprimer.gradient(one_line(row), at(row, operands), wrt=wrt, method=method)
        if expected is not None:
            assert same(float(found[wrt]), expected, tolerance=1e-12)


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "abs", "max", "min", "clamp", "where"])
def test_the_symbolic_method_has_the_same_kinks(name):
    row = find_primitive(name)
    names = OPERANDS_OF_GRAPH[: row.arity]
    for operands in itertools.product((-1.0, 0.0, 1.0), repeat=row.arity):
        if name == "clamp" and operands[1] >= operands[2]:
            continue
        expected = cgprimer.gradient(one_line(row), at(row, operands), wrt=names)
        found = cgprimer.gradient(one_line(row), at(row, operands), wrt=names, method="symbolic")
        assert found == expected, operands


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, 0.5])
def test_a_power_with_a_written_exponent_has_the_edges_of_the_row(exponent):
    """``x^2`` is multiplied out before it runs: that must not move an edge."""
    points = np.array([0.0, -0.0, 1.0, -2.0, inf, -inf, nan])
    written = cgprimer.parse(f"xw = pa^{exponent}")
    given_ = cgprimer.parse("xw = pa^pb")
    at_points = {"pa": points, "pb": float(exponent)}
    np.testing.assert_array_equal(
        written.evaluate({"pa": points})["xw"], given_.evaluate(at_points)["xw"]
    )
    np.testing.assert_array_equal(
        cgprimer.gradient(written, {"pa": points})["pa"],
        cgprimer.gradient(given_, at_points, wrt="pa")["pa"],
    )


# --- digits that must not be lost --------------------------------------------------------------


@pytest.mark.parametrize("name", ["expm1", "log1p", "sinh", "tanh", "asinh", "atanh", "sin", "erf"])
@pytest.mark.parametrize("x", [1e-3, -1e-6, 1e-9, 1e-12, -1e-15, 1e-200])
def test_digits_are_kept_near_zero(name, x):
    row = find_primitive(name)
    with mpmath.workdps(300):  # enough digits that 1 + 1e-200 is not 1
        expected = symbolic_arithmetic.mpmath_function(row.name)(mpmath.mpf(x))
        error = abs(mpmath.mpf(float(values(row, [[x]])[0])) / expected - 1)
    assert error < 4e-16


@pytest.mark.parametrize("name", ["sigmoid", "softplus", "erfc", "gelu"])
@pytest.mark.parametrize("x", [-20.0, -5.0, -1.0, 1.0, 5.0, 20.0])
def test_digits_are_kept_in_the_tails(name, x):
    row = find_primitive(name)
    with mpmath.workdps(DIGITS):
        expected = symbolic_arithmetic.mpmath_function(row.name)(mpmath.mpf(x))
        error = abs(mpmath.mpf(float(values(row, [[x]])[0])) / expected - 1)
    assert error < 1e-13


@pytest.mark.parametrize("name", ["asin", "acos", "atanh", "acosh", "asech", "asec", "acsc"])
@pytest.mark.parametrize("gap", [2.0**-20, 2.0**-40, 2.0**-52])
def test_slopes_are_right_close_to_the_edge(name, gap):
    row = find_primitive(name)
    x = 1.0 + gap if name in ("acosh", "asec", "acsc") else 1.0 - gap
    if x == 1.0:
        x = 1.0 - 2.0**-53  # the double before 1
    with mpmath.workdps(80):
        expected = mpmath.diff(
            symbolic_arithmetic.mpmath_function(row.name), mpmath.mpf(x), h=mpmath.mpf("1e-30")
        )
        error = abs(mpmath.mpf(float(partials_by_reverse(row, [[x]])[0][0])) / expected - 1)
    assert error < 1e-14


# --- anything that is a float ------------------------------------------------------------------

SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 5e-324, 1e308, -1.7e308, 1000.0, inf, -inf, nan)


@pytest.mark.parametrize("row", ROWS, ids=ids)
def test_nothing_raises_or_warns_at_special_values(row):
    points = np.array(list(itertools.product(SPECIAL, repeat=row.arity))).T
    names = OPERANDS_OF_GRAPH[: row.arity]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for method in ("reverse", "forward", "path-sum"):
            found = cgprimer.gradient(one_line(row), at(row, points), wrt=names, method=method)
            assert all(f.shape == points[0].shape for f in found.values())
        values(row, points)


@pytest.mark.parametrize("scheme", ["central", "forward", "complex-step"])
@pytest.mark.parametrize("name", ["mul", "div", "pow", "exp", "log", "tan", "tanh", "sqrt"])
def test_differences_neither_raise_nor_warn_at_special_values(name, scheme):
    row = find_primitive(name)
    points = np.array(list(itertools.product(SPECIAL, repeat=row.arity))).T
    names = OPERANDS_OF_GRAPH[: row.arity]
    how = {"method": "finite-difference", "scheme": scheme}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = cgprimer.gradient(one_line(row), at(row, points), wrt=names, **how)
        assert all(f.shape == points[0].shape for f in found.values())
        for operands in points.T:  # numbers take another way than arrays
            cgprimer.gradient(one_line(row), at(row, operands), wrt=names, **how)


@pytest.mark.parametrize("row", ROWS, ids=ids)
@settings(derandomize=True, deadline=None, max_examples=25)
@given(data=st.data())
def test_nothing_raises_or_warns_on_any_float(row, data):
    operands = data.draw(st.tuples(*[st.floats(allow_nan=True, allow_infinity=True)] * row.arity))
    points = [[operand] for operand in operands]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value = values(row, points)
        slopes = partials_by_reverse(row, points)
        numbers = partials_by_reverse(row, operands)
        with np.errstate(all="ignore"):
            direct = numpy_arithmetic.numpy_function(row.name)(*(np.float64(o) for o in operands))
    assert value.shape == (1,)
    assert all(slope.shape == (1,) for slope in slopes)
    for slope, number in zip(slopes, numbers, strict=True):
        assert same(float(slope[0]), number, tolerance=1e-13)
    assert same(float(value[0]), float(direct), tolerance=1e-15)


@pytest.mark.parametrize("row", ROWS, ids=ids)
def test_one_sample_at_a_time_has_numpys_values(row):
    """Python's own floats: Python raises where IEEE 754 has a value."""
    function, by_numpy = (
        float_arithmetic.float_function(row.name),
        numpy_arithmetic.numpy_function(row.name),
    )
    with np.errstate(all="ignore"):
        for operands in itertools.product(SPECIAL, repeat=row.arity):
            if row.name == "pow" and operands == (-inf, 0.5):
                continue  # numpy takes a root there, and finds nan; IEEE 754 has inf
            expected = float(by_numpy(*(np.float64(o) for o in operands)))
            found = function(*operands)
            assert type(found) is float
            assert same(found, expected, tolerance=1e-14), (operands, found, expected)


@pytest.mark.parametrize("value", [1.7e308, -1.7e308, inf, -inf, nan, 5e-324, 0.0])
@pytest.mark.parametrize("scheme", ["central", "forward"])
def test_a_difference_at_one_huge_number(value, scheme):
    graph = cgprimer.parse("xw = tanh(p)")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = cgprimer.gradient(graph, {"p": value}, method="finite-difference", scheme=scheme)
    assert isinstance(found["p"], float)
