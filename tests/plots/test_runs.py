"""Plots of training runs: losses and parameters over time, diverged runs, saved runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer import plot
from cgprimer.errors import DataError, NonFiniteError, UsageError
from cgprimer.training.loop import TrainingRun
from cgprimer.training.runs import save_run
from cgprimer.visualization.diagrams.figure_files import save_figure
from cgprimer.visualization.plots.loss_plot import compute_moving_average, over_time
from cgprimer.visualization.plots.plotted_runs import choose_axis, merge_true_values, name_runs
from tests.approval import refused
from tests.plots.plot_tools import drawn, entries, moved, run_of, runs_of

LINE = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
CLASSES = cgprimer.parse("xp = sigmoid(w*tanh(v*xa + c) + b); parameter w=2, b=-1, v=2, c=1")

# --- losses ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("losses", "log", "scales"),
    [
        ([1.0, 0.1], "auto", ("linear", "log")), ([1.0, 0.0], "auto", ("linear", "log")),
        ([1.0, -1.0], "auto", ("linear", "linear")), ([1.0, 0.1], "none", ("linear", "linear")),
        ([1.0, float("nan"), 0.5], "auto", ("linear", "log")),
        ([1.0, float("inf")], "auto", ("linear", "log")), ([1.0, 0.1], "x", ("log", "linear")),
        ([1.0, 0.1], "y", ("linear", "log")), ([1.0, 0.1], "both", ("log", "log")),
    ],
)  # fmt: skip
def test_axes_are_logarithmic_where_losses_allow_it(
    losses: list[float], log: str, scales: tuple[str, str]
) -> None:
    figure = plot.loss(run_of(losses), log=log)
    assert (figure.axes[0].get_xscale(), figure.axes[0].get_yscale()) == scales
    figure.draw_without_rendering()


def test_curves_have_the_losses_of_a_run() -> None:
    run = cgprimer.train(CLASSES, cgprimer.make_dataset(CLASSES, samples=100), epochs=6)
    places, losses = drawn(plot.loss(run, smooth=1), "training")
    assert places.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert losses.tolist() == [run.start_loss, *run.epoch_losses]
    places, losses = drawn(plot.loss(run, by="step"), "training")
    assert places.tolist() == list(range(1, run.steps + 1))
    assert losses.tolist() == run.step_losses
    thinned = run_of([3.0, 2.0, 1.0], steps_apart=4, steps=12)
    assert over_time(thinned, "step") == ([1.0, 5.0, 9.0], [3.0, 2.0, 1.0])
    run = run_of([1.0] * 100, validation_losses=[2.0, 1.0], settings={"steps_per_epoch": 40})
    assert list(plot.loss(run).axes[0].lines[1].get_xdata()) == [40.0, 80.0]
    old = run_of([1.0] * 100, validation_losses=[2.0, 1.0], epochs=2)  # a file without settings
    assert plot.loss(old).axes[0].lines[1].get_xdata()[-1] == 100


def test_moving_averages_are_means_of_windows_and_curves_stay_faint() -> None:
    values = np.random.default_rng(0).normal(size=50)
    for window in (1, 2, 5, 8, 49, 50, 64, 200):
        slow = [
            values[max(0, k - (window - 1) // 2) : k + window // 2 + 1].mean() for k in range(50)
        ]
        assert compute_moving_average(values.tolist(), window) == pytest.approx(slow)
    assert compute_moving_average([1.0, float("nan"), 3.0], 3) == [1.0, 2.0, 3.0]
    tiny = compute_moving_average([1e50, *[1e-20] * 40], 7)[-20:]
    assert tiny == pytest.approx([1e-20] * 20)  # large past values leave no trace
    raw, means = plot.loss(runs_of({"a": [1.0, 3.0, 5.0]}), smooth=3).axes[0].lines
    assert raw.get_alpha() == pytest.approx(0.3)
    assert list(raw.get_ydata()) == [1.0, 3.0, 5.0]
    assert list(means.get_ydata()) == [2.0, 3.0, 4.0]
    figure = plot.loss(runs_of({"one": [1.0], "long": [1.0, 0.5] * 50}), smooth=9)
    assert entries(figure) == ["one", "long, mean of 9"]


def test_names_and_titles_are_shown_as_written() -> None:
    figure = plot.loss(runs_of({"_a$b^2$": [1.0, 0.5], "c": [1.0, 0.2]}), title="$t_1")
    assert entries(figure)[0].endswith("_a$b^2$")
    figure.draw_without_rendering()
    run = moved({"k": [0.0, 1.0]})
    values = plot.parameters(run, final=True)
    titles = [
        f.axes[0].get_title() for f in (figure, plot.loss(run), plot.loss(run, title=""), values)
    ]
    assert titles == ["$t_1", "Loss", "", "Learned values"]
    assert plot.parameters(run).get_suptitle() == "Parameters over time"


# --- extreme losses -------------------------------------------------------------------------------


def test_diverged_and_lucky_losses_do_not_set_the_scale() -> None:
    good = [5000.0 / k for k in range(1, 200)]
    bad = [4000.0 * 1e9 ** (k**2) for k in range(6)]
    short = [4000.0, 1e60, 1e200]
    figure = plot.loss(runs_of({"good": good, "bad": bad, "short": short}), smooth=9)
    axes = figure.axes[0]
    assert axes.get_ylim()[1] < 1e8
    assert entries(figure) == ["good, mean of 9", "bad: diverges", "short: diverges"]
    assert list(axes.lines[-1].get_ydata()) == short
    axes = plot.loss(run_of([100.0 if k % 2 else 1e-14 for k in range(1000)]), smooth=10).axes[0]
    assert 0.1 < axes.get_ylim()[0] < 100 < axes.get_ylim()[1]
    noisy = plot.loss(runs_of({"a": [1e-12, *[50.0, 80.0] * 20], "b": [3.0, 2.0]}))
    assert entries(noisy) == ["a", "b"]
    assert noisy.axes[0].get_ylim()[1] > 80
    figure = plot.loss(runs_of({"a": [1.0, 0.5], "b": [float("nan")] * 2}))
    assert entries(figure) == ["a", "b: no finite loss"]


@pytest.mark.parametrize(
    "losses", [[4.0, 3.0], [0.0] * 6, [-1.0, -2.0], [1.0], [], [float("nan")] * 3, [1.0, 1e40]],
    ids=str,
)  # fmt: skip
def test_a_run_that_stopped_as_diverged_is_marked_for_any_losses(losses: list[float]) -> None:
    done: dict[str, Any] = {"epoch_losses": losses, "settings": {"steps_per_epoch": 1}}
    run = run_of(losses, stopped="diverged", epochs=len(losses), **done)
    seen = entries(plot.loss({"bad": run, "good": run_of([4.0, 3.0, 2.0])}))
    assert any(label.startswith("bad") and "diverges" in label for label in seen)
    assert "good" in seen


def test_the_end_of_a_diverged_run_is_marked() -> None:
    """A cross-entropy is infinite at once, when its recorded losses have hardly grown."""
    with pytest.raises(NonFiniteError) as stopped:
        cgprimer.train(CLASSES, cgprimer.make_dataset(CLASSES), loss="cross-entropy",
                       optimizer="sgd", learning_rate=500.0)  # fmt: skip
    run = stopped.value.run
    assert isinstance(run, TrainingRun)
    assert max(run.step_losses) < 100
    figure = plot.loss({"sgd": run})
    assert entries(figure) == ["sgd: diverges"]
    assert [text.get_text() for text in figure.axes[0].texts] == ["diverged"]
    (end,) = [line for line in figure.axes[0].lines if line.get_label() == "_end"]
    assert list(end.get_xdata()) == [run.steps]
    assert "sgd: diverges" in entries(plot.parameters({"sgd": run}))
    assert "sgd: diverged, not shown" in entries(plot.parameters({"sgd": run}, final=True))


# --- parameters -----------------------------------------------------------------------------------


def test_each_parameter_has_a_panel_with_its_history_and_its_true_value() -> None:
    truth = {"k": 3.0, "b": -1.0}
    first = moved({"k": [0.5, 2.0, 2.9], "b": [0.1, -0.8, -1.0]}, truth)
    first.settings["steps_per_epoch"] = 2
    runs = {"adam": first, "sgd": moved({"k": [0.5, 1.0], "b": [0.1, 0.0]}, truth)}
    figure = plot.parameters(runs, by="epoch")
    assert entries(figure) == ["true value", "adam", "sgd"]
    for axes, (name, level) in zip(figure.axes, truth.items(), strict=True):
        assert axes.get_title() == name
        lines = {str(x.get_label()): x.get_xydata().tolist() for x in axes.lines}
        assert [y for _, y in lines["_level"]] == [level, level]
        assert axes.get_ylim()[0] <= level <= axes.get_ylim()[1]
        if name == "k":
            assert lines["adam"] == [[0, 0.5], [0.5, 2.0], [1.0, 2.9]]
            assert lines["sgd"] == [[0, 0.5], [1, 1.0]]
    steps = plot.parameters(moved({"k": [0.5, 2.0, 2.9]}), by="step")
    assert list(steps.axes[0].lines[0].get_xdata()) == [0, 1, 2]
    final = plot.parameters(runs, final=True).axes[0]
    marks = {str(x.get_label()): list(x.get_ydata()) for x in final.lines}
    assert marks == {"adam, learned": [2.9, -1.0], "sgd, learned": [1.0, 0.0]}
    assert [text.get_text() for text in final.get_xticklabels()] == ["k", "b"]


def test_parameters_that_diverge_leave_the_others_in_sight() -> None:
    good = moved({"k": [90.0, 2.0, 2.9], "b": [0.1, -0.8, -1.0]}, {"k": 3.0, "b": -1.0})
    bad = moved({"k": [0.5, 1e60], "b": [0.1, float("nan")]})
    figure = plot.parameters({"good": good, "bad": bad}, log_steps=True)
    assert "bad: diverges" in entries(figure)
    assert all(axes.get_ylim()[1] < 10 for axes in figure.axes)
    figure = plot.parameters({"good": good, "bad": bad}, final=True)
    assert entries(figure) == ["true value", "good, learned", "bad: diverged, not shown"]
    assert figure.axes[0].get_ylim()[1] < 4


def test_many_or_long_parameters_and_values_that_are_not_true() -> None:
    figure = plot.parameters({"a": moved({f"w{k}": [0.0, 1.0] for k in range(20)})})
    assert len(figure.axes) == 9
    assert figure.get_suptitle() == "Parameters over time, the first 9 of 20"
    assert entries(figure) == ["a"]
    for length, rotation in ((19, 0), (20, 90)):  # more than 80 letters are turned
        names = {"w" * length + str(k): [0.0, 1.0] for k in range(4)}
        labels = plot.parameters(moved(names), final=True).axes[0].get_xticklabels()
        assert {label.get_rotation() for label in labels} == {rotation}
    data = cgprimer.make_dataset(CLASSES, samples=50)
    own = cgprimer.Dataset.from_arrays(data.inputs, data.targets)
    for samples, words in ((data, ["true value", "training"]), (own, ["training"])):
        run = cgprimer.train(CLASSES, samples, epochs=1)
        assert entries(plot.parameters(run)) == words


# --- files ----------------------------------------------------------------------------------------


def test_saved_runs_are_named_by_their_files(tmp_path: Path) -> None:
    data = cgprimer.make_dataset(LINE, samples=100)
    paths = [tmp_path / "lr0.1.json", tmp_path / "lr0.01.json"]
    for path, epochs in zip(paths, (6, 2), strict=True):
        save_run(cgprimer.train(LINE, data, epochs=epochs), path, LINE)
    runs = name_runs(paths)
    assert list(runs) == entries(plot.loss(*paths)) == ["lr0.1", "lr0.01"]
    assert merge_true_values(runs) == {"k": 3.0, "b": -1.0}
    assert choose_axis({"a": runs["lr0.1"]}) == "epoch"
    assert choose_axis(runs) == "step"
    steps = {name: len(over_time(run, "step")[1]) for name, run in runs.items()}
    assert steps == {"lr0.1": 12, "lr0.01": 4}


def test_files_that_are_no_runs_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "no.json"
    path.write_text("{}")
    with refused(DataError):
        name_runs([path])
    for paths in ([tmp_path / "nowhere.json"], [path, path]):
        with refused(UsageError):
            name_runs(paths)
    save_run(cgprimer.train(LINE, cgprimer.make_dataset(LINE, samples=9), epochs=0), path, LINE)
    with refused(UsageError):
        choose_axis(name_runs([path]))


@pytest.mark.slow
def test_many_samples_are_pixels_in_a_picture_of_lines(tmp_path: Path) -> None:
    line = cgprimer.parse("y = a + b*x")
    data = cgprimer.make_dataset(line, truth={"a": 1, "b": 2}, samples=10_001, noise=0.1)
    save_figure(plot.fit(cgprimer.fit(line, data)), tmp_path / "a.svg")
    assert (tmp_path / "a.svg").stat().st_size < 500_000
