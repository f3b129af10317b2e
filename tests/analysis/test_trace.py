"""Evaluation traces: tangents and adjoints from papers and lectures, tables, steps of methods."""

from __future__ import annotations

import csv
import io
import math
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.analysis.latex import latex
from cgprimer.analysis.trace import trace
from cgprimer.core.operations.notation import parse_expression
from cgprimer.errors import CgprimerError, MissingValueError, UsageError
from tests.approval import approved, refused
from tests.cases.case_tools import METHODS, example

TANGENTS = [m for m in METHODS if m != "reverse"]
SCALARS = ("lecture", "baydin", "log_sine", "two_paths", "logistic_loss")


@pytest.mark.parametrize("level", ["operations", "variables"])
@pytest.mark.parametrize("name", [*SCALARS, "hidden_layer"])
def test_adjoints_are_derivatives_of_the_output(name: str, level: str) -> None:
    graph = example(name)
    found = trace(graph, method="reverse", level=level)
    assert (found.kind, found.method, found.wrt) == ("adjoint", "reverse", "")
    assert found.rows[-1].name == found.of == graph.only_output()
    for variable, value in (graph.point() | graph.evaluate()).items():
        np.testing.assert_allclose(found.row(variable).value, value, rtol=1e-13)
        expected = cgprimer.gradient(graph, wrt=variable, method="forward")[variable]
        np.testing.assert_allclose(found.row(variable).derivative, expected, rtol=1e-13)


@pytest.mark.parametrize("method", TANGENTS)
@pytest.mark.parametrize("name", SCALARS)
def test_tangents_are_derivatives_with_respect_to_the_seed(name: str, method: str) -> None:
    graph = example(name)
    values = graph.evaluate()
    near: dict[str, Any] = {"rel": 1e-12, "abs": 1e-15}
    if method == "finite-difference":
        near = {"rel": 1e-6, "abs": 1e-9}
    for seed in (*graph.inputs, *graph.parameters):
        found = trace(graph, wrt=seed, method=method)
        assert (found.kind, found.method, found.wrt) == ("tangent", method, seed)
        for variable in (v for v in values if v not in graph.inputs):
            expected = cgprimer.gradient(graph, of=variable, wrt=seed)[seed]
            assert found.row(variable).value == values[variable]
            assert found.row(variable).derivative == pytest.approx(expected, **near), variable


def test_inner_variables_as_output_and_as_seed() -> None:
    for method in TANGENTS:
        found = trace(example("lecture"), wrt="xx", method=method)
        tangents = {name: found.row(name).derivative for name in ("xa", "xx", "xw")}
        assert tangents == pytest.approx({"xa": 0.0, "xx": 1.0, "xw": 71.0625}, rel=1e-6)
    inner = trace(example("lecture"), {"xa": np.float64(-0.5)}, of="xy", wrt="xa")
    assert (inner.row("xy").value, inner.row("xy").derivative) == (-1.75, 3.0)
    assert inner.rows[-1].name == "xy"
    assert all(r.name not in ("xz", "xw", "bc", "cd") for r in inner.rows)
    part = cgprimer.parse("xb = k*xa; xw = xb + zz")  # zz has no value
    assert trace(part, {"xa": 1, "k": 2}, of="xb", wrt="k").row("xb").derivative == 1.0


def test_rows_follow_their_operands() -> None:
    for level in ("operations", "variables"):
        rows = trace(example("lecture"), wrt="xa", level=level).rows
        approved("\n".join(f"{row.name} = {row.expression}" for row in rows))
    adjoints, tangents = trace(example("lecture")), trace(example("lecture"), wrt="ab")
    assert (adjoints.method, adjoints.kind, adjoints.wrt) == ("reverse", "adjoint", "")
    assert (tangents.method, tangents.kind, tangents.wrt) == ("forward", "tangent", "ab")
    assert trace(example("lecture"), method="forward").wrt == "xa"  # the only input


def test_back_propagation_is_listed_as_matrices() -> None:
    """Compare dL/dy_pred, dL/dw2, dL/dh (0 where h < 0) and dL/dw1 with those of the lecture."""
    found = trace(example("matrix_backpropagation"), method="reverse")
    approved(str(found))
    short = trace(example("matrix_backpropagation"), method="reverse", level="variables")
    for style in ("latex", "csv", "markdown"):
        approved(short.to_table(style))


