"""`cgprimer.plot`: one function for each kind of `cgprimer plot`, and the same picture."""

from __future__ import annotations

import inspect
import subprocess
import sys
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
from cgprimer.training.runs import save_run
from cgprimer.visualization.diagrams.figure_files import save_figure
from cgprimer.visualization.plots.cost_plot import cost_growth
from cgprimer.visualization.plots.swell_plot import swell_counts
from tests.approval import refused
from tests.cli.cli_tools import good

GRAPH = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
SINE = cgprimer.parse("xw = sin(xa)")

PLANE = cgprimer.parse("xw = sigmoid(k*xa + l*xb)")


@pytest.fixture(scope="module")
def runs() -> dict[str, TrainingRun]:
    data = cgprimer.make_dataset(GRAPH, samples=300)
    return {
        "adam": cgprimer.train(GRAPH, data, epochs=6, validation=0.2),
        "sgd": cgprimer.train(GRAPH, data, epochs=6, optimizer="sgd"),
    }


@pytest.fixture(scope="module")
def folder(runs: dict[str, TrainingRun], tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("runs")
    for name, run in runs.items():
        save_run(run, found / f"{name}.json", GRAPH)
    data = cgprimer.make_classes("xor", PLANE, samples=40)
    data.save(found / "plane.csv")
    cgprimer.train(PLANE, data, epochs=2, batch_size=10).save(found / "plane.json")
    team = cgprimer.train(PLANE, data, epochs=1, workers=3, simulate=True, batch_size=5)
    team.save(found / "team.json")
    return found


@pytest.fixture
def files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(folder)
    return ["adam.json", "sgd.json"]


def entries(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_every_kind_has_a_function_and_every_function_a_kind() -> None:
    assert set(plot.__all__) == set(command.commands)
    assert cgprimer.plot is plot
    assert "plot" in dir(cgprimer)
    for name in plot.__all__:
        assert ">>>" in (inspect.getdoc(getattr(plot, name)) or "")


@pytest.mark.parametrize("kind", plot.__all__)
def test_every_argument_is_an_option(kind: str) -> None:
    """But the graph, which is FILE or -e, and what a command line has no place for."""
    known = set(inspect.signature(getattr(plot, kind)).parameters)
    options = {str(option.name) for option in command.commands[kind].params}
    assert options - known <= {"file", "expression", "output"}
    assert known - options <= {"graph", "high", "dataset", *(["steps"] if kind == "error" else [])}


CASES: dict[str, tuple[list[str], Any]] = {
    "error": (
        ["-e", "xw = sin(xa)", "--at", "xa=1", "--scheme", "central"],
        lambda files: plot.error(SINE, {"xa": 1}, schemes=["central"]),
    ),
    "loss": (["adam.json", "sgd.json"], lambda files: plot.loss(*files)),
    "parameters": (["adam.json", "sgd.json"], lambda files: plot.parameters(*files)),
    "cost": (
        ["--family", "sum", "--sizes", "1,4", "--bound", "3"],
        lambda files: plot.cost("sum", [1, 4], bound=3),
    ),
    "swell": (["--depths", "1,2,3"], lambda files: plot.swell(depths=[1, 2, 3])),
    "surface": (
        ["-e", "xw = k*xa + b; parameter k = 3, b = -1", "--optimizers", "sgd", "--steps", "9"],
        lambda files: plot.surface(GRAPH, optimizers=["sgd"], steps=9),
    ),
    "function": (
        ["-e", "xw = sin(xa)", "--range", "-1:2", "--tangent", "1"],
        lambda files: plot.function(SINE, -1, 2, tangent=1),
    ),
    "batches": (
        ["-e", "xw = k*xa + b; parameter k = 3, b = -1", "--batches", "2", "--epochs", "1"],
        lambda files: plot.batches(GRAPH, batches=2, epochs=1),
    ),
    "boundary": (
        ["plane.json", "--data", "plane.csv"],
        lambda files: plot.boundary("plane.json", "plane.csv"),
    ),
    "descent": (
        ["-e", "xw = k*xa + b; parameter k = 3, b = -1", "--steps", "20"],
        lambda files: plot.descent(GRAPH, steps=20),
    ),
    "activations": (
        ["--depth", "2", "--width", "4", "--epochs", "1"],
        lambda files: plot.activations(depth=2, width=4, epochs=1),
    ),
    "noise": (
        ["-e", "xw = k*xa; parameter k = 3", "--start", "k=1", "--steps", "9", "--seeds", "2"],
        lambda files: plot.noise(
            cgprimer.parse("xw = k*xa; parameter k = 3"), start={"k": 1}, steps=9, seeds=2
        ),
    ),
    "gradients": (
        ["-e", "xh = sin(xa); xw = sin(xh)", "--at", "xa=1"],
        lambda files: plot.gradients(cgprimer.parse("xh = sin(xa); xw = sin(xh)"), {"xa": 1}),
    ),
    "variance": (
        ["-e", "xw = k*xa + b; parameter k = 3, b = -1", "--batches", "20"],
        lambda files: plot.variance(GRAPH, batches=20),
    ),
    "workers": (["team.json", "--until", "5"], lambda files: plot.workers("team.json", until=5)),
    "points": (
        ["-e", "xw = sin(xa)", "--at", "xa=0:2:5"],
        lambda files: plot.points(SINE, {"xa": [0, 0.5, 1, 1.5, 2]}),
    ),
}


@pytest.mark.parametrize("kind", plot.__all__)
def test_the_command_writes_what_the_function_returns(
    kind: str, files: list[str], tmp_path: Path
) -> None:
    arguments, make = CASES[kind]
    here, there = tmp_path / "here.svg", tmp_path / "there.svg"
    good("plot", kind, *arguments, "-o", there)
    save_figure(make(files), here)
    assert here.read_bytes() == there.read_bytes()


def test_runs_come_as_objects_as_files_and_by_name(
    runs: dict[str, TrainingRun], files: list[str]
) -> None:
    adam, sgd = runs.values()
    best = f"best epoch {1 + int(np.argmin(adam.validation_losses))}"
    named = ["adam, training", "adam, validation", f"adam, {best}", "sgd"]
    assert entries(plot.loss(adam)) == ["training", "validation", best]
    numbered = [text.replace("adam", "run 1").replace("sgd", "run 2") for text in named]
    assert entries(plot.loss(adam, sgd)) == numbered
    assert entries(plot.loss(runs)) == named
    assert entries(plot.loss(*files)) == named
    mixed = {"mine": sgd, "theirs": files[0]}
    assert entries(plot.loss(mixed, validation=False)) == ["mine", "theirs"]
    assert entries(plot.parameters(Path(files[0]), sgd)) == ["true value", "adam", "run 2"]
    assert entries(plot.parameters(runs, final=True)) == [
        "true value", "adam, learned", "sgd, learned"]  # fmt: skip


def test_parameters_by_name(runs: dict[str, TrainingRun]) -> None:
    assert [axes.get_title() for axes in plot.parameters(runs).axes] == ["k", "b"]
    assert [axes.get_title() for axes in plot.parameters(runs, names=["b"]).axes] == ["b"]
    final = plot.parameters(runs, names=["b"], final=True)
    assert [text.get_text() for text in final.axes[0].get_xticklabels()] == ["b"]


def test_curves_begin_at_the_start_and_end_at_what_was_learnt(runs: dict[str, TrainingRun]) -> None:
    run = runs["adam"]
    (curve,) = [
        line for line in plot.parameters(run, by="step").axes[0].lines
        if line.get_label() == "training"
    ]  # fmt: skip
    assert curve.get_xdata()[0] == 0
    assert curve.get_xdata()[-1] == run.steps
    assert curve.get_ydata()[0] == run.start["k"]
    assert curve.get_ydata()[-1] == run.parameters["k"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda run: plot.loss(), ""),
        (lambda run: plot.loss(3), "int"),
        (lambda run: plot.loss({"a": {"b": run, "c": run}}), "cgprimer.train"),
        (lambda run: plot.loss({"a": {"b": run}}), ""),
        (lambda run: plot.loss({"a": 3}), "int"),
        (lambda run: plot.loss({"a": run}, {"a": run}), "'a'"),
        (lambda run: plot.loss(run, by="year"), "'year'"),
        (lambda run: plot.loss(run, smooth=0), "1"),
        (lambda run: plot.parameters(), ""),
        (lambda run: plot.error("xw = xa"), "`graph`"),
        (lambda run: plot.function("xw = xa"), "`graph`"),
        (lambda run: plot.surface("xw = k*xa"), "`graph`"),
        (lambda run: plot.cost("neurons"), "'neurons'"),
        (lambda run: plot.cost(bound=1), "bound"),
    ],
)
def test_mistakes(call: Any, words: str, runs: dict[str, TrainingRun]) -> None:
    with refused(UsageError, words):
        call(runs["adam"])


