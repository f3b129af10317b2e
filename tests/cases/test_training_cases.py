"""The lecture's networks as examples: what they predict, and that they learn their classes."""

from __future__ import annotations

import math

import pytest

import cgprimer


def test_a3_the_network_of_four_two_and_one_predicts() -> None:
    graph = cgprimer.load("two_layers")
    assert graph.evaluate()["xo"] == pytest.approx(0.707213228187718, rel=1e-14)
    x, weights = (0.2, -0.4, 0.6, 0.8), ((0.1, 0.2, 0.3, 0.4), (0.5, 0.6, 0.7, 0.8))

    def sigmoid(z: float) -> float:
        return 1 / (1 + math.exp(-z))

    hidden = [sigmoid(sum(w * v for w, v in zip(ws, x, strict=True)) + 0.05) for ws in weights]
    by_hand = sigmoid(0.9 * hidden[0] + 0.35 * hidden[1] + 0.07)
    assert graph.evaluate()["xo"] == pytest.approx(by_hand, rel=1e-15)
    error = by_hand - 1  # d (xo - 1)^2 / d cp, by hand
    slope = 2 * error * by_hand * (1 - by_hand) * hidden[0]
    found = cgprimer.gradient(graph, {"target": 1}, loss="squared-error", wrt="cp")
    assert found["cp"] == pytest.approx(slope, rel=1e-13)


def test_a3_it_learns_the_lecture_s_classes() -> None:
    graph = cgprimer.load("two_layers")
    data = cgprimer.make_classes("lecture-neurons", graph, samples=2000)
    run = cgprimer.train(graph, data, loss="cross-entropy", epochs=20, batch_size=8)
    assert run.score(data).accuracy > 0.9
    neuron = cgprimer.networks.neuron(4)
    data = cgprimer.make_classes("lecture-neurons", neuron, samples=2000)
    run = cgprimer.train(neuron, data, loss="cross-entropy", epochs=20, batch_size=8)
    assert run.score(data).accuracy > 0.85


def test_a6_a_network_learns_the_lecture_s_planes() -> None:
    graph = cgprimer.parse("input x[2]; parameter W[2,10], V[10,2]; y = relu(x @ W) @ V")
    data = cgprimer.make_classes("lecture-planes", graph, samples=2000)
    run = cgprimer.train(graph, data, epochs=30, learning_rate=0.01)
    assert run.loss < 0.2  # two outputs; a guess of 1.5 for both has 0.5


@pytest.mark.parametrize(("w", "b", "before", "after"), [
    (0.6, 0.9, 0.81757, 0.09396), (2, 2, 0.98201, 0.20284),
])  # fmt: skip
def test_e8_nielsens_neuron_is_an_example(w: float, b: float, before: float, after: float) -> None:
    graph = cgprimer.load("one_neuron")
    data = cgprimer.Dataset.from_arrays({"x": [1.0]}, {"a": [0.0]})
    run = cgprimer.train(
        graph, data, optimizer="sgd", learning_rate=0.15, schedule="constant", epochs=300,
        loss="half-squared-error", start={"w": w, "b": b},
    )  # fmt: skip
    assert graph.evaluate({"x": 1, "w": w, "b": b})["a"] == pytest.approx(before, abs=1e-5)
    assert run.predict({"x": [1.0]})["a"][0] == pytest.approx(after, abs=1e-5)
