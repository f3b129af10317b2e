"""Describe commands, their options and their arguments, as click holds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from cgprimer.cli import cli


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
