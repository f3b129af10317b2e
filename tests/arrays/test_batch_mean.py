"""A mean over the samples: values, the methods that carry it, and a clear word from the others."""

from __future__ import annotations

import numpy as np
import pytest

import cgprimer
from tests.approval import refused

# F10: batch normalization, of one column
NORMALIZED = """
input x
parameter gamma = 2, beta = 0.5
xm = batch_mean(x)
xv = batch_mean((x - xm)^2)
xy = gamma*(x - xm)/sqrt(xv) + beta
xl = 0.5*(xy - where(less(x, 5), 0, 1))^2
"""
X = np.array([1.0, 2.0, 4.0, 5.0])


def sums(graph, at, wrt, **options) -> dict[str, float]:
    found = cgprimer.gradient(graph, at, of="xl", wrt=wrt, **options)
    return {name: value.sum(axis=0) for name, value in found.items()}


METHODS = [
    ("reverse", {}),
    ("forward", {}),
    ("forward", {"carry": True}),
    ("finite-difference", {}),
]


@pytest.mark.parametrize(("method", "options"), METHODS, ids=str)
def test_batch_normalization_has_the_known_values(method, options):
    graph = cgprimer.parse(NORMALIZED)
    assert graph.evaluate({"x": X})["xl"].sum() == pytest.approx(5.970177871865296, rel=1e-12)
    found = sums(graph, {"x": X}, ("gamma", "beta"), method=method, **options)
    tolerance = 1e-7 if method == "finite-difference" else 1e-12
    assert found == pytest.approx({"gamma": 6.735088935932649, "beta": 1.0}, rel=tolerance)


def test_each_sample_has_its_derivative_of_the_batch():
    found = cgprimer.gradient(cgprimer.parse(NORMALIZED), {"x": X}, of="xl", wrt="x")["x"]
    known = [-0.1897366596101029, 0.06324555320335676, 0.569209978830308, -0.4427188724235731]
    np.testing.assert_allclose(found, known, rtol=1e-11)


def test_arrays_have_a_mean_for_each_of_their_elements():
    text = "input x[2]; parameter k[2] = [2, 3]; xl = sum((k*x - batch_mean(k*x))^2)"
    graph, x = cgprimer.parse(text), np.random.default_rng(1).normal(size=(5, 2))
    spread = ((x - x.mean(axis=0)) ** 2).sum(axis=0)
    expected = 2 * np.array([2.0, 3.0]) * spread
    for method, options in [*METHODS, ("finite-difference", {"scheme": "complex-step"})]:
        found = sums(graph, {"x": x}, ("k",), method=method, **options)["k"]
        tolerance = 1e-12 if options or method != "finite-difference" else 1e-7
        np.testing.assert_allclose(found, expected, rtol=tolerance)
    second = cgprimer.hessian(graph, {"x": x}, of="xl")["k"]["k"].sum(axis=0)
    np.testing.assert_allclose(second, np.diag(2 * spread), atol=1e-12)


@pytest.mark.parametrize("how", [{"method": m} for m in ("symbolic", "path-sum")] +
                                [{"engine": e} for e in ("cpu", "cuda")], ids=str)  # fmt: skip
def test_methods_and_engines_of_one_sample_say_so(how: dict[str, str]) -> None:
    with refused(cgprimer.CgprimerError, "batch_mean" if "method" in how else "plain, numpy"):
        sums(cgprimer.parse(NORMALIZED), {"x": X}, ("gamma",), **how)
