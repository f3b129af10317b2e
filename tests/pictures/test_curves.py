"""Loss curves: scales, legends, gaps."""

from __future__ import annotations

from pathlib import Path

import pytest
from cgprimer.plots.curves import draw_loss, draw_parameters
from cgprimer.plots.run_curves import OverTime

from cgprimer.errors import UsageError
from cgprimer.pictures.saving import save_figure
from cgprimer.plots.parameters import draw_parameters_over_time


@pytest.mark.parametrize(
    ("losses", "scale"),
    [([1.0, 0.1], "log"), ([1.0, 0.0], "log"), ([1.0, -1.0], "linear"),
     ([1.0, float("nan"), 0.5], "log"), ([1.0, float("inf")], "log"), ([], "linear"),
     ([float("nan")], "linear")],
)  # fmt: skip
def test_scale(losses: list[float], scale: str, tmp_path: Path) -> None:
    figure = draw_loss({"run": losses})
    assert figure.axes[0].get_yscale() == scale
    save_figure(figure, tmp_path / "a.png")


def test_runs_differ_in_colour_and_line_style() -> None:
    figure = draw_loss({name: [1.0, 0.5] for name in "abcdef"}, dark=True, title="$t_1")
    axes = figure.axes[0]
    looks = [(line.get_color(), line.get_linestyle()) for line in axes.lines]
    assert len({colour for colour, _ in looks}) == 6
    assert len({style for _, style in looks}) > 1
    (legend,) = figure.legends
    assert sorted(text.get_text() for text in legend.get_texts()) == list("abcdef")
    assert all(text.get_fontsize() >= 14 for text in legend.get_texts())
    assert axes.get_title() == "$t_1"


def test_validation_stands_where_it_was_taken() -> None:
    axes = draw_loss(
        {"a": [1.0] * 100}, validation={"a": [2.0, 1.0]}, places={"a": [40.0, 80.0]}
    ).axes[0]
    assert list(axes.lines[1].get_xdata()) == [40.0, 80.0]


@pytest.mark.parametrize(
    ("log", "scales"),
    [("auto", ("linear", "log")), ("none", ("linear", "linear")), ("x", ("log", "linear")),
     ("y", ("linear", "log")), ("both", ("log", "log"))],
)  # fmt: skip
def test_logarithmic_axes(log: str, scales: tuple[str, str]) -> None:
    axes = draw_loss({"a": [1.0, 0.1, 0.01]}, log=log).axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == scales


@pytest.mark.parametrize(
    ("losses", "log", "words"),
    [([1.0, -1.0], "y", "negative"), ([0.0], "both", "above 0"), ([1.0], "z", "'z'")],
)
def test_losses_without_a_logarithm(losses: list[float], log: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        draw_loss({"a": losses}, log=log)


def test_a_run_without_a_finite_loss_is_named() -> None:
    figure = draw_loss({"a": [1.0, 0.5], "b": [float("nan")] * 2})
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b: no finite loss"]


def test_lucky_samples_do_not_squeeze_the_means() -> None:
    """Single samples have losses of nearly 0; the picture is about the means."""
    losses = [100.0 if k % 2 else 1e-14 for k in range(1000)]
    axes = draw_loss({"a": losses}, smooth=10).axes[0]
    assert axes.get_ylim()[0] > 0.1
    assert axes.get_ylim()[1] > 100


def test_a_lucky_first_sample_does_not_cut_the_picture() -> None:
    axes = draw_loss({"a": [1e-12, *[50.0, 80.0] * 20]}).axes[0]
    assert axes.get_ylim()[1] > 80


def test_one_step_has_one_number_under_it() -> None:
    figure = draw_loss({"a": [1.0]})
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["1"]


def test_validation_ends_where_its_run_ends() -> None:
    axes = draw_loss({"a": [1.0] * 100}, validation={"a": [2.0, 1.0]}).axes[0]
    assert axes.lines[1].get_xdata()[-1] == 100


def test_names_are_shown_as_written(tmp_path: Path) -> None:
    figure = draw_loss({"_a$b^2$": [1.0, 0.5], "c": [1.0, 0.2]})
    (legend,) = figure.legends
    assert legend.get_texts()[0].get_text().endswith("_a$b^2$")
    save_figure(figure, tmp_path / "a.svg")


def test_a_run_that_explodes_is_named_and_leaves_the_others_in_sight() -> None:
    """The first losses of a run that diverges are no measure of where runs begin."""
    good = [5000.0 / k for k in range(1, 200)]
    bad = [4000.0 * 1e9 ** (k**2) for k in range(6)]
    figure = draw_loss({"good": good, "bad": bad, "short": [4000.0, 1e60, 1e200]}, smooth=9)
    axes = figure.axes[0]
    assert axes.get_ylim()[1] < 1e8
    (legend,) = figure.legends
    words = [text.get_text() for text in legend.get_texts()]
    assert words == ["good, mean of 9", "bad: diverges", "short: diverges"]
    short = axes.lines[-1]
    assert list(short.get_ydata()) == [4000.0, 1e60, 1e200]
    assert short.get_marker()
    assert short.get_linewidth() > 2


def test_a_run_too_short_for_means_has_none() -> None:
    figure = draw_loss({"one": [1.0], "long": [1.0, 0.5] * 50}, smooth=9)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["one", "long, mean of 9"]


def test_a_noisy_run_does_not_diverge() -> None:
    figure = draw_loss({"a": [1e-12, *[50.0, 80.0] * 20], "b": [3.0, 2.0]})
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]


def test_the_usual_titles() -> None:
    assert draw_loss({"a": [1.0, 0.5]}).axes[0].get_title() == "Loss"
    assert draw_parameters({"a": {"k": 1.0}}).axes[0].get_title() == "What was learnt"


def test_on_logarithmic_steps_the_start_does_not_set_the_scale() -> None:
    run = OverTime([0.0, 1.0, 2.0], {"k": [90.0, 2.0, 2.9]})
    figure = draw_parameters_over_time({"a": run}, {"k": 3.0}, log_steps=True)
    assert figure.axes[0].get_ylim()[1] < 10
