"""Curves of graphs with arrays: over and of their numbers, by name."""

from __future__ import annotations

import numpy as np
import pytest

import cgprimer
from cgprimer.core.graph import parse
from cgprimer.errors import UsageError
from cgprimer.training.objective import Objective, loss_and_gradient
from cgprimer.visualization.plots.error_plot import step_errors
from cgprimer.visualization.plots.function_plot import function_curves
from cgprimer.visualization.plots.gradients_plot import gradients
from cgprimer.visualization.plots.loss_landscape import landscape
from tests.approval import refused

F1 = """input x[2] = [1, 2]; parameter w1[2,2] = [[1, -1], [.5, -2]], w2[2] = [1, 3], y = 1
xh = x @ w1; xr = relu(xh); xp = xr @ w2; xL = (xp - y)^2"""
LINE = "input x[2]; parameter w[2] = [3, -1], b = 0.5; xw = x @ w + b"


def test_a_function_of_one_number_of_an_array() -> None:
    """F1 over w1[1,0]: the loss is (1 + 2 w - 1)^2 while the unit is on."""
    found = function_curves(parse(F1), 0, 2, wrt="w1[1,0]", order=2, points=5)
    places = found.places
    np.testing.assert_allclose(found.orders[0], (2 * places) ** 2, atol=1e-12)
    np.testing.assert_allclose(found.orders[1], 8 * places, atol=1e-12)
    np.testing.assert_allclose(found.orders[2], 8.0)
    moved = function_curves(parse(F1), 1, 2, at={"x": [1, 0], "w1[0,0]": 3}, wrt="y", points=2)
    np.testing.assert_allclose(moved.orders[0], [4.0, 1.0])


def test_the_v_of_a_number_of_an_array() -> None:
    found = step_errors(parse("input x[2] = [1, 2]; xw = sin(x) @ x"), wrt="x[1]", steps=[1e-4])
    alone = step_errors(
        parse("xw = sin(xb)*xb + sin(xa)"), {"xa": 1, "xb": 2}, wrt="xb", steps=1e-4
    )
    assert found.errors["central"] == pytest.approx(alone.errors["central"], rel=1e-2)


def test_a_landscape_over_numbers_of_arrays_is_that_of_the_numbers() -> None:
    numbers = "parameter wa = 3, wb = -1, b = 0.5; xw = xa*wa + xb*wb + b"
    arrays = parse(LINE)
    data = cgprimer.make_dataset(arrays, samples=50)
    x, target = data.inputs["x"], data.targets["xw"]
    single = cgprimer.Dataset.from_arrays({"xa": x[:, 0], "xb": x[:, 1]}, {"xw": target})
    found = landscape(arrays, ["w[0]", "b"], data, steps=10, grid=9)
    alone = landscape(parse(numbers), ["wa", "b"], single, steps=10, grid=9)
    np.testing.assert_allclose(found.losses, alone.losses, rtol=1e-12)
    for ours, theirs in zip(found.paths, alone.paths, strict=True):
        np.testing.assert_allclose(ours.points, theirs.points, rtol=1e-9)
    made = landscape(arrays, ["w[0]", "w[1]"], steps=2, grid=9)
    assert made.reference == (3.0, -1.0)
    assert made.lowest == (3.0, -1.0)


@pytest.mark.parametrize("curve", [function_curves, step_errors])
@pytest.mark.parametrize(
    ("wrt", "said"),
    [
        ("w1", "'w1' ... [2,2]"),
        ("w1[2,0]", "'w1[2,0]'"),
        (None, ""),
    ],
)
def test_names_that_are_no_numbers(curve: object, wrt: str | None, said: str) -> None:
    assert callable(curve)
    with refused(UsageError, said) as found:
        curve(parse(F1), wrt=wrt)
    assert found.value.hint


def test_adjoints_of_an_element_by_depth() -> None:
    graph = parse("input x[2] = [1, 2]; xh = 3*x; y = 2*xh")
    sizes = gradients(graph, of="y[1]").axes[0].lines[0].get_ydata()
    assert list(sizes) == [1, 1, 2]  # y[1], y, xh


def test_a_surface_is_over_numbers() -> None:
    with refused(UsageError, "'w'") as found:
        landscape(parse(LINE), ["w", "b"])
    assert "w[0]" in found.value.hint


_DEEP = "input x[3]; parameter V[4,3], W[2,4], b[4]; xh = tanh(V @ x + b); xw = sum(W @ xh)"
_ROWS = "input x[2,3]; parameter V[3,2], u[2]; xw = sum((x @ V) @ u)"
_WIDE = "input x[64]; parameter W[64,64], b[64]; xw = sum(tanh(W @ x + b))"
_NORM = "input x[3]; parameter g[3], w[3]; xw = batchnorm(x, g, w) @ g"


@pytest.mark.parametrize(
    ("text", "over"),
    [
        (_DEEP, ("V[1,2]", "W[0,3]")), (_DEEP, ("V[0,0]", "V[3,1]")), (_DEEP, ("b[1]", "W[1,1]")),
        (_ROWS, ("V[0,1]", "u[1]")), (_WIDE, ("W[7,3]", "b[7]")), (_NORM, ("g[0]", "w[2]")),
        ("input x[2]; parameter W[2,2], k[2]; xw = (W @ k) @ x", ("W[0,1]", "k[0]")),
        ("xw = log(k*k*xa^2)*b + 0*c", ("k", "b")), ("xw = xa; xv = k + b", ("k", "b")),
    ],
)  # fmt: skip
def test_points_of_a_landscape_are_computed_many_at_once(
    text: str, over: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, draw = parse(text), np.random.default_rng(0)
    at = {n: draw.normal(size=graph.shapes.get(n, ())) for n in graph.parameters}
    data = cgprimer.make_dataset(graph, truth=at, samples=70, noise=1.0)
    calls: list[int] = []
    sums = Objective.sums
    monkeypatch.setattr(Objective, "sums", lambda *given: calls.append(1) or sums(*given))
    found = landscape(graph, over, data, at=at, optimizers="none", grid=4)
    assert len(calls) == (16 if text == _NORM else 0)
    losses = loss_and_gradient(graph, data, reduction="mean")
    for row, second in enumerate(found.second):
        for column, first in enumerate(found.first):
            point = {n: value.copy() for n, value in at.items()}
            for name, value in zip(over, (first, second), strict=True):
                whole, _, rest = name.partition("[")
                point[whole][tuple(map(int, rest[:-1].split(","))) if rest else ()] = value
            wanted = losses(point)[0]
            assert found.losses[row, column] == pytest.approx(wanted, rel=1e-9, nan_ok=True)
