"""The loss over two parameters, paths on it, functions with derivatives, and saved runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cgprimer.core.graph.loading import load, parse
from cgprimer.errors import (
    CgprimerError,
    DataError,
    DifferentiationError,
    MissingValueError,
    UsageError,
)
from cgprimer.training.data import make_dataset
from cgprimer.training.loop import train
from cgprimer.training.objective import loss_and_gradient
from cgprimer.training.runs import save_run
from cgprimer.visualization.plots.function_plot import function_curves
from cgprimer.visualization.plots.loss_landscape import Landscape, landscape
from cgprimer.visualization.plots.loss_plot import compute_moving_average, over_time
from cgprimer.visualization.plots.loss_surface import build_loss_surface
from cgprimer.visualization.plots.plotted_runs import choose_axis, merge_true_values, name_runs
from tests.approval import refused

LINE = parse("xw = k*xa + b; parameter k = 3, b = -1")


def test_the_surface_is_lowest_at_the_truth() -> None:
    assert landscape(LINE, ["k", "b"], steps=1).lowest == (3.0, -1.0)
    found = landscape(load("examples/lecture.cg"), ["ab", "cd"], steps=1)
    assert found.lowest == found.reference == (1.0, 3.0)


def test_a_file_has_the_columns_that_the_loss_needs(tmp_path: Path) -> None:
    two = parse("xo = k*xa + b; xp = b*xa; parameter k = 3, b = -1; output xo, xp")
    file = tmp_path / "classes.csv"
    file.write_text("xa,label\n1,0\n2,1\n-1,1\n", encoding="utf-8")
    loss = "softmax-cross-entropy"
    found = landscape(two, ["k", "b"], file, grid=3, steps=1, loss=loss)
    x, k, b = np.array([1.0, 2.0, -1.0]), found.first[0], found.second[0]
    logits = np.stack([k * x + b, b * x])
    mean = (np.log(np.exp(logits).sum(axis=0)) - logits[[0, 1, 1], [0, 1, 2]]).mean()
    assert found.losses[0, 0] == pytest.approx(mean, rel=1e-12)


def test_heights_are_mean_losses() -> None:
    data = make_dataset(LINE, samples=50)
    found = landscape(LINE, ["b", "k"], data, grid=5, steps=1, ranges=[(-2, 2), (1, 4)])
    losses = loss_and_gradient(LINE, data, reduction="mean")
    for row, k in enumerate(found.second):
        for column, b in enumerate(found.first):
            assert found.losses[row, column] == pytest.approx(losses({"k": k, "b": b})[0])


def test_between_the_points_of_the_grid_a_parabola_is_exact() -> None:
    side = np.arange(4.0)
    losses = side**2 + side[:, None] ** 2 - 1
    unused = lambda two: (0.0, two)  # noqa: E731
    found = Landscape(("k", "b"), side, side, losses, None, "", (), side[:2], unused)
    fine = np.arange(13) / 4
    assert build_loss_surface(found).losses == pytest.approx(fine**2 + fine[:, None] ** 2 - 1)


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
def test_a_path_is_what_training_does(optimizer: str) -> None:
    data = make_dataset(LINE, samples=50)
    start = {"k": 1.0, "b": 2.0}
    found = landscape(
        LINE, ["k", "b"], data, start=start, optimizers=[optimizer], rates={optimizer: 0.05},
        steps=30, grid=3,
    )  # fmt: skip
    run = train(
        LINE, data, optimizer=optimizer, learning_rate=0.05, start=start, schedule="constant",
        batch_size=None, epochs=30,
    )  # fmt: skip
    (path,) = found.paths
    assert path.points[0].tolist() == [1.0, 2.0]
    assert path.points[-1] == pytest.approx([run.parameters["k"], run.parameters["b"]], rel=1e-9)
    assert path.losses[:-1] == pytest.approx(run.step_losses, rel=1e-9)


def test_a_graph_without_inputs_is_a_function() -> None:
    found = landscape(load("examples/paraboloid.cg"), ["x", "y"], steps=5)
    assert found.function == "f"
    expected = 2 * found.first**2 + 3 * found.second[:, None] ** 2
    assert found.losses == pytest.approx(expected)
    assert found.reference is None  # no data, so no values are true
    assert found.start.tolist() == [4.0, 5.0]
    assert found.has_inner_minimum
    assert found.lowest == pytest.approx((0.0, 0.0), abs=1e-12)


def test_a_range_without_the_minimum_is_known() -> None:
    graph = load("examples/paraboloid.cg")
    assert not landscape(graph, ["x", "y"], ranges=[(1, 7), (2, 8)], steps=1).has_inner_minimum
    plane = parse("parameter a = 1, b = 2; f = a - b; output f")
    assert not landscape(plane, ["a", "b"], steps=1).has_inner_minimum
    valley = parse("parameter a = 1, b = 2; f = (a - b)^2; output f")
    assert landscape(valley, ["a", "b"], steps=1).has_inner_minimum


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


def test_data_of_a_user_make_no_values_true() -> None:
    data = make_dataset(LINE, samples=20, truth={"k": 9.0, "b": 0.0})
    own = type(data).from_arrays({"xa": data.columns["xa"]}, {"xw": data.targets["xw"]})
    found = landscape(LINE, ["k", "b"], own, steps=1)
    assert (found.reference_kind, found.reference) == ("declared", (3.0, -1.0))
    assert found.lowest == pytest.approx((9.0, 0.0), abs=0.11)
    assert landscape(LINE, ["k", "b"], loss="output", steps=1).reference_kind == "declared"


def test_rates_that_are_chosen_go_down() -> None:
    for path in landscape(load("examples/lecture.cg"), ["ab", "cd"], grid=3).paths:
        assert path.losses[-1] < path.losses[0] / 100
        assert not path.diverged


def test_a_path_that_diverges_ends_at_its_last_finite_point() -> None:
    found = landscape(
        load("examples/lecture.cg"), ["ab", "cd"], rates={"sgd": 1.0}, optimizers=["sgd"], grid=3
    )
    assert found.paths[0].diverged
    assert np.isfinite(found.paths[0].points).all()


@pytest.mark.parametrize(
    ("over", "settings", "kind", "words"),
    [
        (["k"], {}, UsageError, ""),
        (["k", "k"], {}, UsageError, ""),
        (["k", "xa"], {}, UsageError, "'xa'"),
        (["k", "b"], {"optimizers": ["adamm"]}, UsageError, "adamm"),
        (["k", "b"], {"ranges": [(1, 0), (0, 1)]}, UsageError, "ascend"),
        (["k", "b"], {"ranges": [(0, 1)]}, UsageError, ""),
        (["k", "b"], {"rates": {"sgd": -1.0}}, UsageError, "positive"),
        (["k", "b"], {"start": {"xa": 1.0}}, UsageError, "start"),
        (["k", "b"], {"at": {"xa": 1.0}}, UsageError, "'xa'"),
    ],
)
def test_mistakes_with_surfaces(
    over: list[str], settings: dict[str, object], kind: type[CgprimerError], words: str
) -> None:
    with refused(kind, words):
        landscape(LINE, over, grid=3, **settings)  # type: ignore[arg-type]


def test_a_parameter_without_a_value() -> None:
    with pytest.raises(MissingValueError, match="'c'"):
        landscape(parse("xw = a*xa + b*xa^2 + c; parameter a = 1, b = 1"), ["a", "b"])


def test_derivatives_of_a_cubic() -> None:
    cubic = parse("xw = xa^3 + 2*xa^2 - 3*xa + 1")
    found = function_curves(cubic, 0, 2, order=4, points=3, tangent=1.0)
    assert [values[1] for values in found.orders] == [1.0, 4.0, 10.0, 6.0, 0.0]
    assert found.tangent == (1.0, 1.0, 4.0)


def test_a_function_of_a_parameter_at_a_point() -> None:
    found = function_curves(load("examples/lecture.cg"), 0, 2, wrt="ab", order=0, tangent=1.0)
    assert found.tangent == (1.0, 21.546875, 5.671875)
    assert len(found.orders) == 1


@pytest.mark.parametrize(
    ("text", "settings", "kind", "words"),
    [
        ("xw = xa*xb", {}, UsageError, ""),
        ("xw = k*xa", {}, MissingValueError, "'k'"),
        ("xw = xa", {"wrt": "q"}, UsageError, "'q'"),
        ("xw = xa", {"low": 1.0, "high": 1.0}, UsageError, "ascend"),
        ("xw = xa", {"order": 9}, UsageError, "order"),
        ("xw = log(xa)", {"low": -2.0, "high": -1.0}, UsageError, ""),
        ("xw = log(xa)", {"tangent": 0.0}, DifferentiationError, ""),
        ("xw = abs(xa)", {"tangent": 0.0}, DifferentiationError, "xw ... xa = 0"),
        ("xw = relu(xa)", {"tangent": 0.0}, DifferentiationError, ""),
        ("xw = step(xa)", {"tangent": 0.0}, DifferentiationError, ""),
        ("xw = stop_gradient(xa^2)", {"tangent": 1.0}, DifferentiationError, ""),
    ],
)
def test_mistakes_with_functions(
    text: str, settings: dict[str, object], kind: type[CgprimerError], words: str
) -> None:
    with refused(kind, words):
        function_curves(parse(text), **settings)  # type: ignore[arg-type]


def test_a_derivative_is_nan_where_the_function_is() -> None:
    found = function_curves(parse("xw = log(xa)"), -2, 2, order=2, points=5)
    for values in found.orders:
        assert np.isnan(values[:2]).all()
        assert np.isfinite(values[3:]).all()


def test_jumps_and_poles_are_found_and_steep_slopes_are_none() -> None:
    found = function_curves(parse("xw = abs(xa - 0.3)"), -1, 1, order=1)
    assert found.jumps[0] == ()
    (jump,) = found.jumps[1]
    assert (jump.left, jump.right) == (-1, 1)
    assert jump.place == pytest.approx(0.3, abs=1e-9)
    assert found.places[jump.after] < 0.3 < found.places[jump.after + 1]
    (pole,) = function_curves(parse("xw = 1/(xa - 0.3001)"), -1, 1, order=0).jumps[0]
    assert pole.left < -1e6 < 1e6 < pole.right
    for text in ("xw = tanh(900*xa)", "xw = sin(1/xa)", "xw = exp(30*xa)", "xw = xa"):
        assert function_curves(parse(text), -1.003, 1, order=0).jumps == ((),)


def test_tangents_where_parts_have_a_kink_or_hide_their_derivative() -> None:
    assert function_curves(parse("xw = abs(xa)*xa"), tangent=0.0).tangent == (0.0, 0.0, 0.0)
    hiding = parse("xw = xa^2 + 0*stop_gradient(xa)")
    assert function_curves(hiding, tangent=1.0).tangent == (1.0, 1.0, 2.0)


def test_saved_runs_come_back_by_name(tmp_path: Path) -> None:
    data = make_dataset(LINE, samples=100)
    for name, epochs in (("a", 6), ("b", 2)):
        save_run(train(LINE, data, epochs=epochs), tmp_path / f"{name}.json", LINE)
    runs = name_runs([tmp_path / "a.json", tmp_path / "b.json"])
    assert list(runs) == ["a", "b"]
    assert merge_true_values(runs) == {"k": 3.0, "b": -1.0}
    assert choose_axis({"a": runs["a"]}) == "epoch"
    assert choose_axis(runs) == "step"
    assert {name: len(over_time(run, "step")[1]) for name, run in runs.items()} == {"a": 12, "b": 4}


def test_mistakes_with_runs(tmp_path: Path) -> None:
    path = tmp_path / "no.json"
    path.write_text("{}")
    with refused(DataError):
        name_runs([path])
    with refused(UsageError):
        name_runs([tmp_path / "nowhere.json"])
    with pytest.raises(UsageError, match="twice"):
        name_runs([path, path])
    save_run(train(LINE, make_dataset(LINE, samples=9), epochs=0), path, LINE)
    with refused(UsageError):
        choose_axis(name_runs([path]))


def test_smoothing() -> None:
    assert compute_moving_average([1.0, 2.0, 6.0], 1) == [1.0, 2.0, 6.0]
    assert compute_moving_average([1.0, float("nan"), 3.0], 3) == [1.0, 2.0, 3.0]
    tiny = compute_moving_average([1e50, *[1e-20] * 40], 7)[
        -20:
    ]  # large past values leave no trace
    assert tiny == pytest.approx([1e-20] * 20)
    values = np.random.default_rng(0).normal(size=50)
    for window in (1, 2, 5, 8, 49, 50, 64, 200):
        slow = [
            values[max(0, k - (window - 1) // 2) : k + window // 2 + 1].mean() for k in range(50)
        ]
        assert compute_moving_average(values.tolist(), window) == pytest.approx(slow)


def test_compiled_code_draws_the_surface_of_many_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = parse("xw = a*tanh(b*xa); parameter a = 2, b = 0.5")
    few = landscape(graph, grid=9, steps=5)
    monkeypatch.setattr("cgprimer.visualization.plots.grid_losses.MANY_SAMPLES", 100)
    many = landscape(graph, grid=9, steps=5)
    np.testing.assert_allclose(many.losses, few.losses, rtol=1e-12, atol=1e-20)
    np.testing.assert_allclose(many.paths[0].points, few.paths[0].points, rtol=1e-9, atol=1e-9)
