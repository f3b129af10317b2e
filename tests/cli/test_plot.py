"""``cgprimer plot``: every example of every kind, and what is said to mistakes."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest

import cgprimer
from cgprimer.cli.plot_command import command
from cgprimer.training.runs import save_run
from tests.approval import approved
from tests.cli.cli_tools import EXAMPLES, LECTURE, good, run

KINDS = tuple(command.commands)


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


SLOW = (
    "activations",
    "batches",
    "boundary",
    "cost",
    "descent",
    "noise",
    "surface",
    "swell",
    "workers",
)


def test_the_kinds() -> None:
    assert KINDS == (
        "activations", "batches", "boundary", "cost", "descent", "error", "function", "gradients",
        "loss", "noise", "parameters", "points", "surface", "swell", "variance", "workers",
    )  # fmt: skip


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=[pytest.mark.slow] * (k in SLOW)) for k in KINDS]
)
def test_every_example_works(kind: str, workplace: Path) -> None:
    text = command.commands[kind].help or ""
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith("cgprimer ")]
    assert len(lines) > 1
    for line in lines:
        arguments = shlex.split(line)[1:]
        done = run(*arguments)
        assert done.returncode == 0, done.stderr
        if arguments[0] == "plot":
            path = arguments[arguments.index("-o") + 1]
            assert (workplace / path).stat().st_size > 5_000
            assert done.stderr.endswith(f"wrote {path}\n")
    assert not list(workplace.glob(".*"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["error", "-e", "xw = sin(xa)", "-o", "a.png"], ""),
        (["error", "-e", "xw = abs(xa)", "--at", "xa=0", "-o", "a.png"], ""),
        (["error", "-o", "a.png"], ""),
        (["error", "-e", "xw = sin(xa)", "--at", "xa=1", "-o", "a.jpg"], ".pdf"),
        (["error", "-e", "xw = sin(xa)", "--at", "xa=1", "-o", "no/a.png"], "no/a.png"),
        (["error", "-e", "xw = sin(xa)", "--at", "xa=1"], "-o"),
        (["loss", "nowhere.json", "-o", "a.png"], "nowhere.json"),
        (["loss", "-o", "a.png"], "RUN"),
        (["loss", "examples/lecture.cg", "-o", "a.png"], ""),
        (["loss", "run.json", "-o", "a.bmp"], ".png, .svg, .pdf"),
        (["loss", "run.json", "run.json", "-o", "a.png"], "twice"),
        (["loss", "run.json", "--log", "z", "-o", "a.png"], "'z'"),
        (["parameters", "nowhere.json", "-o", "a.png"], "nowhere.json"),
        (["parameters", "run.json", "-o", "no/a.png"], "no/a.png"),
        (["parameters", "run.json", "--names", "cx", "-o", "a.png"], "'cx'"),
        (["parameters", "run.json", "--final", "--names", "cx", "-o", "a.png"], "'cx'"),
        (["parameters", "run.json", "--final", "--log-steps", "-o", "a.png"], "--log-steps"),
        (["parameters", "none.json", "-o", "a.png"], ""),
        (["loss", "none.json", "-o", "a.png"], ""),
        (["loss", "nan.json", "-o", "a.png"], "finite"),
        (["cost", "--sizes", "1,x", "-o", "a.png"], "'x'"),
        (["cost", "--methods", "backward", "-o", "a.png"], "backward"),
        (["cost", "--bound", "0", "--sizes", "1", "-o", "a.png"], "bound"),
        (["boundary", "run.json", "--data", "x.csv", "-o", "a.png"], ""),
        (["descent", LECTURE, "--optimizers", "adm", "-o", "a.png"], "'adm'"),
        (["descent", LECTURE, "--rates", "sgd=1", "-o", "a.png"], ""),
        (["batches", LECTURE, "--batches", "6", "-o", "a.png"], "5"),
        (["surface", LECTURE, "--3d", "--gradient", "1", "-o", "a.png"], "3-D"),
        (["boundary", "run.json", "-o", "a.png"], "--data"),
        (["boundary", "run.json", "--data", "x.csv", "-o", "a.jpg"], ".gif, .html"),
        (["swell", "--family", "sum", "-o", "a.png"], "sum"),
        (["surface", "-e", "xw = k*xa", "--at", "k=1", "-o", "a.png"], ""),
        (["surface", LECTURE, "--over", "ab,xa", "-o", "a.png"], "'xa'"),
        (["surface", LECTURE, "--range", "1-2", "-o", "a.png"], "LOW:HIGH"),
        (["surface", LECTURE, "--data", "no.csv", "-o", "a.png"], "no.csv"),
        (["function", "-e", "xw = k*xa", "-o", "a.png"], "missing value for k"),
        (["function", "-e", "xw = xa", "--range", "2:1", "-o", "a.png"], "ascend"),
        (["functoin", "-o", "a.png"], "functoin"),
    ],
)
def test_mistakes(arguments: list[object], words: str, runs: Path, workplace: Path) -> None:
    shutil.copytree(runs, workplace, dirs_exist_ok=True)
    before = sorted(workplace.iterdir())
    done = run("plot", *arguments)
    assert done.returncode in (1, 2)
    approved(done.stderr, words)
    assert done.stdout == ""
    assert sorted(workplace.iterdir()) == before, "a file was left behind"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, one without a step, one of nan."""
    folder = tmp_path_factory.mktemp("runs")
    graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
    data = cgprimer.make_dataset(graph, samples=60)
    save_run(cgprimer.train(graph, data, epochs=0), folder / "none.json", graph)
    trained = cgprimer.train(graph, data, epochs=6, validation=0.2)
    save_run(trained, folder / "run.json", graph)
    (folder / "x.csv").write_text("xa,xw\n1,2\n0,1\n")
    fields = json.loads((folder / "run.json").read_text())
    nan = {"step_losses": ["nan"] * trained.steps, "epoch_losses": ["nan"] * trained.epochs}
    (folder / "nan.json").write_text(json.dumps(fields | nan))
    return folder


@pytest.mark.usefixtures("workplace")
def test_learnt_parameters_and_optimizers_are_options() -> None:
    for options in (
        ["--optimizers", "none"],
        ["--optimizers", "adam,sgd", "--start", "ab=0,cd=1", "--range", "-1:3", "--range", "0:5"],
    ):
        good("plot", "surface", LECTURE, "--over", "ab,cd", "-o", "a.png", *options)
