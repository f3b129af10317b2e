"""Rows, nothing at all, samples of some, inner variables that are moved."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import cgprimer

METHODS = ("reverse", "forward", "finite-difference", "symbolic", "path-sum")


def test_slices_are_numpys_where_they_are_empty_too(monkeypatch):
    ends, x = ("", "-3", "-1", "0", "1", "4"), np.array([3.0, 5.0])
    for begin, end, step in product(ends, ends, ("1", "2", "-1", "-2")):
        found = cgprimer.parse(f"input x[2]; y = x[{begin}:{end}:{step}]").evaluate({"x": x})["y"]
        part = slice(*(int(text) if text else None for text in (begin, end, step)))
        np.testing.assert_array_equal(found, x[part], err_msg=str(part))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("samples", [(), (2,), (0,)])
def test_rows_and_arrays_of_nothing_have_their_shapes(method, samples):
    graph = cgprimer.parse("input x[2,3], z; y = 2*x; e = x[:,2:1]*z; xo = sum(y^2) + sum(e)")
    x = np.arange(1.0, 7.0).reshape(2, 3) + np.zeros((*samples, 1, 1))
    of, wrt = ("y[1]", "e", "xo"), ("x[0]", "x", "e", "z")
    found = cgprimer.jacobian(graph, {"x": x, "z": 2.0}, of=of, wrt=wrt, method=method)
    shapes = {"y[1]": (3,), "e": (2, 0), "xo": (), "x[0]": (3,), "x": (2, 3), "z": ()}
    for one, other in product(of, wrt):
        value = np.asarray(found[one][other])
        assert value.shape == samples + shapes[one] + shapes[other], (one, other)
    np.testing.assert_allclose(found["xo"]["x[0]"], 8 * x[..., 0, :], rtol=1e-6)
    eye = np.broadcast_to(2 * np.eye(3), (*samples, 3, 3))
    np.testing.assert_allclose(found["y[1]"]["x"][..., 1, :], eye, atol=1e-6)


@pytest.mark.parametrize("method", [*METHODS, "forward carry"])
def test_elements_that_are_computed_alike_are_moved_apart(method):
    name, carry = method.split()[0], {"carry": True} if method.endswith("carry") else {}
    graph = cgprimer.parse("input x[2]; parameter w; h = w*x[[0,0,1]]; xo = sum(h^2)")
    at = {"x": [3.0, 5.0], "w": 2.0}
    found = cgprimer.gradient(graph, at, wrt="h", method=name, **carry)["h"]
    np.testing.assert_allclose(found, [12.0, 12.0, 20.0], rtol=1e-6)


@pytest.mark.parametrize(
    "text", ["xh = exp(k*xa); xw = xh^2", "parameter k[1]; xh = exp(k*xa); xw = sum(xh^2)"]
)
@pytest.mark.parametrize("inner", ["reverse", "forward", "path-sum"])
def test_a_moved_inner_variable_moves_no_rule_that_uses_it(text, inner):
    """d/dk of 2*xh*exp(k*xa)*xa at a fixed xh, and the same with xh moved."""
    graph, at = cgprimer.parse(text), {"xa": 2.0, "k": 0.3}
    found = cgprimer.hessian(graph, at, wrt=("xh", "k"), method=f"forward-over-{inner}")
    h = np.exp(0.6)
    expected = {"xh": {"xh": 2.0, "k": 4 * h}, "k": {"xh": 4 * h, "k": 16 * h**2}}
    for one, other in product(expected, expected):
        assert np.sum(found[one][other]) == pytest.approx(expected[one][other], rel=1e-12)
    product_ = cgprimer.hessian_vector_product(graph, at, {"xh": 1.0, "k": 2.0})
    assert np.sum(product_["xh"]) == pytest.approx(2 + 8 * h)
    assert np.sum(product_["k"]) == pytest.approx(4 * h + 32 * h**2)


@pytest.mark.parametrize("engine", ["plain", "cpu"])
def test_a_vector_is_the_same_for_all_samples(engine):
    """With samples of its own it was a direction on one engine, and no number on another."""
    graph = cgprimer.parse("input x[2]; parameter w[2], k; xo = k*sum(w*x)^2")
    at = {"x": np.ones((5, 2)), "w": [1.0, 2.0], "k": 3.0}
    for name, value, said in [
        ("w", np.ones((5, 2)), r"\[2\], got \[5, 2\]"),
        ("k", np.ones(5), "got"),
    ]:
        with pytest.raises(cgprimer.errors.ShapeError, match=f"{name}.*{said}"):
            cgprimer.hessian_vector_product(graph, at, {name: value}, engine=engine)
