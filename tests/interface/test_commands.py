"""Commands, options and arguments are still there, with their types and defaults."""

from __future__ import annotations

import contextlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from .comparing import differences
from .options import commands

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
