"""Where something not finite comes from: the operation, its place, a remedy that works."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.analysis.nonfinite_origin import Why
from cgprimer.errors import NonFiniteError
from cgprimer.training.data import Dataset
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
from tests.approval import approved, refused
from tests.cli.cli_tools import good, read_json, run


def explained(text: str, at: dict[str, Any], **more: Any) -> Why:
    found = cgprimer.why(cgprimer.parse(text), at, **more)
    assert found is not None
    return found


FORWARD = {  # text, point: the operation, the value, words of the remedy
    "log of 0": ("xb = k*log(x)", {"x": 0.0}, "log(x)", -math.inf, "log_softmax"),
    "log below": ("xb = k*log(x)", {"x": -1.0}, "log(x)", math.nan, "x > 0"),
    "pole": ("xb = k/(x - 1)", {"x": 1.0}, "k/(x - 1)", math.inf, "where(x - 1, k/where(x - 1,"),
    "exp": ("xb = exp(k*x)/(1 + exp(k*x))", {"x": 1e3}, "exp(k*x)", math.inf, "softplus"),
    "root": ("xb = sqrt(k*x)", {"x": -1.0}, "sqrt(k*x)", math.nan, "k*x >= 0"),
    "power": ("xb = (k*x)^-1", {"x": 0.0}, "(k*x)^(-1)|(k*x)^-1", math.inf, "negative power"),
    "of negative": (
        "xb = (k*x)^0.5",
        {"x": -4.0},
        "(k*x)^0.5",
        math.nan,
        "power 0.5 of a negative",
    ),
    "product": ("xb = k*x^3", {"k": 1e200, "x": 1e100}, "k*x^3", math.inf, "exceeds 1.8e308"),
    "arc": ("xb = acos(k*x)", {"x": 2.0}, "acos(k*x)", math.nan, "-1 <= k*x <= 1"),
}


@pytest.mark.parametrize("case", FORWARD.values(), ids=FORWARD)
def test_the_first_value(case: tuple[str, dict[str, float], str, float, str]) -> None:
    text, at, operation, value, remedy = case
    found = explained(text, {"k": 1.0, **at})
    assert found.operation in operation.split("|")
    assert found.value == pytest.approx(value, nan_ok=True)
    assert (found.slope, found.vertex) == (None, "xb")
    assert remedy in found.remedy
    assert all(math.isfinite(v) for v in found.operands.values())
    assert found.span is not None
    assert text[found.span.start : found.span.end] == found.operation


BACKWARD = {
    "root": ("xb = 3*sqrt(k*x)", {"k": 0.0, "x": 1.0}, "sqrt(k*x)", "sqrt(k*x + 1e-12)"),
    "power": ("xb = (k*x)^0.5", {"k": 0.0, "x": 1.0}, "(k*x)^0.5", "add a small constant"),
    "arc": ("xb = acos(k*x)", {"k": 1.0, "x": 1.0}, "acos(k*x)", "clamp(k*x"),
}


@pytest.mark.parametrize("case", BACKWARD.values(), ids=BACKWARD)
def test_the_first_slope(case: tuple[str, dict[str, float], str, str]) -> None:
    text, at, operation, remedy = case
    found = explained(text, at)
    assert (found.operation, found.by) == (operation, "k*x")
    assert not math.isfinite(found.slope)  # type: ignore[arg-type]
    assert math.isfinite(found.adjoint)  # type: ignore[arg-type]
    assert remedy in found.remedy
    assert "backward" in found.sentence


BRANCHES = {  # what is written, at which x its derivative is nan
    "root": ("where(less(x, 0), 0, sqrt(x))", -1.0, 0.0),
    "root at 0": ("where(less(x, 1), 0, sqrt(x))", 0.0, 0.0),
    "quotient": ("where(x, sin(x)/x, 1)", 0.0, 0.0),
    "logarithm": ("where(less(0, x), log(x), 0)", 0.0, 0.0),
}


@pytest.mark.parametrize("case", BRANCHES.values(), ids=BRANCHES)
def test_the_remedy_of_a_branch_that_is_not_taken_is_one(case: tuple[str, float, float]) -> None:
    text, x, slope = case
    found = explained(f"xw = {text}", {"x": x}, wrt="x")
    assert "does not select this branch" in found.remedy
    fixed = text.replace(found.operation, found.remedy.partition("harmless operand, ")[2])
    assert fixed != text
    graph = cgprimer.parse(f"xw = {fixed}")
    assert cgprimer.gradient(graph, {"x": x}, wrt="x") == {"x": slope}
    assert cgprimer.why(graph, {"x": x}, wrt="x") is None


def test_what_is_infinite_on_the_way_and_does_no_harm_is_no_cause() -> None:
    graph = cgprimer.parse("xb = k + 1/(1/x)")
    assert cgprimer.why(graph, {"k": 1.0, "x": 0.0}) is None
    assert cgprimer.why(cgprimer.parse("xb = k*x"), {"k": 1.0, "x": 0.0}) is None


def test_arrays_samples_and_given_values() -> None:
    text = "input x[2]; parameter W[2,2] = [[1, 1], [0, 0]]; xh = log(W @ x); xo = sum(xh)"
    found = explained(text, {"x": [1.0, 2.0]})
    assert (found.vertex, found.operation) == ("xh", "log(W @ x)")
    assert "the logarithm of 0" in found.remedy
    found = explained("xb = log(k*x)", {"k": 1.0, "x": [1.0, 2.0, 0.0, -1.0]})
    assert found.sample == 2
    approved(found.sentence, "2")
    found = explained("xb = k*x", {"k": math.inf, "x": 1.0})
    assert "the given value of k is inf" in found.sentence
    masked = "input x[3]; xo = sum(where(less(x, 0), 0, sqrt(x)))"
    found = explained(masked, {"x": [1.0, -1.0, 4.0]}, wrt="x")
    assert "sqrt(where(less(x, 0), 1, x))" in found.remedy


def test_a_loss_is_explained_in_its_own_text() -> None:
    found = explained(
        "p = sigmoid(k*x)", {"k": 1.0, "x": -800.0, "target": 1.0}, loss="cross-entropy"
    )
    assert (found.vertex, found.operands) == ("loss", {"target": 1.0, "p": 0.0})
    assert "cross-entropy-logit" in found.remedy


def test_a_run_that_failed_says_why() -> None:
    data = Dataset.from_arrays({"x": [1.0, 2.0, -1.0]}, {"xo": [0.0, 1.0, 0.5]})
    with refused(NonFiniteError, "log ... k") as caught:
        cgprimer.train(cgprimer.parse("xo = log(k*x)"), data, start={"k": 1.0})
    assert isinstance(caught.value.why, Why)
    assert caught.value.why.operands == {"k*x": -1.0}
    with pytest.raises(NonFiniteError) as caught:
        cgprimer.train(cgprimer.parse("xo = k*x"), data, loss="cross-entropy", start={"k": 0.0})
    assert isinstance(caught.value.why, Why)
    assert caught.value.why.vertex == "loss"
    text = "input x[2]; parameter W[2]; xo = sqrt(sum(W*x))"
    rows = Dataset.from_arrays({"x": np.ones((3, 2))}, {"xo": np.ones(3)})
    with pytest.raises(NonFiniteError) as caught:
        cgprimer.train(cgprimer.parse(text), rows, start={"W": [0.0, 0.0]})
    assert isinstance(caught.value.why, Why)
    assert caught.value.why.operation == "sqrt(sum(W*x))"


def test_the_command_line_and_pictures() -> None:
    of = ("-e", "xs = k*x; xw = where(less(xs, 0), 0, sqrt(xs)) + xs", "--at", "x=-1,k=1")
    said = good("grad", *of, "--why")
    assert re.search(r"<command line>:1:38:\n.*\n +\^{8}\n  operands: xs = -1\n  remedy: ", said)
    found = read_json("grad", *of, "--why", "--json")
    assert (found["vertex"], found["operation"], found["value"]) == ("xw", "sqrt(xs)", "nan")
    approved(run("grad", *of).stderr, "--why")
    assert good("grad", "-e", "xw = k*x", "--at", "k=1,x=2", "--why") == (
        "all values and derivatives are finite\n"
    )
    graph = cgprimer.parse(of[1])
    for level, key in (("variables", "xw"), ("operations", None)):
        diagram = graph_diagram(graph, at={"x": -1.0, "k": 1.0}, why=True, level=level)
        (marked,) = [node for node in diagram.nodes if node.emphasis]
        assert key in (None, marked.key)
        assert marked.detail[-1] == "first value not finite: nan"
        assert "sqrt" in (marked.label if key is None else marked.detail[0])
    finite = graph_diagram(graph, at={"x": 1.0, "k": 1.0}, why=True)
    assert finite.notes[-1] == "all values and derivatives are finite"
