"""At poles, outside of domains and far out, a method still says what the others say."""

import numpy as np
import pytest

import cgprimer

EXACT = ["forward", "reverse", "path-sum", "symbolic"]


@pytest.mark.parametrize("method", EXACT)
def test_a_pole_does_not_spoil_its_neighbours(method):
    graph = cgprimer.parse("xw = sqrt(b) + a*xa")
    found = cgprimer.gradient(graph, {"a": 2.0, "b": 0.0, "xa": 3.0}, method=method)
    assert found == {"b": np.inf, "a": 3.0}
    many = cgprimer.jacobian(cgprimer.parse("xb = 2*a; xc = sqrt(a)"), {"a": 0.0}, method=method)
    assert many == {"xb": {"a": 2.0}, "xc": {"a": np.inf}}


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize("text", ["2*q + sqrt(-0.3)", "2*q + 1/0", "q*xa + log(0)"])
def test_a_constant_outside_its_domain_hides_no_derivative(text, method):
    graph = cgprimer.parse(f"xw = {text}; input xa = 2; parameter q = 1")
    assert cgprimer.gradient(graph, method=method) == {"q": 2.0}


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize(("name", "right"), [("sigmoid", 0.0), ("softplus", 1.0)])
def test_far_out_no_method_overflows(name, right, method):
    graph = cgprimer.parse(f"xw = {name}(k)")
    assert cgprimer.gradient(graph, {"k": -1000.0}, method=method) == {"k": 0.0}
    assert cgprimer.gradient(graph, {"k": 1000.0}, method=method) == {"k": right}


def test_a_complex_step_says_nan_rather_than_nonsense():
    options = {"method": "finite-difference", "scheme": "complex-step", "wrt": "xa"}
    graph = cgprimer.parse("xw = xa^100")
    assert np.isnan(cgprimer.gradient(graph, {"xa": -1.1}, **options)["xa"])
    small = cgprimer.gradient(cgprimer.parse("xw = log(xa)"), {"xa": 1e-200}, **options)["xa"]
    assert small == pytest.approx(1e200)


@pytest.mark.parametrize("name", ["max", "min"])
def test_slopes_of_two_that_are_equal_add_up_to_one_however_formulas_are_rounded(name: str) -> None:
    """sympy writes a - b and b - a in its own order: each was the larger one, or neither was."""
    graph = cgprimer.parse(
        "va = where(less(k, 1), 2*k, 0); vb = where(less(k, 2), 2*k, 0); xw ="
        f" {name}((va*va)*(va*va) + (va*vb)*(va*vb), (va*va)*(vb*va) + (va*vb)*(vb*vb))"
    )
    for k in np.linspace(0.05, 0.95, 19).tolist():
        found = cgprimer.gradient(graph, {"k": k}, method="symbolic")
        assert found == pytest.approx(cgprimer.gradient(graph, {"k": k}))
