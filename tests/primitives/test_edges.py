"""Awkward points: kinks, ties, edges of domains, signed zeros, infinities, nan, huge numbers."""

from __future__ import annotations

import itertools
import math
import warnings
from pathlib import Path

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
from tests.primitives.row_tools import (
    ROWS,
    ids,
    partials_by_reverse,
    same,
    values,
)

inf, nan = math.inf, math.nan
CONSTANTS = {"pi": math.pi, "pi/2": math.pi / 2, "-pi/2": -math.pi / 2, "log(2)": math.log(2.0)}


def read_number(text: str) -> float | None:
    """Return the number of a text; None where a primitive promises nothing."""
    return None if text == "?" else float(CONSTANTS.get(text, text))


def read_edges() -> list[tuple[str, list[float], float, list[float | None]]]:
    """Return primitives, operands, values and partial derivatives of awkward points."""
    rows = []
    for line in Path(__file__).with_name("edges.txt").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            name, operands, value, slopes = line.split(" | ")
            numbers = [[*map(read_number, part.split())] for part in (operands, value, slopes)]
            rows.append((name, numbers[0], numbers[1][0], numbers[2]))
    return rows


@pytest.mark.parametrize(("name", "operands", "value", "slopes"), read_edges())
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


@pytest.mark.parametrize("name", ["expm1", "log1p", "sinh", "tanh", "asinh", "atanh", "sin", "erf"])
@pytest.mark.parametrize("x", [1e-3, -1e-6, 1e-9, 1e-12, -1e-15, 1e-200])
def test_digits_are_kept_near_zero(name, x):
    row = find_primitive(name)
    with mpmath.workdps(300):  # enough digits that 1 + 1e-200 is not 1
        expected = symbolic_arithmetic.mpmath_function(row.name)(mpmath.mpf(x))
        error = abs(mpmath.mpf(float(values(row, [[x]])[0])) / expected - 1)
    assert error < 4e-16


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


SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 5e-324, 1e308, -1.7e308, 1000.0, inf, -inf, nan)


@pytest.mark.parametrize("row", ROWS, ids=ids)
@settings(derandomize=True, deadline=None, max_examples=10)
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
