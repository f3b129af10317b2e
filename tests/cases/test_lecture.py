"""Case A1: the lecture example, exact to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

import cgprimer
from tests.cases.case_tools import EXACT, METHODS, example, near

TRUTH = {"ab": 1.0, "bc": 2.0, "cd": 3.0, "ac": 4.0}
VALUES = {
    0.5: {"xx": 0.25, "xy": 2.25, "xz": 2.75, "xw": 21.546875},
    -0.5: {"xx": 0.25, "xy": -1.75, "xz": -1.25, "xw": -1.203125},
}
GRADIENTS = {
    0.5: {"ab": 5.671875, "bc": 5.671875, "cd": 0.25, "ac": 11.34375, "xa": 161.8125},
    -0.5: {"ab": 1.171875, "bc": 1.171875, "cd": 0.25, "ac": -2.34375, "xa": 1.6875},
}


def test_the_file_is_the_lecture_example():
    graph = example("lecture")
    assert graph.values == {"xa": 0.5, **TRUTH}
    assert graph.inputs == ("xa",)
    assert graph.outputs == ("xw",)
    assert graph.depends_on == {
        "xx": ["xa"],
        "xy": ["xa", "xx"],
        "xz": ["xx", "xy"],
        "xw": ["xx", "xz"],
    }
    assert graph.leads_to == {
        "xa": ["xx", "xy"],
        "xx": ["xy", "xz", "xw"],
        "xy": ["xz"],
        "xz": ["xw"],
    }
    lines = [
        line for line in graph.source.text.splitlines() if "=" in line and line.startswith("xx")
    ]
    assert lines == ["xx=xa^2"]


@pytest.mark.parametrize("xa", [0.5, -0.5])
def test_values_are_exact(xa):
    found = example("lecture").evaluate({"xa": xa})
    assert found == {"xa": xa, **VALUES[xa]}


@pytest.mark.parametrize("xa", [0.5, -0.5])
@pytest.mark.parametrize("method", EXACT)
def test_gradient_is_exact(method, xa):
    expected = GRADIENTS[xa]
    assert (
        cgprimer.gradient(example("lecture"), {"xa": xa}, wrt=tuple(expected), method=method)
        == expected
    )


@pytest.mark.parametrize("xa", [0.5, -0.5])
@pytest.mark.parametrize("scheme", ["central", "complex-step", "forward"])
def test_gradient_by_differences(scheme, xa):
    expected = GRADIENTS[xa]
    found = cgprimer.gradient(
        example("lecture"),
        {"xa": xa},
        wrt=tuple(expected),
        method="finite-difference",
        scheme=scheme,
    )
    # A forward difference errs by half the second derivative (some 900) times the step of 1.5e-8.
    tolerance = 1e-5 if scheme == "forward" else 1e-6
    assert found == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize("method", METHODS)
def test_both_points_as_one_array(method):
    found = cgprimer.gradient(example("lecture"), {"xa": [0.5, -0.5]}, method=method)
    for name in TRUTH:
        assert found[name].shape == (2,)
        for position, xa in enumerate((0.5, -0.5)):
            assert found[name][position] == near(GRADIENTS[xa][name], method)


@pytest.mark.parametrize("method", METHODS)
def test_the_data_cannot_tell_ab_from_bc(method):
    xa = np.linspace(-1.0, 1.0, 41)
    found = cgprimer.gradient(example("lecture"), {"xa": xa}, method=method)
    jacobian = np.stack([found[name] for name in ("ab", "bc", "cd", "ac")], axis=1)
    tolerance = 1e-6 if method == "finite-difference" else 1e-10
    singular = np.linalg.svd(jacobian, compute_uv=False)
    assert singular[2] > 1e-3 * singular[0]
    assert singular[3] < tolerance * singular[0]
    direction = np.linalg.svd(jacobian)[2][-1]
    direction = direction / direction[0]
    np.testing.assert_allclose(direction, [1.0, -1.0, 0.0, 0.0], atol=100 * tolerance)


def test_only_the_sum_of_ab_and_bc_counts():
    xa = np.linspace(-1.0, 1.0, 41)
    here = example("lecture").evaluate({"xa": xa})["xw"]
    there = example("lecture").evaluate({"xa": xa, "ab": 2.5, "bc": 0.5})["xw"]
    np.testing.assert_allclose(there, here, rtol=1e-14, atol=1e-14)
