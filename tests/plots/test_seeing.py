"""What training does, seen: variance of gradients, vanishing gradients, batches, boundaries."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import cgprimer
from cgprimer import networks, plot
from cgprimer.errors import UsageError
from cgprimer.visualization.pages.learning.learning_page import learning_animation, learning_page
from cgprimer.visualization.plots.batches_plot import descent_by_batches
from cgprimer.visualization.plots.boundary_plot import moments_of
from cgprimer.visualization.plots.descent_plot import descents
from cgprimer.visualization.plots.gradients_plot import adjoint_sizes, describe_change
from cgprimer.visualization.plots.loss_landscape import landscape
from cgprimer.visualization.plots.variance_plot import gradient_variances
from tests.approval import refused

LINE = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")


def test_the_variance_of_a_batch_falls_like_one_over_its_size() -> None:
    """Case F12."""
    data = cgprimer.make_dataset(LINE, samples=1000, noise=0.5)
    found = gradient_variances(LINE, data, {"k": 1.0, "b": 0.0}, [1, 4, 16, 64, 256], 1000)
    assert found.slope == pytest.approx(-1.0, abs=0.03)
    assert found.variances * found.sizes == pytest.approx(np.full(5, found.of_one), rel=0.15)
    # By hand: the gradient of (k x + b - y)^2 is 2 r (x, 1).
    x, r = data.inputs["xa"], 1.0 * data.inputs["xa"] - data.targets["xw"]
    each = 2 * r[:, None] * np.stack([x, np.ones_like(x)], axis=1)
    assert found.of_one == pytest.approx(each.var(axis=0).sum())
    assert found.square == pytest.approx((each.mean(axis=0) ** 2).sum())


def test_variance_of_arrays_and_of_samples_that_are_all_alike() -> None:
    graph = networks.mlp("2-3-1")
    found = gradient_variances(graph, cgprimer.make_dataset(graph, samples=50), None, [1, 8], 500)
    assert found.slope == pytest.approx(-1.0, abs=0.15)
    alike = cgprimer.Dataset.from_arrays({"xa": [1.0, 1.0]}, {"xw": [1.0, 1.0]})
    assert np.isnan(gradient_variances(LINE, alike, None, [1, 2]).slope)
    plot.variance(LINE, alike, sizes=[1, 2]).draw_without_rendering()
    with pytest.raises(UsageError, match="batches"):
        plot.variance(LINE, batches=1)


def test_gradients_vanish_explode_or_do_neither() -> None:
    def said(graph: cgprimer.ExpressionGraph, at: dict[str, float] | None = None) -> str:
        (text,) = plot.gradients(graph, at).axes[0].texts
        return text.get_text()

    assert said(networks.chain(20, activation="sigmoid")).endswith("of its norm: vanishes")
    threes = "\n".join(f"x{k + 1} = 3*x{k}" for k in range(20))
    grown = said(cgprimer.parse(f"{threes}\noutput x20"), {"x0": 1.0})
    assert grown == "grows by a factor of 3 per layer, to 1.2e9 of its norm: explodes"
    relu = networks.mlp("4-8-8-8-1", activation="relu", seed=3)
    assert said(relu).endswith("neither vanishes nor explodes")
    dead = cgprimer.parse("xb = -1*xa; xc = relu(xb); xd = 2*xc; output xd")
    assert said(dead, {"xa": 1.0}) == "the adjoint is 0 from depth 2 on (xb)"
    with refused(UsageError):
        plot.gradients(cgprimer.parse("xw = 3*xa"), {"xa": 1})


def test_layers_are_the_longest_ways_and_norms_are_those_of_the_matrix_form() -> None:
    graph = cgprimer.parse("xb = xa^2; xc = 3*xb; xd = xb + xc; output xd")
    layers = adjoint_sizes(graph, {"xa": 1.0}, "xd")
    assert [layer.names for layer in layers] == [("xd",), ("xc",), ("xb",)]
    assert [layer.size for layer in layers] == [1.0, 1.0, 4.0]
    arrays, numbers = (networks.mlp("3-4-4-1", scalars=s, seed=5) for s in (False, True))
    both = [adjoint_sizes(g, None, "xo") for g in (arrays, numbers)]
    assert [x.size for x in both[0]] == pytest.approx([x.size for x in both[1]])
    assert describe_change(both[0]) == describe_change(both[1])
    several = adjoint_sizes(graph, {"xa": [1.0, 2.0]}, "xd")
    assert [layer.size for layer in several] == [1.0, 1.0, 4.0]
    outer = plot.gradients(graph, {"xa": 1.0, "target": 2.0}, loss="squared-error")
    assert outer.axes[0].lines[0].get_ydata().tolist() == [1.0, 4.0, 4.0, 16.0]  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def classified() -> tuple[cgprimer.TrainingRun, cgprimer.Dataset]:
    graph = cgprimer.parse("xo = sigmoid(a*x1 + b*x2 + c)")
    data = cgprimer.make_classes("gaussians", graph, samples=60)
    run = cgprimer.train(graph, data, learning_rate=0.05, epochs=12, loss="cross-entropy")
    return run, data


def test_the_boundary_is_where_the_outputs_change_sides(
    classified: tuple[cgprimer.TrainingRun, cgprimer.Dataset],
) -> None:
    run, data = classified
    plane, moments = moments_of(run, data)
    assert [moment.step for moment in moments] == [0, *run.recorded_steps]
    assert moments[0].loss == pytest.approx(run.start_loss)
    assert moments[-1].loss == pytest.approx(run.loss)
    assert moments[-1].wrong.mean() == 1 - run.score(data).accuracy
    for moment in moments:
        p = moment.parameters
        (line,) = moment.lines
        assert p["a"] * line[:, 0] + p["b"] * line[:, 1] + p["c"] == pytest.approx(
            np.zeros(len(line)), abs=0.01
        )
    # Areas of both sides make up the plane: shoelace formula.
    whole = np.prod([side[-1] - side[0] for side in plane.sides])
    sizes = [
        abs(sum(np.sum(r[:-1, 0] * r[1:, 1] - r[1:, 0] * r[:-1, 1]) for r in rings)) / 2
        for rings in moments[-1].areas
    ]
    assert sum(sizes) == pytest.approx(whole)


def test_planes_of_arrays_of_several_outputs_of_numbers_and_of_logits() -> None:
    random = np.random.default_rng(0)
    x, k = random.normal(size=(90, 2)), random.integers(0, 3, 90)
    inputs = {"x": x + 2.0 * k[:, None]}
    graph = networks.mlp("2-3")
    one_hot = cgprimer.Dataset.from_arrays(inputs, {"xo": np.eye(3)[k]})
    run = cgprimer.train(graph, one_hot, epochs=20)
    plane, (end,) = moments_of(run, one_hot, most=1)
    assert plane.names == ("x[0]", "x[1]")
    assert plane.regions == ("xo[0]", "xo[1]", "xo[2]")
    assert end.wrong.mean() == pytest.approx(1 - run.score(one_hot).accuracy)
    one = cgprimer.parse("xo = a*x1 + b*x2 + c")
    columns = {"x1": inputs["x"][:, 0], "x2": inputs["x"][:, 1]}
    labelled = cgprimer.Dataset.from_arrays(columns, {"xo": (k > 0) * 1.0})
    logit = cgprimer.train(one, labelled, loss="cross-entropy-logit", epochs=20)
    (line,) = moments_of(logit, labelled, most=1)[1][0].lines
    assert logit.predict({"x1": line[:, 0], "x2": line[:, 1]})["xo"] == pytest.approx(0, abs=0.05)
    numbers = cgprimer.make_dataset(one, truth={"a": 1, "b": 2, "c": 0}, samples=50)
    plane, (end,) = moments_of(cgprimer.train(one, numbers), numbers, most=1)
    assert not plane.classes
    assert end.words.count("accuracy") == 0
    assert len(plane.regions) == 6
    with refused(UsageError):
        plot.boundary(cgprimer.train(LINE, cgprimer.make_dataset(LINE, samples=9)), numbers)


def test_boundary_files(
    classified: tuple[cgprimer.TrainingRun, cgprimer.Dataset], tmp_path: Path
) -> None:
    run, data = classified
    text = learning_page(run, data, title="</script><b>")
    assert "<b>" not in text
    assert text.count("http:") == text.count("http://www.w3.org/2000/svg")
    assert "https:" not in text
    assert "default-src 'none'" in text
    moving = Image.open(io.BytesIO(learning_animation(run, data, dark=True)))
    assert (moving.n_frames, moving.size) == (len(run.recorded_steps) + 1, (1280, 720))


def test_each_step_goes_down_the_surface_of_its_batch() -> None:
    data = cgprimer.make_dataset(LINE, samples=6, noise=0.5)
    parts = [data.where(np.arange(k, k + 2)) for k in (0, 2, 4)]
    found = [landscape(LINE, data=part, optimizers="none", grid=3) for part in [*parts, data]]
    walk = descent_by_batches(found, epochs=2, rate=0.1)
    k, b = found[0].start
    for step, point in enumerate(walk.points):
        assert point == pytest.approx([k, b])
        x, y = parts[step % 3].inputs["xa"], parts[step % 3].targets["xw"]
        k, b = k - 0.1 * np.mean(2 * (k * x + b - y) * x), b - 0.1 * np.mean(2 * (k * x + b - y))
    chosen = descent_by_batches(found)
    assert found[-1].at_point(chosen.points[-1])[0] < found[-1].at_point(chosen.points[0])[0]
    assert (abs(chosen.points - [3, -1]) <= 3).all()
    with refused(UsageError, "3 ... 4 ... 12"):
        plot.batches(LINE, data=data)


def test_an_arrow_of_the_gradient_is_right_on_the_axes_scales() -> None:
    ranges = [(-3.0, 6.0), (-200.0, 200.0)]
    start = {"k": 4.0, "b": 100.0}
    data = cgprimer.make_dataset(LINE, samples=50)
    figure = plot.surface(
        LINE, data=data, ranges=ranges, start=start, gradient=1, optimizers="none"
    )
    arrow, word = figure.axes[0].texts
    tail, tip = np.array(arrow.xyann), np.array(arrow.xy)  # type: ignore[attr-defined]
    _, slope = cgprimer.loss_and_gradient(LINE, data, reduction="mean")(start)
    down = -np.array([slope["k"], slope["b"]])
    assert tail.tolist() == [4.0, 100.0]
    assert (tip - tail) / np.linalg.norm(tip - tail) == pytest.approx(down / np.linalg.norm(down))
    assert word.get_text() == "-gradient"
    many = plot.surface(LINE, data=data, gradient=4, optimizers="sgd").axes[0].texts
    assert len(many) == 5


def test_least_squares_and_adam_begin_at_one_point_and_only_one_arrives() -> None:
    graph = cgprimer.parse("y = b1*(1 - exp(-b2*x)); parameter b1 = 240, b2 = 0.5")
    data = cgprimer.make_dataset(graph, samples=20, low=0, high=3, noise=5)
    start = {"b1": 500.0, "b2": 0.1}
    squares, adam = descents(graph, data, start, steps=500)
    at_start = cgprimer.loss_and_gradient(graph, data, reduction="mean")(start)[0]
    assert squares.losses[0] == pytest.approx(at_start)
    assert adam.losses[0] == pytest.approx(at_start)
    found = cgprimer.fit(graph, data, start=start)
    assert squares.losses[-1] * 20 == pytest.approx(found.residual_sum_of_squares)
    assert (np.diff(squares.losses) <= 0).all()
    assert len(squares.losses) < 40
    assert adam.losses[-1] > 5 * squares.losses[-1]
    _, wild = descents(graph, data, start, "sgd", {"sgd": 1e3}, 20)
    assert wild.label.endswith("diverges")


def test_a_perfect_fit_is_drawn_on_a_logarithmic_axis() -> None:
    data = cgprimer.make_dataset(LINE, samples=20)
    assert plot.descent(LINE, data, steps=20).axes[0].get_yscale() == "log"
