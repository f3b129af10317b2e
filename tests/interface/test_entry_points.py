"""Groups of entry points: things of an installed package are found by every kind of name."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

import cgprimer
from tests.cli.cli_tools import environment, write_package

from .comparing import FILES

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
