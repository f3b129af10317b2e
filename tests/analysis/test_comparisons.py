"""Methods side by side, the reference of fifty digits, and where a nan came from."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

import mpmath
import numpy as np
import pytest

import cgprimer
from cgprimer.analysis.comparison import compare
from cgprimer.analysis.nonfinite_origin import why
from cgprimer.analysis.reference import compute_reference_derivatives, compute_relative_error
from cgprimer.core.derivatives import compute_derivatives
from cgprimer.errors import CgprimerError, MissingValueError, UsageError
from tests.approval import approved, refused
from tests.cli.cli_tools import bad, good

METHODS = cgprimer.methods()
LECTURE = cgprimer.load(Path(__file__).resolve().parents[2] / "examples" / "lecture.cg")


def reference(text: str, wrt: str = "xa", **at: float) -> mpmath.mpf:
    found = compute_reference_derivatives(cgprimer.tape(cgprimer.parse(text)), "xw", (wrt,), at)
    assert found is not None
    return found[wrt]


@pytest.mark.parametrize(
    ("text", "at", "derivative"),
    [
        ("xw = sin(xa)", 1.0, mpmath.cos),
        ("xw = exp(xa)", 1.5, mpmath.exp),
        ("xw = log(xa)", 3.0, lambda x: 1 / x),
        ("xw = sqrt(xa)", 2.0, lambda x: 1 / (2 * mpmath.sqrt(x))),
        ("xw = tanh(xa)", 0.7, lambda x: 1 - mpmath.tanh(x) ** 2),
        ("xw = sigmoid(xa)", 40.0, lambda x: mpmath.exp(-x) / (1 + mpmath.exp(-x)) ** 2),
        ("xw = xa^7", 1.1, lambda x: 7 * x**6),
        ("xw = xa^0.5", 2.0, lambda x: 1 / (2 * mpmath.sqrt(x))),
        ("xw = 1/xa", 1e-3, lambda x: -1 / x**2),
        ("xw = atan(xa)", 5.0, lambda x: 1 / (1 + x * x)),
        ("xw = erf(xa)", 0.3, lambda x: 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-x * x)),
        ("xw = abs(xa)", -2.0, lambda x: mpmath.mpf(-1)),
        ("xw = relu(xa)", 2.0, lambda x: mpmath.mpf(1)),
        ("xw = max(xa, 1)", 2.0, lambda x: mpmath.mpf(1)),
        ("xw = softplus(xa)", -3.0, lambda x: 1 / (1 + mpmath.exp(-x))),
    ],
)
def test_reference_to_fifty_digits(text: str, at: float, derivative) -> None:
    found = reference(text, xa=at)
    with mpmath.workdps(80):
        exact = derivative(mpmath.mpf(at))
        assert abs(found - exact) <= abs(exact) * mpmath.mpf("1e-50")


def test_reference_on_the_lecture_example_is_exact() -> None:
    found = compare(LECTURE, wrt=("ab", "bc", "cd", "ac", "xa"))
    assert found.reference is not None
    assert {n: float(text) for n, text in found.reference.items()} == {
        "ab": 5.671875, "bc": 5.671875, "cd": 0.25, "ac": 11.34375, "xa": 161.8125,
    }  # fmt: skip
    assert found.value == 21.546875
    for result in found.results:
        if result.method != "finite-difference":
            assert result.worst_error == 0.0, result.method


def test_reference_with_respect_to_an_inner_variable() -> None:
    tape = cgprimer.tape(LECTURE)
    at = {**LECTURE.values}
    found = compute_reference_derivatives(tape, "xw", ("xx", "xz"), at)
    assert found is not None
    assert {n: float(v) for n, v in found.items()} == {"xx": 71.0625, "xz": 22.6875}


def test_there_is_no_reference_at_a_kink() -> None:
    assert mpmath.isnan(reference("xw = abs(xa)", xa=0.0))
    assert mpmath.isnan(reference("xw = relu(xa)", xa=0.0))
    assert float(reference("xw = abs(xa)", xa=1e-30)) == 1.0


def test_a_kink_is_said_and_counts_as_no_error() -> None:
    found = compare(cgprimer.parse("xw = abs(xa) + k"), {"xa": 0.0, "k": 1.0}, wrt=["xa", "k"])
    assert all("xa" not in r.errors and r.errors["k"] < 1e-6 for r in found.results)
    assert "no derivative with respect to xa at this point" in str(found)


def test_reference_outside_the_domain_and_where_there_is_none() -> None:
    assert mpmath.isnan(reference("xw = log(xa)", xa=-1.0))
    assert mpmath.isnan(reference("xw = sqrt(xa)", xa=-1.0))
    tape = cgprimer.tape(cgprimer.parse("xw = stop_gradient(xa)*xa"))
    assert compute_reference_derivatives(tape, "xw", ("xa",), {"xa": 2.0}) is None
    found = compare(cgprimer.parse("xw = stop_gradient(xa)*xa"), {"xa": 2.0})
    assert found.reference is None
    assert "no reference" in str(found)
    assert found.result("reverse").worst_error is None


@pytest.mark.parametrize(
    ("value", "exact", "error"),
    [
        (1.0, 1, 0.0),
        (0.0, 0, 0.0),
        (1.0, 0, math.inf),
        (1.1, 1, 0.1),
        (-1.0, 1, 2.0),
        (math.inf, math.inf, 0.0),
        (-math.inf, math.inf, math.inf),
        (1.0, math.inf, math.inf),
        (math.inf, 1, math.inf),
        (math.nan, math.nan, 0.0),
        (1.0, math.nan, math.nan),
        (math.nan, 1, math.nan),
        (2e-20, 1e-20, 1.0),
    ],
)
def test_relative_error(value: float, exact: float, error: float) -> None:
    assert compute_relative_error(value, exact) == pytest.approx(error, rel=1e-12, nan_ok=True)


def test_relative_error_sees_the_last_bit() -> None:
    third = mpmath.mpf(1) / 3
    with mpmath.workdps(60):
        third = mpmath.mpf(1) / 3
    assert 0 < compute_relative_error(1 / 3, third) < 1.2e-16


# --- side by side ---------------------------------------------------------------------------------


def test_costs_are_those_of_the_methods() -> None:
    found = compare(LECTURE)
    assert [r.method for r in found.results] == list(METHODS)
    assert found.wrt == ("ab", "bc", "cd", "ac")
    assert {r.method: r.passes for r in found.results} == {
        "finite-difference": 8, "symbolic": 1, "forward": 4, "reverse": 1, "path-sum": 4,
    }  # fmt: skip
    costs = {r.method: r.operations for r in found.results}
    assert found.primal_operations == 9
    assert costs["finite-difference"] == 8 * 9
    assert costs["reverse"] < costs["forward"] < costs["finite-difference"] + costs["forward"]
    for result in found.results:
        assert result.seconds > 0
        assert result.live_values > 0
        assert result.refused == ""
        limit = 1e-9 if result.method == "finite-difference" else 1e-14
        assert result.worst_error is not None
        assert result.worst_error < limit


def test_refused_methods_are_rows() -> None:
    levels = (f"xl{i} = xr{i - 1}/2; xr{i} = xr{i - 1} - xl{i}" for i in range(1, 41))
    text = "xr0 = k*xa; " + "; ".join(levels) + "; output xr40"  # two paths at every level
    found = compare(cgprimer.parse(text), {"k": 1e-3, "xa": 1.0}, methods=("reverse", "path-sum"))
    refused = found.result("path-sum")
    assert "path" in refused.refused
    assert refused.derivatives == {}
    assert refused.worst_error is None
    assert found.result("reverse").refused == ""
    assert "refused" in found.to_table()
    assert f"path-sum: {refused.refused}" in str(found)
    assert found.to_dict()["methods"][1]["refused"] == refused.refused


def test_keys() -> None:
    found = compare(LECTURE).to_dict()
    assert list(found) == [
        "of", "value", "wrt", "at", "reference", "primal_operations", "methods",
    ]  # fmt: skip
    assert list(found["methods"][0]) == [
        "method", "derivatives", "relative_errors", "passes", "operations", "live_values",
        "seconds", "refused",
    ]  # fmt: skip
    assert found["at"] == {"xa": 0.5, "ab": 1.0, "bc": 2.0, "cd": 3.0, "ac": 4.0}


@pytest.mark.parametrize("style", ["text", "markdown", "latex", "csv"])
def test_tables(style: str) -> None:
    text = compare(LECTURE, wrt="ab").to_table(style)
    for method in METHODS:
        assert method in text
    assert "5.671875" in text
    if style == "csv":
        assert len({len(row) for row in csv.reader(io.StringIO(text))}) == 1


@pytest.mark.parametrize("text", ["x_w = k_1*xa", "x_w = a + b + c + d + f*k_1*xa^2"])
def test_headings_in_latex_are_mathematics(text: str) -> None:
    graph = cgprimer.parse(text)
    table = compare(graph, dict.fromkeys((*graph.inputs, *graph.parameters), 1e-9)).to_table(
        "latex"
    )
    assert r"$\partial x_{w} / \partial k_{1}$" in table
    assert r"\cdot 10^{-" in table
    assert "dx_w" not in table
    assert "e-0" not in table


def test_an_unknown_table_format_is_wrong_use() -> None:
    with refused(UsageError, "'word'"):
        compare(LECTURE, wrt="ab", methods=("reverse",)).to_table("word")


def test_without_parameters_the_inputs_are_compared() -> None:
    found = compare(cgprimer.parse("xw = xa*xb"), {"xa": 2, "xb": 3})
    assert found.result("reverse").derivatives == {"xa": 3.0, "xb": 2.0}


def test_mistakes() -> None:
    with pytest.raises(UsageError, match="'xq'"):
        compare(LECTURE, of="xq")
    with pytest.raises(UsageError, match="'xq'"):
        compare(LECTURE, wrt=("xa", "xq"))
    with refused(UsageError, "'backwards'"):
        compare(LECTURE, methods=("backwards",))
    with refused(MissingValueError, "xa"):
        compare(cgprimer.parse("xw = k*xa"), {"k": 1})
    with pytest.raises(UsageError, match="array"):
        compare(LECTURE, {"xa": np.array([1.0, 2.0])})
    with refused(UsageError):
        compare(LECTURE, engine="abacus")


# --- where it stopped being finite ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "at", "complaint"),
    [
        (
            "xb = log(xa); xc = 1/xb; xw = k*xc",
            {"xa": -1.0, "k": 1.0},
            "forward ... log(xa) ... xb ... nan",
        ),
        ("xb = 1/xa; xw = k*log(xb)", {"xa": 0.0, "k": 1.0}, "forward ... 1/xa ... xb ... inf"),
        ("xw = exp(k*xa)", {"xa": 1000.0, "k": 1.0}, "forward ... exp(k*xa) ... xw ... inf"),
        ("xw = k*xa", {"xa": math.nan, "k": 1.0}, "xa ... nan"),
        ("xw = k*xa", {"xa": 1.0, "k": math.inf}, "k ... inf"),
        (
            "xw = k*log(xa)",
            {"xa": [1.0, 2.0, -3.0, 0.0], "k": 1.0},
            "forward ... log(xa) ... xw ... nan ... 2",
        ),
        (
            "xw = sqrt(k*xa)",
            {"xa": 1.0, "k": 0.0},
            "backward ... sqrt(k*xa) ... inf ... 1",
        ),
        ("xw = where(less(k, 0), 0, sqrt(k))", {"k": -1.0}, "forward ... sqrt(k) ... xw ... nan"),
        ("xw = k*xa", {"xa": 1.0, "k": 1.0}, ""),
    ],
)
def test_complaints(text: str, at: dict, complaint: str) -> None:
    graph = cgprimer.parse(text)
    found = why(graph, at)
    assert (found is None) == (complaint == "")
    if found:
        approved(found.sentence, complaint)


def test_what_is_not_asked_for_is_not_complained_about() -> None:
    graph = cgprimer.parse("xb = log(xa); xw = k*xc")
    at = {"xa": -1.0, "k": 1.0, "xc": 2.0}
    found = compute_derivatives(graph, at, of="xw")
    assert why(graph, at, of="xw") is None
    assert found.values == {"xw": 2.0}


def test_errors_are_of_the_package() -> None:
    with pytest.raises(CgprimerError):
        compare(cgprimer.parse("xv = xa; xw = xa"), {"xa": 1.0})


def test_the_value_does_not_need_a_method_that_succeeds() -> None:
    """A diamond of forty stages has a million million paths: the sum over them refuses."""
    stages = [f"xa{k} = sin(x{k}); xb{k} = cos(x{k}); x{k + 1} = xa{k} + xb{k}" for k in range(40)]
    diamond = cgprimer.parse("\n".join(stages))
    found = compare(diamond, {"x0": 0.5}, methods=["path-sum"])
    assert found.results[0].refused
    assert found.value == diamond.evaluate({"x0": 0.5})["x40"]
    assert "nan" not in str(found)
    assert found.value == pytest.approx(compare(diamond, {"x0": 0.5}, methods="forward").value)


@pytest.mark.parametrize("engine", ["numpy", "cpu"])
def test_the_value_of_an_inner_variable_and_of_an_input(engine: str) -> None:
    graph = cgprimer.parse("xx = k*xa; xw = xx^2; xv = log(xm)")
    assert compare(graph, {"xa": 3, "k": 2}, of="xx", engine=engine).value == 6
    assert compare(graph, {"xa": 3, "k": 2}, of="xw", engine=engine).value == 36
    assert compare(graph, {"xa": 3}, of="xa", wrt="xa", engine=engine).value == 3


@pytest.mark.parametrize("given", [LECTURE, "xw = xa", None])
def test_only_a_comparison_is_a_comparison(given: object) -> None:
    with refused(UsageError, "cgprimer.compare"):
        cgprimer.draw_comparison(given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("xw = xa^2 + 1", 1e-60),
        ("xw = exp(xa)", 1e-130),
        ("xw = sin(xa)", 1e26),
        ("xw = xa^3 + xa", 1e-300),
        ("xw = cos(xa)", 0.0),
        ("xw = abs(xa)^3", 0.0),
    ],
)
def test_the_reference_is_right_away_from_one(text: str, at: float) -> None:
    side_by_side = cgprimer.compare(cgprimer.parse(text), {"xa": at}, methods=["forward"])
    assert side_by_side.reference is not None
    assert side_by_side.reference["xa"] != "nan"
    error = side_by_side.result("forward").worst_error
    assert error is not None
    assert error < 1e-13


@pytest.mark.parametrize("text", ["xw = abs(xa)", "xw = max(xa, 0)", "xw = 1/xa", "xw = sqrt(xa)"])
def test_there_is_no_reference_at_a_kink_a_pole_or_an_edge(text: str) -> None:
    side_by_side = cgprimer.compare(cgprimer.parse(text), {"xa": 0.0}, methods=["forward"])
    assert side_by_side.reference == {"xa": "nan"}


def test_lost_digits_of_flat_functions_are_remarked_on() -> None:
    graph = cgprimer.parse("xw = tanh(k)")
    assert "tanh" in str(cgprimer.compare(graph, {"k": 14.0}))
    assert "lose digits" not in str(cgprimer.compare(graph, {"k": 0.5}))


def test_difference_quotients_have_rows_of_their_own() -> None:
    result = compare(LECTURE, {"xa": 0.5}, schemes=("forward", "central", "complex-step"))
    rows = {row.name: row for row in result.results}
    passes = {name: row.passes for name, row in rows.items() if "finite" in name}
    assert passes == {
        "finite-difference (forward)": 5,  # n + 1 evaluations for n = 4 parameters
        "finite-difference (central)": 8,
        "finite-difference (complex-step)": 4,
    }
    forward, central = (rows[f"finite-difference ({s})"] for s in ("forward", "central"))
    assert 1e-10 < forward.worst_error < 1e-6
    assert central.worst_error < forward.worst_error
    assert result.result("finite-difference (forward)") is forward
    assert "finite-difference (forward)" in result.to_table("latex")
    assert [one["scheme"] for one in result.to_dict()["methods"][:3]] == [
        "forward", "central", "complex-step"]  # fmt: skip
    kinked = cgprimer.parse("xw = abs(k)*xa")
    refused = compare(kinked, {"xa": 1, "k": 1}, schemes="complex-step").results[0]
    assert refused.scheme == "complex-step"
    assert refused.refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schemes": "forwards"}, "'forward'"),
        ({"schemes": "forward", "methods": "reverse"}, "finite-difference"),
    ],
)
def test_mistakes_with_schemes(options: dict, message: str) -> None:
    with refused(UsageError, message):
        compare(LECTURE, {"xa": 0.5}, **options)


def test_schemes_on_the_command_line(tmp_path: Path) -> None:
    text = good("compare", "lecture", "--scheme", "forward", "--scheme", "central")
    assert "finite-difference (forward)" in text
    assert "--scheme" in bad("compare", "lecture", "--scheme", "forward", "-o", "page.html")
