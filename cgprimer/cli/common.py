"""Functions that commands share: creating commands, reading graphs, printing messages."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from itertools import chain
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from cgprimer.cli.file_watching import ARGUMENTS, NoExpressionsError, start_watching
from cgprimer.cli.grouped_help import GroupedHelp
from cgprimer.cli.shared_options import expression_option, loss_option
from cgprimer.core.graph.loading import load, resolve_graph_path
from cgprimer.core.loss_attachment import graph_with_loss
from cgprimer.errors import VISIBLE, CgprimerError, UsageError
from cgprimer.expressions import ExpressionGraph, parse
from cgprimer.support.files import check_writable, format_json

Decorator = Callable[[Callable[..., Any]], click.Command]

_ELSEWHERE = {  # names in other libraries and in lectures
    "--lr": "--learning-rate", "--rate": "--learning-rate", "--weight-decay": "--l2",
    "--early-stopping": "--patience", "--iterations": "--epochs", "--fix": "--freeze",
    "--momentum": "--hyper", "--beta": "--hyper", "--criterion": "--loss", "--val": "--validation",
    "--by": "--wrt",
}  # fmt: skip


class _Command(GroupedHelp):
    """A command that suggests the cgprimer option for an option name of another library."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments of the command; add suggestions to errors about options."""
        ctx.meta[ARGUMENTS] = list(args)
        long = {name for option in self.params for name in option.opts if name[:2] == "--"}
        for short in args:  # -epochs must not be read as -e with the value "pochs"
            if f"-{short.partition('=')[0]}" in long:
                raise click.UsageError(f"No such option {short!r}. Did you mean '-{short}'?", ctx)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            suggestion = _ELSEWHERE.get(error.option_name)
            if suggestion and any(suggestion in option.opts for option in self.params):
                raise click.UsageError(
                    f"{error.message} Did you mean {suggestion!r}?", ctx
                ) from None
            raise
        except click.UsageError as error:
            if "unexpected extra" in error.message and any("--" in a for a in ctx.meta[ARGUMENTS]):
                joined = "values of one option are joined by commas: --at a=2,x=3"
                raise click.UsageError(f"{error.message}; {joined}", ctx) from None
            raise


def make_command() -> Decorator:
    """Return a decorator that creates a command with ``-h`` and the docstring as help."""
    settings = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
    return click.command(cls=_Command, context_settings=settings)


def graph_command(
    *,
    optional: bool = False,
    with_loss: bool = False,
    with_watch: bool = False,
    reader: Callable[..., Any] | None = None,
) -> Decorator:
    """Return a decorator that creates a command for a graph from FILE or ``-e TEXT``.

    Args:
        optional: accept a command line without a graph; the function then receives None.
        with_loss: add ``--loss``; the function receives the graph with the loss node.
        with_watch: follow the files if the command has ``--watch``; the argument ``live`` tells
            the function to return a page.
        reader: callback of FILE, called before other options are read. It may put defaults of the
            options, and of FILE, into ``default_map`` of the context.
    """
    early: dict[str, Any] = {"is_eager": True, "callback": reader} if reader else {}
    argument = click.argument("file", required=False, type=click.Path(allow_dash=True), **early)

    def decorate(function: Callable[..., Any]) -> click.Command:
        """Create a command from a function that receives a graph."""

        @wraps(function)
        def run_on_graph(file: str | None, expression: str | None, **arguments: Any) -> Any:
            """Read the graph and call the function with it."""
            context = click.get_current_context()
            if expression is None:
                file = file or (context.default_map or {}).get("file")
            elif file is not None:  # the command line takes precedence over a configuration
                if context.get_parameter_source("expression") is ParameterSource.DEFAULT_MAP:
                    expression = None
                elif context.get_parameter_source("file") is ParameterSource.DEFAULT_MAP:
                    file = None
            if with_watch:
                arguments["live"] = start_watching(file, arguments)
                if arguments["live"] is None:
                    return None
            graph = _read_graph(file, expression, optional)
            loss = arguments.pop("loss") if with_loss else None
            if graph is not None and loss is not None:
                # A picture, and a description, need no values: any name may be a new input.
                at = arguments.get("at") or (
                    None if "at" not in arguments or "values" in arguments else {}
                )
                graph = graph_with_loss(graph, loss, at)
            return function(graph, **arguments)

        command = argument(loss_option(run_on_graph) if with_loss else run_on_graph)
        return make_command()(expression_option(command))

    return decorate


def _find_option(value: str) -> str:
    """Return the option that a user probably meant by a missing FILE, or an empty string."""
    for option in click.get_current_context().command.params:
        if f"--{value}" in option.opts:
            return f"--{value}"
        if value in getattr(option.type, "choices", ()):
            return f"{option.opts[-1]} {value}"
    return ""


