"""Cases of the lectures that are matrices, with their exact values; torch does the same."""

from __future__ import annotations

import numpy as np
import pytest

import cgprimer

METHODS = ("reverse", "forward", "symbolic", "path-sum", "finite-difference")

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
SOFTMAX = "parameter a[3] = [1, 2, 3]; xs = softmax(a)"
# F7: the Hamilton product
HAMILTON = """
parameter p[4] = [0.5, -1, 0.25, 2], q[4] = [1, 2, 3, 4]
x0 = p[0]*q[0] - p[1]*q[1] - p[2]*q[2] - p[3]*q[3]
x1 = p[0]*q[1] + p[1]*q[0] + p[2]*q[3] - p[3]*q[2]
x2 = p[0]*q[2] - p[1]*q[3] + p[2]*q[0] + p[3]*q[1]
x3 = p[0]*q[3] + p[1]*q[2] - p[2]*q[1] + p[3]*q[0]
xo = x0 + x1 + x2 + x3
output x0, x1, x2, x3, xo
"""


@pytest.mark.parametrize("method", METHODS)
def test_matrix_back_propagation(method):
    graph = cgprimer.parse(LECTURE)
    values = graph.evaluate()
    assert values["xh"].tolist() == [2, -5]
    assert values["xr"].tolist() == [2, 0]
    assert (values["xp"], values["xl"]) == (2, 1)
    found = cgprimer.gradient(graph, method=method)
    near = {"rel": 1e-6, "abs": 1e-9} if method == "finite-difference" else {"abs": 0}
    assert found["w2"] == pytest.approx(np.array([4.0, 0.0]), **near)
    assert found["w1"] == pytest.approx(np.array([[2.0, 0.0], [4.0, 0.0]]), **near)


