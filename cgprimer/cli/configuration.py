"""``run.toml``: read and write configuration files with the options of a command.

The keys are the options of ``cgprimer train`` without dashes, and ``graph``, a file. Paths are
relative to the folder of the configuration file. Options on the command line take precedence.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from cgprimer.errors import DataError, UsageError, name_hint
from cgprimer.support.files import find_examples

_NOT = ("help", "json", "force", "resume")  # not settings of a run
_FILES = ("data", "save", "plot", "directory", "validation")


def load_configuration(context: click.Context, path: str) -> None:
    """Load a configuration file, whose values become the defaults of options.

    Raises:
        UsageError: the file cannot be read.
        DataError: the file is not valid TOML, or a key or value is invalid.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        entries = tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:  # no TOML, no UTF-8; nested too deeply
        hint = 'put strings in "quotes", use a decimal point, and write one key per line'
        raise DataError(f"{path}: {error}", hint=hint) from None
    options_by_name = {
        flag.lstrip("-").replace("-", "_"): option
        for option in context.command.params
        for flag in option.opts
        if flag.startswith("--") and flag.lstrip("-") not in _NOT
    }
    defaults: dict[str, Any] = {}
    for key, value in entries.items():
        name = key.replace("-", "_")
        where = f"{path}:{_find_line(key, text)}"
        if name == "graph" and isinstance(value, str):
            near = Path(path).parent / value
            defaults["file"] = (
                value if value in find_examples() and not near.is_file() else str(near)
            )
            continue
        if name not in options_by_name:
            hint = name_hint(key, ["graph", *(one.replace("_", "-") for one in options_by_name)])
            raise DataError(f"{where}: unknown key {key!r}", hint=hint or "train --help")
        option = options_by_name[name]
        try:
            shown = defaults[str(option.name)] = _convert_value(option, value, Path(path).parent)
            option.process_value(context, shown)
        except (click.UsageError, UsageError) as error:
            raise DataError(f"{where}: {key}: {error.message}") from None
    if not {"file", "expression"} & defaults.keys():
        raise DataError(
            f"{path}: missing key 'graph'", hint='add graph = "lecture.cg", or expression = "..."'
        )
    context.default_map = defaults


def _convert_value(option: click.Parameter, value: Any, folder: Path) -> Any:
    """Convert a TOML value to the strings in which a user would write it on the command line."""
    if getattr(option, "is_flag", False):
        if not isinstance(value, bool):
            raise UsageError(f"expected true or false, got {value!r}")
        return value
    if isinstance(value, Mapping) and option.metavar == "NAME=LOW:HIGH,...":
        value = {n: ":".join(map(str, e)) if isinstance(e, list) else e for n, e in value.items()}
    if isinstance(value, Mapping) and "NAME=" in str(option.metavar):
        texts = {n: v if isinstance(v, str) else json.dumps(v) for n, v in value.items()}
        return tuple(f"{name}={text}" for name, text in texts.items())
    if isinstance(value, Mapping) and option.metavar == "NAME=COLUMN,...":
        return tuple(f"{name}={column}" for name, column in value.items())
    if isinstance(value, list) and option.multiple:
        return tuple(map(str, value))
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UsageError(f"expected a string or a number, got {value!r}")
    if option.name in _FILES and isinstance(value, str):
        value = os.path.normpath(folder / value)
    return (str(value),) if option.multiple else str(value)


def _find_line(key: str, text: str) -> int:
    """Return the line number at which a TOML document defines a key."""
    written = rf"^\s*(?:\[\s*)?[\"']?{re.escape(key)}[\"']?\s*(?:=|\.|\])"
    match = re.search(written, text, re.MULTILINE)
    return text.count("\n", 0, match.end()) + 1 if match else 1


def format_configuration(values: Mapping[str, Any]) -> str:
    """Format settings as a TOML document.

    >>> values = {"loss": "squared-error", "shuffle": True, "start": {"k": 1.0}}
    >>> print(format_configuration(values), end="")
    loss = "squared-error"
    shuffle = true
    <BLANKLINE>
    [start]
    k = 1.0
    """
    lines, tables = [], []
    for name, value in values.items():
        if isinstance(value, Mapping):
            tables += [
                "",
                f"[{name}]",
                *(f"{_format_key(key)} = {_format_value(v)}" for key, v in value.items()),
            ]
        else:
            lines.append(f"{name} = {_format_value(value)}")
    return "\n".join([*lines, *tables]) + "\n"


def _format_key(name: str) -> str:
    """Format a TOML key, with quotes if necessary."""
    return name if re.fullmatch(r"[\w-]+", name, re.ASCII) else json.dumps(name)


def _format_value(value: Any) -> str:
    """Format a TOML value."""
    if isinstance(value, tuple) and [*map(type, value)] == [float, float]:
        return json.dumps(":".join(map(repr, value)))  # LOW:HIGH
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_format_value, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    return _format_value(value.tolist()) if hasattr(value, "tolist") else repr(value)