@pytest.mark.parametrize("method", TANGENTS)
def test_elements_of_a_vector_are_seeds_and_outputs(method: str) -> None:
    s = np.exp([1.0, 2.0, 3.0]) / np.exp([1.0, 2.0, 3.0]).sum()
    slopes = np.diag(s) - np.outer(s, s)
    for index in (0, -1):
        found = trace(example("softmax"), wrt=f"x[{index}]", method=method, level="variables")
        np.testing.assert_allclose(found.row("s").derivative, slopes[index], rtol=1e-7)
        np.testing.assert_array_equal(found.row("x").derivative, np.eye(3)[index])
    found = trace(example("softmax"), of="s[1]", method="reverse")
    np.testing.assert_allclose(found.row("x").derivative, slopes[1], rtol=1e-14)
    assert found.row("s").derivative.tolist() == [0.0, 1.0, 0.0]
    assert found.row("s[1]").value == found.row("s").value[1]


def test_tangents_of_an_element_of_a_matrix() -> None:
    graph = cgprimer.parse("input W[2,3] = [[1, 2, 3], [4, 5, 6]]; xh = W^2; xw = sum(xh)")
    for i, j in ((0, 1), (1, 0), (1, -1)):
        found = trace(graph, wrt=f"W[{i},{j}]", method="forward")
        expected = np.zeros((2, 3))
        expected[i, j] = 2 * (3 * i + j % 3 + 1)
        np.testing.assert_allclose(found.row("xh").derivative, expected, rtol=1e-14)


def test_tables_of_matrices() -> None:
    big = trace(cgprimer.parse("input x[70] = 0.5; xw = sum(x^2)"), method="reverse")
    assert "[70]: 0.5, 0.5, 0.5, 0.5, ..." in str(big)
    wide = cgprimer.parse(
        "input x[2,5] = [[0.1234, 0.2, 3, 4, 5], [-1, 2, 3, 4, 12.25]]; y = x[0,0]"
    )
    lines = str(trace(wide, wrt="x[0,0]")).splitlines()
    assert lines[3].index("[") == lines[2].index("[[") + 1  # cells of several lines are aligned
    approved("\n".join(lines))


def test_steps_of_each_method_are_listed() -> None:
    for method in ("path-sum", "symbolic"):
        found = trace(example("lecture"), wrt="xa", method=method)
        for style in ("text", "latex", "csv"):
            approved(found.to_table(style))
        assert found.steps.rows[-1][-1] == 161.8125


def test_path_sum_lists_products_that_add_up() -> None:
    found = trace(example("lecture"), wrt="xa", method="path-sum").steps
    *rows, total = found.rows
    for _, partials, product in rows:
        factors = [float(f.strip("()")) for f in partials.split(" * ")]
        assert math.prod(factors) == pytest.approx(float(product), rel=1e-5)
    assert sum(float(product) for *_, product in rows) == float(total[-1])
    notes = trace(example("two_paths"), wrt="a", method="path-sum")
    assert {row[0]: row[2] for row in notes.steps.rows} == {  # -w3*w1 and -w4*w2
        "a -> b -> d -> L": -1.5,
        "a -> c -> d -> L": 4.0,
        "sum over all paths": 2.5,
    }
    assert "(-1)" in notes.to_table()


@pytest.mark.parametrize(
    ("scheme", "step", "denominator"),
    [("central", 1e-3, 2e-3), ("forward", 1e-3, 1e-3), ("complex-step", 1e-20, 1e-20)],
)
def test_finite_differences_list_evaluations_and_quotients(
    scheme: str, step: float, denominator: float
) -> None:
    options: dict[str, Any] = {"method": "finite-difference", "scheme": scheme, "step": step}
    text = trace(example("lecture"), wrt="xa", **options).to_table("csv")
    header, *rows = csv.reader(io.StringIO(text))
    assert len(header) == (4 if scheme == "complex-step" else 5)
    for _, _, *evaluations, quotient in rows:
        low, high = float(evaluations[0]), float(evaluations[-1])
        difference = low if scheme == "complex-step" else high - low
        assert float(quotient) == pytest.approx(difference / denominator, rel=1e-9)
    assert [row[0] for row in rows] == ["xa", "xx", "v1", "v2", "xy", "v3", "xz", "v4", "v5", "xw"]
    assert float(rows[-1][-1]) == pytest.approx(161.8125, abs=0.5)


