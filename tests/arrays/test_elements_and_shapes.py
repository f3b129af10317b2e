"""Names of array elements, slices of arrays, and shape errors."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import cgprimer
from cgprimer.core.methods import differentiate
from cgprimer.errors import ShapeError
from tests.approval import refused

TEXT = """input x[3] = [1, 2, 3]
parameter W[2,3] = [[1, 2, 3], [4, 5, 6]], w2 = 2
y = tanh(W @ x/10)*w2
"""


@pytest.mark.parametrize("method", ["forward-over-reverse", "reverse-over-forward"])
def test_hessian_of_an_array_element(method: str) -> None:
    graph = cgprimer.parse(TEXT)
    result = cgprimer.hessian(graph, of="y[1]", wrt=("x", "w2"), method=method)
    top, row = np.tanh(3.2), np.array([0.4, 0.5, 0.6])
    slope = (1 - top**2) * row
    np.testing.assert_allclose(result["x"]["x"], -4 * top * (1 - top**2) * np.outer(row, row))
    np.testing.assert_allclose(result["x"]["w2"], slope)
    product = cgprimer.hessian_vector_product(graph, vector={"w2": 1.0}, of="y[1]")
    assert product["w2"] == 0.0
    with refused(cgprimer.CgprimerError, "7 ... [2]"):
        cgprimer.hessian(graph, of="y[7]")
    with refused(cgprimer.UsageError):
        cgprimer.hessian(graph, of="q[0]")


def test_elements_can_be_set_by_name() -> None:
    graph = cgprimer.parse(TEXT)
    at = {"x[0]": 3.0, "W[1,-1]": 7.0}
    full = {"x": [3.0, 2.0, 3.0], "W": [[1, 2, 3], [4, 5, 7]]}
    np.testing.assert_array_equal(graph.evaluate(at)["y"], graph.evaluate(full)["y"])
    result = cgprimer.gradient(graph, {"x[0]": [1.0, 2.0]}, of="y[0]", wrt="w2")["w2"]
    np.testing.assert_allclose(result, np.tanh([1.4, 1.5]))
    rows = {"W[0,1]": 9.0, "W[0]": [1, 2, 3], "x[0]": 3.0, "W[1,-1]": 7.0}
    full["W"][0] = [1, 9, 3]  # rows are assigned before elements, in any order
    np.testing.assert_array_equal(graph.evaluate(rows)["y"], graph.evaluate(full)["y"])
    for wrong, said in [
        ({"x[3]": 1.0}, "'x[3]'"),
        ({"W[2,0]": 1.0}, "'W[2,0]' ... W[0,0] ... W[1,2]"),
        ({"W[0]": [1.0, 2.0]}, "'W[0]' ... [3] ... [2]"),
        ({"q[0]": 1.0}, ""),
        ({"x[a]": 1.0}, ""),
    ]:
        with refused(cgprimer.UsageError, said):
            graph.evaluate(wrong)
    bare = cgprimer.parse("input x[2]; y = sum(x)")
    with refused(cgprimer.UsageError):
        bare.evaluate({"x[0]": 1.0})
    assert bare.evaluate({"x[0]": 1.0, "x[1]": 2.0})["y"] == 3.0


def test_values_must_match_the_declared_shape():
    graph = cgprimer.parse("input x[3]; xh = 2*x")
    with refused(ShapeError, "[3] ... [2]"):
        graph.evaluate({"x": [1, 2]})
    for wrong in ([[1, 2], [3]], "abc", [1j, 2, 3], [None, 1, 2]):
        with refused(cgprimer.UsageError):
            graph.evaluate({"x": wrong})


def test_hessian_rejects_array_outputs_and_elements():
    graph = cgprimer.parse("parameter w[2] = 1; xh = w*w")
    with refused(cgprimer.DifferentiationError, "'xh' ... [2]"):
        cgprimer.hessian(graph)
    graph = cgprimer.parse("parameter w[2] = 1; xh = w @ w")
    with refused(cgprimer.UsageError, "'w'"):
        cgprimer.hessian(graph, wrt="w[0]")


def test_array_errors_suggest_valid_input():
    graph = cgprimer.parse("input x[3]; parameter W[2,3]; h = W @ x")
    with refused(cgprimer.MissingValueError, "x[3] = 0.5"):
        graph.evaluate()
    with refused(cgprimer.UsageError):
        graph.evaluate({"W": [[1, 2, 3], [1, 2]], "x": 1})
    at = {"W": 1, "x": 1}
    with pytest.raises(cgprimer.UsageError, match=r"--wrt 'W\[0,0\]'"):
        cgprimer.trace(graph, at, of="h[0]", wrt="W[0]")


def test_printed_program_lists_array_seeds_by_element():
    graph = cgprimer.parse("input x[3]; parameter W[2,3]; h = W @ x")
    program = differentiate(cgprimer.tape(graph), ["h"], ["W"], method="reverse")
    assert str(program).endswith("""# 2 passes
