"""Errors of the methods, and derivatives at poles and outside of domains."""

from __future__ import annotations

import numpy as np
import pytest

import cgprimer
from cgprimer.errors import DifferentiationError, PathLimitError, UsageError
from tests.approval import refused

EXACT = ["forward", "reverse", "path-sum", "symbolic"]
GRAPH = cgprimer.parse(
    "input xa = 0.5; parameter ab = 1, bc = 2; xx = ab*xa^2; xw = bc*xx + sin(xx)"
)


def layered_graph(layers: int) -> cgprimer.ExpressionGraph:
    """Build a graph in which every rung doubles the number of paths from ``p``."""
    lines = ["input xa = 0.1; parameter p = 1; x0 = p*xa"]
    for i in range(layers):
        lines.append(f"xl{i} = sin(x{i}); xr{i} = cos(x{i}); x{i + 1} = xl{i}*xr{i}")
    return cgprimer.parse(lines)


def test_path_limit_is_checked_before_enumerating_paths():
    with refused(PathLimitError, "1,048,576 paths ... 10,000 ... `limit=N`"):
        cgprimer.gradient(layered_graph(20), method="path-sum")
    with refused(PathLimitError, "10^60"):
        cgprimer.gradient(layered_graph(200), method="path-sum")
    graph = layered_graph(6)
    with refused(PathLimitError, "64 ... 63"):
        cgprimer.gradient(graph, method="path-sum", limit=63)
    result = cgprimer.gradient(graph, method="path-sum", limit=64)
    assert result == pytest.approx(cgprimer.gradient(graph), rel=1e-13)


@pytest.mark.parametrize(
    "text",
    ["abs(p)", "relu(p)", "max(p, 2)", "min(p, 2)", "clamp(p, 0, 1)", "leaky_relu(p)",
     "logaddexp(p, 2)", "heaviside(p)", "step(p)", "less(p, 2)"],
)  # fmt: skip
def test_complex_step_rejects_non_analytic_functions(text):
    graph, at = cgprimer.parse(f"xw = sin({text})*q"), {"p": 0.5, "q": 2.0}
    kwargs = {"method": "finite-difference", "scheme": "complex-step"}
    with pytest.raises(DifferentiationError, match=f"'{text.partition('(')[0]}'") as caught:
        cgprimer.gradient(graph, at, **kwargs)
    assert "central" in caught.value.hint
    # The derivative with respect to a variable that does not pass through the kink is supported.
    expected = cgprimer.gradient(graph, at, wrt="q")
    assert cgprimer.gradient(graph, at, wrt="q", **kwargs) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("text", ["log(p)", "sqrt(p)", "acosh(p)", "asin(p)", "p^0.5", "p^100"])
def test_complex_step_is_nan_outside_the_real_domain(text):
    """The derivative of another complex branch must not be returned."""
    kwargs = {"method": "finite-difference", "scheme": "complex-step"}
    result = cgprimer.gradient(cgprimer.parse(f"xw = {text}"), {"p": -1.1}, **kwargs)
    assert np.isnan(result["p"])


@pytest.mark.parametrize(
    ("kwargs", "contains"),
    [
        ({"method": "revers"}, "'revers' ... 'reverse'"),
        ({"method": "zzz"}, "'zzz' ... finite-difference"),
        ({"method": "forward", "cary": True}, "'cary' ... carry"),
        ({"method": "reverse", "carry": True}, "'carry' ... simplify"),
        ({"method": "finite-difference", "scheme": "centre"}, "'centre' ... central"),
        ({"method": "symbolic", "step": 1.0}, "'step'"),
        ({"of": "xv"}, "'xv'"),
        ({"wrt": "ba"}, "'ba'"),
        ({"wrt": "abb"}, "'abb' ... 'ab'"),
        ({"engine": "numpi"}, "'numpi' ... 'numpy'"),
    ],
)
def test_unknown_names_raise_with_a_suggestion(kwargs, contains):
    with refused(UsageError, contains) as caught:
        cgprimer.gradient(GRAPH, **kwargs)
    assert caught.value.exit_code == 2