def test_graphs_without_such_steps_have_a_table_of_tangents() -> None:
    for text, method, wrt in (
        ("input x = 2; y = x^2 + stop_gradient(x)", "symbolic", None),
        ("input x[2] = [1, 2]; y = sum(x^2)", "path-sum", "x[0]"),
        ("input x = 2; xb = x^2; y = xb^2", "finite-difference", "xb"),
    ):
        found = trace(cgprimer.parse(text), method=method, wrt=wrt)
        assert found.steps is None
        assert "tangent" in found.to_table()


def test_csv_and_dictionary_have_every_digit() -> None:
    found = trace(example("baydin"), method="reverse")
    data, cells = found.to_dict(), csv.DictReader(io.StringIO(found.to_table("csv")))
    assert [*data] == ["method", "kind", "of", "wrt", "rows"]
    for row, other, known in zip(cells, data["rows"], found.rows, strict=True):
        assert (row["name"], float(row["value"])) == (known.name, known.value)
        assert float(row["adjoint"]) == other["adjoint"] == known.derivative


def test_latex_table() -> None:
    graph = cgprimer.parse("input x_a = 1e-9; parameter k_1 = 2; xw = k_1*x_a^2")
    text = trace(graph).to_table("latex")
    approved(text)
    for line in text.splitlines():
        assert line.count("$") % 2 == 0
        assert line.count("{") == line.count("}")
        assert line.count("&") == (3 if line.endswith(r"\\") else 0)
    assert "e-" not in text


def test_latex_of_expressions() -> None:
    texts = (
        "a*-b", "-a*b", "a + -b", "a - -b*c", "a - (b - c)", "--a", "2*3*x", "x*2", "2*3^k",
        "(a + b)^2", "2*(3/4)", "2*(a/4)", "x*1e-9", "2^-a", "max(-a, 2*3)",
    )  # fmt: skip
    approved("\n".join(f"{text}: {latex(parse_expression(text))}" for text in texts))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("lecture", {"of": "xq"}), ("lecture", {"of": "ab"}), ("lecture", {"wrt": "xq"}),
        ("lecture", {"method": "backwards"}), ("lecture", {"level": "lines"}),
        ("lecture", {"method": "reverse", "wrt": "xa"}), ("lecture", {"at": {"xa": [1.0, 2.0]}}),
        ("lecture", {"at": {"xq": 1.0}}), ("lecture", {"method": "path-sum", "limit": 1}),
        ("lecture", {"carry": 1, "method": "reverse"}), ("baydin", {"method": "forward"}),
        ("softmax", {"method": "reverse"}), ("softmax", {"wrt": "x"}), ("softmax", {"wrt": "x[3]"}),
        ("softmax", {"at": {"x": [[1, 2, 3], [4, 5, 6]]}, "wrt": "x[0]"}),
        ("softmax", {"at": {"x": [1, 2]}, "wrt": "x[0]"}),
    ],
    ids=str,
)  # fmt: skip
def test_wrong_arguments(name: str, arguments: dict[str, Any]) -> None:
    with refused(CgprimerError):
        trace(example(name), **arguments)


def test_missing_values_and_choices_are_named() -> None:
    with refused(MissingValueError, "xa"):
        trace(cgprimer.parse("xw = k*xa"), {"k": 1})
    with refused(UsageError, "xa ... xb"):
        trace(cgprimer.parse("xw = xa*xb"), {"xa": 1, "xb": 2}, method="forward")
    with refused(UsageError, "xv ... xw"):
        trace(cgprimer.parse("xv = xa; xw = 2*xa"), {"xa": 1})
    with refused(UsageError, "'xq'"):
        trace(example("lecture")).row("xq")
    with refused(UsageError, "'word'"):
        trace(example("lecture")).to_table("word")
