"""Commands, options and arguments are still there, with their types and defaults."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest

from cgprimer.cli import cli

from .comparing import differences


def commands(
    command: click.Command = cli,
    path: tuple[str, ...] = (),
    parent: click.Context | None = None,
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield every command by its path, such as ``check gradient``, with its parameters."""
    context = click.Context(command, parent=parent, **command.context_settings)
    yield " ".join(path), [_described(parameter) for parameter in command.get_params(context)]
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands(inner, (*path, name), context)


def _described(parameter: click.Parameter) -> dict[str, Any]:
    described: dict[str, Any]
    if isinstance(parameter, click.Option):
        described = {"option": sorted(parameter.opts)}
        if parameter.secondary_opts:
            described["off"] = sorted(parameter.secondary_opts)
    else:
        described = {"argument": parameter.name}
    described |= _type(parameter)
    default = parameter.to_info_dict()["default"]
    if default is not None and not callable(default) and default is not False:
        described["default"] = _text(default)
    if parameter.required:
        described["required"] = True
    if parameter.nargs != 1:
        described["nargs"] = parameter.nargs
    if getattr(parameter, "multiple", False):
        described["multiple"] = True
    return described


def _type(parameter: click.Parameter) -> dict[str, Any]:
    kind = parameter.type
    if getattr(parameter, "is_flag", False):
        return {"type": "flag"}
    if isinstance(kind, click.Choice):
        return {"type": "choice", "choices": [str(choice) for choice in kind.choices]}
    if isinstance(kind, click.IntRange | click.FloatRange):
        number = "integer" if isinstance(kind, click.IntRange) else "float"
        bounds = {"least": kind.min, "greatest": kind.max}
        return {"type": number} | {k: v for k, v in bounds.items() if v is not None}
    if isinstance(kind, click.Path | click.File):
        return {"type": "path"}
    return {"type": {click.INT: "integer", click.FLOAT: "float"}.get(kind, "text")}


def _text(default: Any) -> str | list[str]:
    if isinstance(default, list | tuple):
        return [str(item) for item in default]
    return str(default)


COMMANDS: dict[str, list[dict[str, Any]]] = json.loads(
    Path(__file__).with_name("commands.json").read_text("utf-8")
)


@cache
def actual_commands() -> dict[str, list[dict[str, Any]]]:
    return dict(commands())


def keyed(described: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a description in which options, spellings and choices may be added."""
    arguments = [entry for entry in described if "argument" in entry]
    entries: dict[str, Any] = {
        "required": sorted(str(e.get("option")) for e in described if e.get("required"))
    }
    for entry in described:
        value = dict.fromkeys(("least", "greatest", "default", "multiple", "nargs")) | entry
        value["choices"] = dict.fromkeys(entry.get("choices", []), "choice")
        with contextlib.suppress(TypeError, ValueError):
            value["default"] = float(value["default"])  # 1 and 1.0 are equal
        for key in ("option", "off", "argument", "required"):
            value.pop(key, None)
        names = [*entry.get("option", []), *entry.get("off", [])]
        for name in names or [f"argument {arguments.index(entry)}"]:
            entries[name] = value
    return entries


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_its_options_and_arguments(command: str) -> None:
    assert command in actual_commands(), f"there is no command {command!r}"
    recorded, actual = keyed(COMMANDS[command]), keyed(actual_commands()[command])
    assert list(differences(recorded, actual)) == []
