"""Evaluation traces: tangents and adjoints from papers and lectures, tables, steps of methods."""

from __future__ import annotations

import csv
import io
import math
from itertools import pairwise
from math import cos, log, sin
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.analysis.latex import latex
from cgprimer.analysis.trace import trace
from cgprimer.core.operations.notation import parse_expression
from cgprimer.errors import CgprimerError, MissingValueError, UsageError
from tests.approval import refused
from tests.cases.case_tools import METHODS, example
from tests.cli.cli_tools import good, read_json

TANGENTS = [m for m in METHODS if m != "reverse"]
VALUES = {
    "lecture": {"xx": 0.25, "xy": 2.25, "xz": 2.75, "xw": 21.546875},
    "baydin": {"v1": log(2), "v2": 10.0, "v3": sin(5), "v5": log(2) + 10 - sin(5)},
    "log_sine": {"v1": 0.375, "v2": log(0.375), "v3": sin(0.75), "y": log(0.375) * sin(0.75)},
}  # fmt: skip
ADJOINTS = {
    "lecture": {
        "xa": 161.8125, "xx": 71.0625, "xy": 22.6875, "xz": 22.6875, "xw": 1.0,
        "ab": 5.671875, "bc": 5.671875, "cd": 0.25, "ac": 11.34375,
    },
    "baydin": {
        "v1": 1.0, "v2": 1.0, "v3": -1.0, "v4": 1.0, "v5": 1.0, "x1": 5.5, "x2": 2 - cos(5),
    },
    "log_sine": {
        "y": 1.0, "v3": log(0.375), "v2": sin(0.75), "v1": sin(0.75) / 0.375,
        "x1": 1.3632775200466683, "x2": 0.19118983333660757,
    },
}  # fmt: skip
SEEDED = {
    ("lecture", "xa"): {"xa": 1.0, "xx": 1.0, "xy": 5.0, "xz": 7.0, "xw": 161.8125, "ab": 0.0},
    ("lecture", "ab"): {"ab": 1.0, "xx": 0.0, "xy": 0.25, "xz": 0.25, "xw": 5.671875},
    ("lecture", "xx"): {"xa": 0.0, "xx": 1.0, "xw": 71.0625},
    ("baydin", "x1"): {"x1": 1.0, "x2": 0.0, "v1": 0.5, "v2": 5.0, "v3": 0.0, "v4": 5.5, "v5": 5.5},
    ("baydin", "x2"): {"v1": 0.0, "v2": 2.0, "v3": cos(5), "v4": 2.0, "v5": 2 - cos(5)},
    ("log_sine", "x2"): {
        "x2": 1.0, "v1": 0.5, "v2": 1 / 0.75, "v3": cos(0.75), "y": 0.19118983333660757,
    },
}  # fmt: skip


@pytest.mark.parametrize("level", ["operations", "variables"])
@pytest.mark.parametrize("name", VALUES)
def test_adjoints(name: str, level: str) -> None:
    found = trace(example(name), method="reverse", level=level)
    assert (found.kind, found.method, found.wrt) == ("adjoint", "reverse", "")
    for row, value in VALUES[name].items():
        assert found.row(row).value == pytest.approx(value, rel=1e-13)
    for row, adjoint in ADJOINTS[name].items():
        assert found.row(row).derivative == pytest.approx(adjoint, rel=1e-13), row
    assert found.rows[-1].name == found.of


@pytest.mark.parametrize("method", TANGENTS)
@pytest.mark.parametrize(("name", "wrt"), SEEDED)
def test_tangents(name: str, wrt: str, method: str) -> None:
    found = trace(example(name), wrt=wrt, method=method)
    assert (found.kind, found.method, found.wrt) == ("tangent", method, wrt)
    rel = 1e-6 if method == "finite-difference" else 1e-12
    for row, tangent in SEEDED[name, wrt].items():
        expected = pytest.approx(tangent, rel=rel, abs=1e-9 if rel == 1e-6 else 1e-15)
        assert found.row(row).derivative == expected, row


def test_rows_follow_their_operands() -> None:
    found = trace(example("lecture"), wrt="xa")
    assert [r.name for r in found.rows] == [
        "xa", "ab", "bc", "cd", "ac", "xx", "v1", "v2", "xy", "v3", "xz", "v4", "v5", "xw",
    ]  # fmt: skip
    assert [r.expression for r in found.rows[:2]] == ["input", "parameter"]
    assert found.row("xy").expression == "v1 + v2"
    variables = trace(example("lecture"), wrt="xa", level="variables")
    assert [(r.name, r.expression) for r in variables.rows[5:]] == [
        ("xx", "xa^2"), ("xy", "ab*xx + ac*xa"), ("xz", "bc*xx + xy"), ("xw", "cd*xx + xz^3"),
    ]  # fmt: skip


