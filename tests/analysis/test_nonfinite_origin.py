"""The origin of values that are not finite: the operation, its position, and its remedy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.analysis.nonfinite_origin import Why
from cgprimer.core.derivatives import compute_derivatives
from cgprimer.errors import NonFiniteError
from cgprimer.training.data import Dataset
from tests.approval import approved, refused


def explain(text: str, at: dict[str, Any], **arguments: Any) -> Why:
    found = cgprimer.why(cgprimer.parse(text), at, **arguments)
    assert found is not None
    return found


FORWARD = {  # expression of xb, point, and the operation of the first value that is not finite
    "log of 0": ("k*log(x)", {"x": 0.0}, "log(x)", -math.inf),
    "log of negative": ("k*log(x)", {"x": -1.0}, "log(x)", math.nan),
    "pole": ("k/(x - 1)", {"x": 1.0}, "k/(x - 1)", math.inf),
    "exp": ("exp(k*x)/(1 + exp(k*x))", {"x": 1e3}, "exp(k*x)", math.inf),
    "root": ("sqrt(k*x)", {"x": -1.0}, "sqrt(k*x)", math.nan),
    "negative power": ("(k*x)^-1", {"x": 0.0}, "(k*x)^-1", math.inf),
    "power": ("(k*x)^0.5", {"x": -4.0}, "(k*x)^0.5", math.nan),
    "product": ("k*x^3", {"k": 1e200, "x": 1e100}, "k*x^3", math.inf),
    "sum": ("k*x + k*x", {"k": 1.5e308, "x": 1.0}, "k*x + k*x", math.inf),
    "arc": ("acos(k*x)", {"x": 2.0}, "acos(k*x)", math.nan),
    "branch": ("where(less(k, 0), 0, sqrt(k))", {"k": -1.0}, "sqrt(k)", math.nan),
}


@pytest.mark.parametrize("case", FORWARD)
def test_first_value_that_is_not_finite(case: str) -> None:
    text, at, operation, value = FORWARD[case]
    found = explain(f"xb = {text}; xw = 1/xb + xb", {"k": 1.0, **at})
    assert found.operation.replace("^(-1)", "^-1") == operation
    assert found.value == pytest.approx(value, nan_ok=True)
    assert (found.slope, found.vertex) == (None, "xb")
    assert all(math.isfinite(v) for v in found.operands.values())
    assert found.span is not None
    assert f"xb = {text}"[found.span.start : found.span.end] == found.operation
    approved(f"{found.sentence}\n{found.remedy}", "forward")


@pytest.mark.parametrize(
    ("text", "operation", "adjoint", "at"),
    [
        ("3*sqrt(k*x)", "sqrt(k*x)", 3.0, 0.0),
        ("(k*x)^0.5", "(k*x)^0.5", 1.0, 0.0),
        ("acos(k*x)", "acos(k*x)", 1.0, 1.0),
    ],
)
def test_first_partial_derivative_that_is_not_finite(
    text: str, operation: str, adjoint: float, at: float
) -> None:
    found = explain(f"xb = {text}", {"k": at, "x": 1.0})
    assert (found.operation, found.by, found.adjoint) == (operation, "k*x", adjoint)
    assert math.isinf(found.slope)
    approved(f"{found.sentence}\n{found.remedy}", "backward")


BRANCHES = {  # the expression, the point at which its derivative is nan, the slope of the remedy
    "root": ("where(less(x, 0), 0, sqrt(x))", -1.0, 0.0),
    "root at 0": ("where(less(x, 1), 0, sqrt(x))", 0.0, 0.0),
    "quotient": ("where(x, sin(x)/x, 1)", 0.0, 0.0),
    "logarithm": ("where(less(0, x), log(x), 0)", 0.0, 0.0),
}


@pytest.mark.parametrize("case", BRANCHES.values(), ids=BRANCHES)
def test_remedy_for_a_branch_that_is_not_selected_works(case: tuple[str, float, float]) -> None:
    text, x, slope = case
    found = explain(f"xw = {text}", {"x": x}, wrt="x")
    assert "does not select this branch" in found.remedy
    fixed = text.replace(found.operation, found.remedy.partition("harmless operand, ")[2])
    assert fixed != text
    graph = cgprimer.parse(f"xw = {fixed}")
    assert cgprimer.gradient(graph, {"x": x}, wrt="x") == {"x": slope}
    assert cgprimer.why(graph, {"x": x}, wrt="x") is None


def test_finite_results_need_no_explanation() -> None:
    through_infinity = cgprimer.parse("xb = k + 1/(1/x)")
    assert cgprimer.why(through_infinity, {"k": 1.0, "x": 0.0}) is None
    assert cgprimer.why(cgprimer.parse("xb = k*x"), {"k": 1.0, "x": 0.0}) is None
    unused = cgprimer.parse("xb = log(xa); xw = k*xc")
    at = {"xa": -1.0, "k": 1.0, "xc": 2.0}
    assert cgprimer.why(unused, at, of="xw") is None
    assert compute_derivatives(unused, at, of="xw").values == {"xw": 2.0}


def test_given_values_samples_and_arrays() -> None:
    for at, name in (({"x": math.nan, "k": 1.0}, "x"), ({"x": 1.0, "k": math.inf}, "k")):
        found = explain("xb = k*x", at)
        assert (found.vertex, found.operation) == (name, "")
        approved(found.sentence, "given")
    found = explain("xb = log(k*x)", {"k": 1.0, "x": [1.0, 2.0, 0.0, -1.0]})
    assert found.sample == 2
    approved(found.sentence, "2")
    text = "input x[2]; parameter W[2,2] = [[1, 1], [0, 0]]; xh = log(W @ x); xo = sum(xh)"
    found = explain(text, {"x": [1.0, 2.0]})
    assert (found.vertex, found.operation) == ("xh", "log(W @ x)")
    approved(f"{found.sentence}\n{found.remedy}", "-inf at [1]")
    masked = "input x[3]; xo = sum(where(less(x, 0), 0, sqrt(x)))"
    found = explain(masked, {"x": [1.0, -1.0, 4.0]}, wrt="x")
    assert "sqrt(where(less(x, 0), 1, x))" in found.remedy


def test_losses_and_runs_are_explained() -> None:
    at = {"k": 1.0, "x": -800.0, "target": 1.0}
    found = explain("p = sigmoid(k*x)", at, loss="cross-entropy")
    assert (found.vertex, found.operands) == ("loss", {"target": 1.0, "p": 0.0})
    assert "cross-entropy-logit" in found.remedy
    line = Dataset.from_arrays({"x": [1.0, 2.0, -1.0]}, {"xo": [0.0, 1.0, 0.5]})
    rows = Dataset.from_arrays({"x": np.ones((3, 2))}, {"xo": np.ones(3)})
    root = "input x[2]; parameter W[2]; xo = sqrt(sum(W*x))"
    for text, data, start, loss, operation in (
        ("xo = log(k*x)", line, {"k": 1.0}, "squared-error", "log(k*x)"),
        (root, rows, {"W": [0.0, 0.0]}, "squared-error", "sqrt(sum(W*x))"),
        ("xo = k*x", line, {"k": 0.0}, "cross-entropy", None),
    ):
        with refused(NonFiniteError) as caught:
            cgprimer.train(cgprimer.parse(text), data, start=start, loss=loss)
        assert isinstance(caught.value.why, Why)
        if operation:
            assert caught.value.why.operation == operation
        else:
            assert caught.value.why.vertex == "loss"
