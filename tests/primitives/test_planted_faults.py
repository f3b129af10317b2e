"""The checker is checked: wrong derivatives are planted and must be caught."""

from __future__ import annotations

from dataclasses import replace

import pytest

import cgprimer
from cgprimer.core.operations import find_primitive
from tests.primitives.row_tools import check_partials, random_points, replaced

FAULTS = [
    ("tanh", ("1 - out",)),
    ("tanh", ("1 + out*out",)),
    ("sin", ("-cos(a)",)),
    ("cos", ("sin(a)",)),
    ("exp", ("a",)),
    ("mul", ("a", "b")),
    ("mul", ("b", "b")),
    ("sub", ("1", "1")),
    ("div", ("1/b", "out/b")),
    ("div", ("1/b", "-1/b")),
    ("pow", ("b * a^b", "out * log(a)")),
    ("pow", ("a^(b - 1)", "out * log(a)")),  # the exponent forgotten, as in Tangent
    ("pow", ("b * a^(b - 1)", "0")),
    ("sigmoid", ("out*(1 + out)",)),
    ("sqrt", ("1/out",)),
    ("log", ("1/(a + 0.000001)",)),  # log(x + 1e-6), which silently changes the mathematics
    ("log10", ("1/a",)),
    ("asec", ("1/(a*sqrt((a - 1)*(a + 1)))",)),  # right for positive operands only
    ("acos", ("1/sqrt((1 - a)*(1 + a))",)),
    ("erf", ("1.128379*exp(-a*a)",)),  # seven digits
    ("relu", ("1",)),
    ("max", ("less(a, b)", "less(b, a)")),
    ("clamp", ("1", "0", "0")),
    ("logaddexp", ("exp(a - out)", "exp(a - out)")),
]


@pytest.mark.parametrize(("name", "partials"), FAULTS)
def test_a_planted_fault_is_caught(name, partials):
    row = find_primitive(name)
    points = random_points(row, 25)
    with (
        replaced(replace(row, partials=partials)),
        pytest.raises(AssertionError, match=f"d {name}/d"),
    ):
        check_partials(row, points)
    check_partials(row, points)  # and with the true row back in place, all is well


@pytest.mark.parametrize("method", ["reverse", "forward", "path-sum"])
def test_methods_read_the_table_and_nothing_else(method):
    row = replace(find_primitive("sin"), partials=("7",))
    with replaced(row):
        graph = cgprimer.parse("xw = sin(pa)")
        assert cgprimer.gradient(graph, {"pa": 0.0}, method=method) == {"pa": 7.0}


def test_the_symbolic_method_does_not_read_the_table():
    with replaced(replace(find_primitive("sin"), partials=("7",))):
        graph = cgprimer.parse("xw = sin(pa)")
        assert cgprimer.gradient(graph, {"pa": 0.0}, method="symbolic") == {"pa": 1.0}


def test_the_row_comes_back_after_an_error():
    row = find_primitive("sin")

    def fail():
        with replaced(replace(row, partials=("7",))):
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert find_primitive("sin") is row
