"""``cgprimer check KIND``: a command for each kind of homework, loaded when it is asked for."""

from __future__ import annotations

from importlib import import_module

import click

from cgprimer.cli import Lazy

_KINDS = {
    "engine": "An engine that students write themselves, in ten stages.",
    "formula": "A gradient worked out by hand, or a rule that somebody states.",
    "gradient": "A function that computes a gradient.",
    "optimizer": "Optimizers: SGD, momentum, Nesterov, AdaGrad, RMSprop, Adam, AdamW.",
    "trace": "Answers to the sheets of cgprimer exercise.",
}  # name of a module in cgprimer/cli/checks -> what it checks


class _Kinds(click.Group):
    """A group whose help lists the kinds without loading one."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_KINDS.items()))


@click.group(
    cls=_Kinds,
    commands=Lazy(
        {k: lambda k=k: import_module(f"cgprimer.cli.checks.{k}").command for k in _KINDS}
    ),
    context_settings={"help_option_names": ["-h", "--help"]},
)
def command() -> None:
    """Check homework: what is right, and which mistake it looks like where it is not.

    \b
    Examples:
      cgprimer check gradient lecture --skeleton
      cgprimer check gradient lecture --autograder autograder.zip

    Every kind has its own options: cgprimer check gradient --help
    """
