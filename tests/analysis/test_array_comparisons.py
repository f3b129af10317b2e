"""Comparisons of graphs with arrays: element by element, against the reference of fifty digits."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import cgprimer
from cgprimer.cli import cli
from cgprimer.visualization.pages.comparison.fitted_graph import build_complete_diagram
from tests.approval import refused
from tests.cases.case_tools import example


def test_every_method_on_the_matrices_of_the_lecture():
    found = cgprimer.compare(example("matrix_backpropagation"))
    expected = {f"w1[{i},{j}]": [[2.0, 0.0], [4.0, 0.0]][i][j] for i in (0, 1) for j in (0, 1)}
    expected |= {"w2[0,0]": 4.0, "w2[1,0]": 0.0}
    assert found.wrt == tuple(expected)
    for result in found.results:
        near = pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert result.derivatives == near, result.method
        assert result.errors.keys() == expected.keys()
    assert found.reference == {n: f"{value:.1f}" for n, value in expected.items()}
    assert found.primal_operations == 14  # in numbers: 6 + 2 + 3 + 1 + 1 and a copy
    operations = {r.method: r.operations for r in found.results}
    assert operations["reverse"] < operations["path-sum"] < operations["forward"]


def test_errors_are_those_against_fifty_digits():
    graph = cgprimer.parse("input x[2] = [1, 2]; parameter W[2,2] = [[1, 2], [3, 0.7]]\n"
                           "xl = sum(tanh(W @ x)*sin(x)); output xl")  # fmt: skip
    found = cgprimer.compare(graph)
    assert found.reference is not None
    for result in found.results:
        limit = 1e-6 if result.method == "finite-difference" else 1e-9
        assert 0 < result.worst_error < limit, result.method
    slope = (1 - np.tanh(5.0) ** 2) * np.sin(1.0)
    assert float(found.reference["W[0,0]"]) == pytest.approx(slope, rel=1e-9)


def test_elements_rows_and_what_belongs_to_them():
    found = cgprimer.compare(example("softmax"), of="s[2]", wrt=["x[-1]", "x"])
    assert found.wrt == ("x[2]", "x[0]", "x[1]")
    row = cgprimer.gradient(example("softmax"), wrt="x")["x"][2]
    for result in found.results:
        assert [result.derivatives[f"x[{k}]"] for k in range(3)] == pytest.approx(row, rel=1e-7)
    found = cgprimer.compare(example("hidden_layer"), wrt="W1[1]")
    assert found.wrt == ("W1[1,0]", "W1[1,1]")
    assert np.shape(found.at["W1"]) == (3, 2)
    passes = {result.method: result.passes for result in found.results}
    assert (passes["forward"], passes["finite-difference"]) == (2, 4)  # not those of all W1
    wide = "input x[50] = 0.5; parameter W[50,50] = 0.01; y = sum(tanh(W @ x)); output y"
    one = cgprimer.compare(cgprimer.parse(wide), wrt="W[3,4]", methods=["forward", "reverse"])
    slope = 0.5 * (1 - np.tanh(0.25) ** 2)
    assert [r.derivatives["W[3,4]"] for r in one.results] == pytest.approx([slope] * 2)
    with refused(cgprimer.UsageError, "'s' ... [3]"):
        cgprimer.compare(example("softmax"))


def test_tables_of_forty_elements_are_readable_and_json_has_nested_lists():
    graph = cgprimer.parse(
        "input x[5] = 0.25; parameter W[8,5] = 0.5; y = sum(tanh(W @ x)); output y"
    )
    found = cgprimer.compare(graph)
    lines = str(found).splitlines()
    assert sum(line.startswith("dy/dW[") for line in lines) == 40
    assert max(map(len, lines)) <= 110
    run = CliRunner().invoke(cli, ["compare", "matrix_backpropagation", "--json"])
    plain = json.loads(run.output)
    assert plain["wrt"] == ["w1", "w2"]
    for method in plain["methods"]:
        np.testing.assert_allclose(method["derivatives"]["w1"], [[2, 0], [4, 0]], atol=1e-9)
    assert plain["at"]["w1"] == [[1, -1], [0.5, -2]]


def test_the_graph_beside_the_tables_has_whole_matrices():
    nodes = {
        n.label.split()[0]: n
        for n in build_complete_diagram(cgprimer.compare(example("hidden_layer"))).nodes
    }
    assert nodes["W1"].detail == ("= [[1, 1],", "[0.5, -2],", "[2, 0.25]]")
    assert nodes["w2"].detail == ("= [1, 3, -2]",)


def test_softmax_has_a_reference_although_its_shift_is_held():
    found = cgprimer.compare(example("softmax"), of="s[0]")
    s = np.exp([1.0, 2.0, 3.0]) / np.exp([1.0, 2.0, 3.0]).sum()
    assert found.reference is not None
    for k, slope in enumerate([s[0] - s[0] * s[0], -s[0] * s[1], -s[0] * s[2]]):
        assert float(found.reference[f"x[{k}]"]) == pytest.approx(slope, rel=1e-14)
    for formula in ("x*stop_gradient(x)", "exp(x - 2*stop_gradient(max(x)))"):
        hiding = cgprimer.parse(f"input x[2] = [1, 2]; y = sum({formula}); output y")
        assert cgprimer.compare(hiding).reference is None


def test_arrays_that_are_too_large_are_refused_at_once():
    graph = cgprimer.parse("input x[784] = 1; parameter W[128,784] = 1; y = sum(W @ x); output y")
    with pytest.raises(cgprimer.UsageError, match=r"100,352 elements of W"):
        cgprimer.compare(graph)
