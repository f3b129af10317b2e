"""Public names, their parameters and members are still there."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cgprimer

from .signatures import describe, has

HERE = Path(__file__).parent
NAMES: dict[str, Any] = json.loads((HERE / "names.json").read_text("utf-8"))
IMPORTS: list[list[str]] = json.loads((HERE / "deep_imports.json").read_text("utf-8"))
_POSITIONAL = ("POSITIONAL_ONLY", "POSITIONAL_OR_KEYWORD")


def changes(recorded: dict[str, Any], actual: dict[str, Any], at: str) -> Iterator[str]:
    """Yield what a name has lost, or what it has that breaks calls of it."""
    if recorded["kind"] != actual["kind"]:
        yield f"{at} is a {actual['kind']}, not a {recorded['kind']}"
        return
    for base in recorded.get("bases", []):
        if base not in actual.get("bases", []):
            yield f"{at} is no longer a {base}"
    if recorded.get("parameters") is not None:
        yield from parameter_changes(recorded["parameters"], actual.get("parameters") or [], at)
    for name, member in recorded.get("members", {}).items():
        if name not in actual.get("members", {}):
            yield f"{at}.{name} is missing"
        else:
            yield from changes(member, actual["members"][name], f"{at}.{name}")


def parameter_changes(
    recorded: list[dict[str, str]], actual: list[dict[str, str]], at: str
) -> Iterator[str]:
    """Yield what breaks calls: anything but optional parameters after the recorded ones."""
    by_name = {parameter["name"]: parameter for parameter in actual}
    for parameter in recorded:
        if parameter["name"] not in by_name:
            yield f"{at} has no parameter {parameter['name']}"
        elif by_name[parameter["name"]] != parameter:
            yield f"{at}: {by_name[parameter['name']]}, not {parameter}"
    before = [p["name"] for p in recorded if p["kind"] in _POSITIONAL]
    after = [p["name"] for p in actual if p["kind"] in _POSITIONAL]
    if after[: len(before)] != before:
        yield f"{at} takes {after} by position, not {before}"
    known = {parameter["name"] for parameter in recorded}
    for parameter in actual:
        optional = "default" in parameter or parameter["kind"].startswith("VAR_")
        if parameter["name"] not in known and not optional:
            yield f"{at} requires the new parameter {parameter['name']}"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", NAMES["names"])
def test_a_name_is_as_recorded(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    value = getattr(importlib.import_module(module), attribute)
    assert list(changes(NAMES["names"][name], describe(value), name)) == []


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
