"""Plots of training: variance and size of gradients, boundaries, batches, noise, activations."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

import cgprimer
from cgprimer import networks, plot
from cgprimer.errors import UsageError
from cgprimer.training.data import Dataset
from cgprimer.visualization.pages.learning.learning_page import learning_animation, learning_page
from cgprimer.visualization.plots.activations_plot import activation_distributions
from cgprimer.visualization.plots.batches_plot import descent_by_batches
from cgprimer.visualization.plots.boundary_plot import moments_of
from cgprimer.visualization.plots.descent_plot import descents
from cgprimer.visualization.plots.gradients_plot import adjoint_sizes, describe_change
from cgprimer.visualization.plots.loss_landscape import landscape
from cgprimer.visualization.plots.noise_plot import noisy_descents
from cgprimer.visualization.plots.variance_plot import gradient_variances
from tests.approval import approved, refused
from tests.plots.plot_tools import describe

LINE = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
NEURON = cgprimer.parse("xo = sigmoid(a*x1 + b*x2 + c)")
SINE = cgprimer.parse("y = sin(k*x); parameter k = 6")
START = {"k": -1.8}


def test_the_variance_of_a_batch_is_inverse_to_its_size() -> None:
    """Case F12."""
    data = cgprimer.make_dataset(LINE, samples=200, noise=0.5)
    found = gradient_variances(LINE, data, {"k": 1.0, "b": 0.0}, [1, 4, 16, 64], 500)
    assert found.slope == pytest.approx(-1.0, abs=0.05)
    assert found.variances * found.sizes == pytest.approx(np.full(4, found.of_one), rel=0.2)
    # By hand: the gradient of (k x + b - y)^2 is 2 r (x, 1).
    x, r = data.inputs["xa"], 1.0 * data.inputs["xa"] - data.targets["xw"]
    each = 2 * r[:, None] * np.stack([x, np.ones_like(x)], axis=1)
    assert found.of_one == pytest.approx(each.var(axis=0).sum())
    assert found.square == pytest.approx((each.mean(axis=0) ** 2).sum())
    equal = Dataset.from_arrays({"xa": [1.0, 1.0]}, {"xw": [1.0, 1.0]})
    assert np.isnan(gradient_variances(LINE, equal, None, [1, 2], 9).slope)
    plot.variance(LINE, equal, sizes=[1, 2], batches=9).draw_without_rendering()


def test_gradients_vanish_explode_or_do_neither() -> None:
    threes = "; ".join(f"x{k + 1} = 3*x{k}" for k in range(20))
    dead = "input xa = 1; xb = -1*xa; xc = relu(xb); xd = 2*xc; output xd"
    graphs = [
        networks.chain(20, activation="sigmoid"),
        cgprimer.parse(f"input x0 = 1; {threes}; output x20"),
        networks.mlp("4-8-8-8-1", activation="relu", seed=3),
        cgprimer.parse(dead),
    ]
    for graph in graphs:
        approved(plot.gradients(graph).axes[0].texts[0].get_text())


def test_the_depth_of_a_layer_is_the_longest_path_and_its_norm_is_that_of_the_array() -> None:
    graph = cgprimer.parse("xb = xa^2; xc = 3*xb; xd = xb + xc; output xd")
    for point in ({"xa": 1.0}, {"xa": [1.0, 2.0]}):
        found = adjoint_sizes(graph, point, "xd")
        assert [layer.names for layer in found] == [("xd",), ("xc",), ("xb",)]
        assert [layer.size for layer in found] == [1.0, 1.0, 4.0]
    arrays, scalars = (
        adjoint_sizes(networks.mlp("3-4-4-1", scalars=s, seed=5), None, "xo") for s in (False, True)
    )
    assert [x.size for x in arrays] == pytest.approx([x.size for x in scalars])
    assert describe_change(arrays) == describe_change(scalars)
    approved(describe(plot.gradients(graph, {"xa": 1.0, "target": 2.0}, loss="squared-error")))
    element = cgprimer.parse("input x[2] = [1, 2]; xh = 3*x; y = 2*xh")
    approved(describe(plot.gradients(element, of="y[1]")))


@pytest.mark.slow
def test_an_animation_has_a_frame_for_every_snapshot() -> None:
    data = cgprimer.make_classes("gaussians", NEURON, samples=60)
    run = cgprimer.train(NEURON, data, epochs=3)
    moving = Image.open(io.BytesIO(learning_animation(run, data, dark=True)))
    assert (moving.n_frames, moving.size) == (len(run.recorded_steps) + 1, (1280, 720))


def test_the_boundary_is_where_the_outputs_are_equal() -> None:
    data = cgprimer.make_classes("gaussians", NEURON, samples=60)
    run = cgprimer.train(NEURON, data, learning_rate=0.05, epochs=3, loss="cross-entropy")
    plane, snapshots = moments_of(run, data)
    assert [snapshot.step for snapshot in snapshots] == [0, *run.recorded_steps]
    assert [snapshots[k].loss for k in (0, -1)] == pytest.approx([run.start_loss, run.loss])
    assert snapshots[-1].wrong.mean() == 1 - run.score(data).accuracy
    for snapshot in snapshots:
        p, (line,) = snapshot.parameters, snapshot.lines
        zero = p["a"] * line[:, 0] + p["b"] * line[:, 1] + p["c"]
        assert zero == pytest.approx(np.zeros(len(line)), abs=0.01)
    # The areas of both sides make up the plane: shoelace formula.
    sizes = [
        abs(sum(np.sum(r[:-1, 0] * r[1:, 1] - r[1:, 0] * r[:-1, 1]) for r in rings)) / 2
        for rings in snapshots[-1].areas
    ]
    assert sum(sizes) == pytest.approx(np.prod([side[-1] - side[0] for side in plane.sides]))
    page = learning_page(run, data, title="</script><b>")
    assert "<b>" not in page
    assert "default-src 'none'" in page
    assert "https:" not in page


def test_boundaries_of_several_outputs_of_numbers_and_of_logits() -> None:
    random = np.random.default_rng(0)
    x, k = random.normal(size=(30, 2)), random.integers(0, 3, 30)
    inputs = {"x": x + 2.0 * k[:, None]}
    one_hot = Dataset.from_arrays(inputs, {"xo": np.eye(3)[k]})
    run = cgprimer.train(networks.mlp("2-3"), one_hot, epochs=2)
    plane, (end,) = moments_of(run, one_hot, most=1)
    assert plane.names == ("x[0]", "x[1]")
    assert plane.regions == ("xo[0]", "xo[1]", "xo[2]")
    assert end.wrong.mean() == pytest.approx(1 - run.score(one_hot).accuracy)
    one = cgprimer.parse("xo = a*x1 + b*x2 + c")
    columns = {"x1": inputs["x"][:, 0], "x2": inputs["x"][:, 1]}
    labelled = Dataset.from_arrays(columns, {"xo": (k > 0) * 1.0})
    logit = cgprimer.train(one, labelled, loss="cross-entropy-logit", epochs=20)
    (line,) = moments_of(logit, labelled, most=1)[1][0].lines
    assert logit.predict({"x1": line[:, 0], "x2": line[:, 1]})["xo"] == pytest.approx(0, abs=0.05)
    numbers = cgprimer.make_dataset(one, truth={"a": 1, "b": 2, "c": 0}, samples=50)
    plane, (end,) = moments_of(cgprimer.train(one, numbers, epochs=2), numbers, most=1)
    assert not plane.classes
    assert end.wrong.size == 0
    assert "accuracy" not in end.words
    assert len(plane.regions) == 6
    with refused(UsageError):
        plot.boundary(cgprimer.train(LINE, cgprimer.make_dataset(LINE, samples=9)), numbers)


def test_each_step_descends_the_surface_of_its_batch() -> None:
    data = cgprimer.make_dataset(LINE, samples=6, noise=0.5)
    parts = [data.where(np.arange(k, k + 2)) for k in (0, 2, 4)]
    found = [landscape(LINE, data=part, optimizers="none", grid=3) for part in [*parts, data]]
    walk = descent_by_batches(found, epochs=2, rate=0.1)
    k, b = found[0].start
    assert len(walk.points) >= 6
    for step, point in enumerate(walk.points):
        assert point == pytest.approx([k, b])
        x, y = parts[step % 3].inputs["xa"], parts[step % 3].targets["xw"]
        k, b = k - 0.1 * np.mean(2 * (k * x + b - y) * x), b - 0.1 * np.mean(2 * (k * x + b - y))
    chosen = descent_by_batches(found)
    assert found[-1].at_point(chosen.points[-1])[0] < found[-1].at_point(chosen.points[0])[0]
    assert (abs(chosen.points - [3, -1]) <= 3).all()
    with refused(UsageError, "3 ... 4 ... 12"):
        plot.batches(LINE, data=data)


def test_least_squares_and_adam_start_at_one_point_and_only_one_arrives() -> None:
    graph = cgprimer.parse("y = b1*(1 - exp(-b2*x)); parameter b1 = 240, b2 = 0.5")
    data = cgprimer.make_dataset(graph, samples=20, low=0, high=3, noise=5)
    start = {"b1": 500.0, "b2": 0.1}
    squares, adam = descents(graph, data, start, steps=300)
    at_start = cgprimer.loss_and_gradient(graph, data, reduction="mean")(start)[0]
    assert [squares.losses[0], adam.losses[0]] == pytest.approx([at_start, at_start])
    found = cgprimer.fit(graph, data, start=start)
    assert squares.losses[-1] * 20 == pytest.approx(found.residual_sum_of_squares)
    assert (np.diff(squares.losses) <= 0).all()
    assert len(squares.losses) < 40
    assert adam.losses[-1] > 5 * squares.losses[-1]
    _, wild = descents(graph, data, start, "sgd", {"sgd": 1e3}, 20)
    assert wild.label.endswith("diverges")
    perfect = plot.descent(LINE, cgprimer.make_dataset(LINE, samples=20), steps=20)
    assert perfect.axes[0].get_yscale() == "log"


def test_full_batches_stay_in_a_valley_and_single_samples_leave() -> None:
    found = noisy_descents(SINE, start=START, rate=1.6, seeds=5, steps=200)
    assert found.full[-1] == pytest.approx(-0.5255, abs=1e-3)
    assert not found.in_lowest
    one, four = found.panels
    n_left = one.left.sum()
    assert one.batch_size == 1
    assert n_left > 2
    assert four.left.sum() == 0
    assert one.sentence == f"batch size 1: {n_left} of 5 runs leave the valley"
    assert one.ends[one.left] == pytest.approx(np.full(n_left, 6.0), abs=1e-3)
    slopes = np.diff(found.losses)
    maxima = found.values[1:-1][(slopes[:-1] >= 0) & (slopes[1:] < 0)]
    low, high = maxima[maxima <= found.full[-1]], maxima[maxima > found.full[-1]]
    assert found.valley == (low.max(), high.min())


def test_the_descent_is_the_one_of_the_formulas() -> None:
    x = np.array([0.5, -1.0, 2.0])
    data = Dataset.from_arrays({"x": x}, {"y": np.sin(6 * x)})
    found = noisy_descents(SINE, data, start={"k": 1.0}, rate=0.01, steps=5, batch_sizes=1)
    k, path = 1.0, [1.0]
    for _ in range(5):
        k -= 0.01 * np.mean(2 * (np.sin(k * x) - np.sin(6 * x)) * np.cos(k * x) * x)
        path.append(k)
    assert found.full == pytest.approx(np.array(path))
    losses = [np.mean((np.sin(value * x) - np.sin(6 * x)) ** 2) for value in found.values]
    assert found.losses == pytest.approx(np.array(losses))
    options: dict[str, Any] = {"start": START, "rate": 0.5, "seeds": 2, "steps": 20}
    whole = noisy_descents(SINE, batch_sizes=100, **options)
    for path in whole.panels[0].paths:  # batches of all samples have no noise
        assert path == pytest.approx(whole.full)
    paths = [noisy_descents(SINE, seed=n, **options).panels[0].paths for n in (0, 0, 5)]
    assert np.array_equal(paths[0], paths[1])
    assert not np.array_equal(paths[0], paths[2])


def test_descents_that_have_not_converged_or_diverge_are_reported() -> None:
    approved(noisy_descents(SINE, start=START, rate=1e-4, seeds=1, steps=5).sentence)
    approved(noisy_descents(SINE, start={"k": 6.3}, rate=0.1, seeds=1).sentence)
    graph = cgprimer.parse("y = x*k^3; parameter k = 1")
    x = [100.0, 0.1, 0.1, 0.1]
    data = Dataset.from_arrays({"x": x}, {"y": x})
    options: dict[str, Any] = {"start": {"k": 1.05}, "rate": 3e-5, "batch_sizes": 1}
    (panel,) = noisy_descents(graph, data, seeds=3, steps=200, **options).panels
    assert panel.diverged == 3
    assert not panel.left.any()
    assert "3 diverge" in panel.sentence
    found = noisy_descents(cgprimer.load("lecture"), over="cd", start={"cd": -5}, seeds=1)
    assert found.full[-1] == pytest.approx(3.0, abs=1e-3)


def test_small_weights_shrink_activations_and_batch_normalization_keeps_them() -> None:
    plain, normalized = activation_distributions(depth=4, epochs=1)
    assert plain.start.shape == (4, 400, 32)
    spread, kept = (found.start.std(axis=(1, 2)) for found in (plain, normalized))
    assert (spread[1:] < 0.8 * spread[:-1]).all()
    assert kept == pytest.approx(np.full(4, kept[0]), rel=0.1)
    found, again = (
        activation_distributions(depth=1, width=4, epochs=1, seed=3)[1] for _ in range(2)
    )
    random = np.random.default_rng(3)
    x = random.standard_normal((400, 8))
    z = x @ (0.1 * random.standard_normal((4, 8))).T
    assert found.start[0] == pytest.approx(np.tanh((z - z.mean(0)) / np.sqrt(z.var(0) + 1e-5)))
    assert np.array_equal(found.trained, again.trained)


@pytest.mark.slow
def test_only_the_normalized_network_learns_from_small_weights() -> None:
    plain, normalized = activation_distributions()
    assert plain.losses[0] == pytest.approx(normalized.losses[0], rel=1e-3)
    assert plain.losses[1] > 0.9 * plain.losses[0]
    assert normalized.losses[1] < 0.3 * normalized.losses[0]


def test_panels_share_an_axis_and_zeros_of_relu_are_counted() -> None:
    options: dict[str, Any] = {"depth": 2, "width": 8, "activation": "relu", "std": 0.3}
    plain, _ = activation_distributions(**options, epochs=1)
    approved(plain.sentence, f"2 ... {100 * (plain.start[-1] == 0).mean():.0f} %")
    first, second = plot.activations(**options, epochs=1).axes
    assert first.get_ylim() == second.get_ylim()