def test_wrt_defaults_to_inputs_without_parameters():
    graph = cgprimer.parse("input y = 3; xw = xa^2*y")
    assert cgprimer.gradient(graph, {"xa": 2}) == {"y": 4.0, "xa": 12.0}
    assert cgprimer.hessian(graph, {"xa": 2})["xa"] == {"y": 4.0, "xa": 6.0}
    program = cgprimer.differentiate(cgprimer.tape(graph))
    assert all(f"bar_{name}" in str(program) for name in ("y", "xa"))


def test_values_not_needed_by_the_target_are_optional():
    graph = cgprimer.parse("xb = ab*xa; xc = cd*xa")
    assert cgprimer.gradient(graph, {"xa": 2.0, "ab": 1.0}, of="xb") == {"ab": 2.0, "cd": 0.0}


@pytest.mark.parametrize("method", cgprimer.methods())
def test_derivative_is_zero_without_a_path(method):
    graph = cgprimer.parse("xb = p*xa; xc = q*xb; xd = r*xa")
    at = {"xa": 2.0, "p": 3.0, "q": 5.0, "r": 7.0}
    names = ("p", "q", "r", "xa", "xb", "xc", "xd")
    result = cgprimer.gradient(graph, at, of="xb", wrt=names, method=method)
    expected = {"p": 2.0, "q": 0.0, "r": 0.0, "xa": 3.0, "xb": 1.0, "xc": 0.0, "xd": 0.0}
    assert result == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("wrt", "method", "contains"),
    [
        ("ab", "finite-difference", ""),
        ("ab", "reverse-over-finite-difference", ""),
        ("ab", "nope", ""),
        (["ab", "xx"], "forward-over-symbolic", "'xx'"),  # formulas have no inner variables
    ],
)
def test_hessian_rejects_unsupported_method_pairs(wrt, method, contains):
    with refused(UsageError, contains):
        cgprimer.hessian(GRAPH, wrt=wrt, method=method)


@pytest.mark.parametrize("wrong", ["xw = k*xa", None, ["xw = k*xa"]])
def test_non_graph_argument_raises(wrong):
    for call in (cgprimer.gradient, cgprimer.tape, cgprimer.compare, cgprimer.trace, cgprimer.draw):
        with refused(cgprimer.CgprimerError, "graph ... cgprimer.parse"):
            call(wrong)


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize(
    ("text", "at", "expected"),
    [
        ("xw = sqrt(b) + a*xa", {"a": 2, "b": 0, "xa": 3}, {"xw": {"b": np.inf, "a": 3.0}}),
        ("xb = 2*a; xc = sqrt(a)", {"a": 0}, {"xb": {"a": 2.0}, "xc": {"a": np.inf}}),
        ("xw = 2*q + sqrt(-0.3)", {"q": 1}, {"xw": {"q": 2.0}}),
        ("xw = 2*q + 1/0", {"q": 1}, {"xw": {"q": 2.0}}),
        ("xw = q*xa + log(0)", {"q": 1, "xa": 2}, {"xw": {"q": 2.0}}),
        ("xs = sigmoid(k); xw = softplus(k)", {"k": -1e3}, {"xs": {"k": 0.0}, "xw": {"k": 0.0}}),
        ("xs = sigmoid(k); xw = softplus(k)", {"k": 1e3}, {"xs": {"k": 0.0}, "xw": {"k": 1.0}}),
    ],
)
def test_non_finite_values_do_not_contaminate_other_derivatives(text, at, expected, method):
    assert cgprimer.jacobian(cgprimer.parse(text), at, method=method) == expected


@pytest.mark.parametrize("name", ["max", "min"])
def test_symbolic_max_and_min_split_the_gradient_at_rounded_ties(name: str) -> None:
    """Sympy reorders a - b and b - a, so that rounding could select both operands or neither."""
    graph = cgprimer.parse(
        "va = where(less(k, 1), 2*k, 0); vb = where(less(k, 2), 2*k, 0); xw ="
        f" {name}((va*va)*(va*va) + (va*vb)*(va*vb), (va*va)*(vb*va) + (va*vb)*(vb*vb))"
    )
    at = {"k": np.linspace(0.05, 0.95, 19)}
    slope, expected = (cgprimer.gradient(graph, at, method=m)["k"] for m in ("symbolic", "reverse"))
    np.testing.assert_allclose(slope, expected, rtol=1e-6)
