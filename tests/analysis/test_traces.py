"""Evaluation traces: adjoints and tangents known from papers and slides."""

from __future__ import annotations

import csv
import io
from math import cos, log, sin
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.analysis.latex import latex
from cgprimer.analysis.trace import trace
from cgprimer.core.operations.notation import parse_expression
from cgprimer.errors import CgprimerError, MissingValueError, UsageError
from tests.approval import refused

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TANGENTS = [m for m in cgprimer.methods() if m != "reverse"]


def example(name: str) -> Any:
    return cgprimer.load(EXAMPLES / f"{name}.cg")


VALUES = {
    "lecture": {"xx": 0.25, "xy": 2.25, "xz": 2.75, "xw": 21.546875},
    "baydin": {
        "v1": 0.6931471805599453,
        "v2": 10.0,
        "v3": -0.9589242746631385,
        "v4": 10.693147180559945,
        "v5": 11.652071455223084,
    },
    "log_sine": {"v1": 0.375, "v2": log(0.375), "v3": sin(0.75), "y": -0.66857123581752617},
}
ADJOINTS = {
    "lecture": {
        "xa": 161.8125, "xx": 71.0625, "xy": 22.6875, "xz": 22.6875, "xw": 1.0,
        "ab": 5.671875, "bc": 5.671875, "cd": 0.25, "ac": 11.34375,
    },
    "baydin": {
        "v1": 1.0, "v2": 1.0, "v3": -1.0, "v4": 1.0, "v5": 1.0,
        "x1": 5.5, "x2": 1.7163378145367737,
    },
    "log_sine": {
        "y": 1.0, "v3": log(0.375), "v2": sin(0.75), "v1": sin(0.75) / 0.375,
        "x1": 1.3632775200466683, "x2": 0.19118983333660757,
    },
}  # fmt: skip
SEEDED = {
    ("lecture", "xa"): {"xa": 1.0, "xx": 1.0, "xy": 5.0, "xz": 7.0, "xw": 161.8125, "ab": 0.0},
    ("lecture", "ab"): {"ab": 1.0, "xx": 0.0, "xy": 0.25, "xz": 0.25, "xw": 5.671875},
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
    if name == "lecture":
        assert {r: found.row(r).derivative for r in ADJOINTS[name]} == ADJOINTS[name]


@pytest.mark.parametrize("method", TANGENTS)
@pytest.mark.parametrize(("name", "wrt"), SEEDED)
def test_tangents(name: str, wrt: str, method: str) -> None:
    found = trace(example(name), wrt=wrt, method=method)
    assert (found.kind, found.method, found.wrt) == ("tangent", method, wrt)
    rel = 1e-6 if method == "finite-difference" else 1e-12
    for row, tangent in SEEDED[name, wrt].items():
        expected = pytest.approx(tangent, rel=rel, abs=1e-9 if rel == 1e-6 else 1e-15)
        assert found.row(row).derivative == expected, row
    for row, value in VALUES[name].items():
        assert found.row(row).value == pytest.approx(value, rel=1e-13)


def test_every_row_stands_after_what_it_uses() -> None:
    found = trace(example("lecture"), wrt="xa")
    assert [r.name for r in found.rows] == [
        "xa", "ab", "bc", "cd", "ac", "xx", "v1", "v2", "xy", "v3", "xz", "v4", "v5", "xw",
    ]  # fmt: skip
    assert [r.expression for r in found.rows[:2]] == ["input", "parameter"]
    assert found.row("xy").expression == "v1 + v2"


def test_a_row_per_variable_shows_the_text() -> None:
    found = trace(example("lecture"), wrt="xa", level="variables")
    names = [r.name for r in found.rows if r.expression not in ("input", "parameter")]
    assert names == ["xx", "xy", "xz", "xw"]
    assert found.row("xy").expression == "ab*xx + ac*xa"


def test_at_another_point_and_of_an_inner_variable() -> None:
    found = trace(example("lecture"), {"xa": -0.5}, wrt="xa")
    assert found.row("xw").value == -1.203125
    assert found.row("xw").derivative == 1.6875
    inner = trace(example("lecture"), of="xy", wrt="xa")
    assert inner.rows[-1].name == "xy"
    assert all(r.name not in ("xz", "xw", "bc", "cd") for r in inner.rows)
    part = cgprimer.parse("xb = k*xa; xw = xb + zz")
    assert trace(part, {"xa": 1, "k": 2}, of="xb", wrt="k").row("xb").derivative == 1.0


def test_seeding_an_inner_variable() -> None:
    found = trace(example("lecture"), wrt="xx")
    assert found.row("xx").derivative == 1.0
    assert found.row("xw").derivative == 71.0625
    assert found.row("xa").derivative == 0.0


def test_the_only_input_is_seeded_by_default() -> None:
    assert trace(example("lecture"), method="forward").wrt == "xa"


def test_reverse_is_the_default_unless_a_seed_is_named() -> None:
    found = trace(example("lecture"))
    assert (found.method, found.kind, found.wrt) == ("reverse", "adjoint", "")
    assert found.row("ab").derivative == 5.671875
    seeded = trace(example("lecture"), wrt="xa")
    assert (seeded.method, seeded.kind, seeded.wrt) == ("forward", "tangent", "xa")


# --- as tables ------------------------------------------------------------------------------------


def test_text() -> None:
    lines = str(trace(cgprimer.parse("input xa = 2; xw = xa^2"), wrt="xa")).splitlines()
    assert [line.split() for line in lines] == [
        ["name", "expression", "value", "tangent", "d/dxa"],
        ["----", "----------", "-----", "-------------"],
        ["xa", "input", "2", "1"],
        ["xw", "xa^2", "4", "4"],
    ]
    assert "adjoint dxw/d" in trace(example("lecture"), method="reverse").to_table()


def test_csv_has_every_digit() -> None:
    found = trace(example("baydin"), method="reverse")
    rows = list(csv.DictReader(io.StringIO(found.to_table("csv"))))
    assert list(rows[0]) == ["name", "expression", "value", "adjoint"]
    for row, known in zip(rows, found.rows, strict=True):
        assert (row["name"], float(row["value"])) == (known.name, known.value)
        assert float(row["adjoint"]) == known.derivative


def test_markdown_keeps_stars_from_becoming_emphasis() -> None:
    lines = trace(example("lecture"), wrt="xa").to_table("markdown").splitlines()
    assert all(line.startswith("|") and line.endswith("|") for line in lines)
    assert set(lines[1]) <= set("|-: ")
    assert len({line.count("|") for line in lines}) == 1
    assert any("`ab*xx`" in line for line in lines)


def test_latex() -> None:
    text = trace(example("lecture"), method="reverse", level="variables").to_table("latex")
    assert text.startswith(r"\begin{tabular}{llrr}")
    assert text.endswith(r"\end{tabular}")
    for line in text.splitlines():
        assert line.count("$") % 2 == 0
        assert line.count("{") == line.count("}")
    assert r"{\mathit{xz}}^{3}" in text
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert all(line.count("&") == 3 for line in rows)


def test_latex_of_names_with_underscores() -> None:
    graph = cgprimer.parse("input x_a = 1; parameter k_1 = 2; xw = k_1*x_a")
    text = trace(graph).to_table("latex")
    assert "$k_{1} \\, x_{a}$" in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a*-b", r"a \cdot \left(-b\right)"),
        ("-a*b", r"-a \, b"),
        ("a + -b", r"a + \left(-b\right)"),
        ("a - -b*c", r"a - \left(-b \, c\right)"),
        ("--a", r"-\left(-a\right)"),
        ("2*3*x", r"2 \cdot 3 \, x"),
        ("x*2", r"x \cdot 2"),
        ("2*3^k", r"2 \cdot {3}^{k}"),
        ("2*(3/4)", r"2 \cdot \frac{3}{4}"),
        ("2*(a/4)", r"2 \, \frac{a}{4}"),
        ("1e-9*x", r"1 \cdot 10^{-9} \, x"),
        ("x*1e-9", r"x \, \left(1 \cdot 10^{-9}\right)"),
        ("2^-a", r"{2}^{-a}"),
        ("max(-a, 2*3)", r"\max\left(-a, 2 \cdot 3\right)"),
    ],
)
def test_latex_says_the_same_mathematics(text: str, expected: str) -> None:
    assert latex(parse_expression(text)) == expected


