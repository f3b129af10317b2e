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

# Short helps stand here, so that `cgprimer --help` loads no command and no library behind one.
_COMMANDS = {
    "train": "Learn a graph's parameters from data.",
    "sweep": "Train with many settings, and compare the runs.",
    "predict": "A run's outputs for other inputs.",
    "score": "How well a run predicts samples.",
    "fit": "Fit a graph's parameters by least squares, with standard errors.",
    "identifiability": "Tell which parameters the data determine.",
    "ensemble": "Bagging: train on bootstrap samples and average.",
    "draw": "Draw a graph as PNG, SVG or PDF.",
    "step": "Step through a derivative: a page for the projector, slides, or a GIF.",
    "plot": "Curves for slides: losses, surfaces, errors, costs, functions.",
    "grad": "Values of the outputs and their derivatives.",
    "rules": "Differentiate a formula rule by rule, as it is taught.",
    "trace": "The evaluation step by step, with tangents or adjoints.",
    "tape": "The tape of a graph or of its derivative, and what passes do to it.",
    "exercise": "Problem sheets with neat numbers, for one or for a class.",
    "check": "Check homework, and name the mistake.",
    "export": "A graph and its derivative as a file in Python, C, LaTeX, ... that checks itself.",
    "compare": "All methods side by side: results, errors, costs.",
    "data": "Make a dataset from a graph with known parameters.",
    "primitives": "The functions of the language and their derivatives.",
    "new": "Write the text of a network, a chain, a polynomial or a random graph.",
    "examples": "The graphs that come with cgprimer.",
    "info": "What a graph consists of, or what this machine offers.",
}
INTERRUPTED = 130


class Lazy(UserDict[str, Any]):
    """Commands by name; each is made, and what is behind it loaded, when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        return self.data[name]()


class Advising(click.Group):
    """A group that says which command may have been meant, where there is none."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A command and its arguments; a FILE is no command."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            from cgprimer.core.graph.loading import resolve_graph_path
            from cgprimer.errors import did_you_mean

            hint = f"{ctx.command_path} --help lists the commands"
            if os.path.isfile(resolve_graph_path(args[0])):
                hint += "; a FILE stands behind its command"
            else:
                hint = did_you_mean(args[0], self.commands) or hint
            raise click.UsageError(f"there is no command {args[0]!r}\n  hint: {hint}", ctx)
        return super().resolve_command(ctx, args)


class Commands(Advising):
    """A group whose help lists its commands without loading their modules.

    Args:
        helps: one line of help for each command.
        modules: the name of a command's module, with ``{}`` for the command.
    """

    def __init__(self, helps: dict[str, str], modules: str, **more: Any) -> None:
        made = {n: lambda n=n: import_module(modules.format(n)).command for n in helps}
        settings = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
        super().__init__(commands=Lazy(made), context_settings=settings, **more)
        self.helps = helps

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The short helps."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.helps.items()))


@click.group(cls=Commands, helps=_COMMANDS, modules="cgprimer.cli.{}_command")
@click.version_option(__version__, prog_name="cgprimer")
def cli() -> None:
    """Computational graphs and automatic differentiation.

    \b
    Examples:
      cgprimer train lecture
      cgprimer draw lecture -o lecture.png
      cgprimer grad -e "xw = k*xa^2" --at k=3,xa=0.5 --wrt xa
      cgprimer compare lecture
    """


def _say(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """A warning of ours in one line; those of libraries say nothing to a user."""
    if category is UserWarning:
        click.echo(f"note: {message}".translate(VISIBLE), err=True)


_PLAIN = {"≈": "~", "→": "->", "×": "x", "−": "-", "·": "*", "…": "...", "∂": "d"}


def _plain(error: UnicodeError) -> tuple[str, int]:
    """Letters that an output's encoding lacks, as ASCII.

    >>> "≈ 2·π".encode("ascii", "cgprimer.plain")
    b'~ 2*\\\\u03c0'
    """
    assert isinstance(error, UnicodeEncodeError)
    letters = error.object[error.start : error.end]
    spelled = (_PLAIN.get(c) or c.encode("ascii", "backslashreplace").decode() for c in letters)
    return "".join(spelled), error.end


codecs.register_error("cgprimer.plain", _plain)


def main() -> None:
    """Run the command line; no traceback reaches its user."""
    warnings.showwarning = _say
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="cgprimer.plain")
    os.environ["MPLBACKEND"] = "agg"  # no window is opened, and matplotlib refuses unknown ones
    try:
        code = cli(standalone_mode=False, prog_name="cgprimer")
    except CgprimerError as error:
        from cgprimer.cli.argument_options import with_options

        click.echo(f"error: {with_options(error)}", err=True)
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
        code = 0  # the reader of a pipe has left, as `head` does: click has silenced the rest
    except MemoryError:
        click.echo("error: out of memory\n  hint: fewer samples, or a smaller graph", err=True)
        code = 1
    except Exception as error:  # a defect of ours: say so, in one line
        if os.environ.get("CGPRIMER_DEBUG"):
            raise
        said = (
            f"this is a defect of cgprimer: {type(error).__name__}: {error}\n"
            "  hint: run again with CGPRIMER_DEBUG=1 for the traceback, and report it"
        )
        if isinstance(error, OSError):  # a full disk behind stdout, a name that is too long
            where = "the output" if error.filename is None else repr(error.filename)
            said = f"the system refuses {where}: {error.strerror or error}"
        click.echo(f"error: {said}".translate(VISIBLE), err=True)
        code = 2 if getattr(error, "filename", None) else 1
    sys.exit(code or 0)
