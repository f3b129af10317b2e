"""What several commands share: where the graph comes from, points, and JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cgprimer.core.methods import methods
from cgprimer.core.methods.finite_difference import SCHEMES
from cgprimer.files import json_text

if TYPE_CHECKING:
    from cgprimer.core.graph import ExpressionGraph

F = TypeVar("F", bound=Callable[..., Any])


def make_command(**settings: Any) -> Callable[[F], click.Command]:
    """A click command with ``-h``."""
    return click.command(context_settings={"help_option_names": ["-h", "--help"]}, **settings)


def graph_arguments(function: F) -> F:
    """FILE, or ``-e TEXT`` in its place."""
    function = click.option(
        "-e",
        "--expression",
        metavar="TEXT",
        help="Expressions on the command line, instead of FILE.",
    )(function)
    return click.argument("file", required=False, type=click.Path(allow_dash=True))(function)


def at_option(function: F) -> F:
    """``--at NAME=VALUE,...``, as often as one likes."""
    return click.option(
        "--at",
        multiple=True,
        metavar="NAME=VALUE,...",
        callback=_assignments,
        help="Values of inputs and parameters; declared values fill the rest.",
    )(function)


def assignments_option(name: str, text: str) -> Callable[[F], F]:
    """Another option that takes ``NAME=VALUE,...``."""
    return click.option(
        name, multiple=True, metavar="NAME=VALUE,...", callback=_assignments, help=text
    )


def names_option(name: str, text: str) -> Callable[[F], F]:
    """An option that takes ``NAME,...``."""
    return click.option(name, multiple=True, metavar="NAME,...", callback=_names, help=text)


def json_option(function: F) -> F:
    """``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")(
        function
    )


def engine_option(function: F) -> F:
    """``--engine NAME``."""
    return click.option(
        "--engine",
        default="auto",
        show_default=True,
        metavar="NAME",
        help="What runs the tape; 'cgprimer info' lists the engines.",
    )(function)


def method_options(default: str | None = "reverse") -> Callable[[F], F]:
    """``--method`` and the options that belong to one method each."""

    def decorate(function: F) -> F:
        for option in (
            click.option(
                "--carry",
                is_flag=True,
                default=None,
                help="forward: carry all tangents along in one pass.",
            ),
            click.option(
                "--path-limit", type=click.IntRange(1), help="path-sum: the most paths to walk."
            ),
            click.option(
                "--symbolic-limit",
                type=click.IntRange(1),
                help="symbolic: the largest expression, in operations.",
            ),
            click.option(
                "--symbolic-share/--no-symbolic-share",
                default=None,
                help="symbolic: compute equal parts of the formulas once (default), or not.",
            ),
            click.option(
                "--step", type=float, help="finite-difference: the step (default: by size)."
            ),
            click.option(
                "--scheme",
                type=click.Choice(SCHEMES),
                help="finite-difference: which quotient (default: central).",
            ),
            click.option(
                "--method",
                type=click.Choice(methods()),
                default=default,
                show_default=True,
                help="How to differentiate.",
            ),
        ):
            function = option(function)
        return function

    return decorate


_OWN_OPTIONS = {  # option of the command line -> method and that method's name for it
    "scheme": ("finite-difference", "scheme"),
    "step": ("finite-difference", "step"),
    "symbolic_share": ("symbolic", "share"),
    "symbolic_limit": ("symbolic", "limit"),
    "path_limit": ("path-sum", "limit"),
    "carry": ("forward", "carry"),
}


def own_options(method: str, given: dict[str, Any]) -> dict[str, Any]:
    """The options of the method, taken out of all options of the command."""
    options = {}
    for name, (owner, theirs) in _OWN_OPTIONS.items():
        value = given.pop(name)
        if value is None:
            continue
        if owner != method:
            flag = name.replace("_", "-")
            raise click.UsageError(f"--{flag} belongs to --method {owner}, not to {method}")
        options[theirs] = value
    return options


def read_graph(
    file: str | None, expression: str | None, *, may_be_empty: bool = False
) -> ExpressionGraph:
    """The graph that a command is about."""
    from cgprimer.core.graph import load, parse
    from cgprimer.errors import UsageError

    if expression is not None:
        if file is not None:
            hint = "; values are joined by commas: --at a=2,x=3" if "=" in file else ""
            raise click.UsageError(f"give either FILE or -e TEXT, not both{hint}")
        graph = parse(expression, name="<command line>")
    elif file is None:
        raise click.UsageError("which graph? Give a FILE (- for standard input) or -e TEXT")
    else:
        graph = load(file)
    if not graph.definitions and not may_be_empty:
        raise UsageError(
            f"there are no expressions in {graph.source.name}",
            hint="an expression reads: name = formula",
        )
    return graph


def echo_json(value: Any) -> None:
    """Print as JSON; nan and infinities as text."""
    click.echo(json_text(value, indent=2))


def note(text: str) -> None:
    """A message on standard error."""
    click.echo(text, err=True)


def _assignments(
    ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> dict[str, float]:
    values: dict[str, float] = {}
    for part in (p for text in given for p in re.split(r"[,;\s]+", re.sub(r"\s*=\s*", "=", text))):
        if not part:
            continue
        name, equals, value = (p.strip() for p in part.partition("="))
        if not equals or not name:
            raise click.BadParameter(f"expected NAME=VALUE, got {part!r}", ctx, parameter)
        if name in values:
            raise click.BadParameter(f"{name} is given twice", ctx, parameter)
        try:
            values[name] = float(value)
        except ValueError:
            raise click.BadParameter(
                f"{value!r}, given for {name}, is not a number", ctx, parameter
            ) from None
    return values


def _names(
    ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    return tuple(n.strip() for text in given for n in text.split(",") if n.strip())
