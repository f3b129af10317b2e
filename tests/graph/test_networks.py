"""Graphs that nobody types: what they declare and compute."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import cgprimer
from cgprimer import networks

MADE = {
    "mlp": partial(networks.mlp, "3-4-2"),
    "units": partial(networks.mlp, "3-4-2", scalars=True, activation="sigmoid"),
    "neuron": partial(networks.neuron, 3),
    "chain": partial(networks.chain, 5),
    "polynomial": partial(networks.polynomial, 4),
    "recurrent": partial(networks.recurrent, 3),
    "random": partial(networks.random, 8),
}


@pytest.mark.parametrize("kind", MADE)
def test_networks_with_initializers_declare_every_value(kind: str) -> None:
    graph, numbers = MADE[kind](values=False), MADE[kind](seed=0)
    assert graph.initializers.keys() == {*graph.inputs, *graph.parameters}
    assert (graph.inputs, graph.parameters) == (numbers.inputs, numbers.parameters)
    assert graph.shapes == numbers.shapes
    for name in graph.definitions:
        assert graph.expression(name) == numbers.expression(name)
    values = graph.evaluate()
    assert all(np.isfinite(values[name]).all() for name in graph.outputs)


def test_weights_before_a_rectifier_have_the_variance_of_he() -> None:
    graph = networks.mlp("9-4-2", activation="relu", values=False)
    laws = {name: law.name for name, law in graph.initializers.items()}
    assert laws == {"x": "uniform", "W1": "he", "b1": "zeros", "W2": "glorot", "b2": "zeros"}
    units = networks.mlp("8-4-2", activation="relu", values=False, scalars=True)
    assert units.initializers["w1_3_2"].arguments == (0.5,)
    assert units.initializers["w2_1_4"].arguments == (-1.0, 1.0)


@pytest.mark.parametrize("sizes", ["4-2-1", "2-3-3-2", "1-1"])
def test_units_and_matrices_are_the_same_function(sizes: str) -> None:
    matrices = networks.mlp(sizes, activation="sigmoid", output="tanh", seed=3)
    units = networks.mlp(sizes, activation="sigmoid", output="tanh", seed=3, scalars=True)
    (name,) = matrices.outputs
    expected = [units.evaluate({})[output] for output in units.outputs]
    assert np.ravel(matrices.evaluate({})[name]).tolist() == pytest.approx(expected, rel=1e-14)
    assert len(units.parameters) == sum(
        int(np.prod(matrices.shapes[p])) for p in matrices.parameters
    )


def test_the_recurrent_unit_is_the_lecture_s() -> None:
    graph = networks.recurrent(3)
    at = {"w": 0.5, "u": 1, "x1": 1, "x2": 2, "x3": 3}  # case F4
    assert graph.evaluate(at)["xh3"] == pytest.approx(0.998146762128968, rel=1e-12)
    found = cgprimer.gradient(graph, at)
    assert found["w"] == pytest.approx(0.003687663930367874, rel=1e-12)
    assert found["u"] == pytest.approx(0.011246733018121341, rel=1e-12)


def test_a_seed_decides_everything_and_every_expression_leads_to_the_output() -> None:
    graphs = [networks.random(30, inputs=3, seed=seed) for seed in range(8)]
    assert len({graph.source.text for graph in graphs}) == 8
    assert networks.random(30, inputs=3, seed=4).source.text == graphs[4].source.text
    for graph in graphs:
        assert graph.outputs == ("xo",)
        assert {*graph.leads_to} >= {f"xv{k}" for k in range(1, 30)}
        assert set(graph.inputs) == {"x1", "x2", "x3"}
        assert abs(graph.evaluate({})["xo"]) < 100