PAIR = cgprimer.parse("xw = ab*xa + a + b; parameter a = 1, b = 2, ab = 3")


def test_one_name_is_a_name_and_not_its_letters() -> None:
    run = cgprimer.train(PAIR, cgprimer.make_dataset(PAIR, samples=50), epochs=6)
    assert [axes.get_title() for axes in plot.parameters(run, names="ab").axes] == ["ab"]
    final = plot.parameters(run, names="ab", final=True)
    assert [text.get_text() for text in final.axes[0].get_xticklabels()] == ["ab"]
    with refused(UsageError):
        plot.surface(PAIR, "ab", steps=3)
    with refused(UsageError, "'k'"):
        plot.parameters(run, names="k")
    drawn = entries(plot.surface(PAIR, ["a", "b"], optimizers="sgd", steps=3))
    assert any("gradient descent" in entry for entry in drawn)
    assert not any("adam" in entry for entry in drawn)
    assert any("reverse" in entry for entry in entries(plot.cost("sum", 4, methods="reverse")))
    assert "forward" in " ".join(entries(plot.error(SINE, {"xa": 1}, schemes="forward")))


@pytest.mark.parametrize("number", [3, np.int64(3), [3], np.array([3])])
def test_one_number_is_a_number(number: Any) -> None:
    def places(figure: Figure) -> list[float]:
        return sorted({float(x) for line in figure.axes[0].lines for x in line.get_xdata()})

    wanted = [plot.cost("sum", [3], methods="reverse"), plot.swell("product", [3])]
    found = [plot.cost("sum", number, methods="reverse"), plot.swell("product", number)]
    assert [places(figure) for figure in found] == [places(figure) for figure in wanted]


