"""`cgprimer.plot` and ``cgprimer plot``: a function and a command for each kind of plot."""

from __future__ import annotations

import inspect
import shlex
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import cgprimer
from cgprimer import plot
from cgprimer.cli.plot_command import command
from cgprimer.errors import UsageError
from cgprimer.training.loop import TrainingRun
from cgprimer.visualization.diagrams.figure_files import save_figure
from cgprimer.visualization.plots.cost_plot import cost_growth
from cgprimer.visualization.plots.swell_plot import swell_counts
from tests.approval import lines_with_values, refused
from tests.cli.cli_tools import good

TEXT = "xw = k*xa + b; parameter k = 3, b = -1"
GRAPH = cgprimer.parse(TEXT)
SINE = cgprimer.parse("xw = sin(xa)")
LINE = cgprimer.parse("xw = k*xa; parameter k = 3")
CHAIN = cgprimer.parse("xh = sin(xa); xw = sin(xh)")
PAIR = cgprimer.parse("xw = ab*xa + a + b; parameter a = 1, b = 2, ab = 3")


@pytest.fixture(scope="module")
def runs() -> dict[str, TrainingRun]:
    data = cgprimer.make_dataset(GRAPH, samples=300)
    return {
        "adam": cgprimer.train(GRAPH, data, epochs=6, validation=0.2),
        "sgd": cgprimer.train(GRAPH, data, epochs=6, optimizer="sgd"),
    }


@pytest.fixture(scope="module")
def folder(runs: dict[str, TrainingRun], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with runs and data, which no test changes."""
    folder = tmp_path_factory.mktemp("runs")
    for name, run in runs.items():
        run.save(folder / f"{name}.json")
    plane = cgprimer.parse("xw = sigmoid(k*xa + l*xb)")
    data = cgprimer.make_classes("xor", plane, samples=40)
    data.save(folder / "plane.csv")
    cgprimer.train(plane, data, epochs=2, batch_size=10).save(folder / "plane.json")
    team = cgprimer.train(plane, data, epochs=1, workers=3, simulate=True, batch_size=5)
    team.save(folder / "team.json")
    return folder


def entries(figure: Figure) -> list[str]:
    """Return the texts of the legend."""
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_every_kind_has_a_function_with_the_options_as_arguments() -> None:
    """Except the graph, which is FILE or -e, and arguments that a command line cannot contain."""
    assert set(plot.__all__) == set(command.commands) == {line.split()[0] for line, _ in PLOTS}
    assert "plot" in dir(cgprimer)
    for kind in plot.__all__:
        function = getattr(plot, kind)
        assert ">>>" in (inspect.getdoc(function) or "")
        known = set(inspect.signature(function).parameters)
        options = {str(option.name) for option in command.commands[kind].params}
        assert options - known <= {"file", "expression", "output"}, kind
        allowed = {"graph", "high", "dataset", *(["steps"] if kind == "error" else [])}
        assert known - options <= allowed, kind


# Command lines, each followed by the arguments of the function with the same picture.
PLOTS = lines_with_values(Path(__file__).with_name("plots.txt"))
WRONG_PLOTS = lines_with_values(Path(__file__).with_name("wrong_plots.txt"))


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        pytest.param(*row, marks=[pytest.mark.slow] * (not row[0].startswith("error")))
        for row in PLOTS
    ],
)
def test_the_command_draws_the_picture_of_the_function(
    line: str, arguments: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    kind, *options = shlex.split(line)
    good("plot", kind, *options, "--title", kind, "--dark", "-o", tmp_path / "command.svg")
    keywords = ", ".join(filter(None, [arguments, f"title={kind!r}, dark=True"]))
    figure = eval(f"plot.{kind}({keywords})", globals())  # noqa: S307
    save_figure(figure, tmp_path / "function.svg")
    assert (tmp_path / "command.svg").read_bytes() == (tmp_path / "function.svg").read_bytes()


def test_runs_are_objects_files_and_dictionaries(
    runs: dict[str, TrainingRun], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    adam, sgd = runs.values()
    best = f"best epoch {1 + int(np.argmin(adam.validation_losses))}"
    named = ["adam, training", "adam, validation", f"adam, {best}", "sgd"]
    assert entries(plot.loss(adam)) == ["training", "validation", best]
    numbered = [text.replace("adam", "run 1").replace("sgd", "run 2") for text in named]
    assert entries(plot.loss(adam, sgd)) == numbered
    assert entries(plot.loss(runs)) == entries(plot.loss("adam.json", "sgd.json")) == named
    mixed = {"mine": sgd, "theirs": "adam.json"}
    assert entries(plot.loss(mixed, validation=False)) == ["mine", "theirs"]
    expected = ["true value", "adam, learned", "sgd, learned"]
    assert entries(plot.parameters(runs, final=True)) == expected


def test_a_name_or_number_alone_is_a_list_of_one() -> None:
    run = cgprimer.train(PAIR, cgprimer.make_dataset(PAIR, samples=50), epochs=6)
    assert [axes.get_title() for axes in plot.parameters(run, names="ab").axes] == ["ab"]
    figure = plot.error(SINE, {"xa": 1}, schemes="central", steps=1e-3)
    assert any(list(line.get_xdata()) == [1e-3] for line in figure.axes[0].lines)
    for number in (3, np.int64(3), np.array([3])):
        assert cost_growth("sum", number) == cost_growth("sum", [3])
        assert swell_counts("product", number) == swell_counts("product", [3])


@pytest.mark.parametrize(("call", "values"), WRONG_PLOTS, ids=[call for call, _ in WRONG_PLOTS])
def test_wrong_arguments_are_refused(call: str, values: str, runs: dict[str, TrainingRun]) -> None:
    with refused(UsageError, values):
        eval(call, globals() | {"run": runs["adam"]})  # noqa: S307


def test_the_legend_names_a_validation_loss_that_is_never_finite() -> None:
    graph = cgprimer.parse("xw = k*log(xa); parameter k = 2")
    data = cgprimer.Dataset.from_arrays({"xa": [1.0, 2.0, 3.0]}, {"xw": [0.0, 1.0, 2.0]})
    others = cgprimer.Dataset.from_arrays({"xa": [-1.0]}, {"xw": [0.0]})
    run = cgprimer.train(graph, data, epochs=6, validation=others)
    assert entries(plot.loss(run)) == ["training", "validation: no finite loss"]