def _read_graph(file: str | None, expression: str | None, optional: bool) -> ExpressionGraph | None:
    """Load the graph from FILE, or parse the text of ``-e``; return None if neither is given."""
    if expression is not None:
        if file is not None:
            hint = "; values are joined by commas: --at a=2,x=3" if "=" in file else ""
            raise click.UsageError(f"give either FILE or -e TEXT, not both{hint}")
        graph = parse(expression, name="<command line>")
    elif file is not None:
        if (option := _find_option(file)) and not resolve_graph_path(file).exists():
            raise UsageError(f"file {file!r} does not exist", hint=f"did you mean {option}?")
        graph = load(file)
    elif optional:
        return None
    else:
        raise click.UsageError("missing graph: pass a FILE (- for standard input) or -e TEXT")
    if not graph.definitions and not optional:
        raise NoExpressionsError(
            f"{graph.source.name} has no expressions",
            hint="add an expression of the form name = formula",
        )
    return graph


def graph_file(graph: ExpressionGraph) -> Path | None:
    """Return the path of the file that defines a graph, or None for standard input and ``-e``."""
    name = graph.source.name
    return None if name.startswith("<") else Path(name)


def default_output_path(graph: ExpressionGraph, ending: str) -> Path:
    """Return an output path in the current folder, such as ``lecture.png`` for ``lecture.cg``."""
    return Path(f"{(graph_file(graph) or Path('graph')).stem}{ending}")


def echo_json(value: Any) -> None:
    """Print a value as JSON, with nan and infinities as strings."""
    click.echo(format_json(value, indent=2))


def note(text: str) -> None:
    """Print a message on standard error."""
    click.echo(text.translate(VISIBLE), err=True)


@contextmanager
def defer_write_errors(*writes: Callable[[], object]) -> Iterator[None]:
    """Write files, and raise the first write error after the ``with`` statement."""
    failed = None
    try:
        for write in writes:
            write()
    except (CgprimerError, OSError) as error:
        failed = error
    yield
    if failed:
        raise failed


def check_outputs(
    force: bool,
    *files: str | None,
    plot: str | None = None,
    folder: str | None = None,
    resume: str | None = None,
) -> None:
    """Check that output paths are writable, and refuse to overwrite files without ``--force``."""
    if plot:
        from cgprimer.visualization.diagrams.figure_files import check_picture_path

        check_picture_path(Path(plot))
    for path in filter(None, files):
        check_writable(path)
    if folder and os.path.exists(folder) and not os.path.isdir(folder):
        raise UsageError(f"{folder} is not a folder")
    parameters = click.get_current_context().params | {
        "resume": None
    }  # a resumed run may be overwritten
    values = chain.from_iterable(v if isinstance(v, tuple) else (v,) for v in parameters.values())
    paths = [os.path.abspath(value) for value in values if isinstance(value, str)]
    for path in filter(None, (plot, *files)):
        device = os.path.exists(path) and not os.path.isfile(path)
        if paths.count(os.path.abspath(path)) > 1 and not device:
            what = f"{path} is given twice and would be overwritten"
            raise UsageError(what, hint="give each file a different name")
    for path in filter(None, (plot, *files, folder)):
        there = os.listdir(path) if os.path.isdir(path) else os.path.isfile(path)
        same = resume and os.path.exists(path) and os.path.samefile(path, resume)
        inside = resume and path == folder and os.path.samefile(path, os.path.dirname(resume))
        if there and not (force or same or inside):
            raise UsageError(f"{path} already exists", hint="choose another name, or use --force")


def save_plot(path: str | Path | None, kind: str, *what: Any, **options: Any) -> None:
    """Create a plot with :mod:`cgprimer.plot` and save it; do nothing if the path is empty."""
    if path:
        from cgprimer import plot
        from cgprimer.visualization.diagrams.figure_files import save_figure

        save_figure(getattr(plot, kind)(*what, **options), Path(path))


@contextmanager
def progress_bar(work: str, wanted: bool = True) -> Iterator[Callable[..., None] | None]:
    """Show a progress bar on standard error; yield None if this is not a terminal.

    Yields:
        A function of the amount done, the total amount and, optionally, the loss.
    """
    if not (wanted and sys.stderr.isatty()):
        yield None
        return
    from rich.console import Console  # honors NO_COLOR
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    columns = (TextColumn(work), BarColumn(), MofNCompleteColumn(), Remaining())
    loss_column = TextColumn("{task.fields[loss]}")
    with Progress(*columns, loss_column, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(work, total=None, loss="")

        def on_progress(completed: int, total: int, loss: float | None = None) -> None:
            """Update the progress bar and the loss next to it."""
            text = "" if loss is None else f"loss {loss:.4g}"
            bar.update(task, completed=completed, total=total, loss=text)

        yield on_progress
