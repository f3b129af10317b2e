"""The worked examples of the lectures: values, gradients, step sizes and training."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path

import numpy as np
import pytest

import cgprimer
from cgprimer.core.evaluation.runner import Runner
from tests.cases.case_tools import EXACT, METHODS, example

# Values of the output, and derivatives with respect to variables and parameters.
CASES = tomllib.loads(Path(__file__).with_name("worked_examples.toml").read_text("utf-8"))


def tolerance(method: str, exact: bool = False) -> dict[str, float]:
    """Return the tolerances of a method; exact numbers must match to the last bit."""
    if method == "finite-difference":
        return {"rtol": 1e-6, "atol": 1e-8}
    return {"rtol": 0.0 if exact else 1e-12, "atol": 0.0}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_match_published_numbers(name: str, method: str) -> None:
    graph, case = example(name), CASES[name]
    exact = case.get("exact", False)
    values = graph.evaluate()
    for variable, expected in case.get("values", {}).items():
        np.testing.assert_allclose(values[variable], expected, rtol=1e-15)
    near = tolerance("", exact)
    np.testing.assert_allclose(values[graph.only_output()], case["output"], **near)
    result = cgprimer.gradient(graph, wrt=tuple(case["gradient"]), method=method)
    assert list(result) == list(case["gradient"])
    for wrt, expected in case["gradient"].items():
        np.testing.assert_allclose(result[wrt], expected, **tolerance(method, exact), err_msg=wrt)


@pytest.mark.parametrize("method", METHODS)
def test_a1_batch_of_two_points(method: str) -> None:
    expected = {"ab": 1.171875, "bc": 1.171875, "cd": 0.25, "ac": -2.34375, "xa": 1.6875}
    values = example("lecture").evaluate({"xa": -0.5})
    assert values == {"xa": -0.5, "xx": 0.25, "xy": -1.75, "xz": -1.25, "xw": -1.203125}
    at = {"xa": np.array([0.5, -0.5])}
    result = cgprimer.gradient(example("lecture"), at, wrt=tuple(expected), method=method)
    for name, value in expected.items():
        both = [CASES["lecture"]["gradient"][name], value]
        np.testing.assert_allclose(result[name], both, **tolerance(method))


def test_a1_ab_and_bc_are_not_identifiable() -> None:
    xa = np.linspace(-1.0, 1.0, 41)
    result = cgprimer.gradient(example("lecture"), {"xa": xa})
    jacobian = np.stack([result[name] for name in ("ab", "bc", "cd", "ac")], axis=1)
    _, singular, directions = np.linalg.svd(jacobian)
    assert singular[2] > 1e-3 * singular[0]
    assert singular[3] < 1e-10 * singular[0]
    direction = directions[-1] / directions[-1][0]
    np.testing.assert_allclose(direction, [1.0, -1.0, 0.0, 0.0], atol=1e-8)
    values = [
        example("lecture").evaluate({"xa": xa, **at})["xw"] for at in ({}, {"ab": 2.5, "bc": 0.5})
    ]
    np.testing.assert_allclose(*values, rtol=1e-14, atol=1e-14)


def test_c1_paths_and_partials() -> None:
    tape = cgprimer.tape(example("two_paths"))
    program = cgprimer.differentiate(tape, wrt="a", method="path-sum")
    assert set(program.paths["L", "a"]) == {("a", "b", "d", "L"), ("a", "c", "d", "L")}
    assert program.pass_count == 2
    edges = cgprimer.partials(example("two_paths"))
    assert edges.variable_to_variable["L", "d"] == -1.0  # the factor common to both paths
    assert edges.variable_to_variable["d", "b"] == 0.5
    assert edges.variable_to_variable["d", "c"] == 4.0
    assert edges.variable_to_parameter["d", "w3"] == 6.0


@pytest.mark.parametrize("method", METHODS)
def test_d3_and_d5_derivatives_on_a_grid(method: str) -> None:
    near = {"rtol": 0, "atol": 6e-6 if method == "finite-difference" else 1e-12}
    points = np.linspace(-3.0, 3.0, 25)
    result = cgprimer.gradient(example("cosine_of_square"), {"x": points}, method=method)["x"]
    np.testing.assert_allclose(result, -2 * points * np.sin(points**2), **near)
    points = np.linspace(0.0, 2.0 * math.pi, 25)
    result = cgprimer.gradient(example("sine_chain"), {"w": points, "b": points}, method=method)
    np.testing.assert_allclose(result["w"], 3 * np.cos(4 * points), **near)
    np.testing.assert_allclose(result["b"], np.cos(4 * points), **near)


def test_e3_one_step_of_gradient_descent() -> None:
    graph, weights = example("mazur"), tuple(CASES["mazur"]["gradient"])
    gradient = cgprimer.gradient(graph, wrt=weights)
    stepped = {name: graph.values[name] - 0.5 * gradient[name] for name in weights}
    assert stepped["w1"] == pytest.approx(0.1497807161, abs=5e-11)
    assert stepped["w5"] == pytest.approx(0.3589164797, abs=5e-11)
    assert stepped["w8"] == pytest.approx(0.5613701211, abs=5e-11)
    # With the biases fixed. The published 0.291027924 has drifted.
    assert graph.evaluate(stepped)["xe"] == pytest.approx(0.2910277736935993, rel=1e-12)


REPEATED = [(method, {}) for method in EXACT] + [
    ("forward", {"carry": True}),
    ("symbolic", {"share": False}),
]


def repeated_derivatives(
    name: str, at: float, times: int, method: str, options: dict[str, bool]
) -> list[tuple[float, float]]:
    """Return values and derivatives of repeated differentiation of the tape."""
    tape, of = cgprimer.tape(example(name)), "y"
    pairs = []
    for _ in range(times):
        program = cgprimer.differentiate(tape, of=of, wrt="x", method=method, **options)
        # Forward-mode programs have seeds in addition to x, which are 1 here.
        scalars = dict.fromkeys(program.tape.of_kind("scalar"), 1.0) | {"x": at}
        result = Runner(program)({}, scalars, 1)
        pairs.append((result.values[of], result.derivatives[of, "x"]))
        tape, of = program.tape, program.passes[0].reads[0].output
    return pairs


@pytest.mark.parametrize(("method", "options"), REPEATED)
def test_e6_first_to_fourth_derivatives(method: str, options: dict[str, bool]) -> None:
    # tanh'' = -2 t s, tanh''' = -2 s^2 + 4 t^2 s, tanh'''' = 16 t s^2 - 8 t^3 s with s = 1 - t^2.
    t, s = np.tanh(1.0), 1.0 / np.cosh(1.0) ** 2
    of_tanh = [t, s, -2 * t * s, -2 * s**2 + 4 * t**2 * s, 16 * t * s**2 - 8 * t**3 * s]
    for name, expected in (("polynomial", [1.0, 4.0, 10.0, 6.0, 0.0]), ("tanh", of_tanh)):
        values, derivatives = zip(*repeated_derivatives(name, 1.0, 4, method, options), strict=True)
        assert values == pytest.approx(expected[:-1], rel=1e-12)
        assert derivatives == pytest.approx(expected[1:], rel=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_f2_jacobian_of_softmax(method: str) -> None:
    s = np.exp([1.0, 2.0, 3.0]) / np.exp([1.0, 2.0, 3.0]).sum()
    np.testing.assert_allclose(example("softmax").evaluate()["s"], s, rtol=1e-15)
    result = cgprimer.gradient(example("softmax"), wrt="x", method=method)["x"]
    np.testing.assert_allclose(result, np.diag(s) - np.outer(s, s), **tolerance(method))


SLIDE_ERRORS = {
    "forward": {1e-1: 4.3e-2, 1e-4: 4.2e-5, 1e-8: 3.0e-9, 1e-12: 4.3e-5},
    "central": {1e-1: 9.0e-4, 1e-4: 9.0e-10, 1e-8: 2.6e-9, 1e-12: 1.2e-5},
}


def difference_error(scheme: str, step: float) -> float:
    """Return the error of a difference quotient of the sine at 1."""
    slope = cgprimer.gradient(example("sine"), method="finite-difference", scheme=scheme, step=step)
    return abs(slope["x"] - math.cos(1.0))


@pytest.mark.parametrize(("scheme", "order"), [("forward", 1), ("central", 2)])
def test_d6_difference_errors_match_the_slide_and_their_order(scheme: str, order: int) -> None:
    for step, expected in SLIDE_ERRORS[scheme].items():
        assert expected / 2 <= difference_error(scheme, step) <= 2 * expected, step
    # From 1e-1 to 1e-3 Taylor's next term dominates: rounding adds 1e-13 at most.
    steps = np.geomspace(1e-1, 1e-3, 9)
    errors = [difference_error(scheme, float(step)) for step in steps]
    slope = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert slope == pytest.approx(order, abs=0.02)


def test_d6_complex_step_is_accurate_for_tiny_steps() -> None:
    for exponent in (10, 50, 100, 300):
        assert difference_error("complex-step", 10.0**-exponent) <= 1e-15


@pytest.mark.parametrize(("name", "accuracy"), [("two_layers", 0.9), ("one neuron", 0.85)])
def test_a3_networks_classify_the_lecture_data(name: str, accuracy: float) -> None:
    graph = cgprimer.networks.neuron(4) if name == "one neuron" else cgprimer.load(name)
    data = cgprimer.make_classes("lecture-neurons", graph, samples=1000)
    run = cgprimer.train(graph, data, loss="cross-entropy", epochs=20, batch_size=8)
    assert run.score(data).accuracy > accuracy


def test_a6_network_fits_the_lecture_planes() -> None:
    graph = cgprimer.parse("input x[2]; parameter W[2,10], V[10,2]; y = relu(x @ W) @ V")
    data = cgprimer.make_classes("lecture-planes", graph, samples=2000)
    run = cgprimer.train(graph, data, epochs=30, learning_rate=0.01)
    assert run.loss < 0.2  # two outputs; a guess of 1.5 for both has 0.5


@pytest.mark.parametrize(("w", "b", "before", "after"), [
    (0.6, 0.9, 0.81757, 0.09396), (2, 2, 0.98201, 0.20284),
])  # fmt: skip
def test_e8_nielsen_neuron_training(w: float, b: float, before: float, after: float) -> None:
    graph = cgprimer.load("one_neuron")
    data = cgprimer.Dataset.from_arrays({"x": [1.0]}, {"a": [0.0]})
    run = cgprimer.train(
        graph, data, optimizer="sgd", learning_rate=0.15, schedule="constant", epochs=300,
        loss="half-squared-error", start={"w": w, "b": b},
    )  # fmt: skip
    assert graph.evaluate({"x": 1, "w": w, "b": b})["a"] == pytest.approx(before, abs=1e-5)
    assert run.predict({"x": [1.0]})["a"][0] == pytest.approx(after, abs=1e-5)
