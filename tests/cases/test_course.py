"""Cases B1 to B3, C1 and D1 to D5: worked examples of the courses the project grew out of."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cgprimer
from tests.cases.case_tools import EXACT, METHODS, check, example, near


@pytest.mark.parametrize("method", METHODS)
def test_b1_sigmoid_node(method):
    check("sigmoid_node", {"z": 0.14914645207033286}, method)
    values = example("sigmoid_node").evaluate()
    assert values["t1"] == -1.5
    assert values["t2"] == pytest.approx(0.22313016014842982, rel=1e-15)
    assert values["t3"] == pytest.approx(1.22313016014843, rel=1e-15)
    assert values["y"] == pytest.approx(0.8175744761936437, rel=1e-15)


@pytest.mark.parametrize("method", METHODS)
def test_b2_logistic_loss(method):
    expected = {"w": -0.25, "b": -0.125, "x": -0.0625}
    check("logistic_loss", expected, method)
    assert example("logistic_loss").evaluate()["l"] == 0.125
    if method in EXACT:  # exp(0) = 1, and everything else is a power of two
        found = cgprimer.gradient(example("logistic_loss"), wrt=tuple(expected), method=method)
        assert found == expected


@pytest.mark.parametrize("method", METHODS)
def test_b3_log_sine(method):
    check("log_sine", {"x1": 1.3632775200466683, "x2": 0.19118983333660757}, method)
    assert example("log_sine").evaluate()["y"] == pytest.approx(-0.66857123581752617, rel=1e-15)


@pytest.mark.parametrize("method", METHODS)
def test_b3_every_adjoint_is_upstream_times_local(method):
    x1, x2 = 0.5, 0.75
    v1, v2, v3 = x1 * x2, math.log(x1 * x2), math.sin(x2)
    check("log_sine", {"y": 1.0, "v3": v2, "v2": v3, "v1": v3 / v1, "x1": v3 / v1 * x2}, method)


@pytest.mark.parametrize("method", METHODS)
def test_c1_two_paths(method):
    expected = {"a": 2.5, "w1": -1.0, "w2": -8.0, "w3": -6.0, "w4": 2.0}
    check("two_paths", expected, method)
    assert example("two_paths").evaluate()["L"] == 15.0
    if method in EXACT:
        assert (
            cgprimer.gradient(example("two_paths"), wrt=tuple(expected), method=method) == expected
        )


def test_c1_the_two_paths_by_name():
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
def test_d1_cubic(method):
    check("cubic", {"x": 1.0}, method)
    if method in EXACT:
        assert cgprimer.gradient(example("cubic"), method=method) == {"x": 1.0}


@pytest.mark.parametrize("method", METHODS)
def test_d2_paraboloid(method):
    check("paraboloid", {"x": 16.0, "y": 30.0}, method)
    if method in EXACT:
        assert cgprimer.gradient(example("paraboloid"), method=method) == {"x": 16.0, "y": 30.0}


@pytest.mark.parametrize("method", METHODS)
def test_d3_cosine_of_a_square(method):
    points = np.linspace(-3.0, 3.0, 25)
    found = cgprimer.gradient(example("cosine_of_square"), {"x": points}, method=method)["x"]
    # Near the zeros of the derivative a relative tolerance means nothing: 6 is the largest slope.
    tolerance = 1e-6 if method == "finite-difference" else 1e-14
    np.testing.assert_allclose(found, -2 * points * np.sin(points**2), rtol=0, atol=6 * tolerance)


@pytest.mark.parametrize("method", METHODS)
def test_d4_forward_or_reverse(method):
    expected = {"x1": 6.0, "x2": 72.0, "x3": 24.0}
    check("forward_or_reverse", expected, method)
    assert example("forward_or_reverse").evaluate()["y"] == 78.0
    if method in EXACT:
        assert cgprimer.gradient(example("forward_or_reverse"), method=method) == expected


def test_d4_forward_needs_three_passes_and_reverse_one():
    tape = cgprimer.tape(example("forward_or_reverse"))
    assert cgprimer.differentiate(tape, method="forward").pass_count == 3
    assert cgprimer.differentiate(tape, method="reverse").pass_count == 1


@pytest.mark.parametrize("method", METHODS)
def test_d5_sine_chain(method):
    points = np.linspace(0.0, 2.0 * math.pi, 25)
    found = cgprimer.gradient(example("sine_chain"), {"w": points, "b": points}, method=method)
    tolerance = 1e-6 if method == "finite-difference" else 1e-12
    np.testing.assert_allclose(found["w"], 3 * np.cos(4 * points), rtol=0, atol=3 * tolerance)
    np.testing.assert_allclose(
        found["w"][:6], [3, 1.5, -1.5, -3, -1.5, 1.5], rtol=0, atol=3 * tolerance
    )
    np.testing.assert_allclose(found["b"], np.cos(4 * points), rtol=0, atol=tolerance)


def test_d5_the_chain_is_mul_add_sin():
    tape = cgprimer.tape(example("sine_chain"))
    assert [instruction.primitive for instruction in tape.instructions] == ["mul", "add", "sin"]
    assert near(3.0, "reverse") == cgprimer.gradient(example("sine_chain"))["w"]