def test_another_point_and_an_inner_output() -> None:
    found = trace(example("lecture"), {"xa": np.float64(-0.5)}, wrt="xa")
    assert (found.row("xw").value, found.row("xw").derivative) == (-1.203125, 1.6875)
    inner = trace(example("lecture"), of="xy", wrt="xa")
    assert inner.rows[-1].name == "xy"
    assert all(r.name not in ("xz", "xw", "bc", "cd") for r in inner.rows)
    part = cgprimer.parse("xb = k*xa; xw = xb + zz")
    assert trace(part, {"xa": 1, "k": 2}, of="xb", wrt="k").row("xb").derivative == 1.0


def test_default_method_and_seed() -> None:
    found = trace(example("lecture"))
    assert (found.method, found.kind, found.wrt) == ("reverse", "adjoint", "")
    seeded = trace(example("lecture"), wrt="ab")
    assert (seeded.method, seeded.kind, seeded.wrt) == ("forward", "tangent", "ab")
    assert trace(example("lecture"), method="forward").wrt == "xa"  # the only input


BACKWARD = [  # of the lecture: dL/dy_pred, grad_w2, grad_h (0 where h < 0), grad_w1
    ("bar_y_pred", "2*(y_pred - y)", [[2.0]]),
    ("bar_w2", "transpose(h_relu) @ bar_y_pred", [[4.0], [0.0]]),
    ("bar_h_relu", "bar_y_pred @ transpose(w2)", [[2.0, 6.0]]),
    ("bar_h", "bar_h_relu*less(0, h)", [[2.0, 0.0]]),
    ("bar_w1", "transpose(x) @ bar_h", [[2.0, 0.0], [4.0, 0.0]]),
]


def test_back_propagation_is_listed_as_matrices() -> None:
    found = trace(example("matrix_backpropagation"), method="reverse")
    steps = {row.name: row for row in found.backward}
    for name, formula, value in BACKWARD:
        assert steps[name].expression in (formula, formula.replace("(y_pred - y)", "v1"))
        assert steps[name].value.tolist() == value
        assert found.row(name.removeprefix("bar_")).derivative.tolist() == value
    names = [row.name for row in found.backward]
    for earlier, later in pairwise(("bar_y_pred", "bar_h", "bar_w1")):
        assert names.index(earlier) < names.index(later)
    printed = [" ".join(line.split()) for line in str(found).splitlines()]
    assert "w1 parameter [[1, -1], [0.5, -2]] [[2, 0], [4, 0]]" in printed
    assert "bar_w2 transpose(h_relu) @ bar_y_pred [[4], [0]]" in printed
    shown = read_json("trace", "matrix_backpropagation", "--method", "reverse")
    rows = {row["name"]: row for row in shown["rows"]}
    assert (rows["h"]["value"], rows["h"]["adjoint"]) == ([[2, -5]], [[2, 0]])
    assert {row["name"]: row["value"] for row in shown["backward"]}["bar_w2"] == [[4], [0]]


@pytest.mark.parametrize("method", TANGENTS)
@pytest.mark.parametrize("index", [0, -1])
def test_tangents_of_a_seeded_element(method: str, index: int) -> None:
    found = trace(example("softmax"), wrt=f"x[{index}]", method=method, level="variables")
    s = np.exp([1.0, 2.0, 3.0]) / np.exp([1.0, 2.0, 3.0]).sum()
    expected = s * (np.eye(3)[index] - s[index])
    np.testing.assert_allclose(found.row("s").derivative, expected, rtol=1e-7)
    np.testing.assert_array_equal(found.row("x").derivative, np.eye(3)[index])


@pytest.mark.parametrize("index", [(0, 1), (1, 0), (1, 2)])
def test_tangents_of_an_element_of_a_matrix(index: tuple[int, int]) -> None:
    graph = cgprimer.parse("input W[2,3] = [[1, 2, 3], [4, 5, 6]]; xh = W^2; xw = sum(xh)")
    found = trace(graph, wrt=f"W[{index[0]},{index[1]}]", method="forward")
    expected = np.zeros((2, 3))
    expected[index] = 2 * (3 * index[0] + index[1] + 1)
    np.testing.assert_allclose(found.row("xh").derivative, expected, rtol=1e-14)


def test_adjoints_of_an_element() -> None:
    found = trace(example("softmax"), of="s[1]", method="reverse")
    s = np.exp([1.0, 2.0, 3.0]) / np.exp([1.0, 2.0, 3.0]).sum()
    np.testing.assert_allclose(found.row("x").derivative, s[1] * (np.eye(3)[1] - s), rtol=1e-14)
    assert found.row("s").derivative.tolist() == [0.0, 1.0, 0.0]
    assert found.row("s[1]").value == found.row("s").value[1]


