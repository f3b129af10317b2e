"""Plots: what is exact, cut off, hidden or missing is shown as such, and curves are told apart."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import cgprimer
from cgprimer import plot
from cgprimer.core.graph.loading import load, parse
from cgprimer.visualization.diagrams.figure_files import save_figure
from cgprimer.visualization.plots import slide
from cgprimer.visualization.plots.error_plot import step_errors
from cgprimer.visualization.plots.loss_landscape import landscape
from cgprimer.visualization.plots.loss_surface import LossSurface
from cgprimer.visualization.plots.slide import choose_log_ticks
from cgprimer.visualization.plots.surface_3d import find_visible_points
from cgprimer.visualization.plots.surface_plot import draw_surface
from tests.approval import refused
from tests.plots.plot_tools import drawn, entries, numbers, runs_of

SINE = parse("xw = sin(xa)")
LINE = parse("xw = k*xa + b; parameter k = 3, b = -1")


@pytest.mark.parametrize(
    ("text", "label", "levels"),
    [("xw = step(xa)", "xw", (0, 1)), ("xw = abs(xa)", "d xw / d xa", (-1, 1)),
     ("xw = relu(xa)", "d xw / d xa", (0, 1))],
)  # fmt: skip
def test_no_stroke_joins_the_sides_of_a_jump(
    text: str, label: str, levels: tuple[int, int]
) -> None:
    places, values = drawn(plot.function(parse(text)), label)
    with np.errstate(invalid="ignore"):
        assert not (np.abs(np.diff(values)) > 0.5).any()
    for level in levels:  # each side goes up to the jump
        assert np.abs(places[values == level]).min() < 1e-9


def test_steep_but_continuous_lines_are_not_broken() -> None:
    for text in ("xw = tanh(400*xa)", "xw = sin(60*xa)", "xw = exp(9*xa)"):
        figure = plot.function(parse(text), order=0)
        assert np.isfinite(drawn(figure, "xw")[1]).all()


def test_a_derivative_ends_where_its_function_does() -> None:
    figure = plot.function(parse("xw = log(xa)"), order=2)
    for label in ("xw", "d xw / d xa", "d² xw / d xa²"):
        places, values = drawn(figure, label)
        assert places[np.isfinite(values)].min() > 0


def test_what_is_cut_off_is_said_to_be() -> None:
    assert "cut off at the top" in entries(plot.function(parse("xw = 1/xa^2"), order=0))
    figure = plot.function(parse("xw = exp(xa)"), 0, 800)
    assert "too large for a double above xa = 709" in entries(figure)
    figure.draw_without_rendering()
    assert not any("cut" in text for text in entries(plot.function(SINE, tangent=1.0)))


@pytest.mark.parametrize(
    ("text", "name", "first"),
    [("xw = 5 + 1e-12*xa", "xw - 5", "-3e-12"), ("xw = 1e6 + xa", "xw", "999,997"),
     ("xw = 1e7*xa", "xw", "-3e7"), ("xw = 1e4*xa", "xw", "-30,000")],
)  # fmt: skip
def test_numbers_on_an_axis_need_no_offset(text: str, name: str, first: str) -> None:
    figure = plot.function(parse(text), order=0)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    assert axes.get_ylabel() == name
    assert numbers(axes.yaxis)[0] == first
    assert axes.yaxis.get_offset_text().get_text() == ""


def test_axes_are_numbered_in_steps_of_1_2_or_5() -> None:
    figure = plot.loss(runs_of({"a": [1.0, 0.5] * 14}))
    figure.draw_without_rendering()
    assert numbers(figure.axes[0].xaxis) == ["0", "5", "10", "15", "20", "25"]


def test_eight_curves_differ_in_more_than_color() -> None:
    figure = plot.loss(runs_of({f"run {k}": [1.0, 0.5 + k] * 20 for k in range(8)}))
    lines = [line for line in figure.axes[0].lines if not str(line.get_label()).startswith("_")]
    looks = {(str(line._unscaled_dash_pattern), line.get_marker()) for line in lines}  # type: ignore[attr-defined]
    assert len(looks) == 8
    figure = plot.function(SINE, order=6, tangent=1.0)
    lines = [line for line in figure.axes[0].lines if line.get_label() in entries(figure)]
    assert len({(str(line._unscaled_dash_pattern), line.get_marker(), line.get_linewidth())  # type: ignore[attr-defined]
                for line in lines}) == len(lines) == 8  # fmt: skip


def test_errors_of_zero_lie_on_a_line_of_their_own() -> None:
    found = step_errors(load("examples/lecture.cg"), wrt="ab")
    figure = plot.error(load("examples/lecture.cg"), wrt="ab")
    figure.draw_without_rendering()
    axes = figure.axes[0]
    assert numbers(axes.yaxis)[0] == "0 (exact)"
    floor = axes.get_yticks()[0]
    (curve,) = [x for x in axes.lines if str(x.get_label()).startswith("complex-step")]
    zero = found.errors["complex-step"] == 0
    assert zero.any()
    assert set(np.asarray(curve.get_ydata())[zero]) == {floor}
    assert min(errors[errors > 0].min() for errors in found.errors.values()) > floor
    assert "0 (exact)" not in numbers(plot.error(SINE, {"xa": 1}).axes[0].yaxis)


@pytest.mark.parametrize("text", ["xw = sin(xa)", "xw = 3*xa", "xw = log(xa)"])
def test_stars_lie_on_their_curves_and_guides_within_them(text: str) -> None:
    axes = plot.error(parse(text), {"xa": 1}).axes[0]
    curves = {str(line.get_label()).partition(":")[0]: line for line in axes.lines}
    stars = [line for line in axes.lines if str(line.get_label()).startswith("_best ")]
    assert len(stars) == 3
    for star in stars:
        points = curves[str(star.get_label()).removeprefix("_best ")].get_xydata()
        assert (np.asarray(points) == np.asarray(star.get_xydata())[0]).all(axis=1).any()
    sizes = {(tuple(np.asarray(s.get_xydata())[0]), s.get_markersize()) for s in stars}
    assert len(sizes) == 3, "stars at one place differ in size"


def test_best_steps_have_one_digit() -> None:
    words = [text.partition("about ")[2] for text in entries(plot.error(SINE, {"xa": 1}))]
    assert words
    assert all(len(word.partition("e")[0].replace("0.", "").strip("0")) == 1 for word in words)


def test_one_size_has_a_band_and_a_point_of_the_function() -> None:
    figure = plot.cost("neuron", [4])
    (band,) = figure.axes[0].collections
    sides = band.get_paths()[0].vertices[:, 0]  # type: ignore[index]
    assert sides.min() < sides.max()
    (own,) = [line for line in figure.axes[0].lines if line.get_label() == "the function alone"]
    assert own.get_marker() == "x"


def test_one_depth_has_one_whole_number_under_it() -> None:
    axes = plot.swell("product", [3]).axes[0]
    assert numbers(axes.xaxis) == ["3"]


@pytest.mark.parametrize("dark", [False, True])
def test_numbers_at_the_ends_of_curves_stand_apart(dark: bool) -> None:
    figure = plot.swell("softmax", [1, 2, 3, 4], dark=dark)
    figure.draw_without_rendering()
    boxes = sorted((t.get_window_extent().y0, t.get_window_extent().y1)
                    for t in figure.axes[0].texts)  # fmt: skip
    assert len(boxes) == 5
    assert all(below[1] < above[0] + 1 for below, above in pairwise(boxes))


def test_where_there_is_no_loss_the_plane_is_hatched() -> None:
    found = landscape(parse("xw = log(k*xa + b); parameter k=3, b=5"), ["k", "b"], grid=21, steps=9)
    figure = draw_surface(found)
    (patch,) = [patch for patch in figure.axes[0].patches if patch.get_hatch()]
    assert patch.get_label() == "no finite loss"
    assert "no finite loss" in entries(figure)
    assert "no surface: no finite loss" in entries(draw_surface(found, in_3d=True))
    assert not [
        p
        for p in draw_surface(landscape(LINE, ["k", "b"], grid=9, steps=9)).axes[0].patches
        if p.get_hatch()
    ]


def test_marks_on_the_edge_are_whole_and_outside_of_it_only_named() -> None:
    found = landscape(LINE, ["k", "b"], ranges=[(0, 3), (-3, 1)], grid=9, steps=3)
    (cross,) = [x for x in draw_surface(found).axes[0].lines if x.get_label() == "true values"]
    assert not cross.get_clip_on()
    found = landscape(LINE, ["k", "b"], ranges=[(0, 2), (-3, 1)], grid=9, steps=3)
    for in_3d in (False, True):
        assert "true values: outside the picture" in entries(draw_surface(found, in_3d=in_3d))


def test_a_path_from_outside_is_named(tmp_path: Path) -> None:
    start = {"k": -20.0, "b": -20.0}
    found = landscape(LINE, ["k", "b"], start=start, grid=9, steps=3)
    for in_3d in (False, True):
        figure = draw_surface(found, in_3d=in_3d)
        assert "start: outside the picture" in entries(figure)
        assert sum("leaves the picture" in text for text in entries(figure)) == len(found.paths)
        save_figure(figure, tmp_path / "a.png")


def test_paths_that_lie_on_one_another_differ_in_size() -> None:
    found = landscape(LINE, ["k", "b"], grid=9, steps=1)
    lines = draw_surface(found).axes[0].lines
    paths = [line for line in lines if "rate" in str(line.get_label())]
    sizes = [line.get_markersize() for line in paths]
    assert sizes == sorted(set(sizes), reverse=True)


def test_the_surface_hides_what_is_behind_it() -> None:
    """A ridge between the eye and half of the points."""
    first = second = np.linspace(-1.0, 1.0, 41)
    heights = np.where(np.abs(second)[:, None] < 0.06, 1.0, 0.0) * np.ones(41)
    shown = LossSurface(first, second, heights, 0.0, logarithmic=False)
    places = np.array([[0.0, -0.8, 0.0], [0.0, 0.15, 0.0], [0.0, 0.95, 0.0]])
    assert find_visible_points(shown, places, (60.0, -90.0)).tolist() == [True, False, True]
    assert find_visible_points(shown, places, (60.0, 90.0)).tolist() == [True, True, True]


def test_the_view_shows_the_truth_also_without_paths() -> None:
    found = landscape(LINE, ["k", "b"], grid=41, optimizers=())
    assert entries(draw_surface(found, in_3d=True)) == ["true values"]


def test_heights_in_3d_are_logarithmic_where_colors_are() -> None:
    figure = draw_surface(landscape(LINE, ["k", "b"], grid=21, steps=9), in_3d=True)
    labels = [text.get_text() for text in figure.axes[0].get_zticklabels()]  # type: ignore[attr-defined]
    assert labels == ["1", "10"]
    places = figure.axes[0].get_zticks()  # type: ignore[attr-defined]
    assert list(places) == [0.0, 1.0]


@pytest.mark.parametrize("text", ["tan(xa)", "1000*tan(xa)", "1/(xa-1.5)", "1/sin(xa)"])
def test_the_sides_of_a_pole_are_not_joined(text: str) -> None:
    axes = plot.function(parse(f"xw = {text}"), -3, 3, order=0).axes[0]
    low, high = axes.get_ylim()
    line = next(line for line in axes.lines if len(line.get_xdata()) > 100)
    values = np.asarray(line.get_ydata(), dtype=float)
    above, below = values > high, values < low
    assert above.any()
    assert below.any()
    assert not (above[:-1] & below[1:]).any()
    assert not (below[:-1] & above[1:]).any()


def test_where_every_smaller_step_is_as_good_none_is_called_the_best() -> None:
    words = entries(plot.error(SINE, {"xa": 1}))
    assert sorted(text.partition(" about ")[0] for text in words) == [
        "central: best h", "complex-step: every h up to", "forward: best h"]  # fmt: skip


@pytest.mark.parametrize(
    "ranges", [[(0.4, 0.7), (1, 1.2)], [(-1, 1.5), (0, 1)], [(2.5, 3.5), (-1.5, -0.5)]]
)
@pytest.mark.parametrize("in_3d", [False, True])
def test_a_scale_of_losses_has_two_numbers_at_least(
    ranges: list[tuple[float, float]], in_3d: bool
) -> None:
    found = landscape(LINE, ["k", "b"], ranges=ranges, grid=21, optimizers=())
    figure = draw_surface(found, in_3d=in_3d)
    figure.draw_without_rendering()
    axis = figure.axes[0].zaxis if in_3d else figure.axes[1].yaxis  # type: ignore[attr-defined]
    assert len(numbers(axis)) >= 2
    assert len(set(numbers(axis))) == len(numbers(axis))


def test_a_logarithmic_axis_has_two_numbers_at_least() -> None:
    for low in np.geomspace(1, 10, 19):
        for high in low * np.array([1.001, 1.3, 2, 5, 20, 99, 1e3, 1e9, 1e200]):
            places = choose_log_ticks(low, high)
            assert 2 <= len(places) <= 12, (low, high)
            assert low <= places[0] < places[-1] <= high


def test_declared_values_are_true_only_where_data_were_made_from_them() -> None:
    made = cgprimer.make_dataset(LINE, samples=20)
    own = cgprimer.Dataset.from_arrays(made.inputs, made.targets)
    for data, at, word in (
        (None, None, "true values"), (made, None, "true values"), (own, None, "declared values"),
        (own, {"k": 2.0}, "given values"), (None, {"k": 2.0}, "true values"),
    ):  # fmt: skip
        found = landscape(LINE, ["k", "b"], data, at=at, grid=5, optimizers=())
        assert entries(draw_surface(found)) == [word]
    elsewhere = cgprimer.make_dataset(LINE, samples=20, truth={"k": 1.0, "b": 0.0})
    assert landscape(LINE, ["k", "b"], elsewhere, grid=5, optimizers=()).reference == (1.0, 0.0)


def test_data_are_a_dataset_or_a_file_by_the_name_of_the_option(tmp_path: Path) -> None:
    data = cgprimer.make_dataset(LINE, samples=20)
    data.save(tmp_path / "line.csv")
    figures = [
        plot.surface(LINE, data=data, optimizers="none"),
        plot.surface(LINE, dataset=data, optimizers=()),  # the older name
        plot.surface(LINE, ("k", "b"), tmp_path / "line.csv", optimizers="none"),
    ]
    save_figure(figures[0], tmp_path / "a.svg")
    save_figure(figures[1], tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert entries(figures[2]) == ["declared values"]


def arrows(figure: slide.Figure) -> list[np.ndarray]:
    """The points at which arrows of a gradient begin."""
    drawn = [text for axes in figure.axes for text in axes.texts if text.arrow_patch is not None]
    return [np.asarray(text.xyann, dtype=float) for text in drawn]


@pytest.mark.parametrize("loss", [None, "output"])
def test_as_many_arrows_as_asked_for(loss: str | None) -> None:
    found = arrows(plot.surface(cgprimer.load("paraboloid"), ["x", "y"], gradient=3, loss=loss))
    assert len(found) == 3
    assert found[0].tolist() == [4.0, 5.0]
    gaps = [np.hypot(*(a - b)) for k, a in enumerate(found) for b in found[:k]]
    assert min(gaps) > 0.5


def test_arrows_need_a_path() -> None:
    with refused(cgprimer.UsageError):
        plot.surface(cgprimer.load("paraboloid"), ["x", "y"], gradient=3, optimizers="none")
    one = plot.surface(cgprimer.load("paraboloid"), ["x", "y"], gradient=1, optimizers="none")
    assert len(arrows(one)) == 1


def test_the_title_names_the_function_and_a_missing_minimum() -> None:
    graph = cgprimer.load("paraboloid")
    figure = plot.surface(graph, ["x", "y"], steps=3)
    assert figure.get_suptitle() == "f over x and y"
    assert figure.axes[1].get_ylabel() == "f"
    assert not [text for text in entries(figure) if "true" in text]
    outside = plot.surface(graph, ["x", "y"], steps=3, ranges=[(1, 7), (2, 8)])
    assert "no minimum" in outside.get_suptitle()


def test_a_tangent_can_be_told_from_its_curve() -> None:
    figure = plot.function(cgprimer.load("cubic"), tangent=2)
    axes = figure.axes[0]
    figure.draw_without_rendering()
    curve, line = (
        next(one for one in axes.lines if str(one.get_label()).startswith(name))
        for name in ("f", "tangent")
    )
    low, high = axes.get_xlim()
    assert (low + high) / 2 == pytest.approx(2.0)  # the point stands in the middle
    x = np.asarray(curve.get_xdata())
    straight = np.interp(x, line.get_xdata(), line.get_ydata())
    bends = np.abs(np.asarray(curve.get_ydata()) - straight) / np.ptp(axes.get_ylim())
    assert bends[[0, -1]].min() > 0.1  # of the height of the picture
    assert np.ptp(straight) / np.ptp(axes.get_ylim()) > 0.05  # it is not level
    given = plot.function(cgprimer.load("cubic"), -3, 3, tangent=2).axes[0]
    assert given.get_xlim() == (-3.0, 3.0)
