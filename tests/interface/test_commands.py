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


TYPES = {
    "Choice": "choice", "IntRange": "integer", "Int": "integer", "FloatRange": "float",
    "Float": "float", "NumberRange": "float", "Path": "path", "File": "path",
}  # fmt: skip


def _described(parameter: click.Parameter) -> dict[str, Any]:
    """Return what is recorded about an option or argument, without what is usual."""
    info = parameter.to_info_dict()
    kind, default = info["type"], info["default"]
    option = isinstance(parameter, click.Option)
    described = {
        "option": sorted(info["opts"]) if option else None,
        "off": sorted(info["secondary_opts"]),
        "argument": None if option else parameter.name,
        "type": "flag" if info.get("is_flag") else TYPES.get(kind["param_type"], "text"),
        "choices": list(map(str, kind.get("choices", ()))),
        "least": kind.get("min"),
        "greatest": kind.get("max"),
        "default": _text(default),
        "required": info["required"],
        "nargs": None if info["nargs"] == 1 else info["nargs"],
        "multiple": info["multiple"],
    }
    return {
        key: value
        for key, value in described.items()
        if value is not False and value not in (None, [])
    }


def _text(default: Any) -> str | list[str] | None:
    if default is None or default is False or callable(default):
        return None
    return [str(item) for item in default] if isinstance(default, list | tuple) else str(default)


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
