"""Graphs that nobody types: what they compute, and that all methods agree on them."""

from __future__ import annotations

import numpy as np
import pytest

import cgprimer
from cgprimer import networks

MADE = {
    "mlp": lambda seed: networks.mlp("3-4-2", seed=seed),
    "units": lambda seed: networks.mlp("3-4-2", seed=seed, scalars=True, activation="sigmoid"),
    "neuron": lambda seed: networks.neuron(3, seed=seed),
    "chain": lambda seed: networks.chain(5, seed=seed),
    "polynomial": lambda seed: networks.polynomial(4, seed=seed),
    "recurrent": lambda seed: networks.recurrent(3, seed=seed),
    "random": lambda seed: networks.random(8, seed=seed),
}


@pytest.mark.parametrize("kind", MADE)
def test_all_methods_agree_on_what_is_made(kind: str) -> None:
    for seed in range(3):
        graph = MADE[kind](seed)
        of = graph.outputs[0] + ("[0]" if graph.shapes.get(graph.outputs[0]) else "")
        wrt = [name for name in graph.parameters if cgprimer.gradient(graph, of=of, wrt=name)]
        expected = cgprimer.gradient(graph, of=of, wrt=wrt, method="symbolic")
        for method in ("forward", "reverse", "path-sum"):
            found = cgprimer.gradient(graph, of=of, wrt=wrt, method=method)
            for name in wrt:
                np.testing.assert_allclose(found[name], expected[name], rtol=1e-11, atol=1e-14)


INITIALIZED = {
    "mlp": lambda: networks.mlp("3-4-2", values=False),
    "units": lambda: networks.mlp("3-4-2", values=False, scalars=True, activation="relu"),
    "neuron": lambda: networks.neuron(3, values=False),
    "chain": lambda: networks.chain(5, values=False),
    "polynomial": lambda: networks.polynomial(4, values=False),
    "recurrent": lambda: networks.recurrent(3, values=False),
    "random": lambda: networks.random(8, values=False),
}


@pytest.mark.parametrize("kind", INITIALIZED)
def test_networks_with_initializers_declare_every_value(kind: str) -> None:
    graph, numbers = INITIALIZED[kind](), MADE[kind](0)
    assert graph.initializers.keys() == {*graph.inputs, *graph.parameters}
    assert (graph.inputs, graph.parameters) == (numbers.inputs, numbers.parameters)
    assert graph.shapes == numbers.shapes
    expressions = {name: graph.expression(name) for name in graph.definitions}
    if kind != "units":  # another activation
        assert expressions == {name: numbers.expression(name) for name in numbers.definitions}
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
    texts = {networks.random(30, inputs=3, seed=seed).source.text for seed in range(20)}
    assert len(texts) == 20
    assert networks.random(30, seed=4).source.text == networks.random(30, seed=4).source.text
    for seed in range(20):
        graph = networks.random(30, inputs=3, seed=seed)
        assert graph.outputs == ("xo",)
        assert {*graph.leads_to} >= {f"xv{k}" for k in range(1, 30)}
        assert set(graph.inputs) == {"x1", "x2", "x3"}
        assert abs(graph.evaluate({})["xo"]) < 100
