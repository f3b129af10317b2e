"""The command line: one file per command, no mathematics.

Results go to standard output, messages to standard error. Exit codes: 0 success, 1 the job
failed, 2 wrong use or unreadable input, 130 interrupted.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
import warnings
from collections import UserDict
from importlib import import_module
from typing import Any

import click

from cgprimer import __version__
from cgprimer.errors import VISIBLE, CgprimerError

# Help texts of the commands, listed here so that `cgprimer --help` imports no command.
_COMMANDS = {
    "train": "Learn a graph's parameters from data.",
    "sweep": "Train with each combination of settings, and compare the runs.",
    "predict": "Predict outputs for new inputs with the learned parameters of a run.",
    "score": "Compute loss, R^2 and confusion matrix of a run on new samples.",
    "fit": "Fit a graph's parameters by least squares, with standard errors.",
    "identifiability": "Find the parameters that the data determine.",
    "ensemble": "Train an ensemble on bootstrap samples and average its predictions (bagging).",
    "draw": "Draw a graph as PNG, SVG or PDF.",
    "step": "Create a page, slides or a GIF that step through the computation of a derivative.",
    "plot": "Plot losses, surfaces, errors, costs and functions for slides.",
    "grad": "Compute the outputs of a graph and their derivatives.",
    "rules": "Differentiate a formula step by step, with the name of each rule.",
    "trace": "Print the evaluation of a graph step by step, with tangents or adjoints.",
    "tape": "Print the tape, the list of instructions, of a graph or of its derivative.",
    "exercise": "Write problem sheets, solutions, and files for grading.",
    "check": "Check homework and name likely mistakes.",
    "export": "Export a graph and its derivative as Python, C, LaTeX and other languages.",
    "compare": "Compare derivatives, errors and costs of all differentiation methods.",
    "data": "Generate a dataset from a graph with known parameters.",
    "primitives": "List the functions of the language and their derivatives.",
    "playground": "Write a page that runs cgprimer in the browser.",
    "new": "Write the expressions of a network, chain, polynomial or random graph.",
    "examples": "List or copy the example graphs of cgprimer.",
    "info": "Describe a graph, or this machine.",
}
INTERRUPTED = 130


class LazyCommands(UserDict[str, Any]):
    """Commands keyed by name; the module of a command is imported at its first use."""

    def __getitem__(self, name: str) -> Any:
        return self.data[name]()


class SuggestingGroup(click.Group):
    """A group of commands that suggests a similar name for an unknown command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names; if it is unknown, suggest a command."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            from cgprimer.core.graph.loading import resolve_graph_path
            from cgprimer.errors import did_you_mean

            hint = f"{ctx.command_path} --help lists the commands"
            if os.path.isfile(resolve_graph_path(args[0])):
                hint += "; give a command before the FILE"
            else:
                hint = did_you_mean(args[0], self.commands) or hint
            raise click.UsageError(f"unknown command {args[0]!r}\n  hint: {hint}", ctx)
        return super().resolve_command(ctx, args)


class LazyGroup(SuggestingGroup):
    """A group of commands whose help is shown without importing their modules.

    Args:
        helps: one line of help for each command, keyed by name.
        modules: name of the module of a command, with ``{}`` for the command.
    """

    def __init__(self, helps: dict[str, str], modules: str, **more: Any) -> None:
        loaders = {n: lambda n=n: import_module(modules.format(n)).command for n in helps}
        settings = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
        super().__init__(commands=LazyCommands(loaders), context_settings=settings, **more)
        self.helps = helps

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, with one line of help per command."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.helps.items()))


@click.group(cls=LazyGroup, helps=_COMMANDS, modules="cgprimer.cli.{}_command")
@click.version_option(__version__, prog_name="cgprimer")
def cli() -> None:
    """Explore computational graphs and automatic differentiation.

    \b
    Examples:
      cgprimer train lecture
      cgprimer draw lecture -o lecture.png
      cgprimer grad -e "xw = k*xa^2" --at k=3,xa=0.5 --wrt xa
      cgprimer compare lecture
    """


def _print_warning(
    message: Warning | str, category: type[Warning], *_: object, **__: object
) -> None:
    """Print a cgprimer warning as a one-line note; ignore warnings from other libraries."""
    if category is UserWarning:
        click.echo(f"note: {message}".translate(VISIBLE), err=True)


_ASCII = {"≈": "~", "→": "->", "×": "x", "−": "-", "·": "*", "…": "...", "∂": "d"}


def _replace_characters(error: UnicodeError) -> tuple[str, int]:
    """Handle an encoding error: replace unsupported characters by similar ASCII characters.

    >>> "≈ 2·π".encode("ascii", "cgprimer.plain")
    b'~ 2*\\\\u03c0'
    """
    assert isinstance(error, UnicodeEncodeError)
    letters = error.object[error.start : error.end]
    spelled = (_ASCII.get(c) or c.encode("ascii", "backslashreplace").decode() for c in letters)
    return "".join(spelled), error.end


codecs.register_error("cgprimer.plain", _replace_characters)


def main() -> None:
    """Run the command line and turn exceptions into messages and exit codes."""
    warnings.showwarning = _print_warning
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="cgprimer.plain")
    os.environ["MPLBACKEND"] = "agg"  # no window is opened, and matplotlib refuses unknown ones
    try:
        code = cli(standalone_mode=False, prog_name="cgprimer")
    except CgprimerError as error:
        from cgprimer.cli.argument_options import name_options

        click.echo(f"error: {name_options(error)}", err=True)
        code = error.exit_code
    except click.ClickException as error:
        error.show(shown := io.StringIO())
        click.echo(shown.getvalue().translate(VISIBLE), err=True, nl=False)
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        code = INTERRUPTED
    except SystemExit:
        if not type(sys.stdout).__name__.endswith("PacifyFlushWrapper"):
            raise
        code = 0  # the reader closed the pipe, as `head` does; click ignores further output
    except MemoryError:
        click.echo("error: out of memory\n  hint: use fewer samples or a smaller graph", err=True)
        code = 1
    except Exception as error:  # a bug in cgprimer: report it in one line
        if os.environ.get("CGPRIMER_DEBUG"):
            raise
        message = (
            f"this is a defect of cgprimer: {type(error).__name__}: {error}\n"
            "  hint: run again with CGPRIMER_DEBUG=1 for the traceback, and report it"
        )
        if isinstance(error, OSError):  # such as a full disk, or a path that is too long
            where = "the output" if error.filename is None else repr(error.filename)
            message = f"cannot access {where}: {error.strerror or error}"
        click.echo(f"error: {message}".translate(VISIBLE), err=True)
        code = 2 if getattr(error, "filename", None) else 1
    sys.exit(code or 0)
