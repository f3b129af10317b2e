"""Public names, their parameters and members are still there."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import cgprimer
from cgprimer import CgprimerError

from .comparing import differences

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def describe(value: Any) -> dict[str, Any]:
    """Return the kind of a name, its parameters, and the members of a class."""
    if isinstance(value, ModuleType):
        return {"kind": "module"}
    if inspect.isclass(value):
        described: dict[str, Any] = {"kind": "class"}
        if issubclass(value, BaseException):
            described["bases"] = [base.__name__ for base in value.__mro__[1:-1]]
        if (parameters := parameters_of(value)) is not None:
            described["parameters"] = parameters
        return described | {"members": members_of(value)}
    if callable(value):
        return {"kind": "function", "parameters": parameters_of(value)}
    return {"kind": type(value).__name__}


def parameters_of(function: Any) -> list[dict[str, str]] | None:
    """Return names, kinds and defaults; None of a class that has no signature."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return None
    described = []
    for parameter in parameters:
        entry = {"name": parameter.name, "kind": parameter.kind.name}
        if parameter.default is not parameter.empty:
            # A function as a default value, or dataclasses' marker of a factory: no address.
            entry["default"] = _default_text(parameter.default)
        described.append(entry)
    return described


def _default_text(default: Any) -> str:
    if callable(default) and not inspect.isclass(default):
        return "<function>"
    return _ADDRESS.sub("", repr(default))


def members_of(cls: type) -> dict[str, dict[str, Any]]:
    """Return public methods, properties and fields, inherited ones of the package included."""
    ours = [base for base in cls.__mro__ if base.__module__.partition(".")[0] == "cgprimer"]
    names = {name for base in ours for name in vars(base)}
    names |= {name for base in ours for name in vars(base).get("__annotations__", {})}
    if dataclasses.is_dataclass(cls):
        names |= {field.name for field in dataclasses.fields(cls)}
    described = {}
    for name in sorted(names):
        if name.startswith("_"):
            continue
        value = inspect.getattr_static(cls, name, None)
        if isinstance(value, staticmethod | classmethod):
            value = getattr(cls, name)
        if inspect.isfunction(value) or inspect.ismethod(value):
            described[name] = {"kind": "method", "parameters": parameters_of(value)}
        else:
            described[name] = {"kind": "attribute"}
    return described


def has(value: object, name: str) -> bool:
    """Return whether an object has an attribute; one that is not available yet counts."""
    try:
        return hasattr(value, name)
    except CgprimerError:
        return True


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
