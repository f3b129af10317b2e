"""Loss curves: scales, legends, gaps."""

from __future__ import annotations

from pathlib import Path

import pytest

import cgprimer
from cgprimer import plot
from cgprimer.errors import NonFiniteError, UsageError
from cgprimer.training.loop import TrainingRun
from cgprimer.training.runs import save_run
from cgprimer.visualization.diagrams.figure_files import save_figure
from tests.approval import refused
from tests.plots.plot_tools import drawn, entries, moved, run_of, runs_of


@pytest.mark.parametrize(
    ("losses", "scale"),
    [([1.0, 0.1], "log"), ([1.0, 0.0], "log"), ([1.0, -1.0], "linear"),
     ([1.0, float("nan"), 0.5], "log"), ([1.0, float("inf")], "log")],
)  # fmt: skip
def test_scale(losses: list[float], scale: str, tmp_path: Path) -> None:
    figure = plot.loss(runs_of({"run": losses}))
    assert figure.axes[0].get_yscale() == scale
    save_figure(figure, tmp_path / "a.png")


def test_runs_differ_in_color_and_line_style() -> None:
    figure = plot.loss(runs_of({name: [1.0, 0.5] for name in "abcdef"}), dark=True, title="$t_1")
    axes = figure.axes[0]
    looks = [(line.get_color(), line.get_linestyle()) for line in axes.lines]
    assert len({color for color, _ in looks}) == 6
    assert len({style for _, style in looks}) > 1
    (legend,) = figure.legends
    assert sorted(text.get_text() for text in legend.get_texts()) == list("abcdef")
    assert all(text.get_fontsize() >= 14 for text in legend.get_texts())
    assert axes.get_title() == "$t_1"


def test_validation_stands_where_it_was_taken() -> None:
    run = run_of([1.0] * 100, validation_losses=[2.0, 1.0], settings={"steps_per_epoch": 40})
    axes = plot.loss(run).axes[0]
    assert list(axes.lines[1].get_xdata()) == [40.0, 80.0]


@pytest.mark.parametrize(
    ("log", "scales"),
    [("auto", ("linear", "log")), ("none", ("linear", "linear")), ("x", ("log", "linear")),
     ("y", ("linear", "log")), ("both", ("log", "log"))],
)  # fmt: skip
def test_logarithmic_axes(log: str, scales: tuple[str, str]) -> None:
    axes = plot.loss(run_of([1.0, 0.1, 0.01]), log=log).axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == scales


@pytest.mark.parametrize(
    ("losses", "log", "words"),
    [([1.0, -1.0], "y", "negative"), ([0.0], "both", "above 0"), ([1.0], "z", "'z'")],
)
def test_losses_without_a_logarithm(losses: list[float], log: str, words: str) -> None:
    with refused(UsageError, words):
        plot.loss(run_of(losses), log=log)


def test_a_run_without_a_finite_loss_is_named() -> None:
    figure = plot.loss(runs_of({"a": [1.0, 0.5], "b": [float("nan")] * 2}))
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b: no finite loss"]


def test_lucky_samples_do_not_squeeze_the_means() -> None:
    """Single samples have losses of nearly 0; the picture is about the means."""
    losses = [100.0 if k % 2 else 1e-14 for k in range(1000)]
    axes = plot.loss(run_of(losses), smooth=10).axes[0]
    assert axes.get_ylim()[0] > 0.1
    assert axes.get_ylim()[1] > 100


def test_a_lucky_first_sample_does_not_cut_the_picture() -> None:
    axes = plot.loss(run_of([1e-12, *[50.0, 80.0] * 20])).axes[0]
    assert axes.get_ylim()[1] > 80


def test_one_step_has_one_number_under_it() -> None:
    figure = plot.loss(run_of([1.0]))
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["1"]


def test_validation_ends_where_its_run_ends() -> None:
    run = run_of([1.0] * 100, validation_losses=[2.0, 1.0], epochs=2)  # an old file's settings
    axes = plot.loss(run).axes[0]
    assert axes.lines[1].get_xdata()[-1] == 100


def test_names_are_shown_as_written(tmp_path: Path) -> None:
    figure = plot.loss(runs_of({"_a$b^2$": [1.0, 0.5], "c": [1.0, 0.2]}))
    (legend,) = figure.legends
    assert legend.get_texts()[0].get_text().endswith("_a$b^2$")
    save_figure(figure, tmp_path / "a.svg")


def test_a_run_that_explodes_is_named_and_leaves_the_others_in_sight() -> None:
    """The first losses of a run that diverges are no measure of where runs begin."""
    good = [5000.0 / k for k in range(1, 200)]
    bad = [4000.0 * 1e9 ** (k**2) for k in range(6)]
    short = [4000.0, 1e60, 1e200]
    figure = plot.loss(runs_of({"good": good, "bad": bad, "short": short}), smooth=9)
    axes = figure.axes[0]
    assert axes.get_ylim()[1] < 1e8
    (legend,) = figure.legends
    words = [text.get_text() for text in legend.get_texts()]
    assert words == ["good, mean of 9", "bad: diverges", "short: diverges"]
    line = axes.lines[-1]
    assert list(line.get_ydata()) == short
    assert line.get_marker()
    assert line.get_linewidth() > 2


def test_a_run_too_short_for_means_has_none() -> None:
    figure = plot.loss(runs_of({"one": [1.0], "long": [1.0, 0.5] * 50}), smooth=9)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["one", "long, mean of 9"]


