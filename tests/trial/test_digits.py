"""First and second derivatives at points at which digits are easily lost, against mpmath."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path

import mpmath
import numpy as np
import pytest

import cgprimer
from cgprimer.core.operations import find_primitive, symbolic_arithmetic
from tests.approval import refused
from tests.checking.submissions import read_rows
from tests.primitives.row_tools import ROWS as PRIMITIVES
from tests.primitives.row_tools import at, ids, one_line, random_points

ROWS = read_rows(Path(__file__).with_name("tables.txt"))
EXACT = ("forward", "reverse", "symbolic", "path-sum")
ROUNDED = {"tanh", "coth", "sigmoid", "sech", "csch"}  # made of the result, as their rows say
JUMPS = {"stop_gradient"}


@pytest.mark.parametrize("method", EXACT)
def test_logaddexp_of_equal_operands(method):
    for size in (1.0, 1e10, 1e16, 1e300, -1e16):
        graph = cgprimer.parse("xw = logaddexp(p, q)")
        gradient = cgprimer.gradient(graph, {"p": size, "q": size}, method=method)
        assert gradient == {"p": 0.5, "q": 0.5}
        graph = cgprimer.parse("xw = logaddexp(k, k)")
        assert cgprimer.gradient(graph, {"k": size}, method=method) == {"k": 1.0}


@pytest.mark.parametrize("method", EXACT)
def test_second_derivatives_keep_their_digits(method):
    for text, point, slope in ROWS["second derivatives"]:
        graph = cgprimer.parse(f"xw = {text}")
        hessian = cgprimer.hessian(graph, {"xa": point}, wrt="xa", method=method)
        assert hessian["xa"]["xa"] == pytest.approx(slope, rel=1e-12, abs=0), (text, point)


@pytest.mark.parametrize("size", [1e-80, 1e-300])
@pytest.mark.parametrize("function", ["sin(xa)", "exp(xa)*xa", "sqrt(xa)", "log(xa)"])
def test_complex_step_of_a_tiny_variable(function, size):
    graph = cgprimer.parse(f"xw = {function}")
    how = {"method": "finite-difference", "scheme": "complex-step", "wrt": "xa"}
    slope = cgprimer.gradient(graph, {"xa": size}, **how)["xa"]
    assert (
        cgprimer.gradient(graph, {"xa": np.array([size] * 2)}, **how)["xa"].tolist() == [slope] * 2
    )
    expected = cgprimer.gradient(graph, {"xa": size}, wrt="xa")["xa"]
    assert slope == pytest.approx(expected, rel=1e-9, abs=0)


def exact_slope(row, point, order):
    """Return the derivative in the first operand with 80 digits; None if it is not finite."""
    function = symbolic_arithmetic.mpmath_function(row.name)
    first, *others = (mpmath.mpf(p) for p in point)
    with mpmath.workdps(80):
        try:
            slope = float(mpmath.diff(lambda a: function(a, *others), first, order))
        except (ValueError, ZeroDivisionError, OverflowError, TypeError):
            return None
    return slope if math.isfinite(slope) else None


DIFFICULT = [1e-17, -1e-12, 1e-8, 0.3, -0.999999999, 1 - 1e-12, 1 + 1e-9, 3.7, -12.0, 25.0, 40.0]


def points_of(row):
    """Return ordinary and difficult points at which a primitive has a value, far from its kinks."""
    ordinary = random_points(row, 12)
    for point in [*ordinary.T, *([a, *ordinary[1:, i]] for i, a in enumerate(DIFFICULT))]:
        kinks = {0.0, *point[1:]} if not find_primitive(row.name).analytic else set()
        is_finite = np.isfinite(one_line(row).evaluate(at(row, point))["xw"])
        if is_finite and all(abs(point[0] - kink) >= 1e-6 for kink in kinks):
            yield point


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in PRIMITIVES if row.name not in JUMPS], ids=ids)
def test_primitives_at_ordinary_and_difficult_points(row):
    graph, checked = one_line(row), 0
    for point, order in product(points_of(row), (1, 2)):
        expected = exact_slope(row, point, order)
        if expected is None:
            continue
        # What is lost in the operand itself cannot be restored.
        near = abs(exact_slope(row, [point[0] * (1 + 2e-16), *point[1:]], order) or expected)
        is_rounded = row.name in ROUNDED or (row.name == "where" and order == 1)
        floor = 1e-15 if is_rounded else 1e-60  # of 80 digits
        tolerance = max(1e-11 * abs(expected), 4 * abs(near - abs(expected)), floor)
        for method in ("forward", "reverse", "symbolic"):
            how = {"wrt": "pa", "method": method}
            slope = (
                cgprimer.gradient(graph, at(row, point), **how)["pa"]
                if order == 1
                else (cgprimer.hessian(graph, at(row, point), **how)["pa"]["pa"])
            )
            assert abs(slope - expected) <= tolerance, (list(point), order, method)
            checked += 1
    assert checked >= 20


@pytest.mark.parametrize("pole", ["xa/(xa - xa)", "log(xa - xa)", "1/(xa - xa)"])
def test_undefined_derivative_does_not_become_zero(pole):
    graph = cgprimer.parse(f"xw = xa^2 + {pole}")
    for xa in (0.9, np.array([0.9, 2.0])):
        how = {"wrt": "xa", "method": "symbolic"}
        assert not np.isfinite(cgprimer.gradient(graph, {"xa": xa}, **how)["xa"]).any()
        assert not np.isfinite(cgprimer.hessian(graph, {"xa": xa}, **how)["xa"]["xa"]).any()


@pytest.mark.parametrize(
    ("method", "engine"),
    [*((method, "plain") for method in cgprimer.methods()), ("reverse", "numpy"),
     ("reverse", "cpu")],
)  # fmt: skip
def test_values_that_are_not_finite_cause_no_warnings(method, engine):  # warnings are errors
    graph = cgprimer.parse("xe = exp(xa); xf = xb/0; xg = log(xc); xh = atanh(xd)")
    point = {"xa": 1e5, "xb": 1.0, "xc": -1.0, "xd": 2.0}
    for values in (point, {name: np.full(3, value) for name, value in point.items()}):
        slopes = cgprimer.jacobian(graph, values, wrt=[*point], method=method, engine=engine)
        assert not np.isfinite(slopes["xe"]["xa"]).any()


def test_input_beyond_single_precision_is_named():
    graph = cgprimer.parse("xu = xa*p; xw = xu + 1")
    data = cgprimer.Dataset.from_arrays({"xa": [1.0, 1e300]}, {"xw": [1.0, 2.0]})
    for function in (cgprimer.train, cgprimer.loss_and_gradient):
        with refused(cgprimer.DataError, "'xa' ... float32"):
            function(graph, data, dtype="float32")


@pytest.mark.parametrize(("xa", "slope"), [(2.0, 0.0), (0.5, 0.0), (-1.0, np.inf)])
def test_derivative_of_a_product_with_a_power_of_zero(xa, slope):
    graph = cgprimer.parse("xw = xa*0^xa")
    assert cgprimer.gradient(graph, {"xa": xa}, wrt="xa", method="symbolic")["xa"] == slope
