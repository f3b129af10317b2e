"""The lecture cases with arrays that come as examples: exact values, by every method."""

from __future__ import annotations

import numpy as np
import pytest

import cgprimer
from tests.cases.case_tools import METHODS, example

SOFTMAX = np.exp([1.0, 2.0, 3.0]) / np.exp([1.0, 2.0, 3.0]).sum()
EXACT = {  # name, value of the output, gradients
    "matrix_backpropagation": (1.0, {"w1": [[2.0, 0.0], [4.0, 0.0]], "w2": [[4.0], [0.0]]}),
    "hidden_layer": (
        9.0,
        {"W1": [[-6.0, -12.0], [0.0, 0.0], [12.0, 24.0]], "w2": [-18.0, 0.0, -15.0]},
    ),
    "hamilton": (-1.0, {"p": [10.0, -2.0, 0.0, -4.0], "q": [1.75, 3.25, -2.75, -0.25]}),
}


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("method", METHODS)
def test_gradients_are_exact(name, method):
    value, expected = EXACT[name]
    graph = example(name)
    assert graph.evaluate()[graph.only_output()] == value
    found = cgprimer.gradient(graph, method=method)
    assert list(found) == list(expected)
    for parameter, gradient in expected.items():
        if method == "finite-difference":
            np.testing.assert_allclose(found[parameter], gradient, rtol=1e-6, atol=1e-8)
        else:
            np.testing.assert_array_equal(found[parameter], gradient)


def test_values_on_the_way_are_those_of_the_lecture():
    values = example("matrix_backpropagation").evaluate()
    assert values["h"].tolist() == [[2.0, -5.0]]
    assert values["h_relu"].tolist() == [[2.0, 0.0]]
    assert values["y_pred"].tolist() == [[2.0]]
    assert example("hamilton").evaluate()["product"].tolist() == [-6.25, -5.0, 9.75, 0.5]


@pytest.mark.parametrize("method", METHODS)
def test_the_jacobian_of_softmax(method):
    graph = example("softmax")
    np.testing.assert_allclose(graph.evaluate()["s"], SOFTMAX, rtol=1e-15)
    found = cgprimer.gradient(graph, wrt="x", method=method)["x"]
    expected = np.diag(SOFTMAX) - np.outer(SOFTMAX, SOFTMAX)
    rtol = 1e-6 if method == "finite-difference" else 1e-12
    np.testing.assert_allclose(found, expected, rtol=rtol)


@pytest.mark.parametrize(
    "method", [pytest.param(m, marks=[pytest.mark.slow] * (m == "symbolic")) for m in METHODS]
)
def test_six_lines_are_a_network(method):
    graph = example("mlp")
    lines = [line for line in graph.text.splitlines() if not line.startswith("output")]
    assert len(lines) <= 6
    h = np.tanh(0.1 * 0.25)  # every unit of a layer has the same weights
    g = np.tanh(0.8 * h)
    assert graph.evaluate()["xy"] == pytest.approx(0.8 * g, rel=1e-14)
    found = cgprimer.gradient(graph, method=method)
    x = np.array([0.5, -0.25, 1.0, -1.0])
    to_g, to_h = 0.1 * (1 - g * g), 0.08 * (1 - g * g) * (1 - h * h)
    rtol = 1e-6 if method == "finite-difference" else 1e-12
    expected = {
        "W1": np.tile(to_h * x, (8, 1)), "b1": np.full(8, to_h),
        "W2": np.full((8, 8), to_g * h), "b2": np.full(8, to_g),
        "w3": np.full(8, g), "b3": 1.0,
    }  # fmt: skip
    assert list(found) == list(expected)
    for name, gradient in expected.items():
        np.testing.assert_allclose(found[name], gradient, rtol=rtol)
    assert sum(np.size(value) for value in found.values()) == 121
