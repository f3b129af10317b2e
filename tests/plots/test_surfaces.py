"""Loss surfaces over two parameters, and the paths of optimizers on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import cgprimer
from cgprimer import load, parse, plot
from cgprimer.support.array_elements import insert_elements
from cgprimer.training.data import make_dataset
from cgprimer.training.loop import train
from cgprimer.training.objective import Objective, loss_and_gradient
from cgprimer.visualization.plots.loss_landscape import Landscape, landscape
from cgprimer.visualization.plots.loss_surface import LossSurface, build_loss_surface
from cgprimer.visualization.plots.surface_3d import find_visible_points
from cgprimer.visualization.plots.surface_plot import draw_surface
from tests.approval import approved
from tests.plots.plot_tools import describe

LINE_TEXT = "xw = k*xa + b; parameter k = 3, b = -1"
LINE = parse(LINE_TEXT)


def test_the_lowest_point_is_at_the_true_values() -> None:
    assert landscape(LINE, ["k", "b"], steps=1).lowest == (3.0, -1.0)
    found = landscape(load("lecture"), ["ab", "cd"], steps=1)
    assert found.lowest == found.reference == (1.0, 3.0)


def test_a_file_has_the_columns_that_the_loss_needs(tmp_path: Path) -> None:
    two = parse("xo = k*xa + b; xp = b*xa; parameter k = 3, b = -1; output xo, xp")
    file = tmp_path / "classes.csv"
    file.write_text("xa,label\n1,0\n2,1\n-1,1\n", encoding="utf-8")
    found = landscape(two, ["k", "b"], file, grid=3, steps=1, loss="softmax-cross-entropy")
    x, k, b = np.array([1.0, 2.0, -1.0]), found.first[0], found.second[0]
    logits = np.stack([k * x + b, b * x])
    mean = (np.log(np.exp(logits).sum(axis=0)) - logits[[0, 1, 1], [0, 1, 2]]).mean()
    assert found.losses[0, 0] == pytest.approx(mean, rel=1e-12)


_DEEP = "input x[3]; parameter V[4,3], W[2,4], b[4]; xh = tanh(V @ x + b); xw = sum(W @ xh)"
_NORM = "input x[3]; parameter g[3], w[3]; xw = batchnorm(x, g, w) @ g"


@pytest.mark.parametrize(
    ("text", "over"),
    [
        (_DEEP, ("V[1,2]", "W[0,3]")), (_DEEP, ("b[1]", "W[1,1]")), (_NORM, ("g[0]", "w[2]")),
        ("input x[2,3]; parameter V[3,2], u[2]; xw = sum((x @ V) @ u)", ("V[0,1]", "u[1]")),
        ("xw = log(k*k*xa^2)*b + 0*c", ("k", "b")), ("xw = xa; xv = k + b", ("k", "b")),
    ],
)  # fmt: skip
def test_all_points_of_a_grid_are_computed_at_once(
    text: str, over: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, draw = parse(text), np.random.default_rng(0)
    at = {n: draw.normal(size=graph.shapes.get(n, ())) for n in graph.parameters}
    data = make_dataset(graph, truth=at, samples=70, noise=1.0)
    calls: list[int] = []
    sums = Objective.sums
    monkeypatch.setattr(Objective, "sums", lambda *args: calls.append(1) or sums(*args))
    found = landscape(graph, over, data, at=at, optimizers="none", grid=4)
    assert len(calls) == (16 if text == _NORM else 0)  # statistics of a batch depend on the point
    losses = loss_and_gradient(graph, data, reduction="mean")
    for row, column in np.ndindex(4, 4):
        point = insert_elements(
            {over[0]: found.first[column], over[1]: found.second[row]}, at, graph.shapes
        )
        expected = losses({**at, **point})[0]
        assert found.losses[row, column] == pytest.approx(expected, rel=1e-9, nan_ok=True)


def test_compiled_code_computes_the_surface_of_many_samples(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = parse("xw = a*tanh(b*xa); parameter a = 2, b = 0.5")
    few = landscape(graph, grid=5, steps=5)
    monkeypatch.setattr("cgprimer.visualization.plots.grid_losses.MANY_SAMPLES", 100)
    many = landscape(graph, grid=5, steps=5)
    np.testing.assert_allclose(many.losses, few.losses, rtol=1e-12, atol=1e-20)
    np.testing.assert_allclose(many.paths[0].points, few.paths[0].points, rtol=1e-9, atol=1e-9)


def test_a_graph_without_inputs_is_a_function() -> None:
    graph = load("paraboloid")
    found = landscape(graph, ["x", "y"], steps=5)
    assert (found.function, found.reference) == ("f", None)  # no data, so no values are true
    assert found.losses == pytest.approx(2 * found.first**2 + 3 * found.second[:, None] ** 2)
    assert found.start.tolist() == [4.0, 5.0]
    assert found.has_inner_minimum
    assert found.lowest == pytest.approx((0.0, 0.0), abs=1e-12)
    assert not landscape(graph, ["x", "y"], ranges=[(1, 7), (2, 8)], steps=1).has_inner_minimum
    plane, valley = (f"parameter a = 1, b = 2; f = {f}; output f" for f in ("a - b", "(a - b)^2"))
    assert not landscape(parse(plane), ["a", "b"], steps=1).has_inner_minimum
    assert landscape(parse(valley), ["a", "b"], steps=1).has_inner_minimum


@pytest.mark.parametrize(
    ("text", "minimum"),
    [
        ("f = (1 - a)^2 + 100*(b - a^2)^2", (1.0, 1.0)),
        ("f = (a - 20)^2 + exp(b) - b", (20.0, 0.0)),
        ("f = sqrt(1 + a^2 + 9*b^2)", (0.0, 0.0)),
    ],
)
def test_the_usual_range_holds_the_minimum_and_the_start(
    text: str, minimum: tuple[float, float]
) -> None:
    found = landscape(parse(f"parameter a = -1.2, b = 1; {text}; output f"), ["a", "b"], steps=1)
    for side, least, begin in zip((found.first, found.second), minimum, (-1.2, 1.0), strict=True):
        assert side[0] < least < side[-1]
        assert side[0] < begin < side[-1]


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
def test_a_path_consists_of_the_steps_of_training(optimizer: str) -> None:
    data, start = make_dataset(LINE, samples=50), {"k": 1.0, "b": 2.0}
    options: dict[str, Any] = {"start": start, "optimizers": optimizer, "grid": 3}
    (path,) = landscape(LINE, data=data, rates={optimizer: 0.05}, steps=9, **options).paths
    run = train(
        LINE, data, optimizer=optimizer, learning_rate=0.05, start=start, schedule="constant",
        batch_size=None, epochs=9,
    )  # fmt: skip
    assert path.points[0].tolist() == [1.0, 2.0]
    assert path.points[-1] == pytest.approx([run.parameters["k"], run.parameters["b"]], rel=1e-9)
    assert path.losses[:-1] == pytest.approx(run.step_losses, rel=1e-9)


def test_chosen_rates_decrease_the_loss_and_diverged_paths_stay_finite() -> None:
    options: dict[str, Any] = {"over": ["ab", "cd"], "grid": 3}
    for path in landscape(load("lecture"), **options).paths:
        assert path.losses[-1] < path.losses[0] / 100
        assert not path.diverged
    (path,) = landscape(load("lecture"), rates={"sgd": 1.0}, optimizers="sgd", **options).paths
    assert path.diverged
    assert np.isfinite(path.points).all()


def test_a_parabola_is_exact_between_grid_points() -> None:
    side = np.arange(4.0)
    losses = side**2 + side[:, None] ** 2 - 1
    unused = lambda two: (0.0, two)  # noqa: E731
    found = Landscape(("k", "b"), side, side, losses, None, "", (), side[:2], unused)
    surface = build_loss_surface(found)
    fine = np.arange(13) / 4
    assert surface.losses == pytest.approx(fine**2 + fine[:, None] ** 2 - 1)
    x, y = np.array([0.0, 0.25, 3.0]), np.array([2.0, 0.125, 3.0])
    between = (0.25**2 + 0.25**2 / 2 - 1, 17.0)  # bilinear: the mean of two grid points
    assert surface.interpolate_heights(x, y) == pytest.approx([3.0, *between])


def test_a_surface_hides_what_is_behind_it() -> None:
    """A ridge between the eye and one of three points."""
    side = np.linspace(-1.0, 1.0, 41)
    heights = np.where(np.abs(side)[:, None] < 0.06, 1.0, 0.0) * np.ones(41)
    shown = LossSurface(side, side, heights, 0.0, logarithmic=False)
    points = np.array([[0.0, -0.8, 0.0], [0.0, 0.15, 0.0], [0.0, 0.95, 0.0], [0.9, -0.15, 0.0]])
    assert find_visible_points(shown, points, (60.0, -90.0)).tolist() == [True, False, True, True]
    assert find_visible_points(shown, points, (60.0, 90.0)).tolist()[:3] == [True] * 3


def surface(text: str = LINE_TEXT, in_3d: bool = False, **options: Any) -> Figure:
    """Draw a coarse surface over k and b."""
    options = {"grid": 5, "optimizers": "none"} | options
    return draw_surface(landscape(parse(text), ["k", "b"], **options), in_3d=in_3d)


MADE = make_dataset(LINE, samples=20)
OTHER = make_dataset(LINE, samples=20, truth={"k": 1.0, "b": 0.0})
READ = cgprimer.Dataset.from_arrays(MADE.inputs, MADE.targets)  # the values behind it are unknown
OUTSIDE: dict[str, Any] = {
    "start": {"k": -20.0, "b": -20.0}, "ranges": [(0, 2), (-3, 1)], "optimizers": "sgd", "steps": 2,
}  # fmt: skip
EDGE: dict[str, Any] = {"ranges": [(0, 3), (-3, 1)], "optimizers": ["sgd", "adam"], "steps": 1}
UNDEFINED = "xw = log(k*xa + b); parameter k=3, b=5"
SURFACES: dict[str, Callable[[], Figure]] = {
    "true values": surface,
    "true values of data": lambda: surface(data=MADE),
    "true values of other data": lambda: surface(data=OTHER),
    "declared values": lambda: surface(data=READ),
    "values of the output": lambda: surface(loss="output"),
    "given values": lambda: surface(data=READ, at={"k": 2.0}),
    "given values of the other parameters": lambda: surface(at={"k": 2.0}),
    "outside": lambda: surface(**OUTSIDE),
    "outside in 3-D": lambda: surface(in_3d=True, **OUTSIDE),
    "edge": lambda: surface(**EDGE),
    "no finite loss": lambda: surface(UNDEFINED, grid=9),
    "no finite loss in 3-D": lambda: surface(UNDEFINED, in_3d=True, grid=9),
    "flat": lambda: surface(loss="0*out", optimizers="sgd", steps=2),
    "flat in 3-D": lambda: surface(loss="0*out", in_3d=True),
    "negative": lambda: surface(loss="out*target - 5"),
    "negative in 3-D": lambda: surface(loss="out*target - 5", in_3d=True),
    **{
        f"losses in {ranges}{' in 3-D' * in_3d}": lambda ranges=ranges, in_3d=in_3d: surface(
            ranges=ranges, in_3d=in_3d
        )
        for ranges in ([(0.4, 0.7), (1, 1.2)], [(-1, 1.5), (0, 1)], [(2.5, 3.5), (-1.5, -0.5)])
        for in_3d in (False, True)
    },
}  # fmt: skip


@pytest.mark.parametrize("name", SURFACES)
def test_surfaces_show_what_is_approved(name: str) -> None:
    approved(describe(SURFACES[name]()))


def arrows(figure: Figure) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the tails and the tips of the arrows of a gradient."""
    drawn = [text for axes in figure.axes for text in axes.texts if text.arrow_patch is not None]
    return [(np.array(text.xyann), np.array(text.xy)) for text in drawn]


def test_an_arrow_points_down_the_gradient_on_the_scales_of_the_axes() -> None:
    start, data = {"k": 4.0, "b": 100.0}, make_dataset(LINE, samples=50)
    options: dict[str, Any] = {"start": start, "gradient": 1, "optimizers": "none"}
    figure = plot.surface(LINE, data=data, ranges=[(-3.0, 6.0), (-200.0, 200.0)], **options)
    ((tail, tip),) = arrows(figure)
    _, slope = cgprimer.loss_and_gradient(LINE, data, reduction="mean")(start)
    down = -np.array([slope["k"], slope["b"]])
    assert tail.tolist() == [4.0, 100.0]
    assert (tip - tail) / np.linalg.norm(tip - tail) == pytest.approx(down / np.linalg.norm(down))
    assert figure.axes[0].texts[-1].get_text() == "-gradient"


def test_arrows_are_spread_over_a_path() -> None:
    found = arrows(plot.surface(load("paraboloid"), ["x", "y"], gradient=3))
    assert len(found) == 3
    assert found[0][0].tolist() == [4.0, 5.0]
    gaps = [np.hypot(*(a - b)) for k, (a, _) in enumerate(found) for b, _ in found[:k]]
    assert min(gaps) > 0.5
