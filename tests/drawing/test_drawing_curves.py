"""Loss curves: scales, legends, gaps."""

from __future__ import annotations

from pathlib import Path

import pytest

from cgprimer.drawing.curves import draw_loss
from cgprimer.drawing.graph_picture import save_figure


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
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == list("abcdef")
    assert all(text.get_fontsize() >= 14 for text in legend.get_texts())
    assert axes.get_title() == "$t_1"


def test_validation_ends_where_its_run_ends() -> None:
    axes = draw_loss({"a": [1.0] * 100}, validation={"a": [2.0, 1.0]}).axes[0]
    assert axes.lines[1].get_xdata()[-1] == 100


def test_names_are_shown_as_written(tmp_path: Path) -> None:
    figure = draw_loss({"_a$b^2$": [1.0, 0.5], "c": [1.0, 0.2]})
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert legend.get_texts()[0].get_text().endswith("_a$b^2$")
    save_figure(figure, tmp_path / "a.svg")