def test_tables_of_matrices() -> None:
    found = trace(example("matrix_backpropagation"), method="reverse", level="variables")
    shown = found.to_table("latex")
    assert r"\begin{bmatrix} 1 & -1 \\ 0.5 & -2 \end{bmatrix}" in shown
    assert r"${h_{relu}}^{\top} \, \bar{y}_{pred}$" in shown
    assert r"\bar{h}_{relu} \odot \operatorname{less}\left(0, h\right)" in shown
    assert "[[1.0, -1.0], [0.5, -2.0]]" in found.to_table("csv")
    assert "| `transpose(x) @ bar_h`" in found.to_table("markdown")
    big = trace(cgprimer.parse("input x[70] = 0.5; xw = sum(x^2)"), method="reverse")
    assert "[70]: 0.5, 0.5, 0.5, 0.5, ..." in str(big)
    wide = cgprimer.parse(
        "input x[2,5] = [[0.1234, 0.2, 3, 4, 5], [-1, 2, 3, 4, 12.25]]; y = x[0,0]"
    )
    lines = str(trace(wide, wrt="x[0,0]")).splitlines()
    assert lines[3].index("[") == lines[2].index("[[") + 1  # cells of several lines are aligned
    rows = [line.split() for line in lines]
    assert rows[2][2:7] == ["[[0.1234,", "0.2,", "3,", "4,", "5],"]
    assert rows[3][:6] == ["[", "-1,", "2,", "3,", "4,", "12.25]]"]


def steps_table(method: str, **options: object) -> list[list[str]]:
    text = trace(example("lecture"), wrt="xa", method=method, **options).to_table("csv")
    return list(csv.reader(io.StringIO(text)))


def test_path_sum_lists_paths_and_products() -> None:
    header, *rows, total = steps_table("path-sum")
    assert header == ["path", "partial derivatives", "product"]
    assert [path for path, _, _ in rows] == [
        "xa -> xx -> xw",
        "xa -> xx -> xz -> xw",
        "xa -> xy -> xz -> xw",
        "xa -> xx -> xy -> xz -> xw",
    ]
    for _, partials, product in rows:
        factors = [float(f.strip("()")) for f in partials.split(" * ")]
        assert math.prod(factors) == pytest.approx(float(product), rel=1e-5)
    assert sum(float(product) for *_, product in rows) == float(total[-1]) == 161.8125
    notes = trace(example("two_paths"), wrt="a", method="path-sum")
    assert {row[0]: row[2] for row in notes.steps.rows} == {  # -w3*w1 and -w4*w2
        "a -> b -> d -> L": -1.5,
        "a -> c -> d -> L": 4.0,
        "sum over all paths": 2.5,
    }
    assert "(-1)" in notes.to_table()


def test_symbolic_lists_the_formula_of_each_variable() -> None:
    _, *rows = steps_table("symbolic")
    assert [(name, formula, float(value)) for name, _, formula, value in rows] == [
        ("xx'", "2*xa", 1),
        ("xy'", "ab*xx' + ac", 5),
        ("xz'", "bc*xx' + xy'", 7),
        ("xw'", "cd*xx' + 3*xz^2*xz'", 161.8125),
    ]


@pytest.mark.parametrize(
    ("scheme", "step"), [("central", 1e-3), ("forward", 1e-3), ("complex-step", 1e-20)]
)
def test_finite_differences_list_evaluations_and_quotients(scheme: str, step: float) -> None:
    header, *rows = steps_table("finite-difference", scheme=scheme, step=step)
    assert len(header) == (4 if scheme == "complex-step" else 5)
    for _, _, *evaluations, quotient in rows:
        low, high = float(evaluations[0]), float(evaluations[-1])
        expected = {
            "central": (high - low) / (2 * step),
            "forward": (high - low) / step,
            "complex-step": low / step,
        }[scheme]
        assert float(quotient) == pytest.approx(expected, rel=1e-9)
    assert [row[0] for row in rows] == ["xa", "xx", "v1", "v2", "xy", "v3", "xz", "v4", "v5", "xw"]
    assert float(rows[-1][-1]) == pytest.approx(161.8125, abs=0.5)


@pytest.mark.parametrize(
    ("text", "method", "wrt"),
    [
        ("input x = 2; y = x^2 + stop_gradient(x)", "symbolic", None),
        ("input x[2] = [1, 2]; y = sum(x^2)", "path-sum", "x[0]"),
        ("input x = 2; xb = x^2; y = xb^2", "finite-difference", "xb"),
    ],
)
def test_graphs_without_such_steps_have_a_table_of_tangents(
    text: str, method: str, wrt: str | None
) -> None:
    found = trace(cgprimer.parse(text), method=method, wrt=wrt)
    assert found.steps is None
    assert "tangent" in found.to_table()


