"""What several commands share: the graph that they are about, a method's own options, JSON."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from cgprimer.cli.options import options
from cgprimer.core.methods import methods
from cgprimer.core.methods.finite_difference import SCHEMES
from cgprimer.files import json_text

if TYPE_CHECKING:
    from cgprimer.core.graph import ExpressionGraph

F = TypeVar("F", bound=Callable[..., Any])
Decorator = Callable[[Callable[..., Any]], click.Command]

_OWN_OPTIONS = {  # option of the command line -> method and that method's name for it
    "scheme": ("finite-difference", "scheme"),
    "step": ("finite-difference", "step"),
    "symbolic_share": ("symbolic", "share"),
    "symbolic_limit": ("symbolic", "limit"),
    "path_limit": ("path-sum", "limit"),
    "carry": ("forward", "carry"),
}


def make_command(
    name: str, *texts: str, help: str | None = None, **callbacks: Callable[..., Any]
) -> Decorator:
    """A command with ``-h`` and the options that the texts describe.

    Its help is the function's docstring, unless it is given.
    """
    settings = {"help_option_names": ["-h", "--help"]}
    made = click.command(name, help=help, context_settings=settings)
    return lambda function: made(options(*texts, **callbacks)(function))


def graph_command(name: str, *texts: str, **callbacks: Callable[..., Any]) -> Decorator:
    """A command about a graph: FILE or ``-e TEXT`` reach the function as its first argument."""

    def decorate(function: Callable[..., Any]) -> click.Command:
        @wraps(function)
        def about_graph(file: str | None, expression: str | None, **given: Any) -> Any:
            return function(read_graph(file, expression), **given)

        described = options(*texts, **callbacks)(about_graph)
        return make_command(name)(graph_arguments(described))

    return decorate


def graph_arguments(function: F) -> F:
    """FILE, or ``-e TEXT`` in its place."""
    text = "-e, --expression TEXT  Expressions on the command line, instead of FILE."
    file = click.argument("file", required=False, type=click.Path(allow_dash=True))
    return file(options(text)(function))


def method_lines(default: str = "") -> str:
    """``--method`` and the options that belong to one method each."""
    return f"""\
--method {"|".join(methods())}{default and f" ={default}"}  How to differentiate.
--scheme {"|".join(SCHEMES)}  finite-difference: which quotient (default: central).
--step NUMBER  finite-difference: the step (default: by size).
--symbolic-share/--no-symbolic-share  symbolic: compute equal parts of the formulas once (default),
  or not.
--symbolic-limit 1..  symbolic: the largest expression, in operations.
--path-limit 1..  path-sum: the most paths to walk.
--carry  forward: carry all tangents along in one pass."""


def own_options(method: str | None, given: dict[str, Any]) -> dict[str, Any]:
    """The options of the method, taken out of all options of the command."""
    context = click.get_current_context()
    found = {}
    for name, (owner, theirs) in _OWN_OPTIONS.items():
        value = given.pop(name)
        if context.get_parameter_source(name) is ParameterSource.DEFAULT:
            continue
        if method is None:
            raise click.UsageError("the options of a method need a --method")
        if owner != method:
            flag = name.replace("_", "-")
            raise click.UsageError(f"--{flag} belongs to --method {owner}, not to {method}")
        found[theirs] = value
    return found


def read_graph(
    file: str | None, expression: str | None, *, may_be_empty: bool = False
) -> ExpressionGraph:
    """The graph that a command is about."""
    from cgprimer.core.graph import parse
    from cgprimer.core.graph.loading import load
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


def file_of(graph: ExpressionGraph) -> Path | None:
    """The file of a graph; None for standard input and ``-e``."""
    name = graph.source.name
    return None if name.startswith("<") else Path(name)


def named_after(graph: ExpressionGraph, ending: str) -> Path:
    """A file in this folder, called as the graph's own: ``lecture.png`` for ``lecture.cg``."""
    return Path(f"{(file_of(graph) or Path('graph')).stem}{ending}")


def echo_json(value: Any) -> None:
    """Print as JSON; nan and infinities as text."""
    click.echo(json_text(value, indent=2))


def note(text: str) -> None:
    """A message on standard error."""
    click.echo(text, err=True)
