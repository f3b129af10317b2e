"""What training does, seen: variance of gradients, vanishing gradients, batches, boundaries."""

from __future__ import annotations

import numpy as np
import pytest

import cgprimer
from cgprimer import networks, plot
from cgprimer.errors import UsageError
from cgprimer.plots.gradients import adjoint_sizes, sentence
from cgprimer.plots.variance import gradient_variances

LINE = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")


def test_the_variance_of_a_batch_falls_like_one_over_its_size() -> None:
    """Case F12."""
    data = cgprimer.make_dataset(LINE, samples=1000, noise=0.5)
    found = gradient_variances(LINE, data, {"k": 1.0, "b": 0.0}, [1, 4, 16, 64, 256], 1000)
    assert found.slope == pytest.approx(-1.0, abs=0.03)
    assert found.variances * found.sizes == pytest.approx(np.full(5, found.of_one), rel=0.15)
    # By hand: the gradient of (k x + b - y)^2 is 2 r (x, 1).
    x, r = data.inputs["xa"], 1.0 * data.inputs["xa"] - data.targets["xw"]
    each = 2 * r[:, None] * np.stack([x, np.ones_like(x)], axis=1)
    assert found.of_one == pytest.approx(each.var(axis=0).sum())
    assert found.square == pytest.approx((each.mean(axis=0) ** 2).sum())


def test_variance_of_arrays_and_of_samples_that_are_all_alike() -> None:
    graph = networks.mlp("2-3-1")
    found = gradient_variances(graph, cgprimer.make_dataset(graph, samples=50), None, [1, 8], 500)
    assert found.slope == pytest.approx(-1.0, abs=0.15)
    alike = cgprimer.Dataset.from_arrays({"xa": [1.0, 1.0]}, {"xw": [1.0, 1.0]})
    assert np.isnan(gradient_variances(LINE, alike, None, [1, 2]).slope)
    plot.variance(LINE, alike, sizes=[1, 2]).draw_without_rendering()
    with pytest.raises(UsageError, match="batches"):
        plot.variance(LINE, batches=1)


def test_gradients_vanish_explode_or_do_neither() -> None:
    def said(graph: cgprimer.ExpressionGraph, at: dict[str, float] | None = None) -> str:
        (text,) = plot.gradients(graph, at).axes[0].texts
        return text.get_text()

    assert said(networks.chain(20, activation="sigmoid")).endswith("arrives: vanishes")
    threes = "\n".join(f"x{k + 1} = 3*x{k}" for k in range(20))
    grown = said(cgprimer.parse(f"{threes}\noutput x20"), {"x0": 1.0})
    assert grown == "grows by a factor of 3 per layer, 1.2e9 of it arrives: explodes"
    relu = networks.mlp("4-8-8-8-1", activation="relu", seed=3)
    assert said(relu).endswith("neither vanishes nor explodes")
    dead = cgprimer.parse("xb = -1*xa; xc = relu(xb); xd = 2*xc; output xd")
    assert said(dead, {"xa": 1.0}) == "nothing arrives from depth 2 on (xb)"
    with pytest.raises(UsageError, match="nothing between"):
        plot.gradients(cgprimer.parse("xw = 3*xa"), {"xa": 1})


def test_layers_are_the_longest_ways_and_norms_are_those_of_the_matrix_form() -> None:
    graph = cgprimer.parse("xb = xa^2; xc = 3*xb; xd = xb + xc; output xd")
    layers = adjoint_sizes(graph, {"xa": 1.0}, "xd")
    assert [layer.names for layer in layers] == [("xd",), ("xc",), ("xb",)]
    assert [layer.size for layer in layers] == [1.0, 1.0, 4.0]
    arrays, numbers = (networks.mlp("3-4-4-1", scalars=s, seed=5) for s in (False, True))
    both = [adjoint_sizes(g, None, "xo") for g in (arrays, numbers)]
    assert [x.size for x in both[0]] == pytest.approx([x.size for x in both[1]])
    assert sentence(both[0]) == sentence(both[1])
    several = adjoint_sizes(graph, {"xa": [1.0, 2.0]}, "xd")
    assert [layer.size for layer in several] == [1.0, 1.0, 4.0]
    outer = plot.gradients(graph, {"xa": 1.0, "target": 2.0}, loss="squared-error")
    assert outer.axes[0].lines[0].get_ydata().tolist() == [1.0, 4.0, 4.0, 16.0]  # type: ignore[union-attr]