@pytest.mark.parametrize("method", METHODS)
def test_softmax_and_its_jacobian(method):
    graph = cgprimer.parse(SOFTMAX)
    s = graph.evaluate()["xs"]
    known = [0.09003057317038046, 0.24472847105479767, 0.6652409557748219]
    np.testing.assert_allclose(s, known, rtol=1e-14)
    found = cgprimer.jacobian(graph, method=method)["xs"]["a"]
    np.testing.assert_allclose(found, np.diag(s) - np.outer(s, s), atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_the_hamilton_product(method):
    graph = cgprimer.parse(HAMILTON)
    values = graph.evaluate()
    assert [values[f"x{i}"] for i in range(4)] == [-6.25, -5, 9.75, 0.5]
    found = cgprimer.gradient(graph, of="xo", method=method)
    exact = {"p": [10, -2, 0, -4], "q": [1.75, 3.25, -2.75, -0.25]}
    for name, value in exact.items():
        tolerance = 1e-9 if method == "finite-difference" else 0
        np.testing.assert_allclose(found[name], value, atol=tolerance, rtol=0)


def classes(samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Two Gaussian classes of points, and their labels as 0-1 vectors."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, samples)
    centers = np.where(labels[:, None] == 0, -1.0, 1.0)
    return rng.normal(size=(samples, 2)) + centers, np.eye(2)[labels]


def test_training_one_by_one_agrees_with_torch():
    """F16: 2,000 samples one at a time, no bias, ReLU, squared error, rate 1e-6."""
    torch = pytest.importorskip("torch", reason="torch is not installed (extra 'torch')")
    x, labels = classes(2000)
    rng = np.random.default_rng(1)
    start = {"W": rng.normal(size=(10, 2)), "V": rng.normal(size=(2, 10))}
    graph = cgprimer.parse(
        "input x[2], xt[2]; parameter W[10,2], V[2,10]\nxl = sum((V @ relu(W @ x) - xt)^2)"
    )
    ours = {name: value.copy() for name, value in start.items()}
    for point, label in zip(x, labels, strict=True):
        found = cgprimer.gradient(graph, {"x": point, "xt": label, **ours})
        ours = {name: value - 1e-6 * found[name] for name, value in ours.items()}
    theirs = {n: torch.tensor(v, requires_grad=True) for n, v in start.items()}
    for point, label in zip(torch.tensor(x), torch.tensor(labels), strict=True):
        out = theirs["V"].mv(theirs["W"].mv(point).clamp(min=0))
        slopes = torch.autograd.grad(((out - label) ** 2).sum(), list(theirs.values()))
        with torch.no_grad():
            for value, slope in zip(theirs.values(), slopes, strict=True):
                value.sub_(1e-6 * slope)
    for name, value in ours.items():
        np.testing.assert_allclose(value, theirs[name].detach().numpy(), rtol=1e-12)


def test_a_network_of_matrices_is_the_same_network_in_numbers():
    """Six lines of matrices, and 4-8-8-1 written out."""
    from tests.cuda.cuda_tools import network

    graph = cgprimer.parse(
        "input x[4]; parameter W[8,4], b[8], V[8,8], c[8], w[8], d\n"
        "xh = tanh(W @ x + b)\nxg = tanh(V @ xh + c)\nxo = w @ xg + d"
    )
    rng = np.random.default_rng(3)
    at = {n: rng.normal(size=graph.shapes.get(n, ())) for n in (*graph.inputs, *graph.parameters)}
    numbers = {f"x{i}": v for i, v in enumerate(at["x"])}
    for layer, (weight, bias) in enumerate((("W", "b"), ("V", "c"), ("w", "d"))):
        rows, biases = np.atleast_2d(at[weight]), np.atleast_1d(at[bias])
        for j, row in enumerate(rows):
            numbers[f"b{layer}_{j}"] = biases[j]
            numbers |= {f"w{layer}_{i}_{j}": v for i, v in enumerate(row)}
    flat = network(4, 8, 8, 1)
    numbers = {name: float(value) for name, value in numbers.items()}
    expected = cgprimer.gradient(flat, numbers)
    found = cgprimer.gradient(graph, at)
    for layer, (weight, bias) in enumerate((("W", "b"), ("V", "c"), ("w", "d"))):
        for (j, i), value in np.ndenumerate(np.atleast_2d(found[weight])):
            assert value == pytest.approx(expected[f"w{layer}_{i}_{j}"], rel=1e-12)
        for j, value in enumerate(np.atleast_1d(found[bias])):
            assert value == pytest.approx(expected[f"b{layer}_{j}"], rel=1e-12)


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


def test_a_classifier_agrees_with_torch():
    """Softmax with cross-entropy, max, concatenate and a norm, over a batch."""
    torch = pytest.importorskip("torch", reason="torch is not installed (extra 'torch')")
    graph = cgprimer.parse(
        "input x[5], xt[3]; parameter W[4,5], b[4], V[3,8]\n"
        "xh = relu(W @ x + b); xg = concatenate(xh[::-1], tanh(xh))\n"
        "xl = -sum(xt*log_softmax(V @ xg)) + 0.1*norm(W) + max(xg)"
    )
    rng = np.random.default_rng(0)
    start = {n: rng.normal(size=graph.shapes[n]) for n in graph.parameters}
    x, xt = rng.normal(size=(7, 5)), np.eye(3)[rng.integers(0, 3, 7)]
    found = cgprimer.gradient(graph, {"x": x, "xt": xt, **start})
    theirs = {n: torch.tensor(v, requires_grad=True) for n, v in start.items()}
    for sample in range(7):
        h = torch.relu(theirs["W"] @ torch.tensor(x[sample]) + theirs["b"])
        g = torch.cat([h.flip(0), torch.tanh(h)])
        loss = -(torch.tensor(xt[sample]) * torch.log_softmax(theirs["V"] @ g, 0)).sum()
        loss = loss + 0.1 * theirs["W"].norm() + g.amax()
        slopes = torch.autograd.grad(loss, list(theirs.values()))
        for name, slope in zip(theirs, slopes, strict=True):
            np.testing.assert_allclose(found[name][sample], slope.numpy(), atol=1e-12)
