"""Plots of training runs and of costs: what curves, axes, legends and titles show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import cgprimer
from cgprimer import Value, checkpoint, memory, plot
from cgprimer.errors import DataError, NonFiniteError, UsageError
from cgprimer.training.loop import TrainingRun
from cgprimer.training.runs import save_run
from cgprimer.visualization.plots.loss_plot import compute_moving_average, over_time
from cgprimer.visualization.plots.plotted_runs import choose_axis, merge_true_values, name_runs
from tests.approval import approved, refused
from tests.plots.plot_tools import describe, entries, moved, run_of, runs_of

LINE = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
CLASSES = cgprimer.parse("xp = sigmoid(w*tanh(v*xa + c) + b); parameter w=2, b=-1, v=2, c=1")
NAN, INF = float("nan"), float("inf")
TRUTH = {"k": 3.0, "b": -1.0}
MOVED = {
    "adam": moved({"k": [0.5, 2.0, 2.9], "b": [0.1, -0.8, -1.0]}, TRUTH, steps_per_epoch=2),
    "sgd": moved({"k": [0.5, 1.0], "b": [0.1, 0.0]}, TRUTH),
}
MOVED_FAR = {
    "good": moved({"k": [90.0, 2.0, 2.9], "b": [0.1, -0.8, -1.0]}, TRUTH),
    "bad": moved({"k": [0.5, 1e60], "b": [0.1, NAN]}),
}
MANY = moved({f"w{k}": [0.0, 1.0] for k in range(20)})


def stopped(losses: list[float]) -> dict[str, TrainingRun]:
    """Return a run that has diverged with these losses in its epochs, and a usual run."""
    done: dict[str, Any] = {"epoch_losses": losses, "settings": {"steps_per_epoch": 1}}
    bad = run_of(losses, stopped="diverged", epochs=len(losses), **done)
    return {"bad": bad, "good": run_of([4.0, 3.0, 2.0])}


def named(length: int) -> TrainingRun:
    """Return a run whose four parameters have names of a length."""
    return moved({"w" * (length - 1) + str(k): [0.0, 1.0] for k in range(4)})


def plot_memory(dark: bool = False) -> Figure:
    """Plot the memory of a recording, with and without checkpoints."""

    def record(f: Callable[[Value], Value]) -> Value:
        return f(f(f(f(Value(np.ones((100, 40))))))).sum()

    def layer(x: Value) -> Value:
        return (x * x).tanh() * 0.5 + x

    measured = {"saved": memory(record(layer)), "again": memory(record(checkpoint(layer)))}
    return plot.memory(measured, dark=dark)


PLOTS: dict[str, Callable[[], Figure]] = {
    **{
        f"{losses} {log}": lambda losses=losses, log=log: plot.loss(run_of(losses), log=log)
        for losses, log in (
            ([1.0, 0.1], "auto"), ([1.0, 0.0], "auto"), ([1.0, -1.0], "auto"),
            ([1.0, 0.1], "none"), ([1.0, NAN, 0.5], "auto"), ([1.0, INF], "auto"),
            ([1.0, 0.1], "x"), ([1.0, 0.1], "y"), ([1.0, 0.1], "both"),
        )
    },
    **{
        f"diverged {losses}": lambda losses=losses: plot.loss(stopped(losses))
        for losses in ([4.0, 3.0], [0.0] * 6, [-1.0, -2.0], [1.0], [], [NAN] * 3, [1.0, 1e40])
    },
    "one step": lambda: plot.loss(run_of([1.0])),
    "28 steps": lambda: plot.loss(runs_of({"a": [1.0, 0.5] * 14})),
    "validation": lambda: plot.loss(
        run_of([1.0] * 100, validation_losses=[2.0, 1.0], settings={"steps_per_epoch": 40})
    ),
    "validation of a file without settings": lambda: plot.loss(
        run_of([1.0] * 100, validation_losses=[2.0, 1.0], epochs=2)
    ),
    "moving average": lambda: plot.loss(runs_of({"a": [1.0, 3.0, 5.0], "one": [1.0]}), smooth=3),
    "names": lambda: plot.loss(runs_of({"_a$b^2$": [1, 0.5], "c": [1, 0.2]}), title="$t_1"),
    "no title": lambda: plot.loss(run_of([1.0, 0.5]), title=""),
    "diverged and smooth": lambda: plot.loss(
        runs_of({
            "good": [5000.0 / k for k in range(1, 200)],
            "bad": [4000.0 * 1e9 ** (k**2) for k in range(6)],
            "short": [4000.0, 1e60, 1e200],
        }),
        smooth=9,
    ),
    "lucky steps": lambda: plot.loss(
        run_of([100.0 if k % 2 else 1e-14 for k in range(1000)]), smooth=10
    ),
    "lucky start": lambda: plot.loss(runs_of({"a": [1e-12, *[50.0, 80.0] * 20], "b": [3, 2]})),
    "no finite loss": lambda: plot.loss(runs_of({"a": [1.0, 0.5], "b": [NAN] * 2})),
    "parameters": lambda: plot.parameters(MOVED, by="epoch"),
    "parameters by step": lambda: plot.parameters(MOVED, by="step", title=""),
    "learned parameters": lambda: plot.parameters(MOVED, final=True),
    "diverged parameters": lambda: plot.parameters(MOVED_FAR, log_steps=True),
    "learned parameters of a diverged run": lambda: plot.parameters(MOVED_FAR, final=True),
    "many parameters": lambda: plot.parameters({"a": MANY}),
    "80 letters": lambda: plot.parameters(named(20), final=True),
    "84 letters": lambda: plot.parameters(named(21), final=True),
    "cost": lambda: plot.cost("sum", [4, 8], bound=3),
    "cost of one size": lambda: plot.cost("neuron", [4]),
    "swell": lambda: plot.swell("product", [1, 2, 30]),
    "swell of one depth": lambda: plot.swell("product", [3]),
    "memory": plot_memory,
    "small variation": lambda: plot.function(cgprimer.parse("xw = 5 + 1e-12*xa"), order=0),
    "small variation of large values": lambda: plot.function(
        cgprimer.parse("xw = 1e6 + xa"), order=0
    ),
    "large values": lambda: plot.function(cgprimer.parse("xw = 1e7*xa"), order=0),
    "thousands": lambda: plot.function(cgprimer.parse("xw = 1e4*xa"), order=0),
}  # fmt: skip


@pytest.mark.parametrize("name", PLOTS)
def test_plots_show_what_is_approved(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cgprimer.visualization.plots.cost_plot._MAX_SYMBOLIC", 4)
    approved(describe(PLOTS[name]()))


def test_curves_have_the_losses_of_a_run() -> None:
    run = cgprimer.train(CLASSES, cgprimer.make_dataset(CLASSES, samples=100), epochs=6)
    for by, start, losses in (
        ("epoch", 0, [run.start_loss, *run.epoch_losses]), ("step", 1, run.step_losses),
    ):  # fmt: skip
        (line,) = plot.loss(run, by=by, smooth=1).axes[0].lines
        assert list(line.get_xdata()) == list(range(start, start + len(losses)))
        assert list(line.get_ydata()) == losses
    thinned = run_of([3.0, 2.0, 1.0], steps_apart=4, steps=12)
    assert over_time(thinned, "step") == ([1.0, 5.0, 9.0], [3.0, 2.0, 1.0])


def test_moving_averages_are_means_of_windows() -> None:
    values = np.random.default_rng(0).normal(size=50)
    for window in (1, 2, 5, 8, 49, 50, 64, 200):
        slow = [
            values[max(0, k - (window - 1) // 2) : k + window // 2 + 1].mean() for k in range(50)
        ]
        assert compute_moving_average(values.tolist(), window) == pytest.approx(slow)
    assert compute_moving_average([1.0, NAN, 3.0], 3) == [1.0, 2.0, 3.0]
    tiny = compute_moving_average([1e50, *[1e-20] * 40], 7)[-20:]
    assert tiny == pytest.approx([1e-20] * 20)  # large past values leave no trace


def test_the_end_of_a_diverged_run_is_marked() -> None:
    """A cross-entropy is infinite at once, when its recorded losses have hardly grown."""
    with pytest.raises(NonFiniteError) as caught:
        cgprimer.train(CLASSES, cgprimer.make_dataset(CLASSES), loss="cross-entropy",
                       optimizer="sgd", learning_rate=500.0)  # fmt: skip
    run = caught.value.run
    assert isinstance(run, TrainingRun)
    assert max(run.step_losses) < 100
    figure = plot.loss({"sgd": run})
    assert [text.get_text() for text in figure.axes[0].texts] == ["diverged"]
    (end,) = [line for line in figure.axes[0].lines if line.get_label() == "_end"]
    assert list(end.get_xdata()) == [run.steps]
    assert entries(figure) == ["sgd: diverges"]
    assert "sgd: diverges" in entries(plot.parameters({"sgd": run}))
    assert "sgd: diverged, not shown" in entries(plot.parameters({"sgd": run}, final=True))


def test_only_data_made_from_declared_values_have_true_values() -> None:
    data = cgprimer.make_dataset(CLASSES, samples=50)
    read = cgprimer.Dataset.from_arrays(data.inputs, data.targets)
    runs = [cgprimer.train(CLASSES, samples, epochs=1) for samples in (data, read)]
    legends = [entries(plot.parameters(run)) for run in runs]
    assert legends == [["true value", "training"], ["training"]]


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
