"""Edge cases: kinks, ties, domain boundaries, signed zeros, infinities, nan, large numbers."""

from __future__ import annotations

import itertools
import math
import warnings
from functools import partial
from pathlib import Path

import mpmath
import numpy as np
import pytest

import cgprimer
from cgprimer.core.operations import (
    find_primitive,
    float_arithmetic,
    numpy_arithmetic,
    symbolic_arithmetic,
)
from tests.primitives.row_tools import ROWS, ids, is_close, partials_by_reverse, values

inf, nan = math.inf, math.nan
CONSTANTS = {"pi": math.pi, "pi/2": math.pi / 2, "-pi/2": -math.pi / 2, "log(2)": math.log(2.0)}


Edge = tuple[list[float], float, list[float | None]]


def read_edges() -> dict[str, list[Edge]]:
    """Return operands, values and partials of primitives; None where unspecified."""
    edges: dict[str, list[Edge]] = {}
    for line in Path(__file__).with_name("edges.txt").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            name, *parts = line.split(" | ")
            operands, (value,), slopes = (
                [None if t == "?" else float(CONSTANTS.get(t, t)) for t in part.split()]
                for part in parts
            )
            edges.setdefault(name, []).append((operands, value, slopes))
    return edges


EDGES = read_edges()


@pytest.mark.parametrize("name", EDGES)
def test_values_and_derivatives_at_edge_cases(name: str) -> None:
    """Scalars and arrays are evaluated by different code."""
    row = find_primitive(name)
    points = np.transpose([operands for operands, *_ in EDGES[name]])
    arrays = values(row, points), *partials_by_reverse(row, points)
    for index, (operands, value, slopes) in enumerate(EDGES[name]):
        numbers = values(row, operands), *partials_by_reverse(row, operands)
        for number, array, expected in zip(numbers, arrays, (value, *slopes), strict=True):
            for result in (float(number), float(array[index])):
                near = expected is None or is_close(result, expected, tolerance=1e-12)
                assert near, f"{name} at {operands}: {result!r}, not {expected!r}"


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, 0.5])
def test_constant_exponent_matches_variable_exponent(exponent):
    """``x^2`` is expanded to products, which must not change results at edge cases."""
    at = {"pa": np.array([0.0, -0.0, 1.0, -2.0, inf, -inf, nan])}
    written, given_ = cgprimer.parse(f"xw = pa^{exponent}"), cgprimer.parse("xw = pa^pb")
    at_given = at | {"pb": float(exponent)}
    np.testing.assert_array_equal(written.evaluate(at)["xw"], given_.evaluate(at_given)["xw"])
    result, expected = cgprimer.gradient(written, at), cgprimer.gradient(given_, at_given, wrt="pa")
    np.testing.assert_array_equal(result["pa"], expected["pa"])


def relative_error(result: float, expected: mpmath.mpf) -> mpmath.mpf:
    """Return the relative error of a value, in high precision."""
    return abs(mpmath.mpf(float(result)) / expected - 1)


@pytest.mark.parametrize("name", ["expm1", "log1p", "sinh", "tanh", "asinh", "atanh", "sin", "erf"])
def test_relative_accuracy_near_zero(name):
    row, function = find_primitive(name), symbolic_arithmetic.mpmath_function(name)
    points = [1e-3, -1e-6, 1e-9, 1e-12, -1e-15, 1e-200]
    with mpmath.workdps(300):  # enough digits that 1 + 1e-200 is not 1
        for x, value in zip(points, values(row, [points]), strict=True):
            assert relative_error(value, function(mpmath.mpf(x))) < 4e-16, x


@pytest.mark.parametrize("name", ["asin", "acos", "atanh", "acosh", "asech", "asec", "acsc"])
def test_derivatives_near_domain_boundaries(name):
    row, function = find_primitive(name), symbolic_arithmetic.mpmath_function(name)
    outside = name in ("acosh", "asec", "acsc")
    for gap in (2.0**-20, 2.0**-40, 2.0**-52 if outside else 2.0**-53):
        x = 1.0 + gap if outside else 1.0 - gap
        with mpmath.workdps(80):
            expected = mpmath.diff(function, mpmath.mpf(x), h=mpmath.mpf("1e-30"))
            error = relative_error(partials_by_reverse(row, [[x]])[0][0], expected)
        assert error < 1e-14, x


SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 5e-324, 1e308, -1.7e308, 1000.0, inf, -inf, nan)


def special_points(arity: int) -> np.ndarray:
    """Return all combinations of special floats, and ordinary ones, of shape (arity, n)."""
    ordinary = np.random.default_rng(0).normal(size=(arity, 50)) * 10.0 ** np.arange(-25, 25)
    return np.concatenate([np.transpose([*itertools.product(SPECIAL, repeat=arity)]), ordinary], 1)


@pytest.mark.parametrize("row", ROWS, ids=ids)
def test_special_floats_do_not_raise_or_warn(row):
    points = special_points(row.arity)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, slopes = values(row, points), np.array(partials_by_reverse(row, points))
        with np.errstate(all="ignore"):
            direct = numpy_arithmetic.numpy_function(row.name)(*points)
        assert all(map(partial(is_close, tolerance=1e-15), value, direct))
        for index in np.linspace(0, points.shape[1] - 1, 12, dtype=int):
            numbers = partials_by_reverse(row, points[:, index])
            assert all(map(partial(is_close, tolerance=1e-13), slopes[:, index], numbers))


@pytest.mark.parametrize("row", ROWS, ids=ids)
def test_float_functions_match_numpy(row):
    """Python floats raise exceptions where IEEE 754 defines a value."""
    function, points = float_arithmetic.float_function(row.name), special_points(row.arity)
    with np.errstate(all="ignore"):
        expected = numpy_arithmetic.numpy_function(row.name)(*points)
        for operands, value in zip(points.T.tolist(), expected.tolist(), strict=True):
            if row.name == "pow" and operands == [-inf, 0.5]:
                continue  # numpy uses sqrt and returns nan; IEEE 754 specifies inf
            result = function(*operands)
            assert type(result) is float
            assert is_close(result, value, tolerance=1e-14), (operands, result, value)
