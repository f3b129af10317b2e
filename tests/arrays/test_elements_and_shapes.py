"""Elements of arrays by their names, and shapes that do not fit."""

from __future__ import annotations

import numpy as np
import pytest

import cgprimer
from cgprimer.core.methods import differentiate
from cgprimer.errors import ShapeError
from tests.approval import refused

TEXT = """input x[3] = [1, 2, 3]
parameter W[2,3] = [[1, 2, 3], [4, 5, 6]], w2 = 2
y = tanh(W @ x/10)*w2
"""


@pytest.mark.parametrize("method", ["forward-over-reverse", "reverse-over-forward"])
def test_second_derivatives_of_an_element(method: str) -> None:
    graph = cgprimer.parse(TEXT)
    found = cgprimer.hessian(graph, of="y[1]", wrt=("x", "w2"), method=method)
    top, row = np.tanh(3.2), np.array([0.4, 0.5, 0.6])
    slope = (1 - top**2) * row
    np.testing.assert_allclose(found["x"]["x"], -4 * top * (1 - top**2) * np.outer(row, row))
    np.testing.assert_allclose(found["x"]["w2"], slope)
    product = cgprimer.hessian_vector_product(graph, vector={"w2": 1.0}, of="y[1]")
    assert product["w2"] == 0.0
    with refused(cgprimer.CgprimerError, "7 ... [2]"):
        cgprimer.hessian(graph, of="y[7]")
    with refused(cgprimer.UsageError):
        cgprimer.hessian(graph, of="q[0]")


def test_elements_are_given_by_name() -> None:
    graph = cgprimer.parse(TEXT)
    at = {"x[0]": 3.0, "W[1,-1]": 7.0}
    full = {"x": [3.0, 2.0, 3.0], "W": [[1, 2, 3], [4, 5, 7]]}
    np.testing.assert_array_equal(graph.evaluate(at)["y"], graph.evaluate(full)["y"])
    found = cgprimer.gradient(graph, {"x[0]": [1.0, 2.0]}, of="y[0]", wrt="w2")["w2"]
    np.testing.assert_allclose(found, np.tanh([1.4, 1.5]))
    rows = {"W[0,1]": 9.0, "W[0]": [1, 2, 3], "x[0]": 3.0, "W[1,-1]": 7.0}
    full["W"][0] = [1, 9, 3]  # rows come first, in whichever order they are given
    np.testing.assert_array_equal(graph.evaluate(rows)["y"], graph.evaluate(full)["y"])
    for wrong, said in [
        ({"x[3]": 1.0}, "'x[3]'"),
        ({"W[2,0]": 1.0}, "'W[2,0]' ... W[0,0] ... W[1,2]"),
        ({"W[0]": [1.0, 2.0]}, "'W[0]' ... [3] ... [2]"),
        ({"q[0]": 1.0}, ""),
        ({"x[a]": 1.0}, ""),
    ]:
        with refused(cgprimer.UsageError, said):
            graph.evaluate(wrong)
    bare = cgprimer.parse("input x[2]; y = sum(x)")
    with refused(cgprimer.UsageError):
        bare.evaluate({"x[0]": 1.0})
    assert bare.evaluate({"x[0]": 1.0, "x[1]": 2.0})["y"] == 3.0


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
