"""Cases A1, B, C1, D, E and F: the worked examples, with their values and gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.core.evaluation.runner import Runner
from tests.cases.case_tools import EXACT, METHODS, check, example, near

SOFTMAX = np.exp([1.0, 2.0, 3.0]) / np.exp([1.0, 2.0, 3.0]).sum()

# The value of the output, and derivatives with respect to any variables and parameters.
ROUNDED: dict[str, tuple[float, dict[str, float]]] = {
    "sigmoid_node": (0.8175744761936437, {"z": 0.14914645207033286}),
    "log_sine": (
        -0.66857123581752617,
        {
            "x1": 1.3632775200466683,
            "x2": 0.19118983333660757,
            "y": 1.0,
            "v3": math.log(0.375),
            "v2": math.sin(0.75),
            "v1": math.sin(0.75) / 0.375,
        },
    ),
    "baydin": (
        11.652071455223084,
        {"x1": 5.5, "x2": 1.7163378145367737, "v1": 1, "v2": 1, "v3": -1, "v4": 1, "v5": 1},
    ),
    "cs231n_neuron": (
        0.7310585786300049,
        {
            "w0": -0.19661193324148185,
            "w1": -0.3932238664829637,
            "w2": 0.19661193324148185,
            "x0": 0.3932238664829637,
            "x1": -0.5898357997244456,
        },
    ),
    "mazur": (
        0.2983711087600027,
        {
            "w1": 4.385677344743467e-4,
            "w2": 8.771354689486935e-4,
            "w3": 4.977127352608601e-4,
            "w4": 9.954254705217201e-4,
            "w5": 0.08216704056423078,
            "w6": 0.08266762784753326,
            "w7": -0.02260254047747506,
            "w8": -0.02274024221597821,
        },
    ),
    "tanh": (math.tanh(1.0), {"x": 0.419974341614026}),
}
# Sums and products of short numbers: exact to the last bit.
EXACTLY: dict[str, tuple[float, dict[str, Any]]] = {
    "lecture": (
        21.546875,
        {"ab": 5.671875, "bc": 5.671875, "cd": 0.25, "ac": 11.34375, "xa": 161.8125},
    ),
    "logistic_loss": (0.125, {"w": -0.25, "b": -0.125, "x": -0.0625}),
    "two_paths": (15.0, {"a": 2.5, "w1": -1.0, "w2": -8.0, "w3": -6.0, "w4": 2.0}),
    "cubic": (-5.0, {"x": 1.0}),
    "paraboloid": (107.0, {"x": 16.0, "y": 30.0}),
    "forward_or_reverse": (78.0, {"x1": 6.0, "x2": 72.0, "x3": 24.0}),
    "cs231n_product": (-12.0, {"x": -4.0, "y": -4.0, "z": 3.0}),
    "cs231n_max": (-20.0, {"x": -8.0, "y": 6.0, "z": 2.0, "w": 0.0}),
    "olah": (6.0, {"a": 2.0, "b": 5.0}),
    "accumulation": (108.0, {"x": 108.0, "y": 4.0, "b": 2.0, "c": 1.0}),
    "shared_sum": (5.0, {"a": 1.0, "b": 1.0, "d": 5.0}),
    "matrix_backpropagation": (1.0, {"w1": [[2.0, 0.0], [4.0, 0.0]], "w2": [[4.0], [0.0]]}),
    "hidden_layer": (
        9.0,
        {"W1": [[-6.0, -12.0], [0.0, 0.0], [12.0, 24.0]], "w2": [-18.0, 0.0, -15.0]},
    ),
    "hamilton": (-1.0, {"p": [10.0, -2.0, 0.0, -4.0], "q": [1.75, 3.25, -2.75, -0.25]}),
}
VALUES_ON_THE_WAY = {
    "lecture": {"xx": 0.25, "xy": 2.25, "xz": 2.75},
    "sigmoid_node": {"t1": -1.5, "t2": 0.22313016014842982, "t3": 1.22313016014843},
    "accumulation": {"x": 3.0, "y": 27.0, "b": 54.0, "c": 108.0, "m": 108.0},
    "baydin": {"v1": 0.6931471805599453, "v2": 10.0, "v3": -0.9589242746631385},
    "matrix_backpropagation": {"h": [[2.0, -5.0]], "h_relu": [[2.0, 0.0]], "y_pred": [[2.0]]},
    "hamilton": {"product": [-6.25, -5.0, 9.75, 0.5]},
    "softmax": {"s": SOFTMAX.tolist()},
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ROUNDED)
def test_gradients_have_the_published_digits(name: str, method: str) -> None:
    value, gradient = ROUNDED[name]
    check(name, gradient, method)
    assert example(name).evaluate()[example(name).only_output()] == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", EXACTLY)
def test_gradients_are_exact(name: str, method: str) -> None:
    value, expected = EXACTLY[name]
    graph = example(name)
    assert graph.evaluate()[graph.only_output()] == value
    found = cgprimer.gradient(graph, wrt=tuple(expected), method=method)
    assert list(found) == list(expected)
    for parameter, gradient in expected.items():
        tolerance = 1e-6 if method == "finite-difference" else 0.0
        np.testing.assert_allclose(found[parameter], gradient, rtol=tolerance, atol=tolerance / 100)


@pytest.mark.parametrize("name", VALUES_ON_THE_WAY)
def test_intermediate_values(name: str) -> None:
    values = example(name).evaluate()
    for variable, expected in VALUES_ON_THE_WAY[name].items():
        np.testing.assert_allclose(values[variable], expected, rtol=1e-15)


@pytest.mark.parametrize("method", METHODS)
def test_a1_at_two_points_in_one_array(method: str) -> None:
    expected = {"ab": 1.171875, "bc": 1.171875, "cd": 0.25, "ac": -2.34375, "xa": 1.6875}
    values = example("lecture").evaluate({"xa": -0.5})
    assert values == {"xa": -0.5, "xx": 0.25, "xy": -1.75, "xz": -1.25, "xw": -1.203125}
    at = {"xa": np.array([0.5, -0.5])}
    found = cgprimer.gradient(example("lecture"), at, wrt=tuple(expected), method=method)
    for name, value in expected.items():
        assert found[name].shape == (2,)
        assert found[name][0] == near(EXACTLY["lecture"][1][name], method)
        assert found[name][1] == near(value, method)


def test_a1_the_data_cannot_tell_ab_from_bc() -> None:
    xa = np.linspace(-1.0, 1.0, 41)
    found = cgprimer.gradient(example("lecture"), {"xa": xa})
    jacobian = np.stack([found[name] for name in ("ab", "bc", "cd", "ac")], axis=1)
    _, singular, directions = np.linalg.svd(jacobian)
    assert singular[2] > 1e-3 * singular[0]
    assert singular[3] < 1e-10 * singular[0]
    direction = directions[-1] / directions[-1][0]
    np.testing.assert_allclose(direction, [1.0, -1.0, 0.0, 0.0], atol=1e-8)
    values = [
        example("lecture").evaluate({"xa": xa, **at})["xw"] for at in ({}, {"ab": 2.5, "bc": 0.5})
    ]
    np.testing.assert_allclose(*values, rtol=1e-14, atol=1e-14)


def test_c1_the_two_paths_have_names_and_partials() -> None:
    tape = cgprimer.tape(example("two_paths"))
    program = cgprimer.differentiate(tape, wrt="a", method="path-sum")
    assert set(program.paths["L", "a"]) == {("a", "b", "d", "L"), ("a", "c", "d", "L")}
    assert program.pass_count == 2
    edges = cgprimer.partials(example("two_paths"))
    assert edges.variable_to_variable["L", "d"] == -1.0  # the factor that belongs to both paths
    assert edges.variable_to_variable["d", "b"] == 0.5
    assert edges.variable_to_variable["d", "c"] == 4.0
    assert edges.variable_to_parameter["d", "w3"] == 6.0


@pytest.mark.parametrize("method", METHODS)
def test_d3_and_d5_slopes_along_a_line(method: str) -> None:
    tolerance = 6e-6 if method == "finite-difference" else 1e-12
    points = np.linspace(-3.0, 3.0, 25)
    found = cgprimer.gradient(example("cosine_of_square"), {"x": points}, method=method)["x"]
    np.testing.assert_allclose(found, -2 * points * np.sin(points**2), rtol=0, atol=tolerance)
    points = np.linspace(0.0, 2.0 * math.pi, 25)
    found = cgprimer.gradient(example("sine_chain"), {"w": points, "b": points}, method=method)
    np.testing.assert_allclose(found["w"], 3 * np.cos(4 * points), rtol=0, atol=tolerance)
    np.testing.assert_allclose(found["b"], np.cos(4 * points), rtol=0, atol=tolerance)


def test_e3_one_step_of_gradient_descent() -> None:
    graph, weights = example("mazur"), tuple(ROUNDED["mazur"][1])
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


def repeatedly(
    name: str, at: float, times: int, method: str, options: dict[str, bool]
) -> list[tuple[float, float]]:
    """Return value and derivative of each derivative, by differentiating the tape again."""
    tape, of = cgprimer.tape(example(name)), "y"
    pairs = []
    for _ in range(times):
        program = cgprimer.differentiate(tape, of=of, wrt="x", method=method, **options)
        # Forward mode's programs have a seed besides x: the direction, which is 1 here.
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
        values, derivatives = zip(*repeatedly(name, 1.0, 4, method, options), strict=True)
        assert values == pytest.approx(expected[:-1], rel=1e-12)
        assert derivatives == pytest.approx(expected[1:], rel=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_f2_the_jacobian_of_softmax(method: str) -> None:
    found = cgprimer.gradient(example("softmax"), wrt="x", method=method)["x"]
    expected = np.diag(SOFTMAX) - np.outer(SOFTMAX, SOFTMAX)
    np.testing.assert_allclose(found, expected, rtol=1e-6 if "finite" in method else 1e-12)
