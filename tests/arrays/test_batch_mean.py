"""Mean over the samples: values, derivatives, and errors of methods without support."""

from __future__ import annotations

import numpy as np
import pytest

import cgprimer
from tests.approval import refused

# F10: batch normalization of one column
NORMALIZED = """
input x
parameter gamma = 2, beta = 0.5
xm = batch_mean(x)
xv = batch_mean((x - xm)^2)
xy = gamma*(x - xm)/sqrt(xv) + beta
xl = 0.5*(xy - where(less(x, 5), 0, 1))^2
"""
X = np.array([1.0, 2.0, 4.0, 5.0])


def summed_gradient(graph, at, wrt, **options) -> dict[str, float]:
    result = cgprimer.gradient(graph, at, of="xl", wrt=wrt, **options)
    return {name: value.sum(axis=0) for name, value in result.items()}


METHODS = [
    ("reverse", {}),
    ("forward", {}),
    ("forward", {"carry": True}),
    ("finite-difference", {}),
]


@pytest.mark.parametrize(("method", "options"), METHODS, ids=str)
def test_batch_normalization_matches_reference_values(method, options):
    graph = cgprimer.parse(NORMALIZED)
    assert graph.evaluate({"x": X})["xl"].sum() == pytest.approx(5.970177871865296, rel=1e-12)
    result = summed_gradient(graph, {"x": X}, ("gamma", "beta"), method=method, **options)
    tolerance = 1e-7 if method == "finite-difference" else 1e-12
    assert result == pytest.approx({"gamma": 6.735088935932649, "beta": 1.0}, rel=tolerance)


def test_input_gradient_of_batch_normalization():
    result = cgprimer.gradient(cgprimer.parse(NORMALIZED), {"x": X}, of="xl", wrt="x")["x"]
    known = [-0.1897366596101029, 0.06324555320335676, 0.569209978830308, -0.4427188724235731]
    np.testing.assert_allclose(result, known, rtol=1e-11)


def test_batch_mean_is_elementwise_for_arrays():
    text = "input x[2]; parameter k[2] = [2, 3]; xl = sum((k*x - batch_mean(k*x))^2)"
    graph, x = cgprimer.parse(text), np.random.default_rng(1).normal(size=(5, 2))
    spread = ((x - x.mean(axis=0)) ** 2).sum(axis=0)
    expected = 2 * np.array([2.0, 3.0]) * spread
    for method, options in [*METHODS, ("finite-difference", {"scheme": "complex-step"})]:
        result = summed_gradient(graph, {"x": x}, ("k",), method=method, **options)["k"]
        tolerance = 1e-12 if options or method != "finite-difference" else 1e-7
        np.testing.assert_allclose(result, expected, rtol=tolerance)
    second = cgprimer.hessian(graph, {"x": x}, of="xl")["k"]["k"].sum(axis=0)
    np.testing.assert_allclose(second, np.diag(2 * spread), atol=1e-12)


@pytest.mark.parametrize("kwargs", [{"method": m} for m in ("symbolic", "path-sum")] +
                                [{"engine": e} for e in ("cpu", "cuda")], ids=str)  # fmt: skip
def test_batch_mean_rejects_per_sample_methods_and_engines(kwargs: dict[str, str]) -> None:
    with refused(cgprimer.CgprimerError, "batch_mean" if "method" in kwargs else "plain, numpy"):
        summed_gradient(cgprimer.parse(NORMALIZED), {"x": X}, ("gamma",), **kwargs)