def test_one_step_is_a_step() -> None:
    figure = plot.error(SINE, {"xa": 1}, schemes="central", steps=1e-3)
    assert any(list(line.get_xdata()) == [1e-3] for line in figure.axes[0].lines)


@pytest.mark.parametrize("number", [0, -1, 2.5, "3", [2, 0], []])
def test_what_is_no_number_of_anything(number: Any) -> None:
    for call in (lambda: cost_growth("sum", number), lambda: swell_counts("product", number or 0)):
        with refused(UsageError):
            call()


def test_validation_without_a_finite_loss_is_said_in_the_legend() -> None:
    graph = cgprimer.parse("xw = k*log(xa); parameter k = 2")
    good = cgprimer.Dataset.from_arrays({"xa": [1.0, 2.0, 3.0]}, {"xw": [0.0, 1.0, 2.0]})
    others = cgprimer.Dataset.from_arrays({"xa": [-1.0]}, {"xw": [0.0]})
    run = cgprimer.train(graph, good, epochs=6, validation=others)
    assert entries(plot.loss(run)) == ["training", "validation: no finite loss"]


def test_it_is_loaded_when_it_is_asked_for() -> None:
    program = (
        "import sys, cgprimer; early = 'cgprimer.plot' in sys.modules; cgprimer.plot.loss;"
        "print(early, 'cgprimer.plot' in sys.modules, 'matplotlib' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True", "False"]
