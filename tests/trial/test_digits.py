"""First and second derivatives at points at which digits are easily lost, against mpmath."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

import cgprimer
from cgprimer.core.operations import find_primitive, symbolic_arithmetic
from tests.approval import refused
from tests.primitives.row_tools import ROWS, at, ids, one_line, random_points

EXACT = ("forward", "reverse", "symbolic", "path-sum")
ROUNDED = {"tanh", "coth", "sigmoid", "sech", "csch"}  # made of the result, as their rows say
JUMPS = {"stop_gradient"}


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize("size", [1.0, 1e10, 1e16, 1e300, -1e16])
def test_logaddexp_of_equal_operands(method, size):
    graph = cgprimer.parse("xw = logaddexp(p, q)")
    found = cgprimer.gradient(graph, {"p": size, "q": size}, method=method)
    assert found == {"p": 0.5, "q": 0.5}
    same = cgprimer.parse("xw = logaddexp(k, k)")
    assert cgprimer.gradient(same, {"k": size}, method=method) == {"k": 1.0}


SECOND = [
    ("asin(xa)", 1e-12, 1e-12),
    ("asin(xa)", 1e-17, 1e-17),
    ("acos(xa)", 1e-17, -1e-17),
    ("atanh(xa)", 1e-17, 2e-17),
    ("softplus(xa)", 30.0, 9.35762296883842e-14),
    ("softplus(xa)", 40.0, 4.248354255291589e-18),
    ("softplus(xa)", 0.0, 0.25),
    ("softplus(xa)", -700.0, 9.859676543759770e-305),
    ("logaddexp(xa, 0)", 20.0, 2.06115361394184877e-9),
    ("logaddexp(0, xa)", -20.0, 2.06115361394184877e-9),
    ("xa^2 + 0^xa", 0.9, 2.0),
]


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize(("text", "point", "slope"), SECOND)
def test_second_derivatives_keep_their_digits(text, point, slope, method):
    graph = cgprimer.parse(f"xw = {text}")
    found = cgprimer.hessian(graph, {"xa": point}, wrt="xa", method=method)["xa"]["xa"]
    assert found == pytest.approx(slope, rel=1e-12, abs=0)


@pytest.mark.parametrize("power", [-80, -300])
@pytest.mark.parametrize("function", ["sin(xa)", "exp(xa)*xa", "sqrt(xa)", "log(xa)"])
def test_complex_step_of_a_tiny_variable(function, power):
    graph, at_point = cgprimer.parse(f"xw = {function}"), {"xa": 10.0**power}
    how = {"method": "finite-difference", "scheme": "complex-step", "wrt": "xa"}
    found = cgprimer.gradient(graph, at_point, **how)["xa"]
    many = cgprimer.gradient(graph, {"xa": np.array([10.0**power] * 2)}, **how)["xa"]
    assert found == many[0] == many[1]
    true = cgprimer.gradient(graph, at_point, wrt="xa")["xa"]
    assert found == pytest.approx(true, rel=1e-9, abs=0)


def _slopes(row, point, order):
    """The derivative in the first operand, with 80 digits; None where it has no finite one."""
    function = symbolic_arithmetic.mpmath_function(row.name)
    others = [mpmath.mpf(p) for p in point[1:]]
    with mpmath.workdps(80):
        try:
            found = mpmath.diff(lambda a: function(a, *others), mpmath.mpf(point[0]), order)
            found = float(found)
        except (ValueError, ZeroDivisionError, OverflowError, TypeError):
            return None
    return found if math.isfinite(found) else None


ENGINES = ("numpy", "cpu")
DIFFICULT = [1e-17, -1e-12, 1e-8, 0.3, -0.999999999, 1 - 1e-12, 1 + 1e-9, 3.7, -12.0, 25.0, 40.0]


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in ROWS if row.name not in JUMPS], ids=ids)
def test_primitives_at_ordinary_and_difficult_points(row):
    graph = one_line(row)
    ordinary = random_points(row, 12)
    points = list(ordinary.T) + [[a, *ordinary[1:, i]] for i, a in enumerate(DIFFICULT)]
    checked = 0
    for point in points:
        where = at(row, point)
        if not np.isfinite(graph.evaluate(where)["xw"]):
            continue
        kinks = {0.0, *point[1:]} if not find_primitive(row.name).analytic else set()
        if any(abs(point[0] - kink) < 1e-6 for kink in kinks):
            continue  # a difference would cross the kink
        for order in (1, 2):
            true = _slopes(row, point, order)
            if true is None:
                continue
            rough = row.name in ROUNDED or (row.name == "where" and order == 1)
            for method in ("forward", "reverse", "symbolic"):
                if order == 1:
                    found = cgprimer.gradient(graph, where, wrt="pa", method=method)["pa"]
                else:
                    found = cgprimer.hessian(graph, where, wrt="pa", method=method)["pa"]["pa"]
                # what is lost in the operand itself cannot be found again
                slack = 1e-15 if rough else 1e-60  # 80 digits hold no less
                near = abs(_slopes(row, [point[0] * (1 + 2e-16), *point[1:]], order) or true)
                tolerance = max(1e-11 * abs(true), 4 * abs(near - abs(true)), slack)
                assert abs(found - true) <= tolerance, (row.name, list(point), order, method)
                checked += 1
    assert checked >= 20


@pytest.mark.parametrize("pole", ["xa/(xa - xa)", "log(xa - xa)", "1/(xa - xa)"])
def test_undefined_derivative_does_not_become_zero(pole):
    graph = cgprimer.parse(f"xw = xa^2 + {pole}")
    for xa in (0.9, np.array([0.9, 2.0])):
        first = cgprimer.gradient(graph, {"xa": xa}, wrt="xa", method="symbolic")["xa"]
        second = cgprimer.hessian(graph, {"xa": xa}, wrt="xa", method="symbolic")["xa"]["xa"]
        assert not np.isfinite(first).any()
        assert not np.isfinite(second).any()


@pytest.mark.parametrize(
    ("method", "engine"),
    [
        *((method, "plain") for method in cgprimer.methods()),
        ("reverse", "numpy"),
        ("reverse", "cpu"),
    ],
)
def test_values_that_are_not_finite_cause_no_warnings(method, engine):
    # warnings are errors here
    graph = cgprimer.parse("xe = exp(xa); xf = xb/0; xg = log(xc); xh = atanh(xd)")
    at = {"xa": 1e5, "xb": 1.0, "xc": -1.0, "xd": 2.0}
    for point in (at, {name: np.full(3, value) for name, value in at.items()}):
        found = cgprimer.jacobian(graph, point, wrt=[*at], method=method, engine=engine)
        assert not np.isfinite(found["xe"]["xa"]).any()


def test_input_beyond_single_precision_is_named():
    graph = cgprimer.parse("xu = xa*p; xw = xu + 1")
    data = cgprimer.Dataset.from_arrays({"xa": [1.0, 1e300]}, {"xw": [1.0, 2.0]})
    for made in (cgprimer.train, cgprimer.loss_and_gradient):
        with refused(cgprimer.DataError, "'xa' ... float32"):
            made(graph, data, dtype="float32")


def test_derivative_of_a_product_with_a_power_of_zero():
    graph = cgprimer.parse("xw = xa*0^xa")
    for xa, slope in ((2.0, 0.0), (0.5, 0.0), (-1.0, np.inf)):
        found = cgprimer.gradient(graph, {"xa": xa}, wrt="xa", method="symbolic")["xa"]
        assert found == slope
