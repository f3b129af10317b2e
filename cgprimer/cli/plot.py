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
from cgprimer.cli.common import graph_arguments, make_command, note, read_graph
from cgprimer.cli.options import options

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
_CHOICES = {"by": "BY", "log": "LOG", "family": "FAMILIES", "schemes": "SCHEMES"}  # constants
_TAKES = {"of": "NAME", "wrt": "NAME", "loss": "NAME|TEXT", "low": "LOW:HIGH"}
_TAKES |= {"ranges": "LOW:HIGH..."}
_TYPES = {  # annotation -> what the option takes
    "Names": "NAME,...",
    "Mapping": "NAME=VALUE,...",
    r"int \| Sequence": "N,...",
    "bool": "",
    ".*Path": "PATH",
    "float": "NUMBER",
    "int": "INTEGER",
    "str": "TEXT",
}


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


def _option(
    function: Callable[..., Any], parameter: inspect.Parameter, text: str
) -> Callable[..., Any]:
    """The option, or the argument RUN..., for an argument of a function."""
    name, written = parameter.name, str(parameter.annotation)
    flag, default = _SPELT.get(name, f"--{name.replace('_', '-')}"), parameter.default
    if parameter.kind is parameter.VAR_POSITIONAL:
        return click.argument(name, nargs=-1, required=True, type=click.Path(), metavar="RUN...")
    if name in _CHOICES:
        takes = "|".join(function.__globals__[_CHOICES[name]])
        takes += "..." if name == "schemes" else ""
    else:
        takes = _TAKES.get(name) or next(v for k, v in _TYPES.items() if re.match(k, written))
    given = ""
    said = default is not False and default != ""  # a seed of 0 is said, too
    if said and name != "low" and isinstance(default, str | int | float):
        given = " =yes" if default is True else f" ={default}"
    text = text if text.endswith(".") else f"{text}."
    return options(f"{flag} ({name}) {takes}".rstrip() + f"{given}  {text}")
