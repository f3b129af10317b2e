"""Plots: axes, scales, legends, letter sizes, and that every one can be written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from cgprimer import Value, checkpoint, make_classes, memory, plot, train
from cgprimer.core.graph.loading import load, parse
from cgprimer.errors import UsageError
from cgprimer.networks import mlp
from cgprimer.visualization.diagrams.figure_files import save_figure
from cgprimer.visualization.plots import cost_plot
from cgprimer.visualization.plots.cost_plot import cost_growth
from cgprimer.visualization.plots.error_plot import SCHEMES
from cgprimer.visualization.plots.loss_landscape import landscape
from cgprimer.visualization.plots.surface_plot import draw_surface
from tests.approval import refused
from tests.plots.plot_tools import entries, moved, run_of, runs_of

SINE = parse("xw = sin(xa)")
LINE = parse("xw = k*xa + b; parameter k = 3, b = -1")
LOSSES = {"adam": [1.0, 0.1, 0.01], "sgd": [1.0, 0.5, 0.2]}
TRUTH = {"k": 3.0, "b": -1.0}
MOVED = {
    "adam": moved({"k": [0.5, 2.0, 2.9], "b": [0.1, -0.8, -1.0]}, TRUTH),
    "sgd": moved({"k": [0.5, 1.0], "b": [0.1, 0.0]}),
}


NEURON = parse("xo = sigmoid(a*x1 + b*x2 + c)")
CLASSES = make_classes("gaussians", NEURON, samples=40)
CLASSIFIED = train(NEURON, CLASSES, epochs=3)


def layer(x: Value) -> Value:
    return (x * x).tanh() * 0.5 + x


def layers(f: Callable[[Value], Value]) -> Value:
    x = Value(np.ones((100, 40)))
    for _ in range(4):
        x = f(x)
    return x.sum()


PLOTS: dict[str, Callable[[bool], Figure]] = {
    "error": lambda dark: plot.error(SINE, {"xa": 1}, dark=dark),
    "loss": lambda dark: plot.loss(runs_of(LOSSES), smooth=2, dark=dark),
    "parameters": lambda dark: plot.parameters(MOVED, final=True, dark=dark),
    "loss and validation": lambda dark: plot.loss(
        {
            name: run_of(losses, validation_losses=[1.1, 0.3], settings={"steps_per_epoch": 1.5})
            for name, losses in LOSSES.items()
        },
        dark=dark,
    ),
    "parameters over time": lambda dark: plot.parameters(MOVED, dark=dark),
    "cost": lambda dark: plot.cost("sum", [1, 4, 16], dark=dark),
    "cost and time": lambda dark: plot.cost("sum", [1, 4], timed=True, dark=dark),
    "swell": lambda dark: plot.swell("product", [1, 2, 3], dark=dark),
    "memory": lambda dark: plot.memory(
        {"saved": memory(layers(layer)), "again": memory(layers(checkpoint(layer)))}, dark=dark
    ),
    "surface": lambda dark: draw_surface(landscape(LINE, ["k", "b"], grid=9, steps=9), dark=dark),
    "surface in 3-D": lambda dark: draw_surface(
        landscape(LINE, ["k", "b"], grid=9, steps=9), in_3d=True, dark=dark
    ),
    "function": lambda dark: plot.function(SINE, order=2, tangent=1.0, dark=dark),
    "descent": lambda dark: plot.descent(LINE, optimizers=["sgd", "adam"], steps=9, dark=dark),
    "batches": lambda dark: plot.batches(LINE, dark=dark),
    "arrows": lambda dark: plot.surface(LINE, gradient=2, optimizers="sgd", dark=dark),
    "boundary": lambda dark: plot.boundary(CLASSIFIED, CLASSES, dark=dark),
    "variance": lambda dark: plot.variance(LINE, sizes=[1, 4], batches=9, dark=dark),
    "activations": lambda dark: plot.activations(depth=3, width=8, epochs=1, dark=dark),
    "noise": lambda dark: plot.noise(
        parse("y = sin(k*x); parameter k = 6"),
        start={"k": -1.8},
        rate=1.6,
        seeds=3,
        steps=50,
        dark=dark,
    ),
    "gradients": lambda dark: plot.gradients(mlp("2-3-2-1", scalars=True), dark=dark),
    "points": lambda dark: plot.points(SINE, {"xa": [0.0, 1.0, 2.0]}, dark=dark),
}


def texts(figure: Figure) -> list[Text]:
    """All texts that are seen."""
    return [
        text
        for text in figure.findobj(Text)
        if isinstance(text, Text) and text.get_visible() and text.get_text().strip()
    ]


@pytest.mark.parametrize("kind", PLOTS)
def test_a_slide_with_large_letters_none_on_another_and_curves_without_colors(kind: str) -> None:
    figure = PLOTS[kind](False)
    assert figure.get_size_inches() == pytest.approx((13.333, 7.5), abs=0.01)
    assert figure.get_facecolor() == pytest.approx((1, 1, 1, 1), abs=0.001)
    figure.draw_without_rendering()
    seen = texts(figure)
    assert [text.get_text() for text in seen if text.get_fontsize() < 14] == []
    assert [text.get_text() for text in seen if "$" in text.get_text()] == []
    for axes in figure.axes:
        named = [line for line in axes.lines if not str(line.get_label()).startswith("_")]
        looks = [(str(line.get_linestyle()), line.get_marker(), line.get_linewidth(),
                  str(line._unscaled_dash_pattern)) for line in named]  # type: ignore[attr-defined]  # fmt: skip
        assert len(set(looks)) == len(looks)
    if "3-D" not in kind:
        lie_apart_on_the_slide(figure)


def lie_apart_on_the_slide(figure: Figure) -> None:
    """No text leaves the slide, and none lies on another."""
    ticks = {
        id(text)
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for text in (*axis.get_ticklabels(which="both"),)
    }
    boxes = [
        (text.get_text(), text.get_window_extent())
        for text in texts(figure)
        if id(text) not in ticks and text.get_window_extent().x0 > -1000  # ticks out of sight
    ]
    for name, box in boxes:
        assert box.x0 >= -1, name
        assert box.y0 >= -1, name
        assert box.x1 <= figure.bbox.width + 1, name
        assert box.y1 <= figure.bbox.height + 1, name
    for k, (name, box) in enumerate(boxes):
        for other, there in boxes[k + 1 :]:
            width = min(box.x1, there.x1) - max(box.x0, there.x0)
            height = min(box.y1, there.y1) - max(box.y0, there.y0)
            assert not (width > 1 and height > 1), (name, other)


@pytest.mark.slow
@pytest.mark.parametrize("kind", PLOTS)
def test_a_dark_slide_has_large_letters(kind: str) -> None:
    figure = PLOTS[kind](True)
    assert figure.get_size_inches() == pytest.approx((13.333, 7.5), abs=0.01)
    figure.draw_without_rendering()
    seen = texts(figure)
    assert [text.get_text() for text in seen if text.get_fontsize() < 14] == []
    assert [text.get_text() for text in seen if "$" in text.get_text()] == []


@pytest.mark.parametrize("kind", PLOTS)
def test_a_dark_slide_is_dark(kind: str) -> None:
    dark = PLOTS[kind](True).get_facecolor()
    assert dark == pytest.approx((0.086, 0.098, 0.114, 1), abs=0.001)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in PLOTS if kind != "cost and time"])
def test_the_same_plot_is_the_same_file(kind: str, tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        save_figure(PLOTS[kind](False), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


@pytest.mark.parametrize("suffix", ["png", "pdf"])
def test_other_formats(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{suffix}"
    save_figure(PLOTS["surface"](False), path)
    assert path.stat().st_size > 10_000


def test_memory_says_what_is_kept_in_all() -> None:
    assert entries(PLOTS["memory"](False)) == ["saved: 512.0 kB", "again: 128.0 kB"]
    with refused(UsageError):
        plot.memory({})


def test_error_axes_slopes_and_stars() -> None:
    figure = PLOTS["error"](False)
    (axes,) = figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert axes.get_xlabel() == "step h"
    assert axes.get_title() == "xw = sin(xa): d xw / d xa at xa = 1"
    assert {text.partition(":")[0] for text in entries(figure)} == set(SCHEMES)
    assert sorted(text.get_text() for text in axes.texts) == [
        "error ~ h", "error ~ h²", "rounding: error ~ 1/h"]  # fmt: skip
    assert sum(line.get_marker() == "*" for line in axes.lines) == 3


def test_a_scheme_that_cannot_be_used_is_named() -> None:
    figure = plot.error(parse("xw = abs(xa)^3"), {"xa": 1})
    assert "complex-step: not analytic" in entries(figure)


def test_an_error_that_is_always_zero_is_drawn_without_a_complaint(tmp_path: Path) -> None:
    figure = plot.error(parse("xw = 2*xa"), {"xa": 0})
    save_figure(figure, tmp_path / "a.png")


def test_smoothing_keeps_the_raw_curve_faint() -> None:
    axes = plot.loss(runs_of({"a": [1.0, 3.0, 5.0]}), smooth=3).axes[0]
    raw, means = axes.lines
    assert raw.get_alpha() == pytest.approx(0.3)
    assert list(raw.get_ydata()) == [1.0, 3.0, 5.0]
    assert list(means.get_ydata()) == [2.0, 3.0, 4.0]


def test_a_diverging_run_leaves_the_others_in_sight() -> None:
    figure = plot.loss(runs_of({"good": [1.0, 0.1], "bad": [1.0, 1e80]}))
    low, high = figure.axes[0].get_ylim()
    assert low < 0.1
    assert high < 1e5
    figure = plot.parameters(
        {"good": moved({"k": [0.5, 1.0]}, {"k": 1.0}), "bad": moved({"k": [0.5, 1e60]})}, final=True
    )
    assert entries(figure) == ["true value", "good, learned", "bad: diverged, not shown"]
    assert figure.axes[0].get_ylim()[1] < 2


def test_cost_axes_and_band() -> None:
    figure = plot.cost("sum", [1, 4], bound=3)
    assert {"cheap gradient: up to 3 times the function", "the function alone"} < set(
        entries(figure)
    )
    assert len(entries(figure)) == 7
    assert figure.axes[0].get_xlabel() == "number of parameters"
    assert [a.get_ylabel() for a in PLOTS["cost and time"](False).axes] == [
        "operations for the whole gradient", "seconds for the whole gradient"]  # fmt: skip
    with pytest.raises(UsageError, match="bound"):
        plot.cost("sum", [1], bound=0.5)


def test_a_curve_that_stops_earlier_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost_plot, "_MAX_SYMBOLIC", 4)
    figure = plot.cost("sum", [4, 8])
    (last,) = cost_growth("sum", 4, methods="symbolic").methods["symbolic"]
    assert "symbolic, up to 4, then slow" in entries(figure)
    (ring,) = [line for line in figure.axes[0].lines if line.get_label() == "_end"]
    assert (list(ring.get_xdata()), list(ring.get_ydata())) == ([4], [last.operations])
    assert "stops at 4" in [text.get_text() for text in figure.axes[0].texts]
    deep = entries(plot.swell("product", [1, 2, 30]))
    assert "symbolic derivative, as one formula: too large beyond depth 2" in deep


def test_each_parameter_has_a_panel_with_its_true_level() -> None:
    figure = plot.parameters(MOVED, by="epoch")
    assert [axes.get_title() for axes in figure.axes] == ["k", "b"]
    assert entries(figure) == ["true value", "adam", "sgd"]
    for axes, level in zip(figure.axes, (3.0, -1.0), strict=True):
        (drawn,) = [line for line in axes.lines if line.get_label() == "_level"]
        assert list(drawn.get_ydata()) == [level, level]
        assert drawn.is_dashed()
        low, high = axes.get_ylim()
        assert low <= level <= high
    curves = [line for line in figure.axes[0].lines if line.get_label() in MOVED]
    assert [list(line.get_ydata()) for line in curves] == [[0.5, 2.0, 2.9], [0.5, 1.0]]


def test_a_parameter_that_diverges_leaves_the_others_in_sight() -> None:
    runs = MOVED | {"bad": moved({"k": [0.5, 1e60], "b": [0.1, float("nan")]})}
    figure = plot.parameters(runs)
    assert "bad: diverges" in entries(figure)
    assert all(axes.get_ylim()[1] < 10 for axes in figure.axes)


def test_of_many_parameters_the_first_are_drawn_and_the_title_says_so() -> None:
    many = {f"w{k}": [0.0, 1.0] for k in range(20)}
    figure = plot.parameters({"a": moved(many)})
    assert len(figure.axes) == 9
    assert figure.get_suptitle() == "Parameters over time, the first 9 of 20"
    assert entries(figure) == ["a"]


def test_swell_curves() -> None:
    figure = plot.swell("product", [1, 2, 3])
    assert len(entries(figure)) == 5
    assert figure.axes[0].get_yscale() == "log"
    assert "94" in [text.get_text() for text in figure.axes[0].texts]


def test_surface_legend_and_axes() -> None:
    figure = PLOTS["surface"](False)
    assert [text.partition(",")[0] for text in entries(figure)[:1]] == ["gradient descent"]
    assert {"true values", "start"} < set(entries(figure))
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) == ("k", "b")
    assert figure.axes[1].get_ylabel() == "mean loss"
    space = PLOTS["surface in 3-D"](False).axes[0]
    assert space.get_zlabel() == "mean loss"  # type: ignore[attr-defined]


def test_a_path_that_leaves_is_said_to_leave() -> None:
    found = landscape(
        load("examples/lecture.cg"), ["ab", "cd"], grid=9, optimizers=["adam"], rates={"adam": 9.0}
    )
    for in_3d in (False, True):
        assert any("leaves the picture" in t or "diverges" in t
                   for t in entries(draw_surface(found, in_3d=in_3d)))  # fmt: skip


@pytest.mark.slow
def test_flat_and_negative_surfaces_are_drawn(tmp_path: Path) -> None:
    for number, loss in enumerate(("0*out", "out*target - 5")):
        found = landscape(LINE, ["k", "b"], grid=5, steps=3, loss=loss)
        for in_3d in (False, True):
            save_figure(draw_surface(found, in_3d=in_3d), tmp_path / f"{number}{in_3d}.png")


def test_poles_are_cut_and_broken() -> None:
    axes = plot.function(parse("xw = 1/xa"), order=0).axes[0]
    low, high = axes.get_ylim()
    assert -60 < low < high < 60
    flat = plot.function(parse("xw = 0*xa + 2"), order=1)
    assert flat.axes[0].get_title() == "xw = 0*xa + 2"


def test_long_names_make_a_narrower_legend() -> None:
    graph = parse("a_very_long_name_for_an_output = sin(x_and_a_long_name_too)")
    figure = plot.function(graph, order=2, tangent=0.5)
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width
