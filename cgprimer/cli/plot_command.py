"""``cgprimer plot KIND``: a command for each function of :mod:`cgprimer.plot`, made from it.

A function's arguments are the options of its command, and its docstring is their help: what is not
written there is how a type reads on the command line, and an option that is called differently.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from cgprimer import plot
from cgprimer.cli import Advising, Lazy
from cgprimer.cli.common import graph_command, make_command, note
from cgprimer.support.files import write_generated_file

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
    ("high", "float | None"),
    ("dataset", "Dataset | None"),
    ("steps", "float | Sequence[float] | None"),
)
_CHOICES = {
    "by": "BY",
    "log": "LOG",
    "family": "FAMILIES",
    "schemes": "SCHEMES",
    "show": "SHOW",
}  # constants
_TAKES = {"of": "NAME", "wrt": "NAME", "loss": "NAME|TEXT", "low": "LOW:HIGH"}
_TAKES |= {"ranges": "LOW:HIGH...", "columns": "NAME=COLUMN,...", "data": "PATH"}
_HELPS = {"dark": "For dark slides", "title": "Above the picture"}  # where a kind says no more
_ELSEWHERE = {  # endings of a kind that no figure has, and what makes such a file
    "boundary": {"gif": "learning.learning_page:animation", "html": "learning.learning_page:page"},
    "workers": {"html": "rounds.rounds_page:page"},
}
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


class _Kinds(Advising):
    """A group whose help shows the whole first sentence of each command."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the kinds of plots, long sentences over several lines."""
        longest = 1_000  # characters
        rows = [(kind, self.commands[kind].get_short_help_str(longest)) for kind in self.commands]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(
    cls=_Kinds,
    commands=Lazy(
        {kind: lambda kind=kind: command_of(getattr(plot, kind)) for kind in plot.__all__}
    ),
    context_settings={"help_option_names": ["-h", "--help"]},
)
def command() -> None:
    """Curves for slides: losses, parameters, surfaces, errors, costs, functions.

    \b
    Examples:
      cgprimer plot error -e "xw = sin(xa)" --at xa=1 -o steps.png
      cgprimer plot cost -o cost.svg
      cgprimer plot function -e "xw = tanh(xa)" --tangent 0.5 -o tanh.pdf --dark

    Every kind has its own options: cgprimer plot error --help
    """


def command_of(function: Callable[..., Any]) -> click.Command:
    """The command that draws what a function of :mod:`cgprimer.plot` returns."""
    text = re.sub(r":[a-z]+:|`", "", inspect.getdoc(function) or "")
    parts = re.split(r"^(Args|Raises|Command line):\n|^>>> ", text, flags=re.MULTILINE)
    sections = dict(zip(["", *parts[1::2]], map(inspect.cleandoc, parts[::2]), strict=True))
    about, arguments, examples = (sections[name] for name in ("", "Args", "Command line"))
    helps = {
        name: " ".join(f"{what[0].upper()}{what[1:]}".split())
        for names, what in re.findall(r"^(\w[\w, ]*): (.*(?:\n .*)*)", arguments, re.MULTILINE)
        for name in names.split(", ")
    }
    known = inspect.signature(function).parameters

    def run(*graph: Any, output: str, runs: Sequence[str] = (), **given: Any) -> None:
        from cgprimer.visualization.diagrams.figure_files import (
            FORMATS,
            check_picture_path,
            save_figure,
        )

        path = Path(output)
        ending = check_picture_path(path, (*FORMATS, *others))  # before the work
        given = {name: value for name, value in given.items() if value not in (None, (), {})}
        if "low" in given:
            given["low"], given["high"] = given["low"]
        if ending in others:
            module, _, name = others[ending].partition(":")
            make = getattr(import_module(f"cgprimer.visualization.pages.{module}"), name)
            write_generated_file(path, make(*graph, *runs, **given))
        else:
            save_figure(function(*graph, *runs, **given), path)
        note(f"wrote {output}")

    others = _ELSEWHERE.get(function.__name__, {})
    endings = [".png", ".svg", ".pdf", *(f".{ending}" for ending in others)]
    lines = [f"-o, --output PATH!  A {', '.join(endings[:-1])} or {endings[-1]} file."]
    for name, parameter in known.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            path = click.Path()
            run = click.argument(name, nargs=-1, required=True, type=path, metavar="RUN...")(run)
        elif name == "run":
            run = click.argument(name, type=click.Path())(run)
        elif (name, parameter.annotation) not in _WITHOUT:
            lines.insert(-1, _option(function, parameter, helps.get(name) or _HELPS[name]))
    shown = "\n".join(f"  {line}" for line in examples.splitlines())
    make = graph_command if "graph" in known else make_command
    return make(*lines, help=f"{about}\n\n\b\nExamples:\n{shown}")(run)


def _option(function: Callable[..., Any], parameter: inspect.Parameter, text: str) -> str:
    """The line of an option for an argument of a function."""
    name, written = parameter.name, str(parameter.annotation)
    flag, default = _SPELT.get(name, f"--{name.replace('_', '-')}"), parameter.default
    if name in _CHOICES:
        takes = "|".join(function.__globals__[_CHOICES[name]])
        takes += "..." if name == "schemes" else ""
    else:
        of_type = (v for k, v in _TYPES.items() if re.match(k, written))
        takes = (_TAKES.get(name) if written != "Names" else None) or next(of_type)
    takes += "!" if default is parameter.empty else ""
    given = ""
    said = default is not False and default != ""  # a seed of 0 is said, too
    if said and name != "low" and isinstance(default, str | int | float):
        given = " =yes" if default is True else f" ={default}"
    return f"{flag} ({name}) {takes}".rstrip() + f"{given}  {text.removesuffix('.')}."