#   1: seed_h[0] = 1, the other seeds 0
#   2: seed_h[1] = 1, the other seeds 0""")


def test_slices_match_numpy_including_empty_ones():
    ends, x = ("", "-3", "-1", "0", "1", "4"), np.array([3.0, 5.0])
    for begin, end, step in product(ends, ends, ("1", "2", "-1", "-2")):
        result = cgprimer.parse(f"input x[2]; y = x[{begin}:{end}:{step}]").evaluate({"x": x})["y"]
        part = slice(*(int(text) if text else None for text in (begin, end, step)))
        np.testing.assert_array_equal(result, x[part], err_msg=str(part))


@pytest.mark.parametrize("method", cgprimer.methods())
@pytest.mark.parametrize("samples", [(), (2,), (0,)])
def test_jacobian_shapes_of_rows_and_empty_arrays(method, samples):
    graph = cgprimer.parse("input x[2,3], z; y = 2*x; e = x[:,2:1]*z; xo = sum(y^2) + sum(e)")
    x = np.arange(1.0, 7.0).reshape(2, 3) + np.zeros((*samples, 1, 1))
    of, wrt = ("y[1]", "e", "xo"), ("x[0]", "x", "e", "z")
    result = cgprimer.jacobian(graph, {"x": x, "z": 2.0}, of=of, wrt=wrt, method=method)
    shapes = {"y[1]": (3,), "e": (2, 0), "xo": (), "x[0]": (3,), "x": (2, 3), "z": ()}
    for one, other in product(of, wrt):
        value = np.asarray(result[one][other])
        assert value.shape == samples + shapes[one] + shapes[other], (one, other)
    np.testing.assert_allclose(result["xo"]["x[0]"], 8 * x[..., 0, :], rtol=1e-6)
    eye = np.broadcast_to(2 * np.eye(3), (*samples, 3, 3))
    np.testing.assert_allclose(result["y[1]"]["x"][..., 1, :], eye, atol=1e-6)


@pytest.mark.parametrize("method", [*cgprimer.methods(), "forward carry"])
def test_repeated_elements_have_separate_derivatives(method):
    name, carry = method.split()[0], {"carry": True} if method.endswith("carry") else {}
    graph = cgprimer.parse("input x[2]; parameter w; h = w*x[[0,0,1]]; xo = sum(h^2)")
    at = {"x": [3.0, 5.0], "w": 2.0}
    result = cgprimer.gradient(graph, at, wrt="h", method=name, **carry)["h"]
    np.testing.assert_allclose(result, [12.0, 12.0, 20.0], rtol=1e-6)


@pytest.mark.parametrize(
    "text", ["xh = exp(k*xa); xw = xh^2", "parameter k[1]; xh = exp(k*xa); xw = sum(xh^2)"]
)
@pytest.mark.parametrize("inner", ["reverse", "forward", "path-sum"])
def test_hessian_mixing_intermediate_variables_and_parameters(text, inner):
    """Differentiate 2*xh*exp(k*xa)*xa with respect to k at fixed xh, and with respect to xh."""
    graph, at = cgprimer.parse(text), {"xa": 2.0, "k": 0.3}
    result = cgprimer.hessian(graph, at, wrt=("xh", "k"), method=f"forward-over-{inner}")
    h = np.exp(0.6)
    expected = {"xh": {"xh": 2.0, "k": 4 * h}, "k": {"xh": 4 * h, "k": 16 * h**2}}
    for one, other in product(expected, expected):
        assert np.sum(result[one][other]) == pytest.approx(expected[one][other], rel=1e-12)
    product_ = cgprimer.hessian_vector_product(graph, at, {"xh": 1.0, "k": 2.0})
    assert np.sum(product_["xh"]) == pytest.approx(2 + 8 * h)
    assert np.sum(product_["k"]) == pytest.approx(4 * h + 32 * h**2)


@pytest.mark.parametrize("engine", ["plain", "cpu"])
def test_hessian_vector_product_rejects_per_sample_vectors(engine):
    """One engine used to accept vectors with one value per sample."""
    graph = cgprimer.parse("input x[2]; parameter w[2], k; xo = k*sum(w*x)^2")
    at = {"x": np.ones((5, 2)), "w": [1.0, 2.0], "k": 3.0}
    for vector in ({"w": np.ones((5, 2))}, {"k": np.ones(5)}):
        with refused(ShapeError, f"{next(iter(vector))} ... got"):
            cgprimer.hessian_vector_product(graph, at, vector, engine=engine)
