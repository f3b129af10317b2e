"""``cgprimer check KIND``: a command for each kind of homework, loaded at its first use."""

from __future__ import annotations

import click

from cgprimer.cli import LazyGroup

_KINDS = {
    "engine": "Check an automatic differentiation engine, in ten stages.",
    "formula": "Check a gradient computed by hand, or a differentiation rule.",
    "gradient": "Check a function that computes a gradient.",
    "optimizer": "Check optimizers: SGD, momentum, Nesterov, AdaGrad, RMSprop, Adam, AdamW.",
    "trace": "Grade answers to problem sheets of cgprimer exercise.",
}  # name of a module in cgprimer/cli/checks -> what it checks


@click.group(cls=LazyGroup, helps=_KINDS, modules="cgprimer.cli.checks.check_{}")
def command() -> None:
    """Check homework and name likely mistakes.

    \b
    Examples:
      cgprimer check gradient lecture --skeleton
      cgprimer check gradient lecture --autograder autograder.zip

    Every kind has its own options: cgprimer check gradient --help
    """
