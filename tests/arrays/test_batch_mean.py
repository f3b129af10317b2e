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


def sums(graph, at, wrt, method="reverse", **options) -> dict[str, float]:
    found = cgprimer.gradient(graph, at, of="xl", wrt=wrt, method=method, **options)
    return {name: value.sum(axis=0) for name, value in found.items()}


def test_batch_normalization_has_the_known_values():
    graph = cgprimer.parse(NORMALIZED)
    assert graph.evaluate({"x": X})["xl"].sum() == pytest.approx(5.970177871865296, rel=1e-12)
    found = sums(graph, {"x": X}, ("gamma", "beta"))
    assert found["gamma"] == pytest.approx(6.735088935932649, rel=1e-12)
    assert found["beta"] == pytest.approx(1.0, rel=1e-12)
    by_sample = cgprimer.gradient(graph, {"x": X}, of="xl", wrt="x")["x"]
    known = [-0.1897366596101029, 0.06324555320335676, 0.569209978830308, -0.4427188724235731]
    np.testing.assert_allclose(by_sample, known, rtol=1e-11)


def test_methods_agree_on_sums_over_the_samples():
    graph, names = cgprimer.parse(NORMALIZED), ("gamma", "beta")
    exact = sums(graph, {"x": X}, names)
    for options in ({"method": "forward"}, {"method": "forward", "carry": True},
                    {"method": "finite-difference"}):  # fmt: skip
        assert sums(graph, {"x": X}, names, **options) == pytest.approx(exact, rel=1e-7)


def test_arrays_have_a_mean_for_each_of_their_places():
    graph = cgprimer.parse(
        "input x[2]; parameter k[2] = [2, 3]; xl = sum((k*x - batch_mean(k*x))^2)"
    )
    rng = np.random.default_rng(1)
    x = rng.normal(size=(5, 2))
    spread = ((x - x.mean(axis=0)) ** 2).sum(axis=0)
    expected = 2 * np.array([2.0, 3.0]) * spread
    for method in ("reverse", "forward", "finite-difference"):
        found = sums(graph, {"x": x}, ("k",), method)["k"]
        np.testing.assert_allclose(found, expected, rtol=1e-7)
    complex_step = sums(graph, {"x": x}, ("k",), "finite-difference", scheme="complex-step")
    np.testing.assert_allclose(complex_step["k"], expected, rtol=1e-12)
    second = cgprimer.hessian(graph, {"x": x}, of="xl")["k"]["k"].sum(axis=0)
    np.testing.assert_allclose(second, np.diag(2 * spread), atol=1e-12)


@pytest.mark.parametrize("how", [{"method": m} for m in ("symbolic", "path-sum")] +
                                [{"engine": e} for e in ("cpu", "cuda")], ids=str)  # fmt: skip
def test_methods_and_engines_of_one_sample_say_so(how: dict[str, str]) -> None:
    with refused(cgprimer.CgprimerError, "batch_mean" if "method" in how else "plain, numpy"):
        sums(cgprimer.parse(NORMALIZED), {"x": X}, ("gamma",), **how)