def test_latex_of_small_numbers_is_mathematics() -> None:
    rows = trace(cgprimer.parse("input xa = 1e-9; xw = xa^2")).to_table("latex")
    assert r"$1 \cdot 10^{-9}$" in rows
    assert "e-" not in rows


def test_dictionaries() -> None:
    found = trace(example("lecture"), wrt="xa").to_dict()
    assert list(found) == ["method", "kind", "of", "wrt", "rows"]
    assert found["rows"][-1] == {
        "name": "xw", "expression": "v4 + v5", "value": 21.546875, "tangent": 161.8125,
    }  # fmt: skip


@pytest.mark.parametrize("style", ["text", "markdown", "latex", "csv"])
def test_values_that_are_not_finite_are_shown(style: str) -> None:
    found = trace(cgprimer.parse("input xa = 0; xb = 1/xa; xw = xb - xb"))
    assert (r"\infty" if style == "latex" else "inf") in found.to_table(style)
    assert "nan" in found.to_table(style)


# --- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"of": "xq"}, UsageError, "'xq'"),
        ({"of": "ab"}, UsageError, "'ab'"),
        ({"wrt": "xq"}, UsageError, "'xq'"),
        ({"method": "backwards"}, UsageError, ""),
        ({"level": "lines"}, UsageError, "'lines'"),
        ({"method": "reverse", "wrt": "xa"}, UsageError, ""),
        ({"at": {"xa": [1.0, 2.0]}}, UsageError, "'xa'"),
        ({"at": {"xq": 1.0}}, UsageError, "'xq'"),
        ({"method": "path-sum", "limit": 1}, CgprimerError, "path"),
        ({"carry": 1, "method": "reverse"}, UsageError, "'carry'"),
    ],
)
def test_mistakes(settings: dict[str, Any], error: type[Exception], said: str) -> None:
    with refused(error, said):
        trace(example("lecture"), **settings)


def test_what_must_be_said() -> None:
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


def test_the_hint_of_a_graph_without_inputs_names_what_there_is() -> None:
    with pytest.raises(UsageError, match=r"x1") as caught:
        trace(example("baydin"), method="forward")
    assert "`wrt`" in str(caught.value)


def test_numbers_of_numpy_are_numbers() -> None:
    assert trace(example("lecture"), {"xa": np.float64(0.5)}).row("xw").value == 21.546875
