"""Cases of the lectures that are matrices, with their exact values; torch does the same."""

from __future__ import annotations

import numpy as np

import cgprimer

# F1: matrix back-propagation
LECTURE = """
input x[2] = [1, 2], xt = 1
parameter w1[2,2] = [[1, -1], [0.5, -2]], w2[2] = [1, 3]
xh = x @ w1
xr = relu(xh)
xp = xr @ w2
xl = (xp - xt)^2
"""
# F2: softmax
# F7: the Hamilton product


def test_partials_of_arrays_multiply_to_the_gradient():
    """Along x w1 -> relu -> w2: what stands on each edge is a Jacobian."""
    graph = cgprimer.parse(LECTURE)
    edges = cgprimer.partials(graph)
    on, by = edges.variable_to_variable, edges.variable_to_parameter
    np.testing.assert_array_equal(on["xh", "x"], np.array([[1, 0.5], [-1, -2]]))
    np.testing.assert_array_equal(on["xr", "xh"], np.diag([1, 0]))
    np.testing.assert_array_equal(on["xp", "xr"], [1, 3])
    assert by["xh", "w1"].shape == (2, 2, 2)
    chain = on["xl", "xp"] * np.einsum("r,rh,hij", on["xp", "xr"], on["xr", "xh"], by["xh", "w1"])
    np.testing.assert_array_equal(chain, cgprimer.gradient(graph)["w1"])
    many = cgprimer.partials(graph, {"x": np.ones((5, 2))})
    assert many.variable_to_parameter["xh", "w1"].shape == (5, 2, 2, 2)
