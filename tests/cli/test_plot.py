"""`cgprimer.plot` and ``cgprimer plot``: a function and a command for each kind of plot."""

from __future__ import annotations

import inspect
import shlex
from pathlib import Path
from typing import Any

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
from tests.approval import refused
from tests.cli.cli_tools import good

TEXT = "xw = k*xa + b; parameter k = 3, b = -1"
GRAPH = cgprimer.parse(TEXT)
SINE = cgprimer.parse("xw = sin(xa)")
LINE = cgprimer.parse("xw = k*xa; parameter k = 3")
CHAIN = cgprimer.parse("xh = sin(xa); xw = sin(xh)")
PAIR_OF_RUNS = ("adam.json", "sgd.json")
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
    assert set(plot.__all__) == set(command.commands)
    assert "plot" in dir(cgprimer)
    for kind in plot.__all__:
        function = getattr(plot, kind)
        assert ">>>" in (inspect.getdoc(function) or "")
        known = set(inspect.signature(function).parameters)
        options = {str(option.name) for option in command.commands[kind].params}
        assert options - known <= {"file", "expression", "output"}, kind
        allowed = {"graph", "high", "dataset", *(["steps"] if kind == "error" else [])}
        assert known - options <= allowed, kind


# The options of a command, and the arguments of the function with the same picture.
CASES: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "error": ("-e 'xw = sin(xa)' --at xa=1 --scheme central",
              (SINE, {"xa": 1}), {"schemes": ["central"]}),
    "loss": ("adam.json sgd.json --by step --smooth 3 --log y --no-validation",
             PAIR_OF_RUNS, {"by": "step", "smooth": 3, "log": "y", "validation": False}),
    "parameters": ("adam.json sgd.json --names b --by step",
                   PAIR_OF_RUNS, {"names": "b", "by": "step"}),
    "cost": ("--family sum --sizes 1,4 --bound 3", ("sum", [1, 4]), {"bound": 3}),
    "swell": ("--depths 1,2,3", (), {"depths": [1, 2, 3]}),
    "surface": (f"-e '{TEXT}' --over k,b --optimizers sgd --steps 9 --start k=0 --range -1:3"
                " --range 0:5",
                (GRAPH, ("k", "b")), {"optimizers": ["sgd"], "steps": 9, "start": {"k": 0},
                                      "ranges": [(-1, 3), (0, 5)]}),
    "function": ("-e 'xw = sin(xa)' --range -1:2 --tangent 1 --order 2",
                 (SINE, -1, 2), {"tangent": 1, "order": 2}),
    "batches": (f"-e '{TEXT}' --batches 2 --epochs 1 --seed 3",
                (GRAPH,), {"batches": 2, "epochs": 1, "seed": 3}),
    "boundary": ("plane.json --data plane.csv", ("plane.json", "plane.csv"), {}),
    "descent": (f"-e '{TEXT}' --steps 20", (GRAPH,), {"steps": 20}),
    "activations": ("--depth 2 --width 4 --epochs 1",
                    (), {"depth": 2, "width": 4, "epochs": 1}),
    "noise": ("-e 'xw = k*xa; parameter k = 3' --start k=1 --steps 9 --seeds 2",
              (LINE,), {"start": {"k": 1}, "steps": 9, "seeds": 2}),
    "gradients": ("-e 'xh = sin(xa); xw = sin(xh)' --at xa=1", (CHAIN, {"xa": 1}), {}),
    "variance": (f"-e '{TEXT}' --batches 20", (GRAPH,), {"batches": 20}),
    "workers": ("team.json --until 5", ("team.json",), {"until": 5}),
    "points": ("-e 'xw = sin(xa)' --at xa=0:2:5", (SINE, {"xa": [0, 0.5, 1, 1.5, 2]}), {}),
}  # fmt: skip
QUICK = ("error",)


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[pytest.mark.slow] * (kind not in QUICK)) for kind in plot.__all__],
)
def test_the_command_draws_the_picture_of_the_function(
    kind: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    options, arguments, keywords = CASES[kind]
    line = (kind, *shlex.split(options), "--title", kind, "--dark")
    good("plot", *line, "-o", tmp_path / "command.svg")
    figure = getattr(plot, kind)(*arguments, title=kind, dark=True, **keywords)
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


@pytest.mark.parametrize(
    ("call", "values"),
    [
        (lambda run: plot.loss(), ""),
        (lambda run: plot.loss(3), "int"),
        (lambda run: plot.loss({"a": {"b": run, "c": run}}), "cgprimer.train"),
        (lambda run: plot.loss({"a": run}, {"a": run}), "'a'"),
        (lambda run: plot.loss(run, by="year"), "'year'"),
        (lambda run: plot.loss(run, smooth=0), "1"),
        (lambda run: plot.parameters(run, names="k2"), "'k2'"),
        (lambda run: plot.function("xw = xa"), "`graph`"),
        (lambda run: plot.surface(PAIR, "ab", steps=3), ""),
        (lambda run: plot.cost("neurons"), "'neurons'"),
        (lambda run: plot.cost(bound=1), "bound"),
        *[(lambda run, n=n: cost_growth("sum", n), "") for n in (0, 2.5, "3", [2, 0], [])],
    ],
)
def test_wrong_arguments_are_refused(call: Any, values: str, runs: dict[str, TrainingRun]) -> None:
    with refused(UsageError, values):
        call(runs["adam"])


def test_the_legend_names_a_validation_loss_that_is_never_finite() -> None:
    graph = cgprimer.parse("xw = k*log(xa); parameter k = 2")
    data = cgprimer.Dataset.from_arrays({"xa": [1.0, 2.0, 3.0]}, {"xw": [0.0, 1.0, 2.0]})
    others = cgprimer.Dataset.from_arrays({"xa": [-1.0]}, {"xw": [0.0]})
    run = cgprimer.train(graph, data, epochs=6, validation=others)
    assert entries(plot.loss(run)) == ["training", "validation: no finite loss"]
