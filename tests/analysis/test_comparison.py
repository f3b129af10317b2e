"""Comparisons of methods: derivatives, costs, and errors with respect to a 50-digit reference."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import cgprimer
from cgprimer.analysis.comparison import compare
from cgprimer.analysis.reference import compute_reference_derivatives, compute_relative_error
from cgprimer.errors import CgprimerError, UsageError
from tests.approval import approved, refused
from tests.cases.case_tools import example
from tests.cli.cli_tools import read_json

LECTURE = example("lecture")


@pytest.mark.parametrize(
    ("formula", "at", "derivative"),
    [
        ("sqrt(xa)", 2.0, lambda x: 1 / (2 * mpmath.sqrt(x))),
        ("tanh(xa)", 0.7, lambda x: 1 - mpmath.tanh(x) ** 2),
        ("sigmoid(xa)", 40.0, lambda x: mpmath.exp(-x) / (1 + mpmath.exp(-x)) ** 2),
        ("xa^7", 1.1, lambda x: 7 * x**6),
        ("1/xa", 1e-3, lambda x: -1 / x**2),
        ("erf(xa)", 0.3, lambda x: 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-x * x)),
        ("abs(xa)", 1e-30, lambda x: mpmath.mpf(1)),
        ("softplus(xa)", -3.0, lambda x: 1 / (1 + mpmath.exp(-x))),
        ("xa^2 + 1", 1e-60, lambda x: 2 * x),
        ("exp(xa)", 1e-130, mpmath.exp),
        ("sin(xa)", 1e26, mpmath.cos),
        ("xa^3 + xa", 1e-300, lambda x: 3 * x**2 + 1),
        ("cos(xa)", 0.0, lambda x: mpmath.mpf(0)),
        ("abs(xa)^3", 0.0, lambda x: mpmath.mpf(0)),
    ],
)
def test_reference_has_fifty_digits(formula: str, at: float, derivative: Callable) -> None:
    tape = cgprimer.tape(cgprimer.parse(f"xw = {formula}"))
    found = compute_reference_derivatives(tape, "xw", ("xa",), {"xa": at})
    assert found is not None
    with mpmath.workdps(80):
        exact = derivative(mpmath.mpf(at))
        assert abs(found["xa"] - exact) <= abs(exact) * mpmath.mpf("1e-50")


@pytest.mark.parametrize(
    ("formula", "at"),
    [("abs(xa)", 0), ("relu(xa)", 0), ("max(xa, 0)", 0), ("1/xa", 0), ("sqrt(xa)", 0),
     ("log(xa)", -1), ("sqrt(xa)", -1)],
)  # fmt: skip
def test_reference_is_nan_at_kinks_poles_and_outside_the_domain(formula: str, at: float) -> None:
    graph = cgprimer.parse(f"xw = {formula} + k")
    found = compare(graph, {"xa": float(at), "k": 1.0}, wrt=["xa", "k"], methods=["forward"])
    assert found.reference is not None
    assert found.reference["xa"] == "nan"
    assert "xa" not in found.results[0].errors
    assert "no derivative with respect to xa" in str(found)


def test_stop_gradient_has_no_reference_unless_it_cancels() -> None:
    found = compare(cgprimer.parse("xw = stop_gradient(xa)*xa"), {"xa": 2.0})
    assert (found.reference, found.result("reverse").worst_error) == (None, None)
    assert "no reference" in str(found)
    s = np.exp([1.0, 2.0, 3.0]) / np.exp([1.0, 2.0, 3.0]).sum()
    shifted = compare(example("softmax"), of="s[0]", methods="reverse").reference
    for k, slope in enumerate([s[0] - s[0] * s[0], -s[0] * s[1], -s[0] * s[2]]):
        assert float(shifted[f"x[{k}]"]) == pytest.approx(slope, rel=1e-14)
    for formula in ("x*stop_gradient(x)", "exp(x - 2*stop_gradient(max(x)))"):
        graph = cgprimer.parse(f"input x[2] = [1, 2]; y = sum({formula}); output y")
        assert compare(graph, methods="reverse").reference is None


@pytest.mark.parametrize(
    ("value", "exact", "error"),
    [
        (1.0, 1, 0.0), (0.0, 0, 0.0), (1.0, 0, math.inf), (1.1, 1, 0.1), (-1.0, 1, 2.0),
        (2e-20, 1e-20, 1.0), (math.inf, math.inf, 0.0), (-math.inf, math.inf, math.inf),
        (1.0, math.inf, math.inf), (math.inf, 1, math.inf), (math.nan, math.nan, 0.0),
        (1.0, math.nan, math.nan), (math.nan, 1, math.nan),
    ],
)  # fmt: skip
def test_relative_error(value: float, exact: float, error: float) -> None:
    assert compute_relative_error(value, exact) == pytest.approx(error, rel=1e-12, nan_ok=True)
    with mpmath.workdps(60):
        third = mpmath.mpf(1) / 3
    assert 0 < compute_relative_error(1 / 3, third) < 1.2e-16


def test_lecture_example() -> None:
    found = compare(LECTURE, wrt=("ab", "bc", "cd", "ac", "xa"))
    exact = {"ab": 5.671875, "bc": 5.671875, "cd": 0.25, "ac": 11.34375, "xa": 161.8125}
    assert found.reference is not None
    assert {name: float(text) for name, text in found.reference.items()} == exact
    assert (found.value, found.primal_operations) == (21.546875, 9)
    for result in found.results:
        limit = 1e-9 if result.method == "finite-difference" else 0.0
        assert result.derivatives == pytest.approx(exact, rel=limit, abs=0)
        assert result.worst_error is not None
        assert result.worst_error <= limit
    inner = compare(LECTURE, wrt=("xx", "xz"), methods=("reverse",))
    assert {n: float(v) for n, v in inner.reference.items()} == {"xx": 71.0625, "xz": 22.6875}


def test_costs_of_the_methods() -> None:
    found = compare(LECTURE)
    assert found.wrt == ("ab", "bc", "cd", "ac")
    assert {r.method: r.passes for r in found.results} == {
        "finite-difference": 8, "symbolic": 1, "forward": 4, "reverse": 1, "path-sum": 4,
    }  # fmt: skip
    costs = {r.method: r.operations for r in found.results}
    assert costs["finite-difference"] == 8 * 9
    assert 9 < costs["reverse"] < costs["forward"]
    approved("\n".join(f"{r.method}: {r.operations}, {r.live_values}" for r in found.results))
    assert all(0 < result.seconds < 1 for result in found.results)


def test_difference_schemes_are_separate_rows() -> None:
    schemes = ("forward", "central", "complex-step")
    result = compare(LECTURE, {"xa": 0.5}, schemes=schemes)
    rows = [row for row in result.results if row.method == "finite-difference"]
    assert [row.name for row in rows] == [f"finite-difference ({s})" for s in schemes]
    assert [row.passes for row in rows] == [5, 8, 4]  # n + 1, 2n and n evaluations
    forward, central, _ = rows
    assert central.worst_error < 1e-9 < forward.worst_error < 1e-6
    assert result.result("finite-difference (forward)") is forward
    assert [one["scheme"] for one in result.to_dict()["methods"][:3]] == [*schemes]
    kink = compare(cgprimer.parse("xw = abs(k)*xa"), {"xa": 1, "k": 1}, schemes="complex-step")
    assert kink.results[0].refused


def test_a_method_that_refuses_is_a_row_with_the_reason() -> None:
    diamond = cgprimer.parse(  # 2^40 paths
        [f"xa{k} = sin(x{k}); xb{k} = cos(x{k}); x{k + 1} = xa{k} + xb{k}" for k in range(40)]
    )
    found = compare(diamond, {"x0": 0.5}, methods=("reverse", "path-sum"))
    row = found.result("path-sum")
    assert "path" in row.refused
    assert (row.derivatives, row.worst_error) == ({}, None)
    assert found.value == diamond.evaluate({"x0": 0.5})["x40"]
    assert f"path-sum: {row.refused}" in str(found)
    assert found.to_dict()["methods"][1]["refused"] == row.refused


@pytest.mark.parametrize("engine", ["numpy", "cpu"])
def test_value_of_an_inner_variable_and_of_an_input(engine: str) -> None:
    graph = cgprimer.parse("xx = k*xa; xw = xx^2; xv = log(xm)")
    how: Any = {"engine": engine, "methods": ["reverse"]}
    assert compare(graph, {"xa": 3, "k": 2}, of="xx", **how).value == 6
    assert compare(graph, {"xa": 3}, of="xa", wrt="xa", **how).value == 3
    without_parameters = compare(cgprimer.parse("xw = xa*xb"), {"xa": 2, "xb": 3}, **how)
    assert without_parameters.result("reverse").derivatives == {"xa": 3.0, "xb": 2.0}


def test_matrices_of_the_lecture_are_compared_by_element() -> None:
    found = compare(example("matrix_backpropagation"))
    expected = {"w1[0,0]": 2.0, "w1[0,1]": 0.0, "w1[1,0]": 4.0, "w1[1,1]": 0.0,
                "w2[0,0]": 4.0, "w2[1,0]": 0.0}  # fmt: skip
    assert found.wrt == tuple(expected)
    for result in found.results:
        assert result.derivatives == pytest.approx(expected, rel=1e-9, abs=1e-9), result.method
        assert result.errors.keys() == expected.keys()
    assert found.reference == {n: f"{value:.1f}" for n, value in expected.items()}
    assert found.primal_operations == 14  # scalars: 6 + 2 + 3 + 1 + 1 and a copy
    costs = {r.method: r.operations for r in found.results}
    assert costs["reverse"] < costs["path-sum"] < costs["forward"]
    joined = read_json("compare", "matrix_backpropagation")
    assert (joined["wrt"], joined["at"]["w1"]) == (["w1", "w2"], [[1, -1], [0.5, -2]])
    for method in joined["methods"]:
        np.testing.assert_allclose(method["derivatives"]["w1"], [[2, 0], [4, 0]], atol=1e-9)
        np.testing.assert_allclose(method["derivatives"]["w2"], [[4], [0]], atol=1e-9)


def test_elements_and_rows_of_arrays() -> None:
    found = compare(example("softmax"), of="s[2]", wrt=["x[-1]", "x"])
    assert found.wrt == ("x[2]", "x[0]", "x[1]")
    s = np.exp([1.0, 2.0, 3.0]) / np.exp([1.0, 2.0, 3.0]).sum()
    row = s[2] * (np.eye(3)[2] - s)
    for result in found.results:
        assert [result.derivatives[f"x[{k}]"] for k in range(3)] == pytest.approx(row, rel=1e-7)
    found = compare(example("hidden_layer"), wrt="W1[1]")
    assert found.wrt == ("W1[1,0]", "W1[1,1]")
    assert np.shape(found.at["W1"]) == (3, 2)
    passes = {result.method: result.passes for result in found.results}
    assert (passes["forward"], passes["finite-difference"]) == (2, 4)  # not those of all of W1
    wide = "input x[20] = 0.5; parameter W[20,20] = 0.02; y = sum(tanh(W @ x)); output y"
    one = compare(cgprimer.parse(wide), wrt="W[3,4]", methods=["forward", "reverse"])
    slope = 0.5 * (1 - np.tanh(0.2) ** 2)
    assert [r.derivatives["W[3,4]"] for r in one.results] == pytest.approx([slope] * 2)
    assert one.reference is not None


def test_tables_have_a_row_per_method() -> None:
    slopes = [f"x_w = {terms}" for terms in ("k_1*xa", "a + b + c + d + f*k_1*xa^2")]
    matrix = "input x[2] = 0.25; parameter W[3,2] = 0.5; y = sum((W @ x)^2)"
    for text, style in ((slopes[0], "text"), (slopes[0], "csv"), (slopes[0], "markdown"),
                        (slopes[0], "latex"), (slopes[1], "latex"), (matrix, "")):  # fmt: skip
        graph = cgprimer.parse(text)
        at = {} if text == matrix else dict.fromkeys((*graph.inputs, *graph.parameters), 1e-9)
        found = compare(graph, at, methods=("forward", "reverse", "path-sum"))
        results = tuple(dataclasses.replace(result, seconds=1e-5) for result in found.results)
        found = dataclasses.replace(found, results=results)
        approved(found.to_table(style) if style else str(found))


def test_flat_functions_that_lose_digits_are_noted() -> None:
    steep, flat = (compare(cgprimer.parse("xw = tanh(k)"), {"k": k}) for k in (0.5, 14.0))
    assert (steep.flat, flat.flat) == ((), ("tanh",))
    assert "tanh: derivatives lose digits" in str(flat)


@pytest.mark.parametrize(
    "arguments",
    [
        {"of": "xq"}, {"wrt": ("xa", "xq")}, {"methods": ("backwards",)}, {"engine": "abacus"},
        {"at": {"xa": np.array([1.0, 2.0])}}, {"schemes": "forwards"},
        {"schemes": "forward", "methods": "reverse"},
    ],
    ids=str,
)  # fmt: skip
def test_wrong_arguments(arguments: dict[str, Any]) -> None:
    with refused(UsageError):
        compare(LECTURE, **arguments)


def test_graphs_without_a_value_or_a_single_output_are_refused() -> None:
    for text, at in (
        ("xw = k*xa", {"k": 1}),
        ("xv = xa; xw = xa", {"xa": 1.0}),
        (example("softmax").text, {}),
        ("input x[784] = 1; parameter W[128,784] = 1; y = sum(W @ x); output y", {}),
    ):
        with refused(CgprimerError):
            compare(cgprimer.parse(text), at)
    with refused(UsageError, "'word'"):
        compare(LECTURE, wrt="ab", methods=("reverse",)).to_table("word")
    for value in (LECTURE, "xw = xa", None):
        with refused(UsageError, "cgprimer.compare"):
            cgprimer.draw_comparison(value)