def test_steps_on_the_command_line() -> None:
    assert "sum over all paths" in good("trace", "lecture", "--method", "path-sum")
    data = read_json("trace", "lecture", "--method", "path-sum")
    assert data["steps"]["rows"][-1] == ["sum over all paths", "", 161.8125]
    assert data["rows"][-1]["tangent"] == 161.8125
    shown = good("trace", "lecture", "--method", "symbolic", "--format", "latex")
    assert r"\mathit{xx}'" in shown
    assert "^" not in shown.replace("^{", "")


def test_csv_and_dictionary_have_every_digit() -> None:
    found = trace(example("baydin"), method="reverse")
    cells = list(csv.DictReader(io.StringIO(found.to_table("csv"))))
    assert [*cells[0]] == ["name", "expression", "value", "adjoint"]
    data = found.to_dict()
    assert [*data] == ["method", "kind", "of", "wrt", "rows"]
    for row, other, known in zip(cells, data["rows"], found.rows, strict=True):
        assert (row["name"], float(row["value"])) == (known.name, known.value)
        assert float(row["adjoint"]) == other["adjoint"] == known.derivative


def test_latex_table() -> None:
    text = trace(example("lecture"), method="reverse", level="variables").to_table("latex")
    assert text.startswith(r"\begin{tabular}{llrr}")
    assert text.endswith(r"\end{tabular}")
    for line in text.splitlines():
        assert line.count("$") % 2 == 0
        assert line.count("{") == line.count("}")
        assert line.count("&") == (3 if line.endswith(r"\\") else 0)
    assert r"{\mathit{xz}}^{3}" in text
    assert r"$\partial \mathit{xw} / \partial v$" in text
    graph = cgprimer.parse("input x_a = 1e-9; parameter k_1 = 2; xw = k_1*x_a")
    small = trace(graph).to_table("latex")
    assert "$k_{1} \\, x_{a}$" in small
    assert r"$1 \cdot 10^{-9}$" in small
    assert "e-" not in small


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a*-b", r"a \cdot \left(-b\right)"),
        ("-a*b", r"-a \, b"),
        ("a + -b", r"a + \left(-b\right)"),
        ("a - -b*c", r"a - \left(-b \, c\right)"),
        ("a - (b - c)", r"a - \left(b - c\right)"),
        ("--a", r"-\left(-a\right)"),
        ("2*3*x", r"2 \cdot 3 \, x"),
        ("x*2", r"x \cdot 2"),
        ("2*3^k", r"2 \cdot {3}^{k}"),
        ("(a + b)^2", r"{\left(a + b\right)}^{2}"),
        ("2*(3/4)", r"2 \cdot \frac{3}{4}"),
        ("2*(a/4)", r"2 \, \frac{a}{4}"),
        ("x*1e-9", r"x \, \left(1 \cdot 10^{-9}\right)"),
        ("2^-a", r"{2}^{-a}"),
        ("max(-a, 2*3)", r"\max\left(-a, 2 \cdot 3\right)"),
    ],
)
def test_latex_of_expressions(text: str, expected: str) -> None:
    assert latex(parse_expression(text)) == expected


@pytest.mark.parametrize(
    ("name", "arguments", "error", "values"),
    [
        ("lecture", {"of": "xq"}, UsageError, "'xq'"),
        ("lecture", {"of": "ab"}, UsageError, "'ab'"),
        ("lecture", {"wrt": "xq"}, UsageError, "'xq'"),
        ("lecture", {"method": "backwards"}, UsageError, ""),
        ("lecture", {"level": "lines"}, UsageError, "'lines'"),
        ("lecture", {"method": "reverse", "wrt": "xa"}, UsageError, ""),
        ("lecture", {"at": {"xa": [1.0, 2.0]}}, UsageError, "'xa'"),
        ("lecture", {"at": {"xq": 1.0}}, UsageError, "'xq'"),
        ("lecture", {"method": "path-sum", "limit": 1}, CgprimerError, "path"),
        ("lecture", {"carry": 1, "method": "reverse"}, UsageError, "'carry'"),
        ("baydin", {"method": "forward"}, UsageError, "`wrt` ... x1"),
        ("softmax", {"method": "reverse"}, UsageError, "'s' ... [3]"),
        ("softmax", {"wrt": "x"}, UsageError, "'x' ... [3]"),
        ("softmax", {"wrt": "x[3]"}, UsageError, "[3]"),
        ("softmax", {"at": {"x": [[1, 2, 3], [4, 5, 6]]}, "wrt": "x[0]"}, UsageError, ""),
        ("softmax", {"at": {"x": [1, 2]}, "wrt": "x[0]"}, CgprimerError, "'x' ... [3] ... [2]"),
    ],
)
def test_wrong_arguments(
    name: str, arguments: dict[str, Any], error: type[Exception], values: str
) -> None:
    with refused(error, values):
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
