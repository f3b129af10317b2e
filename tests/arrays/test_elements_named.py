"""One element of an array as what is differentiated, and as what is given."""

from __future__ import annotations

import numpy as np
import pytest

import cgprimer
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


def test_starts_and_truths_of_elements_and_rows() -> None:
    graph = cgprimer.parse("input x[2]; parameter W[2,2] = [[1, 2], [3, 4]]; y = W @ x")
    data = cgprimer.make_dataset(graph, truth={"W[1,0]": 9.0, "W[0]": [5, 6]}, samples=20)
    exact = [[5, 6], [9, 4]]
    np.testing.assert_allclose(data.targets["y"], data.inputs["x"] @ np.transpose(exact))
    start = {"W[0,1]": 7.0, "W[0]": [5, 6], "W[1,-1]": 8.0}
    drawn = cgprimer.train(graph, data, epochs=0).parameters["W"]
    begun = cgprimer.train(graph, data, epochs=0, start=start, freeze=["W[1,0]"]).parameters["W"]
    np.testing.assert_array_equal(begun, [[5, 7], [3, 8]])  # what is frozen: as declared
    begun = cgprimer.train(graph, data, epochs=0, start=start).parameters["W"]
    np.testing.assert_array_equal(begun, [[5, 7], [drawn[1, 0], 8]])
    found = cgprimer.fit(graph, data, start=start, freeze=["W[0,1]"]).parameters
    assert found["W[0,1]"] == 7
    assert found["W[1,0]"] == pytest.approx(9)
    for wrong, said in [
        ({"W[2]": 1.0}, "[2, 2] ... W[2]"), ({"W[0]": [1, 2, 3]}, "2 ... 3"),
        ({"V[0]": 1.0}, "'V"), ({"W[0,0]": np.inf}, ""),
    ]:  # fmt: skip
        for function in (cgprimer.train, cgprimer.fit):
            with refused(cgprimer.UsageError, said):
                function(graph, data, start=wrong)


def test_inputs_of_another_shape_are_not_predicted() -> None:
    """Also where numpy would multiply them: a number for the two of x."""
    graph = cgprimer.parse("input x[2]; parameter w[2] = 1; y = sum(w*x)")
    run = cgprimer.train(graph, cgprimer.make_dataset(graph, samples=5), epochs=1)
    for wrong, hint in [
        (np.ones(5), "x[0]"), (np.ones((5, 3)), ""),
        (np.ones((5, 1, 2)), ".reshape(-1, 2)"),
    ]:  # fmt: skip
        with refused(cgprimer.DataError, hint):
            run.predict({"x": wrong})


def test_several_numbers_are_no_classes() -> None:
    """What is predicted of them has an R^2, and no table of who is taken for whom."""
    graph = cgprimer.parse("input x[2]; parameter W[2,2] = [[1, 2], [3, 4]]; y = W @ x")
    data = cgprimer.make_dataset(graph, samples=50)
    assert cgprimer.train(graph, data, epochs=1).score(data).confusion is None
    hot = np.eye(2)[(data.targets["y"][:, 0] > 0).astype(int)]
    for labels in (hot, 2 * hot - 1, 0.8 * hot + 0.1):
        labelled = cgprimer.Dataset.from_arrays(data.inputs, {"y": labels})
        assert cgprimer.train(graph, labelled, epochs=1).score(labelled).confusion is not None
