"""``cgprimer plot KIND``: a command for each function of :mod:`cgprimer.plot`, made from it.

A function's arguments are the options of its command, and its docstring is their help: what is not
written there is how a type reads on the command line, and an option that is called differently.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import click

from cgprimer import plot
from cgprimer.cli.common import (
    assignments_option,
    graph_arguments,
    make_command,
    names_option,
    note,
    read_graph,
)

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
_SPELT = {  # argument -> option, where they are not called alike
    "schemes": "--scheme",
    "timed": "--time",
    "in_3d": "--3d",
    "ranges": "--range",
    "low": "--range",
    "validation": "--validation/--no-validation",
}
_WITHOUT = (  # FILE or -e; the end of --range; an older name; steps of `error`
    ("graph", "ExpressionGraph"),
    ("high", "float"),
    ("dataset", "Dataset | None"),
    ("steps", "float | Sequence[float] | None"),
)
_CHOICES = {"by": "BY", "log": "LOG", "family": "FAMILIES"}  # constants beside the function
_METAVARS = {"of": "NAME", "wrt": "NAME", "tangent": "X", "title": "TEXT", "loss": "NAME|TEXT"}


class _Kinds(Mapping[str, click.Command]):
    """The commands; each is made, and its function loaded, when it is asked for."""

    def __getitem__(self, kind: str) -> click.Command:
        if kind not in plot.__all__:
            raise KeyError(kind)
        return command_of(getattr(plot, kind))

    def __iter__(self) -> Iterator[str]:
        return iter(plot.__all__)

    def __len__(self) -> int:
        return len(plot.__all__)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Curves for slides: losses, parameters, surfaces, errors, costs, functions.

    \b
    Examples:
      cgprimer plot error -e "xw = sin(xa)" --at xa=1 -o steps.png
      cgprimer plot cost -o cost.svg
      cgprimer plot function -e "xw = tanh(xa)" --tangent 0.5 -o tanh.pdf --dark

    Every kind has its own options: cgprimer plot error --help
    """


command.commands = _Kinds()  # type: ignore[assignment]


@cache
def command_of(function: Callable[..., Any]) -> click.Command:
    """The command that draws what a function of :mod:`cgprimer.plot` returns."""
    text = re.sub(r":\w+:|`", "", inspect.getdoc(function) or "")
    about, arguments, examples = (_section(text, name) for name in ("", "Args", "Command line"))
    helps = {
        name: " ".join(f"{what[0].upper()}{what[1:]}".split())
        for names, what in re.findall(r"^(\w[\w, ]*): (.*(?:\n .*)*)", arguments, re.MULTILINE)
        for name in names.split(", ")
    }
    known = inspect.signature(function).parameters

    def run(
        output: str, file: str | None = None, expression: str | None = None, **given: Any
    ) -> None:
        from cgprimer.pictures.saving import check_picture_path, save_figure

        check_picture_path(Path(output))  # before the work
        positional = [read_graph(file, expression)] if "graph" in known else given.pop("runs", [])
        given = {name: value for name, value in given.items() if value not in (None, (), {})}
        if "low" in given:
            given["low"], given["high"] = given["low"]
        save_figure(function(*positional, **given), Path(output))
        note(f"wrote {output}")

    made: Callable[..., Any] = click.option(
        "-o", "--output", metavar="PATH", type=click.Path(), required=True,
        help="A .png, .svg or .pdf file.",
    )(run)  # fmt: skip
    for name, parameter in reversed(list(known.items())):
        if (name, parameter.annotation) not in _WITHOUT:
            made = _option(function, parameter, helps[name])(made)
    if "graph" in known:
        made = graph_arguments(made)
    lines = "\n".join(f"  {line}" for line in examples.splitlines())
    return make_command(name=function.__name__, help=f"{about}\n\n\b\nExamples:\n{lines}")(made)


def _section(docstring: str, name: str) -> str:
    """The text under a heading of a docstring, or before the first of them."""
    parts = re.split(r"^(Args|Raises|Command line):\n|^>>> ", docstring, flags=re.MULTILINE)
    found = dict(zip(["", *parts[1::2]], parts[::2], strict=True))
    return inspect.cleandoc(found[name])


def _option(function: Callable[..., Any], parameter: inspect.Parameter, text: str) -> Decorator:
    """The option, or the argument RUN..., for an argument of a function."""
    name, written = parameter.name, str(parameter.annotation)
    flag, default = _SPELT.get(name, f"--{name.replace('_', '-')}"), parameter.default
    text = text if text.endswith(".") else f"{text}."
    settings: dict[str, Any] = {"help": text, "default": default, "metavar": _METAVARS.get(name)}
    if parameter.kind is parameter.VAR_POSITIONAL:
        return click.argument(name, nargs=-1, required=True, type=click.Path(), metavar="RUN...")
    if name == "schemes":
        choices = click.Choice(function.__globals__["SCHEMES"])
        return click.option(flag, name, multiple=True, type=choices, help=text)
    if name in _CHOICES:
        settings |= {"type": click.Choice(tuple(function.__globals__[_CHOICES[name]]))}
    elif written.startswith("Names"):
        return names_option(flag, text)
    elif written.startswith("Mapping"):
        return assignments_option(flag, text)
    elif name in ("low", "ranges"):
        settings |= {"metavar": "LOW:HIGH", "callback": _ranges, "default": None}
        settings |= {"multiple": name == "ranges"}
    elif written.startswith("int | Sequence"):
        settings |= {"metavar": "N,...", "callback": _whole_numbers, "multiple": True}
    elif written == "bool":
        settings |= {"is_flag": True}
    elif "Path" in written:
        settings |= {"type": click.Path(), "metavar": "PATH"}
    else:
        settings |= {"type": {"float": float, "int": int}.get(written.partition(" ")[0], str)}
    shown = isinstance(settings["default"], str | int | float) and written != "bool"
    return click.option(flag, name, **settings, show_default=shown)


def _ranges(ctx: click.Context, parameter: click.Parameter, given: Any) -> Any:
    """``LOW:HIGH``, or several of them."""
    if isinstance(given, tuple):
        return tuple(_ranges(ctx, parameter, text) for text in given)
    if given is None:
        return None
    low, colon, high = given.partition(":")
    try:
        if colon:
            return float(low), float(high)
    except ValueError:
        pass
    raise click.BadParameter(f"expected LOW:HIGH, such as -3:3, got {given!r}", ctx, parameter)


def _whole_numbers(
    ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> tuple[int, ...]:
    """``N,...``."""
    texts = [t.strip() for text in given for t in text.split(",") if t.strip()]
    for text in texts:
        if not text.isdecimal() or int(text) < 1:
            raise click.BadParameter(f"{text!r} is no positive whole number", ctx, parameter)
    return tuple(int(text) for text in texts)
