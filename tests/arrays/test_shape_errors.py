"""What does not fit says both shapes, where it stands, and what would fit."""

from __future__ import annotations

import pytest

import cgprimer
from cgprimer.core.methods import differentiate
from cgprimer.errors import ShapeError
from tests.approval import refused


def test_given_values_have_the_declared_shape():
    graph = cgprimer.parse("input x[3]; xh = 2*x")
    with refused(ShapeError, "[3] ... [2]"):
        graph.evaluate({"x": [1, 2]})
    for wrong in ([[1, 2], [3]], "abc", [1j, 2, 3], [None, 1, 2]):
        with refused(cgprimer.UsageError):
            graph.evaluate({"x": wrong})


def test_second_derivatives_of_an_array_say_what_to_do():
    graph = cgprimer.parse("parameter w[2] = 1; xh = w*w")
    with refused(cgprimer.DifferentiationError, "'xh' ... [2]"):
        cgprimer.hessian(graph)
    graph = cgprimer.parse("parameter w[2] = 1; xh = w @ w")
    with refused(cgprimer.UsageError, "'w'"):
        cgprimer.hessian(graph, wrt="w[0]")


def test_hints_for_arrays_can_be_followed():
    graph = cgprimer.parse("input x[3]; parameter W[2,3]; h = W @ x")
    with refused(cgprimer.MissingValueError, "x[3] = 0.5"):
        graph.evaluate()
    with refused(cgprimer.UsageError):
        graph.evaluate({"W": [[1, 2, 3], [1, 2]], "x": 1})
    at = {"W": 1, "x": 1}
    with pytest.raises(cgprimer.UsageError, match=r"--wrt 'W\[0,0\]'"):
        cgprimer.trace(graph, at, of="h[0]", wrt="W[0]")


def test_seeds_of_arrays_are_shown_by_their_elements():
    graph = cgprimer.parse("input x[3]; parameter W[2,3]; h = W @ x")
    program = differentiate(cgprimer.tape(graph), ["h"], ["W"], method="reverse")
    assert str(program).endswith("""# 2 passes
#   1: seed_h[0] = 1, the other seeds 0
#   2: seed_h[1] = 1, the other seeds 0""")
