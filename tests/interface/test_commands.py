"""Commands, options and arguments are still there, with their types and defaults."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from .options import commands

COMMANDS: dict[str, list[dict[str, Any]]] = json.loads(
    Path(__file__).with_name("commands.json").read_text("utf-8")
)


@cache
def actual_commands() -> dict[str, list[dict[str, Any]]]:
    return dict(commands())


def changes(recorded: dict[str, Any], actual: dict[str, Any]) -> Iterator[str]:
    """Yield what an option has lost. A text may become any type that reads texts."""
    for key in ("option", "off", "choices"):
        if lost := set(recorded.get(key, [])) - set(actual.get(key, recorded.get(key, []))):
            yield f"{key}: {sorted(lost)} missing"
    if actual["type"] != recorded["type"] and (recorded["type"], actual["type"]) not in (
        ("choice", "text"),
        ("text", "path"),
        ("text", "choice"),
    ):
        yield f"type {actual['type']}, not {recorded['type']}"
    for key, tighter in (("least", max), ("greatest", min)):
        if key in actual and tighter(actual[key], recorded.get(key, actual[key])) != recorded.get(
            key
        ):
            yield f"{key} {actual[key]}, not {recorded.get(key)}"
    if not same(recorded.get("default"), actual.get("default")):
        yield f"default {actual.get('default')}, not {recorded.get('default')}"
    if actual.get("required") and not recorded.get("required"):
        yield "required"
    if recorded.get("multiple") and not actual.get("multiple"):
        yield "not multiple"
    if recorded.get("nargs", 1) != actual.get("nargs", 1):
        yield f"nargs {actual.get('nargs', 1)}, not {recorded.get('nargs', 1)}"


def same(before: Any, after: Any) -> bool:
    """Return whether two defaults agree; 1 and 1.0 do."""
    try:
        return float(before) == float(after)
    except (TypeError, ValueError):
        return bool(before == after)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_its_options_and_arguments(command: str) -> None:
    assert command in actual_commands(), f"there is no command {command!r}"
    actual = actual_commands()[command]
    by_spelling = {name: entry for entry in actual for name in entry.get("option", [])}
    found: list[str] = []
    for recorded in COMMANDS[command]:
        if "option" in recorded:
            spellings = recorded["option"]
            match = next((by_spelling[name] for name in spellings if name in by_spelling), None)
            if match is None:
                found.append(f"no option {spellings}")
            else:
                found += [f"{spellings}: {change}" for change in changes(recorded, match)]
    before = [entry for entry in COMMANDS[command] if "argument" in entry]
    after = [entry for entry in actual if "argument" in entry]
    if len(after) < len(before):
        found.append(f"{len(after)} arguments, not {len(before)}")
    for old, new in zip(before, after, strict=False):
        found += [f"argument {old['argument']}: {change}" for change in changes(old, new)]
    known = {name for entry in COMMANDS[command] for name in entry.get("option", [])}
    required = [e for e in actual if e.get("required")]
    found += [
        f"{e['option']} is new and required"
        for e in required
        if "option" in e and not known & set(e["option"])
    ]
    found += [f"{e['argument']} is new and required" for e in after[len(before) :] if e in required]
    assert found == []
