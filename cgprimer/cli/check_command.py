"""``cgprimer check KIND``: a command for each kind of homework, loaded when it is asked for."""

from __future__ import annotations

import click

from cgprimer.cli import Commands

_KINDS = {
    "engine": "An engine that students write themselves, in ten stages.",
    "formula": "A gradient worked out by hand, or a rule that somebody states.",
    "gradient": "A function that computes a gradient.",
    "optimizer": "Optimizers: SGD, momentum, Nesterov, AdaGrad, RMSprop, Adam, AdamW.",
    "trace": "Answers to the sheets of cgprimer exercise.",
}  # name of a module in cgprimer/cli/checks -> what it checks


@click.group(cls=Commands, helps=_KINDS, modules="cgprimer.cli.checks.check_{}")
def command() -> None:
    """Check homework: what is right, and which mistake it looks like where it is not.

    \b
    Examples:
      cgprimer check gradient lecture --skeleton
      cgprimer check gradient lecture --autograder autograder.zip

    Every kind has its own options: cgprimer check gradient --help
    """
