"""Describe public names: their kinds, parameters and members."""

from __future__ import annotations

import dataclasses
import inspect
import re
from types import ModuleType
from typing import Any

from cgprimer import CgprimerError

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
