"""Files and packages for earlier versions are read, and files are written with the same keys."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from tests.cli.cli_tools import environment, good, write_package

from .comparing import FILES, differences

RUNS = ("run", "lbfgs", "moons", "batchnorm", "workers", "float32", "interrupted")


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_read_and_written_as_it_was(name: str, tmp_path: Path) -> None:
    run = cgprimer.load_run(FILES / f"{name}.json")
    recorded = json.loads((FILES / f"{name}.json").read_text("utf-8"))
    for key in ("parameters", "start", "truth"):
        for parameter, value in recorded[key].items():
            np.testing.assert_array_equal(getattr(run, key)[parameter], value)
    assert (run.loss, run.epochs, run.steps) == tuple(
        recorded[key] for key in ("loss", "epochs", "steps")
    )
    run.save(tmp_path / "again.json")
    again = json.loads((tmp_path / "again.json").read_text("utf-8"))
    assert list(differences(recorded, again, 1e-15)) == []


def test_the_folder_of_a_run_is_read() -> None:
    run = cgprimer.load_run(FILES / "run_folder")
    parameters = json.loads((FILES / "run_folder" / "parameters.json").read_text("utf-8"))
    assert run.parameters == parameters


def test_an_interrupted_run_goes_on() -> None:
    graph = cgprimer.load(FILES / "interrupt.cg")
    run = cgprimer.load_run(FILES / "interrupted.json")
    assert (run.stopped, run.epochs, run.steps) == ("interrupted", 406, 1_624_000)
    data = cgprimer.make_dataset(graph, samples=20_000, noise=0.1)
    settings: dict[str, Any] = {"batch_size": 5, "schedule": "constant", "learning_rate": 0.0001}
    resumed = cgprimer.train(graph, data, resume=run, epochs=408, **settings)
    assert resumed.steps == 1_632_000
    expected = {"k": 3.000950578354534, "b": -1.0028704183681934}
    assert resumed.parameters == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["lecture.csv", "lecture.npz", "lecture.parquet"])
def test_data_are_read(name: str) -> None:
    graph = cgprimer.load("lecture")
    data = cgprimer.Dataset.load(FILES / name, inputs=["xa"], targets=["xw"])
    expected = cgprimer.make_dataset(graph, samples=40, seed=1)
    np.testing.assert_allclose(data.inputs["xa"], expected.inputs["xa"], rtol=1e-14)
    np.testing.assert_allclose(data.targets["xw"], expected.targets["xw"], rtol=1e-14)


def test_answers_to_a_sheet_are_graded() -> None:
    right = cgprimer.check_trace(FILES / "sheets.json", FILES / "answers.md")
    assert (right.points, right.possible) == (73, 73)
    partly = cgprimer.check_trace(FILES / "sheets.json", FILES / "answers.csv")
    assert (partly.points, partly.possible) == (22, 73)
    wrong = {part.name: part.mistake for part in partly.parts if part.verdict == "wrong"}
    assert wrong["3 xq adjoint"] == "sign"


def test_an_autograder_has_its_files(tmp_path: Path) -> None:
    """Gradescope calls ``setup.sh`` and ``run_autograder``, and reads ``results/results.json``."""
    good("check", "gradient", "lecture", "--autograder", "autograder.zip", cwd=tmp_path)
    with zipfile.ZipFile(tmp_path / "autograder.zip") as archive:
        names = archive.namelist()
        files = {name: archive.read(name).decode() for name in ("setup.sh", "run_autograder")}
    assert [name for name in names if name.endswith(".whl") and name.startswith("cgprimer-")]
    for name, text in files.items():
        recorded = (FILES / "autograder" / name).read_text("utf-8")
        # Comments and the version of the wheel may change; what is run may not.
        assert _commands(recorded) == _commands(text)


def _commands(script: str) -> list[str]:
    lines = (line.replace(cgprimer.__version__, "VERSION") for line in script.splitlines())
    wanted = ("python", "cgprimer", "results.json", "AUTOGRADER")
    kept = [line.strip() for line in lines if not line.startswith("# ")]
    return [line.replace("0.1.0", "VERSION") for line in kept if any(w in line for w in wanted)]


RECORDED: dict[str, Any] = json.loads(
    Path(__file__).with_name("entry_points.json").read_text("utf-8")
)
LOSS = 4.35616092254171  # of a line after a step along the signs of the gradient
SCRIPT = """
import cgprimer, json, pathlib
line = cgprimer.parse("xw = k*xa; parameter k = 3")
data = cgprimer.make_dataset(line, samples=20)
settings = {"optimizer": "snapshot-optimizer", "loss": "snapshot-loss"}
swish = cgprimer.parse("xw = swish(k)")
cgprimer.draw(cgprimer.load("olah"), "olah.snapshot")
print(json.dumps({
    "engines": [engine.name for engine in cgprimer.engines()],
    "methods": cgprimer.methods(),
    "primitive": cgprimer.gradient(swish, {"k": 2}, method="snapshot-method")["k"],
    "engine": float(cgprimer.gradient(line, {"xa": 1}, engine="snapshot-engine")["k"]),
    "loss": cgprimer.train(line, data, start={"k": 1}, epochs=1, **settings).loss,
    "picture": pathlib.Path("olah.snapshot").read_text(),
}))
"""


def test_each_group_is_read(tmp_path: Path) -> None:
    source = (FILES / "snapshot_package.py.txt").read_text("utf-8")
    groups = {group: dict([entry.split(" = ")]) for group, entry in RECORDED["groups"].items()}
    write_package(tmp_path, "snapshot_package", source, groups)
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment(PYTHONPATH=str(tmp_path)), cwd=tmp_path,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    result = json.loads(process.stdout)
    assert {*RECORDED["engines"], "snapshot-engine"} <= set(result["engines"])
    assert {*RECORDED["methods"], "snapshot-method"} <= set(result["methods"])
    assert result["primitive"] == pytest.approx(1.0907842487848955, rel=1e-9)
    assert result["engine"] == 42
    assert result["loss"] == pytest.approx(LOSS, rel=1e-9)
    edges = sorted(result["picture"].splitlines())
    assert edges == ["a -> c", "b -> c", "b -> d", "c -> e", "d -> e"]


def test_the_engines_and_methods_of_the_package_are_there() -> None:
    assert set(RECORDED["engines"]) <= {engine.name for engine in cgprimer.engines()}
    assert set(RECORDED["methods"]) <= set(cgprimer.methods())
    scripts = {point.name: point.value for point in entry_points(group="console_scripts")}
    assert RECORDED["console_scripts"].items() <= scripts.items()
