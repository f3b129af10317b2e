"""What all plots share: sizes of text, no overlaps, distinguishable curves, axes, and arguments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.text import Text

import cgprimer
from cgprimer import Dataset, make_classes, plot, train
from cgprimer.core.graph.loading import parse
from cgprimer.errors import CgprimerError
from cgprimer.networks import mlp
from cgprimer.visualization.plots.slide import choose_log_ticks
from tests.approval import approved, lines_with_values
from tests.pictures.diagram_tools import check_texts
from tests.plots import plot_tools
from tests.plots.test_runs import PLOTS as RUNS
from tests.plots.test_surfaces import SURFACES

REFUSED = lines_with_values(Path(__file__).with_name("wrong_plots.txt"))
SINE, LINE = parse("xw = sin(xa)"), parse("xw = k*xa + b; parameter k = 3, b = -1")
NEURON = parse("xo = sigmoid(a*x1 + b*x2 + c)")


def plot_boundary(dark: bool) -> Figure:
    classes = make_classes("gaussians", NEURON, samples=40)
    return plot.boundary(train(NEURON, classes, epochs=3), classes, dark=dark)


def plot_sweep(dark: bool) -> Figure:
    """Plot the losses of eight runs in two panels."""
    vary = {"optimizer": ["sgd", "adam"], "learning_rate": [0.1, 0.03, 0.01, 0.001]}
    data = cgprimer.make_dataset(LINE, samples=50)
    return plot.sweep(cgprimer.sweep(LINE, data, vary, epochs=3), dark=dark)


PLOTS: dict[str, Callable[[bool], Figure]] = {
    "error": lambda dark: plot.error(SINE, {"xa": 1}, dark=dark),
    "sweep": plot_sweep,
    "cost and time": lambda dark: plot.cost("sum", [1, 4], timed=True, dark=dark),
    "function": lambda dark: plot.function(SINE, order=6, tangent=1.0, dark=dark),
    "swell": lambda dark: plot.swell("product", [1, 2, 3], dark=dark),
    "long names": lambda dark: plot.function(
        parse("a_very_long_name_for_an_output = sin(x_and_a_long_name_too)"), order=2, tangent=0.5,
        dark=dark,
    ),
    "descent": lambda dark: plot.descent(LINE, optimizers=["sgd", "adam"], steps=9, dark=dark),
    "batches": lambda dark: plot.batches(LINE, dark=dark),
    "arrows": lambda dark: plot.surface(LINE, gradient=2, optimizers="sgd", dark=dark),
    "boundary": plot_boundary,
    "variance": lambda dark: plot.variance(LINE, sizes=[1, 4], batches=9, dark=dark),
    "activations": lambda dark: plot.activations(depth=3, width=8, epochs=1, dark=dark),
    "noise": lambda dark: plot.noise(
        parse("y = sin(k*x); parameter k = 6"), start={"k": -1.8}, rate=1.6, seeds=3, steps=50,
        dark=dark,
    ),
    "gradients": lambda dark: plot.gradients(mlp("2-3-2-1", scalars=True), dark=dark),
    "points": lambda dark: plot.points(SINE, {"xa": [0.0, 1.0, 2.0]}, dark=dark),
    "fit": lambda dark: plot.fit(
        cgprimer.fit(LINE, cgprimer.make_dataset(LINE, samples=20, noise=0.1)), dark=dark
    ),
}  # fmt: skip
EXAMPLES: dict[str, Callable[[], Figure]] = {**RUNS, **SURFACES}
DEFAULT = ("parameters", "boundary", "sweep")
each_plot = pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=[pytest.mark.slow] * (kind not in DEFAULT))
        for kind in {**EXAMPLES, **PLOTS}
        if "losses in" not in kind and not kind.startswith("[") and kind != "names"
    ],
)


def texts(figure: Figure) -> list[Text]:
    """Return all visible texts."""
    return [
        text
        for text in figure.findobj(Text)
        if isinstance(text, Text) and text.get_visible() and text.get_text().strip()
    ]


@each_plot
def test_plots_are_slides_with_large_text_that_does_not_overlap(kind: str) -> None:
    dark = len(kind) % 2 == 0
    figure = PLOTS[kind](dark) if kind in PLOTS else EXAMPLES[kind]()
    assert figure.get_size_inches() == pytest.approx((13.333, 7.5), abs=0.01)
    assert (max(figure.get_facecolor()[:3]) < 0.2) is (dark and kind in PLOTS)
    figure.draw_without_rendering()
    assert [text.get_text() for text in texts(figure) if text.get_fontsize() < 14] == []
    assert [text.get_text() for text in texts(figure) if "$" in text.get_text()] == []
    for axes in figure.axes:
        labelled = [line for line in axes.lines if not str(line.get_label()).startswith("_")]
        named = [line for line in labelled if len(line.get_xdata())]  # others are in the legend
        looks = [(str(line.get_linestyle()), line.get_marker(), line.get_linewidth(),
                  str(line._unscaled_dash_pattern)) for line in named]  # type: ignore[attr-defined]  # fmt: skip
        assert len(set(looks)) == len(looks)  # without colors
    if "3-D" not in kind:
        axes = [axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
        ticks = {id(text) for axis in axes for text in axis.get_ticklabels(which="both")}
        check_texts(figure, [text for text in texts(figure) if id(text) not in ticks])


@given(st.floats(1, 10), st.sampled_from([1.001, 1.3, 2, 5, 20, 99, 1e3, 1e9, 1e200]))
def test_a_logarithmic_axis_has_two_to_twelve_numbers(low: float, factor: float) -> None:
    ticks = choose_log_ticks(low, low * factor)
    assert 2 <= len(ticks) <= 12
    assert low <= ticks[0] < ticks[-1] <= low * factor
    assert sorted(set(ticks)) == list(ticks)


def test_a_sweep_has_a_panel_for_each_value_and_a_line_for_each_run() -> None:
    vary = {"epochs": [3], "optimizer": ["sgd", "adam"], "learning_rate": [0.1, 0.01, 1e9]}
    found = cgprimer.sweep(LINE, cgprimer.make_dataset(LINE, samples=50), vary)
    figure = plot.sweep(found)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["sgd\ndiverges: 3, 1e9", "adam\ndiverges: 3, 1e9"]
    lines = [line for axes in figure.axes for line in axes.lines]
    for line, run in zip(lines, found.runs, strict=True):  # the optimizer varies most slowly
        if run.stopped != "diverged":
            start = [] if line.axes.get_xlabel() == "step" else [run.start_loss]
            assert list(line.get_ydata()) == [*start, *(run.step_losses or run.epoch_losses)]
    assert len(plot_tools.entries(figure)) == 3


def test_a_decision_boundary_separates_the_drawn_samples() -> None:
    made = make_classes("gaussians", NEURON, samples=60)
    targets = np.where(np.arange(60) < 5, 1 - made.targets["xo"], made.targets["xo"])
    classes = Dataset.from_arrays(made.inputs, {"xo": targets})
    run = train(NEURON, classes, epochs=2, loss="cross-entropy")
    (axes,) = plot.boundary(run, classes).axes
    drawn = {str(line.get_label()): line.get_xydata() for line in axes.lines}
    inputs = np.stack([classes.inputs["x1"], classes.inputs["x2"]], axis=1)
    wrong = (run.predict(classes)["xo"] > 0.5) != targets
    assert wrong.any()
    marked = {"xo = 0": targets == 0, "xo = 1": targets == 1, "wrong prediction": wrong}
    for label, chosen in marked.items():
        assert sorted(drawn[label].tolist()) == sorted(inputs[chosen].tolist())
    line = drawn["_boundary"]
    outputs = run.predict({"x1": line[:, 0], "x2": line[:, 1]})["xo"]
    assert outputs == pytest.approx(np.full(len(line), 0.5), abs=0.01)


def test_functions_points_and_errors_of_a_loss() -> None:
    """(2a + b - 3)^2 at b = 0: 9, 1 and 1 for a = 0, 1, 2; the slopes are -12, -4 and 4."""
    graph = cgprimer.parse("xw = a*xa + b")
    at, whole = {"xa": 2.0, "b": 0.0, "target": 3.0}, {"loss": "squared-error", "wrt": "a"}
    approved(plot_tools.describe(plot.points(graph, {**at, "a": [0.0, 1.0, 2.0]}, **whole)))
    approved(plot_tools.describe(plot.function(graph, 0, 2, at=at, **whole)))  # type: ignore[arg-type]
    titled = plot.error(graph, {**at, "a": 1.0}, **whole)
    assert "d loss / d a" in titled.axes[0].get_title()


@pytest.mark.parametrize("call", [call for call, _ in REFUSED])
def test_wrong_arguments_are_refused(call: str) -> None:
    with pytest.raises(CgprimerError) as caught:
        eval(call, globals())  # noqa: S307
    approved(f"{caught.typename}: {caught.value}")
