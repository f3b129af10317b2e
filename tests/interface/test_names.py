"""Public names, their parameters and members are still there."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cgprimer

from .comparing import differences
from .signatures import describe, has

HERE = Path(__file__).parent
NAMES: dict[str, Any] = json.loads((HERE / "names.json").read_text("utf-8"))
IMPORTS: list[list[str]] = json.loads((HERE / "deep_imports.json").read_text("utf-8"))


def keyed(described: dict[str, Any]) -> dict[str, Any]:
    """Return a description in which bases, members and optional parameters may be added."""
    entries = {key: value for key, value in described.items() if value is not None}
    if "members" in entries:
        entries["members"] = {name: keyed(m) for name, m in entries["members"].items()}
    if "bases" in entries:
        entries["bases"] = dict.fromkeys(entries["bases"], "base")
    if "parameters" in entries:
        parameters = entries["parameters"]
        entries["parameters"] = {
            p["name"]: p | ({"position": k} if p["kind"].startswith("POSITIONAL") else {})
            for k, p in enumerate(parameters)
        }
        optional = [p for p in parameters if "default" in p or p["kind"].startswith("VAR_")]
        entries["number of required parameters"] = len(parameters) - len(optional)
    return entries


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", NAMES["names"])
def test_a_name_is_as_recorded(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    value = getattr(importlib.import_module(module), attribute)
    assert list(differences(keyed(NAMES["names"][name]), keyed(describe(value)))) == []


@pytest.mark.parametrize("expression", NAMES["results"])
def test_a_result_has_its_attributes(
    expression: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    value = eval(expression, {"cgprimer": cgprimer})  # noqa: S307
    expected = NAMES["results"][expression]
    assert [name for name in expected if not has(value, name)] == []


def test_a_star_import_gives_the_public_names() -> None:
    namespace: dict[str, Any] = {}
    exec("from cgprimer import *", namespace)  # noqa: S102
    public = {name.removeprefix("cgprimer.") for name in NAMES["names"]}
    assert {name for name in public if "." not in name} - {"lecture"} <= namespace.keys()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("module", "name"), IMPORTS)
def test_an_import_of_the_documentation_works(module: str, name: str) -> None:
    if name == "*":
        exec(f"from {module} import *", {})  # noqa: S102
    else:
        assert hasattr(importlib.import_module(module), name)


def test_python_m_runs_the_command() -> None:
    command = [sys.executable, "-m", "cgprimer", "--version"]
    assert "cgprimer" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