def test_a_noisy_run_does_not_diverge() -> None:
    figure = plot.loss(runs_of({"a": [1e-12, *[50.0, 80.0] * 20], "b": [3.0, 2.0]}))
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]


def test_the_usual_titles() -> None:
    assert plot.loss(run_of([1.0, 0.5])).axes[0].get_title() == "Loss"
    final = plot.parameters(moved({"k": [0.0, 1.0]}), final=True)
    assert final.axes[0].get_title() == "Learned values"


def test_on_logarithmic_steps_the_start_does_not_set_the_scale() -> None:
    run = moved({"k": [90.0, 2.0, 2.9]}, {"k": 3.0})
    figure = plot.parameters(run, log_steps=True)
    assert figure.axes[0].get_ylim()[1] < 10


CLASSES = cgprimer.parse("xp = sigmoid(w*tanh(v*xa + c) + b); parameter w=2, b=-1, v=2, c=1")


def test_a_run_that_diverged_is_said_to_whatever_its_losses_look_like() -> None:
    """A cross-entropy is infinite at once, where its recorded losses have hardly risen."""
    with pytest.raises(NonFiniteError) as stopped:
        cgprimer.train(CLASSES, cgprimer.make_dataset(CLASSES), loss="cross-entropy",
                       optimizer="sgd", learning_rate=500.0)  # fmt: skip
    run = stopped.value.run
    assert isinstance(run, TrainingRun)
    assert max(run.step_losses) < 100
    figure = plot.loss({"sgd": run})
    assert entries(figure) == ["sgd: diverges"]
    assert [text.get_text() for text in figure.axes[0].texts] == ["diverged"]
    (ring,) = [line for line in figure.axes[0].lines if line.get_label() == "_end"]
    assert list(ring.get_xdata()) == [run.steps]
    assert "sgd: diverges" in entries(plot.parameters({"sgd": run}))
    assert "sgd: diverged, not shown" in entries(plot.parameters({"sgd": run}, final=True))


def test_over_epochs_the_curve_begins_with_the_loss_before_the_first_step() -> None:
    data = cgprimer.make_dataset(CLASSES, samples=100)
    run = cgprimer.train(CLASSES, data, epochs=6)
    places, losses = drawn(plot.loss(run, smooth=1), "training")
    assert places.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert losses.tolist() == [run.start_loss, *run.epoch_losses]
    places, losses = drawn(plot.loss(run, by="step"), "training")
    assert places.tolist() == list(range(1, run.steps + 1))
    assert losses.tolist() == run.step_losses


def test_a_file_is_called_by_the_whole_of_its_name(tmp_path: Path) -> None:
    run = cgprimer.train(CLASSES, cgprimer.make_dataset(CLASSES, samples=50), epochs=1)
    paths = [tmp_path / name for name in ("lr0.1.json", "lr0.01.json", "plain")]
    for path in paths:
        save_run(run, path, CLASSES)
    assert entries(plot.loss(*paths)) == ["lr0.1", "lr0.01", "plain"]


def test_an_empty_title_is_no_title() -> None:
    assert plot.loss(run_of([1.0, 0.5]), title="").axes[0].get_title() == ""
    run = moved({"k": [0.0, 1.0]})
    assert plot.parameters(run, title="").get_suptitle() == ""
    assert plot.parameters(run).get_suptitle() == "Parameters over time"


def test_only_a_truth_that_the_data_have_is_drawn_as_true() -> None:
    data = cgprimer.make_dataset(CLASSES, samples=50)
    own = cgprimer.Dataset.from_arrays(data.inputs, data.targets)
    for given, words in ((data, ["true value", "training"]), (own, ["training"])):
        run = cgprimer.train(CLASSES, given, epochs=1)
        assert entries(plot.parameters(run)) == words


FINE = [4.0, 3.0, 2.0, 1.5, 1.0, 0.5]
DIVERGED = [FINE, [1.0] * 6, [0.0] * 6, [-1.0, -2.0], [1.0], [], [float("nan")] * 3, [1.0, 1e40]]


@pytest.mark.parametrize("losses", DIVERGED, ids=str)
def test_a_run_that_diverged_is_marked_whatever_its_losses_look_like(losses: list[float]) -> None:
    done = {"epoch_losses": losses, "epochs": len(losses), "settings": {"steps_per_epoch": 1}}
    run = run_of(losses, stopped="diverged", reason="it has grown", **done)
    beside = {"epoch_losses": FINE, "epochs": 6, "settings": {"steps_per_epoch": 1}}
    figure = cgprimer.plot.loss({"bad": run, "good": run_of(FINE, **beside)})
    said = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    assert any(label.startswith("bad") and "diverges" in label for label in said)
    assert "good" in said


def test_losses_that_are_thinned_stand_at_their_steps() -> None:
    from cgprimer.visualization.plots.loss_plot import over_time

    run = run_of([3.0, 2.0, 1.0], steps_apart=4, steps=12)
    assert over_time(run, "step") == ([1.0, 5.0, 9.0], [3.0, 2.0, 1.0])


def test_many_data_are_pixels_in_a_picture_of_lines(tmp_path: Path) -> None:
    line = cgprimer.parse("y = a + b*x")
    data = cgprimer.make_dataset(line, truth={"a": 1, "b": 2}, samples=10_001, noise=0.1)
    save_figure(plot.fit(cgprimer.fit(line, data)), tmp_path / "a.svg")
    assert (tmp_path / "a.svg").stat().st_size < 500_000
