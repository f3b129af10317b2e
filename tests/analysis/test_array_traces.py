"""Traces of graphs with arrays: values, tangents and adjoints as matrices."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import cgprimer
from cgprimer.cli import cli
from tests.approval import refused
from tests.cases.case_tools import METHODS, example

STEPS = [  # the lecture's: dL/dy_pred, grad_w2, grad_h (0 where h < 0), grad_w1
    ("bar_y_pred", "2*(y_pred - y)", [[2.0]]),
    ("bar_w2", "transpose(h_relu) @ bar_y_pred", [[4.0], [0.0]]),
    ("bar_h_relu", "bar_y_pred @ transpose(w2)", [[2.0, 6.0]]),
    ("bar_h", "bar_h_relu*less(0, h)", [[2.0, 0.0]]),
    ("bar_w1", "transpose(x) @ bar_h", [[2.0, 0.0], [4.0, 0.0]]),
]


def test_the_three_steps_of_back_propagation_are_shown_as_matrices():
    found = cgprimer.trace(example("matrix_backpropagation"), method="reverse")
    steps = {row.name: row for row in found.backward}
    for name, formula, value in STEPS:
        assert steps[name].expression in (formula, formula.replace("(y_pred - y)", "v1"))
        assert steps[name].value.tolist() == value
        assert found.row(name.removeprefix("bar_")).derivative.tolist() == value
    names = [row.name for row in found.backward]
    assert names.index("bar_y_pred") < names.index("bar_h") < names.index("bar_w1")
    printed = [" ".join(line.split()) for line in str(found).splitlines()]
    assert "w1 parameter [[1, -1], [0.5, -2]] [[2, 0], [4, 0]]" in printed
    assert "bar_w2 transpose(h_relu) @ bar_y_pred [[4], [0]]" in printed


def test_the_command_prints_them_and_writes_nested_lists():
    run = CliRunner().invoke
    printed = run(cli, ["trace", "matrix_backpropagation", "--method", "reverse"]).output
    for _, formula, _ in STEPS[1:]:
        assert formula in printed
    as_json = run(cli, ["trace", "matrix_backpropagation", "--method", "reverse", "--json"]).output
    found = json.loads(as_json)
    rows = {row["name"]: row for row in found["rows"]}
    assert rows["h"]["value"] == [[2, -5]]
    assert rows["h"]["adjoint"] == [[2, 0]]
    assert {row["name"]: row["value"] for row in found["backward"]}["bar_w2"] == [[4], [0]]


@pytest.mark.parametrize("method", [m for m in METHODS if m != "reverse"])
@pytest.mark.parametrize("place", [(0,), (2,), (-1,)])
def test_tangents_are_those_of_the_seeded_element(method, place):
    seeded = f"x[{place[0]}]"
    found = cgprimer.trace(example("softmax"), wrt=seeded, method=method, level="variables")
    expected = cgprimer.gradient(example("softmax"), wrt="x")["x"][:, place[0]]
    np.testing.assert_allclose(found.row("s").derivative, expected, rtol=1e-7)
    np.testing.assert_array_equal(found.row("x").derivative, np.eye(3)[place[0]])


def test_adjoints_of_an_element():
    found = cgprimer.trace(example("softmax"), of="s[1]", method="reverse")
    expected = cgprimer.gradient(example("softmax"), wrt="x")["x"][1]
    np.testing.assert_allclose(found.row("x").derivative, expected, rtol=1e-14)
    assert found.row("s").derivative.tolist() == [0.0, 1.0, 0.0]
    assert found.row("s[1]").value == found.row("s").value[1]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"method": "reverse"}, "'s' ... [3]"),
        ({"wrt": "x"}, "'x' ... [3]"),
        ({"wrt": "x[3]"}, "[3]"),
        ({"at": {"x": [[1, 2, 3], [4, 5, 6]]}, "wrt": "x[0]"}, ""),
        ({"at": {"x": [1, 2]}, "wrt": "x[0]"}, "'x' ... [3] ... [2]"),
    ],
)  # fmt: skip
def test_what_cannot_be_traced_is_said_in_a_sentence(how, said):
    with refused(cgprimer.CgprimerError, said):
        cgprimer.trace(example("softmax"), **how)


def test_every_format_has_the_matrices():
    found = cgprimer.trace(example("matrix_backpropagation"), method="reverse", level="variables")
    latex = found.to_table("latex")
    assert r"\begin{bmatrix} 1 & -1 \\ 0.5 & -2 \end{bmatrix}" in latex
    assert r"${h_{relu}}^{\top} \, \bar{y}_{pred}$" in latex
    assert r"\bar{h}_{relu} \odot \operatorname{less}\left(0, h\right)" in latex
    assert "[[1.0, -1.0], [0.5, -2.0]]" in found.to_table("csv")
    assert "| `transpose(x) @ bar_h`" in found.to_table("markdown")
    big = cgprimer.trace(cgprimer.parse("input x[70] = 0.5; xw = sum(x^2)"), method="reverse")
    assert "[70]: 0.5, 0.5, 0.5, 0.5, ..." in str(big)
    wide = cgprimer.parse(
        "input x[2,5] = [[0.1234, 0.2, 3, 4, 5], [-1, 2, 3, 4, 12.25]]; xw = sum(x)"
    )
    text = cgprimer.trace(wide, method="reverse").to_table("markdown")
    assert "[[0.1234,    0.2,      3,      4,      5],<br> [    -1," in text
